#!/usr/bin/env bash
# Tests the Python package: makes a virtual environment in target/, builds the engine as Rust's tests are built, runs pytest.
#   python/test.sh [PYTEST ARGUMENTS]                     # two tests at a time
#   CIRCULANT_SUITE=whole python/test.sh                  # scikit-learn's suite with sizes chosen too, all comparisons, whole examples
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
venv=${CIRCULANT_VENV:-$target/python}
if ! "$venv/bin/python" -c "import pytest, xdist" 2> /dev/null; then
    [ -d "$venv" ] || python3 -m venv "$venv"
    "$venv/bin/pip" install -q numpy scipy scikit-learn mapie pandas polars pytest pytest-xdist mypy
fi
# With a test among the targets, dependencies have the features of `cargo test --workspace`: nothing of it is built again.
cargo build --workspace --lib --test all
# Not over the file that another process may have loaded.
cp --remove-destination "$target/debug/libcirculant_python.so" python/circulant/_engine.abi3.so
export PYTHONPATH="$PWD/python" PYTHONDONTWRITEBYTECODE=1
cd python
exec "$(cd .. && realpath "$venv")/bin/python" -m pytest -n 2 --dist worksteal "$@"

#!/usr/bin/env bash
# Tests the Python package: makes a virtual environment in target/, builds the engine as Rust's tests are built, runs pytest.
#   python/test.sh [PYTEST ARGUMENTS]
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
venv=${CIRCULANT_VENV:-$target/python}
if [ ! -x "$venv/bin/pytest" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q numpy scipy scikit-learn pandas polars pytest mypy
fi
cargo build --manifest-path python/Cargo.toml --target-dir "$target/python-engine"
cp "$target/python-engine/debug/libcirculant_python.so" python/circulant/_engine.abi3.so
export PYTHONPATH="$PWD/python" PYTHONDONTWRITEBYTECODE=1
cd python
exec "$(cd .. && realpath "$venv")/bin/python" -m pytest "$@"

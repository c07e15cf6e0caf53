#!/usr/bin/env bash
# Builds the runtime for the browser into the program's assets:
#
#   web/build.sh
#
# with rustup's target, or where rustup cannot fetch it, with Debian's compiler and the source of its standard library.
set -euo pipefail
cd "$(dirname "$0")/.."
target=wasm32-unknown-unknown
folder=${CARGO_TARGET_DIR:-$PWD/target}/web
flags=(--release --manifest-path web/runtime/Cargo.toml --target "$target")
# Flags for size and speed; the stack needs little; the same bytes on every machine, without its paths.
export CARGO_TARGET_DIR=$folder
export RUSTFLAGS="-Ctarget-feature=+simd128 -Clink-arg=-zstack-size=65536 --remap-path-prefix=$PWD=. --remap-path-prefix=$HOME=~"
if rustup target add "$target" > /dev/null 2>&1; then
    cargo build "${flags[@]}"
else
    compiler=${RUSTC_WITH_SOURCE:-$folder/rustc-with-source}
    [ -x "$compiler/rustc" ] || tools/rustc-with-source.sh "$compiler"
    RUSTC=$compiler/rustc RUSTC_BOOTSTRAP=1 cargo build "${flags[@]}" -Zbuild-std=core,alloc
fi
mkdir -p crates/circulant-cli/assets
cp "$folder/$target/release/circulant_web.wasm" crates/circulant-cli/assets/runtime.wasm
ls -l crates/circulant-cli/assets/runtime.wasm

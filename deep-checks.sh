#!/usr/bin/env bash
# What finds unsound code and takes too long for every change; docs/reliability.md has what it found.
#
#   ./deep-checks.sh                  everything
#   ./deep-checks.sh asan tsan        some of it
#
#   isa        the kernel tests with portable, AVX2 and AVX-512 code, as far as this processor goes
#   overflow   the kernel tests with overflow checks and debug assertions, on portable code
#   asan       the kernel tests under AddressSanitizer (nightly)
#   tsan       the kernel tests under ThreadSanitizer (nightly's runtime; a standard library built with it)
#   backends   layers, training and --device on Burn's other backends, as far as the machine has them; writes the table of
#              docs/backends.md. BACKENDS="ndarray wgpu" unless set; software Vulkan does (Debian: mesa-vulkan-drivers)
#   fuzz       every target of fuzz/, FUZZ_RUNS executions each (1,000,000 unless set); needs cargo-fuzz and nightly
set -euo pipefail
cd "$(dirname "$0")"
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=${CARGO_PROFILE_DEV_DEBUG:-line-tables-only}
folder=${CARGO_TARGET_DIR:-target}
host=$(rustc -vV | sed -n 's/^host: //p')
kernels=profile.dev.package.circulant-kernels
# Sanitizers make code long; with every optimisation on top, the compiler would take an hour.
short=(--config "$kernels.opt-level=1" --config "$kernels.codegen-units=16")
# Not the test that counts allocations: sanitizers allocate themselves.
tests=(-p circulant-kernels --test kernels --test threads)
# The same with the features that the whole workspace gives to dependencies, so that nothing but the kernels is built again.
shared=(--workspace --test kernels --test threads)

isa() {
    local sets=portable
    if grep -qsw avx2 /proc/cpuinfo; then sets+=" avx2"; fi
    if grep -qsw avx512f /proc/cpuinfo; then sets+=" avx512"; fi
    for set in $sets; do
        echo "== CIRCULANT_ISA=$set"
        CIRCULANT_ISA=$set cargo test "${shared[@]}"
    done
}

overflow() {
    cargo test "${shared[@]}" --features circulant-kernels/portable "${short[@]}" \
        --config "$kernels.overflow-checks=true" --config "$kernels.debug-assertions=true"
}

asan() {
    nightly
    # The pool of threads lives as long as the process, which is no leak.
    CARGO_TARGET_DIR=$folder/asan RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0 \
        cargo +nightly test "${tests[@]}" --target "$host" "${short[@]}"
}

# The standard library's own atomics must be instrumented too, or every lock looks like a race.
tsan() {
    nightly
    export CARGO_TARGET_DIR=$folder/tsan TSAN_OPTIONS="suppressions=$PWD/tools/tsan.supp halt_on_error=1"
    if rustup +nightly component add rust-src > /dev/null 2>&1; then
        RUSTFLAGS=-Zsanitizer=thread \
            cargo +nightly test "${tests[@]}" --target "$host" -Zbuild-std "${short[@]}"
        return
    fi
    local compiler=$folder/rustc-with-source runtime
    tools/rustc-with-source.sh "$compiler"
    runtime=$(rustc +nightly --print sysroot)/lib/rustlib/$host
    local flags="-Zsanitizer=thread -Zexternal-clangrt -Clink-arg=-fuse-ld=lld -Clink-arg=-B$runtime/bin/gcc-ld"
    flags+=" -Clink-arg=-Wl,--whole-archive,$runtime/lib/librustc-nightly_rt.tsan.a,--no-whole-archive"
    flags+=" -Clink-arg=-Wl,--export-dynamic -Clink-arg=-lm -Clink-arg=-lpthread -Clink-arg=-ldl -Clink-arg=-lc"
    RUSTC=$(realpath "$compiler/rustc") RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags \
        cargo test "${tests[@]}" --target "$host" -Zbuild-std "${short[@]}"
}

backends() {
    local features=""
    for backend in ${BACKENDS:-ndarray wgpu}; do features+="circulant/$backend,circulant-cli/$backend,"; done
    # A table of fewer backends than it has would lose columns.
    if [ -z "${BACKENDS:-}" ]; then export CIRCULANT_BACKENDS_TABLE=$PWD/docs/backends.md; fi
    cargo test --workspace --features "$features" --test backends -- --nocapture
    cargo test --workspace --features "$features" --test program devices
}

fuzz() {
    nightly
    command -v cargo-fuzz > /dev/null || cargo install cargo-fuzz --locked
    local found
    found=$(mktemp -d)
    cd fuzz
    for target in $(cargo +nightly fuzz list); do
        echo "== $target"
        mkdir -p "$found/$target" "corpus/$target"
        # New inputs go to the first folder, so that the corpus in the repository stays small.
        cargo +nightly fuzz run "$target" "$found/$target" "corpus/$target" -- \
            -runs="${FUZZ_RUNS:-1000000}" -timeout=1 -rss_limit_mb=1024 -print_final_stats=1
    done
    cd ..
}

nightly() {
    rustc +nightly --version > /dev/null 2>&1 || rustup toolchain install nightly --profile minimal
}

[ $# -gt 0 ] || set -- isa overflow asan tsan backends fuzz
for part; do
    case $part in
        isa | overflow | asan | tsan | backends | fuzz) ;;
        *) echo "deep-checks.sh: no part \`$part\`; there are isa, overflow, asan, tsan, backends, fuzz" >&2; exit 2 ;;
    esac
done
for part; do
    echo "=== $part"
    ("$part")
done
echo "deep-checks.sh: $* passed"

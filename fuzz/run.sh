#!/usr/bin/env bash
# Fuzzes every reader of foreign files: fuzz/run.sh [EXECUTIONS], a million per target by default. A panic, a hang over
# one second or more than 1 GiB of memory ends it. Needs nightly and cargo-fuzz (cargo install cargo-fuzz --locked).
# What is found on the way stays in fuzz/target/corpus; the committed seeds are only read.
set -euo pipefail
cd "$(dirname "$0")/.."
executions=${1:-1000000}
# The versions that the workspace is tested with.
cp Cargo.lock fuzz/Cargo.lock
cargo +nightly fuzz build
for seeds in fuzz/corpus/*; do
    target=$(basename "$seeds")
    mkdir -p "fuzz/target/corpus/$target"
    echo "$target"
    cargo +nightly fuzz run "$target" "fuzz/target/corpus/$target" "$seeds" -- \
        -runs="$executions" -rss_limit_mb=1024 -timeout=1 -max_len=8192 -print_final_stats=1 2>&1 |
        grep -E "ERROR|panicked|stat::(number_of_executed_units|average_exec_per_sec|peak_rss_mb)|ALARM|Test unit written"
done

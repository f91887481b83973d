#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run every fuzz target that `make SAN=fuzz CC=clang fuzz` built, SECONDS each, from small seeds.
#   tools/run_fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:?seconds}
seeds=$(mktemp -d)
trap 'rm -rf "$seeds"' EXIT
build/bin/drawset --train 24 --val 6 "$seeds/pictures" >/dev/null
for target in build/fuzz-clang*/fuzz/fuzz_*; do
    case $target in *.d | *.o) continue ;; esac
    name=$(basename "$target")
    corpus=build/fuzz-corpus/$name
    mkdir -p "$corpus"
    case $name in
    fuzz_decode) find "$seeds/pictures" -type f -exec cp -n {} "$corpus" \; ;;
    *) find tests/data -name "${name#fuzz_}*" -type f -exec cp -n {} "$corpus" \; ;;
    esac
    printf '%s: ' "$name"
    if ! "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="build/fuzz-corpus/$name-" "$corpus" >"$seeds/log" 2>&1; then
        tail -n 40 "$seeds/log"
        exit 1
    fi
    awk '/number_of_executed_units/ { print $2 " inputs, no finding" }' "$seeds/log"
done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the kernels cost: best processor time of a call at every level of instructions that this
# machine has, and instructions per call under callgrind, which other work on the machine cannot
# change. Callgrind knows no AVX-512. Needs valgrind for the second part.
set -eu
cd "$(dirname "$0")/.."
make --no-print-directory build/release/bench/bench_kernels
bench=build/release/bench/bench_kernels
kernels=(taps rows_exact cols_exact rows_fast cols_fast float_nchw float_nhwc bfloat_nchw half_nchw)

echo "microseconds per call, best of 500"
for level in c avx2 avx512vbmi; do
    echo "-- $level"
    DPL_CPU=$level "$bench"
done
command -v valgrind >/dev/null || exit 0

# The difference between 3 calls and 1 is 2 calls, whatever starting the program takes.
instructions() {
    DPL_CPU=$1 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" "$3" "$2" 2>&1 >/dev/null |
        awk '/Collected/ { print $NF }'
}
echo "instructions per call"
printf '%-12s %12s %12s\n' kernel c avx2
for kernel in "${kernels[@]}"; do
    counts=()
    for level in c avx2; do
        counts+=($((($(instructions "$level" "$kernel" 3) - $(instructions "$level" "$kernel" 1)) / 2)))
    done
    printf '%-12s %12d %12d\n' "$kernel" "${counts[@]}"
done

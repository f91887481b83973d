#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compare what ptxas says of the kernels with the committed budget: how many registers a thread takes decides
# how many threads a GPU can hold, and nobody sees it grow. `make gpu-budget`, after the kernels were built.
#   tools/gpu_budget.sh [--update] FILE.cu.ptxas...
# One line per kernel and GPU that takes more, or is not in the budget; exit 1 if there is any.
set -euo pipefail
budget=trainer/cuda/registers.txt
update=0
[ "${1:-}" = --update ] && update=1 && shift
[ $# -gt 0 ] || { echo "usage: tools/gpu_budget.sh [--update] FILE.cu.ptxas..." >&2; exit 2; }
compiler=$("${NVCC:-nvcc}" --version | sed -n 's/.*release \([0-9.]*\),.*/nvcc \1/p')

measured() { # lines of GPU REGISTERS SHARED SPILLED KERNEL
    sed -n "s/.*Compiling entry function '\(.*\)' for '\(.*\)'.*/entry \2 \1/p
            s/.*stack frame, \([0-9]*\) bytes spill stores.*/spilled \1/p
            s/.*Used \([0-9]*\) registers.* \([0-9]*\) bytes smem.*/used \1 \2/p; t
            s/.*Used \([0-9]*\) registers.*/used \1 0/p" "$@" |
        awk '$1 == "entry" { gpu = $2; name = $3 }
             $1 == "spilled" { spilled = $2 }
             $1 == "used" { print gpu, $2, $3, spilled, name }' |
        c++filt | sed 's/^\([^ ]* [^ ]* [^ ]* [^ ]*\) \(void \)\?\(.*\)(.*)$/\1 \3/' | sort -t ' ' -k 5 -k 1,1V
}

if [ "$update" = 1 ]; then
    {
        echo "# $compiler: GPU, registers of a thread, bytes of static shared memory of a block, bytes spilled,"
        echo "# kernel. Compared by \`make check\`; written by \`make gpu-budget UPDATE=1\`."
        measured "$@"
    } >"$budget"
    exit 0
fi
[ -e "$budget" ] || { echo "gpu-budget: no $budget; make gpu-budget UPDATE=1 writes it" >&2; exit 1; }
made=$(sed -n '1s/^# \(nvcc [0-9.]*\):.*/\1/p' "$budget")
if [ "$made" != "$compiler" ]; then
    echo "gpu-budget: $budget is of $made, this is $compiler: not compared"
    exit 0
fi
measured "$@" | awk -v file="$budget" '
    BEGIN {
        split("? registers shared spilled", what, " ")
        while ((getline line < file) > 0) {
            if (line ~ /^#/) continue
            split(line, f, " ")
            key = f[1] " " substr(line, length(f[1] f[2] f[3] f[4]) + 5)
            was[key] = 1
            for (i = 2; i <= 4; i++) budget[key, i] = f[i]
        }
    }
    {
        kernel = substr($0, length($1 $2 $3 $4) + 5)
        key = $1 " " kernel
        seen[key] = 1
        if (!(key in was)) {
            printf "gpu-budget: %s on %s is not in %s: make gpu-budget UPDATE=1\n", kernel, $1, file
            bad = 1
            next
        }
        for (i = 2; i <= 4; i++) {
            if ($i <= budget[key, i]) continue
            printf "gpu-budget: %s on %s: %s was %d, is %d\n", kernel, $1, what[i], budget[key, i], $i
            bad = 1
        }
    }
    END {
        for (key in was) {
            if (key in seen) continue
            printf "gpu-budget: %s: in %s, but there is no such kernel: make gpu-budget UPDATE=1\n", key, file
            bad = 1
        }
        exit bad
    }'

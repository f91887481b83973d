#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The structure rules of docs/design.md, checked. Prints one line per finding; exit 1 if there is any.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
say() { printf 'check: %s\n' "$*" && bad=1; }
files() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ -e "$f" ] && echo "$f"; done; }

# --- 1. include direction ---
allowed() {
    case "$1" in
    include) echo "" ;;
    base) echo "include base" ;;
    device) echo "include base device" ;;
    kernels) echo "include base kernels" ;;
    augment) echo "include base kernels augment" ;;
    loader) echo "include base device kernels augment loader" ;;
    trainer) echo "include base device kernels trainer" ;;
    tools) echo "include base tools" ;;
    examples) echo "include" ;;
    tests) echo "include base device kernels augment loader trainer tools tests" ;;
    esac
}
while read -r file; do
    folder=${file%%/*}
    may=" $(allowed "$folder") "
    while read -r included; do
        [ "$included" = dpload.h ] && target=include || target=${included%%/*}
        [[ $may == *" $target "* ]] || say "$file includes \"$included\": $folder/ may include:${may% }"
    done < <(sed -n 's/^ *# *include "\(.*\)".*/\1/p' "$file")
done < <(files '*.c' '*.h' '*.cu' '*.cuh' '*.hpp')

# --- 2. a third-party header appears in one family of files only ---
family() { # HEADER-PATTERN ALLOWED-FILE-PATTERN
    while read -r file; do
        [[ $file =~ $2 ]] || say "$file includes <$1>: only $2 may"
    done < <(files '*.c' '*.h' '*.cu' '*.cuh' '*.hpp' | xargs grep -lE "# *include <($1)" 2>/dev/null)
}
family 'jpeglib|jerror|jmorecfg|turbojpeg' '^(loader/decode_jpeg|tools/jpeg_write)'
family 'png' '^(loader/decode_png|tools/png_write)'
family 'webp/' '^(loader/decode_webp|tests/)'
family 'dnnl|oneapi' '^trainer/backend_dnnl'
family 'omp\.h' '^trainer/backend_dnnl'
family 'jansson' '^(trainer/(safetensors_read|runlog)|tests/)'
family 'cudnn' '^trainer/cuda/backend_cudnn'
family 'nccl' '^(trainer/cuda/comm_nccl|tests/fake/cuda/)'
family 'nvtx' '^(device/cuda/|trainer/cuda/|tests/fake/cuda/)'
family 'cuda' '^(device/cuda/|trainer/cuda/|tests/fake/cuda/|tests/bench/bench_overlap)'

# --- 3. every header compiles alone, as C11 and as C++17 ---
read -ra cuda <<<"${CUDA_INC:-}" # where CUDA's headers are; empty: not here
while read -r header; do
    case $header in */cuda/*) [ ${#cuda[@]} -gt 0 ] || continue ;; esac
    flags=(-D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror -Iinclude -I. "${cuda[@]}" -fsyntax-only)
    case $header in *.h) gcc -std=c11 "${flags[@]}" -x c "$header" || say "$header does not compile alone as C11" ;; esac
    case $header in tests/*.h) continue ;; esac
    g++ -std=c++17 "${flags[@]}" -x c++ "$header" || say "$header does not compile alone as C++17"
done < <(files '*.h' '*.hpp')

# --- 4. exported names, and no mutable globals in the library ---
make --no-print-directory lib >/dev/null || say "the library does not build"
listed=$(sed -n '/global:/,/local:/p' loader/libdpload.map | grep -o 'dpl_[a-z0-9_]*' | sort)
exported=$(nm -D --defined-only build/lib/libdpload.so.0 | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort)
declared=$(grep -oE '\bdpl_[a-z0-9_]+\(' include/dpload.h | tr -d '(' | sort -u |
    while read -r name; do grep -qE "^DPL_API .*\b$name\(" include/dpload.h && echo "$name"; done)
[ "$listed" = "$exported" ] || say "exported names differ from loader/libdpload.map: $(diff <(echo "$listed") <(echo "$exported") | tr '\n' ' ')"
[ "$listed" = "$declared" ] || say "dpload.h and loader/libdpload.map differ: $(diff <(echo "$declared") <(echo "$listed") | tr '\n' ' ')"
while read -r name; do say "libdpload.a: global name without the prefix dpl_: $name"; done < <(
    nm --defined-only build/lib/libdpload.a 2>/dev/null | awk '$2 ~ /[TDBRV]/ && $3 !~ /^dpl_/ { print $3 }')
while read -r name; do say "libdpload.a: mutable global: $name"; done < <(
    objdump -t build/lib/libdpload.a | awk 'NF > 3 && $(NF-2) ~ /^\.(data|bss)$/ && $NF !~ /^\./ { print $NF }')
for plugin in build/lib/lib*_cuda.so; do # where there is CUDA
    [ -e "$plugin" ] || continue
    exported=$(nm -D --defined-only "$plugin" | awk '{ print $3 }' | tr '\n' ' ')
    [[ $exported =~ ^dp[lt]_cuda_plugin\ $ ]] || say "$plugin exports more than its entry: $exported"
done

# --- 5. formatting, names, sizes, licence lines ---
files '*.c' '*.h' '*.cu' '*.cuh' '*.hpp' | grep -v '^tests/data/' | xargs clang-format --dry-run -Werror 2>&1 | grep -E 'error' | head -n 20 | grep . && say "run make format"
while read -r name; do say "two files are called $name"; done < <(files '*.c' '*.h' '*.cu' '*.cuh' '*.hpp' | xargs -n1 basename | sort | uniq -d)
while read -r file; do
    lines=$(wc -l <"$file")
    [ "$lines" -le 500 ] || say "$file has $lines lines: split over 500"
    head -n 2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || say "$file has no SPDX line"
done < <(files '*.c' '*.h' '*.cu' '*.cuh' '*.hpp' | grep -v '^tests/data/')
for file in Makefile cuda.mk; do
    [ "$(wc -l <$file)" -le 200 ] || say "$file has more than 200 lines"
done

# --- 6. what kernels take of a GPU; says so where nvcc is not ---
make --no-print-directory gpu-budget || say "kernels take more than trainer/cuda/registers.txt says"

# --- 7. scripts ---
mapfile -t scripts < <(files '*.sh' .ci/run)
shellcheck "${scripts[@]}" || say "shellcheck"

[ "$bad" = 0 ] && echo "check: all structure rules hold"
exit "$bad"

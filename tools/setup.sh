#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install the Debian packages that dptrain needs. The one list of them, with the reasons.
#   tools/setup.sh          what building and training needs
#   tools/setup.sh --test   the same and what the tests need
#   tools/setup.sh --check  the same and what `make check`, sanitizers and fuzzing need
# Installs with root or password-less sudo; otherwise prints the one line to run and ends with 1.
set -eu

build="
gcc                 the compiler
libc6-dev           C headers
make                the build
libjpeg62-turbo-dev JPEG decoding (libjpeg API: region decode, source managers)
libpng-dev          PNG decoding, contact sheets
libwebp-dev         WebP decoding
zlib1g-dev          checksums of checkpoints, libpng
libdnnl-dev         oneDNN: training on the CPU
libjansson-dev      JSON reading: checkpoint headers
"
tests="
libcmocka-dev       the test harness
procps              pgrep: tests look for threads and processes left behind
pkg-config          the flags of the installed library
g++                 kernels for GPUs run on the CPU in tests, where CUDA is; headers compile alone as C++17
"
check="
clang               a second compiler; libFuzzer
libclang-rt-14-dev  sanitizer and fuzzer run-time libraries of clang
clang-format        formatting
gcc-aarch64-linux-gnu  the kernels' NEON variants are compiled (make test-neon)
libc6-dev-arm64-cross  C headers and libraries for that compiler
qemu-user           runs their tests
shellcheck          scripts
binutils            exported names
git                 the list of files
"

case "${1:-}" in
"") list=$build ;;
--test) list=$build$tests ;;
--check) list=$build$tests$check ;;
*)
    echo "tools/setup.sh: unknown argument '$1' (none, --test or --check)" >&2
    exit 2
    ;;
esac

missing=""
for package in $(printf '%s\n' "$list" | awk 'NF { print $1 }'); do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
        missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ]; then
    sudo=""
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    sudo="sudo"
else
    echo "Missing Debian packages. Run this line, then start again:" >&2
    echo "  sudo apt-get install -y --no-install-recommends$missing" >&2
    exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a list of words
if ! { $sudo apt-get update -qq && $sudo apt-get install -y -qq --no-install-recommends $missing; } >/tmp/dptrain-setup.$$ 2>&1; then
    cat /tmp/dptrain-setup.$$ >&2
    rm -f /tmp/dptrain-setup.$$
    echo "tools/setup.sh: the packages could not be installed" >&2
    exit 1
fi
rm -f /tmp/dptrain-setup.$$

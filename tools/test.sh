#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install what is missing, build, run every test. Ends with one line "N passed, N failed, N skipped".
set -eu
cd "$(dirname "$0")/.."
tools/setup.sh --test
make --no-print-directory config
make --no-print-directory -j"$(nproc)" all
exec make --no-print-directory -j"$(nproc)" test

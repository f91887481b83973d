#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run cmocka test programs, a few at a time, each under a time limit, and count what they say.
#   tools/run_tests.sh PROGRAM...      BIN and LIB name the folders of the built programs
#   TEST_RUN=qemu-aarch64              what starts programs of another architecture
# Ends with one line "N passed, N failed, N skipped"; exit 1 when anything failed.
set -u
limit=${TEST_TIMEOUT:-300}
jobs=${TEST_JOBS:-$(nproc)}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

run_one() { # PROGRAM: TAP to $out/name.tap, the rest to $out/name.err, exit code to $out/name.rc
    local name
    name=$(basename "$1")
    CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 5 "$limit" ${TEST_RUN:+"$TEST_RUN"} "$1" >"$out/$name.tap" 2>"$out/$name.err" </dev/null
    echo $? >"$out/$name.rc"
}
export -f run_one
export out limit
# shellcheck disable=SC2016 # $1 is for the inner shell
printf '%s\0' "$@" | xargs -0 -P "$jobs" -I{} bash -c 'run_one "$1"' _ {}

passed=0 failed=0 skipped=0
for program in "$@"; do
    name=$(basename "$program")
    rc=$(cat "$out/$name.rc" 2>/dev/null || echo none)
    ok=$(grep -cE '^ok ' "$out/$name.tap") || true
    skip=$(grep -cE '^ok .*# SKIP|^not ok .*# SKIP' "$out/$name.tap") || true
    bad=$(grep -E '^not ok ' "$out/$name.tap" | grep -cv '# SKIP') || true
    ok=$((ok - $(grep -cE '^ok .*# SKIP' "$out/$name.tap")))
    note=""
    if [ "$rc" != 0 ] && [ "$bad" = 0 ]; then # died, hung, or a sanitizer spoke at the end
        bad=1
        [ "$rc" = 124 ] && note=" (no end within $limit s)" || note=" (exit $rc)"
    fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
    printf '%-28s %3d passed, %d failed%s%s\n' "$name" "$ok" "$bad" \
        "$([ "$skip" != 0 ] && echo ", $skip skipped")" "$note"
    if [ "$bad" != 0 ]; then
        grep -vE '^ok |^1\.\.' "$out/$name.tap" | tail -n 40
        tail -n 60 "$out/$name.err"
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does cuDNN still plan what is compiled at run time as tests/data/cudnn/plans_elsewhere.tsv says? Another version of
# cuDNN may choose other engines: then it has to have a plan for every row.
#   tests/scripts/check_plan_table.sh FOLDER-OF-plan_table
set -eu
dir=${1:?usage: check_plan_table.sh FOLDER}
want=tests/data/cudnn/plans_elsewhere.tsv
got=$(mktemp -d)
trap 'rm -rf "$got"' EXIT
tests/scripts/make_plan_table.sh "$dir" elsewhere >"$got/all"
if [ "$(head -n 1 "$got/all")" = "$(head -n 1 "$want")" ]; then
    diff -u "$want" "$got/all"
else
    cut -f 1,2 "$want" | tail -n +2 >"$got/want"
    cut -f 1,2 "$got/all" | tail -n +2 | diff -u "$got/want" -
fi
echo "test-plans: $(grep -vc '^#' "$got/all") plans as in $want"

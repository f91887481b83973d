#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the table of cuDNN's plans: tests/data/cudnn/plans.tsv. tests/test_cudnn_plans.c compares with it.
#
#   make build/release/tests/plan_table build/release/tests/nogpu/libcuda.so.1
#   tests/scripts/make_plan_table.sh build/release/tests >tests/data/cudnn/plans.tsv
#
# A second argument prints one part: conv (needs no driver, all networks on all GPUs), sm_90 (everything that is
# compiled at run time), forms (one of each form of it on the other GPUs). Not in the table: elsewhere (all of it on
# the other GPUs; takes a minute), which `make test-plans` compares with tests/data/cudnn/plans_elsewhere.tsv.
set -eu
dir=${1:?usage: make_plan_table.sh FOLDER [conv|sm_90|forms|elsewhere]}
part=${2:-all}
data=tests/data/cudnn
rest='resnet18:224:256 resnet50:224:256 tinynet:32:64'
conv='resnet18:224:256 resnet50:224:256 resnet50:224:64 tinynet:32:64'
types() { for net in $1; do for type in $2; do printf '%s:%s ' "$net" "$type"; done; done; }

[ "$part" != all ] && [ "$part" != elsewhere ] || printf '# cuDNN %s\n' "$("$dir/plan_table" --version)"
if [ "$part" = all ] || [ "$part" = conv ]; then
    for gpu in sm_80 sm_90 sm_100 sm_120; do
        # shellcheck disable=SC2046 # words are wanted
        "$dir/plan_table" --conv "$data/$gpu.json" $(types "$conv" 'bf16 fp16') $(types 'resnet50:224:256' fp32)
    done
fi
LD_LIBRARY_PATH="$dir/nogpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH
if [ "$part" = all ] || [ "$part" = sm_90 ]; then
    # shellcheck disable=SC2046
    "$dir/plan_table" --rest "$data/sm_90.json" $(types "$rest" bf16)
fi
if [ "$part" = all ] || [ "$part" = forms ]; then
    "$dir/plan_table" --rest --forms "$data/sm_90.json" resnet18:224:256:fp16
    for gpu in sm_80 sm_100 sm_120; do
        "$dir/plan_table" --rest --forms "$data/$gpu.json" resnet18:224:256:bf16
    done
fi
if [ "$part" = elsewhere ]; then
    for gpu in sm_80 sm_100 sm_120; do
        # shellcheck disable=SC2046
        "$dir/plan_table" --rest "$data/$gpu.json" $(types "$rest" bf16)
    done
fi

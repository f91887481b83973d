#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# From nothing to a trained classifier: install what is missing, build, draw a small labelled picture
# set as JPEG files, train ResNet-18 on it, say where everything lies.
#   tools/demo.sh [FOLDER]   default build/demo
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build/demo}
start=$(date +%s)
tools/setup.sh
make --no-print-directory config
make --no-print-directory -j"$(nproc)" all
mkdir -p "$folder"
[ -d "$folder/pictures/train" ] || build/bin/drawset "$folder/pictures"
set -- --workers 2 --batch 16 --size 64 --epochs 14 --lr 0.02 --sched cosine --warmup 1 --scale 0.5,1
echo "+ build/bin/dptrain $* $folder/pictures"
build/bin/dptrain "$@" --print-freq 20 --force --output "$folder/run" "$folder/pictures"
top1=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "eval_top1") c = i } NR > 1 { v = $c } END { print v }' \
    "$folder/run/log.csv")
echo
echo "top-1 $top1 % on the drawn validation set, $(($(date +%s) - start)) s from start to end"
echo "pictures $folder/pictures   model $folder/run/model.safetensors   log $folder/run/log.csv"
echo "next: build/bin/dpload show $folder/pictures -o sheet.png   (what the network sees)"
echo "      build/bin/dpload bench $folder/pictures               (how fast the loader is)"

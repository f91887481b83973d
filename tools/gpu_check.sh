#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything that a machine with NVIDIA GPUs can show, in one call: builds, tests on the card, compute-sanitizer,
# overlap, speed beside PyTorch. Writes one report folder with a verdict for each item; exit 1 when something did
# not hold. What a machine cannot show is named with the reason, and is no failure.
#   tools/gpu_check.sh [--dry-run] [--out DIR] [ITEM...]
# --dry-run (or --fake): the same script over the fakes of the tests, with small sizes, on any machine. Speeds mean
# nothing there and are not judged.
#   PYTHON=python3   that has torch, for the comparison
#   DATA=DIR         pictures as DIR/train/CLASS/* and DIR/val/CLASS/* [drawn]
# shellcheck disable=SC2317 # items are called by their names
set -u
cd "$(dirname "$0")/.." || exit 2
items="machine build tests kernels sanitizer sanitizer-train conformance overlap gpus other-gpu processes speed-synthetic speed-real plans"
dry=0 out='' asked=''
while [ $# -gt 0 ]; do
    case $1 in
    --dry-run | --fake) dry=1 ;;
    --out) out=${2:?--out takes a folder} && shift ;;
    -h | --help) sed -n '3,10s/^# \{0,1\}//p' "$0" && echo "items: $items" && exit 0 ;;
    -*) echo "gpu_check: unknown option $1 (-h for help)" >&2 && exit 2 ;;
    *) [[ " $items " == *" $1 "* ]] || { echo "gpu_check: no item $1; there are $items" >&2 && exit 2; }
        asked="$asked $1" ;;
    esac
    shift
done
out=${out:-gpu-check-$(date +%Y%m%d-%H%M%S)}
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
: >"$out/verdicts.txt"
python=${PYTHON:-python3} built=build/release made=$PWD/build/release/gpu failed=0
[ "$dry" = 1 ] && made=$PWD/build/release/tests
export XDG_CACHE_HOME=$out/cache # plans are built anew

# --- what the items share ---
verdict() { # ITEM held|failed|not TEXT
    local word
    case $2 in
    held) word="held" ;;
    not) word="not possible here" ;;
    *) word="did not hold" failed=1 ;;
    esac
    printf '%-16s %-18s %s\n' "$1" "$word" "$3" | tee -a "$out/verdicts.txt"
}
logged() { # FILE LIMIT-S COMMAND...: its output goes to a file of the report
    local file=$out/$1 limit=$2 rc
    shift 2
    printf '$ %s\n' "$*" >>"$file"
    timeout -k 10 "$limit" "$@" >>"$file" 2>&1 </dev/null
    rc=$?
    [ "$rc" = 124 ] && echo "gpu_check: ended after $limit s" >>"$file"
    return "$rc"
}
last_line() { tail -n 1 "$out/$1"; }
value() { sed -n "s/^$2 //p" "$out/$1" | tail -n 1; } # FILE NAME: of a line "NAME VALUE"
at_least() { awk -v a="${1:-0}" -v b="$2" 'BEGIN { exit !(a >= b) }'; }
tests_named() { find "$made" -maxdepth 1 -name "test_$1" -type f -perm -u+x | sort; }
has_training() { [ -e "$made/libdptrain_cuda.so" ]; }
gpus() { "$made/dptrain" devices --json 2>/dev/null | grep -o '"device":"cuda:' | wc -l; }
median_rate() { # RUN-FOLDER: images per second, median of the second half of its steps
    sed -n 's/.*"train.total_ips":\([0-9.e+]*\).*/\1/p' "$1/log.jsonl" 2>/dev/null |
        awk '{ v[NR] = $1 } END { for (i = int(NR / 2) + 1; i <= NR; i++) print v[i] }' | sort -g |
        awk '{ v[NR] = $1 } END { if (NR) printf "%.1f", v[int((NR + 1) / 2)] }'
}
pictures() { # NAME SIDES NUMBER: a set to train on; *drawn is its folder
    drawn=$out/data/$1
    [ -d "$drawn" ] || "$made/drawset" --plain --side "$2" --train "$3" --val 12 "$drawn" >>"$out/data.log" 2>&1
}
run_tests() { # FILE PROGRAM...
    local file=$1
    shift
    BIN=$made LIB=$PWD/build/lib TEST_JOBS=$jobs TEST_TIMEOUT=600 logged "$file" 7200 tools/run_tests.sh "$@"
}
judge_tests() { # ITEM FILE RC: by the last line of run_tests.sh
    local line passed
    line=$(last_line "$2") && passed=${line%% passed*}
    if [ "$3" != 0 ]; then
        verdict "$1" failed "$line ($out/$2)"
    elif ! [ "$passed" -gt 0 ] 2>/dev/null; then
        verdict "$1" not "no test could run: $line"
    else
        verdict "$1" held "$line"
    fi
}

# --- items ---
item_machine() {
    {
        date
        uname -srm
        nproc
        nvidia-smi
        nvidia-smi -q
        nvcc --version
        "$python" -c 'import torch; print("torch", torch.__version__, torch.version.cuda)'
        git log -1 --format='%H %cd'
    } >"$out/machine.txt" 2>&1
    command -v nvidia-smi >/dev/null || {
        verdict machine not "nvidia-smi is not installed: $out/machine.txt lacks the driver and clocks"
        return
    }
    verdict machine held "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | paste -sd ';')"
}

item_build() { # and the folder where programs find the parts that they are to be checked with
    local programs=() test names='tests/test_*.c'
    ((dry)) && names='tests/test_device_list.c tests/test_gpu_kernels_scale.c tests/test_device_cuda.c tests/test_upload.c tests/test_fake_cudart.c'
    if make --no-print-directory config | grep -q 'CUDA no'; then
        verdict build "$( ((dry)) && echo not || echo failed)" "no CUDA toolkit (CUDA_HOME=DIR names one)"
        return 1
    fi
    for test in $names; do programs+=("$built/${test%.c}"); done
    logged build.log 3600 make -j"$(nproc)" all "$built/tests/dptrain" "${programs[@]}" ||
        { verdict build failed "make: $out/build.log" && return 1; }
    logged build.log 600 make "$built/tests/plan_table" || rm -f "$made/plan_table" # item plans says so
    if [ "$dry" = 1 ]; then
        logged build.log 600 make "$built/tests/bench_overlap" || { verdict build failed "make: $out/build.log" && return 1; }
        for program in dpload drawset; do ln -f "build/bin/$program" "$made/$program"; done
    else
        logged build.log 600 make "$built/gpu/bench_overlap" "$built/gpu/libgpuplants.so" || { verdict build failed "make: $out/build.log" && return 1; }
        ln -f "${programs[@]}" build/bin/* build/lib/lib*_cuda.so "$made" # libgpuplants.so is made there
        ln -f "$built/tests/plan_table" "$made" 2>/dev/null
    fi
    "$made/dptrain" devices >"$out/devices.txt" 2>&1
    "$made/dptrain" devices --json >"$out/devices.json" 2>/dev/null
    [ "$(gpus)" -gt 0 ] || { verdict build failed "no GPU: $(sed -n 's/^cuda  *//p' "$out/devices.txt")" && return 1; }
    has_training || { verdict build failed "no training on GPUs: $(grep -m 1 'built without' "$out/build.log")" && return 1; }
    verdict build held "GPUs: $(gpus); programs and parts in $made"
}

item_tests() {
    local programs
    mapfile -t programs < <(tests_named '*')
    [ "$dry" = 1 ] && mapfile -t programs < <(tests_named device_list) # CI runs all of them anyway
    run_tests tests.log "${programs[@]}"
    judge_tests tests tests.log $?
}

item_kernels() { # against the C reference: the same bits, or the tolerance that each states
    local programs
    mapfile -t programs < <(tests_named 'gpu_kernels_*')
    [ "$dry" = 1 ] && mapfile -t programs < <(tests_named 'gpu_kernels_scale')
    run_tests kernels.log "${programs[@]}"
    judge_tests kernels kernels.log $?
}

item_sanitizer() {
    local tool program programs bad=''
    command -v compute-sanitizer >/dev/null || {
        verdict sanitizer not "compute-sanitizer is not installed (package cuda-sanitizer)"
        return
    }
    mapfile -t programs < <(tests_named 'gpu_kernels_*')
    [ "$dry" = 1 ] && mapfile -t programs < <(tests_named 'gpu_kernels_scale')
    for tool in memcheck racecheck initcheck synccheck; do
        for program in "${programs[@]}"; do
            logged "sanitizer-$tool.log" 3600 compute-sanitizer --tool "$tool" --error-exitcode 9 "$program" ||
                bad="$bad $tool:$(basename "$program")"
        done
    done
    if [ -n "$bad" ]; then
        verdict sanitizer failed "$bad ($out/sanitizer-*.log)"
    else
        verdict sanitizer held "memcheck, racecheck, initcheck, synccheck over ${#programs[@]} programs"
    fi
}

item_sanitizer-train() { # the whole trainer: cuDNN's plans, NCCL where there are several GPUs, copies
    local devices=0
    command -v compute-sanitizer >/dev/null || {
        verdict sanitizer-train not "compute-sanitizer is not installed (package cuda-sanitizer)"
        return
    }
    [ "$(gpus)" -gt 1 ] && devices=0,1
    pictures small 64,64 "$((512 * scale))"
    if logged sanitizer-train.log 3600 compute-sanitizer --tool memcheck --error-exitcode 9 "$made/dptrain" --arch tinynet \
        --size 32 --batch 48 --epochs 100 --steps 5 --devices "$devices" -f -o "$out/runs/sanitizer" "$drawn"; then
        verdict sanitizer-train held "memcheck over dptrain, 5 steps of tinynet on GPU $devices"
    else
        verdict sanitizer-train failed "$out/sanitizer-train.log"
    fi
}

item_conformance() { # what the fake runtime was tested for holds on the real one
    local programs
    mapfile -t programs < <(tests_named device_cuda; tests_named upload; tests_named fake_cudart)
    run_tests conformance.log "${programs[@]}"
    judge_tests conformance conformance.log $?
}

item_overlap() {
    local hidden text
    pictures small 64,64 "$((512 * scale))"
    if ! logged overlap.log 600 "$made/bench_overlap" "$drawn" 0 "$batch" "$((20 * scale))" "$((dry ? 0 : 256))"; then
        verdict overlap failed "$(last_line overlap.log)" && return
    fi
    hidden=$(value overlap.log hidden_percent)
    text="$hidden % of copy time hidden; $(value overlap.log batch_mb) MB in $(value overlap.log copy_ms) ms, "
    text+="a step of $(value overlap.log step_ms) ms, stalls of $(value overlap.log stall_ms) ms"
    if [ "$dry" = 1 ]; then
        verdict overlap held "measured, not judged: $text"
    elif at_least "$hidden" 95; then
        verdict overlap held "$text"
    else
        verdict overlap failed "less than 95: $text"
    fi
}

losses() { sed -n 's/.*"train.loss":\([-0-9.e+]*\).*/\1/p' "$1/log.jsonl" 2>/dev/null; } # RUN-FOLDER
same_losses() { # RUN-FOLDER RUN-FOLDER: the first steps agree; bf16 and other sums differ a little
    paste <(losses "$1") <(losses "$2") | awk 'NF != 2 { bad = 1 }
        { d = $1 - $2; if (d < 0) d = -d; if (d > 0.02 * ($1 > 1 ? $1 : 1)) bad = 1 } END { exit bad || !NR }'
}
train() { # FILE FOLDER WORDS...
    local file=$1 folder=$2
    shift 2
    logged "$file" 600 "$made/dptrain" --arch "$small_arch" --size "$small_side" --batch 48 --epochs 100 --steps 5 \
        --amp off --lr 0.01 --print-freq 1 -f -o "$out/runs/$folder" "$@" "$drawn"
}

item_gpus() { # several GPUs in one process make the steps of one
    [ "$(gpus)" -gt 1 ] || { verdict gpus not "one GPU is visible" && return; }
    pictures small 64,64 "$((512 * scale))"
    if ! { train gpus.log one --devices 0 && train gpus.log even --devices 0,1 &&
        train gpus.log uneven --devices 0,1 --split 3,1; }; then
        verdict gpus failed "$(last_line gpus.log)"
    elif ! { same_losses "$out/runs/one" "$out/runs/even" && same_losses "$out/runs/one" "$out/runs/uneven"; }; then
        verdict gpus failed "losses differ: $out/runs/{one,even,uneven}/log.jsonl"
    else
        verdict gpus held "5 steps on 1 and 2 GPUs, even and 3:1: the same losses"
    fi
}

on_gpu() { # NUMBER: the processes with memory on it, as nvidia-smi counts them
    nvidia-smi -i "$1" --query-compute-apps=pid --format=csv,noheader 2>>"$out/other-gpu.log" | grep -o '[0-9]*' | sort -u
}
item_other-gpu() { # training on GPU 1 takes nothing of GPU 0
    local pid gpu seen new=()
    [ "$(gpus)" -gt 1 ] || { verdict other-gpu not "one GPU is visible" && return; }
    command -v nvidia-smi >/dev/null || { verdict other-gpu not "nvidia-smi is not installed" && return; }
    [ -z "${CUDA_VISIBLE_DEVICES:-}" ] || { verdict other-gpu not "CUDA_VISIBLE_DEVICES gives GPUs other numbers than nvidia-smi" && return; }
    pictures small 64,64 "$((512 * scale))"
    for gpu in 0 1; do on_gpu "$gpu" >"$out/other-gpu.before-$gpu"; : >"$out/other-gpu.during-$gpu"; done
    CUDA_DEVICE_ORDER=PCI_BUS_ID train other-gpu.log other --devices 1 &
    pid=$!
    while :; do
        for gpu in 0 1; do on_gpu "$gpu" >>"$out/other-gpu.during-$gpu"; done
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.2
    done
    wait "$pid" || { verdict other-gpu failed "$(last_line other-gpu.log)" && return; }
    for gpu in 0 1; do
        seen=$(sort -u "$out/other-gpu.during-$gpu" | comm -13 "$out/other-gpu.before-$gpu" - | paste -sd ' ')
        new+=("$seen")
    done
    if [ -n "${new[0]}" ]; then
        verdict other-gpu failed "processes that came to GPU 0 while GPU 1 trained: ${new[0]}"
    elif [ -z "${new[1]}" ]; then
        verdict other-gpu not "nvidia-smi shows no processes, as in some containers"
    else
        verdict other-gpu held "5 steps on GPU 1: nvidia-smi shows the process there and not on GPU 0"
    fi
}

item_processes() { # one process for each GPU, as torchrun would start them; the fake NCCL is of one process
    local rank pids=() rc=0 world=$((dry ? 1 : 2))
    [ "$(gpus)" -gt 1 ] || { verdict processes not "one GPU is visible" && return; }
    pictures small 64,64 "$((512 * scale))"
    for rank in $(seq 0 $((world - 1))); do
        RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$world LOCAL_WORLD_SIZE=$world MASTER_ADDR=127.0.0.1 MASTER_PORT=29555 \
            train "process-$rank.log" many &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do wait "$rank" || rc=1; done
    [ -d "$out/runs/one" ] || train processes.log one --devices 0
    if [ "$rc" != 0 ]; then
        verdict processes failed "$(last_line process-0.log)"
    elif ! same_losses "$out/runs/one" "$out/runs/many"; then
        verdict processes failed "losses differ: $out/runs/{one,many}/log.jsonl"
    else
        verdict processes held "5 steps, one process for each of $world GPUs: the losses of one"
    fi
}

speed() { # ITEM DATA TORCH-WORDS...: dptrain's rate beside PyTorch's
    local item=$1 data=$2 arch ours theirs text='' bad=0 compared=0 rc
    shift 2
    for arch in $archs; do
        logged "$item.log" 1800 "$made/dptrain" --arch "$arch" --size "$side" --batch "$batch" --epochs 1000 --devices 0 \
            --steps "$((20 * scale))" --print-freq 10 -f -o "$out/runs/$item-$arch" "$data" ||
            { verdict "$item" failed "$arch: $(last_line "$item.log")" && return; }
        ours=$(median_rate "$out/runs/$item-$arch")
        logged "$item-torch-$arch.log" 1800 "$python" tools/bench_torch.py --arch "${arch/tinynet/resnet18}" --size "$side" \
            --batch "$batch" --steps "$((20 * scale))" --device "$torch_device" "$@"
        rc=$?
        theirs=$(value "$item-torch-$arch.log" images_per_s)
        text+="${text:+; }$arch ${ours:-?} images/s"
        if [ "$rc" = 0 ]; then
            text+=", PyTorch $theirs" compared=1
            at_least "$ours" "$(awk -v t="$theirs" 'BEGIN { print 0.95 * t }')" || bad=1
        elif [ "$rc" = 77 ]; then
            text+=" ($(last_line "$item-torch-$arch.log"))"
        else
            text+=" (PyTorch failed: $out/$item-torch-$arch.log)"
        fi
        text+=", $(grep -o 'waiting for data [0-9.]* %' "$out/$item.log" | tail -n 1)"
    done
    if [ "$dry" = 1 ]; then
        verdict "$item" held "measured, not judged: $text"
    elif [ "$bad" = 1 ]; then
        verdict "$item" failed "slower than 95 % of PyTorch: $text"
    elif [ "$compared" = 0 ]; then
        verdict "$item" not "measured, but nothing to compare with: $text"
    else
        verdict "$item" held "$text"
    fi
}

item_speed-synthetic() { # pictures so small that the loader cannot be what limits
    pictures small 64,64 "$((512 * scale))"
    speed speed-synthetic "$drawn"
}

item_speed-real() { # pictures of everyday size through the whole loader
    local folder=${DATA:-}
    if [ -z "$folder" ]; then
        pictures large "$((dry ? 80 : 400)),$((dry ? 90 : 600))" "$((512 * scale))" && folder=$drawn
    fi
    speed speed-real "$folder" --data "$folder" --workers "$((dry ? 0 : $(nproc)))"
}

item_plans() { # what cuDNN knows of this GPU, and the plans that it makes for it
    local device=$out/device.json part=()
    [ -x "$made/plan_table" ] || { verdict plans not "plan_table was not built: no cuDNN" && return; }
    if ! "$made/plan_table" --gpu 0 >"$device" 2>"$out/plans.log"; then
        [ "$dry" = 1 ] || { verdict plans failed "$(last_line plans.log)" && return; }
        cp tests/data/cudnn/sm_90.json "$device" # the real library knows nothing of fake GPUs
        part=(--conv)
    fi
    "$made/plan_table" --version >"$out/plans.tsv" 2>&1
    "$made/plan_table" "${part[@]}" "$device" "resnet18:224:$((dry ? 64 : 256)):bf16" \
        "resnet50:224:$((dry ? 64 : 256)):bf16" >>"$out/plans.tsv" 2>>"$out/plans.log" ||
        { verdict plans failed "$(last_line plans.log)" && return; }
    verdict plans held "$(wc -l <"$out/plans.tsv") lines in $out/plans.tsv; commit $device as a fixture"
}

# --- a dry run: small sizes, and stand-ins for what only a machine with a card has ---
jobs=4 scale=10 batch=256 side=224 archs="resnet18 resnet50" small_arch=resnet18 small_side=224 torch_device=cuda:0
if [ "$dry" = 1 ]; then
    jobs=2 scale=1 batch=8 side=32 archs=tinynet small_arch=tinynet small_side=32 torch_device=cpu
    export FAKE_CUDA_DEVICES=${FAKE_CUDA_DEVICES:-2}
    mkdir -p "$out/stand-ins"
    # shellcheck disable=SC2016 # $@ is for the script that is written
    printf '#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; [ -x "$1" ] || shift; done\nexec "$@"\n' >"$out/stand-ins/compute-sanitizer"
    # shellcheck disable=SC2016 # as above; a new process on GPU 1 at every call, none on GPU 0
    printf '#!/bin/sh\ncase $* in *"-i 1 "*-apps*) echo $$ ;; *-apps*) ;; *) echo "Fake GPU, 0, 16384 MiB" ;; esac\n' >"$out/stand-ins/nvidia-smi"
    chmod +x "$out/stand-ins"/*
    PATH=$out/stand-ins:$PATH
fi

for item in ${asked:-$items}; do
    [ "$item" = build ] || [ "$item" = machine ] || [ -x "$made/dptrain" ] || { verdict "$item" not "nothing was built" && continue; }
    "item_$item" || [ "$item" != build ] || break # without the build nothing else can be checked
done
rm -rf "$out/data" "$out/cache" "$out/stand-ins"
[ -d "$out/runs" ] && find "$out/runs" -name '*.safetensors' -delete
[ "$dry" = 1 ] && echo "a dry run over fakes: it shows that this script works, and nothing of a card"
echo "report: $out ($SECONDS s)"
exit "$failed"

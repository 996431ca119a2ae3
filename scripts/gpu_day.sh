#!/usr/bin/env bash
# What a machine with an accelerator that is lent for minutes is used for, in order of worth, from a bundle of
# make_gpu_bundle.sh. A part that fails or takes too long does not keep the others from running.
#
#     gpu_day.sh BUNDLE OUT [PART...]
#
# OUT gets few and small files, since little may come back: summary.md, written again after each part; speed.md;
# timeline.json.gz; logs.tar.gz with each part's log and its runs' records.
#
# DEVICE         cuda, as in run.device; sim: the simulated accelerator, for a dry run (scripts/gpu_day_dry_run.sh)
# DAY_SECONDS    530: when it has to be over; the parts' limits are shares of it
# LOCKSTEP_PYTHON, LOCKSTEP_LIBTORCH    as in bundle/run
# shellcheck disable=SC2317 # parts are called by their names
set -euo pipefail

device=${DEVICE:-cuda}
seconds=${DAY_SECONDS:-530}
python=${LOCKSTEP_PYTHON:-python3}
skipped=77
steps=12

# Each with the most seconds that it may take of 530.
parts=(machine:40 prepare:40 check:60 nccl:60 twice:60 graphs:60 processor:40 shared:90 resume:90 memory:60 timeline:40 matrix:150
       speed:270 sanitizer:100)

# --- tools of the parts -------------------------------------------------------------------------------

ours() { "$bundle/run" "${preload[@]}" "$@"; }

saw() { printf '%s' "$*" | tr '\n|' ' /' >"$work/$GPU_DAY_PART.saw"; } # for the summary

skip() {
    saw "$*"
    exit "$skipped"
}

train() { # RUN RANKS MODEL OPTIONS...
    local run=$1 ranks=$2 model=$3 start=()
    shift 3
    [[ $ranks -eq 1 ]] || start=(mpirun -n "$ranks")
    ours "${start[@]}" lockstep train "$work/small/$model.ini" --run.directory "$work/runs/$run" --run.device "$device" \
        --run.replicas 4 --train.steps "$steps" --train.validate-every 6 "$@"
}

same() { # RUN RUN
    local told
    told=$("$bundle/run" lockstep checkpoint diff "$work/runs/$1" "$work/runs/$2") || { echo "$told"; return 1; }
    echo "$told"
    [[ $told != *"first differ"* ]]
}

# The run that others are compared with: one rank, which computes all four replicas.
alone() { # MODEL
    [[ -e $work/runs/alone-$1/checkpoints/step-000000$steps.h5 ]] || train "alone-$1" 1 "$1"
}

# --- parts --------------------------------------------------------------------------------------------

part_machine() {
    local built here file missing=0
    cat "$bundle/about.txt"
    uname -rm
    nproc
    free -g || true
    nvidia-smi || true
    "$python" - <<'TEXT'
import torch
print("torch", torch.__version__, "CUDA", torch.version.cuda, "devices", torch.cuda.device_count())
if torch.cuda.is_available():
    print("NCCL", torch.cuda.nccl.version(), "cuDNN", torch.backends.cudnn.version(), torch.cuda.get_device_properties(0))
TEXT
    for file in "$bundle"/bin/* "$bundle"/lib/*.so*; do
        if "$bundle/run" ldd "$file" 2>/dev/null | grep 'not found'; then
            echo "in $file"
            missing=1
        fi
    done
    built=$(sed -n 's/^LibTorch *//p' "$bundle/about.txt")
    here=$("$python" -c 'import torch; print(torch.__version__)')
    saw "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo "no GPU"), torch $here"
    if [[ ${built%+*} != "${here%+*}" ]]; then
        saw "the bundle was built for LibTorch $built, but this machine has $here: make another bundle with LOCKSTEP_TORCH_VERSION=${here%+*}"
        return 1
    fi
    if [[ $missing -ne 0 ]]; then
        saw "libraries are missing here: see the log"
        return 1
    fi
}

part_prepare() {
    mkdir -p "$work/small"
    PYTHONDONTWRITEBYTECODE=1 "$python" - "$work/small" "$steps" "$bundle/tests/run" <<'TEXT'
import pathlib, sys
sys.path.insert(0, sys.argv[3])
import small_models
place = pathlib.Path(sys.argv[1])
small_models.write_data(place)
for name in small_models.MODELS:
    small_models.deck_of(place, name, int(sys.argv[2]))
TEXT
}

part_check() {
    ours lockstep check "$work/small/cnn.ini" --run.device "$device:0" | tee "$work/check.txt"
    saw "$(tail -1 "$work/check.txt")"
}

# Streams, events and abort of NCCL; with more ranks it needs as many devices.
part_nccl() {
    [[ -x $bundle/bin/mpi.comm.nccl_device && $device != sim ]] || skip "the bundle's program was built without NCCL"
    ours mpirun -n 1 mpi.comm.nccl_device --expect-ranks 1 | tee "$work/nccl.txt"
    saw "$(grep -v '^[= ]*$' "$work/nccl.txt" | tail -1)"
}

part_twice() {
    local model
    for model in cnn resnet; do
        alone "$model"
        train "again-$model" 1 "$model"
        same "alone-$model" "again-$model"
    done
    saw "cnn and resnet: bit-identical"
}

# Forward and backward recorded and replayed: the bits of the same kernels started one by one.
part_graphs() {
    local model
    for model in cnn resnet transformer; do
        alone "$model"
        train "graphs-$model" 1 "$model" --run.graphs true
        same "alone-$model" "graphs-$model"
        "$python" - "$work/runs/graphs-$model" "$model" <<'TEXT' >>"$work/graphs.txt"
import json, pathlib, sys
records = [json.loads(line) for line in (pathlib.Path(sys.argv[1]) / "metrics.jsonl").read_text().splitlines()]
replays, eager = (sum(each.get(key, 0) for each in records) for key in ("graph_replays", "eager_passes"))
print(f"{sys.argv[2]}: {replays} of {replays + eager} passes")
sys.exit(replays == 0)
TEXT
    done
    saw "replayed, bit-identical: $(paste -sd ';' "$work/graphs.txt")"
}

# Not the same bits as a CPU, but the same training.
part_processor() {
    local kind
    for kind in cpu "$device"; do
        train "on-$kind" 1 cnn --run.device "$kind" --precision.tf32 false --model.dropout 0
    done
    "$python" - "$work/runs/on-cpu" "$work/runs/on-$device" >"$work/processor.txt" <<'TEXT'
import json, pathlib, sys
lines = [(pathlib.Path(run) / "metrics.jsonl").read_text().splitlines() for run in sys.argv[1:]]
one, other = ([each["loss"] for each in map(json.loads, each) if each["event"] == "step"] for each in lines)
off = max(abs(a - b) / abs(a) for a, b in zip(one, other))
print(f"losses of {len(one)} steps are at most {off:.1e} from the CPU's")
sys.exit(len(one) != len(other) or not off < 0.02)
TEXT
    saw "$(cat "$work/processor.txt")"
}

# Ranks that share the device exchange gradients through the host's memory; dp: threads of one process.
part_shared() {
    alone cnn
    train two 2 cnn
    same alone-cnn two
    train four 4 cnn
    same alone-cnn four
    train threads 1 cnn --run.mode dp
    same alone-cnn threads
    saw "2 ranks, 4 ranks, and 4 threads: bit-identical to one rank"
}

part_resume() {
    alone cnn
    train parts 4 cnn --train.steps $((steps / 2))
    train parts 2 cnn
    same alone-cnn parts
    ours lockstep verify-resume "$work/small/cnn.ini" --ranks 2 --resume-ranks 1 --kill-at $((steps / 2)) \
        --steps "$steps" --run.device "$device" --run.replicas 4 --run.directory "$work/runs/verify"
    saw "4 ranks to step 6, then 2; 2 ranks killed, then 1: bit-identical to one rank"
}

# Another process holds all but 1.5 GiB of the device.
part_memory() {
    local code=0 holder="" free=(--model.hidden '12000, 12000')
    if [[ $device == sim ]]; then
        preload+=("LOCKSTEP_SIM=devices=1,mib=250")
        free=(--model.hidden '3000, 3000')
    else
        "$python" -u -c 'import torch, time
free = torch.cuda.mem_get_info()[0]
held = torch.empty(free - 3 * 2**29, dtype=torch.uint8, device="cuda")
print("held")
time.sleep(300)' >"$work/holder.txt" &
        holder=$!
        until grep -q held "$work/holder.txt"; do
            kill -0 "$holder" || return 1
            sleep 0.2
        done
    fi
    train short 1 mlp "${free[@]}" >"$work/memory.txt" 2>&1 || code=$?
    [[ -z $holder ]] || kill "$holder"
    cat "$work/memory.txt"
    saw "exit code $code: $(grep -m 1 -oE '(out of device memory|not enough memory to train this model).*' "$work/memory.txt" || true)"
    [[ $code -eq 71 ]]
}

# Kernels in the timeline, each inside a recorded step.
part_timeline() {
    train timeline 2 cnn --profile.steps 4-6
    "$python" - "$work"/runs/timeline/profile/steps-4-6.json.gz "$device" >"$work/timeline.txt" <<'TEXT'
import gzip, json, sys
events = json.loads(gzip.open(sys.argv[1]).read())["traceEvents"]
kernels = [each for each in events if each.get("cat") == "kernel"]
steps = [each for each in events if each.get("name", "").startswith("ProfilerStep")]
begin, end = min(each["ts"] for each in steps), max(each["ts"] + each["dur"] for each in steps)
inside = sum(begin <= each["ts"] <= end for each in kernels)
print(f"{len(events)} events, {len(kernels)} kernels, {inside} of them within the {len(steps)} bars of steps")
sys.exit(sys.argv[2] == "cuda" and (not kernels or inside < 0.95 * len(kernels)))
TEXT
    cp "$work"/runs/timeline/profile/steps-4-6.json.gz "$out/timeline.json.gz"
    saw "$(cat "$work/timeline.txt")"
}

# What trains, beside the model's name: the same bits on one rank and on two. DIR: where the decks are.
matrix() {
    cat <<'TEXT'
cnn --precision.compute bf16 --precision.gradient-checkpointing true
cnn --precision.compute fp16
cnn --communication.sync-batch-norm true
cnn --run.replicas 3 --optimizer.name lamb
cnn --run.graphs true
resnet --precision.compute bf16 --run.graphs true
transformer --precision.compute bf16 --run.graphs true
transformer
vit --precision.compute bf16
mlp --communication.compression bf16 --optimizer.accumulate 2
mlp --optimizer.update replicated --optimizer.ema 0.9
mlp --optimizer.name sgd --optimizer.momentum 0.9 --optimizer.clip-norm 1
resnet --communication.compression fp16 --optimizer.name lars
resnet --precision.compute bf16
cnn1d
cnn1d --precision.compute bf16
cnn3d
unet --precision.compute bf16
unet3d
script
lmu-asr
mlp-policy
lstm-policy
clstm-policy
export
export --precision.compute bf16
mlp --privacy.noise 1 --privacy.key DIR/privacy.key
mlp --prune.pattern 2:4 --prune.begin 2
cnn --prune.pattern channels --prune.begin 2
cnn --quantise.aware true
cnn --distill.teacher DIR/net.pt
cnn --run.deterministic false --communication.reduction native
TEXT
}

matrix_row() { # NUMBER MODEL OPTIONS...
    local at=$1 said=same
    shift
    if ! { train "row-$at-1" 1 "$@" && train "row-$at-2" 2 "$@"; } >"$work/row-$at.txt" 2>&1; then
        said="ends: $(grep -m 1 -iE 'error|cannot|refused|exit' "$work/row-$at.txt" | cut -c1-160)"
    elif ! same "row-$at-1" "row-$at-2" >>"$work/row-$at.txt" 2>&1; then
        said=different
        # Nobody promises that these two are the same.
        [[ $* != *native* ]] || said="different, as it may be"
    fi
    printf '%s: %s\n' "$*" "$said" >>"$work/matrix.txt"
}

part_matrix() {
    local row at=0 words good
    : >"$work/matrix.txt"
    while read -r row; do
        read -r -a words <<<"${row//DIR/$work/small}"
        at=$((at + 1))
        # A row keeps about four cores busy.
        while [[ $(jobs -rp | wc -l) -ge $(((jobs_at_once + 3) / 4)) ]]; do
            wait -n || true
        done
        # mpirun would read the rows that are left.
        matrix_row "$at" "${words[@]}" </dev/null &
        good=$(grep -cE ': (same|different, as)' "$work/matrix.txt" || true)
        saw "$good of $(matrix | wc -l) settings before the time limit"
    done < <(matrix)
    wait
    cat "$work/matrix.txt"
    good=$(grep -cE ': (same|different, as)' "$work/matrix.txt" || true)
    saw "$(grep -c ': same' "$work/matrix.txt") of $(matrix | wc -l) settings: bit-identical on 2 ranks and on 1. $(grep \
        -v ': same' "$work/matrix.txt" | paste -sd ';')"
    [[ $good -eq $(matrix | wc -l) ]]
}

part_speed() {
    local words=()
    [[ $device != sim ]] || words=(--tiny --windows 2)
    "$python" "$bundle/bench/device_step.py" --lockstep "$bundle/run ${preload[*]} lockstep" --work "$work/speed" \
        --device "$device" --table "$out/speed.md" --seconds $((limit - 10)) "${words[@]}"
    saw "speed.md"
}

part_sanitizer() {
    command -v compute-sanitizer >/dev/null || skip "compute-sanitizer is not installed"
    ours compute-sanitizer --tool memcheck --error-exitcode 99 "$bundle/bin/lockstep" train "$work/small/cnn.ini" \
        --run.directory "$work/runs/sanitizer" --run.device "$device" --train.steps 2 | tee "$work/sanitizer.txt"
    saw "$(grep 'ERROR SUMMARY' "$work/sanitizer.txt" | tail -1)"
}

# --- the day ------------------------------------------------------------------------------------------

summary() {
    local each name
    {
        printf '# %s, %s\n\n```\n' "$device" "$(date -u '+%F %H:%M UTC')"
        cat "$bundle/about.txt"
        printf '```\n\n| part | outcome | seconds | what was seen |\n|---|---|---|---|\n'
        for each in "${parts[@]}"; do
            name=${each%:*}
            printf '| %s | %s | %s |\n' "$name" "$(cat "$work/$name.outcome" 2>/dev/null || echo 'not run | ')" \
                "$(cat "$work/$name.saw" 2>/dev/null || true)"
        done
        printf '\n'
        cat "$out/speed.md" 2>/dev/null || true
    } >"$out/summary.md.partial"
    mv "$out/summary.md.partial" "$out/summary.md"
    tar -C "$work" --exclude='*.h5' --exclude='*.pt' --exclude='core*' -czf "$out/logs.tar.gz.partial" . || true
    mv "$out/logs.tar.gz.partial" "$out/logs.tar.gz"
}

run_part() { # NAME LIMIT
    local name=$1 limit=$2 left=$((seconds - SECONDS)) begin=$SECONDS code=0 outcome
    [[ $limit -lt $left ]] || limit=$left
    if [[ $limit -lt 5 ]]; then
        echo 'no time was left | ' >"$work/$name.outcome"
        return
    fi
    echo "== $name, at most $limit s"
    # As a process of its own, with a time limit, in whose shell a failing command ends the part.
    GPU_DAY_PART=$name GPU_DAY_WORK=$work GPU_DAY_LIMIT=$limit \
        timeout -k 5 "$limit" bash "${BASH_SOURCE[0]}" "$bundle" "$out" >"$work/$name.log" 2>&1 </dev/null || code=$?
    case $code in
    0) outcome=passed ;;
    "$skipped") outcome=skipped ;;
    124 | 137) outcome="**not finished within $limit s**" ;;
    *)
        outcome="**failed**, $code"
        [[ -s $work/$name.saw ]] || tail -n 1 "$work/$name.log" | cut -c1-200 | tr '|' '/' >"$work/$name.saw"
        ;;
    esac
    [[ $outcome == passed || $outcome == skipped ]] || failed=$((failed + 1))
    echo "$outcome | $((SECONDS - begin))" >"$work/$name.outcome"
    echo "   $outcome: $(cat "$work/$name.saw" 2>/dev/null || true)"
}

main() {
    if [[ $# -lt 2 || ! -x $1/run ]]; then
        echo "usage: gpu_day.sh BUNDLE OUT [PART...], where BUNDLE/run comes from make_gpu_bundle.sh" >&2
        exit 64
    fi
    mkdir -p "$2"
    bundle=$(cd "$1" && pwd -P)
    out=$(cd "$2" && pwd -P)
    shift 2
    jobs_at_once=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
    preload=(env)
    [[ $device != sim ]] ||
        preload+=("LD_PRELOAD=$bundle/lib/liblockstep_sim.so" "LOCKSTEP_SIM=${LOCKSTEP_SIM:-devices=1,mib=1024}")
    if [[ -n ${GPU_DAY_PART:-} ]]; then
        work=$GPU_DAY_WORK
        limit=$GPU_DAY_LIMIT
        set -x
        "part_$GPU_DAY_PART"
        return
    fi

    local each wanted=" $* "
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    failed=0
    summary
    for each in "${parts[@]}"; do
        # The others train what prepare writes.
        if [[ $wanted == "  " || ${each%:*} == prepare || $wanted == *" ${each%:*} "* ]]; then
            run_part "${each%:*}" $((${each#*:} * seconds / 530))
            summary
        fi
    done
    cat "$out/summary.md"
    [[ $failed -eq 0 ]]
}

# As one function, so that an edit of this file while it runs does no harm.
{ main "$@"; exit; }

#!/usr/bin/env bash
# What a machine with an accelerator that is lent for minutes is used for, in order of worth, from a bundle of
# make_gpu_bundle.sh. A part that fails or takes too long does not keep the others from running.
#
#     gpu_day.sh BUNDLE OUT [PART...]
#
# What OUT gets, and the settings of both days: day.sh. DAY_SECONDS: 530.
# shellcheck disable=SC2034,SC2154,SC2317 # used there; parts are called by their names
set -euo pipefail

whole=530
devices=1
replicas=4
simulated=devices=1,mib=1024
# Each with the most seconds that it may take of 530.
parts=(machine:40 prepare:40 check:60 nccl:60 twice:60 graphs:60 processor:40 shared:90 resume:90 memory:60 timeline:40 matrix:150
       speed:270 sanitizer:100)

# shellcheck source=scripts/day.sh
. "$(dirname "${BASH_SOURCE[0]}")/day.sh"

part_check() {
    ours lockstep check "$work/small/cnn.ini" --run.device "$device:0" | tee "$work/check.txt"
    saw "$(tail -1 "$work/check.txt")"
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
        train "graphs-$model" 1 "$model"
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
cnn --run.graphs false
resnet --precision.compute bf16 --run.graphs false
transformer --precision.compute bf16 --run.graphs false
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
        --device "$device" --table "$out/speed.md" --cache "$bundle/inductor" --seconds $((limit - 10)) "${words[@]}"
    # For the next bundle: COMPILED=inductor make_gpu_bundle.sh
    [[ ! -d $bundle/inductor ]] || tar -C "$bundle" -czf "$out/inductor.tar.gz" inductor
    saw "speed.md"
}

part_sanitizer() {
    command -v compute-sanitizer >/dev/null || skip "compute-sanitizer is not installed"
    ours compute-sanitizer --tool memcheck --error-exitcode 99 "$bundle/bin/lockstep" train "$work/small/cnn.ini" \
        --run.directory "$work/runs/sanitizer" --run.device "$device" --train.steps 2 | tee "$work/sanitizer.txt"
    saw "$(grep 'ERROR SUMMARY' "$work/sanitizer.txt" | tail -1)"
}

# As one function, so that an edit of this file while it runs does no harm.
{ main "$@"; exit; }

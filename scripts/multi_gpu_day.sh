#!/usr/bin/env bash
# What a host of 2 to 8 GPUs that is lent for half an hour is used for, in order of worth, from a bundle of
# make_gpu_bundle.sh: the bits of the exchange on every number of GPUs, runs that are killed and resumed on fewer, and
# how steps scale beside PyTorch's DistributedDataParallel.
#
#     multi_gpu_day.sh BUNDLE OUT [PART...]
#
# What OUT gets, and the settings of both days: day.sh. DAY_SECONDS: 1800.
# DEVICES        how many GPUs are used; default: all, at most 8
# shellcheck disable=SC2034,SC2154,SC2317 # used there; parts are called by their names
set -euo pipefail

whole=1800
replicas=8
simulated=devices=4,mib=1024
devices=${DEVICES:-$(if [[ ${DEVICE:-cuda} == sim ]]; then echo 4; else
    "${LOCKSTEP_PYTHON:-python3}" -c 'import torch; print(min(8, torch.cuda.device_count()))'
fi)}
# Each with the most seconds that it may take of 1800.
parts=(machine:60 prepare:60 nccl:90 exchange:420 models:240 resume:240 timeline:60 scaling:540 workloads:240)

# shellcheck source=scripts/day.sh
. "$(dirname "${BASH_SOURCE[0]}")/day.sh"

# Several buckets under way at once.
small_buckets=(--communication.bucket-mb 0.016 --communication.first-bucket-mb 0.016)

require_several() { [[ $devices -gt 1 ]] || skip "this machine has only $devices device"; }

# On every number of ranks, along either way of the sums, the bits of one rank; over NCCL, and not by way of the host.
part_exchange() {
    local rounding ranks route run rows=0
    require_several
    for rounding in none bf16; do
        train "alone-$rounding" 1 mlp "${small_buckets[@]}" --communication.compression "$rounding" --run.graphs false
        for ((ranks = 2; ranks <= devices; ranks++)); do
            for route in direct halving; do
                run=$rounding-$ranks-$route
                LOCKSTEP_HOST_SUMS=$route train "$run" "$ranks" mlp "${small_buckets[@]}" --communication.compression \
                    "$rounding" >"$work/exchange.txt" 2>&1 || { cat "$work/exchange.txt"; return 1; }
                grep -q 'gradients over NCCL' "$work/exchange.txt" || { saw "$run: not over NCCL"; return 1; }
                same "alone-$rounding" "$run" || { saw "$run: other bits than one rank"; return 1; }
                rows=$((rows + 1))
                saw "$rows runs on 2 to $ranks ranks: the bits of one rank"
            done
        done
    done
}

# Models in 16 bits: on all devices, with graphs, the bits of one rank without.
part_models() {
    local row words at=0
    require_several
    while read -r row <&3; do # mpirun would read the rows that are left
        read -r -a words <<<"$row"
        at=$((at + 1))
        train "model-$at-1" 1 "${words[@]}" --run.graphs false
        train "model-$at-$devices" "$devices" "${words[@]}"
        same "model-$at-1" "model-$at-$devices" || { saw "$row: other bits on $devices ranks"; return 1; }
        saw "$at models: the same bits on $devices ranks and on 1"
    done 3<<'TEXT'
cnn
resnet --precision.compute bf16
transformer --precision.compute bf16
vit --precision.compute bf16 --optimizer.update replicated
unet --communication.compression bf16
TEXT
}

# Trained in parts on fewer and fewer devices; a rank is killed, and the others end; the rest is trained on one less.
part_resume() {
    local code=0
    require_several
    alone cnn
    train parts "$devices" cnn --train.steps $((steps / 2))
    train parts $((devices / 2)) cnn
    same alone-cnn parts
    LOCKSTEP_INJECT=kill:rank=1:step=$((steps / 2 + 1)) train killed "$devices" cnn --checkpoint.every-steps 3 || code=$?
    if [[ $code -eq 0 ]]; then
        saw "the run whose rank 1 was killed ended with exit code 0"
        return 1
    fi
    train killed $((devices - 1)) cnn
    same alone-cnn killed
    ours lockstep verify-resume "$work/small/cnn.ini" --ranks "$devices" --resume-ranks $((devices / 2)) \
        --kill-at $((steps / 2)) --steps "$steps" --run.device "$device" --run.replicas "$replicas" \
        --run.directory "$work/runs/verify"
    saw "$devices ranks, then $((devices / 2)); rank 1 of $devices killed (exit code $code), then $((devices - 1)): the bits of one rank"
}

# Kernels of every rank in one timeline.
part_timeline() {
    train timeline "$devices" cnn --profile.steps 4-6
    "$python" - "$work"/runs/timeline/profile/steps-4-6.json.gz <<'TEXT' >"$work/timeline.txt"
import gzip, json, sys
events = json.loads(gzip.open(sys.argv[1]).read())["traceEvents"]
kernels = [each for each in events if each.get("cat") == "kernel"]
print(f"{len(events)} events of {len({each.get('pid') for each in events})} processes, {len(kernels)} kernels")
TEXT
    cp "$work"/runs/timeline/profile/steps-4-6.json.gz "$out/timeline.json.gz"
    saw "$(cat "$work/timeline.txt")"
}

# Samples per second on 1, 2, 4, … devices beside DDP's over NCCL, with the same batch on each.
part_scaling() {
    local words=() ranks="1"
    for each in 2 4 8; do
        [[ $each -gt $devices ]] || ranks+=" $each"
    done
    [[ $device != sim ]] || words=(--tiny --windows 2)
    # shellcheck disable=SC2086 # numbers
    "$python" "$bundle/bench/device_step.py" --lockstep "$bundle/run ${preload[*]} mpirun -n {ranks} lockstep" \
        --work "$work/speed" --device "$device" --ranks $ranks --table "$out/scaling.md" --seconds $((limit - 10)) "${words[@]}"
    saw "scaling.md"
}

# The decks of docs/workloads.md on data of their shapes: the time of a step on one device and on all.
part_workloads() {
    local words=()
    [[ $device != sim ]] || words=(--samples 64 --steps 4)
    PYTHONDONTWRITEBYTECODE=1 "$python" "$bundle/bench/workload_steps.py" --lockstep \
        "$bundle/run ${preload[*]} mpirun -n {ranks} lockstep" --inputs "$bundle/inputs" --work "$work/workloads" --device \
        "$device" --ranks 1 "$devices" --table "$out/workloads.md" "${words[@]}"
    saw "workloads.md"
}

# As one function, so that an edit of this file while it runs does no harm.
{ main "$@"; exit; }

# shellcheck shell=bash
# What gpu_day.sh and multi_gpu_day.sh share: the days on borrowed machines, of parts of which none keeps the others from
# running. Sourced by them, after they have set
#
#     parts        NAME:SECONDS each, the most that it may take of `whole` seconds; a function part_NAME for each
#     whole        the seconds that the parts' limits are made for
#     devices      how many of them are used
#     replicas     of each run
#     simulated    LOCKSTEP_SIM of a dry run
#
# OUT gets few and small files, since little may come back: summary.md, written again after each part, with the tables
# that parts leave in OUT/*.md; logs.tar.gz with each part's log and its runs' records.
#
# DEVICE         cuda, as in run.device; sim: the simulated accelerator, for a dry run
# DAY_SECONDS    when it has to be over; the parts' limits are shares of it
# LOCKSTEP_PYTHON, LOCKSTEP_LIBTORCH    as in bundle/run
# shellcheck disable=SC2034,SC2154,SC2317 # of those that source it

device=${DEVICE:-cuda}
seconds=${DAY_SECONDS:-$whole}
python=${LOCKSTEP_PYTHON:-python3}
skipped=77
steps=12

# --- tools of the parts -------------------------------------------------------------------------------

ours() { "$bundle/run" "${preload[@]}" "$@"; }

saw() { printf '%s' "$*" | tr '\n|' ' /' >"$work/$DAY_PART.saw"; } # for the summary

skip() {
    saw "$*"
    exit "$skipped"
}

train() { # RUN RANKS MODEL OPTIONS...
    local run=$1 ranks=$2 model=$3 start=()
    shift 3
    [[ $ranks -eq 1 ]] || start=(mpirun -n "$ranks")
    ours "${start[@]}" lockstep train "$work/small/$model.ini" --run.directory "$work/runs/$run" --run.device "$device" \
        --run.replicas "$replicas" --train.steps "$steps" --train.validate-every 6 "$@"
}

same() { # RUN RUN
    local told
    told=$("$bundle/run" lockstep checkpoint diff "$work/runs/$1" "$work/runs/$2") || { echo "$told"; return 1; }
    echo "$told"
    [[ $told != *"first differ"* ]]
}

# The run that others are compared with: one rank, which computes all replicas, kernel by kernel.
alone() { # MODEL
    [[ -e $work/runs/alone-$1/checkpoints/step-000000$steps.h5 ]] || train "alone-$1" 1 "$1" --run.graphs false
}

# --- parts of both ------------------------------------------------------------------------------------

part_machine() {
    local built here file missing=0
    cat "$bundle/about.txt"
    uname -rm
    nproc
    free -g || true
    nvidia-smi || true
    nvidia-smi topo -m || true
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

# Streams, events and abort of NCCL; with more ranks it needs as many devices.
part_nccl() {
    [[ -x $bundle/bin/mpi.comm.nccl_device && $device != sim ]] || skip "the bundle's program was built without NCCL"
    ours mpirun -n "$devices" mpi.comm.nccl_device --expect-ranks "$devices" | tee "$work/nccl.txt"
    saw "$(grep -v '^[= ]*$' "$work/nccl.txt" | tail -1)"
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
        for each in "$out"/*.md; do
            name=${each##*/}
            [[ $name == summary.md || ! -e $each ]] || printf '\n## %s\n\n%s\n' "${name%.md}" "$(cat "$each")"
        done
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
    DAY_PART=$name DAY_WORK=$work DAY_LIMIT=$limit \
        timeout -k 5 "$limit" bash "$0" "$bundle" "$out" >"$work/$name.log" 2>&1 </dev/null || code=$?
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
        echo "usage: ${0##*/} BUNDLE OUT [PART...], where BUNDLE/run comes from make_gpu_bundle.sh" >&2
        exit 64
    fi
    mkdir -p "$2"
    bundle=$(cd "$1" && pwd -P)
    out=$(cd "$2" && pwd -P)
    shift 2
    jobs_at_once=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
    LOCKSTEP_SIM=${LOCKSTEP_SIM:-$simulated}
    preload=(env)
    [[ $device != sim ]] ||
        preload+=("LD_PRELOAD=$bundle/lib/liblockstep_sim.so" "LOCKSTEP_SIM=$LOCKSTEP_SIM")
    if [[ -n ${DAY_PART:-} ]]; then
        work=$DAY_WORK
        limit=$DAY_LIMIT
        set -x
        "part_$DAY_PART"
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
            run_part "${each%:*}" $((${each#*:} * seconds / whole))
            summary
        fi
    done
    cat "$out/summary.md"
    [[ $failed -eq 0 ]]
}

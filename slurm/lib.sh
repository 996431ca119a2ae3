# shellcheck shell=bash
# What the Slurm scripts share; see scripts/job.sh.

chain=lockstep-${CHAIN:-$SLURM_JOB_ID} # a requeued job keeps its number

# shellcheck source=scripts/job.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/job.sh" # wherever these scripts lie

# This job alone: an array's last task has the array's number, which means all tasks to scontrol.
this_job=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
this_job=${this_job:-$SLURM_JOB_ID}

# Where a node's daemon dies, Slurm starts the job again while this script may still run there: to
# requeue that would end the newer attempt.
newer_attempt() {
    local restarts
    restarts=$(scontrol -o show job "$this_job" 2>/dev/null | grep -o ' Restarts=[0-9]*') || return 1
    [ "${restarts##*=}" -gt "${SLURM_RESTART_COUNT:-0}" ]
}

# Slurm would also requeue a job that somebody has cancelled. Such a job is on its way out with time
# left; so is one that makes room for another, which Slurm itself requeues. One that has come to its
# end is not begun again.
again() {
    if newer_attempt; then
        say "Slurm has already started this job again: not requeued"
        return
    fi
    case $(squeue -h -j "$this_job" -o '%T %L' 2>/dev/null) in
    "COMPLETING 0:00" | "COMPLETING INVALID" | "COMPLETING -"*)
        scontrol requeue "$this_job"
        ;;
    COMPLETING* | CANCELLED*)
        say "cancelled: not requeued"
        ;;
    COMPLETED*)
        say "the job is done: not requeued"
        ;;
    *)
        scontrol requeue "$this_job"
        ;;
    esac
}

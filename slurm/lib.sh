# shellcheck shell=bash
# What the Slurm scripts share; see scripts/job.sh.

chain=lockstep-${CHAIN:-$SLURM_JOB_ID} # a requeued job keeps its number

# shellcheck source=scripts/job.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/job.sh" # wherever these scripts lie

# Slurm would also requeue a job that somebody has cancelled. Such a job is on its way out with time
# left; so is one that makes room for another, which Slurm itself requeues.
again() {
    case $(squeue -h -j "$SLURM_JOB_ID" -o '%T %L' 2>/dev/null) in
    "COMPLETING 0:00" | "COMPLETING INVALID" | "COMPLETING -"*)
        scontrol requeue "$SLURM_JOB_ID"
        ;;
    COMPLETING* | CANCELLED*)
        say "cancelled: not requeued"
        ;;
    *)
        scontrol requeue "$SLURM_JOB_ID"
        ;;
    esac
}

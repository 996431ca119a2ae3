# shellcheck shell=bash
# What the Slurm scripts share; see scripts/job.sh.

chain=lockstep-${CHAIN:-$SLURM_JOB_ID} # a requeued job keeps its number

# shellcheck source=scripts/job.sh
source scripts/job.sh

# A job that somebody cancelled is not brought back.
again() {
    case $(squeue -h -j "$SLURM_JOB_ID" -o '%r %T' 2>/dev/null) in
    *CANCELLED*)
        say "cancelled: not requeued"
        ;;
    *)
        scontrol requeue "$SLURM_JOB_ID"
        ;;
    esac
}

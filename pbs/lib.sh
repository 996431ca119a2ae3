# shellcheck shell=bash
# What the PBS scripts share; see scripts/job.sh.

number=${PBS_JOBID%%.*}
chain=lockstep-${CHAIN:-${number//[\[\]]/-}} # the part of an array is in brackets

# shellcheck source=scripts/job.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/job.sh" # wherever these scripts lie

# `qrerun` is for operators on most clusters, so the next part of the run is a new job of the same
# script and resources. Parts of an array are submitted one by one.
again() {
    local settings=CHAIN name
    export CHAIN=${chain#lockstep-}
    # Names alone: qsub takes the values from its environment, where a comma or a quote ends none.
    for name in PROFILE INPUT SEARCH SEARCH_DIRECTORY EXE SEED RESTARTS MIN_HOSTS SPARES RUN_SECONDS \
        LAUNCH LAUNCHER FORGIVEN; do
        if [ -n "${!name:-}" ]; then
            export "${name?}"
            settings+=,$name
        fi
    done
    qsub -v "$settings" "${script:?is set by each script}"
}

# Trains one seed of an array.
train_seed() {
    train --run.seed "$SEED" --run.directory "runs/$(basename "$INPUT" .ini)-seed$SEED"
}

# shellcheck shell=bash
# What the PBS scripts share; see scripts/job.sh.

number=${PBS_JOBID%%.*}
chain=lockstep-${CHAIN:-${number//[\[\]]/-}} # the part of an array is in brackets

# shellcheck source=scripts/job.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/job.sh" # wherever these scripts lie

# `qrerun` is for operators on most clusters, so the next part of the run is a new job of the same
# script and resources. Parts of an array are submitted one by one.
again() {
    local settings=CHAIN=${chain#lockstep-} name
    for name in PROFILE INPUT SEARCH SEARCH_DIRECTORY EXE SEED RESTARTS RUN_SECONDS LAUNCH LAUNCHER FORGIVEN; do
        if [ -n "${!name:-}" ]; then
            settings+=,$name=${!name}
        fi
    done
    qsub -v "$settings" "${script:?is set by each script}"
}

# Trains one seed of an array.
train_seed() {
    train --run.seed "$SEED" --run.directory "runs/$(basename "$INPUT" .ini)-seed$SEED"
}

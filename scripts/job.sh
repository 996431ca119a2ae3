# shellcheck shell=bash
# What the job scripts of Slurm and PBS share. A script sources its scheduler's lib.sh, which sources
# this file, and calls `train`. The lib.sh has set
#   chain          a word that all jobs of a chain share, for the files that outlive a job
# and defines
#   again          how this job is put into the queue once more

: "${chain:?is set by the lib.sh of a scheduler}"

# Settings that a profile or the submitting environment can make.
EXE=${EXE:-build/lockstep}
INPUT=${INPUT:-inputs/fashion_mnist.ini}
SEARCH=${SEARCH:-}       # the SPACE file of a search, whose directory SEARCH_DIRECTORY may name
RESTARTS=${RESTARTS:-0}  # inside the job, after the loss of a rank, before it is requeued
MIN_HOSTS=${MIN_HOSTS:-} # of the job, that must answer for such a restart; none: 1
SPARES=${SPARES:-}       # of the job's hosts, that wait until another is left out
FORGIVEN=${FORGIVEN:-3}  # losses of a rank after which the job is requeued all the same
REQUEUE=${REQUEUE:-yes}  # no: end, and let the next job of a chain continue

export LOCKSTEP_JOB_STARTED
LOCKSTEP_JOB_STARTED=$(date +%s) # the time that is used up counts from here

# A shell file for what only this site needs.
load_profile() { # [FILE]
    if [ -n "${1:-}" ]; then
        local profile=$1
        case $profile in */*) ;; *) profile=./$profile ;; esac # not one on PATH
        if [ ! -f "$profile" ] || ! bash -n "$profile"; then
            say "cannot read the profile $1: name a shell file of $PWD, or an absolute path" >&2
            stop_chain
            exit 66
        fi
        set +eu # module files are seldom written for it, nor need their last command succeed
        # shellcheck disable=SC1090
        source "$profile"
        set -eu
    fi
}

say() { echo "job $chain: $*"; }

launcher=
asked=no
interrupted=no
early=no # asked to end within a minute
code=0

ask_to_end() {
    asked=yes
    interrupted=yes
    if [ "$SECONDS" -lt 60 ]; then
        early=yes
    fi
    if [ -n "$launcher" ]; then
        kill -USR1 "$launcher" 2>/dev/null || true
    fi
}
trap ask_to_end TERM INT USR1 # modules may take their time to load

# Runs a launcher to its end; its exit code is in `code`. Open MPI ends the ranks two seconds after a
# TERM to mpirun itself. So the launcher runs in the background, and every wish to end reaches it as
# USR1, which it passes on to the ranks: they finish the step, write a checkpoint and leave with 75.
run_launcher() { # WORDS...
    if [ "$asked" = yes ]; then
        say "a signal arrived before the run began"
        code=75
        return
    fi
    "$@" &
    launcher=$!
    code=0
    wait "$launcher" || code=$?
    while [ "$interrupted" = yes ]; do # a signal ends `wait`, not the run
        interrupted=no
        code=0
        wait "$launcher" || code=$?
    done
}

put_back() {
    if [ -e "$chain.stop" ]; then
        say "the run is not continued: $chain.stop exists"
    elif [ "$REQUEUE" != yes ]; then
        say "the next job of the chain continues the run"
    elif ! again; then
        say "this job cannot be requeued: submit it again, and the run resumes where it stopped" >&2
    fi
}

# The jobs of a chain that still wait would fare no better.
stop_chain() {
    if [ "$REQUEUE" != yes ]; then
        touch "$chain.stop"
    fi
}

# A file counts the losses, over all attempts of the job.
lost() {
    rm -f "$chain.early" # which were not in a row
    echo "exit code $code" >>"$chain.losses"
    local count
    count=$(wc -l <"$chain.losses")
    if [ "$count" -gt "$FORGIVEN" ]; then
        say "a rank was lost $count times: not requeued, see the messages above" >&2
        stop_chain
        return
    fi
    say "a rank was lost (exit code $code): loss $count of at most $FORGIVEN"
    put_back
}

# Where the scheduler's signal comes as soon as the job begins, attempts would follow one another for ever.
put_back_unless_early() {
    if [ "$early" = no ]; then
        rm -f "$chain.early"
        put_back
        return
    fi
    echo "signal after $SECONDS s" >>"$chain.early"
    if [ "$(wc -l <"$chain.early")" -lt 10 ]; then
        put_back
        return
    fi
    rm -f "$chain.early"
    say "ten times in a row, a signal asked the run to end within a minute of the job's start: not" \
        "requeued. Ask for a longer time limit than the notice of --signal, or for another partition" >&2
    stop_chain
}

act_on_code() {
    case $code in
    0)
        rm -f "$chain.losses" "$chain.early"
        ;;
    75)
        if [ -n "$launcher" ]; then
            say "interrupted, the checkpoint is complete"
        fi
        put_back_unless_early
        ;;
    79)
        say "a newer attempt of this run has taken over: not requeued"
        ;;
    12[67])
        say "cannot run $EXE (exit code $code): name the program in EXE" >&2
        stop_chain
        ;;
    6[4-9] | 7[0134]) # the run's own word
        say "stopped with exit code $code, see docs/errors.md" >&2
        stop_chain
        ;;
    129 | 130 | 138 | 143) # a signal ended what did not listen yet
        if [ "$asked" = yes ]; then
            say "a signal ended the run while it started"
            code=75
            put_back_unless_early
        else
            lost
        fi
        ;;
    *) # 76; or mpirun's 1, 134, 137, 139, 143, 205: a rank or the launcher came to no end of its own
        lost
        ;;
    esac
}

# Trains INPUT, or with SEARCH many trials of it, with these words more, and acts on how it ends.
# `lockstep launch` starts the ranks, on all hosts of the job; or LAUNCH, where it is set, which is a
# launcher and its options.
train() { # WORDS...
    if [ "$REQUEUE" != yes ] && [ -e "$chain.stop" ]; then
        say "not started: $chain.stop exists and ends the chain"
        exit 0
    fi
    case $FORGIVEN in
    '' | *[!0-9]*)
        say "FORGIVEN=$FORGIVEN is not a whole number: correct it in the profile or the environment" >&2
        stop_chain
        exit 64
        ;;
    esac
    if [ -n "${RUN_SECONDS:-}" ]; then
        set -- --run.walltime-seconds "$RUN_SECONDS" "$@"
    fi
    set -- "$INPUT" "$@"
    if [ -n "${LAUNCH:-}" ] && [ "$RESTARTS" -eq 0 ]; then
        if [ -n "$SEARCH" ]; then
            set -- search "$SEARCH" ${SEARCH_DIRECTORY:+--directory "$SEARCH_DIRECTORY"} "$@"
        else
            set -- train "$@"
        fi
        # shellcheck disable=SC2086 # LAUNCH is several words
        run_launcher $LAUNCH "$EXE" "$@"
    else
        if [ -n "$SEARCH" ]; then
            set -- --search "$SEARCH" \
                ${SEARCH_DIRECTORY:+--search-directory "$SEARCH_DIRECTORY"} "$@"
        fi
        run_launcher "$EXE" launch --yes --restarts "$RESTARTS" ${MIN_HOSTS:+--min-hosts "$MIN_HOSTS"} \
            ${SPARES:+--spares "$SPARES"} ${LAUNCHER:+--launcher "$LAUNCHER"} "$@"
    fi
    act_on_code
    exit "$code"
}

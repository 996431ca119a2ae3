#!/bin/bash
# A run in N jobs, each of which begins when the one before has ended; for clusters that do not allow
# --requeue. From the root of the checkout:
#
#   slurm/chain.sh N [OPTIONS OF SBATCH...] [slurm/SCRIPT [PROFILE]]
#
# Jobs that are left when the run is done end at once; so do those after a mistake in the deck.

set -euo pipefail
if [ $# -lt 1 ] || ! [ "$1" -ge 1 ] 2>/dev/null; then
    echo "usage: slurm/chain.sh N [OPTIONS OF SBATCH...] [slurm/SCRIPT [PROFILE]]" >&2
    exit 64
fi
count=$1
shift
if [[ " $* " != *.sbatch* ]]; then
    set -- "$@" slurm/train.sbatch
fi
export REQUEUE=no CHAIN
CHAIN=chain-$(date +%Y%m%d-%H%M%S)-$$
before=
for ((i = 1; i <= count; ++i)); do
    job=$(sbatch --parsable --no-requeue ${before:+--dependency=afterany:$before} "$@")
    before=${job%%;*} # ID;CLUSTER
    echo "job $i of $count: $before"
done
echo "to end the chain for good: touch lockstep-$CHAIN.stop"

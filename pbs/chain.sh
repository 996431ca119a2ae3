#!/bin/bash
# A run in N jobs, each of which begins when the one before has ended; for clusters on which a job
# must not submit jobs. From the root of the checkout:
#
#   pbs/chain.sh N [pbs/SCRIPT [SETTINGS]]         SETTINGS as for qsub -v: PROFILE=FILE,INPUT=DECK
#
# Jobs that are left when the run is done end at once; so do those after a mistake in the deck.

set -euo pipefail
if [ $# -lt 1 ] || ! [ "$1" -ge 1 ] 2>/dev/null; then
    echo "usage: pbs/chain.sh N [pbs/SCRIPT [SETTINGS]]" >&2
    exit 64
fi
chain=chain-$(date +%Y%m%d-%H%M%S)-$$
settings=REQUEUE=no,CHAIN=$chain${3:+,$3}
before=
for ((i = 1; i <= $1; ++i)); do
    before=$(qsub ${before:+-W depend=afterany:$before} -v "$settings" "${2:-pbs/train.pbs}")
    echo "job $i of $1: $before"
done
echo "to end the chain for good: touch lockstep-$chain.stop"

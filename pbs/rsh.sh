#!/bin/bash
# rsh.sh HOST COMMAND...: starts mpirun's daemons by PBS, for an Open MPI that was built without it.
# pbs_tmrsh runs words as they are, while mpirun hands over a line for a shell.
set -euo pipefail
host=$1
shift
trap '' USR1 USR2 # qsig signals every process of the job, and this one is not to die of it
exec pbs_tmrsh "$host" /bin/sh -c "$*"

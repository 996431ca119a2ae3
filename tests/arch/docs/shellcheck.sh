#!/bin/bash
# Looks over all shell scripts but bootstrap; exit 77 where shellcheck is not installed.
set -euo pipefail
cd "$1"
if ! command -v shellcheck >/dev/null; then
    echo "skipped: shellcheck is not installed"
    exit 77
fi
mapfile -t scripts < <(find slurm pbs scripts tests \( -name '*.sh' -o -name '*.sbatch' -o -name '*.pbs' \) |
    sort)
shellcheck -x "${scripts[@]}"

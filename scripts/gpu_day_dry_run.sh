#!/usr/bin/env bash
# Runs gpu_day.sh or multi_gpu_day.sh dry, on simulated accelerators, in an empty root without a network: only the
# bundle of a build for CPUs, some programs of a minimal userland, and Python with torch. What the bundle lacks is
# missing there, too.
#
#     ./bootstrap build && cmake --build build --target lockstep_sim
#     scripts/make_gpu_bundle.sh build && scripts/gpu_day_dry_run.sh build/gpu_bundle.tar.xz OUT [PART...]
#     DAY=multi_gpu_day scripts/gpu_day_dry_run.sh build/gpu_bundle.tar.xz OUT [PART...]
#
# Needs root. LOCKSTEP_PYTHON: the Python with the torch of that build, h5py and numpy; default: .venv/bin/python.
set -euo pipefail

programs=(bash env sh cat ls mkdir rm mv cp chmod head tail tr cut tee wc sort paste grep sed date nproc uname dirname
          readlink sleep timeout mktemp tar gzip ldd free id)

if [[ $# -lt 2 || $(id -u) -ne 0 ]]; then
    echo "usage, as root: gpu_day_dry_run.sh BUNDLE.tar.xz OUT [PART...]" >&2
    exit 64
fi
here=$(cd "$(dirname "$0")/.." && pwd -P)
python=${LOCKSTEP_PYTHON:-$here/.venv/bin/python}
mkdir -p "$2"
out=$(cd "$2" && pwd -P)
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
mkdir -p "$root"/usr/{bin,lib,lib64,local/lib/site} "$root"/{dev,proc,sys,etc,tmp,out}
ln -s usr/bin usr/lib usr/lib64 "$root"
echo 'root:x:0:0::/tmp:/bin/sh' >"$root/etc/passwd"
tar -xf "$1" -C "$root"
shift 2

# --- userland, and Python with torch ----------------------------------------------------------------

for each in "${programs[@]}"; do
    cp -L "$(command -v "$each")" "$root/usr/bin/$each"
done
read -r binary standard site < <("$python" -c 'import sys, sysconfig, torch, pathlib
print(sys._base_executable, sysconfig.get_path("stdlib"), pathlib.Path(torch.__file__).parents[1])')
mkdir -p "$root/$standard" "$root/$(dirname "$binary")"
cp -L "$binary" "$root/$binary"
[[ -e $root/usr/bin/python3 ]] || ln -s "$binary" "$root/usr/bin/python3"
mapfile -t files < <(find "$root/usr/bin" "$root/$binary" "$standard" "$site"/{torch,numpy,h5py}* \
    -type f \( -path "$root/*" -o -name '*.so*' \))
# The system's libraries that these load, where they were; they bring their own others.
while read -r library; do
    if [[ $library != "$site"/* ]]; then
        mkdir -p "$root/$(dirname "$library")"
        cp -L "$library" "$root/$library"
    fi
done < <(ldd "${files[@]}" 2>/dev/null | awk '$3 ~ /^\// { print $3 } $1 ~ /^\/.*ld-linux/ { print $1 }' | sort -u)

# --- the day ----------------------------------------------------------------------------------------

# Mounts and processes end with the namespace.
# shellcheck disable=SC2016 # expanded inside
unshare --mount --pid --net --fork bash -euc '
root=$1 standard=$2 site=$3 out=$4
shift 4
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --bind "$standard" "$root/$standard"
mount --bind "$site" "$root/usr/local/lib/site"
mount --bind "$out" "$root/out"
ip link set lo up
cd "$root"
exec chroot "$root" /usr/bin/env -i PATH=/usr/bin HOME=/tmp TMPDIR=/tmp PYTHONPATH=/usr/local/lib/site PYTHONDONTWRITEBYTECODE=1 \
    DEVICE=sim DAY_SECONDS="${DAY_SECONDS:-5400}" LOCKSTEP_SIM="${LOCKSTEP_SIM:-}" DEVICES="${DEVICES:-}" \
    /usr/bin/bash "/bundle/scripts/${DAY:-gpu_day}.sh" /bundle /out "$@"
' bash "$root" "$standard" "$site" "$out" "$@"

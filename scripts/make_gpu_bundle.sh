#!/usr/bin/env bash
# Packs a build for a machine with an accelerator that has neither MPI nor parallel HDF5, and cannot be
# reached by a package manager: the program, its tests on devices, and every library that they load but
# those of LibTorch and of NVIDIA, which that machine's Python brings. See docs/devices.md.
#
#     scripts/make_gpu_bundle.sh [BUILD [FILE.tar.xz]]     # build-cuda, BUILD/gpu_bundle.tar.xz
#
# COMPILED    the directory inductor of an earlier day (OUT/inductor.tar.gz): what torch.compile made on such a GPU
set -euo pipefail

max_mib=60 # what such machines take at once

stop() {
    printf 'make_gpu_bundle.sh: %s\n' "$*" >&2
    exit 1
}

cd "$(dirname "$0")/.."
build=${1:-build-cuda}
file=${2:-$build/gpu_bundle.tar.xz}
[[ -x $build/lockstep ]] ||
    stop "$build/lockstep does not exist, so there is nothing to pack: run ./bootstrap cuda-check, or name a build"
for tool in ompi_info readelf xz; do
    command -v $tool >/dev/null || stop "$tool is missing: install Open MPI's, binutils' and xz's programs"
done
mpirun=$(sed -n 's/^MPIEXEC_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt")
plugins=$(ompi_info --parsable --path pkglibdir | sed 's/^path:pkglibdir://')
helpers=$(ompi_info --parsable --path pkgdatadir | sed 's/^path:pkgdatadir://')
[[ -d $plugins ]] || stop "Open MPI's plug-ins are not in $plugins: only builds with Open MPI can be packed"

# What every machine with a C++ program has, and must have in one version.
of_the_system='^(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|stdc\+\+|gcc_s))\.so'
of_the_driver='^lib(cuda|nccl|cudart|nvidia-ml)\.so'
of_torch='^lib(torch|torch_cpu|torch_cuda|torch_python|c10|c10_cuda|shm|gomp)\.so'

bundle=$(mktemp -d)/bundle
trap 'rm -rf "${bundle%/*}"' EXIT
mkdir -p "$bundle"/{bin,lib/pmix,share}

# --- the program and its tests --------------------------------------------------------------------

cp "$build"/lockstep "$bundle/bin"
cp "$build"/liblockstep_{core,media,trainer}.so "$bundle/lib"
for each in mpi.comm mpi.comm.nccl_device; do
    [[ ! -x $build/tests/$each ]] || cp "$build/tests/$each" "$bundle/bin"
done
[[ ! -e $build/tests/liblockstep_sim.so ]] || cp "$build/tests/liblockstep_sim.so" "$bundle/lib"
for each in scripts/{day,gpu_day,multi_gpu_day}.sh bench/{device_step,step_deck,workload_steps}.py inputs/{fashion_mnist,video,boxes}.ini \
    tests/run/{small_models,speech,harness}.py python/lockstep_export.py; do
    mkdir -p "$bundle/${each%/*}"
    cp "$each" "$bundle/$each"
done
cp scripts/bundle_run.sh "$bundle/run"
[[ -z ${COMPILED:-} ]] || cp -r "$COMPILED" "$bundle/inductor"

# --- Open MPI ---------------------------------------------------------------------------------------

cp -L "$mpirun" "$bundle/bin/mpirun"
cp -L "$(dirname "$(readlink -f "$mpirun")")/orted" "$bundle/bin"
cp -r "$plugins" "$bundle/lib/openmpi"
# For networks and job systems; some want libraries of tens of megabytes.
rm -f "$bundle"/lib/openmpi/mca_{btl_ofi,btl_openib,btl_usnic,mtl_*,*_ucx,*_cuda,*_slurm,*_flux,*_jsm,*_gridengine}.so \
    "$bundle"/lib/openmpi/mca_{atomic,memheap,scoll,spml,sshmem}_*.so
cp -r "$helpers" "$bundle/share/openmpi"

find_elf() { find "$bundle" -type f \( -name '*.so*' -o -path '*/bin/*' \); }

libraries_of() { # FILES...
    ldd "$@" 2>/dev/null | awk '$3 ~ /^\// { print $3 }' | sort -u
}

# PMIx, which Open MPI speaks with its ranks, has plug-ins of its own.
mapfile -t files < <(find_elf)
pmix=$(libraries_of "${files[@]}" | grep '/libpmix\.so' | head -1 || true)
if [[ -n $pmix ]]; then
    pmix=$(dirname "$(readlink -f "$pmix")")
    cp "$pmix"/pmix/*.so "$bundle/lib/pmix"
    rm -f "$bundle"/lib/pmix/*_slurm.so
    [[ ! -d $pmix/../share/pmix ]] || cp -r "$pmix/../share/pmix" "$bundle/share"
fi

# --- libraries --------------------------------------------------------------------------------------

mapfile -t files < <(find_elf)
while read -r library; do
    name=${library##*/}
    if [[ ! -e $bundle/lib/$name && ! $name =~ $of_the_system && ! $name =~ $of_the_driver &&
        ! $library =~ /torch/lib/ && ! $library =~ /nvidia/ ]]; then
        cp -L "$library" "$bundle/lib/$name"
    fi
done < <(libraries_of "${files[@]}")
mapfile -t files < <(find_elf)
strip --strip-unneeded "${files[@]}"

# The loader takes an empty or relative entry of a run path for the working directory.
for each in "${files[@]}"; do
    path=$(readelf -d "$each" | sed -n 's/.*(R\(UN\)\{0,1\}PATH).*\[\(.*\)\]/\2/p')
    [[ -z $path || ! :$path: =~ :([^/\$:][^:]*)?: ]] ||
        stop "${each#"$bundle"/} looks for libraries in the working directory (run path $path): build it again"
done

# Each library that a file asks for is in the bundle, or comes with torch, the driver or the system.
missing=()
needs_driver=no
for each in "${files[@]}"; do
    while read -r name; do
        if [[ $name =~ $of_the_driver ]]; then
            needs_driver=yes
        elif [[ ! -e $bundle/lib/$name && ! $name =~ $of_the_system && ! $name =~ $of_torch ]]; then
            missing+=("${each#"$bundle"/}: $name")
        fi
    done < <(readelf -d "$each" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
done
[[ ${#missing[@]} -eq 0 ]] ||
    stop "these files of the bundle need libraries that are missing here:" \
        "$(printf '%s; ' "${missing[@]}" | sed 's/; $//'). Install the libraries, or leave those files out of the bundle"

# --- what it is, and the archive ----------------------------------------------------------------------

torch=$(sed -n 's/^LOCKSTEP_LIBTORCH:[A-Z]*=//p' "$build/CMakeCache.txt")
{
    printf 'commit   %s\n' "$(git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)"
    printf 'program  %s\n' "$("$build/lockstep" --version | head -1)"
    printf 'LibTorch %s\n' "$(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$torch/version.py" 2>/dev/null || echo unknown)"
    printf 'CUDA     %s\n' "$needs_driver"
    printf 'glibc    %s or newer\n' "$(readelf -V "${files[@]}" 2>/dev/null | grep -oE 'GLIBC_2\.[0-9]+' |
        sort -uV | tail -1 | cut -d_ -f2)"
} >"$bundle/about.txt"
cat "$bundle/about.txt"
mkdir -p "$(dirname "$file")"
tar -C "${bundle%/*}" --sort=name --owner=0 --group=0 -c bundle | xz -T0 "-${BUNDLE_XZ:-6}" >"$file.partial"
size=$(stat -c %s "$file.partial")
mv "$file.partial" "$file"
printf '%s: %d.%d MiB, %d files\n' "$file" $((size >> 20)) $(((size * 10 >> 20) % 10)) \
    "$(find "$bundle" -type f | wc -l)"
[[ $size -lt $((max_mib << 20)) ]] ||
    stop "$file is larger than $max_mib MiB: build with -DLOCKSTEP_WITH_MEDIA=OFF, as ./bootstrap cuda-check does"

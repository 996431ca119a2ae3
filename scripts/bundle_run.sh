#!/usr/bin/env bash
# As `run` in a bundle of make_gpu_bundle.sh: runs a command with the bundle's MPI and libraries, and with the
# LibTorch and NVIDIA's libraries that this machine's Python has.
#
#     bundle/run lockstep train DECK
#     bundle/run mpirun -n 2 lockstep train DECK
#
# LOCKSTEP_LIBTORCH names another LibTorch (the directory with lib/), LOCKSTEP_PYTHON another Python.
#
# Only this command sees these libraries: other programs here, such as Python, have to load their own.
set -euo pipefail

bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
torch=${LOCKSTEP_LIBTORCH:-$("${LOCKSTEP_PYTHON:-python3}" -c 'import sys
sys.path = [each for each in sys.path if each] # not the working directory
import importlib.util as u
s = u.find_spec("torch"); print(s.submodule_search_locations[0] if s else "")' || true)}
if [[ ! -e $torch/lib/libtorch.so ]]; then
    echo "run: no LibTorch in '$torch': the bundle does not contain it. Set LOCKSTEP_PYTHON to a Python that has" \
        "torch, or LOCKSTEP_LIBTORCH to LibTorch's directory" >&2
    exit 69
fi

torch=$(cd "$torch" && pwd -P) # a relative place would be looked for wherever the command goes
libraries=$bundle/lib:$torch/lib
for place in "$torch"/../nvidia/*/lib; do
    libraries+=:$place
done
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} PATH=$bundle/bin${PATH:+:$PATH}
# Open MPI looks where it was installed, unless it is told.
export OPAL_PREFIX=$bundle OPAL_LIBDIR=$bundle/lib OPAL_PKGDATADIR=$bundle/share/openmpi
export OMPI_MCA_mca_base_component_path=$bundle/lib/openmpi
export PMIX_INSTALL_PREFIX=$bundle PMIX_PKGDATADIR=$bundle/share/pmix PMIX_MCA_mca_base_component_path=$bundle/lib/pmix
# One host, whose devices and cores the ranks share, as root or not.
export OMPI_MCA_plm=isolated OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec "$@"

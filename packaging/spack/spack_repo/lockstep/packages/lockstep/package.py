"""Recipe for Spack 1.0 and later; it builds the checkout in which it lies."""
import pathlib

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Lockstep(CMakePackage, CudaPackage):
    """MPI-native distributed training with LibTorch and HDF5, exact on any number of ranks."""

    git = f"file://{pathlib.Path(__file__).resolve().parents[6]}"

    license("Apache-2.0")

    version("main", branch="main")

    variant("media", default=True, description="Import images, sound and video")
    variant("tensorboard", default=True, description="Write event files for TensorBoard")
    variant("plots", default=True, description="Draw pictures of runs with gnuplot")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("mpi")
    depends_on("hdf5+mpi")
    depends_on("boost+program_options")
    depends_on("nlohmann-json")
    depends_on("fmt")
    depends_on("spdlog")
    depends_on("xxhash")
    depends_on("zlib-api")

    # LibTorch is the C++ half of PyTorch.
    depends_on("py-torch@2.11:~cuda", when="~cuda")
    for _arch in CudaPackage.cuda_arch_values:
        depends_on(f"py-torch@2.11:+cuda cuda_arch={_arch}", when=f"+cuda cuda_arch={_arch}")
    depends_on("nccl", when="+cuda")

    depends_on("libpng", when="+media")
    depends_on("libjpeg-turbo", when="+media")
    depends_on("libsndfile", when="+media")
    depends_on("ffmpeg", when="+media")
    depends_on("protobuf", when="+tensorboard")
    depends_on("gnuplot", when="+plots", type="run")

    conflicts("%gcc@:10", msg="Lockstep is C++20")
    conflicts("cuda_arch=none", when="+cuda", msg="Name the GPUs: cuda_arch=90")

    generator("ninja")

    def cmake_args(self):
        torch = join_path(
            self.spec["py-torch"].prefix, self.spec["python"].package.platlib, "torch"
        )
        return [
            self.define("LOCKSTEP_LIBTORCH", torch),
            self.define_from_variant("LOCKSTEP_WITH_NCCL", "cuda"),
            self.define("LOCKSTEP_BUILD_TESTS", self.run_tests),
        ]

    def setup_run_environment(self, env):
        env.prepend_path("MANPATH", self.prefix.share.man)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_installed(self):
        Executable(self.prefix.bin.lockstep)("--version")

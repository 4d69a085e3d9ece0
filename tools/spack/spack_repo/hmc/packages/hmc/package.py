# Apache-2.0, as the program.

from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Hmc(CargoPackage):
    """Hybrid Monte Carlo for lattice QCD: gauge ensembles with Wilson, clover, domain-wall and
    staggered quarks, with the same bits on any ranks, threads, SIMD lanes and device.

    To be built from a clone:

        spack repo add CLONE/tools/spack/spack_repo/hmc
        spack dev-build --source-path CLONE hmc@0.2.0
    """

    homepage = "file:README.md"

    license("Apache-2.0")

    version("0.2.0")

    variant("mpi", default=True, description="Ranks by MPI")
    variant("cuda", default=True, description="NVIDIA GPUs; the driver is loaded when the program runs")
    variant("nccl", default=False, description="Messages between GPUs of several nodes by NCCL")
    # HDF5 is no variant: without it there is a library, but no program.

    conflicts("+nccl", when="~cuda", msg="NCCL carries messages between GPUs")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("rust@1.90:", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("hdf5@1.10:")
    with when("+mpi"):
        depends_on("mpi")
        # bindgen reads mpi.h with libclang.
        depends_on("llvm+clang", type="build")

    # Of CUDA, NVRTC alone is used, and it must not be newer than the driver's major version.
    depends_on("cuda@12:", when="+cuda", type="run")
    depends_on("nccl@2.7:", when="+nccl", type="run")

    @property
    def build_args(self):
        features = ["hdf5"] + [name for name in ("mpi", "cuda") if self.spec.satisfies(f"+{name}")]
        return ["--locked", "--bin", "hmc", "--no-default-features", "--features", ",".join(features)]

    @property
    def check_args(self):
        return ["--release", "--locked", "--lib", *self.build_args[3:]]

    def setup_build_environment(self, env):
        env.set("HDF5_DIR", self.spec["hdf5"].prefix)
        # The node that builds is seldom one that runs.
        env.set("HMC_KERNEL_TARGETS", "all")
        if self.spec.satisfies("+mpi"):
            env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    def setup_run_environment(self, env):
        if self.spec.satisfies("+cuda"):
            env.set("HMC_NVRTC", self.spec["cuda"].prefix.lib64)
        if self.spec.satisfies("+nccl"):
            env.prepend_path("LD_LIBRARY_PATH", self.spec["nccl"].prefix.lib)

"""Spack recipe for Chorale (Spack 1.0 or newer). The recipe builds a checkout, because it has no download address.

   spack repo create chorale-repo && mkdir -p chorale-repo/packages/chorale       once; Spack prints the folder
   cp packaging/spack/package.py chorale-repo/packages/chorale/ && spack repo add chorale-repo
   spack dev-build chorale@0.3.0 +ucx                                             in the folder of the checkout
"""
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Chorale(MakefilePackage, CudaPackage):
    """Parallel training under MPI, its collectives, and what they cost: measured, predicted and proved."""

    license("MIT")

    version("0.3.0")

    variant("cuda", default=False, description="Build the GPU code as a plugin")
    variant("nccl", default=False, description="Build the backend nccl, for several GPUs")
    variant("ucx", default=True, description="Build the backends ucx and shm+ucx")
    variant("arch", default="native", values=str, description="Type of processor, as in -march")
    conflicts("+nccl", when="~cuda", msg="the backend nccl is a part of the GPU code: +nccl needs +cuda")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("hdf5+hl")
    depends_on("onednn@2.6:")
    depends_on("liburing")
    depends_on("cli11")
    depends_on("spdlog+shared fmt_external=true")
    depends_on("fmt")
    depends_on("tomlplusplus")
    depends_on("nlohmann-json")
    depends_on("ucx", when="+ucx")
    depends_on("cuda@12:", when="+cuda")
    depends_on("nccl", when="+nccl")

    @property
    def settings(self):
        """Returns settings for make (`make help` lists them). An empty value excludes a library, even if it is found."""
        spec = self.spec
        found = [
            "SETUP=",
            "MPICXX=" + spec["mpi"].mpicxx,
            "ARCH=" + spec.variants["arch"].value,
            "CUDA=" + (str(spec["cuda"].prefix) if "+cuda" in spec else ""),
            "NCCL=" + (str(spec["nccl"].prefix) if "+nccl" in spec else ""),
        ]
        if "~ucx" in spec:
            found.append("UCX=")  # with +ucx, pkg-config finds UCX
        if "+cuda" in spec and spec.variants["cuda_arch"].value[0] != "none":
            found.append("CUDA_ARCH=sm_" + spec.variants["cuda_arch"].value[0])
        return found

    def build(self, spec, prefix):
        make("all", *self.settings)

    def install(self, spec, prefix):
        make("install", "PREFIX=" + prefix, *self.settings)

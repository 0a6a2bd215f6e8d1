# ruff: noqa: F403, F405 (as Spack's recipes are)
# In a Spack repository: packages/commprof/package.py. Beside the archive of `make dist`: spack
# install --no-checksum commprof (or with its sha256 below; a mirror will do, too). A clone is built
# by: spack dev-build commprof@0.2.0
import os

try:
    from spack_repo.builtin.build_systems.makefile import MakefilePackage  # since Spack 1.0
except ImportError:
    pass  # Spack 0.23 has it among the rest

from spack.package import *


class Commprof(MakefilePackage):
    """Profiler for the communication of MPI jobs, preloaded into every rank. One build serves all
    MPI libraries: it needs none to build."""

    url = f"file://{os.getcwd()}/commprof-0.2.0.tar.gz"
    manual_download = True

    license("BSD-3-Clause")
    version("0.2.0")

    variant("plot", default=True, description="Pictures and the page of hvprof-report")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("python@3.9:", type=("build", "run"))
    depends_on("py-numpy@1.19:", type="run")
    depends_on("py-matplotlib@3.6:", type="run", when="+plot")

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}")

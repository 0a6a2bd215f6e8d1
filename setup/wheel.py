"""Contents of a wheel besides the Python package: the libraries, commprof-run and the header, which
the Makefile builds and installs.

They stand under the prefix as after `make install`, bin/commprof-run and lib/libcommprof.so, so
they find each other. The variables of the Makefile are taken from the environment; with CC and
STRIP of a cross compiler the wheel is for that compiler's machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Programs(BuildHookInterface):
    def initialize(self, version: str, build_data: dict) -> None:
        build = Path(self.root, "build", "wheel")
        shutil.rmtree(build, ignore_errors=True)  # it may be another machine's
        prefix = build / "prefix"
        with contextlib.suppress(OSError), open("/dev/tty", "w") as terminal:
            print("commprof: compiling, a minute or two (pip install -v shows it)", file=terminal)
        subprocess.run(  # pip hides its output without -v
            [
                "make",
                f"--jobs={os.cpu_count()}",
                f"BUILD={build}",
                f"PREFIX={prefix}",
                "DESTDIR=",
                "install-programs",
            ],
            cwd=self.root,
            stdout=sys.stderr,
            check=True,
        )
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{self._platform()}"
        build_data["shared_scripts"] = {
            str(prefix / "bin" / name): name for name in ("commprof-run", "commprof-replay")
        }
        build_data["shared_data"] = {str(prefix / folder): folder for folder in ("lib", "include")}

    def _platform(self) -> str:
        found = subprocess.run(
            ["make", "--silent", "show-platform"],
            cwd=self.root,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return found.stdout.strip() or sysconfig.get_platform().replace("-", "_").replace(".", "_")

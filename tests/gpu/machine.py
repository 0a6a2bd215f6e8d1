"""Facts on this machine: a GPU, and the versions of what is used with it."""

from __future__ import annotations

import datetime
import glob
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Optional

GPU = Path(__file__).resolve().parent
REPOSITORY = GPU.parent.parent
PROGRAMS = GPU / "programs"
DOUBLES = REPOSITORY / "build/doubles"
LIBRARY = REPOSITORY / "build/lib/libcommprof.so"


def asked(
    command: list[str], limit_s: float = 60, env: Optional[dict[str, str]] = None
) -> tuple[int, str]:
    """Exit status and output of a short command; 127 where it cannot be run, 124 where it takes too
    long."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=limit_s,
            env=env,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except OSError as error:
        return 127, str(error)
    except subprocess.TimeoutExpired:
        return 124, f"no answer in {limit_s:.0f} s"
    return done.returncode, (done.stdout or done.stderr).strip()


def why_no_gpu(env: dict[str, str]) -> str:
    """'': there is one that works. Asked in a process of its own: a broken driver may do
    anything."""
    status, said = asked([sys.executable, str(PROGRAMS / "device.py")], env=env)
    return (
        ""
        if status == 0
        else (
            said.splitlines()
            or [f"the driver ended the process that asked it with status {status}"]
        )[-1]
    )


def is_carried() -> bool:
    """Whether the library was built elsewhere: its objects are not here."""
    return LIBRARY.exists() and not (LIBRARY.parent.parent / "objects").exists()


def compiler() -> str:
    return os.environ.get("CC") or next(
        filter(None, map(shutil.which, ("cc", "gcc", "clang"))), "cc"
    )


def libraries_of_python(pattern: str) -> list[str]:
    """Files of NVIDIA's Python packages, beside PyTorch."""
    folders = {*sys.path, sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]}
    return sorted(
        path
        for folder in folders
        if folder
        for path in glob.glob(f"{folder}/nvidia/*/lib/{pattern}")
    )


def driver_cuda() -> str:
    """ "13.0"; "-": not known."""
    _, told = asked([sys.executable, str(PROGRAMS / "device.py")])
    return told.partition("cuda")[2].strip('": }') or "-"


def cupti_path(cuda: str) -> str:
    """For programs that have nothing of CUDA's but the driver, which serves this CUDA and older
    ones: what COMMPROF_CUPTI names, or one that is found; '': none was. PyTorch's is found by the
    library itself."""
    toolkits = [
        path
        for folder in ("extras/CUPTI/lib64", "lib64")
        for path in glob.glob(f"/usr/local/cuda*/{folder}/libcupti.so.1[1-9]*")
    ]
    found = [*libraries_of_python("libcupti.so.1[1-9]"), *sorted(toolkits, reverse=True)]
    served = [path for path in found if path.rpartition(".so.")[2][:2] <= cuda[:2] or cuda == "-"]
    return os.environ.get("COMMPROF_CUPTI") or next(iter(served), "")


def cupti_of_wheel(wheels: Optional[Path], out: Path) -> str:
    """The libcupti of a folder's newest wheel of nvidia-cuda-cupti, unpacked; '': it has none."""
    found = sorted(wheels.glob("nvidia_cuda_cupti-*.whl")) if wheels else []
    if not found:
        return ""
    with zipfile.ZipFile(found[-1]) as wheel:
        (name,) = [name for name in wheel.namelist() if "/lib/libcupti.so." in name]
        return wheel.extract(name, out / "cupti")


def nccl_path() -> str:
    return next(
        iter([*libraries_of_python("libnccl.so.2"), *glob.glob("/usr/lib/*/libnccl.so.2")]), ""
    )


VERSION = """
import ctypes, sys
version = ctypes.c_int()
error = ctypes.CDLL(sys.argv[1])[sys.argv[2]](ctypes.byref(version))
print(f"error {error}" if error else version.value)
"""
TORCH_VERSION = (
    "import torch; print(torch.__version__, f'for CUDA {torch.version.cuda}' if "
    "torch.version.cuda else 'without CUDA')"
)


def version_of(script: str, *words: str) -> str:
    """Output of a line of Python, in a process of its own."""
    if "" in words:
        return "not found"
    status, said = asked([sys.executable, "-c", script, *words], limit_s=120)
    return said if status == 0 and said else "not known"


def describe(is_double: bool) -> dict[str, str]:
    """The table's head."""
    names = ["name", "driver_version", "memory.total"]
    status, said = asked(["nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader"])
    gpu = (
        "double (tests/doubles; nothing here is of a GPU)"
        if is_double
        else said.replace("\n", "; ")
        if status == 0
        else "no nvidia-smi"
    )
    cuda = "-" if is_double else driver_cuda()
    cupti, nccl = cupti_path(cuda), nccl_path()
    return {
        "date": datetime.date.today().isoformat(),
        "GPU": gpu,
        "driver's CUDA": cuda,
        "CUPTI": version_of(VERSION, cupti, "cuptiGetVersion"),
        "NCCL": version_of(VERSION, nccl, "ncclGetVersion"),
        "PyTorch": version_of(TORCH_VERSION),
        "Python": sys.version.split()[0],
        "Linux": os.uname().release,
    }


def has_torch_with_cuda() -> str:
    """'': it has; else why not."""
    status, said = asked(
        [
            sys.executable,
            "-c",
            "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 'PyTorch sees no "
            "GPU')",
        ],
        120,
    )
    return (
        ""
        if status == 0
        else "no PyTorch"
        if "ModuleNotFoundError" in said
        else said.splitlines()[-1]
        if said
        else f"exit status {status}"
    )


def tool(name: str) -> str:
    """One of NVIDIA's tools; '' where it is not."""
    places = [
        f"/usr/local/cuda*/bin/{name}",
        f"/opt/nvidia/*/*/{name}",
        f"/opt/nvidia/*/*/bin/{name}",
    ]
    found = [path for place in places for path in glob.glob(place)]
    return shutil.which(name) or next(iter(sorted(found, reverse=True)), "")

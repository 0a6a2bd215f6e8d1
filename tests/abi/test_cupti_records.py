"""src/cupti/records.h, and our double of libcupti, against NVIDIA's own headers: all that
setup/cupti.sh has fetched or CUDA has brought."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DOUBLES = REPOSITORY / "build/doubles"
PLACES = [
    *REPOSITORY.glob("build/cupti/*/nvidia/*/include"),
    *REPOSITORY.glob("build/cupti/*/nvidia/cuda_cupti/extras/CUPTI/include"),
    *Path("/usr/local").glob("cuda*/include"),
    *Path("/usr/local").glob("cuda*/extras/CUPTI/include"),
    *Path(sysconfig.get_paths()["purelib"]).glob("nvidia/*/include"),
    Path(os.environ.get("CUDA_HOME", "/nowhere")) / "include",
]
NEWEST = {"KERNEL": "Kernel", "MEMCPY": "Memcpy", "PEER": "MemcpyPtoP", "MEMSET": "Memset"}


class Headers(NamedTuple):
    """One release's: where they are, CUPTI's API version, and the newest form of each record, which
    is the one that libcupti writes."""

    place: Path
    version: int
    forms: tuple[str, ...]  # -DKERNEL=CUpti_ActivityKernel10 ...

    def __str__(self) -> str:
        return f"{self.version}-{self.forms[0].removeprefix('-DKERNEL=CUpti_Activity')}"


def read(place: Path) -> Headers:
    version = re.search(r"#define CUPTI_API_VERSION (\d+)", (place / "cupti_version.h").read_text())
    text = (place / "cupti_activity.h").read_text(errors="replace")
    numbers = {
        name: re.findall(rf"^\}} *CUpti_Activity{theirs}(\d*);", text, re.M)
        for name, theirs in NEWEST.items()
    }
    forms = (
        f"-D{name}=CUpti_Activity{NEWEST[name]}{max(int(n or 1) for n in numbers[name])}"
        for name in NEWEST
    )
    assert version
    return Headers(place, int(version[1]), tuple(forms))


def all_headers() -> list[Headers]:
    found = (read(place) for place in PLACES if (place / "cupti_activity.h").exists())
    return sorted(
        {str(headers): headers for headers in found}.values(),
        key=lambda headers: (headers.version, headers.forms),
    )


@pytest.fixture(params=all_headers() or [None], ids=str)
def headers(request: pytest.FixtureRequest) -> Headers:
    if request.param is None:
        pytest.skip("CUPTI's headers are not here (setup/cupti.sh fetches them)")
    return request.param


def compiled(headers: Headers, folder: Path) -> Path:
    subprocess.run(
        ["make", "-s", "-C", str(REPOSITORY / "tests/doubles"), f"BUILD={DOUBLES}"], check=True
    )
    cuda = [f"-isystem{place}" for place in PLACES if (place / "cuda.h").exists()]
    if not cuda:
        pytest.skip("no cuda.h here")
    program = folder / "cupti_records"
    includes = [
        f"-isystem{headers.place}",
        *cuda,
        f"-I{REPOSITORY / 'src'}",
        f"-I{REPOSITORY / 'tests/doubles'}",
    ]
    libraries = [str(DOUBLES / "libcuda.so.1"), str(DOUBLES / "libcupti.so.13")]
    source = str(REPOSITORY / "tests/abi/cupti_records.c")
    flags = ["-std=gnu11", *headers.forms, *includes]
    command = ["cc", *flags, source, *libraries, "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def test_our_view_of_the_records_is_nvidia_s(headers: Headers, tmp_path: Path):
    compiled(headers, tmp_path)  # compares all places and sizes


def test_the_double_s_records_are_nvidia_s(headers: Headers, tmp_path: Path):
    if str(headers) == "18-Kernel8":
        pytest.skip(
            "of the releases with API version 18 (CUDA 11.8 to 12.1) the double is 12.0 and 12.1"
        )
    program = compiled(headers, tmp_path)
    settings = {
        "LD_LIBRARY_PATH": str(DOUBLES),
        "DOUBLE_CUPTI_VERSION": str(headers.version),
        "DOUBLE_DEVICES": "2",
    }
    done = subprocess.run([str(program)], capture_output=True, text=True, env=settings)
    assert (done.returncode, done.stdout) == (0, "1 1 1 1\n"), done.stderr

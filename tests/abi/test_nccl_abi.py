"""NCCL's functions as the wrappers declare them against NCCL's own headers, and the real library through the wrappers. Both where a wheel
of NCCL is installed, or the folder of one is named by COMMPROF_TEST_NCCL (with several versions, separated by colons)."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
WRAPPERS = REPOSITORY / "src/nccl/nccl_wrappers.c"
COMMPROF_RUN = REPOSITORY / "build/bin/commprof-run"


def installed() -> list[Path]:
    named = [Path(folder) for folder in os.environ.get("COMMPROF_TEST_NCCL", "").split(":") if folder]
    wheels = [Path(sysconfig.get_paths()[where]) / "nvidia/nccl" for where in ("purelib", "platlib")]
    return sorted({folder for folder in [*named, *wheels] if (folder / "include/nccl.h").exists()})


@pytest.fixture(params=installed() or [None], ids=str)
def nccl(request: pytest.FixtureRequest) -> Path:
    if not request.param:
        pytest.skip("no NCCL is installed")
    return request.param


def passed_as(parameter: str) -> str:
    """How a parameter travels: as a pointer, in 64 bits, in 32, or as a unique id by value."""
    kind = re.sub(r"\b(const|struct)\b|\w+$", "", parameter.strip()).strip() if " " in parameter.strip() else parameter
    if "*" in parameter or kind in ("ncclComm_t", "cudaStream_t"):
        return "pointer"
    if kind in ("nccl_unique_id", "ncclUniqueId"):
        return "id"
    return {"size_t": "64 bits", "int": "32 bits", "ncclDataType_t": "32 bits", "ncclRedOp_t": "32 bits"}[kind]


def prototypes(text: str, result: str) -> dict[str, list[str]]:
    found = re.findall(rf"\b{result}\s+(nccl\w+)\s*\(([^)]*)\)\s*;", text)
    return {name: [passed_as(part) for part in parameters.split(",") if part.strip() not in ("", "void")] for name, parameters in found}


def ours() -> dict[str, list[str]]:
    command = ["cc", "-E", "-P", "-D_GNU_SOURCE", f"-I{REPOSITORY / 'src'}", str(WRAPPERS)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    exported = re.sub(r"__attribute__\(\(visibility\(\"default\"\)\)\)", "", text)
    return prototypes(exported, "nccl_result")


def theirs(nccl: Path, names: set[str]) -> dict[str, list[str]]:
    lines = re.findall(r"^ncclResult_t\s+nccl\w+\([^;]*;", (nccl / "include/nccl.h").read_text(), re.MULTILINE)
    wanted = [line for line in lines if re.match(r"ncclResult_t\s+(\w+)", line)[1] in names]
    return prototypes("\n".join(wanted), "ncclResult_t")


def test_functions_are_declared_as_nccl_declares_them(nccl: Path) -> None:
    functions = {name: parameters for name, parameters in ours().items() if name.startswith("nccl") and not name.startswith("nccl_")}
    declared = theirs(nccl, set(functions))
    assert {"ncclAllReduce", "ncclCommInitRank", "ncclCommSplit", "ncclGroupEnd"} <= set(declared)
    assert declared == {name: functions[name] for name in declared}


def test_types_have_the_sizes_that_nccl_gives_them(nccl: Path) -> None:
    text = (nccl / "include/nccl.h").read_text()
    types = {int(number): name for name, number in re.findall(r"\bnccl((?:Int|Uint|Float|Bfloat)\w+)\s*=\s*(\d+)", text)}
    table = re.search(r"BYTES\[NCCL_DATATYPES\] = \{([\d, ]+)\}", (REPOSITORY / "src/nccl/nccl_abi.h").read_text())[1]
    for number, size in enumerate(int(part) for part in table.split(",")):
        if number in types:
            bits = int(re.match(r"\D+(\d+)", types[number])[1])
            assert size * 8 == bits, types[number]
    assert "NCCL_UNIQUE_ID_BYTES 128" in text


PROGRAM = r"""
#include <stdio.h>
#include <string.h>
typedef struct { char internal[128]; } ncclUniqueId;
int ncclGetVersion(int *), ncclGetUniqueId(ncclUniqueId *), ncclGroupStart(void), ncclGroupEnd(void);
int ncclCommInitRank(void **, int, ncclUniqueId, int), ncclCommDestroy(void *), ncclAllReduce(const void *, void *, size_t, int, int, void *, void *);
const char *ncclGetErrorString(int);
int main(void)
{
    int version = 0;
    ncclUniqueId id;
    void *comm = NULL;
    memset(&id, 0, sizeof id);
    printf("%d ", ncclGetVersion(&version));
    printf("%d %d ", version, ncclGetUniqueId(&id));
    printf("%d %d %d ", id.internal[0] != 0, ncclGroupStart(), ncclGroupEnd());
    printf("%d %d %d ", ncclCommInitRank(&comm, 1, id, 0), ncclCommInitRank(&comm, 1, id, 7), comm == NULL);
    printf("%d %d ", ncclAllReduce(NULL, NULL, 1, 0, 0, NULL, NULL), ncclCommDestroy(NULL));
    printf("%s\n", ncclGetErrorString(4));
    return 0;
}
"""


def test_the_real_library_answers_through_the_wrappers_as_without_them(nccl: Path, tmp_path: Path) -> None:
    library = nccl / "lib/libnccl.so.2"
    (tmp_path / "program.c").write_text(PROGRAM)
    build = ["cc", "program.c", str(library), f"-Wl,-rpath,{library.parent}", "-Wl,--allow-shlib-undefined", "-o", "program"]
    subprocess.run(build, check=True, cwd=tmp_path)
    environment = {**os.environ, "NCCL_SOCKET_IFNAME": "lo", "COMMPROF_OUTPUT": str(tmp_path / "run")}
    run = lambda *prefix: subprocess.run([*prefix, "./program"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)  # noqa: E731
    plain, profiled = run(), run(str(COMMPROF_RUN))
    assert plain.stdout.startswith("0 2")
    assert (profiled.returncode, profiled.stdout) == (plain.returncode, plain.stdout), profiled.stderr

"""The library's tables against each mpi.h of this machine: prototypes, exported names, constants,
statuses.

The compilers asked are those of the environment variable MPICC (words), else of the libraries in
TEST_MPIS (see tests/mpi/libraries.py), else mpicc.openmpi and mpicc.mpich, else mpicc."""

from __future__ import annotations

import csv
import fnmatch
import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
LIBRARY = REPOSITORY / "build/lib/libcommprof.so"
WRAPPERS = ["wrappers.c", "by_hand.c", "objects.c", "setup.c", "pcontrol.c"]
OTHER_NAMES = {
    "dlsym",  # answers look-ups of MPI's functions with the wrappers
    *("_exit", "_Exit", "execve", "execv", "execvp", "execvpe", "fexecve"),  # noted as the end
    *("execl", "execlp", "execle"),
    "InitializeInjectionNvtx2",  # NVTX's
    "InitializeInjection",  # the CUDA driver's
    # other clients of CUPTI pass through these
    *("cuptiSubscribe", "cuptiSubscribe_v2", "cuptiFinalize", "cuptiActivityRegisterCallbacks"),
    *("cuptiActivityRegisterTimestampCallback", "cuptiActivityEnable", "cuptiActivityDisable"),
    # graphs are counted as they are launched
    *("cudaGraphLaunch", "cudaGraphLaunch_ptsz", "cuGraphLaunch", "cuGraphLaunch_ptsz"),
    # NCCL looks for its profiler plugin
    *("ncclProfiler_v4", "ncclProfiler_v5", "ncclProfiler_v6"),
    # include/commprof.h
    *("commprof_step", "commprof_region_begin", "commprof_region_end", "commprof_is_recording"),
}
NCCL_TABLE = REPOSITORY / "src/nccl/nccl_calls.def"
NCCL_WITH_CONFIGURATION = (
    "AllReduce Broadcast Reduce AllGather ReduceScatter AlltoAll Gather Scatter".split()
)
# Tools look for these in the global scope to find out about an MPI library (facts: a program would
# believe we are one).
NEVER_EXPORTED = {*"Get_version Get_library_version Initialized Finalized Abi_get_version".split()}


def compiler_of(library: str) -> str:
    return (
        f"mpicc.{library}"
        if library in ("openmpi", "mpich")
        else str(REPOSITORY / "build/mpis" / library / "mpicc")
    )


def compilers() -> list[str]:
    asked = os.environ.get("MPICC", "").split() or [
        compiler_of(name) for name in os.environ.get("TEST_MPIS", "").split()
    ]
    usual = [name for name in ("mpicc.openmpi", "mpicc.mpich") if shutil.which(name)]
    return asked or usual or [name for name in ("mpicc",) if shutil.which(name)]


@pytest.fixture(params=compilers() or [None], ids=lambda compiler: compiler or "none")
def mpicc(request: pytest.FixtureRequest) -> str:
    if not request.param:
        pytest.skip("no MPI compiler on this machine: nothing to compare the tables with")
    return request.param


# The table


class Entry(NamedTuple):
    name: str  # without MPI_
    is_large: bool


@lru_cache
def table() -> list[Entry]:
    text = (REPOSITORY / "src/wrappers/calls.def").read_text()
    return [
        Entry(name, forms == "LARGE")
        for name, forms in re.findall(r"^CALL\((\w+), .*, (PLAIN|LARGE), \w+, \w+\)$", text, re.M)
    ]


def expected_names() -> set[str]:
    names = [entry.name for entry in table()] + [
        f"{entry.name}_c" for entry in table() if entry.is_large
    ]
    return {prefix + name for name in names for prefix in ("MPI_", "PMPI_")}


def test_the_table_is_read_whole() -> None:
    lines = (REPOSITORY / "src/wrappers/calls.def").read_text().count("\nCALL(")
    assert len(table()) == lines > 100


# Prototypes


class Parameter(NamedTuple):
    base: str  # 'MPI_Comm', 'int', 'void'
    depth: int  # how many pointers or arrays
    name: str


def preprocessed(compiler: str, source: str, *flags: str) -> str:
    command = [compiler, "-E", "-P", *flags, source]
    return subprocess.run(
        command, cwd=REPOSITORY, check=True, capture_output=True, text=True
    ).stdout


def parameter(text: str) -> Parameter:
    depth = text.count("*") + text.count("[")
    words = re.sub(r"\[.*?\]|[*]", " ", text).split()
    words = [word for word in words if word not in ("const", "restrict", "__restrict", "struct")]
    known = {"void", "int", "char", "mpi_handle", "mpi_count", "mpi_aint", "mpi_offset"}
    named = len(words) > 1 and words[-1] not in known
    return Parameter(" ".join(words[:-1] if named else words), depth, words[-1] if named else "")


def parameters(text: str) -> list[Parameter]:
    return [parameter(one) for one in text.split(",") if one.strip() not in ("", "void", "...")]


def prototypes(text: str) -> dict[str, list[Parameter]]:
    """Every function MPI_* or PMPI_* that is declared or defined in preprocessed C."""
    found = re.findall(r"\bint\s+(P?MPI_\w+)\s*\(([^()]*)\)", text)
    return {name: parameters(arguments) for name, arguments in found}


@lru_cache
def ours() -> dict[str, list[Parameter]]:
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Isrc"]
    text = "".join(preprocessed("cc", f"src/wrappers/{source}", *flags) for source in WRAPPERS)
    return prototypes(text)


@lru_cache
def theirs(compiler: str) -> dict[str, list[Parameter]]:
    return prototypes(preprocessed(compiler, str(REPOSITORY / "tests/abi/include_mpi.c")))


# Meaning of an argument of ours, by its name: the wrappers take all handles alike and statuses and
# requests as void *.
MEANING = {
    **dict.fromkeys(("type", "sendtype", "recvtype", "sendtypes", "recvtypes"), "MPI_Datatype"),
    **dict.fromkeys(("comm", "peer_comm", "intercomm", "newcomm"), "MPI_Comm"),
    **dict.fromkeys(("group", "local_group", "remote_group"), "MPI_Group"),
    **dict.fromkeys(("info", "infos"), "MPI_Info"),
    **dict.fromkeys(("request", "requests"), "MPI_Request"),
    **dict.fromkeys(("status", "statuses"), "MPI_Status"),
    **dict.fromkeys(
        "buf buffer sendbuf recvbuf origin result compare base extra_state".split(), "void"
    ),
    **dict.fromkeys(
        ("origin_type", "target_type", "result_type", "etype", "filetype"), "MPI_Datatype"
    ),
    **dict.fromkeys(("win", "newwin"), "MPI_Win"),
    **dict.fromkeys(("file", "newfile"), "MPI_File"),
    "query_fn": "MPI_Grequest_query_function",
    "free_fn": "MPI_Grequest_free_function",
    "cancel_fn": "MPI_Grequest_cancel_function",
    "op": "MPI_Op",
    "errhandler": "MPI_Errhandler",
    "message": "MPI_Message",
    "session": "MPI_Session",
}
PLAIN_TYPES = {"mpi_count": "MPI_Count", "mpi_aint": "MPI_Aint", "mpi_offset": "MPI_Offset"}


def wanted(one: Parameter) -> tuple[str, int]:
    """The type that mpi.h must give a parameter of ours."""
    if one.base in ("mpi_handle", "void"):
        return MEANING[one.name], one.depth
    if one.name == "disp_unit" and one.base == "mpi_count":
        return "MPI_Aint", 0  # the large form of an int that is no count
    return PLAIN_TYPES.get(one.base, one.base), one.depth


def test_every_exported_function_has_a_prototype_of_ours() -> None:
    assert set(ours()) == expected_names()


def test_each_function_is_declared_as_this_mpi_declares_it(mpicc: str) -> None:
    declared = theirs(mpicc)
    drifted = {
        name: (shape, declared[name])
        for name, shape in ours().items()
        if name in declared
        and [wanted(one) for one in shape] != [(one.base, one.depth) for one in declared[name]]
    }
    assert drifted == {}


ORDERED = {
    *"dest source tag sendtag recvtag root count sendcount recvcount color key ndims".split()
}


def test_arguments_of_one_type_stand_in_this_mpis_order(mpicc: str) -> None:
    swapped = {
        name: [one.name for one in shape]
        for name, shape in ours().items()
        for place, one in enumerate(shape)
        if one.name in ORDERED
        and one.name in {other.name for other in theirs(mpicc).get(name, [])}
        and theirs(mpicc)[name][place].name != one.name
    }
    assert swapped == {}


# Functions that came after MPI-3.1: in MPI-4.0, in MPI-4.1.
MPI_4_0 = (
    r"Session_\w+|Isendrecv(_replace)?|Comm_idup_with_info|\w+_from_groups?|P(send|recv)_init"
    r"|Pready\w*|Parrived|(?!.*send|Recv)\w+_init"
)
MPI_4_1 = (
    r"Buffer_i?flush|(Comm|Session)_(attach|detach|flush|iflush)_buffer|Request_get_status_\w+"
)


def test_only_functions_of_later_standards_are_missing_here(mpicc: str) -> None:
    missing = {
        name.removeprefix("P").removeprefix("MPI_") for name in ours() if name not in theirs(mpicc)
    }
    assert {
        name
        for name in missing
        if not name.endswith("_c") and not re.fullmatch(f"{MPI_4_0}|{MPI_4_1}", name)
    } == set()


# The list of functions


NOT_OURS = "not intercepted"  # such a row's name may be a pattern


class Described(NamedTuple):
    name: str
    family: str
    is_large: str
    bytes: str


@lru_cache
def described() -> list[Described]:
    with (REPOSITORY / "docs/functions.csv").open() as lines:
        return [Described(*row) for row in csv.reader(lines)][1:]


def intercepted() -> list[Described]:
    return [row for row in described() if row.family != NOT_OURS]


def test_the_list_has_each_function_once_with_its_family_and_forms() -> None:
    families = dict(
        re.findall(
            r"^CALL\((\w+), (\w+),", (REPOSITORY / "src/wrappers/calls.def").read_text(), re.M
        )
    )
    assert sorted((row.name, row.family, row.is_large == "yes") for row in intercepted()) == sorted(
        (f"MPI_{entry.name}", families[entry.name].replace("_", "-"), entry.is_large)
        for entry in table()
    )


def test_functions_that_are_counted_alike_are_described_alike() -> None:
    shapes = dict(
        re.findall(
            r"^CALL\((\w+), \w+, \w+, (\w+),",
            (REPOSITORY / "src/wrappers/calls.def").read_text(),
            re.M,
        )
    )
    said: dict[str, set[str]] = {}
    for row in intercepted():
        said.setdefault(shapes[row.name.removeprefix("MPI_")], set()).add(row.bytes)
    assert {shape: texts for shape, texts in said.items() if len(texts) > 1} == {}


def test_every_function_of_this_mpi_is_intercepted_or_left_out_for_a_reason(mpicc: str) -> None:
    declared = {name.removesuffix("_c") for name in theirs(mpicc) if name.startswith("MPI_")}
    ours = {f"MPI_{entry.name}" for entry in table()}
    patterns = [row.name for row in described() if row.family == NOT_OURS]
    left = {name for pattern in patterns for name in fnmatch.filter(declared, pattern)}
    assert declared - ours - left == set()
    assert ours & left == set()


def test_every_large_count_form_of_this_mpi_is_intercepted_with_its_function(mpicc: str) -> None:
    large = {
        name.removesuffix("_c")
        for name in theirs(mpicc)
        if name.startswith("MPI_") and name.endswith("_c")
    }
    assert {f"MPI_{entry.name}" for entry in table() if not entry.is_large} & large == set()


# Exports


def exported() -> set[str]:
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", str(LIBRARY)], check=True, capture_output=True, text=True
    ).stdout
    return {line.split()[-1].partition("@")[0] for line in lines.splitlines()}


def nccl_names() -> set[str]:
    names = set(re.findall(r"^NCCL_CALL\((\w+),", NCCL_TABLE.read_text(), re.MULTILINE)) - {"Group"}
    noticed = {"GroupSimulateEnd", "CommWindowRegister"}
    return {
        f"nccl{name}"
        for name in names | {f"{name}Config" for name in NCCL_WITH_CONFIGURATION} | noticed
    }


def fortran_names() -> set[str]:
    """Functions that Open MPI's Fortran binding may answer itself, under compilers' names."""
    source = (REPOSITORY / "src/wrappers/fortran.c").read_text()
    names = [name.lower() for name in re.findall(r"^EVERY_NAME\((\w+),", source, re.M)]
    return {f"ompi_{name}_f" for name in names} | {
        prefix + spelled
        for name in names
        for prefix, spelled in (
            *(("mpi_", name + end) for end in ("", "_", "__")),
            ("MPI_", name.upper()),
            *(("pmpi_", name + end) for end in ("", "_", "__")),
            ("PMPI_", name.upper()),
        )
    }


def test_the_library_exports_the_table_under_both_names_and_nothing_else() -> None:
    assert exported() == expected_names() | fortran_names() | nccl_names() | OTHER_NAMES


def test_the_library_is_not_taken_for_an_mpi() -> None:
    assert (
        exported() & {prefix + name for name in NEVER_EXPORTED for prefix in ("MPI_", "PMPI_")}
        == set()
    )


def test_the_library_needs_libc_alone() -> None:
    dynamic = subprocess.run(
        ["readelf", "-d", str(LIBRARY)], check=True, capture_output=True, text=True
    ).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*?)\]", dynamic))
    loaders = {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
    assert needed <= {"libc.so.6", "libdl.so.2", "libpthread.so.0"} | loaders


# Constants and statuses: a program that knows both sides, in two files, for each side's names are
# macros of the other


def test_constants_and_statuses_are_this_mpis(mpicc: str, tmp_path: Path) -> None:
    sources = ["tests/abi/theirs.c", "tests/abi/ours.c", "src/mpi/mpi_abi.c", "src/mpi/datatypes.c"]
    flags = ["-std=c11", "-D_GNU_SOURCE", "-Isrc", "-Wall", "-Wno-unused-function", "-g"]
    program = tmp_path / "constants"
    subprocess.run(
        [mpicc, *flags, *sources, "-o", str(program), "-ldl"], cwd=REPOSITORY, check=True
    )
    alone = {
        "OMPI_MCA_ess_singleton_isolated": "1",
        "OMPI_MCA_btl": "self",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    }
    run = subprocess.run(
        [str(program)],
        env=os.environ | alone,
        capture_output=True,
        text=True,
        timeout=600,
        cwd=tmp_path,
    )
    assert run.stdout.splitlines()[-1:] == ["compared"], (run.returncode, run.stdout, run.stderr)
    assert run.stdout.splitlines()[:-1] == []
    assert run.returncode == 0

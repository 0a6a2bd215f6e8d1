"""NCCL's functions as the wrappers declare them against NCCL's own headers, and the real library
through the wrappers. Both where a wheel of NCCL is installed, or the folder of one is named by
COMMPROF_TEST_NCCL (with several versions, separated by colons).

The interface of its profiler plugins against NVIDIA's headers, which are in NCCL's sources alone:
where COMMPROF_TEST_NCCL_PROFILER names a folder with nccl_profiler.h, profiler_v4.h, profiler_v5.h
and profiler_v6.h of them."""

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
    named = [
        Path(folder) for folder in os.environ.get("COMMPROF_TEST_NCCL", "").split(":") if folder
    ]
    wheels = [
        Path(sysconfig.get_paths()[where]) / "nvidia/nccl" for where in ("purelib", "platlib")
    ]
    return sorted({folder for folder in [*named, *wheels] if (folder / "include/nccl.h").exists()})


@pytest.fixture(params=installed() or [None], ids=str)
def nccl(request: pytest.FixtureRequest) -> Path:
    if not request.param:
        pytest.skip("no NCCL is installed")
    return request.param


def passed_as(parameter: str) -> str:
    """How a parameter travels: as a pointer, in 64 bits, in 32, or as a unique id by value."""
    kind = (
        re.sub(r"\b(const|struct)\b|\w+$", "", parameter.strip()).strip()
        if " " in parameter.strip()
        else parameter
    )
    if "*" in parameter or kind in ("ncclComm_t", "cudaStream_t", "ncclWindow_t"):
        return "pointer"
    if kind in ("nccl_unique_id", "ncclUniqueId"):
        return "id"
    in_32_bits = ("int", "unsigned", "unsigned int", "ncclDataType_t", "ncclRedOp_t")
    return {"size_t": "64 bits", **dict.fromkeys(in_32_bits, "32 bits")}[kind]


def prototypes(text: str, result: str) -> dict[str, list[str]]:
    found = re.findall(rf"\b{result}\s+(nccl\w+)\s*\(([^)]*)\)\s*;", text)
    return {
        name: [
            passed_as(part) for part in parameters.split(",") if part.strip() not in ("", "void")
        ]
        for name, parameters in found
    }


def ours() -> dict[str, list[str]]:
    command = ["cc", "-E", "-P", "-D_GNU_SOURCE", f"-I{REPOSITORY / 'src'}", str(WRAPPERS)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    exported = re.sub(r"__attribute__\(\(visibility\(\"default\"\)\)\)", "", text)
    return prototypes(exported, "nccl_result")


def theirs(nccl: Path, names: set[str]) -> dict[str, list[str]]:
    lines = re.findall(
        r"^ncclResult_t\s+nccl\w+\([^;]*;", (nccl / "include/nccl.h").read_text(), re.MULTILINE
    )
    wanted = [line for line in lines if re.match(r"ncclResult_t\s+(\w+)", line)[1] in names]
    return prototypes("\n".join(wanted), "ncclResult_t")


def test_functions_are_declared_as_nccl_declares_them(nccl: Path) -> None:
    functions = {
        name: parameters
        for name, parameters in ours().items()
        if name.startswith("nccl") and not name.startswith("nccl_")
    }
    declared = theirs(nccl, set(functions))
    assert {"ncclAllReduce", "ncclCommInitRank", "ncclCommSplit", "ncclGroupEnd"} <= set(declared)
    assert declared == {name: functions[name] for name in declared}


def test_what_moves_data_or_makes_communicators_is_wrapped(nccl: Path) -> None:
    """An operation takes a stream; a constructor gives communicators."""
    lines = re.findall(
        r"^ncclResult_t\s+(nccl\w+)\(([^;]*);", (nccl / "include/nccl.h").read_text(), re.MULTILINE
    )
    wanted = {
        name for name, parameters in lines if re.search(r"cudaStream_t|ncclComm_t\s*\*", parameters)
    }
    assert {"ncclAllReduce", "ncclCommInitAll", "ncclCommSplit"} <= wanted
    assert wanted - set(ours()) == set()


def test_a_configuration_has_its_name_where_nccl_has_it(nccl: Path, tmp_path: Path) -> None:
    if "commName" not in (nccl / "include/nccl.h").read_text():
        pytest.skip("this NCCL has no names of communicators")
    checks = "".join(
        f"_Static_assert(offsetof(struct nccl_config, {ours}) == offsetof(ncclConfig_t, {theirs}), "
        "#ours);\n".replace("#ours", f'"{ours}"')
        for ours, theirs in (("magic", "magic"), ("version", "version"), ("name", "commName"))
    )
    (tmp_path / "cuda_runtime.h").write_text("typedef void *cudaStream_t, *cudaEvent_t;\n")
    (tmp_path / "cuda_fp16.h").touch()
    (tmp_path / "cuda_bf16.h").touch()
    (tmp_path / "check.c").write_text(f'#include "nccl/nccl_abi.h"\n#include <nccl.h>\n{checks}')
    folders = [f"-I{folder}" for folder in (tmp_path, REPOSITORY / "src", nccl / "include")]
    subprocess.run(
        ["cc", "-std=c11", "-fsyntax-only", *folders, str(tmp_path / "check.c")], check=True
    )


def test_types_have_the_sizes_that_nccl_gives_them(nccl: Path) -> None:
    text = (nccl / "include/nccl.h").read_text()
    types = {
        int(number): name
        for name, number in re.findall(r"\bnccl((?:Int|Uint|Float|Bfloat)\w+)\s*=\s*(\d+)", text)
    }
    table = re.search(
        r"BYTES\[NCCL_DATATYPES\] = \{([\d, ]+)\}", (REPOSITORY / "src/nccl/nccl_abi.h").read_text()
    )[1]
    for number, size in enumerate(int(part) for part in table.split(",")):
        if number in types:
            bits = int(re.match(r"\D+(\d+)", types[number])[1])
            assert size * 8 == bits, types[number]
    assert "NCCL_UNIQUE_ID_BYTES 128" in text


PROGRAM = r"""
#include <stdio.h>
#include <string.h>
typedef struct { char internal[128]; } ncclUniqueId;
int ncclGetVersion(int *), ncclGetUniqueId(ncclUniqueId *);
int ncclGroupStart(void), ncclGroupEnd(void);
int ncclCommInitRank(void **, int, ncclUniqueId, int), ncclCommDestroy(void *);
int ncclAllReduce(const void *, void *, size_t, int, int, void *, void *);
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
    printf("%d %d %d ", ncclCommInitRank(&comm, 1, id, 0), ncclCommInitRank(&comm, 1, id, 7),
           comm == NULL);
    printf("%d %d ", ncclAllReduce(NULL, NULL, 1, 0, 0, NULL, NULL), ncclCommDestroy(NULL));
    printf("%s\n", ncclGetErrorString(4));
    return 0;
}
"""


def test_the_real_library_answers_through_the_wrappers_as_without_them(
    nccl: Path, tmp_path: Path
) -> None:
    library = nccl / "lib/libnccl.so.2"
    (tmp_path / "program.c").write_text(PROGRAM)
    linked = [str(library), f"-Wl,-rpath,{library.parent}", "-Wl,--allow-shlib-undefined"]
    build = ["cc", "program.c", *linked, "-o", "program"]
    subprocess.run(build, check=True, cwd=tmp_path)
    environment = {
        **os.environ,
        "NCCL_SOCKET_IFNAME": "lo",
        "COMMPROF_OUTPUT": str(tmp_path / "run"),
    }
    settings = {
        "cwd": tmp_path,
        "env": environment,
        "capture_output": True,
        "text": True,
        "timeout": 600,
    }
    run = lambda *prefix: subprocess.run([*prefix, "./program"], **settings)  # noqa: E731
    plain, profiled = run(), run(str(COMMPROF_RUN))
    assert plain.stdout.startswith("0 2")
    assert (profiled.returncode, profiled.stdout) == (plain.returncode, plain.stdout), (
        profiled.stderr
    )


# Its profiler plugins


def plugin_headers() -> Path:
    folder = os.environ.get("COMMPROF_TEST_NCCL_PROFILER")
    if not folder:
        pytest.skip("COMMPROF_TEST_NCCL_PROFILER names no folder of NCCL's headers")
    return Path(folder)


# Fields that NCCL names otherwise; and a version's events: ours, NCCL's, our fields.
THEIR_NAMES = {
    **{"function": "func", "channels": "nChannels", "algorithm": "algo", "protocol": "proto"},
    **{"number": "channelId", "gpu_ns": "pTimer", "is_captured": "graphCaptured"},
    "group": "parentGroup",
}
RUN, SENT = "function count root datatype channels algorithm protocol", "function count datatype"
CALLED = "function count datatype stream is_captured"
CHANNEL = ("channel", "kernelCh", "number gpu_ns")
EVENTS = {
    4: [("collective", "coll", RUN), ("message", "p2p", f"{SENT} channels"), CHANNEL],
    5: [
        ("collective_call", "collApi", f"{CALLED} root"),
        ("message_call", "p2pApi", CALLED),
        ("collective", "coll", f"{RUN} group"),
        ("message", "p2p", f"{SENT} peer channels group"),
        CHANNEL,
    ],
}
EVENTS[6] = [*EVENTS[5], ("copy_engines", "ceColl", "function count root datatype")]
LAYOUT = r"""
#include "nccl/nccl_profiler_abi.h"
#include <sys/types.h>
typedef int ncclResult_t, ncclProfilerEventState_v4_t, ncclProfilerEventState_v5_t;
typedef int ncclProfilerEventState_v6_t;
typedef pid_t ncclPid_t;
typedef void *ncclDebugLogger_t;
#include "profiler_v%(version)d.h"
typedef struct nccl_event our_event;
typedef struct nccl_profiler our_profiler;
typedef ncclProfilerEventDescr_v%(version)d_t their_event;
typedef ncclProfiler_v%(version)d_t their_profiler;
#define SAME(OURS, THEIRS)                                                                \
    _Static_assert(offsetof(our_event, OURS) == offsetof(their_event, THEIRS), #OURS);    \
    _Static_assert(sizeof ((our_event *)0)->OURS == sizeof ((their_event *)0)->THEIRS, #OURS)
#define SAME_FUNCTION(OURS, THEIRS)                                                               \
    _Static_assert(offsetof(our_profiler, OURS) == offsetof(their_profiler, THEIRS), #OURS);      \
    _Static_assert(sizeof(our_profiler) == sizeof(their_profiler), "size")
_Static_assert(offsetof(our_event, type) == offsetof(their_event, type), "type");
_Static_assert(sizeof ((their_event *)0)->type == (%(version)d == 4 ? 1 : 8), "type");
SAME(parent, parentObj);
SAME(rank, rank);
SAME_FUNCTION(name, name);
SAME_FUNCTION(start, startEvent);
SAME_FUNCTION(stop, stopEvent);
SAME_FUNCTION(record_state, recordEventState);
SAME_FUNCTION(finalize, finalize);
_Static_assert(__builtin_types_compatible_p(__typeof__(((our_profiler *)0)->init_v%(version)d),
                                            __typeof__(((their_profiler *)0)->init)), "init");
_Static_assert(__builtin_types_compatible_p(__typeof__(((our_profiler *)0)->stop),
                                            __typeof__(((their_profiler *)0)->stopEvent)), "stop");
"""


@pytest.mark.parametrize("version", EVENTS)
def test_events_of_a_profiler_plugin_lie_as_nccl_lays_them(version: int, tmp_path: Path) -> None:
    source = LAYOUT % {"version": version} + "".join(
        f"SAME({ours}.{field}, {theirs}.{THEIR_NAMES.get(field, field)});\n"
        for ours, theirs, fields in EVENTS[version]
        for field in fields.split()
    )
    (tmp_path / "layout.c").write_text(source)
    folders = [f"-I{REPOSITORY / 'src'}", f"-I{plugin_headers()}"]
    check = subprocess.run(
        ["cc", "-std=gnu11", "-fsyntax-only", *folders, "-include", "stdbool.h", "layout.c"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert check.returncode == 0, check.stderr


def test_kinds_of_events_have_nccls_numbers() -> None:
    text = (plugin_headers() / "nccl_profiler.h").read_text()
    theirs = {
        name: int(bit) for name, bit in re.findall(r"ncclProfile(\w+)\s*=\s*\(1 << (\d+)\)", text)
    }
    abi = (REPOSITORY / "src/nccl/nccl_profiler_abi.h").read_text()
    ours = {name: int(bit) for name, bit in re.findall(r"NCCL_EVENT_(\w+) = 1 << (\d+)", abi)}
    assert "ncclProfilerKernelChStop = 22" in text and "NCCL_STATE_CHANNEL_END = 22" in abi
    names = {"GROUP": "Group", "COLLECTIVE": "Coll", "MESSAGE": "P2p", "CHANNEL": "KernelCh"}
    names |= {"COLLECTIVE_CALL": "CollApi", "MESSAGE_CALL": "P2pApi", "COPY_ENGINES": "CeColl"}
    assert ours == {name: theirs[their_name] for name, their_name in names.items()}


def test_the_real_library_looks_for_a_plugin_that_we_are(nccl: Path) -> None:
    library = (nccl / "lib/libnccl.so.2").read_bytes()
    header = (nccl / "include/nccl.h").read_text()
    version = tuple(int(re.search(rf"NCCL_{part} (\d+)", header)[1]) for part in ("MAJOR", "MINOR"))
    if version < (2, 27):
        pytest.skip("an NCCL from before")
    assert b"\0STATIC_PLUGIN\0" in library
    newest = 6 if version >= (2, 29) else 5 if version >= (2, 28) else 4
    assert f"\0ncclProfiler_v{newest}\0".encode() in library
    plugin = (REPOSITORY / "src/nccl/nccl_plugin.c").read_text()
    names = [*re.findall(r'\{"(\w+)", CALL_', plugin), *re.findall(r'"(nccl[IUFB]\w+\d)"', plugin)]
    assert len(names) >= 20
    since_2_28 = {"AlltoAll", "Gather", "Scatter"} if version < (2, 28) else set()
    assert [
        name
        for name in names
        if name.encode() + b"\0" not in library and name not in {"ncclUint8", *since_2_28}
    ] == []

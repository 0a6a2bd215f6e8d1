"""Programs that open an MPI library and look its functions up by dlsym, and those that do something
else by dlsym."""

import os
import subprocess
from pathlib import Path

import pytest

from .harness import (
    COMMPROF_RUN,
    LIBRARY,
    PROGRAMS,
    Outcome,
    Run,
    compile_program,
    profiled,
    profiled_each,
)
from .libraries import SYSTEM_PYTHON

RANKS = 2
WITH, WITHOUT = (str(COMMPROF_RUN),), (str(COMMPROF_RUN), "--no-dlsym")
PRELOADS = [(), (LIBRARY,)]  # by commprof-run, and by hand


def opens_mpi(mpi, mode="LOCAL"):
    mpi.require_soname_in_search_path()
    flags = (f"-DMODE=RTLD_{mode}", "-Wl,--as-needed", "-ldl")
    program = compile_program(mpi, "opens_mpi", *flags, suffix=f"-{mode}")
    assert b"libmpi" not in subprocess.check_output(["readelf", "-d", program])
    return [str(program), RANKS, mpi.soname]


def ctypes_program(mpi):
    mpi.require_soname_in_search_path()
    return [SYSTEM_PYTHON, RANKS, str(PROGRAMS / "opens_mpi_ctypes.py"), mpi.soname]


def run(mpi, start, command, folder: Path) -> Run:
    program, ranks, *arguments = command
    ran = profiled(mpi, ranks, [*start, program, *arguments], folder)
    assert ran.outcome.exit_status == 0, ran.outcome
    return ran


def lines(outcome: Outcome) -> list[str]:
    return sorted(outcome.stdout.splitlines())


@pytest.mark.parametrize(("preload", "mode"), zip(PRELOADS, ["LOCAL", "GLOBAL"]))
def test_functions_looked_up_in_an_opened_library_are_counted_exactly(mpi, profile, preload, mode):
    ran = profile(*opens_mpi(mpi, mode), preload=preload)
    made = [ran.counts(f"MPI_{call}") for call in ("Allreduce", "Send", "Recv", "Barrier")]
    assert made == [[9, 9], [3, 3], [3, 3], [1, 1]]
    assert {size: count for size, (count, _) in ran.sizes("MPI_Send")[0].items()} == {40: 3}


@pytest.mark.parametrize("preload", PRELOADS, ids=["commprof-run", "LD_PRELOAD"])
def test_ctypes_is_counted_exactly(mpi, profile, preload):
    ran = profile(*ctypes_program(mpi), preload=preload)
    made = [ran.counts(f"MPI_{call}") for call in ("Barrier", "Bcast", "Allreduce")]
    assert made == [[5, 5], [4, 4], [1, 1]]


@pytest.mark.parametrize("command", [opens_mpi, ctypes_program])
def test_the_program_finds_and_computes_the_same(mpi, profile, plain, command):
    """Also: a large-count function is found where this MPI has one, and nowhere else."""
    found = lines(plain(*command(mpi)))
    assert len(found) == RANKS
    assert lines(profile(*command(mpi)).outcome) == found


def beside_mpi4py(mpi, interface: str) -> list[object]:
    if not mpi.has_mpi4py:
        pytest.skip(f"no mpi4py for {mpi.name} here")
    pytest.importorskip(interface)
    return [mpi.python, RANKS, str(PROGRAMS / "mpi4py_beside.py"), interface]


@pytest.mark.parametrize("interface", ["ctypes", "cffi"])
def test_calls_beside_those_of_mpi4py_are_counted_exactly(mpi, profile, interface):
    ran = profile(*beside_mpi4py(mpi, interface))
    assert ran.sizes("MPI_Allreduce") == [{8000: (200, 1_600_000)}] * RANKS
    assert ran.counts("MPI_Barrier") == [1, 1]
    assert unseen(ran) == {}


def test_with_the_setting_off_the_look_ups_are_counted(mpi, tmp_path):
    ran = run(mpi, WITHOUT, beside_mpi4py(mpi, "ctypes"), tmp_path)
    assert ran.counts("MPI_Allreduce") == [0, 0]
    assert unseen(ran) == {"unseen.dlsym": "1"}


def unseen(ran: Run) -> dict[str, str]:
    return {key: value for key, value in ran.facts(0).items() if key.startswith("unseen.")}


@pytest.mark.parametrize("command", [opens_mpi, ctypes_program])
def test_with_the_setting_off_nothing_is_recorded_and_rank_0_says_so(mpi, command, tmp_path):
    ran = run(mpi, WITHOUT, command(mpi), tmp_path)
    assert len(lines(ran.outcome)) == RANKS
    assert not ran.folder.exists()
    (said,) = [line for line in ran.outcome.stderr.splitlines() if line.startswith("commprof:")]
    assert said.startswith("commprof: nothing is recorded: the program has initialized MPI (/")
    assert said.endswith("COMMPROF_DLSYM is off: with --dlsym, look-ups by dlsym are answered")


@pytest.mark.one_mpi
@pytest.mark.parametrize("setting", ["--quiet", "--profile=off", "--profile=site", "--skip=*"])
def test_who_wants_no_profile_hears_nothing(mpi, setting, tmp_path):
    ran = run(mpi, [*WITHOUT, setting], opens_mpi(mpi), tmp_path)
    assert "commprof:" not in ran.outcome.stderr


def looking_tool(mpi, forward: str) -> Path:
    prefix = "MPI_" if forward == "RTLD_NEXT" else forward
    flags = ["-shared", "-fPIC", f'-DSONAME="{mpi.soname}"', f'-DPREFIX="{prefix}"']
    flags += ["-DNEXT"] * (forward == "RTLD_NEXT")
    return compile_program(mpi, "looking_tool", *flags, suffix=f"-{forward}")


def test_a_tool_that_looks_its_next_function_up_does_not_call_itself(mpi, tmp_path):
    """Before ours and after it; each rank has one of the tools."""
    program = compile_program(mpi, "for_tools")
    tools = [looking_tool(mpi, forward) for forward in ("RTLD_NEXT", "MPI_", "PMPI_")]
    commands = [
        ["env", f"LD_PRELOAD={first}:{second}", program]
        for tool in tools
        for first, second in ((tool, LIBRARY), (LIBRARY, tool))
    ]
    ran = profiled_each(mpi, commands, tmp_path)
    assert ran.counts("MPI_Allreduce") == [7] * len(commands), ran.outcome


def gcc(folder: Path, source: object, name: str, *flags: str) -> None:
    subprocess.run(["gcc", "-w", source, "-o", name, *flags], check=True, cwd=folder)


def answers(folder: Path, **environment: str) -> str:
    source = PROGRAMS / "dlsym_answers.c"
    for part, name in ((3, "opened"), (2, "second"), (1, "first")):
        gcc(folder, source, f"lib{name}.so", "-shared", "-fPIC", f"-DPART={part}", "-ldl")
    link = f"-L{folder} -Wl,--no-as-needed -lfirst -lsecond -ldl -Wl,-rpath,{folder} -rdynamic"
    gcc(folder, source, "program", "-DPART=0", *link.split())
    run_in = os.environ | {"LD_LIBRARY_PATH": str(folder)} | environment
    return subprocess.check_output([folder / "program"], text=True, env=run_in)


def test_a_program_without_mpi_gets_every_answer_as_before(tmp_path):
    """MPI_Init alone is found where it is preloaded."""
    plain = answers(tmp_path)
    assert (
        "which by program: default 0, next 1, self 0, opened 3\nwhich by first: default 0, next 2\n"
        in plain
    )
    assert "MPI_which by program: default 10, next 11, self 10, opened 13\n" in plain
    assert "MPI_private by opened: default 33, next none (said)\n" in plain
    mark = "MPI_Init by "
    preloaded = answers(tmp_path, LD_PRELOAD=str(LIBRARY))
    assert [line for line in preloaded.splitlines() if mark not in line] == [
        line for line in plain.splitlines() if mark not in line
    ]


SAYS_ITS_NAME = """
int puts(const char *);
int PMPI_Init(void) { return 0; }
int MPI_Barrier(void *comm) { puts(NAME); return 0; }
"""
OPENS_THE_SECOND = """
#include <dlfcn.h>
#include <stdio.h>
int MPI_Barrier(void *);
int main(void)
{
    setvbuf(stdout, 0, _IONBF, 0);
    ((int (*)(void *))dlsym(dlopen("libsecondmpi.so", RTLD_NOW), "MPI_Barrier"))(0);
    return MPI_Barrier(0);
}
"""


def test_a_second_mpi_that_is_opened_is_reached_and_so_is_the_first(tmp_path):
    (tmp_path / "mpi.c").write_text(SAYS_ITS_NAME)
    (tmp_path / "program.c").write_text(OPENS_THE_SECOND)
    for name in ("firstmpi", "secondmpi"):
        gcc(tmp_path, "mpi.c", f"lib{name}.so", "-shared", "-fPIC", f'-DNAME="{name}"')
    gcc(tmp_path, "program.c", "program", "-L.", "-lfirstmpi", "-ldl", f"-Wl,-rpath,{tmp_path}")
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    said = subprocess.check_output([*WITH, tmp_path / "program"], text=True, env=environment)
    assert said == "secondmpi\nfirstmpi\n"

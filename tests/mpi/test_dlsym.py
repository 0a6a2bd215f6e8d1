"""commprof-run --dlsym: programs that open an MPI library and look its functions up, and those that do something else by dlsym."""

import os
import subprocess
from pathlib import Path

import pytest

from .harness import COMMPROF_RUN, LIBRARY, PROGRAMS, Run, compile_program, launch
from .libraries import SYSTEM_PYTHON

HELPER = LIBRARY.with_name("libcommprof-dlsym.so")
RANKS = 2

pytestmark = pytest.mark.skipif(not HELPER.exists(), reason=f"{HELPER.name} is built for glibc on x86-64 and AArch64 alone")


def opens_mpi(mpi, *options):
    mpi.require_soname_in_search_path()
    program = compile_program(mpi, "opens_mpi", "-Wl,--as-needed", "-ldl")
    assert b"libmpi" not in subprocess.run(["readelf", "-d", program], check=True, capture_output=True).stdout
    return [*options, str(program), mpi.soname]


def ctypes_program(mpi, *options):
    mpi.require_soname_in_search_path()
    return [*options, SYSTEM_PYTHON, str(PROGRAMS / "opens_mpi_ctypes.py"), mpi.soname]


def run(mpi, command, folder: Path) -> Run:
    ran = Run(RANKS, folder / "run", launch(mpi, RANKS, command, folder, {"COMMPROF_OUTPUT": str(folder / "run")}))
    assert ran.outcome.exit_status == 0, ran.outcome
    return ran


WITH, WITHOUT = (str(COMMPROF_RUN), "--dlsym"), (str(COMMPROF_RUN),)


def lines(ran: Run) -> list[str]:
    return sorted(ran.outcome.stdout.splitlines())


def test_functions_looked_up_in_an_opened_library_are_counted_exactly(mpi, tmp_path):
    ran = run(mpi, opens_mpi(mpi, *WITH), tmp_path)
    assert ran.counts("MPI_Allreduce") == [9, 9]
    assert ran.counts("MPI_Send") == ran.counts("MPI_Recv") == [3, 3]
    assert ran.counts("MPI_Barrier") == [1, 1]
    sent = ran.query(0, "SELECT bytes, sum(count) FROM cell WHERE measure = 'call' AND call = 'MPI_Send' GROUP BY bytes")
    assert [tuple(row) for row in sent] == [(40, 3)]


def test_ctypes_is_counted_exactly(mpi, tmp_path):
    ran = run(mpi, ctypes_program(mpi, *WITH), tmp_path)
    assert ran.counts("MPI_Barrier") == [5, 5]
    assert ran.counts("MPI_Bcast") == [4, 4]
    assert ran.counts("MPI_Allreduce") == [1, 1]


@pytest.mark.parametrize("command", [opens_mpi, ctypes_program])
def test_the_program_finds_and_computes_the_same(mpi, command, tmp_path):
    """Also: a large-count function is found where this MPI has one, and nowhere else."""
    (tmp_path / "with").mkdir()
    (tmp_path / "plain").mkdir()
    plain = lines(run(mpi, command(mpi), tmp_path / "plain"))
    assert len(plain) == RANKS
    assert lines(run(mpi, command(mpi, *WITH), tmp_path / "with")) == plain


@pytest.mark.parametrize("command", [opens_mpi, ctypes_program])
def test_without_the_option_nothing_is_recorded_and_nothing_is_broken(mpi, command, tmp_path):
    ran = run(mpi, command(mpi, *WITHOUT), tmp_path)
    assert len(lines(ran)) == RANKS
    assert not ran.folder.exists()


@pytest.mark.parametrize("program, counts", [("mpi4py_calls", None), ("fortran_f08", None), ("pcontrol", [8, 8])])
def test_programs_that_need_no_help_are_counted_the_same(mpi, profile, program, counts):
    if program == "mpi4py_calls" and not mpi.has_mpi4py:
        pytest.skip(f"no mpi4py for {mpi.name} here")
    if program == "fortran_f08":
        mpi.require_fortran(program)
    helped = profile(program, RANKS, preload=(LIBRARY, HELPER))
    alone = profile(program, RANKS)
    assert helped.counts("MPI_Allreduce") == alone.counts("MPI_Allreduce")
    assert counts in (None, helped.counts("MPI_Allreduce"))
    every = "SELECT call, measure, bytes, sum(count) FROM cell GROUP BY call, measure, bytes ORDER BY 1, 2, 3"
    assert [[tuple(row) for row in helped.query(rank, every)] for rank in range(RANKS)] == [
        [tuple(row) for row in alone.query(rank, every)] for rank in range(RANKS)
    ]


@pytest.mark.parametrize("order", ["before", "after"])
def test_another_tool_sees_the_same_calls(mpi, profile, plain, order):
    tool = compile_program(mpi, "other_tool", "-shared", "-fPIC")
    ours = (LIBRARY, HELPER)
    preload = (tool, *ours) if order == "before" else (*ours, tool)
    helped = profile("for_two_tools", RANKS, preload=preload)
    alone = profile("for_two_tools", RANKS, preload=(tool, LIBRARY) if order == "before" else (LIBRARY, tool))
    assert sorted(helped.outcome.stdout.splitlines()) == sorted(alone.outcome.stdout.splitlines())
    assert helped.counts("MPI_Allreduce") == alone.counts("MPI_Allreduce") != [0, 0]


def answers(folder: Path, **environment: str) -> str:
    source = PROGRAMS / "dlsym_answers.c"
    for part, name in ((3, "libopened.so"), (2, "libsecond.so"), (1, "libfirst.so")):
        subprocess.run(["gcc", "-w", "-shared", "-fPIC", f"-DPART={part}", source, "-o", folder / name, "-ldl"], check=True)
    link = [f"-L{folder}", "-Wl,--no-as-needed", "-lfirst", "-lsecond", "-ldl", f"-Wl,-rpath,{folder}", "-rdynamic"]
    subprocess.run(["gcc", "-w", "-DPART=0", source, "-o", folder / "program", *link], check=True)
    run_in = os.environ | {"LD_LIBRARY_PATH": str(folder)} | environment
    return subprocess.run([folder / "program"], check=True, capture_output=True, text=True, env=run_in).stdout


def test_a_program_without_mpi_gets_every_answer_as_before(tmp_path):
    """MPI_Init alone is found where it is preloaded; so it is with the library alone."""
    plain, alone = answers(tmp_path), answers(tmp_path, LD_PRELOAD=str(LIBRARY))
    assert "which by program: default 0, next 1, self 0, opened 3\nwhich by first: default 0, next 2\n" in plain
    assert "MPI_which by program: default 10, next 11, self 10, opened 13\n" in plain
    assert "MPI_private by opened: default 33, next none (said)\n" in plain
    for preload in (f"{LIBRARY}:{HELPER}", f"{HELPER}:{LIBRARY}"):
        assert answers(tmp_path, LD_PRELOAD=preload) == alone
    assert answers(tmp_path, LD_PRELOAD=str(HELPER)) == plain


def test_a_second_mpi_that_is_opened_is_reached_and_so_is_the_first(tmp_path):
    said = "int puts(const char *); int PMPI_Init(void) { return 0; } int MPI_Barrier(void *c) { puts(NAME); return 0; }"
    program = "#include <dlfcn.h>\n#include <stdio.h>\nint MPI_Barrier(void *);\nint main(void) { setvbuf(stdout, 0, _IONBF, 0);"
    program += 'void *second = dlopen("libsecondmpi.so", RTLD_NOW); ((int (*)(void *))dlsym(second, "MPI_Barrier"))(0);'
    program += "MPI_Barrier(0); return 0; }"
    for name, text in (("firstmpi", said), ("secondmpi", said), ("program", program)):
        (tmp_path / f"{name}.c").write_text(text)
    for name in ("firstmpi", "secondmpi"):
        library = ["-shared", "-fPIC", f'-DNAME="{name}"', f"{name}.c", "-o", f"lib{name}.so"]
        subprocess.run(["gcc", "-w", *library], check=True, cwd=tmp_path)
    link = ["program.c", "-o", "program", "-L.", "-lfirstmpi", "-ldl", f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(["gcc", "-w", *link], check=True, cwd=tmp_path)
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    ran = subprocess.run([*WITH, tmp_path / "program"], check=True, capture_output=True, text=True, env=environment)
    assert ran.stdout == "secondmpi\nfirstmpi\n"


def test_the_option_preloads_both_and_neither_twice():
    command = [str(COMMPROF_RUN), "--dlsym", str(COMMPROF_RUN), "--dlsym", "printenv", "LD_PRELOAD"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == f"{LIBRARY}:{HELPER}\n"
    command = [str(COMMPROF_RUN), str(COMMPROF_RUN), "--dlsym", "printenv", "LD_PRELOAD"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == f"{LIBRARY}:{HELPER}\n"

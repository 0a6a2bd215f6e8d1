"""MPI libraries that are loaded at run time: two of them in one process (programs/two_libraries.c), and one that is called through
pointers (programs/dlopened.c)."""

import subprocess

import pytest

from .harness import LIBRARY, Run, compile_program, unprofiled_environment
from .libraries import MPICH, OPEN_MPI

LINKED_WITH_NO_MPI = "-Wl,--as-needed"  # the compiler of an MPI library names it, but nothing of it is called


def run_alone(folder, *command, **more):
    """Without a launcher: a world of one."""
    environment = unprofiled_environment() | OPEN_MPI.environment | more
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=600)


@pytest.mark.parametrize("order", [(OPEN_MPI, MPICH), (MPICH, OPEN_MPI)], ids=lambda order: order[0].name + " first")
def test_of_two_libraries_in_one_process_the_first_is_profiled_and_both_work(order, tmp_path):
    for mpi in order:
        if mpi.missing:
            pytest.skip(f"{mpi.name} is not installed: no {mpi.missing}")
    plugins = [compile_program(mpi, "plugin", "-shared", "-fPIC") for mpi in order]
    command = [compile_program(order[0], "two_libraries", LINKED_WITH_NO_MPI), *plugins]
    without = run_alone(tmp_path, *command)
    within = run_alone(tmp_path, *command, LD_PRELOAD=str(LIBRARY), COMMPROF_OUTPUT=str(tmp_path / "run"))
    assert (within.returncode, within.stdout) == (without.returncode, without.stdout)
    assert without.returncode == 0 and without.stdout.count("a world of 1") == 6
    run = Run(1, tmp_path / "run", within)
    assert run.sizes("MPI_Allreduce") == [{4: (30, 120)}]  # of the first alone: the second's were 60
    assert run.sizes("MPI_Irecv", "completion") == [{4: (3, 0)}]
    assert run.counts("MPI_Finalize") == [1]
    assert order[0].soname in run.facts(0)["mpi_library"]
    assert order[1].soname in run.facts(0)["unseen.library"]


def test_calls_through_pointers_into_a_library_work_and_are_counted(profile, plain, mpi):
    mpi.require_soname_in_search_path()
    program = str(compile_program(mpi, "dlopened", LINKED_WITH_NO_MPI))
    run = profile(program, 2, mpi.soname)
    without = plain(program, 2, mpi.soname)
    assert sorted(run.outcome.stdout.splitlines()) == sorted(without.stdout.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    assert run.counts("MPI_Barrier") == [3, 3]

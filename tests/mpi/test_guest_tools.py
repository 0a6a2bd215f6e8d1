"""Another profiler that makes MPI calls of its own (programs/busy_tool.c), before ours, after ours
and linked into the program: each sees all of the program's calls. Its own count where it stands
between the program and us, for nothing tells them from the program's; where we come first they are
inside a call."""

import pytest

from .harness import LIBRARY, compile_program

SAID = "busy tool: 14 MPI_Allreduce on all ranks, 5 MPI_Wait here\n"


@pytest.fixture
def tool(mpi):
    return compile_program(mpi, "busy_tool", "-shared", "-fPIC")


def test_a_busy_tool_after_ours_is_inside_the_program_s_calls(profile, tool):
    run = profile("for_a_busy_tool", 2, preload=(LIBRARY, tool))
    assert run.outcome.stdout == SAID
    assert run.calls(0) == {
        "MPI_Init",
        "MPI_Allreduce",
        "MPI_Irecv",
        "MPI_Send",
        "MPI_Wait",
        "MPI_Finalize",
    }
    assert run.sizes("MPI_Allreduce") == [{4: (7, 28)}] * 2
    assert run.counts("MPI_Wait") == [5, 5]
    assert run.sizes("MPI_Irecv", "completion") == [{4: (5, 0)}] * 2


@pytest.mark.parametrize("where", ["before ours", "linked into the program"])
def test_a_busy_tool_around_the_program_is_counted_with_it(profile, tool, where):
    if where == "before ours":
        run = profile("for_a_busy_tool", 2, preload=(tool, LIBRARY))
    else:
        run = profile("with_a_tool_inside", 2)
    assert run.outcome.stdout == SAID
    assert run.sizes("MPI_Allreduce") == [{4: (7, 28)}] * 2
    assert run.counts("MPI_Barrier") == [14, 14]
    assert run.counts("MPI_Test") == [5, 5]
    assert run.counts("MPI_Wait") == [0, 0]
    assert run.sizes("MPI_Irecv", "completion") == [{4: (5, 0)}] * 2
    assert run.sizes("MPI_Reduce") == [{4: (1, 4)}] * 2
    assert run.counts("MPI_Finalize") == [1, 1]


def test_the_program_is_the_same_with_the_tool_alone(plain):
    assert plain("with_a_tool_inside", 2).stdout == SAID

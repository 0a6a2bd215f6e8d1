"""Error handlers that leave the failed call, by longjmp (programs/jumping_deeper.c) or by a C++ exception
(programs/throwing_handler.cpp): counting goes on exactly, wherever on the stack the next calls are made from."""

import pytest


def test_after_jumps_out_of_calls_all_others_count(profile, plain):
    run = profile("jumping_deeper", 2)
    assert run.outcome.exit_status == plain("jumping_deeper", 2).exit_status == 0
    assert run.counts("MPI_Allreduce") == [900, 900]  # 100 rounds of 9
    assert run.counts("MPI_Send") == [0, 0]  # they did not return


def test_each_thread_jumps_for_itself(profile, mpi):
    if mpi.name == "mpich":
        pytest.skip("MPICH aborts when a handler leaves a call under MPI_THREAD_MULTIPLE, also without the profiler")
    run = profile("jumping_deeper", 2, "threads")
    assert run.counts("MPI_Allreduce") == [4 * 900, 4 * 900]
    assert run.rank_row(0)["dropped_calls"] == 0


def test_after_exceptions_out_of_calls_all_others_count(profile, plain):
    run = profile("throwing_handler", 2)
    assert run.outcome.stdout == plain("throwing_handler", 2).stdout == "caught 100\n" * 2
    assert run.counts("MPI_Allreduce") == [150, 150]


def test_what_callbacks_of_the_job_call_is_inside_a_call_and_does_not_count(profile):
    run = profile("throwing_handler", 2)
    assert run.counts("MPI_Barrier") == [0, 0]
    assert run.counts("MPI_Send") == [50, 50]  # those whose handler returned

"""Signals that interrupt MPI calls and the job's own system calls (programs/interrupted.c), with
handlers that call MPI (programs/interrupting.c)."""

import re

import pytest


def test_a_storm_of_signals_changes_neither_the_program_nor_the_counts(profile, plain):
    run = profile("interrupted", 1)
    assert run.outcome.stdout == plain("interrupted", 1).stdout == "done\n"
    for call in ("MPI_Allreduce", "MPI_Send", "MPI_Irecv", "MPI_Wait"):
        assert run.counts(call) == [100000]
    assert run.sizes("MPI_Irecv", "completion") == [{4: (100000, 0)}]
    assert run.rank_row(0)["dropped_calls"] == 0


def test_calls_count_on_after_a_signal_handler_has_left_a_receive(profile, plain, mpi):
    if mpi.family != "openmpi":
        pytest.skip(
            "MPICH's transport ends the job when a handler leaves it, now and then also without "
            "the profiler"
        )
    run = profile("interrupted", 1, "leaving a receive")
    assert run.outcome.stdout == plain("interrupted", 1, "leaving a receive").stdout == "done\n"
    assert run.counts("MPI_Allreduce") == [100010]
    assert run.counts("MPI_Send") == [100001]
    assert run.counts("MPI_Recv") == [0]


@pytest.mark.parametrize("samples", ["0", "64M"])
def test_calls_of_a_signal_handler_are_recorded_or_listed(profile, samples):
    run = profile("interrupting", 2, env={"COMMPROF_SAMPLES": samples})
    said = re.findall(r"rank (\d): (\d+) interrupted (\d+)", run.outcome.stdout)
    assert len(said) == 2
    for rank, interruptions, calls in (
        (int(rank), int(interruptions), int(calls)) for rank, interruptions, calls in said
    ):
        listed = run.rank_row(rank)["interrupted_calls"]
        assert run.counts("MPI_Bcast")[rank] == calls
        assert run.counts("MPI_Allreduce")[rank] + listed == interruptions
        assert run.rank_row(rank)["dropped_calls"] == 0


def test_without_a_handler_that_calls_none_is_listed(profile):
    assert profile("interrupted", 1).rank_row(0)["interrupted_calls"] == 0


@pytest.mark.parametrize("what", ["watched", "allocates", "cancelled"])
def test_calls_take_no_lock_that_a_handler_or_an_ended_thread_may_hold(profile, mpi, what):
    if what == "cancelled" and mpi.family != "openmpi":
        pytest.skip("MPICH is in no state for it in the middle of a call, with and without us")
    run = profile("guest_memory", 1, what)
    assert run.outcome.stdout == "done\n"
    assert run.rank_row(0)["dropped_calls"] == 0

"""The timeline of real ranks: what it shows is what they did."""

import json
from collections import Counter, defaultdict

import pytest

from . import reporter

pytestmark = pytest.mark.slow


def trace_of(folder, *words: str) -> list[dict]:
    said = reporter.answer("export", folder, "--format", "perfetto", *words)
    assert (said.exit_status, said.stderr) == (0, "")
    return json.loads(said.stdout)["traceEvents"]


def calls_of(events: list[dict], rank: int) -> Counter:
    return Counter(
        event["name"]
        for event in events
        if event["ph"] == "X" and event["pid"] == rank and event["name"].startswith("MPI_")
    )


def test_every_call_is_a_slice_and_slices_of_a_thread_lie_apart(profile):
    run = profile("collectives", 4)
    events = trace_of(run.folder)
    for rank in range(4):
        assert calls_of(events, rank) == {
            cell: count
            for cell, count in run.query(rank, "SELECT call, sum(count) FROM cell GROUP BY call")
        }
    ends = defaultdict(int)
    for event in sorted(
        (event for event in events if event["name"].startswith("MPI_") and event["ph"] == "X"),
        key=lambda one: one["ts"],
    ):
        track = event["pid"], event["tid"]
        assert event["ts"] >= ends[track] - 0.0005, event
        ends[track] = event["ts"] + event["dur"]


def barriers_of(events: list[dict]) -> list[list[dict]]:
    """The ranks' slices of each barrier."""
    barriers = defaultdict(list)
    for event in events:
        if event["name"] == "MPI_Barrier" and event["ph"] == "X":
            barriers[event["args"]["communicator"], event["args"]["sequence"]].append(event)
    return list(barriers.values())


def test_nobody_leaves_a_barrier_before_all_have_come(profile):
    """On the one axis of the trace."""
    barriers = barriers_of(trace_of(profile("collectives", 4).folder))
    assert barriers
    for of_all in barriers:
        assert len(of_all) == 4
        assert (
            min(event["ts"] + event["dur"] for event in of_all)
            >= max(event["ts"] for event in of_all) - 0.0005
        )


def test_who_came_first_waits_for_who_came_last_until_it_comes(profile):
    """Rank 0 computes for 20 ms before each of ten barriers, so it mostly comes last."""
    events = trace_of(profile("planted_delays", 2).folder)
    waiting = {
        (event["pid"], event["ts"]): event
        for event in events
        if event["name"].startswith("waiting")
    }
    barriers = barriers_of(events)
    assert len(barriers) == 10
    for of_both in barriers:
        first, last = sorted(of_both, key=lambda event: event["ts"])
        wait = waiting.pop((first["pid"], first["ts"]))
        assert wait["name"] == f"waiting for rank {last['pid']}"
        assert abs(wait["ts"] + wait["dur"] - last["ts"]) < 0.0005
    assert (
        not {(event["pid"], event["ts"]) for of_both in barriers for event in of_both}
        & waiting.keys()
    )


def test_operations_in_flight_begin_and_end(profile):
    events = trace_of(profile("overlap", 2).folder)
    begun = {event["id"]: event["ts"] for event in events if event["ph"] == "b"}
    ended = {event["id"]: event["ts"] for event in events if event["ph"] == "e"}
    assert len(begun) == len(ended) == 2 * 22
    assert all(ended[operation] > begun[operation] for operation in begun)


def spans_of(events: list[dict], process: int, name: str) -> list[tuple[float, float]]:
    return sorted(
        (event["ts"], event["ts"] + event["dur"])
        for event in events
        if event["name"] == name and event["pid"] == process
    )


CLOCK_ERROR_US = 20  # between two readings of clocks; a call is laid on the wall clock by a third


def test_each_call_lies_between_readings_of_the_wall_clock_around_it(profile, tmp_path_factory):
    """As a trace of PyTorch's has them: programs/dated_calls.c."""
    traces = tmp_path_factory.mktemp("traces")
    events = trace_of(profile("dated_calls", 2, str(traces)).folder, "--with-trace", str(traces))
    processes = {
        event["args"]["name"]: event["pid"] for event in events if event["name"] == "process_name"
    }
    for rank in range(2):
        calls = spans_of(events, rank, "MPI_Allreduce")
        outside = spans_of(events, processes[f"rank {rank}, PyTorch: CPU"], "outside")
        assert len(calls) == len(outside) == 200
        for (start, end), (before, after) in zip(calls, outside):
            assert before - CLOCK_ERROR_US <= start <= end <= after + CLOCK_ERROR_US

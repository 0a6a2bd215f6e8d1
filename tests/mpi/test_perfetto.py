"""The timeline of real ranks: what it shows is what they did."""

import json
from collections import defaultdict

import pytest

from . import reporter

pytestmark = pytest.mark.slow


def trace_of(folder, *words: str) -> list[dict]:
    said = reporter.answer("export", folder, "--format", "perfetto", *words)
    assert (said.exit_status, said.stderr) == (0, "")
    return json.loads(said.stdout)["traceEvents"]


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


def spans_of(events: list[dict], process: int, name: str) -> list[tuple[float, float]]:
    return sorted(
        (event["ts"], event["ts"] + event["dur"])
        for event in events
        if event["name"] == name and event["pid"] == process
    )


CLOCK_ERROR_US = 20  # between two readings of clocks; a call is laid on the wall clock by a third


def test_each_call_lies_between_readings_of_the_wall_clock_around_it(profile, tmp_path_factory):
    """As a trace of PyTorch's has them: programs/dated_calls.calls."""
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

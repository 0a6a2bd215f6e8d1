"""`export --format perfetto` against the rules of the trace event format and of Perfetto's
importer, and against the planted calls.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format)
Of Perfetto: json_trace_parser.cc, trace_sorter.h, flow_tracker.cc and slice_tracker.cc in
src/trace_processor.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from decimal import Decimal

import planted
import pytest
from cases import of
from planted import SECOND, Doing, process_facts

FIELDS = {
    "M": {"ph", "name", "pid", "tid", "args"},
    "X": {"ph", "name", "pid", "tid", "ts", "dur", "args"},
    "C": {"ph", "name", "pid", "tid", "ts", "args"},
    "b": {"ph", "name", "cat", "id", "pid", "tid", "ts", "args"},
    "e": {"ph", "name", "cat", "id", "pid", "tid", "ts"},
    "s": {"ph", "name", "cat", "id", "pid", "tid", "ts"},
    "f": {"ph", "bp", "name", "cat", "id", "pid", "tid", "ts"},
}
METADATA = {
    "process_name": "name",
    "process_labels": "labels",
    "process_sort_index": "sort_index",
    "thread_name": "name",
    "thread_sort_index": "sort_index",
}


def parse(text: str) -> dict:
    """Refuses whatever the format does not allow. Times become the microseconds that Perfetto
    reads."""
    whole = json.loads(
        text, parse_float=Decimal, parse_constant=lambda word: pytest.fail(f"{word} is no JSON")
    )
    assert set(whole) == {"displayTimeUnit", "otherData", "traceEvents"} and whole[
        "displayTimeUnit"
    ] in ("ms", "ns")
    for event in whole["traceEvents"]:
        assert set(event) == FIELDS[event["ph"]], event
        assert (
            isinstance(event["name"], str)
            and isinstance(event["pid"], int)
            and isinstance(event["tid"], int)
        ), event
        for key in {"ts", "dur"} & event.keys():
            assert isinstance(event[key], Decimal) and event[key].as_tuple().exponent >= -4, event
            event[key] = as_read(event[key])
        assert event.get("dur", 0) >= 0, event
        if event["ph"] == "M":
            assert set(event["args"]) == {METADATA[event["name"]]}, event
        if event["ph"] == "C":
            assert all(isinstance(value, (int, Decimal)) for value in event["args"].values()), event
    check_tracks(whole["traceEvents"])
    check_nesting(whole["traceEvents"])
    check_asynchronous(whole["traceEvents"])
    check_names(whole["traceEvents"])
    check_counters(whole["traceEvents"])
    check_bindings(whole["traceEvents"])
    return whole


def check_tracks(events: list[dict]) -> None:
    """Perfetto reads thread 0 of a process as the thread whose number is the process's, which is
    another one's track."""
    assert all(
        event["tid"] > 0
        for event in events
        if event["ph"] in "Xbe" or event["name"].startswith("thread_")
    )


def as_read(time_us: Decimal) -> Decimal:
    """Perfetto's CoerceToTs multiplies in floating point and cuts; an earlier one cut the digits
    after the third. Both give the same."""
    read_ns = int(float(time_us) * 1_000.0)
    assert read_ns == int(time_us * 1_000), time_us
    return Decimal(read_ns) / 1_000


def check_nesting(events: list[dict]) -> None:
    """Slices of a track lie in each other or apart."""
    open_until: dict[tuple, list[Decimal]] = {}
    slices = [event for event in events if event["ph"] == "X"]
    for event in sorted(slices, key=lambda event: (event["ts"], -event["dur"])):
        parents = open_until.setdefault((event["pid"], event["tid"]), [])
        while parents and parents[-1] <= event["ts"]:
            parents.pop()
        end = event["ts"] + event["dur"]
        assert not parents or end <= parents[-1], event
        parents.append(end)


def check_asynchronous(events: list[dict]) -> None:
    """Each operation begins once, ends once, and not before."""
    begun, ended = (
        {of(event, "cat id pid"): event["ts"] for event in events if event["ph"] == phase}
        for phase in "be"
    )
    assert begun.keys() == ended.keys() and all(ended[key] >= begun[key] for key in begun)
    times = Counter(event["id"] for event in events if event["ph"] in "be")
    assert max(times.values(), default=2) == 2


def check_names(events: list[dict]) -> None:
    """Every process that has events has a name, and no process or track has two."""
    named = Counter(of(event, "name pid tid") for event in events if event["ph"] == "M")
    assert all(count == 1 for count in named.values())
    assert all(
        event["args"]["name"]
        for event in events
        if event["name"] in ("process_name", "thread_name")
    )
    for event in events:
        assert event["ph"] == "M" or named["process_name", event["pid"], 0], event


def check_counters(events: list[dict]) -> None:
    """Each value of a counter is later than the one before, and another one."""
    before: dict[tuple, dict] = {}
    for event in events:
        if event["ph"] == "C":
            last = before.get((event["pid"], event["name"]))
            assert last is None or (last["ts"] < event["ts"] and last["args"] != event["args"]), (
                event
            )
            before[event["pid"], event["name"]] = event


def check_bindings(events: list[dict]) -> None:
    """Perfetto sorts by time, longer slices first and all else after them, and binds a flow's ends
    to the slice that has begun last on their track: from a call, which it does not leave, to a
    wait."""
    stacks: dict[tuple, list[dict]] = {}
    timed = [event for event in events if event["ph"] in "Xsf"]
    for event in sorted(timed, key=lambda event: (event["ts"], -event.get("dur", 0))):
        stack = stacks.setdefault((event["pid"], event["tid"]), [])
        if event["ph"] == "X":
            while stack and stack[-1]["ts"] + stack[-1]["dur"] <= event["ts"]:
                stack.pop()
            stack.append(event)
            assert len(stack) < 512, event
        else:
            assert stack and stack[-1]["ts"] <= event["ts"] <= stack[-1]["ts"] + stack[-1]["dur"], (
                event
            )
            assert event["ph"] == "s" or stack[-1]["name"].startswith("waiting for "), event


def timeline_run() -> list[planted.Rank]:
    """The training run, all on one host, whose ranks start a microsecond apart."""
    ranks = planted.training_run()
    for rank in ranks:
        rank.facts.update(boot_id="one", time_namespace="time:[1]")
        rank.start_monotonic_ns += 1_000 * rank.world_rank
        rank.start_unix_ns += 1_000 * rank.world_rank
    return ranks


@pytest.fixture
def export(report, tmp_path):
    def exported(ranks, *words, write=planted.write_databases):
        write(tmp_path / "run", ranks)
        answer = report("export", tmp_path / "run", "--format", "perfetto", *words)
        assert answer.status == 0, answer.err
        return parse(answer.out)

    return exported


def events(whole: dict, phases: str, **what: object) -> list[dict]:
    return [
        event
        for event in whole["traceEvents"]
        if event["ph"] in phases and all(event[key] == value for key, value in what.items())
    ]


def slices(whole: dict, **what: object) -> list[dict]:
    return events(whole, "X", **what)


def names_of(whole: dict, kind: str) -> dict:
    return {of(event, "pid tid"): event["args"]["name"] for event in events(whole, "M", name=kind)}


def tracks_of(whole: dict, rank: int = 0) -> dict[str, int]:
    named = names_of(whole, "thread_name")
    return {name: track for (pid, track), name in named.items() if pid == rank}


def test_activities_that_a_file_lays_over_each_other_are_cut(export):
    rank = timeline_run()[0]
    rank.world_size = 1
    rank.streams = [planted.Stream(1, begin_ns=0), planted.Stream(1_023, begin_ns=4 * SECOND)]
    rank.gpu_samples = [
        planted.GpuSample(SECOND, 2 * SECOND, kind="memset", bytes=7),
        planted.GpuSample(SECOND + 500_000_000, 3 * SECOND, 99),
        planted.GpuSample(5 * SECOND, 6 * SECOND, stream=1_023),
    ]
    whole = export([rank])
    tracks = tracks_of(whole)
    assert [
        of(event, "name ts dur args") for event in slices(whole, tid=tracks["GPU, stream 7"])
    ] == [
        ("memset", 1_000_000, 1_000_000, {"bytes": 7}),
        ("(other kernels)", 1_500_000, 500_000, {}),
    ]
    assert "GPU, other streams" in tracks


def test_a_rank_that_hangs_shows_what_it_is_in(export):
    ranks = timeline_run()
    hanging = ranks[1]
    hanging.ended, hanging.pid = "running", os.getpid()
    hanging.facts.update(process_facts(1), process_start="0")  # it was killed
    hanging.doing = {0: Doing("MPI_Recv", 9_700_000_000, peer=-2, bytes=4)}
    whole = export(ranks, write=planted.write_ledgers)
    (stuck,) = slices(whole, name="MPI_Recv (not finished)")
    assert of(stuck, "pid tid args") == (
        1,
        1,
        {"communicator": "MPI_COMM_WORLD", "bytes": 4, "peer": "any"},
    )


def test_names_from_files_cannot_break_out(export):
    ranks = timeline_run()[:1]
    ranks[0].facts["host"] = 'a"}\x1b[2J</script>'
    ranks[0].regions = {1: 'x"}]}\n', 2: "\u202e"}
    whole = export(ranks)
    assert names_of(whole, "process_name")[0, 0] == 'rank 0, a"}\\x1b[2J</script>'
    assert {
        event["name"]
        for event in slices(whole)
        if event["tid"] >= 1_000_000 and not event["name"].startswith("step")
    } == {'x"}]}\\x0a', "\\u202e"}

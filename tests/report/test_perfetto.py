"""`export --format perfetto` of runs that are unusual; golden answers have those of whole ones.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format)
"""

from __future__ import annotations

import json
import os
from decimal import Decimal

import planted
import pytest
from cases import of
from planted import SECOND, Doing, process_facts


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


def check_names(events: list[dict]) -> None:
    """Every process that has events has a name, and no process or track has two."""
    named = [of(event, "name pid tid") for event in events if event["ph"] == "M"]
    assert len({*named}) == len(named)
    for event in events:
        assert event["ph"] == "M" or ("process_name", event["pid"], 0) in named, event


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
    def exported(ranks, write=planted.write_databases):
        write(tmp_path / "run", ranks)
        answer = report("export", tmp_path / "run", "--format", "perfetto")
        assert answer.status == 0, answer.err
        events = json.loads(answer.out, parse_float=Decimal)["traceEvents"]
        check_nesting(events)
        check_names(events)
        return events

    return exported


def slices(events: list[dict], **what: object) -> list[dict]:
    return [each for each in events if each["ph"] == "X" and what.items() <= each.items()]


def names_of(events: list[dict], kind: str) -> dict:
    return {of(each, "pid tid"): each["args"]["name"] for each in events if each["name"] == kind}


def test_activities_that_a_file_lays_over_each_other_are_cut(export):
    rank = timeline_run()[0]
    rank.world_size = 1
    rank.streams = [planted.Stream(1, begin_ns=0), planted.Stream(1_023, begin_ns=4 * SECOND)]
    rank.gpu_samples = [
        planted.GpuSample(SECOND, 2 * SECOND, kind="memset", bytes=7),
        planted.GpuSample(SECOND + 500_000_000, 3 * SECOND, 99),
        planted.GpuSample(5 * SECOND, 6 * SECOND, stream=1_023),
    ]
    events = export([rank])
    tracks = {name: track for (_, track), name in names_of(events, "thread_name").items()}
    drawn = slices(events, tid=tracks["GPU, stream 7"])
    assert [of(event, "name ts dur args") for event in drawn] == [
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
    tracks = (event["name"] for event in slices(whole) if event["tid"] >= 1_000_000)
    regions = {name for name in tracks if not name.startswith("step")}
    assert regions == {'x"}]}\\x0a', "\\u202e"}

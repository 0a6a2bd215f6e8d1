"""Activity of GPUs, and NCCL's calls: ledgers and databases of a run hold the same rows."""

from __future__ import annotations

import planted
import pytest
from commprof_report.gpu import overlap
from commprof_report.run import ledger, ledger_rows
from commprof_report.run.ledger_format import layout
from commprof_report.run.run import run_open
from planted import (
    GAP_NS,
    SECOND,
    Activity,
    Algorithm,
    CpuTime,
    Device,
    GpuSample,
    NegotiatedStep,
    Negotiation,
    Place,
    Rank,
    Reading,
    Stream,
    Tracing,
)
from test_samples import ROUND_UNIX_NS, Written


def without_numbers(tables: dict[str, list[tuple]]) -> dict[str, list[tuple]]:
    """Cells and activities may be numbered differently; the buckets of equal ones
    are equally many."""
    numbered = ("cell", "bucket", "gpu_activity", "gpu_bucket")
    return {
        table: sorted((row[table in numbered :] for row in rows), key=repr)
        for table, rows in tables.items()
    }


@pytest.mark.slow
def test_what_gpus_did_before_a_reset_does_not_count(tmp_path):
    ranks = planted.gpu_run()
    for rank in ranks:
        rank.gpu_epoch = rank.epoch + 1
    ask = run_open(planted.write_ledgers(tmp_path, ranks), with_samples=True).connection.execute
    for table in ("gpu_busy", "gpu_activity", "gpu_bucket"):
        assert ask(f"SELECT * FROM {table}").fetchall() == []
    nothing = (None, None, 0, 0, 0, 132, 0, 0, 0, 80 << 30)
    assert {row[5:] for row in ask("SELECT * FROM gpu_device")} == {nothing}
    for table in ("gpu_stream", "gpu_kernel", "cell"):
        assert ask(f"SELECT * FROM {table}").fetchall()


@pytest.mark.parametrize("state, uncollected", (("killed", [("1200000000",)]), ("running", [])))
def test_what_a_process_left_uncollected_is_missing_once_it_has_ended(
    written, monkeypatch, state, uncollected
):
    monkeypatch.setattr(ledger_rows, "process_state", lambda pid, facts: state)
    asked = "SELECT value FROM fact WHERE key = 'gpu.uncollected_ns'"
    one = written(ended="running").header(gpu_uncollected_ns=1_200_000_000, gpu_late_ns=5)
    assert one.ask(asked) == uncollected
    assert one.ask("SELECT value FROM fact WHERE key = 'gpu.late_ns'") == [("5",)]
    healthy = written(ended="running")
    assert healthy.ask("SELECT value FROM fact WHERE key LIKE 'gpu.%_ns'") == []


def test_no_time_is_known_of_a_rank_whose_records_came_too_late(tmp_path):
    ranks = planted.gpu_run()
    run = run_open(planted.write_databases(tmp_path / "all", ranks), with_samples=True)
    known = all_known(run)
    ranks[0].gpu_counts = {**ranks[0].gpu_counts, "late_records": 1}
    run = run_open(planted.write_databases(tmp_path / "late", ranks), with_samples=True)
    assert 0 in known
    assert all_known(run) == {rank: known[rank] for rank in known if rank != 0}


def all_known(run) -> dict:
    return {
        rank: {device: spans.tolist() for device, spans in devices.items()}
        for rank, devices in overlap.known_spans(run.connection).items()
    }


# Parts of a ledger that count


@pytest.fixture
def written(tmp_path):
    def write(**what: object) -> Written:
        rank = Rank(
            0, 1, communicators=[planted.communicators_of(0)[0]], threads=[(0, "main", 1)], **what
        )
        return Written(tmp_path / "rank-0.ledger", rank)

    return write


WINDOWS = "SELECT stream, begin_ns, end_ns FROM gpu_sample_window"
KERNELS = [GpuSample(at_ns, at_ns + 100, 1) for at_ns in range(0, 9 * GAP_NS, GAP_NS)]


def test_of_streams_only_the_windows_without_bits_of_the_devices_mask_count(written):
    one = written(gpu_samples=KERNELS, streams=[Stream(begin_ns=200)], start_unix_ns=ROUND_UNIX_NS)
    one.header(device_mask=3 << planted.STRETCH, window_mask=15)
    assert one.ask("SELECT start_ns FROM gpu_sample") == [(0,), (4 * GAP_NS,), (8 * GAP_NS,)]
    kept = [(200, GAP_NS), (4 * GAP_NS, 5 * GAP_NS), (8 * GAP_NS, 9 * GAP_NS)]
    assert one.ask(WINDOWS) == [(1, *window) for window in kept]


def test_only_windows_of_the_best_part_of_the_run_count(written):
    tracings = [
        Tracing(0, 1_000, part=1),
        Tracing(2_000, 3_000, part=3),
        Tracing(4_000, 5_000),
        Tracing(6_000, 7_000, part=3),
    ]
    assert written(tracings=tracings).ask("SELECT begin_ns FROM gpu_tracing") == [
        (2_000,),
        (6_000,),
    ]


def test_activities_from_before_a_reset_do_not_count(written):
    tracings = [Tracing(0, 1_000), Tracing(2_000, 9_000)]
    one = written(
        gpu_samples=[GpuSample(2_000, 2_100), GpuSample(6_000, 6_100)],
        streams=[Stream(begin_ns=0)],
        tracings=tracings,
    )
    one.header(reset_ticks=planted.ticks_at(5_000))
    assert one.ask("SELECT start_ns FROM gpu_sample") == [(6_000,)]
    assert one.ask(WINDOWS) == [(1, 5_000, 10 * SECOND)]
    assert one.ask("SELECT begin_ns, end_ns FROM gpu_tracing") == [(5_000, 9_000)]


@pytest.mark.parametrize(
    "kind, field, value, table, what",
    (
        ("DEVICES", "kernels", 1 << 63, "gpu_device", "1 of its GPUs are"),
        ("ACTIVITIES", "kind", 0, "gpu_activity", "1 of its sums of GPU activities are"),
        ("ACTIVITIES", "kind", 4, "gpu_activity", "1 of its sums of GPU activities are"),
        ("ACTIVITIES", "copy", 7, "gpu_activity", "1 of its sums of GPU activities are"),
        ("ACTIVITIES", "min_ns", 101, "gpu_activity", "1 of its sums of GPU activities are"),
        ("ACTIVITIES", "total_ns", 1 << 62, "gpu_activity", "1 of its sums of GPU activities are"),
        ("TRACINGS", "ended", 6, "gpu_tracing", "1 of its times of tracing are"),
        ("TRACINGS", "end_ns", 1, "gpu_tracing", "1 of its times of tracing are"),
        ("TRACINGS", "records", 1 << 63, "gpu_tracing", "1 of its times of tracing are"),
        ("DEVICES", "communication_sm_ns", 1 << 63, "gpu_device", "1 of its GPUs are"),
        ("READINGS", "at_ns", 1, "gpu_reading", "1 of its readings of sensors are"),
        ("READINGS", "at_ns", 1 << 62, "gpu_reading", "1 of its readings of sensors are"),
        ("READINGS", "pcie_sent_bytes", 1 << 63, "gpu_reading", "1 of its readings of sensors are"),
        ("CPU_TIMES", "at_ns", 1, "cpu_time", "1 of its readings of CPU times are"),
        ("CPU_TIMES", "core_ns", 1 << 62, "cpu_time", "1 of its readings of CPU times are"),
        ("CPU_TIMES", "waiting_ns", 1 << 63, "cpu_time", "1 of its readings of CPU times are"),
        ("NEGOTIATIONS", "ahead_ns", 1 << 63, "negotiation", "1 of its negotiations are"),
        ("NEGOTIATIONS", "words_most", 1025, "negotiation", "1 of its negotiations are"),
        ("PLACES", "word", 1024, "negotiated_place", "1 of its words of negotiations are"),
        (
            "NEGOTIATED_STEPS",
            "agreed_ticks",
            0,
            "negotiated_step",
            "1 of its steps of negotiations are",
        ),
        ("ALGORITHMS", "count", 1 << 63, "nccl_algorithm", "1 of its algorithms of NCCL are"),
    ),
)
def test_what_is_damaged_is_left_out_and_said(written, kind, field, value, table, what):
    algorithms = [Algorithm("ncclAllReduce", 64, "RING", "LL", 2, 5)]
    known = {
        "activities": [Activity([100], 1)],
        "tracings": [Tracing(4_000, 5_000)],
        "readings": [Reading(4_000)],
        "cpu_times": [CpuTime(4_000, 70)],
        "negotiations": [Negotiation(7)],
        "places": [Place(3, 5)],
        "negotiated_steps": [NegotiatedStep(1, (6, 10, 20, 30, 40, 50))],
    }
    one = written(devices=[Device()], algorithms=algorithms, **known)
    assert len(one.ask(f"SELECT * FROM {table}")) == 1
    assert one.entries(kind, **{field: value}).ask(f"SELECT * FROM {table}") == []
    assert run_open(one.path).notes == [f"{one.path}: {what} damaged and left out"]


@pytest.mark.parametrize(
    "field, value",
    (("kind", 1), ("kind", 3), ("copy", 6), ("min_ns", 100), ("total_ns", (1 << 62) - 1)),
)
def test_what_is_at_its_bound_is_no_damage(written, field, value):
    one = written(devices=[Device()], activities=[Activity([100], 1)])
    assert len(one.entries("ACTIVITIES", **{field: value}).ask("SELECT * FROM gpu_activity")) == 1
    assert run_open(one.path).notes == []


def chunk_at(one: Written, kind: int) -> int:
    (start,) = [
        at
        for at in range(ledger.HEADER_BYTES, len(one.data), ledger.CHUNK_BYTES)
        if one.data[at] == kind
    ]
    return start + ledger.CHUNK.itemsize


@pytest.mark.parametrize(
    "field, value", (("kind", 0), ("copy", 9), ("stream", 2), ("end_ticks", 1))
)
def test_single_activities_that_are_damaged_are_left_out_and_said(written, field, value):
    one = written(gpu_samples=[GpuSample(6_000, 6_100)])
    at = chunk_at(one, ledger.SAMPLES) + planted.offsets(layout("page"))["samples"]
    one.put(layout("activity_sample"), at, field, value)
    assert one.ask("SELECT * FROM gpu_sample") == []
    assert (
        f"{one.path}: 1 of its samples are damaged and left out"
        in run_open(one.path, with_samples=True).notes
    )

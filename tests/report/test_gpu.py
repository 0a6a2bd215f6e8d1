"""Activity of GPUs against planted truth: every time and share, windows and pauses, steps, what
tracing costs, and what is said of it."""

from __future__ import annotations

import argparse
from functools import partial

import planted
import pytest
from commprof_report.steps.gpu_steps import StepTimes, TracingCost
from planted import SECOND, Activity, Device, GpuSample, Rank, Sample, Step, Stream, Tracing

MS = 1_000_000
GEMM = "_Z4gemmILi128ELb1EEvPKfPf"
STATES = {
    "".join(letter for bit, letter in enumerate("CKDM") if state >> bit & 1): 1 << state
    for state in range(16)
}


def gpu_rank(world_rank: int = 0, world_size: int = 1, **fields) -> Rank:
    """With one device, two streams, and tracing all the time."""
    usual = {
        "facts": {**planted.facts_of(world_rank), "boot_id": "one", "time_namespace": "time:[1]"},
        "communicators": planted.communicators_of(0)[:2],
        "gpu_state": "stopped",
        "devices": [Device(busy={"": 10 * SECOND})],
        "streams": [Stream(1, begin_ns=0), Stream(2, number=13, begin_ns=0)],
        "kernels": {1: (GEMM, 0), 2: ("ncclDevKernel_AllReduce", 1)},
        "tracings": [Tracing(0, 10 * SECOND, "stopped")],
        "windows": [planted.Window(0, 10 * SECOND)],
    }
    return Rank(world_rank, world_size, **{**usual, **fields})


@pytest.fixture
def asked(report, tmp_path):
    """asked(command, ranks, *words): the answer about these ranks."""

    def answer(command: str, ranks: list[Rank], *words: str, write=planted.write_databases):
        folder = write(tmp_path / f"run-{len(list(tmp_path.iterdir()))}", ranks)
        found = report(command, folder, *words)
        assert found.status == 0, found.err
        return found

    return answer


@pytest.fixture
def gpu(asked):
    return partial(asked, "gpu")


@pytest.fixture
def rows(gpu):
    return lambda ranks, *words, **how: gpu(ranks, "--json", *words, **how).rows


def test_what_was_not_summed_up_is_not_said_to_be_without_communication(gpu):
    """A process that is killed before its first records are old enough leaves kernels and no
    unions."""
    out = gpu([gpu_rank(devices=[Device()], activities=[Activity([500], kernel=2)])]).out
    assert "ncclDevKernel_AllReduce  communication" in out and "nothing has been summed up" in out
    said = "no kernel of a library that communicates was seen"
    assert said not in out and said in gpu([gpu_rank()]).out


# Times and shares.


def time_with(letters: str, without: str = "") -> int:
    """Time in STATES, by the letters of the definitions in docs/SCHEMA.md."""
    return sum(
        ns
        for state, ns in STATES.items()
        if set(letters) <= set(state) and not set(without) & set(state)
    )


TIMES = {
    "traced_ns": 0xFFFF,
    "computing_ns": time_with("C"),
    "communicating_ns": time_with("K"),
    "copying_ns": time_with("D"),
    "in_mpi_ns": time_with("M"),
    "exposed_ns": time_with("K", "C"),
    "strictly_exposed_ns": time_with("K", "CD"),
    "hidden_ns": time_with("CK"),
    "only_copying_ns": time_with("D", "CK"),
    "idle_ns": time_with("", "CKD"),
    "starved_ns": time_with("M", "CKD"),
    "exposed_mpi_ns": time_with("M", "C"),
}


@pytest.mark.parametrize("write", (planted.write_databases, planted.write_ledgers))
@pytest.mark.parametrize("table", ("device", "run"))
def test_every_time_is_the_sum_of_its_states(rows, table, write):
    """Each state's time is a power of two of its own, so that a sum tells which
    states are in it."""
    (row,) = rows([gpu_rank(devices=[Device(busy=STATES)])], "--by", table, write=write)
    assert {key: row[key] for key in TIMES} == TIMES
    assert row["exposed_share"] == time_with("K", "C") / 0xFFFF
    assert row["overlap"] == time_with("CK") / time_with("K")


def test_idle_computing_and_the_rest_are_all_the_time(rows):
    """Holistic Trace Analysis' temporal breakdown."""
    (row,) = rows([gpu_rank(devices=[Device(busy=STATES)])])
    rest_ns = row["traced_ns"] - row["idle_ns"] - row["computing_ns"]
    assert rest_ns == time_with("K", "C") + time_with("D", "CK")


def test_the_run_adds_devices_up_and_its_shares_are_of_the_sums(rows):
    """9 s with 6 s exposed, and 1 s with nothing: 60 %, not the mean of 67 % and 0."""
    ranks = [
        gpu_rank(0, 2, devices=[Device(busy={"K": 6, "C": 3})]),
        gpu_rank(1, 2, devices=[Device(busy={"C": 1})]),
    ]
    (row,) = rows(ranks, "--by", "run")
    assert (row["traced_ns"], row["exposed_ns"], row["exposed_share"], row["computing_share"]) == (
        10,
        6,
        0.6,
        0.4,
    )
    assert (row["devices"], row["traced_ranks"], row["ranks"]) == (2, 2, 2)


def test_a_rank_has_several_devices(rows):
    ranks = [
        gpu_rank(
            devices=[Device(1, {"C": 5}, number=2, uuid="GPU-a"), Device(2, {"K": 7}, number=0)]
        )
    ]
    assert [
        (row["rank"], row["device"], row["uuid"], row["computing_ns"], row["exposed_ns"])
        for row in rows(ranks)
    ] == [(0, 2, "GPU-a", 5, 0), (0, 0, "", 0, 7)]


def test_only_chosen_ranks_count(rows):
    ranks = [gpu_rank(rank, 3, devices=[Device(busy={"C": 1 << rank})]) for rank in range(3)]
    assert [row["rank"] for row in rows(ranks, "--rank", "1-2")] == [1, 2]
    (row,) = rows(ranks, "--rank", "1-2", "--by", "run")
    assert (row["computing_ns"], row["ranks"]) == (6, 2)


def test_a_device_that_was_never_traced_has_no_shares(rows, gpu):
    rank = gpu_rank(devices=[Device()])
    (row,) = rows([rank])
    assert [row[key] for key in ("traced_ns", "exposed_share", "overlap")] == [0, None, None]
    assert "unknown: nothing has been summed up" in gpu([rank]).out


# Kernels, copies, streams.


def test_kernels_are_told_by_name_over_ranks_and_streams(rows):
    """A name has another number on each rank."""
    one = gpu_rank(0, 2, kernels={1: (GEMM, 0), 2: ("nccl", 1)})
    two = gpu_rank(1, 2, kernels={1: ("nccl", 1), 2: (GEMM, 0)})
    one.activities = [
        Activity([10 * MS] * 98, 1),
        Activity([40 * MS] * 2, 1, stream=2, is_graph=1),
        Activity([100 * MS], 2, is_graph=1),
    ]
    two.activities = [Activity([10 * MS] * 100, 2), Activity([300 * MS], 1)]
    gemm, nccl = rows([one, two], "--by", "kernel")
    assert (
        gemm["name"],
        gemm["count"],
        gemm["graph_count"],
        gemm["ranks"],
        gemm["is_communication"],
    ) == (GEMM, 200, 2, 2, 0)
    assert (gemm["total_ns"], gemm["mean_ns"], gemm["min_ns"], gemm["max_ns"]) == (
        2_060 * MS,
        10.3 * MS,
        10 * MS,
        40 * MS,
    )
    assert gemm["p50_ns"] == pytest.approx(10 * MS, rel=1 / 16) and gemm["p99_ns"] == pytest.approx(
        10 * MS, rel=1 / 16
    )
    assert (nccl["total_ns"], nccl["share"], nccl["is_communication"]) == (400 * MS, 400 / 2_460, 1)
    one.activities[1].times = 2
    assert rows([one, two], "--by", "kernel")[0]["p99_ns"] == pytest.approx(40 * MS, rel=1 / 16)


def test_kernels_that_found_no_room_have_a_name_too(rows):
    rank = gpu_rank(kernels={65_535: ("", 0)}, activities=[Activity([5], 65_535), Activity([4], 7)])
    assert [(row["kernel"], row["total_ns"]) for row in rows([rank], "--by", "kernel")] == [
        ("(other kernels)", 9)
    ]


def test_top_says_how_many_kernels(rows, gpu):
    kernels = {number: (f"kernel_{number}", 0) for number in range(1, 31)}
    rank = gpu_rank(kernels=kernels, activities=[Activity([number], number) for number in kernels])
    assert len(rows([rank], "--by", "kernel")) == 30
    assert [row["kernel"] for row in rows([rank], "--by", "kernel", "--top", "2")] == [
        "kernel_30",
        "kernel_29",
    ]
    shown = gpu([rank]).out
    assert (
        shown.count("kernel_") == 12 and "... and 18 more; --by kernel --csv has them all." in shown
    )


def test_copies_are_told_by_direction_size_and_memory(rows):
    rank = gpu_rank()
    rank.activities = [
        Activity([1_000] * 4, kind="copy", copy="to device", bytes=4_096, volume_bytes=16_000),
        Activity([3_000], kind="copy", copy="to device", bytes=4_096, volume_bytes=3_000, stream=2),
        Activity([9_000], kind="copy", copy="to device", bytes=8_192, volume_bytes=8_192),
        Activity(
            [5_000], kind="copy", copy="to device", bytes=4_096, volume_bytes=4_000, is_pageable=1
        ),
        Activity([70], kind="memset", bytes=1, volume_bytes=1),
        Activity([80], kind="copy", copy="on device", bytes=0, volume_bytes=0, is_managed=1),
    ]
    found = rows([rank], "--by", "copy")
    keys = (
        "kind",
        "copy",
        "is_pageable",
        "is_managed",
        "bytes_low",
        "bytes_high",
        "count",
        "volume_bytes",
        "total_ns",
    )
    assert [tuple(row[key] for key in keys) for row in found] == [
        ("copy", "to device", 0, 0, 2_049, 4_096, 5, 19_000, 7_000),
        ("copy", "to device", 0, 0, 4_097, 8_192, 1, 8_192, 9_000),
        ("copy", "to device", 1, 0, 2_049, 4_096, 1, 4_000, 5_000),
        ("copy", "on device", 0, 1, 0, 0, 1, 0, 80),
        ("memset", "", 0, 0, 1, 1, 1, 1, 70),
    ]
    assert found[0]["bytes_per_s"] == 19_000 * 1e9 / 7_000


def test_streams_hold_what_ran_on_them(rows):
    rank = gpu_rank(streams=[Stream(1), Stream(2, number=13, context=3), Stream(3, device=9)])
    rank.activities = [
        Activity([10] * 3, 1),
        Activity([20] * 2, 2, stream=2),
        Activity([7], kind="copy", copy="to host", bytes=64, volume_bytes=60, stream=2),
        Activity([6], kind="memset", bytes=64, volume_bytes=40, stream=2),
        Activity([1], 1, stream=3),
    ]
    keys = (
        "stream",
        "device",
        "context",
        "number",
        "computing_kernels",
        "communicating_kernels",
        "copies",
        "sets",
    )
    keys += ("computing_ns", "communicating_ns", "copying_ns", "volume_bytes")
    assert [tuple(row[key] for key in keys) for row in rows([rank], "--by", "stream")] == [
        (2, 0, 3, 13, 0, 2, 1, 1, 0, 40, 13, 100),
        (1, 0, 1, 7, 3, 0, 0, 0, 30, 0, 0, 0),
        (3, None, 1, 7, 1, 0, 0, 0, 1, 0, 0, 0),
    ]


# Traced parts


def test_windows_say_why_they_ended(rows):
    windows = [
        Tracing(SECOND, 2 * SECOND),
        Tracing(4 * SECOND, 5 * SECOND, "yielded", 9_000),
        Tracing(8 * SECOND, 9 * SECOND, "off", None),
    ]
    others = [Tracing(0, 9 * SECOND, "lost"), Tracing(9 * SECOND, 10 * SECOND, "stopped")]
    ranks = [gpu_rank(0, 2, tracings=windows), gpu_rank(1, 2, tracings=others)]
    (row,) = rows(ranks, "--by", "run")
    assert (row["windows"], row["window_ns"], row["window_share"]) == (5, 13 * SECOND, 13 / 20)
    assert row["clock_error_ns"] is None
    assert [
        (row["rank"], row["ended"], row["clock_error_ns"]) for row in rows(ranks, "--by", "window")
    ][1:3] == [(0, "yielded", 9_000), (0, "off", None)]


def test_reports_say_how_much_was_traced_in_how_many_windows_of_which_ranks(asked):
    other = {
        "gpu_state": "refused",
        "facts": {"gpu.reason": "COMMPROF_GPU_ONE_RANK_IN=2: other ranks' are"},
    }
    ranks = [gpu_rank(0, 2, tracings=[Tracing(0, 2 * SECOND, records=5)]), Rank(1, 2, **other)]
    covered = "2.00 s of 10.0 s (20.0 %), 1 window of rank 0"
    out = asked("gpu", ranks).out
    assert line(out, "Traced") == f"Traced          {covered}"
    assert "rank 1: the GPU was not traced: COMMPROF_GPU_ONE_RANK_IN=2" in line(out, "No GPU")
    assert f"traced {covered}; see hvprof-report gpu" in asked("summary", ranks).out


def test_reports_say_which_part_of_the_run_was_traced(gpu):
    facts = [{"gpu.traced_part": part} if part else {} for part in ("steps", "first use", "")]
    windows = [Tracing(4 * SECOND, 7 * SECOND, records=5)]
    ranks = [
        gpu_rank(rank, 2, facts={**planted.facts_of(rank), **facts[rank]}, tracings=windows)
        for rank in range(2)
    ]
    out = gpu(ranks).out
    assert "from 4.00 s to 7.00 s of the run, while steps repeated (rank 0)" in out
    assert (
        "from 4.00 s to 7.00 s of the run, from the first use of a GPU on; steps were not seen to "
        "repeat before the end (rank 1)" in out
    )
    assert "of the run, while steps repeated\n" in gpu(ranks[:1]).out
    assert "of the run," not in gpu([gpu_rank(0, 2, tracings=windows)]).out


def test_a_window_without_any_record_is_doubted(gpu, rows):
    """CUPTI may have stopped to give records, in the second of its sessions for one
    (tokenspeed#1348)."""
    spans = ((0, 2 * SECOND, 5), (3 * SECOND, 5 * SECOND, 0), (6 * SECOND, 6 * SECOND + 1, 0))
    tracings = [Tracing(begin_ns, end_ns, records=records) for begin_ns, end_ns, records in spans]
    ranks = [gpu_rank(tracings=tracings)]
    assert rows(ranks, "--by", "run")[0]["empty_windows"] == 1
    assert "1 window without any record: the GPU was idle, or CUPTI gave none" in gpu(ranks).out


def test_idle_time_that_may_hold_graphs_is_marked(asked, rows):
    """Idle and exposed time are not known where a graph has left no record (pytorch#75504)."""
    facts = {"gpu.unseen_graph_launches": "12"}
    ranks = with_facts([gpu_rank(rank, 2) for rank in range(2)], facts, facts)
    assert rows(ranks, "--by", "run")[0]["unseen_graph_launches"] == 24
    said = "idle and exposed time may hold kernels of CUDA graphs: 24 launches left no record"
    assert said in asked("gpu", ranks).out
    out = asked("summary", ranks).out
    assert "idle or in CUDA graphs that left no record" in line(out, "GPU")
    assert "CUDA graphs" not in asked("gpu", [gpu_rank()]).out


def test_what_cupti_takes_on_the_device_is_said_once(gpu):
    facts = {"gpu.device_memory": "9.6 MB at first, at most 102 MB a context"}
    ranks = with_facts([gpu_rank(rank, 2) for rank in range(2)], facts, facts)
    assert gpu(ranks).out.count("device memory: 9.6 MB at first, at most 102 MB a context") == 1


def test_the_clock_is_off_by_the_most_of_all_windows(rows):
    tracings = [Tracing(0, SECOND, clock_error_ns=7_000), Tracing(SECOND, 2 * SECOND)]
    ranks = [gpu_rank(0, 2), gpu_rank(1, 2, tracings=tracings)]
    assert rows(ranks, "--by", "run")[0]["clock_error_ns"] == 7_000


def test_what_is_missing_is_said(gpu, rows):
    counts = {
        "dropped_records": 3,
        "implausible_records": 1,
        "late_records": 4,
        "unattributed_records": 5,
        "lost_intervals": 9,
    }
    counts.update(unmatched_operations=2, records=100)
    ranks = [gpu_rank(0, 2, gpu_counts=counts), gpu_rank(1, 2, gpu_counts=counts)]
    (row,) = rows(ranks, "--by", "run")
    assert {key: row[key] for key in counts} == {key: 2 * count for key, count in counts.items()}
    said = line(gpu(ranks).out, "Not recorded")
    for part in (
        "6 GPU records dropped",
        "2 GPU records with impossible",
        "8 GPU records too late",
        "10 GPU records counted together",
    ):
        assert part in said
    assert "18 MPI calls missing" in said
    assert "4 NCCL operations without a time on the device" in said
    assert "nothing is missing of 0 records" in line(gpu([gpu_rank()]).out, "Not recorded")


def late(late_ns: int, records: int = 834) -> dict:
    """Facts and counts of a rank."""
    facts = {**planted.facts_of(0), "gpu.late_ns": str(late_ns)}
    return {"facts": facts, "gpu_counts": {"late_records": records, "records": 10_000}}


BUSY = {"C": 8 * SECOND, "K": SECOND, "": SECOND}


def test_times_that_lack_late_records_are_unknown(asked, rows):
    """100 kernels/s on a device that never idles: 834 records came too late, and their time was
    idle to the sums."""
    rank = gpu_rank(devices=[Device(busy=BUSY)], **late(800_000_000))
    (device,) = rows([rank])
    for key in ("computing_share", "exposed_share", "idle_share", "overlap"):
        assert device[key] is None
    assert device["traced_ns"] == 0
    out = asked("gpu", [rank]).out
    assert line(out, "Late records") == (
        "Late records    1 device left out of the times below: records of activities of 800 ms"
        " came too late to be summed up"
    )
    assert line(out, "GPU time") == "GPU time        unknown: see above"
    assert "exposed communication" not in out
    assert "834 GPU records too late" in line(out, "Not recorded")
    out = asked("summary", [rank]).out
    assert "how busy is not known" in line(out, "GPU")


def test_late_records_of_no_weight_leave_the_times(gpu, rows):
    rank = gpu_rank(devices=[Device(busy=BUSY)], **late(50_000_000, records=1))
    (device,) = rows([rank])
    assert (device["idle_share"], device["exposed_share"]) == (0.1, 0.1)
    assert "Late records" not in gpu([rank]).out


def test_another_rank_s_late_records_leave_this_one_s_times(gpu, rows):
    ranks = [
        gpu_rank(0, 2, devices=[Device(busy=BUSY)], **late(800_000_000)),
        gpu_rank(1, 2, devices=[Device(busy=BUSY)]),
    ]
    assert [row["idle_share"] for row in rows(ranks)] == [None, 0.1]
    (run,) = rows(ranks, "--by", "run")
    assert (run["traced_ns"], run["idle_share"]) == (10 * SECOND, 0.1)
    assert "1 of 2 devices left out" in line(gpu(ranks).out, "Late records")


def test_what_a_kill_may_have_lost_is_said(gpu):
    """The age of CUPTI's buffers that had not come back."""
    ranks = [gpu_rank(rank, 2) for rank in range(2)]
    assert "nothing is missing of 0 records" in line(gpu(ranks).out, "Not recorded")
    said = "up to 1.20 s of GPU records before the end: not collected yet"
    with_facts(ranks, {}, {"gpu.uncollected_ns": "1200000000"})
    assert line(gpu(ranks).out, "Not recorded").endswith(f"{said}, on rank 1")
    with_facts(ranks, {"gpu.uncollected_ns": "900000000"})
    assert line(gpu(ranks).out, "Not recorded").endswith(said)


def test_what_the_interface_held_back_at_the_end_is_said_by_gpu_and_summary(asked):
    cut_off = {"gpu.reason": "it did not answer"}
    ranks = [gpu_rank(0, 2), gpu_rank(1, 2)]
    assert line(asked("summary", ranks).out, "Seen").endswith("all calls")
    with_facts(ranks, {}, cut_off)
    said = "GPU records at the end: it did not answer, on rank 1"
    assert line(asked("gpu", ranks).out, "Not recorded").endswith(said)
    assert said in asked("summary", ranks).prose
    unseen = Rank(0, 1, gpu_state="stopped", facts={**planted.facts_of(0), **cut_off})
    assert "it did not answer" in asked("gpu", [unseen]).out


def line(text: str, head: str) -> str:
    (found,) = [line for line in text.splitlines() if line.startswith(head)]
    return found


def with_facts(ranks: list[Rank], *facts: dict[str, str]) -> list[Rank]:
    for rank, own in zip(ranks, facts):
        rank.facts = {**rank.facts, **own}
    return ranks


@pytest.mark.parametrize(
    "state, facts, what",
    (
        ("none", {}, "no GPU was used, or none was found"),
        ("dormant", {}, "there is a GPU, the program has not used it"),
        (
            "refused",
            {"gpu.reason": "nsys traces this process"},
            "the GPU was not traced: nsys traces this process",
        ),
        ("paused", {}, "nothing that a GPU did was seen"),
    ),
)
def test_without_a_gpu_one_line_says_why(gpu, state, facts, what):
    rank = Rank(0, 1, gpu_state=state, facts={**planted.facts_of(0), **facts})
    assert gpu([rank]).out == f"No GPU          {what}\n"
    assert gpu([rank], "--json").rows == []
    assert gpu([rank], "--by", "kernel").out == "not known of these ranks\n"


def test_ranks_without_a_gpu_are_named_beside_the_others(gpu):
    refused = {"gpu_state": "refused", "facts": {"gpu.reason": "error 35"}}
    out = gpu([gpu_rank(0, 3), Rank(1, 3, **refused), Rank(2, 3, **refused)]).out
    assert line(out, "GPUs") == "GPUs            1 device, 1 of 3 ranks: NVIDIA H100 80GB HBM3"
    assert line(out, "No GPU") == "No GPU          ranks 1-2: the GPU was not traced: error 35"


def test_the_first_lines_say_where_the_time_goes(gpu):
    busy = {
        "C": 5 * SECOND,
        "CK": SECOND,
        "K": SECOND,
        "KD": SECOND,
        "M": SECOND // 2,
        "": SECOND,
        "CM": SECOND // 2,
    }
    out = gpu([gpu_rank(devices=[Device(busy=busy)])]).out.splitlines()
    assert out[1:6] == [
        "GPU time        65.0 % computing, 30.0 % communicating, 10.0 % copying, 15.0 % idle, some "
        "at once;"
        " of 10.0 s that were traced, over all devices",
        "Communication   20.0 % of the traced time is exposed communication (2.00 s);"
        " 33.3 % of all communication is hidden behind computing (1.00 s)",
        "                10.0 % (1.00 s) if copies hide it, too",
        "Idle            15.0 % (1.50 s); while the process was in MPI 5.0 % (500 ms)",
        "Process in MPI  10.0 % (1.00 s); while no kernel computed 5.0 % (500 ms)",
    ]


# Steps.


def marked(count: int, step_ns: int = 100 * MS, begin_ns: int = 0) -> list[Step]:
    return [
        Step(1 + at, begin_ns + at * step_ns, begin_ns + (at + 1) * step_ns) for at in range(count)
    ]


def working(steps: list[Step]) -> list[GpuSample]:
    """In each step: 40 ms of computing, in two kernels of 25 ms of which 10 ms at once;
    communication from 30 ms to 60 ms; a copy from 50 ms to 70 ms. Exposed are 20 ms, strictly 10
    ms."""
    found = []
    for step in steps:
        at = step.begin_ns
        found += [
            GpuSample(at, at + 25 * MS, 1),
            GpuSample(at + 15 * MS, at + 40 * MS, 1, stream=2),
            GpuSample(at + 30 * MS, at + 60 * MS, 2, stream=2, communicator=planted.NCCL),
            GpuSample(at + 50 * MS, at + 70 * MS, kind="copy", copy="to host", bytes=1_000),
        ]
    return found


def calls(steps: list[Step]) -> list[Sample]:
    """In MPI from 65 ms to 90 ms; then in NCCL for 5 ms, which is not MPI."""
    in_mpi = [
        Sample("MPI_Barrier", step.begin_ns + 65 * MS, step.begin_ns + 90 * MS, sequence=step.step)
        for step in steps
    ]
    nccl = [
        Sample(
            "ncclAllReduce",
            step.begin_ns + 92 * MS,
            step.begin_ns + 97 * MS,
            planted.NCCL,
            step.step,
        )
        for step in steps
    ]
    return in_mpi + nccl


def step_rank(world_rank: int = 0, world_size: int = 1, count: int = 12, **fields) -> Rank:
    steps = marked(count)
    usual = {
        "devices": [Device(busy={"K": SECOND, "": 9 * SECOND})],
        "gpu_samples": working(steps),
        "samples": calls(steps),
    }
    rank = gpu_rank(world_rank, world_size, steps=steps, **{**usual, **fields})
    begun = [planted.Collective("MPI_Barrier")] * count
    rank.communicators = [
        planted.Communicator(
            planted.WORLD, planted.WORLD_IDENTITY, "0", world_size, world_rank, begun=begun
        )
    ]
    return rank


@pytest.mark.parametrize("write", (planted.write_databases, planted.write_ledgers))
def test_a_step_has_the_unions_of_what_ran_in_it(rows, write):
    found = rows([step_rank()], "--by", "step", write=write)
    assert [row["step"] for row in found] == list(range(1, 13))
    assert {key: value / MS for key, value in found[5].items() if key.endswith("_ns")} == {
        "step_ns": 100,
        "computing_ns": 40,
        "communicating_ns": 30,
        "copying_ns": 20,
        "exposed_ns": 20,
        "strictly_exposed_ns": 10,
        "hidden_ns": 10,
        "idle_ns": 30,
        "exposed_mpi_ns": 25,
        "starved_ns": 20,
    }
    assert (
        found[5]["exposed_share"],
        found[5]["devices"],
        found[0]["is_warm_up"],
        found[5]["is_warm_up"],
    ) == (0.2, 1, 1, 0)


def test_the_sums_of_the_run_say_what_a_step_has_in_the_median(asked, rows):
    (row,) = rows([step_rank()], "--by", "run")
    assert {key: row[key] for key in StepTimes._fields} == {
        "steps": 11,
        "step_ns": 100 * MS,
        "step_exposed_ns": 20 * MS,
        "step_exposed_share": 0.2,
    }
    (steps,) = asked("steps", [step_rank()], "--json").rows
    assert {key: steps[key] for key in steps if key.startswith("gpu_")} == {
        "gpu_steps": 11,
        "gpu_step_ns": 100 * MS,
        "gpu_exposed_ns": 20 * MS,
        "gpu_exposed_share": 0.2,
    }
    said = "On the GPU      20.0 % exposed communication (20.0 ms of 100 ms; medians of 11 steps"
    assert said in asked("steps", [step_rank()]).out
    said = "in a step     20.0 % exposed, 20.0 ms of 100 ms (medians of 11 steps)"
    assert said in asked("gpu", [step_rank()]).out


def test_a_step_is_the_mean_over_devices(rows):
    """On rank 1 nothing computes."""
    other = step_rank(1, 2)
    other.gpu_samples = [one for one in other.gpu_samples if one.kind == "copy" or one.kernel == 2]
    (row,) = [row for row in rows([step_rank(0, 2), other], "--by", "step") if row["step"] == 3]
    assert (row["devices"], row["exposed_ns"], row["computing_ns"]) == (2, 25 * MS, 20 * MS)
    chosen = rows([step_rank(0, 2), other], "--by", "step", "--rank", "1")
    assert {(row["devices"], row["exposed_ns"]) for row in chosen[:-1]} == {(1, 30 * MS)}


def test_a_step_that_was_not_traced_whole_is_not_known(rows):
    windows = [Tracing(150 * MS, 450 * MS), Tracing(500 * MS, 700 * MS)]
    assert [row["step"] for row in rows([step_rank(tracings=windows)], "--by", "step")] == [
        3,
        4,
        6,
        7,
    ]


def test_a_step_of_which_a_stream_has_not_sampled_all_is_not_known(rows, report, tmp_path):
    streams = [Stream(1, begin_ns=0), Stream(2, number=13, begin_ns=300 * MS)]
    assert [row["step"] for row in rows([step_rank(streams=streams)], "--by", "step")] == list(
        range(4, 13)
    )
    folder = planted.write_databases(tmp_path / "gaps", [step_rank()])
    path, forget = folder / "rank-0.db", "DELETE FROM gpu_sample_window WHERE stream = 2;"
    spans = ", ".join(
        f"(0, 2, {begin_ms * MS}, {end_ms * MS})"
        for begin_ms, end_ms in ((0, 250), (250, 420), (600, 1_000))
    )
    planted.execute(path, f"{forget} INSERT INTO gpu_sample_window VALUES {spans}")
    assert [row["step"] for row in report("gpu", folder, "--by", "step", "--json").rows] == [
        1,
        2,
        3,
        4,
        7,
        8,
        9,
        10,
    ]
    planted.execute(path, forget)
    assert report("gpu", folder, "--by", "step", "--json").rows == []


def test_streams_that_found_no_room_leave_several_devices_unknown(rows):
    streams = [Stream(1, begin_ns=0), Stream(2, number=13, begin_ns=0), Stream(1_023, begin_ns=0)]
    assert len(rows([step_rank(streams=streams)], "--by", "step")) == 12
    streams.append(Stream(4, device=2, begin_ns=0))
    assert rows([step_rank(streams=streams, devices=[Device(1), Device(2)])], "--by", "step") == []


def test_a_device_that_did_nothing_is_idle_in_every_step(rows):
    found = rows([step_rank(samples=[], gpu_samples=[])], "--by", "step")
    assert len(found) == 12 and {(row["idle_ns"], row["exposed_ns"]) for row in found[:-1]} == {
        (100 * MS, 0)
    }


def test_time_in_mpi_is_unknown_where_calls_are_missing(rows):
    rank = step_rank()
    rank.samples = [sample for sample in rank.samples if sample.sequence != 4]
    rank.windows = [planted.Window(0, 350 * MS), planted.Window(420 * MS, rank.wall_ns)]
    rank.cells = [planted.Cell("MPI_Barrier", 0, [25 * MS] * 12)]
    starved = {row["step"]: row["starved_ns"] for row in rows([rank], "--by", "step")}
    assert starved[4] is None and starved[8] == 20 * MS


# Cost of tracing


def alternating(
    count: int = 60, on_ns: int = 11 * MS, off_ns: int = 10 * MS, ended: str = "duty"
) -> Rank:
    """Tracing is on for twelve steps, then off for twelve."""
    steps, windows, at = [], [], 0
    for number in range(1, count + 1):
        is_on = (number - 1) // 12 % 2 == 0
        scatter = (number % 3 - 1) * 100_000
        steps.append(Step(number, at, at + (on_ns if is_on else off_ns) + scatter))
        if is_on and (number - 1) % 12 == 0:
            windows.append(Tracing(at, 0, ended))
        at = steps[-1].end_ns
        if is_on:
            windows[-1].end_ns = at
    return gpu_rank(
        steps=steps, tracings=windows, samples=[Sample("MPI_Barrier", at - 2, at, sequence=1)]
    )


def cost_of(row: dict) -> dict:
    return {key: row[key] for key in TracingCost._fields}


def test_steps_with_tracing_are_held_against_those_without(rows, gpu):
    cost = cost_of(rows([alternating()], "--by", "run")[0])
    error = 2 * 1.2533 * 1.4826 * (1e5**2 / 35 + 1e5**2 / 24) ** 0.5 / 10e6
    assert cost.pop("tracing_cost_error_share") == pytest.approx(error)
    assert cost.pop("tracing_cost_share") == pytest.approx(0.1)
    assert cost == {
        "traced_steps": 35,  # the first one is warm-up
        "traced_step_ns": 11 * MS,
        "traced_deviation_ns": 100_000,
        "untraced_steps": 24,
        "untraced_step_ns": 10 * MS,
        "untraced_deviation_ns": 100_000,
    }
    said = line(gpu([alternating()]).out, "Cost of tracing")
    assert (
        "+10.0 % of a step, within 1.0 %: 11.0 ms with tracing, 10.0 ms without (medians of 35 and "
        "24 steps, +- 100 us and 100 us)" in said
    )


def test_a_difference_within_its_error_is_not_called_one(gpu):
    said = line(gpu([alternating(on_ns=10 * MS + 20_000)]).out, "Cost of tracing")
    assert "too small to measure (+0.2 % of a step, within 1.0 %)" in said


def test_too_few_steps_on_a_side_tell_nothing(gpu, rows):
    rank = alternating(count=21)
    assert rows([rank], "--by", "run")[0]["tracing_cost_share"] is None
    assert line(gpu([rank]).out, "Cost of tracing") == (
        "Cost of tracing unknown: 11 steps with tracing, 9 without; 10 of each are needed"
    )


def test_while_another_tool_traces_steps_are_not_without_tracing(rows):
    assert rows([alternating(ended="yielded")], "--by", "run")[0]["untraced_steps"] == 0


def test_a_step_that_one_rank_traces_and_another_does_not_is_left_out(rows):
    one, two, untraced = alternating(), alternating(), Rank(2, 3, steps=alternating().steps)
    two.world_rank, one.world_size, two.world_size = 1, 3, 3
    two.tracings = [Tracing(0, two.steps[5].end_ns), *two.tracings[1:]]
    row = rows([one, two, untraced], "--by", "run")[0]
    assert (row["traced_steps"], row["untraced_steps"]) == (35 - 6, 24)


# Ranks that share a GPU.

SHARED = "GPU-5ba1e1f2"


def sharing_rank(
    world_rank: int, begin_ms: int, end_ms: int, uuid: str = SHARED, world_size: int = 2, **fields
) -> Rank:
    """Ten seconds in which one kernel computes from begin_ms to end_ms. Each rank starts a second
    after the one before."""
    usual = {
        "devices": [
            Device(
                busy={"C": (end_ms - begin_ms) * MS, "": 10 * SECOND - (end_ms - begin_ms) * MS},
                uuid=uuid,
                kernels=1,
            )
        ],
        "gpu_samples": [GpuSample(begin_ms * MS, end_ms * MS, 1)],
        "streams": [Stream(1, begin_ns=0)],
    }
    return gpu_rank(world_rank, world_size, **{**usual, **fields})


def two_sharing(**fields) -> list[Rank]:
    """Rank 0 computes from 1 s to 5 s, rank 1 from 4 s to 7 s: 6 s of ten, 1 s of it both."""
    return [sharing_rank(0, 1_000, 5_000, **fields), sharing_rank(1, 4_000, 7_000, **fields)]


def two_alone(**fields) -> list[Rank]:
    ranks = two_sharing(**fields)
    ranks[1].devices[0].uuid = "GPU-0other"
    return ranks


@pytest.mark.parametrize("write", (planted.write_databases, planted.write_ledgers))
def test_a_gpu_that_ranks_share_is_one_device_with_the_union_of_what_they_ran(rows, write):
    (device,) = rows(two_sharing(), write=write)
    assert (
        device["rank"],
        device["ranks"],
        device["sharing_ranks"],
        device["merged_ranks"],
        device["kernels"],
    ) == (0, "0-1", 2, 2, 2)
    assert (device["traced_ns"], device["computing_ns"], device["idle_share"]) == (
        10 * SECOND,
        6 * SECOND,
        0.4,
    )
    (run,) = rows(two_sharing(), "--by", "run", write=write)
    assert (run["devices"], run["shared_devices"], run["unmerged_devices"], run["idle_share"]) == (
        1,
        1,
        0,
        0.4,
    )
    one, two = rows(two_alone(), write=write)
    assert [(row["ranks"], row["sharing_ranks"], row["idle_share"]) for row in (one, two)] == [
        ("0", 1, 0.6),
        ("1", 1, 0.7),
    ]
    (run,) = rows(two_alone(), "--by", "run", write=write)
    assert (run["devices"], run["shared_devices"], run["idle_share"]) == (2, 0, 0.65)


def test_what_each_rank_did_on_a_shared_gpu_has_a_table_of_its_own(rows):
    one, two = rows(two_sharing(), "--by", "rank")
    assert [
        (row["rank"], row["ranks"], row["merged_ranks"], row["computing_ns"]) for row in (one, two)
    ] == [(0, "0-1", 1, 4 * SECOND), (1, "0-1", 1, 3 * SECOND)]
    assert rows(two_alone(), "--by", "rank") == rows(two_alone(), "--by", "device")


def test_ranks_of_a_shared_gpu_are_merged_on_their_hosts_clock(rows):
    """Rank 1 starts 3 s later, so its kernel runs from 7 s to 10 s of rank 0, and both are traced
    from 3 s on."""
    ranks = two_sharing()
    ranks[1].start_monotonic_ns += 3 * SECOND
    (device,) = rows(ranks)
    assert (device["traced_ns"], device["computing_ns"]) == (7 * SECOND, 5 * SECOND)


def test_a_shared_gpu_is_in_mpi_while_any_of_its_ranks_is(rows):
    ranks = two_sharing()
    for rank, (begin_ms, end_ms) in zip(ranks, ((500, 1_500), (1_200, 1_700))):
        rank.samples = [Sample("MPI_Barrier", begin_ms * MS, end_ms * MS, sequence=1)]
        rank.cells = [planted.Cell("MPI_Barrier", 0, [(end_ms - begin_ms) * MS])]
    (device,) = rows(ranks)
    assert (device["in_mpi_ns"], device["starved_ns"], device["exposed_mpi_ns"]) == (
        1_200 * MS,
        500 * MS,
        500 * MS,
    )
    ranks[1].windows = [planted.Window(5 * SECOND, 10 * SECOND)]  # its calls before are not sampled
    assert rows(ranks)[0]["traced_ns"] == 5 * SECOND


def test_where_only_sums_are_known_what_ranks_ran_at_once_is_not(rows, asked):
    unsampled = {"streams": [Stream(1)], "gpu_samples": []}
    (device,) = rows(two_sharing(**unsampled))
    assert (device["traced_ns"], device["idle_share"]) == (0, None)
    (run,) = rows(two_sharing(**unsampled), "--by", "run")
    assert (run["devices"], run["unmerged_devices"], run["traced_ns"], run["idle_share"]) == (
        1,
        1,
        0,
        None,
    )
    out = asked("gpu", two_sharing(**unsampled)).out
    assert "not known for 1 device, left out of the times below" in out
    assert line(out, "GPU time") == "GPU time        unknown: see above"
    assert line(asked("summary", two_sharing(**unsampled)).out, "GPU") == (
        "GPU             1 device, 1 shared by ranks: how busy is not known; see hvprof-report gpu"
    )


def test_hosts_are_known_by_their_kernel_not_by_their_name(rows):
    """Two hosts of one name do not share a GPU; two containers of one host may, whatever they are
    called."""
    same_name = with_facts(
        two_sharing(), {"host": "node", "boot_id": "one"}, {"host": "node", "boot_id": "two"}
    )
    assert len(rows(same_name)) == 2
    containers = with_facts(two_sharing(), {"host": "c1"}, {"host": "c2"})
    (device,) = rows(containers)
    assert (device["host"], device["ranks"]) == ("c1", "0-1")
    old = with_facts(
        two_sharing(), {"host": "node", "boot_id": ""}, {"host": "node", "boot_id": ""}
    )
    (device,) = rows(old)  # by name, but without a common clock
    assert device["traced_ns"] == 0


def test_ranks_that_each_see_one_gpu_are_told_apart_by_uuid(rows):
    """In containers, or by CUDA_VISIBLE_DEVICES, all of them have number 0."""
    ranks = [sharing_rank(rank, 0, 1_000, f"MIG-{rank // 2}", 4) for rank in range(4)]
    assert [(row["ranks"], row["uuid"], row["device"]) for row in rows(ranks)] == [
        ("0-1", "MIG-0", 0),
        ("2-3", "MIG-1", 0),
    ]


def test_gpus_without_a_uuid_are_not_merged(rows):
    assert [(row["ranks"], row["idle_share"]) for row in rows(two_sharing(uuid=""))] == [
        ("0", 0.6),
        ("1", 0.7),
    ]


def test_a_step_has_what_all_ranks_ran_on_a_shared_gpu_and_counts_it_once(rows):
    """Rank 0 computes for 40 ms from 0, rank 1 for 30 ms from 30 ms on: 60 ms of 100."""
    ranks = [
        step_rank(rank, 2, devices=[Device(busy={"": 10 * SECOND}, uuid=SHARED)], samples=[])
        for rank in range(2)
    ]
    for rank, (begin_ms, end_ms) in zip(ranks, ((0, 40), (30, 60))):
        rank.gpu_samples = [
            GpuSample(step.begin_ns + begin_ms * MS, step.begin_ns + end_ms * MS, 1)
            for step in rank.steps
        ]
    assert {
        (row["devices"], row["computing_ns"], row["idle_ns"]) for row in rows(ranks, "--by", "step")
    } == {(1, 60 * MS, 40 * MS)}
    ranks[1].steps = [
        Step(step.step, step.begin_ns, step.begin_ns + 80 * MS) for step in ranks[1].steps
    ]
    found = rows(ranks, "--by", "step")
    assert {
        (row["devices"], row["step_ns"], row["computing_ns"], row["idle_ns"]) for row in found
    } == {(1, 90 * MS, 60 * MS, 30 * MS)}
    ranks[1].devices[0].uuid = "GPU-0other"
    assert {
        (row["devices"], row["computing_ns"], row["idle_ns"]) for row in rows(ranks, "--by", "step")
    } == {(2, 35 * MS, 55 * MS)}


def test_shared_gpus_are_marked_in_text_page_and_timeline_and_no_other(asked, tmp_path):
    out = asked("gpu", two_sharing()).out
    assert line(out, "GPUs") == "GPUs            1 device, 2 ranks: NVIDIA H100 80GB HBM3"
    assert line(out, "Shared") == "Shared          1 device: ranks 0-1 use GPU 0 of node00"
    assert (
        "busy while any of its ranks is: known for 10.0 s, where all activities and MPI calls are "
        "sampled" in out
    )
    assert "GPU's ranks" in out and "rank idle" in out
    busy = "GPU time        60.0 % computing, 0.00 % communicating"
    assert line(out, "GPU time").startswith(busy)
    in_summary = line(asked("summary", two_sharing()).out, "GPU")
    assert "(1 device, 1 shared by ranks; traced" in in_summary
    trace = asked("export", two_sharing(), "--format", "perfetto").out
    assert '"GPU 0 (shared with rank 1), stream 7"' in trace
    asked("html", two_sharing(), "-o", str(tmp_path / "shared.html"))
    assert "ranks 0-1 use GPU 0 of node00" in (tmp_path / "shared.html").read_text()
    alone = asked("gpu", two_alone()).out
    assert "hared" not in alone and "rank idle" not in alone
    assert "shared" not in line(asked("summary", two_alone()).out, "GPU")
    assert '"GPU 0, stream 7"' in asked("export", two_alone(), "--format", "perfetto").out


def test_ranks_that_were_not_selected_are_named_on_a_shared_gpu(rows, gpu):
    (device,) = rows(two_sharing(), "--rank", "1")
    assert (device["rank"], device["ranks"], device["merged_ranks"], device["computing_ns"]) == (
        1,
        "0-1",
        1,
        3 * SECOND,
    )
    assert (
        "1 device also used by ranks that are not selected: times are of the selected ones alone"
        in gpu(two_sharing(), "--rank", "1").out
    )
    assert "not selected" not in gpu(two_sharing()).out


# Other commands.


@pytest.mark.slow
@pytest.mark.parametrize("table", ("run", "device", "kernel", "copy", "stream", "step", "window"))
def test_databases_ledgers_and_a_merged_database_answer_the_same(report, tmp_path, table):
    databases = planted.write_databases(tmp_path / "databases", planted.gpu_run())
    ledgers = planted.write_ledgers(tmp_path / "ledgers", planted.gpu_run())
    report("merge", databases, tmp_path / "all.db")
    found = [
        report("gpu", path, "--by", table, "--json").rows
        for path in (databases, ledgers, tmp_path / "all.db")
    ]
    assert found[0] and found[0] == found[2]
    if table != "window":
        assert found[0] == found[1]


def test_the_summary_has_a_line_on_gpus_where_there_are_any(asked, report, run_folder):
    out = asked("summary", [gpu_rank(devices=[Device(busy={"C": 6, "K": 1, "": 3})])]).out
    assert line(out, "GPU") == (
        "GPU             60.0 % computing, 10.0 % exposed communication, 30.0 % idle"
        " (1 device; traced 10.0 s of 10.0 s (100.0 %), 1 window of rank 0; see hvprof-report gpu)"
    )
    assert line(out, "Set-up")
    assert "GPU" not in report("summary", run_folder).out
    facts = {**planted.facts_of(0), "gpu.reason": "error 35"}
    out = asked("summary", [Rank(0, 1, gpu_state="refused", facts=facts)]).out
    assert line(out, "Seen").endswith("GPUs not traced: error 35")


@pytest.mark.slow
def test_the_page_has_a_section_on_gpus_where_there_are_any(report, run_folder, tmp_path):
    folder = planted.write_databases(tmp_path / "gpus", planted.gpu_run())
    report("html", folder, "-o", tmp_path / "with.html")
    page = (tmp_path / "with.html").read_text()
    assert (
        "<h2>GPUs</h2>" in page
        and "ampere_sgemm_128&lt;32&gt;" in page
        and "exposed communication" in page
    )
    report("html", run_folder, "-o", tmp_path / "without.html")
    assert "<h2>GPUs</h2>" not in (tmp_path / "without.html").read_text()


def test_a_picture_of_the_gpus_stacks_up_to_the_traced_time(report, tmp_path):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    from commprof_report.gpu import gpu_activity as gpus
    from commprof_report.plots import bars
    from commprof_report.run.run import run_open
    from commprof_report.run.selection import select

    ranks = [gpu_rank(0, 2, devices=[Device(1, STATES), Device(2, {"C": 9})]), gpu_rank(1, 2)]
    ranks[0].activities = [Activity([70], 1), Activity([30], 2)]
    run = run_open(planted.write_databases(tmp_path / "run", ranks))
    select(
        run, argparse.Namespace(call=None, communicator=None, region=None, rank=None, bytes=None)
    )
    axes = figure.add_subplot()
    devices = gpus.gpu(run.connection).devices
    bars.of_gpus(devices).draw(axes)
    heights = [
        sum(
            bar.get_height()
            for bar in axes.patches
            if round(bar.get_x() + bar.get_width() / 2) == place
        )
        for place in range(3)
    ]
    assert heights == [0xFFFF, 9, 10 * SECOND]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0:0", "0:0", "1:0"]
    axes = figure.add_subplot()
    bars.of_gpus(devices[1:2]).draw(axes)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["computing"]
    axes = figure.add_subplot()
    bars.of_kernels(gpus.kernels(run.connection)).draw(axes)
    bars = sorted((bar for bar in axes.patches if bar.get_width()), key=lambda bar: bar.get_y())
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert list(zip(names, (bar.get_width() for bar in bars))) == [
        ("gemm<128, true>", 70),
        ("ncclDevKernel_AllReduce", 30),
    ]
    assert report("gpu", tmp_path / "run", "--plot", tmp_path / "gpu.svg").status == 0
    assert (tmp_path / "gpu.svg").read_bytes().startswith(b"<?xml")
    assert (
        report("gpu", tmp_path / "run", "--by", "kernel", "--plot", tmp_path / "kernels.svg").status
        == 0
    )
    assert (
        b"Time by kernel" in (tmp_path / "kernels.svg").read_bytes()
        and b"Time by kernel" not in (tmp_path / "gpu.svg").read_bytes()
    )


def test_prometheus_has_the_time_in_each_state(asked):
    devices = [Device(busy={"K": SECOND, "CKDM": 2 * SECOND}, number=3)]
    out = asked("export", [gpu_rank(devices=devices)], "--format", "prometheus").out.splitlines()
    labels = 'run="job-1",rank="0",device="3"'
    for states, seconds in (("0100", "1.0"), ("1111", "2.0")):
        names = zip(("computing", "communicating", "copying", "in_mpi"), states)
        where = ",".join([labels, *(f'{name}="{state}"' for name, state in names)])
        assert f"commprof_gpu_seconds_total{{{where}}} {seconds}" in out
    assert 'commprof_gpu_dropped_records_total{run="job-1",rank="0"} 0' in out


@pytest.mark.parametrize(
    "words",
    (("--top", "0"), ("--top", "-1"), ("--by", "thing"), ("--region", "epoch"), ("--rank", "9")),
)
def test_wrong_options_are_refused(report, tmp_path, words):
    folder = planted.write_databases(tmp_path / "run", [gpu_rank()])
    answer = report("gpu", folder, *words)
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)

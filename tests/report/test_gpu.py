"""Activity of GPUs against planted truth: every time and share, windows and pauses, steps, what
tracing costs, and what is said of it."""

from __future__ import annotations

import planted
import pytest
from cases import Columns, No, Row, check
from planted import SECOND, Activity, Device, GpuSample, Rank, Sample, Step, Stream, Tracing

MS = 1_000_000
GEMM = "_Z4gemmILi128ELb1EEvPKfPf"
STATES = {
    "".join(letter for bit, letter in enumerate("CKDM") if state >> bit & 1): 1 << state
    for state in range(16)
}
BOTH_WAYS = pytest.mark.parametrize("write", (planted.write_databases, planted.write_ledgers))


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


def busy(rank: int = 0, size: int = 1, **fields) -> Rank:
    """80 % computing, 10 % communicating, 10 % idle."""
    device = Device(busy={"C": 8 * SECOND, "K": SECOND, "": SECOND})
    return gpu_rank(rank, size, devices=[device], **fields)


def with_facts(ranks: list[Rank], *facts: dict[str, str]) -> list[Rank]:
    for rank, own in zip(ranks, facts):
        rank.facts = {**rank.facts, **own}
    return ranks


def two(*facts: dict[str, str], **fields) -> list[Rank]:
    return with_facts([gpu_rank(rank, 2, **fields) for rank in range(2)], *facts)


def without(state: str, rank: int = 0, size: int = 1, **facts: str) -> Rank:
    own = {f"gpu.{name}": value for name, value in facts.items()}
    return Rank(rank, size, gpu_state=state, facts={**planted.facts_of(0), **own})


# Times and shares


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
    "exposed_share": time_with("K", "C") / 0xFFFF,
    "overlap": time_with("CK") / time_with("K"),
}


@BOTH_WAYS
@pytest.mark.parametrize("table", ("device", "run"))
def test_every_time_is_the_sum_of_its_states(report, tmp_path, table, write):
    """Each state's time is a power of two of its own, so that a sum tells which
    states are in it."""
    folder = write(tmp_path, [gpu_rank(devices=[Device(busy=STATES)])])
    check(report, tmp_path, folder, (f"gpu --by {table}", TIMES))


def of_numbers() -> list[Rank]:
    """A kernel has another number on each rank."""
    one = gpu_rank(0, 2, kernels={1: (GEMM, 0), 2: ("nccl", 1)})
    other = gpu_rank(1, 2, kernels={1: ("nccl", 1), 2: (GEMM, 0)})
    one.activities = [Activity([10 * MS] * 98, 1), Activity([40 * MS] * 2, 1, stream=2, is_graph=1)]
    one.activities.append(Activity([100 * MS], 2, is_graph=1))
    other.activities = [Activity([10 * MS] * 100, 2), Activity([300 * MS], 1)]
    return [one, other]


def many_kernels() -> list[Rank]:
    kernels = {number: (f"kernel_{number}", 0) for number in range(1, 31)}
    return [gpu_rank(kernels=kernels, activities=[Activity([n], n) for n in kernels])]


def copies() -> list[Rank]:
    four = {"kind": "copy", "copy": "to device", "bytes": 4_096}
    eight = {**four, "bytes": 8_192, "volume_bytes": 8_192}
    on_device = {"kind": "copy", "copy": "on device", "is_managed": 1}
    activities = [
        Activity([1_000] * 4, volume_bytes=16_000, **four),
        Activity([3_000], volume_bytes=3_000, stream=2, **four),
        Activity([9_000], **eight),
        Activity([5_000], volume_bytes=4_000, is_pageable=1, **four),
        Activity([70], kind="memset", bytes=1, volume_bytes=1),
        Activity([80], volume_bytes=0, **on_device),
    ]
    return [gpu_rank(activities=activities)]


def streams() -> list[Rank]:
    rank = gpu_rank(streams=[Stream(1), Stream(2, number=13, context=3), Stream(3, device=9)])
    rank.activities = [
        Activity([10] * 3, 1),
        Activity([20] * 2, 2, stream=2),
        Activity([7], kind="copy", copy="to host", bytes=64, volume_bytes=60, stream=2),
        Activity([6], kind="memset", bytes=64, volume_bytes=40, stream=2),
        Activity([1], 1, stream=3),
    ]
    return [rank]


# Traced parts, what is missing

COVERED = "2.00 s of 10.0 s (20.0 %), 1 window of rank 0"
MISSING = {
    **{"dropped_records": 3, "implausible_records": 1, "late_records": 4},
    **{"unattributed_records": 5, "lost_intervals": 9, "unmatched_operations": 2, "records": 100},
}
LATE = {"gpu_counts": {"late_records": 834, "records": 10_000}}


def windowed() -> list[Rank]:
    windows = [
        Tracing(SECOND, 2 * SECOND),
        Tracing(4 * SECOND, 5 * SECOND, "yielded", 9_000),
        Tracing(8 * SECOND, 9 * SECOND, "off", None),
    ]
    others = [Tracing(0, 9 * SECOND, "lost"), Tracing(9 * SECOND, 10 * SECOND, "stopped")]
    return [gpu_rank(0, 2, tracings=windows), gpu_rank(1, 2, tracings=others)]


def one_of_two() -> list[Rank]:
    windows = [Tracing(0, 2 * SECOND, records=5)]
    refused = without("refused", 1, 2, reason="COMMPROF_GPU_ONE_RANK_IN=2: other ranks' are")
    return [gpu_rank(0, 2, tracings=windows), refused]


def parts_of_the_run() -> list[Rank]:
    facts = [{"gpu.traced_part": part} for part in ("steps", "first use")]
    return two(*facts, tracings=[Tracing(4 * SECOND, 7 * SECOND, records=5)])


def an_empty_window() -> list[Rank]:
    """CUPTI may have stopped to give records, in the second of its sessions for one
    (tokenspeed#1348)."""
    spans = ((0, 2 * SECOND, 5), (3 * SECOND, 5 * SECOND, 0), (6 * SECOND, 6 * SECOND + 1, 0))
    tracings = [Tracing(begin_ns, end_ns, records=records) for begin_ns, end_ns, records in spans]
    return [gpu_rank(tracings=tracings)]


def late_records(late_ns: int, **fields) -> Rank:
    """On a device that never idles: records came too late, and their time was idle to the sums."""
    return with_facts([busy(**{**LATE, **fields})], {"gpu.late_ns": str(late_ns)})[0]


TOO_LATE = "came too late to be summed up GPU time unknown: see above"
CUT_OFF = {"gpu.reason": "it did not answer"}
HELD_BACK = "GPU records at the end: it did not answer, on rank 1"
UNCOLLECTED = "up to 1.20 s of GPU records before the end: not collected yet"
KERNELS = "no kernel of a library that communicates was seen"
MEMORY = {"gpu.device_memory": "9.6 MB at first, at most 102 MB a context"}
GRAPHS = {"gpu.unseen_graph_launches": "12"}
ALL_STATES = {"C": 50, "CK": 10, "K": 10, "KD": 10, "M": 5, "": 10, "CM": 5}
SAID = {
    # 9 s with 6 s exposed, and 1 s with nothing: 60 %, not the mean of 67 % and 0
    "the run adds devices up and its shares are of the sums": (
        lambda: [
            gpu_rank(0, 2, devices=[Device(busy={"K": 6, "C": 3})]),
            gpu_rank(1, 2, devices=[Device(busy={"C": 1})]),
        ],
        (
            "gpu --by run",
            {"traced_ns": 10, "exposed_ns": 6, "exposed_share": 0.6, "computing_share": 0.4},
            {"devices": 2, "traced_ranks": 2, "ranks": 2},
        ),
        ("gpu --by run --rank 1", {"computing_ns": 1, "ranks": 1}),
        ("gpu --rank 1", {"rank": 1}),
    ),
    "a rank has several devices": (
        lambda: [
            gpu_rank(
                devices=[Device(1, {"C": 5}, number=2, uuid="GPU-a"), Device(2, {"K": 7}, number=0)]
            )
        ],
        ("gpu", Columns(device=[2, 0], uuid=["GPU-a", ""], computing_ns=[5, 0], exposed_ns=[0, 7])),
    ),
    # a process that is killed before its first records are old enough leaves kernels and no unions
    "what was not summed up is unknown, and not without communication": (
        lambda: [gpu_rank(devices=[Device()], activities=[Activity([500], kernel=2)])],
        ("gpu", {"traced_ns": 0, "exposed_share": None, "overlap": None}),
        (
            "gpu",
            "ncclDevKernel_AllReduce communication",
            "unknown: nothing has been summed up",
            No(KERNELS),
        ),
    ),
    "a device without communication": (
        lambda: [gpu_rank()],
        ("gpu", KERNELS, "nothing is missing of 0 records", No("of the run,"), No("CUDA graphs")),
    ),
    "kernels are told by name over ranks and streams": (
        of_numbers,
        (
            "gpu --by kernel",
            Row({"name": GEMM}, count=200, graph_count=2, ranks=2, is_communication=0),
            Row({"name": GEMM}, total_ns=2_060 * MS, mean_ns=10.3 * MS, min_ns=10 * MS),
            Row(
                {"name": GEMM, "max_ns": 40 * MS},
                p50_ns=pytest.approx(10 * MS, rel=1 / 16),
                p99_ns=pytest.approx(10 * MS, rel=1 / 16),
            ),
            Row({"name": "nccl"}, total_ns=400 * MS, share=400 / 2_460, is_communication=1),
        ),
    ),
    "kernels that found no room have a name too": (
        lambda: [
            gpu_rank(
                kernels={65_535: ("", 0)}, activities=[Activity([5], 65_535), Activity([4], 7)]
            )
        ],
        ("gpu --by kernel", {"kernel": "(other kernels)", "total_ns": 9}),
    ),
    "the text says how many kernels there are more": (
        many_kernels,
        ("gpu --by kernel", 30),
        ("gpu --by kernel --top 2", Columns(kernel=["kernel_30", "kernel_29"])),
        ("gpu", "... and 18 more; --by kernel --csv has them all."),
    ),
    "copies are told by direction, size and memory": (
        copies,
        (
            "gpu --by copy",
            Columns(
                copy=["to device"] * 3 + ["on device", ""],
                is_pageable=[0, 0, 1, 0, 0],
                is_managed=[0, 0, 0, 1, 0],
                bytes_low=[2_049, 4_097, 2_049, 0, 1],
                bytes_high=[4_096, 8_192, 4_096, 0, 1],
                count=[5, 1, 1, 1, 1],
                volume_bytes=[19_000, 8_192, 4_000, 0, 1],
                total_ns=[7_000, 9_000, 5_000, 80, 70],
            ),
            Row({"count": 5}, bytes_per_s=19_000 * 1e9 / 7_000),
        ),
    ),
    "streams hold what ran on them": (
        streams,
        (
            "gpu --by stream",
            Columns(
                stream=[2, 1, 3],
                device=[0, 0, None],
                context=[3, 1, 1],
                number=[13, 7, 7],
                computing_kernels=[0, 3, 1],
                communicating_kernels=[2, 0, 0],
                copies=[1, 0, 0],
                sets=[1, 0, 0],
                computing_ns=[0, 30, 1],
                communicating_ns=[40, 0, 0],
                copying_ns=[13, 0, 0],
                volume_bytes=[100, 0, 0],
            ),
        ),
    ),
    "windows say why they ended": (
        windowed,
        (
            "gpu --by run",
            {"windows": 5, "window_ns": 13 * SECOND, "window_share": 13 / 20},
            {"clock_error_ns": None},
        ),
        (
            "gpu --by window",
            Row({"ended": "yielded"}, clock_error_ns=9_000),
            Row({"ended": "off"}, clock_error_ns=None),
        ),
    ),
    "it is said how much was traced of which ranks": (
        one_of_two,
        (
            "gpu",
            f"Traced {COVERED}",
            "No GPU rank 1: the GPU was not traced: COMMPROF_GPU_ONE_RANK_IN=2",
        ),
        ("summary", f"traced {COVERED}; see hvprof-report gpu"),
    ),
    "a window without any record is doubted": (
        an_empty_window,
        ("gpu --by run", {"empty_windows": 1}),
        ("gpu", "1 window without any record: the GPU was idle, or CUPTI gave none"),
    ),
    # idle and exposed time are not known where a graph has left no record (pytorch#75504)
    "idle time that may hold graphs is marked": (
        lambda: two(GRAPHS, GRAPHS),
        ("gpu --by run", {"unseen_graph_launches": 24}),
        (
            "gpu",
            "idle and exposed time may hold kernels of CUDA graphs: 24 launches left no record",
        ),
        ("summary", "idle or in CUDA graphs that left no record"),
    ),
    "what CUPTI takes on the device is said": (
        lambda: two(MEMORY, MEMORY),
        ("gpu", "device memory: 9.6 MB at first, at most 102 MB a context"),
    ),
    "the clock is off by the most of all windows": (
        lambda: two(tracings=[Tracing(0, SECOND, clock_error_ns=7_000), Tracing(SECOND, SECOND)]),
        ("gpu --by run", {"clock_error_ns": 7_000}),
    ),
    "what is missing is said": (
        lambda: two(gpu_counts=MISSING),
        ("gpu --by run", {name: 2 * count for name, count in MISSING.items()}),
        (
            "gpu",
            "6 GPU records dropped",
            "2 GPU records with impossible",
            "8 GPU records too late",
            "10 GPU records counted together",
            "18 MPI calls missing",
            "4 NCCL operations without a time on the device",
        ),
    ),
    "times that lack late records are unknown": (
        lambda: [late_records(800_000_000)],
        ("gpu", {"traced_ns": 0, "computing_share": None, "exposed_share": None}),
        ("gpu", {"idle_share": None, "overlap": None}),
        (
            "gpu",
            f"1 device left out of the times below: records of activities of 800 ms {TOO_LATE}",
            "834 GPU records too late",
            No("exposed communication"),
        ),
        ("summary", "how busy is not known"),
    ),
    "late records of no weight leave the times": (
        lambda: [late_records(50_000_000, gpu_counts={"late_records": 1, "records": 10_000})],
        ("gpu", {"idle_share": 0.1, "exposed_share": 0.1}),
        ("gpu", No("Late records")),
    ),
    "another rank's late records leave this one's times": (
        lambda: [late_records(800_000_000, size=2), busy(1, 2)],
        ("gpu", Columns(idle_share=[None, 0.1])),
        ("gpu --by run", {"traced_ns": 10 * SECOND, "idle_share": 0.1}),
        ("gpu", "1 of 2 devices left out"),
    ),
    # the age of CUPTI's buffers that had not come back
    "what a kill may have lost on one rank is said": (
        lambda: two({}, {"gpu.uncollected_ns": "1200000000"}),
        ("gpu", f"{UNCOLLECTED}, on rank 1"),
    ),
    "what it may have lost on both is the most of both": (
        lambda: two({"gpu.uncollected_ns": "900000000"}, {"gpu.uncollected_ns": "1200000000"}),
        ("gpu", UNCOLLECTED, No("on rank 1")),
    ),
    "what the interface held back at the end is said": (
        lambda: two({}, CUT_OFF),
        ("gpu", HELD_BACK),
        ("summary", HELD_BACK),
    ),
    "and not otherwise": (lambda: two(), ("summary", "Seen all calls")),
    "also of a GPU of which nothing was seen": (
        lambda: [without("stopped", reason="it did not answer")],
        ("gpu", "it did not answer"),
    ),
    **{
        f"without a GPU one line says why: {state}": (
            [without(state, **facts)],
            ("gpu", f"No GPU {why}"),
            ("gpu", 0),
            ("gpu --by kernel", "not known of these ranks"),
        )
        for state, why, facts in (
            ("none", "no GPU was used, or none was found", {}),
            ("dormant", "there is a GPU, the program has not used it", {}),
            ("paused", "nothing that a GPU did was seen", {}),
            ("refused", "the GPU was not traced: nsys", {"reason": "nsys traces this process"}),
        )
    },
    "ranks without a GPU are named beside the others": (
        lambda: [
            gpu_rank(0, 3),
            *(without("refused", rank, 3, reason="error 35") for rank in (1, 2)),
        ],
        (
            "gpu",
            "GPUs 1 device, 1 of 3 ranks: NVIDIA H100 80GB HBM3",
            "No GPU ranks 1-2: the GPU was not traced: error 35",
        ),
        ("summary", "GPUs not traced: error 35"),
    ),
    "the first lines say where the time goes": (
        lambda: [
            gpu_rank(
                devices=[
                    Device(busy={names: ns * SECOND // 10 for names, ns in ALL_STATES.items()})
                ]
            )
        ],
        (
            "gpu",
            "GPU time 65.0 % computing, 30.0 % communicating, 10.0 % copying, 15.0 % idle, some at "
            "once; of 10.0 s that were traced, over all devices "
            "Communication 20.0 % of the traced time is exposed communication (2.00 s); 33.3 % of "
            "all communication is hidden behind computing (1.00 s) 10.0 % (1.00 s) if copies hide "
            "it, too "
            "Idle 15.0 % (1.50 s); while the process was in MPI 5.0 % (500 ms) "
            "Process in MPI 10.0 % (1.00 s); while no kernel computed 5.0 % (500 ms)",
        ),
        (
            "summary",
            "GPU 65.0 % computing, 20.0 % exposed communication, 15.0 % idle (1 device; traced "
            "10.0 "
            "s of 10.0 s (100.0 %), 1 window of rank 0; see hvprof-report gpu)",
        ),
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_what_a_planted_gpu_did_is_said(report, tmp_path, name):
    check(report, tmp_path / "run", *SAID[name])


# Steps


def marked(count: int) -> list[Step]:
    return [Step(1 + at, at * 100 * MS, (at + 1) * 100 * MS) for at in range(count)]


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
    found = []
    for step in steps:
        at, number = step.begin_ns, step.step
        found += [
            Sample("MPI_Barrier", at + 65 * MS, at + 90 * MS, sequence=number),
            Sample("ncclAllReduce", at + 92 * MS, at + 97 * MS, planted.NCCL, number),
        ]
    return found


def step_rank(world_rank: int = 0, world_size: int = 1, **fields) -> Rank:
    steps = marked(12)
    usual = {
        "devices": [Device(busy={"K": SECOND, "": 9 * SECOND})],
        "gpu_samples": working(steps),
        "samples": calls(steps),
    }
    rank = gpu_rank(world_rank, world_size, steps=steps, **{**usual, **fields})
    begun = [planted.Collective("MPI_Barrier")] * 12
    identity = (planted.WORLD, planted.WORLD_IDENTITY, "0", world_size, world_rank)
    rank.communicators = [planted.Communicator(*identity, begun=begun)]
    return rank


def without_computing() -> list[Rank]:
    """On rank 1 nothing computes."""
    other = step_rank(1, 2)
    other.gpu_samples = [one for one in other.gpu_samples if one.kind == "copy" or one.kernel == 2]
    return [step_rank(0, 2), other]


def calls_missing() -> list[Rank]:
    rank = step_rank()
    rank.samples = [sample for sample in rank.samples if sample.sequence != 4]
    rank.windows = [planted.Window(0, 350 * MS), planted.Window(420 * MS, rank.wall_ns)]
    rank.cells = [planted.Cell("MPI_Barrier", 0, [25 * MS] * 12)]
    return [rank]


def alternating(count: int = 60, on_ns: int = 11 * MS, ended: str = "duty") -> Rank:
    """Tracing is on for twelve steps, then off for twelve, of 10 ms."""
    steps, windows, at = [], [], 0
    for number in range(1, count + 1):
        is_on = (number - 1) // 12 % 2 == 0
        scatter = (number % 3 - 1) * 100_000
        steps.append(Step(number, at, at + (on_ns if is_on else 10 * MS) + scatter))
        if is_on and (number - 1) % 12 == 0:
            windows.append(Tracing(at, 0, ended))
        at = steps[-1].end_ns
        if is_on:
            windows[-1].end_ns = at
    calls = [Sample("MPI_Barrier", at - 2, at, sequence=1)]
    return gpu_rank(steps=steps, tracings=windows, samples=calls)


def traced_apart() -> list[Rank]:
    """Rank 1 traces less than rank 0, and rank 2 nothing."""
    one, other, untraced = alternating(), alternating(), Rank(2, 3, steps=alternating().steps)
    other.world_rank, one.world_size, other.world_size = 1, 3, 3
    other.tracings = [Tracing(0, other.steps[5].end_ns), *other.tracings[1:]]
    return [one, other, untraced]


STEP_MS = {
    **{"step_ns": 100, "computing_ns": 40, "communicating_ns": 30, "copying_ns": 20},
    **{"exposed_ns": 20, "strictly_exposed_ns": 10, "hidden_ns": 10, "idle_ns": 30},
    **{"exposed_mpi_ns": 25, "starved_ns": 20},
}
ERROR = 2 * 1.2533 * 1.4826 * (1e5**2 / 35 + 1e5**2 / 24) ** 0.5 / 10e6
BY_STEP = "gpu --by step"
STEPS = {
    "the run says what a step has in the median": (
        lambda: [step_rank()],
        (
            "gpu --by run",
            {"steps": 11, "step_ns": 100 * MS, "step_exposed_ns": 20 * MS},
            {"step_exposed_share": 0.2},
        ),
        (
            "steps",
            {"gpu_steps": 11, "gpu_step_ns": 100 * MS, "gpu_exposed_ns": 20 * MS},
            {"gpu_exposed_share": 0.2},
            "On the GPU 20.0 % exposed communication (20.0 ms of 100 ms; medians of 11 steps",
        ),
        ("gpu", "in a step 20.0 % exposed, 20.0 ms of 100 ms (medians of 11 steps)"),
    ),
    "a step is the mean over devices": (
        without_computing,
        (BY_STEP, Row({"step": 3}, devices=2, exposed_ns=25 * MS, computing_ns=20 * MS)),
        (f"{BY_STEP} --rank 1", Row({"step": 3}, devices=1, exposed_ns=30 * MS)),
    ),
    "a step that was not traced whole is not known": (
        lambda: [step_rank(tracings=[Tracing(150 * MS, 450 * MS), Tracing(500 * MS, 700 * MS)])],
        (BY_STEP, Columns(step=[3, 4, 6, 7])),
    ),
    "a step of which a stream has not sampled all is not known": (
        lambda: [step_rank(streams=[Stream(1, begin_ns=0), Stream(2, begin_ns=300 * MS)])],
        (BY_STEP, Columns(step=list(range(4, 13)))),
    ),
    "a stream that found no room may be of the only device": (
        lambda: [step_rank(streams=[Stream(1, begin_ns=0), Stream(1_023, begin_ns=0)])],
        (BY_STEP, 12),
    ),
    "of several it leaves all unknown": (
        lambda: [
            step_rank(
                streams=[Stream(1, begin_ns=0), Stream(1_023, begin_ns=0)]
                + [Stream(4, device=2, begin_ns=0)],
                devices=[Device(1), Device(2)],
            )
        ],
        (BY_STEP, 0),
    ),
    "a device that did nothing is idle in every step": (
        lambda: [step_rank(samples=[], gpu_samples=[])],
        (BY_STEP, 12, Row({"step": 3}, idle_ns=100 * MS, exposed_ns=0)),
    ),
    "time in MPI is unknown where calls are missing": (
        calls_missing,
        (BY_STEP, Row({"step": 4}, starved_ns=None), Row({"step": 8}, starved_ns=20 * MS)),
    ),
    "steps with tracing are held against those without": (
        lambda: [alternating()],
        (
            "gpu --by run",
            {"traced_steps": 35, "traced_step_ns": 11 * MS, "traced_deviation_ns": 100_000},
            {"untraced_steps": 24, "untraced_step_ns": 10 * MS, "untraced_deviation_ns": 100_000},
            {"tracing_cost_error_share": pytest.approx(ERROR)},
            {"tracing_cost_share": pytest.approx(0.1)},
        ),
        (
            "gpu",
            "+10.0 % of a step, within 1.0 %: 11.0 ms with tracing, 10.0 ms without (medians of 35 "
            "and 24 steps, +- 100 us and 100 us)",
        ),
    ),
    "a difference within its error is not called one": (
        lambda: [alternating(on_ns=10 * MS + 20_000)],
        ("gpu", "too small to measure (+0.2 % of a step, within 1.0 %)"),
    ),
    "too few steps on a side tell nothing": (
        lambda: [alternating(count=21)],
        ("gpu --by run", {"tracing_cost_share": None}),
        ("gpu", "unknown: 11 steps with tracing, 9 without; 10 of each are needed"),
    ),
    "while another tool traces steps are not without tracing": (
        lambda: [alternating(ended="yielded")],
        ("gpu --by run", {"untraced_steps": 0}),
    ),
    "a step that one rank traces and another does not is left out": (
        traced_apart,
        ("gpu --by run", {"traced_steps": 35 - 6, "untraced_steps": 24}),
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_of_planted_gpus_are_what_ran_in_them(report, tmp_path, name):
    check(report, tmp_path / "run", *STEPS[name])


@BOTH_WAYS
def test_a_step_has_the_unions_of_what_ran_in_it(report, tmp_path, write):
    folder = write(tmp_path, [step_rank()])
    times = {key: ms * MS for key, ms in STEP_MS.items()}
    sixth = Row({"step": 6}, exposed_share=0.2, devices=1, is_warm_up=0, **times)
    first = Row({"step": 1}, is_warm_up=1)
    check(report, tmp_path, folder, (BY_STEP, Columns(step=list(range(1, 13))), first, sixth))


def test_a_step_in_a_gap_of_a_stream_s_samples_is_not_known(report, tmp_path):
    folder = planted.write_databases(tmp_path / "gaps", [step_rank()])
    path, forget = folder / "rank-0.db", "DELETE FROM gpu_sample_window WHERE stream = 2;"
    spans = ", ".join(
        f"(0, 2, {begin_ms * MS}, {end_ms * MS})"
        for begin_ms, end_ms in ((0, 250), (250, 420), (600, 1_000))
    )
    planted.execute(path, f"{forget} INSERT INTO gpu_sample_window VALUES {spans}")
    check(report, tmp_path, folder, (BY_STEP, Columns(step=[1, 2, 3, 4, 7, 8, 9, 10])))
    planted.execute(path, forget)
    check(report, tmp_path, folder, (BY_STEP, 0))


# Ranks that share a GPU

SHARED = "GPU-5ba1e1f2"


def sharing_rank(
    world_rank: int, begin_ms: int, end_ms: int, uuid: str = SHARED, world_size: int = 2, **fields
) -> Rank:
    """Ten seconds in which one kernel computes from begin_ms to end_ms."""
    busy_ns = (end_ms - begin_ms) * MS
    states = {"C": busy_ns, "": 10 * SECOND - busy_ns}
    usual = {
        "devices": [Device(busy=states, uuid=uuid, kernels=1)],
        "gpu_samples": [GpuSample(begin_ms * MS, end_ms * MS, 1)],
        "streams": [Stream(1, begin_ns=0)],
    }
    return gpu_rank(world_rank, world_size, **{**usual, **fields})


def two_sharing(**fields) -> list[Rank]:
    """Rank 0 computes from 1 s to 5 s, rank 1 from 4 s to 7 s: 6 s of ten, 1 s of it both."""
    return [sharing_rank(0, 1_000, 5_000, **fields), sharing_rank(1, 4_000, 7_000, **fields)]


def two_alone() -> list[Rank]:
    ranks = two_sharing()
    ranks[1].devices[0].uuid = "GPU-0other"
    return ranks


def started_later() -> list[Rank]:
    """The kernel of rank 1 runs from 7 s to 10 s of rank 0; both are traced from 3 s on."""
    ranks = two_sharing()
    ranks[1].start_monotonic_ns += 3 * SECOND
    return ranks


def in_mpi() -> list[Rank]:
    ranks = two_sharing()
    for rank, (begin_ms, end_ms) in zip(ranks, ((500, 1_500), (1_200, 1_700))):
        rank.samples = [Sample("MPI_Barrier", begin_ms * MS, end_ms * MS, sequence=1)]
        rank.cells = [planted.Cell("MPI_Barrier", 0, [(end_ms - begin_ms) * MS])]
    return ranks


def on_host(*hosts: tuple[str, str]) -> list[Rank]:
    return with_facts(two_sharing(), *({"host": name, "boot_id": boot} for name, boot in hosts))


def sharing_steps(uuid: str = SHARED) -> list[Rank]:
    """Rank 0 computes for 40 ms from 0, rank 1 for 30 ms from 30 ms on: 60 ms of 100."""
    idle = {"": 10 * SECOND}
    ranks = [
        step_rank(rank, 2, devices=[Device(busy=idle, uuid=own)], samples=[])
        for rank, own in enumerate((SHARED, uuid))
    ]
    for rank, (begin_ms, end_ms) in zip(ranks, ((0, 40), (30, 60))):
        rank.gpu_samples = [
            GpuSample(step.begin_ns + begin_ms * MS, step.begin_ns + end_ms * MS, 1)
            for step in rank.steps
        ]
    return ranks


def unequal_steps() -> list[Rank]:
    """Steps of rank 1 last for 80 ms."""
    ranks = sharing_steps()
    for step in ranks[1].steps:
        step.end_ns = step.begin_ns + 80 * MS
    return ranks


def in_step(devices: int, step_ms: int, computing_ms: int, idle_ms: int) -> tuple:
    times = {"step_ns": step_ms, "computing_ns": computing_ms, "idle_ns": idle_ms}
    own = {key: ms * MS for key, ms in times.items()}
    return BY_STEP, Row({"step": 3}, devices=devices, **own)


UNSAMPLED = {"streams": [Stream(1)], "gpu_samples": []}
NOT_SELECTED = (
    "1 device also used by ranks that are not selected: times are of the selected ones alone"
)
SHARING = {
    "a GPU that ranks share is one device with the union of what they ran": (
        two_sharing,
        (
            "gpu",
            {"rank": 0, "ranks": "0-1", "sharing_ranks": 2, "merged_ranks": 2, "kernels": 2},
            {"traced_ns": 10 * SECOND, "computing_ns": 6 * SECOND, "idle_share": 0.4},
        ),
        (
            "gpu --by run",
            {"devices": 1, "shared_devices": 1, "unmerged_devices": 0, "idle_share": 0.4},
        ),
        (
            "gpu --by rank",
            Columns(rank=[0, 1], ranks=["0-1"] * 2, merged_ranks=[1, 1]),
            Columns(computing_ns=[4 * SECOND, 3 * SECOND]),
        ),
        (
            "gpu",
            "GPUs 1 device, 2 ranks: NVIDIA H100 80GB HBM3 ",
            "Shared 1 device: ranks 0-1 use GPU 0 of node00",
            "busy while any of its ranks is: known for 10.0 s, where all activities and MPI calls ",
            "GPU's ranks",
            "rank idle",
            "GPU time 60.0 % computing, 0.00 % communicating",
            No("not selected"),
        ),
        ("summary", "(1 device, 1 shared by ranks; traced"),
        ("export --format perfetto", '"GPU 0 (shared with rank 1), stream 7"'),
        ("gpu --rank 1", {"rank": 1, "ranks": "0-1", "merged_ranks": 1}, NOT_SELECTED),
    ),
    "and two are two": (
        two_alone,
        ("gpu", Columns(ranks=["0", "1"], sharing_ranks=[1, 1], idle_share=[0.6, 0.7])),
        ("gpu --by run", {"devices": 2, "shared_devices": 0, "idle_share": 0.65}),
        ("gpu --by rank", Columns(idle_share=[0.6, 0.7])),
        ("gpu", No("hared"), No("rank idle")),
        ("summary", No("shared")),
        ("export --format perfetto", '"GPU 0, stream 7"'),
    ),
    "ranks of a shared GPU are merged on their host's clock": (
        started_later,
        ("gpu", {"traced_ns": 7 * SECOND, "computing_ns": 5 * SECOND}),
    ),
    "a shared GPU is in MPI while any of its ranks is": (
        in_mpi,
        ("gpu", {"in_mpi_ns": 1_200 * MS, "starved_ns": 500 * MS, "exposed_mpi_ns": 500 * MS}),
    ),
    "where only sums are known, what ranks ran at once is not": (
        lambda: two_sharing(**UNSAMPLED),
        ("gpu", {"traced_ns": 0, "idle_share": None}),
        ("gpu --by run", {"devices": 1, "unmerged_devices": 1, "traced_ns": 0, "idle_share": None}),
        (
            "gpu",
            "not known for 1 device, left out of the times below",
            "GPU time unknown: see above",
        ),
        (
            "summary",
            "GPU 1 device, 1 shared by ranks: how busy is not known; see hvprof-report gpu",
        ),
    ),
    "two hosts of one name do not share a GPU": (
        lambda: on_host(("node", "one"), ("node", "two")),
        ("gpu", 2),
    ),
    "two containers of one host may, whatever they are called": (
        lambda: on_host(("c1", "one"), ("c2", "one")),
        ("gpu", {"host": "c1", "ranks": "0-1"}),
    ),
    "hosts known by name have no common clock": (
        lambda: on_host(("node", ""), ("node", "")),
        ("gpu", {"traced_ns": 0}),
    ),
    # in containers, or by CUDA_VISIBLE_DEVICES, all of them have number 0
    "ranks that each see one GPU are told apart by its UUID": (
        lambda: [sharing_rank(rank, 0, 1_000, f"MIG-{rank // 2}", 4) for rank in range(4)],
        ("gpu", Columns(ranks=["0-1", "2-3"], uuid=["MIG-0", "MIG-1"], device=[0, 0])),
    ),
    "GPUs without a UUID are not merged": (
        lambda: two_sharing(uuid=""),
        ("gpu", Columns(ranks=["0", "1"], idle_share=[0.6, 0.7])),
    ),
    "a step has what all ranks ran on a shared GPU": (sharing_steps, in_step(1, 100, 60, 40)),
    "a step of ranks whose steps differ": (unequal_steps, in_step(1, 90, 60, 30)),
    "a step of two GPUs": (lambda: sharing_steps("GPU-0other"), in_step(2, 100, 35, 65)),
}


@pytest.mark.parametrize("name", SHARING)
def test_what_ranks_that_share_a_gpu_did_is_said(report, tmp_path, name):
    check(report, tmp_path / "run", *SHARING[name])


@BOTH_WAYS
def test_ledgers_know_a_shared_gpu_too(report, tmp_path, write):
    folder = write(tmp_path, two_sharing())
    check(report, tmp_path, folder, ("gpu", {"computing_ns": 6 * SECOND, "merged_ranks": 2}))


# Other commands


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
    assert table == "window" or found[0] == found[1]


@pytest.mark.slow
def test_the_page_has_a_section_on_gpus_where_there_are_any(report, run_folder, tmp_path):
    for name, folder, is_there in (
        ("with", planted.write_databases(tmp_path / "gpus", planted.gpu_run()), True),
        ("without", run_folder, False),
    ):
        report("html", folder, "-o", tmp_path / f"{name}.html")
        page = (tmp_path / f"{name}.html").read_text()
        for words in ("<h2>GPUs</h2>", "ampere_sgemm_128&lt;32&gt;"):
            assert (words in page) == is_there


def test_a_picture_of_the_gpus_stacks_up_to_the_traced_time(report, tmp_path):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    from commprof_report.gpu import gpu_activity as gpus
    from commprof_report.plots import bars
    from commprof_report.run.run import run_open

    ranks = [gpu_rank(0, 2, devices=[Device(1, STATES), Device(2, {"C": 9})]), gpu_rank(1, 2)]
    ranks[0].activities = [Activity([70], 1), Activity([30], 2)]
    folder = planted.write_databases(tmp_path / "run", ranks)
    assert report("gpu", folder, "--plot", tmp_path / "gpu.svg").status == 0
    assert (tmp_path / "gpu.svg").read_bytes().startswith(b"<?xml")
    run = selected(run_open(folder))
    axes, one = (figure.add_subplot() for _ in range(2))
    devices = gpus.gpu(run.connection).devices
    bars.of_gpus(devices).draw(axes)
    heights = [0, 0, 0]
    for bar in axes.patches:
        heights[round(bar.get_x() + bar.get_width() / 2)] += bar.get_height()
    assert heights == [0xFFFF, 9, 10 * SECOND]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0:0", "0:0", "1:0"]
    bars.of_gpus(devices[1:2]).draw(one)
    assert [text.get_text() for text in one.get_legend().get_texts()] == ["computing"]


def selected(run):
    """All of a run."""
    import argparse

    from commprof_report.run.selection import FILTERS, select

    select(run, argparse.Namespace(**dict.fromkeys(FILTERS)))
    return run


def test_prometheus_has_the_records_that_were_lost(report, tmp_path):
    line = 'commprof_gpu_dropped_records_total{run="job-1",rank="0"} 0'
    ranks = [gpu_rank(devices=[Device(busy={"K": SECOND})])]
    check(report, tmp_path / "run", ranks, ("export --format prometheus", line))


@pytest.mark.parametrize(
    "words", ("--top 0", "--top -1", "--by thing", "--region epoch", "--rank 9")
)
def test_wrong_options_are_refused(report, tmp_path, words):
    folder = planted.write_databases(tmp_path / "run", [gpu_rank()])
    answer = report("gpu", folder, *words.split())
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)

"""Activity of GPUs against planted truth: every time and share, windows and pauses, steps, what
tracing costs, and what is said of it."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import planted
import pytest
from cases import Columns, No, Row, check, of
from commprof_report.base import Columns as Arrays
from commprof_report.gpu import gpu_activity as kernel_names
from commprof_report.gpu.overlap import KINDS, STATES as COMBINED, time_by_states
from planted import (
    Activity,
    Device,
    GpuSample,
    Rank,
    Reading,
    SECOND,
    Sample,
    Step,
    Stream,
    Tracing,
)
from work import counted

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


# Traced parts, what is missing

LATE = {"gpu_counts": {"late_records": 834, "records": 10_000}}


def late_records(late_ns: int, **fields) -> Rank:
    """On a device that never idles: records came too late, and their time was idle to the sums."""
    return with_facts([busy(**{**LATE, **fields})], {"gpu.late_ns": str(late_ns)})[0]


TOO_LATE = "came too late to be summed up GPU time unknown: see above"
UNCOLLECTED = "up to 1.20 s of GPU records before the end: not collected yet"
KERNELS = "no kernel of a library that communicates was seen"
GRAPHS = {"gpu.unseen_graph_launches": "12"}
SAID = {
    # a process that is killed before its first records are old enough leaves kernels and no unions
    "what was not summed up is unknown, and not without communication": (
        lambda: [gpu_rank(devices=[Device()], activities=[Activity([500], kernel=2)])],
        ("gpu", {"traced_ns": 0, "exposed_share": None, "overlap": None}, No(KERNELS)),
        ("gpu", "ncclDevKernel_AllReduce communication", "unknown: nothing has been summed up"),
    ),
    # idle and exposed time are not known where a graph has left no record (pytorch#75504)
    "idle time that may hold graphs is marked": (
        lambda: two(GRAPHS, GRAPHS),
        ("gpu --by run", {"unseen_graph_launches": 24}),
        ("gpu", "idle and exposed time may hold kernels of CUDA graphs: 24 launches left no recor"),
        ("summary", "idle or in CUDA graphs that left no record"),
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
    # the age of CUPTI's buffers that had not come back
    "what a kill may have lost on one rank is said": (
        lambda: two({}, {"gpu.uncollected_ns": "1200000000"}),
        ("gpu", f"{UNCOLLECTED}, on rank 1"),
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
    "time in MPI is unknown where calls are missing": (
        calls_missing,
        (BY_STEP, Row({"step": 4}, starved_ns=None), Row({"step": 8}, starved_ns=20 * MS)),
    ),
    "a difference within its error is not called one": (
        lambda: [alternating(on_ns=10 * MS + 20_000)],
        ("gpu", "too small to measure (+0.2 % of a step, within 1.0 %)"),
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


def on_host(*hosts: tuple[str, str]) -> list[Rank]:
    return with_facts(two_sharing(), *({"host": name, "boot_id": boot} for name, boot in hosts))


UNSAMPLED = {"streams": [Stream(1)], "gpu_samples": []}
NOT_SELECTED = (
    "1 device also used by ranks that are not selected: times are of the selected ones alone"
)
SHARING = {
    "a GPU that ranks share is one device with the union of what they ran": (
        two_sharing,
        ("gpu", {"rank": 0, "ranks": "0-1", "sharing_ranks": 2, "merged_ranks": 2, "kernels": 2}),
        ("gpu", {"traced_ns": 10 * SECOND, "computing_ns": 6 * SECOND, "idle_share": 0.4}),
        ("gpu --by run", {"devices": 1, "shared_devices": 1, "unmerged_devices": 0}),
        ("gpu --by run", {"idle_share": 0.4}),
        ("gpu --by rank", Columns(rank=[0, 1], ranks=["0-1"] * 2, merged_ranks=[1, 1])),
        ("gpu --by rank", Columns(computing_ns=[4 * SECOND, 3 * SECOND])),
        ("gpu", "GPUs 1 device, 2 ranks: NVIDIA H100 80GB HBM3 ", "GPU's ranks", "rank idle"),
        ("gpu", "Shared 1 device: ranks 0-1 use GPU 0 of node00", No("not selected")),
        ("gpu", "busy while any of its ranks is: known for 10.0 s, where all activities and MPI "),
        ("gpu", "GPU time 60.0 % computing, 0.00 % communicating"),
        ("summary", "(1 device, 1 shared by ranks; traced"),
        ("export --format perfetto", '"GPU 0 (shared with rank 1), stream 7"'),
        ("gpu --rank 1", {"rank": 1, "ranks": "0-1", "merged_ranks": 1}, NOT_SELECTED),
    ),
    "where only sums are known, what ranks ran at once is not": (
        lambda: two_sharing(**UNSAMPLED),
        ("gpu", {"traced_ns": 0, "idle_share": None}),
        ("gpu --by run", {"devices": 1, "unmerged_devices": 1, "traced_ns": 0, "idle_share": None}),
        ("gpu", "not known for 1 device, left out of the times below", "time unknown: see above"),
        ("summary", "1 device, 1 shared by ranks: how busy is not known; see hvprof-report gpu"),
    ),
    "two hosts of one name do not share a GPU": (
        lambda: on_host(("node", "one"), ("node", "two")),
        ("gpu", 2),
    ),
    "hosts known by name have no common clock": (
        lambda: on_host(("node", ""), ("node", "")),
        ("gpu", {"traced_ns": 0}),
    ),
    "GPUs without a UUID are not merged": (
        lambda: two_sharing(uuid=""),
        ("gpu", Columns(ranks=["0", "1"], idle_share=[0.6, 0.7])),
    ),
}


@pytest.mark.parametrize("name", SHARING)
def test_what_ranks_that_share_a_gpu_did_is_said(report, tmp_path, name):
    check(report, tmp_path / "run", *SHARING[name])


# Other commands


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


@pytest.mark.parametrize(
    "words", ("--top 0", "--top -1", "--by thing", "--region epoch", "--rank 9")
)
def test_wrong_options_are_refused(report, tmp_path, words):
    folder = planted.write_databases(tmp_path / "run", [gpu_rank()])
    answer = report("gpu", folder, *words.split())
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)


# Readings of GPUs' counters and sensors.

DEVICE = Device(busy={"C": 6 * SECOND, "K": 4 * SECOND}, uuid="GPU-a")


def reading(second: int, limits: str = "", mhz: int = 1_980) -> Reading:
    return Reading(second * SECOND, clock_mhz=mhz, limits=limits)


def sensors_of(report, folder: Path, ranks: list[Rank]) -> dict:
    (row,) = report("gpu", planted.write_databases(folder, ranks), "--json", "--by", "sensor").rows
    return row


def test_an_idle_device_s_clock_does_not_count(report, tmp_path):
    readings = [reading(1, "i", 345), reading(2, "", 1_900), reading(3, "p", 1_700)]
    row = sensors_of(report, tmp_path, [gpu_rank(devices=[DEVICE], readings=readings)])
    assert of(row, "clock_mean_mhz clock_least_mhz") == (1_800, 1_700)
    assert of(row, "throttled_share power_share heat_share") == (1 / 3, 1 / 3, 0)


def test_a_device_that_ranks_share_counts_once(report, tmp_path):
    readings = [reading(second) for second in range(1, 8)]
    ranks = [
        gpu_rank(rank, 2, devices=[DEVICE], readings=readings[: 6 + rank]) for rank in range(2)
    ]
    assert of(sensors_of(report, tmp_path, ranks), "rank ranks readings") == (1, "0-1", 7)


# Union arithmetic against brute force: every nanosecond looked at by itself.

LAST = 60


def some_intervals(chance: random.Random, most: int) -> list[tuple[int, int, int]]:
    """Empty ones among them."""
    ends = [sorted(chance.choices(range(LAST), k=2)) for _ in range(chance.randrange(most))]
    return [(begin, end, chance.choice(KINDS)) for begin, end in ends]


def active(intervals) -> Arrays:
    start_ns, end_ns, state = np.array(intervals, np.int64).reshape(-1, 3).T
    return Arrays(start_ns=start_ns, end_ns=end_ns, state=state)


def state_at(at: int, intervals) -> int:
    """State in the nanosecond that begins here."""
    return sum(
        bit
        for bit in KINDS
        if any(begin <= at < end for begin, end, state in intervals if state == bit)
    )


@pytest.mark.parametrize("seed", range(200))
def test_each_span_has_the_time_in_each_combination_of_states(seed):
    chance = random.Random(seed)
    intervals = some_intervals(chance, 14)
    cuts = sorted(chance.sample(range(-5, LAST + 5), 2 * chance.randrange(1, 6)))
    spans = list(zip(cuts[::2], cuts[1::2]))
    expected = []
    for begin, end in spans:
        found = [state_at(at, intervals) for at in range(begin, end)]
        expected.append([found.count(state) for state in range(COMBINED)])
    assert time_by_states(active(intervals), spans).tolist() == expected


# Names of kernels.

SHORT = {
    "ampere_sgemm_128x64_nn": "ampere_sgemm_128x64_nn",
    "triton_poi_fused_add_0": "triton_poi_fused_add_0",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": (
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    ),
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::sum<float> > "
    ">(at::native::ReduceOp<float>)": ("at::native::reduce_kernel<512, 1, ReduceOp<...>>"),
    "void cutlass::Kernel<cutlass_80_tensorop_s16816gemm>"
    "(cutlass_80_tensorop_s16816gemm::Params)": ("cutlass::Kernel<cutlass_80_tensorop_s16816gemm>"),
    "void (anonymous namespace)::bar<float>(float)": "bar<float>",
    "void k<(at::Mode)3, float*>(float*)": "k<(Mode)3, float*>",
    "decltype (x+y) g<int>(int)": "g<int>",
    "A::operator()(int) const": "A::operator()",
    "foo(int)::{lambda(float, int)#1}::operator()(int) const": "foo::{lambda#1}::operator()",
    "": "",
    "(": "(",
}
needs_demangler = pytest.mark.skipif(not shutil.which("c++filt"), reason="no c++filt")


@pytest.mark.parametrize("name", SHORT)
def test_a_name_is_shortened(name):
    assert kernel_names.shortened(name) == SHORT[name]


LONG_NAMES = (
    ")))>>>",
    "<<<<((((",
    "a" * 100_000,
    "a::<" * 20_000,
    "(" * 50_000,
    "{lambda(" * 10_000,
    "operator" * 9_000,
)


@pytest.mark.parametrize("name", LONG_NAMES, ids=range(7))
def test_a_name_that_is_none_costs_no_more_than_its_first_characters(name):
    with counted() as work:
        assert isinstance(kernel_names.shortened(name), str)
    assert work.calls <= 5 * 2_000


@needs_demangler
def test_mangled_names_are_demangled_and_others_stay():
    names = ["_Z3fooi", "_ZN12_GLOBAL__N_13barIfEEvT_", "_Zbroken", "plain", "_Z3foo\n_Z3fooi", ""]
    assert kernel_names.demangled(names) == {
        "_Z3fooi": "foo(int)",
        "_ZN12_GLOBAL__N_13barIfEEvT_": "void (anonymous namespace)::bar<float>(float)",
        "_Zbroken": "_Zbroken",
    }


@pytest.mark.slow
@needs_demangler
def test_a_name_that_stands_for_gigabytes_stays_as_it_is():
    """Each template has the one before twice as its arguments."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    bomb = "_Z1f1aIiiE" + "".join(f"S_IS{digit}_S{digit}_E" for digit in digits[:30])
    found = kernel_names.demangled([bomb, "_Z1A"])
    assert found == {bomb: bomb, "_Z1A": "A"}

"""NCCL beside MPI: planted runs with both, or with NCCL alone. Time of a call on the host is never
taken for communication."""

from __future__ import annotations

from functools import partial

import planted
import pytest
from cases import Columns, No, Row, check
from known_calls import CALLS
from planted import NCCL, SECOND, Cell, Collective, Communicator, Rank
from planted import Sample, Tracing
from planted_job import LAUNCH_NS, HostClock, Job

MS = 1_000_000
MIB = 1 << 20
ALL_TEXTS = (
    "summary steps late advise traffic calls sizes latency hvprof communicators ranks regions "
    "peers pipeline stuck"
).split()
CHOSEN = [
    "calls --memory-kind device",
    "sizes --memory-kind host",
    "steps --per-step",
    "ranks --per-rank",
]


def nccl(rank: int, members: list[int], collectives: int = 0) -> Communicator:
    begun = [Collective("ncclAllReduce", MIB)] * collectives
    made = {"constructor": "ncclCommInitRank", "begun": begun, "library": "nccl"}
    own = (NCCL, planted.NCCL_IDENTITY, "", len(members), members.index(rank))
    return Communicator(*own, **made)


def nccl_rank(rank: int, *cells: Cell, size: int = 4, **more: object) -> Rank:
    """A rank of a job without MPI."""
    facts = {"host": "node00", "boot_id": "a1", "time_namespace": "time:[1]"}
    facts |= {"nccl.version": "2.28.9", "program": "python3"}
    facts |= {"command_line": "python3 train.py --steps 40"}
    more = {"communicators": [nccl(rank, list(range(size)))], **more}
    return Rank(rank, size, facts=facts, cells=list(cells), **more)


def ranks_of(*cells: Cell, **more: object) -> list[Rank]:
    return [nccl_rank(rank, *cells, **more) for rank in range(4)]


def reduced(durations_ns: list[int], measure: str = "call") -> Cell:
    return Cell("ncclAllReduce", 16 * MIB, durations_ns, NCCL, measure, memory_kind="device")


def training_cells(rank: int) -> list[Cell]:
    return [
        Cell("ncclCommInitRank", 0, [90 * MS], NCCL),
        reduced([8_000] * 20),
        reduced([(80 + 10 * rank) * MS] * 10, "device"),
        reduced([7_000], "captured"),
        Cell("ncclAllGather", MIB, [5_000] * 4, NCCL, memory_kind="device"),
        Cell("ncclGroup", 3 * MIB, [6 * MS] * 2, NCCL, "device", memory_kind="device"),
        Cell("ncclGroupEnd", 0, [20_000] * 2, 0),
    ]


def pure() -> list[Rank]:
    """NCCL alone: the job was begun without MPI. Half of the AllReduces were timed on the device,
    of the AllGathers none."""
    ranks = []
    for rank in range(4):
        made = {"tracings": [Tracing(0, 9 * SECOND)], "windows": [planted.Window(0, 10 * SECOND)]}
        made["communicators"] = [nccl(rank, [0, 1, 2, 3], collectives=20)]
        made["samples"] = []
        for step in range(1, 21):
            at = step * 400 * MS
            what = {"bytes": 16 * MIB, "device_ns": (at + (40 - 10 * rank) * MS, at + 120 * MS)}
            made["samples"].append(Sample("ncclAllReduce", at, at + 8_000, NCCL, step, **what))
        ranks.append(nccl_rank(rank, *training_cells(rank), **made))
    return ranks


def ended(*cells: Cell) -> list[Rank]:
    """Without MPI_Finalize."""
    return [nccl_rank(rank, *training_cells(rank), *cells, ended="exit") for rank in range(4)]


# Steps


def stepping() -> list[Rank]:
    """Steps of 100 ms by the device, which lags 60 ms behind the host: two AllReduces of 20 ms that
    overlap by 10 ms."""
    ranks = []
    for rank in range(2):
        samples = []
        for number in range(80):
            step, place = divmod(number, 2)
            host_ns = 50 * MS + step * 100 * MS + place * 100_000
            begin_ns = host_ns + 60 * MS + place * 10 * MS - place * 100_000
            what = {"bytes": (4 + place) * MIB}
            what["device_ns"] = (begin_ns, begin_ns + 20 * MS)
            times = (host_ns, host_ns + 8_000)
            samples.append(Sample("ncclAllReduce", *times, NCCL, number + 1, **what))
        cells = [Cell("ncclAllReduce", size * MIB, [8_000] * 40, NCCL) for size in (4, 5)]
        made = {"communicators": [nccl(rank, [0, 1], collectives=80)], "samples": samples}
        windows = [planted.Window(0, 10 * SECOND)]
        ranks.append(nccl_rank(rank, *cells, size=2, windows=windows, **made))
    return ranks


def sharing_a_kernel() -> list[Rank]:
    ranks = stepping()
    for rank in ranks:
        for one, other in zip(rank.samples[::2], rank.samples[1::2]):
            one.is_shared = other.is_shared = 1
            other.device_ns = one.device_ns
    return ranks


# Messages


def passing(rank: int) -> list[tuple]:
    """Messages of a stage of a pipeline within a communicator that counts the other way round."""
    own = 3 - rank
    forward = [
        ("ncclSend", "sent", own - 1, 5, 5 * MIB, MS, NCCL),
        ("ncclRecv", "received", own - 1, 5, 2 * MIB, MS, NCCL),
    ]
    backward = [
        ("ncclRecv", "received", own + 1, 5, 5 * MIB, MS, NCCL),
        ("ncclSend", "sent", own + 1, 5, 2 * MIB, MS, NCCL),
    ]
    return (forward if own > 0 else []) + (backward if own < 3 else [])


def pipeline() -> list[Rank]:
    send = Cell("ncclSend", MIB, [MS] * 5, NCCL)
    return [
        nccl_rank(rank, send, communicators=[nccl(rank, [3, 2, 1, 0])], peers=passing(rank))
        for rank in range(4)
    ]


MIXED = planted.gpu_run
REDUCE = {"call": "ncclAllReduce"}
SAID = {
    "the summary names both and does not call communicators queueing": (
        pure,
        (
            "summary",
            {"nccl_count": 4 * 27, "nccl_captured": 4, "nccl_device_count": 48},
            {"nccl_setup_ns": 4 * 90 * MS, "nccl_device_ns": (3_800 + 4 * 12) * MS},
            {"nccl_host_ns": 4 * (160_000 + 7_000 + 20_000 + 40_000)},
            {"top_nccl_call": "ncclAllReduce", "count": 0, "top_call": None, "volume_bytes": 0},
            "NCCL 2.28.9, without MPI",
            "NCCL on device 962 ms per rank in 48 operations",
            No("In MPI"),
            No("MPI_Init"),
        ),
    ),
    "the profiler's cost is of calls, not of device times": (
        pure,
        (
            "ranks --per-rank",
            Row({"rank": 0}, cost_ns=3 * MS + (1 + 20 + 1 + 4 + 2) * 25, nccl_count=27),
            Row({"rank": 0}, nccl_device_ns=812 * MS),
        ),
    ),
    **{
        f"bandwidth of {call} is that of nccl-tests": (
            partial(
                lambda call: ranks_of(
                    Cell(call, MIB, [1_000], NCCL), Cell(call, MIB, [MS], NCCL, "device")
                ),
                call,
            ),
            (
                "sizes",
                Row(
                    {"measure": "device"},
                    bandwidth_bytes=whole * MIB,
                    algbw_bytes_per_s=pytest.approx(whole * MIB / 1e-3),
                    busbw_bytes_per_s=pytest.approx(factor * whole * MIB / 1e-3),
                ),
                Row({"measure": "call"}, algbw_bytes_per_s=None, bandwidth_bytes=None),
            ),
        )
        for call, whole, factor in (
            ("ncclAllReduce", 1, 2 * 3 / 4),
            ("ncclReduceScatter", 1, 3 / 4),
            ("ncclAllGather", 4, 3 / 4),
            ("ncclBroadcast", 1, 1),
            ("ncclSend", 1, 1),
        )
    },
    **{
        f"--call and --memory-kind choose: {words}": (
            MIXED,
            (f"calls {words}", lambda rows, calls=calls: {row["call"] for row in rows} == calls),
        )
        for words, calls in (
            ("--call allreduce", {"MPI_Allreduce", "ncclAllReduce"}),
            ("--call ncclAllReduce", {"ncclAllReduce"}),
            ("--memory-kind mixed", {"MPI_Allreduce"}),
            ("--memory-kind device", {"ncclAllReduce"}),
            ("--memory-kind managed", set()),
        )
    },
    "a shared kernel counts once in a step": (
        sharing_a_kernel,
        (
            "steps --per-call",
            Row({"call": "ncclGroup"}, count=1, total_ns=20 * MS),
            Row(REDUCE, count=2, total_ns=0),
        ),
    ),
    "a partner that was not read is unknown": (
        lambda: pipeline()[::2],
        ("peers", "2 unknown 10 7.34 MB 0 unknown 5 5.24 MB", Columns(receiver=[None, None])),
        ("summary", "most from rank 2 to unknown: 7.34 MB"),
    ),
    "a pipeline over NCCL is found and its bubbles are not told": (
        pipeline,
        (
            "pipeline",
            Columns(stage=[0, 1, 2, 3], rank=[0, 1, 2, 3], bubble_share=[None] * 4),
            Row({"stage": 1}, wait_ns=None, forward_bytes=5 * MIB, backward_bytes=2 * MIB),
            "1: ranks 0 > 1 > 2 > 3; NCCL's messages wait on the device: who waits for whom is not "
            "known.",
        ),
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_what_nccl_did_is_said(report, tmp_path, name):
    check(report, tmp_path / "run", *SAID[name])


def test_every_command_reads_a_job_without_mpi(report, tmp_path):
    commands = [*ALL_TEXTS, *CHOSEN]
    check(report, tmp_path / "run", pure, *((command, "", lambda _: True) for command in commands))


# Late

UNTIMED = {"device_start_ns": None, "device_end_ns": None, "is_shared": None}


class NcclJob(Job):
    """A job whose NCCL operations were timed on the device; clock_error_ns: of the time stamps."""

    def __init__(self, ranks: int, clock_error_ns: int | None = 0) -> None:
        super().__init__([HostClock(77)] * ranks)
        self.device = self.group(range(ranks), "nccl", library="nccl")
        self.clock_error_ns = clock_error_ns

    def all_reduce(self, arrivals: list[int], transfers: list[int], **changes: object) -> NcclJob:
        begins = [at - LAUNCH_NS for at in arrivals]
        lasts = [LAUNCH_NS + ns for ns in transfers]
        self.collective("ncclAllReduce", begins, lasts, group=self.device)
        for row in self.rows["sample"][-len(arrivals) :]:
            row.update(changes)
        return self

    def cell_rows(self) -> dict[str, list[dict]]:
        rows = super().cell_rows()
        timed: dict[tuple[int, str], set] = {}
        for row in self.rows.get("sample", []):
            if row.get("device_start_ns") is not None:
                call = "ncclGroup" if row["is_shared"] else row["call"]
                kernel = (row["device_start_ns"], row["device_end_ns"])
                timed.setdefault((row["world_rank"], call), set()).add(kernel)
        for (rank, call), kernels in timed.items():
            spent = [end_ns - start_ns for start_ns, end_ns in kernels]
            sums = {"total_ns": sum(spent), "min_ns": min(spent), "max_ns": max(spent)}
            self.add_cell(rows, rank, call, "device", MIB, count=len(spent), **sums)
        tracing = {"begin_ns": 0, "end_ns": self.wall_ns, "ended": "stopped", "records": 0}
        tracing["clock_error_ns"] = self.clock_error_ns
        rows["gpu_tracing"] = [{"world_rank": rank, **tracing} for rank in range(len(self.hosts))]
        return rows

    def add_cell(
        self, rows: dict, rank: int, call: str, measure: str, size: int, **sums: int
    ) -> None:
        what = {"cell": len(rows["cell"]) + 1, "world_rank": rank, "call": call, "bytes": size}
        what |= {"communicator": self.device.communicator, "measure": measure}
        rows["cell"].append({**rows["cell"][0], **what, **sums})
        if call not in {row["name"] for row in rows["call"]}:
            rows["call"].append(CALLS[call]._asdict())


class PassingJob(NcclJob):
    """In groups of sends and receives, too: 50 on each rank, of 10 ms each."""

    def cell_rows(self) -> dict[str, list[dict]]:
        rows = super().cell_rows()
        for rank in range(len(self.hosts)):
            self.add_cell(rows, rank, "ncclSend", "call", 2 * MIB, count=50, total_ns=50_000)
            self.add_cell(rows, rank, "ncclGroup", "device", 2 * MIB, count=50, total_ns=500 * MS)
        return rows


def two(kind: type[NcclJob] = NcclJob, clock_error_ns: int | None = 0, **changes) -> NcclJob:
    return kind(2, clock_error_ns).all_reduce([MS, 5 * MS], [100, 100], **changes)


GROUP = {"call": "ncclGroup", "collectives": 1, "wait_ns": 4 * MS, "total_ns": 4 * MS + 200}
LATE = {
    "operations without device times are not judged": (
        lambda: two(**UNTIMED),
        ("late --by run", {"verdict": "none", "collectives": 0, "unjudged": 1}),
        (
            "late",
            "not known: NCCL's collectives were not timed on the device",
            "not judged: 1 collective without device times",
        ),
    ),
    "groups of sends and receives are no collectives": (
        lambda: two(PassingJob, is_shared=1),
        ("late --by call", GROUP),
    ),
    **{
        f"a GPU's clock that is off by {error_ns} ns": (
            partial(lambda error_ns: two(clock_error_ns=error_ns), error_ns),
            ("late --by run", {"estimate_share": share, "wait_ns": 4 * MS}),
        )
        for error_ns, share in ((10 * MS, 1), (None, 1), (1_000, 0))
    },
}


@pytest.mark.parametrize("name", LATE)
def test_who_is_late_to_nccl_is_told_by_the_device(report, tmp_path, name):
    check(report, tmp_path / "run.db", *LATE[name])

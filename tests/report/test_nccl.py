"""NCCL beside MPI: planted runs with both, or with NCCL alone. Time of a call on the host is never
taken for communication."""

from __future__ import annotations

import re

from cases import of
import planted
import pytest
from commprof_report.base.units import Members, members_text
from known_calls import CALLS
from planted import (
    NCCL,
    SECOND,
    WORLD,
    Activity,
    Cell,
    Collective,
    Communicator,
    Device,
    Rank,
    Sample,
    Tracing,
)
from planted_job import LAUNCH_NS, HostClock, Job

MS = 1_000_000
MIB = 1 << 20
ALL_TEXTS = tuple(
    (
        "summary steps late advise traffic calls sizes latency hvprof communicators ranks "
        "regions peers pipeline stuck"
    ).split()
)
ALL_TEXTS += ("regions", "peers", "pipeline", "stuck")


def nccl(
    rank: int,
    members: list[int],
    identity: int = planted.NCCL_IDENTITY,
    number: int = NCCL,
    collectives: int = 0,
) -> Communicator:
    begun = [Collective("ncclAllReduce", MIB)] * collectives
    place = members.index(rank)
    return Communicator(
        number,
        identity,
        "",
        len(members),
        place,
        constructor="ncclCommInitRank",
        begun=begun,
        library="nccl",
    )


def nccl_rank(rank: int, *cells: Cell, size: int = 4, **more: object) -> Rank:
    """A rank of a job without MPI."""
    facts = {
        "host": "node00",
        "boot_id": "a1",
        "time_namespace": "time:[1]",
        "nccl.version": "2.28.9",
        "program": "python3",
        "command_line": "python3 train.py --steps 40",
    }
    more = {"communicators": [nccl(rank, list(range(size)))], **more}
    return Rank(rank, size, facts=facts, cells=list(cells), **more)


def training_cells(rank: int) -> list[Cell]:
    return [
        Cell("ncclCommInitRank", 0, [90 * MS], NCCL),
        Cell("ncclAllReduce", 16 * MIB, [8_000] * 20, NCCL, memory_kind="device"),
        Cell(
            "ncclAllReduce",
            16 * MIB,
            [(80 + 10 * rank) * MS] * 10,
            NCCL,
            "device",
            memory_kind="device",
        ),
        Cell("ncclAllReduce", 16 * MIB, [7_000], NCCL, "captured", memory_kind="device"),
        Cell("ncclAllGather", MIB, [5_000] * 4, NCCL, memory_kind="device"),
        Cell("ncclGroup", 3 * MIB, [6 * MS] * 2, NCCL, "device", memory_kind="device"),
        Cell("ncclGroupEnd", 0, [20_000] * 2, 0),
    ]


@pytest.fixture
def pure(tmp_path):
    """NCCL alone: the job was begun without MPI. Half of the AllReduces were timed on the device,
    of the AllGathers none."""
    ranks = []
    for rank in range(4):
        samples = [
            Sample(
                "ncclAllReduce",
                start_ns,
                start_ns + 8_000,
                NCCL,
                step,
                bytes=16 * MIB,
                device_ns=(start_ns + 40 * MS - 10 * MS * rank, start_ns + 120 * MS),
            )
            for step, start_ns in enumerate(range(400 * MS, 20 * 400 * MS + 1, 400 * MS), 1)
        ]
        ranks.append(
            nccl_rank(
                rank,
                *training_cells(rank),
                samples=samples,
                tracings=[Tracing(0, 9 * SECOND)],
                communicators=[nccl(rank, [0, 1, 2, 3], collectives=20)],
                windows=[planted.Window(0, 10 * SECOND)],
            )
        )
    return planted.write_databases(tmp_path / "pure", ranks)


@pytest.fixture
def run_of(tmp_path):
    """run_of(*cells): a run of four ranks without MPI that all have these cells."""

    def written(*cells: Cell, **more: object):
        ranks = [nccl_rank(rank, *cells, **more) for rank in range(4)]
        return planted.write_databases(tmp_path / "run", ranks)

    return written


@pytest.fixture
def mixed(tmp_path):
    return planted.write_databases(tmp_path / "mixed", planted.gpu_run())


def only(rows: list[dict], **wanted: object) -> dict:
    (row,) = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return row


# Time by its owner


def test_time_in_mpi_is_of_mpi_alone(report, run_folder, tmp_path):
    ranks = planted.training_run()
    for rank in ranks:
        rank.communicators.append(nccl(rank.world_rank, [0, 1, 2, 3]))
        rank.cells += training_cells(rank.world_rank)
    beside = planted.write_databases(tmp_path / "beside", ranks)
    (without,), (with_nccl,) = (
        report("summary", folder, "--json").rows for folder in (run_folder, beside)
    )
    told = {
        key
        for key in without
        if "nccl" not in key and not key.startswith(("cost", "device_volume", "wait_", "late_"))
    }
    told -= {"seen", "is_all_seen"}  # what was captured into graphs is not seen
    assert {key: without[key] for key in told} == {key: with_nccl[key] for key in told}
    for without, with_nccl in zip(
        *(report("ranks", folder, "--json", "--per-rank").rows for folder in (run_folder, beside))
    ):
        assert of(without, "mpi_ns count volume_bytes") == tuple(
            with_nccl[key] for key in ("mpi_ns", "count", "volume_bytes")
        )


def test_calls_on_the_host_and_operations_on_the_device_are_apart(report, pure):
    rows = report("calls", pure, "--json").rows
    host = only(rows, call="ncclAllReduce", measure="call")
    device = only(rows, call="ncclAllReduce", measure="device")
    captured = only(rows, call="ncclAllReduce", measure="captured")
    assert of(host, "count total_ns library") == (80, 80 * 8_000, "nccl")
    assert (device["count"], device["total_ns"]) == (40, 10 * (80 + 90 + 100 + 110) * MS)
    assert device["share_of_wall"] is None and host["share_of_wall"] is not None
    assert (captured["count"], captured["volume_bytes"]) == (4, 0)


def test_the_summary_names_both_and_does_not_call_communicators_queueing(report, pure):
    (row,) = report("summary", pure, "--json").rows
    assert of(row, "nccl_count nccl_captured nccl_device_count") == (4 * 27, 4, 48)
    assert row["nccl_setup_ns"] == 4 * 90 * MS
    assert row["nccl_host_ns"] == 4 * (160_000 + 7_000 + 20_000 + 40_000)
    assert row["nccl_device_ns"] == (3_800 + 4 * 12) * MS
    assert row["top_nccl_call"] == "ncclAllReduce"
    assert of(row, "count top_call volume_bytes") == (0, None, 0)


def test_a_job_without_mpi_reads_so(report, pure):
    text = report("summary", pure).out
    assert (
        "NCCL 2.28.9, without MPI" in text
        and "NCCL on device  962 ms per rank in 48 operations" in text
    )
    assert "In MPI" not in text and "MPI_Init" not in text


CHOSEN = (
    "calls --memory-kind device",
    "sizes --memory-kind host",
    "steps --per-step",
    "ranks --per-rank",
)


@pytest.mark.parametrize("command", [*ALL_TEXTS, *CHOSEN])
def test_every_command_reads_a_job_without_mpi(report, pure, command):
    for words in ([], ["--json"] if command != "top" else []):
        answer = report(*command.split(), pure, *words)
        assert answer.status == 0 and answer.out, answer.err


def test_a_job_without_mpi_ends_without_mpi_finalize(report, tmp_path):
    ranks = [nccl_rank(rank, *training_cells(rank), ended="exit") for rank in range(4)]
    folder = planted.write_databases(tmp_path / "run", ranks)
    (row,) = report("summary", folder, "--json").rows
    assert (row["early_ended_ranks"], row["exited"]) == (0, "")
    assert {row["state"] for row in report("ranks", folder, "--json", "--per-rank").rows} == {"end"}
    for command in ("summary", "ranks", "stuck", "top"):
        assert "MPI_Finalize" not in report(command, folder).out
    ranks[0].cells.append(Cell("MPI_Init_thread", 0, [MS], communicator=0))
    folder = planted.write_databases(tmp_path / "with_mpi", ranks)
    assert report("ranks", folder, "--json", "--per-rank").rows[0]["state"] == "exit"


def test_the_profilers_cost_is_of_calls_not_of_device_times(report, pure):
    (row, *_) = report("ranks", pure, "--json", "--per-rank").rows
    assert row["cost_ns"] == 3 * MS + (1 + 20 + 1 + 4 + 2) * 25
    assert (row["nccl_count"], row["nccl_device_ns"]) == (27, 812 * MS)


# Sizes and bandwidth.


@pytest.mark.parametrize(
    ("call", "whole", "factor"),
    [
        ("ncclAllReduce", 1, 2 * 3 / 4),
        ("ncclReduceScatter", 1, 3 / 4),
        ("ncclAllGather", 4, 3 / 4),
        ("ncclBroadcast", 1, 1),
        ("ncclSend", 1, 1),
    ],
)
def test_bandwidths_are_those_of_nccl_tests(report, run_of, call, whole, factor):
    folder = run_of(Cell(call, MIB, [1_000], NCCL), Cell(call, MIB, [MS], NCCL, "device"))
    rows = report("sizes", folder, "--json").rows
    device = only(rows, measure="device")
    assert device["bandwidth_bytes"] == whole * MIB
    assert device["algbw_bytes_per_s"] == pytest.approx(whole * MIB / 1e-3)
    assert device["busbw_bytes_per_s"] == pytest.approx(factor * whole * MIB / 1e-3)
    host = only(rows, measure="call")
    assert host["algbw_bytes_per_s"] is host["busbw_bytes_per_s"] is host["bandwidth_bytes"] is None


def test_sizes_show_the_device_where_it_is_known_and_say_host_where_not(report, pure):
    text = report("sizes", pure).out
    reduces = [line for line in text.splitlines() if line.startswith("ncclAllReduce")]
    gathers = [line for line in text.splitlines() if line.startswith("ncclAllGather")]
    assert (
        re.search(r" device +device ", reduces[0])
        and len([line for line in reduces if "graph" not in line]) == 1
    )
    assert len(gathers) == 1 and " host " in gathers[0] and "B/s" not in gathers[0]
    assert "ncclGroupEnd" not in text


@pytest.mark.parametrize(
    ("words", "commands", "calls"),
    [
        ("--call allreduce", ("calls",), {"MPI_Allreduce", "ncclAllReduce"}),
        ("--call ncclAllReduce", ("calls",), {"ncclAllReduce"}),
        ("--memory-kind mixed", ("calls", "sizes"), {"MPI_Allreduce"}),
        ("--memory-kind device", ("calls", "sizes"), {"ncclAllReduce"}),
        ("--memory-kind managed", ("calls", "sizes"), set()),
    ],
)
def test_short_names_are_of_both_libraries_and_memory_kinds_choose(
    report, mixed, words, commands, calls
):
    for command in commands:
        rows = report(command, mixed, "--json", *words.split()).rows
        assert {row["call"] for row in rows} == calls


def staged_run(folder, *cells: Cell):
    """Around each Allreduce a copy to the host and one back."""
    copies = {"kind": "copy", "bytes": MIB, "times": 1_000}
    ranks = [
        Rank(
            rank,
            2,
            communicators=[
                Communicator(WORLD, planted.WORLD_IDENTITY, "0-1", 2, rank, name="MPI_COMM_WORLD")
            ],
            cells=[Cell("MPI_Allreduce", MIB, [MS] * 1_000), *cells],
            gpu_state="tracing",
            devices=[Device()],
            streams=[planted.Stream()],
            activities=[
                Activity([50_000], copy=copy, **copies) for copy in ("to host", "to device")
            ],
        )
        for rank in range(2)
    ]
    return planted.write_databases(folder, ranks)


def test_copies_around_host_buffers_look_staged(report, tmp_path):
    staged = staged_run(tmp_path / "staged")
    text = report("summary", staged).out
    assert "host buffers only; traced GPUs copied 2.10 GB to the host and 2.10 GB back" in text


# Communicators.


@pytest.mark.parametrize(
    "ranks", [[0], [0, 1, 2], [0, 2, 4, 5], [3, 1, 0, 2], [8, 10, 12, 14], [0, 0, 1, 1], [5, 4]]
)
def test_members_are_written_as_the_library_writes_them(ranks):
    assert [rank for span in Members(members_text(ranks)).spans for rank in span] == ranks


def communicators_of(
    report, tmp_path, orders: list[list[int]], read: range = range(4)
) -> list[dict]:
    """NCCL communicators given by their world ranks in order."""
    ranks = []
    for rank in read:
        known = [
            nccl(rank, order, 77 + number, 5 + number)
            for number, order in enumerate(orders)
            if rank in order
        ]
        ranks.append(
            nccl_rank(
                rank,
                Cell("ncclAllReduce", MIB, [9_000], known[0].communicator),
                communicators=known,
            )
        )
    return report("communicators", planted.write_databases(tmp_path / "run", ranks), "--json").rows


def test_members_of_a_communicator_are_put_together_over_its_ranks(report, tmp_path):
    (row,) = communicators_of(report, tmp_path, [[3, 1, 0, 2]])
    assert of(row, "members communicator library") == (
        "3,1,0,2",
        "ncclCommInitRank {3,1,0,2}",
        "nccl",
    )


def test_replica_groups_of_nccl_are_told(report, tmp_path):
    rows = communicators_of(report, tmp_path, [[0, 2], [1, 3]])
    assert {row["communicator"]: row["role"] for row in rows} == {
        "ncclCommInitRank {0,2}": "replica group",
        "ncclCommInitRank {1,3}": "replica group",
    }


# Late.


class NcclJob(Job):
    """A job whose NCCL operations were timed on the device, but for those of `untimed` sequences;
    clock_error_ns: of the time stamps."""

    clock_error_ns: int | None = 0

    def __init__(self, ranks: int) -> None:
        super().__init__([HostClock(77)] * ranks)
        self.device = self.group(range(ranks), "nccl", library="nccl")

    def all_reduce(
        self, arrivals: list[int], transfers: list[int], is_timed: bool = True, **changes: object
    ) -> None:
        self.collective(
            "ncclAllReduce",
            [at - LAUNCH_NS for at in arrivals],
            [LAUNCH_NS + ns for ns in transfers],
            group=self.device,
        )
        for row in self.rows["sample"][-len(arrivals) :]:
            row.update(changes)
            if not is_timed:
                row.update(UNTIMED)

    def cell_rows(self) -> dict[str, list[dict]]:
        rows = super().cell_rows()
        timed: dict[tuple[int, str], set] = {}
        for row in self.rows.get("sample", []):
            if row.get("device_start_ns") is not None:
                call = "ncclGroup" if row["is_shared"] else row["call"]
                timed.setdefault((row["world_rank"], call), set()).add(
                    of(row, "device_start_ns device_end_ns")
                )
        for (rank, call), kernels in timed.items():
            spent = [end_ns - start_ns for start_ns, end_ns in kernels]
            self.add_cell(
                rows,
                rank,
                call,
                "device",
                MIB,
                count=len(spent),
                total_ns=sum(spent),
                min_ns=min(spent),
                max_ns=max(spent),
            )
        tracing = {
            "begin_ns": 0,
            "end_ns": self.wall_ns,
            "ended": "stopped",
            "clock_error_ns": self.clock_error_ns,
            "records": 0,
        }
        rows["gpu_tracing"] = [{"world_rank": rank, **tracing} for rank in range(len(self.hosts))]
        return rows

    def add_cell(
        self,
        rows: dict[str, list[dict]],
        rank: int,
        call: str,
        measure: str,
        size: int,
        **sums: int,
    ) -> None:
        rows["cell"].append(
            {
                **rows["cell"][0],
                "cell": len(rows["cell"]) + 1,
                "world_rank": rank,
                "call": call,
                "communicator": self.device.communicator,
                "measure": measure,
                "bytes": size,
                **sums,
            }
        )
        if call not in {row["name"] for row in rows["call"]}:
            rows["call"].append(CALLS[call]._asdict())


UNTIMED = {"device_start_ns": None, "device_end_ns": None, "is_shared": None}


def test_a_rank_comes_when_its_kernel_begins(late):
    job = NcclJob(3)
    job.all_reduce([1_000_000, 5_000_000, 3_000_000], [100, 200, 300])
    rows = late(job)
    assert [row["wait_ns"] for row in rows] == [4_000_000, 0, 2_000_000]
    assert [row["transfer_ns"] for row in rows] == [100, 200, 300]
    assert [row["last_count"] for row in rows] == [0, 1, 0]
    (call,) = late(job, "call")
    assert of(call, "library call collectives") == ("nccl", "ncclAllReduce", 1)


def test_operations_without_device_times_are_not_judged(late, report, tmp_path):
    job = NcclJob(2)
    job.all_reduce([1_000_000, 5_000_000], [100, 100], is_timed=False)
    (row,) = late(job, "run")
    assert of(row, "verdict collectives unjudged") == ("none", 0, 1)
    text = report("late", tmp_path / "run.db").out
    assert (
        "not known: NCCL's collectives were not timed on the device" in text
        and "not judged: 1 collective without device times" in text
    )


def test_operations_that_share_a_kernel_are_one(late):
    job = NcclJob(2)
    for _ in range(3):
        job.all_reduce([1_000_000, 5_000_000], [100, 100], is_shared=1)
    (call,) = late(job, "call")
    assert of(call, "call collectives wait_ns total_ns") == ("ncclGroup", 1, 4_000_000, 4_000_200)


class PassingJob(NcclJob):
    """In groups of sends and receives, too: 50 on each rank, of 10 ms each."""

    def cell_rows(self) -> dict[str, list[dict]]:
        rows = super().cell_rows()
        for rank in range(len(self.hosts)):
            self.add_cell(rows, rank, "ncclSend", "call", 2 * MIB, count=50, total_ns=50_000)
            self.add_cell(rows, rank, "ncclGroup", "device", 2 * MIB, count=50, total_ns=500 * MS)
        return rows


def test_groups_of_sends_and_receives_are_no_collectives(late):
    job = PassingJob(2)
    job.all_reduce([1_000_000, 5_000_000], [100, 100], is_shared=1)
    (group,) = late(job, "call")
    assert of(group, "call collectives wait_ns total_ns") == ("ncclGroup", 1, 4_000_000, 4_000_200)
    alone = PassingJob(2)
    alone.all_reduce([1_000_000, 5_000_000], [100, 100])
    assert [row["call"] for row in late(alone, "call")] == ["ncclAllReduce"]
    # nothing is known of the waiting in sends and receives
    assert late(alone, "run")[0]["coverage"] < 0.01


def test_where_the_gpus_clock_is_too_coarse_durations_tell(late):
    job = NcclJob(2)
    job.clock_error_ns = 10_000_000
    job.all_reduce([1_000_000, 5_000_000], [100_000, 100_000])
    (row,) = late(job, "run")
    assert row["estimate_share"] == 1 and row["wait_ns"] == 4_000_000
    job.clock_error_ns = None
    assert late(job, "run")[0]["estimate_share"] == 1
    job.clock_error_ns = 1_000
    assert (late(job, "run")[0]["estimate_share"], late(job, "run")[0]["error_ns"]) == (0, 2_000)


def test_both_libraries_stand_in_one_table(late, report, tmp_path):
    job = NcclJob(2)
    job.collective("MPI_Allreduce", [1_000_000, 2_000_000], [100, 100])
    job.all_reduce([11_000_000, 15_000_000], [100, 100])
    assert {row["library"]: row["wait_ns"] for row in late(job, "call")} == {
        "mpi": 1_000_000,
        "nccl": 4_000_000,
    }
    text = report("late", tmp_path / "run.db").out
    assert re.search(r"^MPI_Allreduce .* 1\.00 ms ", text, re.M)
    assert re.search(r"^ncclAllReduce .* 4\.00 ms ", text, re.M)


# Steps.


def stepping_rank(rank: int, timed: range, steps: int = 40) -> Rank:
    """Steps of 100 ms by the device, which lags 60 ms behind the host: two AllReduces of 20 ms that
    overlap by 10 ms."""
    samples = []
    for step in range(steps):
        for place in range(2):
            host_ns = 50 * MS + step * 100 * MS + place * 100_000
            begin_ns = host_ns + 60 * MS + place * 10 * MS - place * 100_000
            samples.append(
                Sample(
                    "ncclAllReduce",
                    host_ns,
                    host_ns + 8_000,
                    NCCL,
                    2 * step + place + 1,
                    bytes=(4 + place) * MIB,
                    device_ns=(begin_ns, begin_ns + 20 * MS) if step in timed else None,
                )
            )
    cells = [Cell("ncclAllReduce", size * MIB, [8_000] * steps, NCCL) for size in (4, 5)]
    return nccl_rank(
        rank,
        *cells,
        size=2,
        communicators=[nccl(rank, [0, 1], collectives=2 * steps)],
        samples=samples,
        windows=[planted.Window(0, 10 * SECOND)],
    )


def steps_of(report, tmp_path, timed: range, *words: str) -> list[dict]:
    folder = planted.write_databases(
        tmp_path / f"run{''.join(words)}", [stepping_rank(rank, timed) for rank in range(2)]
    )
    return report("steps", folder, "--json", *words).rows


def test_steps_are_delimited_by_nccls_operations_on_the_device(report, tmp_path):
    (row,) = steps_of(report, tmp_path, range(40))
    assert of(row, "delimited_by steps period") == ("calls", 40, "2 bulk ncclAllReduce, 9 MiB")
    assert row["p50_ns"] == 100 * MS
    assert row["nccl_device_ns"] == 30 * MS  # 20 and 20, of which 10 are both
    assert (row["nccl_host_ns"], row["nccl_device_share"]) == (16_000, 0.3)
    assert of(row, "is_driven background_ns communication_ns") == (0, 0, None)
    first, second, *_ = steps_of(report, tmp_path, range(40), "--per-step")
    assert second["begin_ns"] == 50 * MS + 60 * MS + 30 * MS and first["begin_ns"] == 0


def test_steps_of_a_gpu_that_is_traced_now_and_then_are_delimited_by_the_host(report, tmp_path):
    (row,) = steps_of(report, tmp_path, range(20))
    assert of(row, "steps p50_ns outliers") == (40, 100 * MS, 0)
    assert row["nccl_device_ns"] is None
    second = steps_of(report, tmp_path, range(20), "--per-step")[1]
    assert second["begin_ns"] == 50 * MS + 100_000 + 8_000


def test_what_a_step_spends_in_a_call_of_nccl_is_its_kernels_time(report, tmp_path):
    (row,) = steps_of(report, tmp_path, range(40), "--per-call")
    assert of(row, "call library count total_ns") == ("ncclAllReduce", "nccl", 2, 40 * MS)
    assert row["exposed_ns"] is None and row["bytes"] == 9 * MIB


def test_a_shared_kernel_counts_once_in_a_step(report, tmp_path):
    ranks = [stepping_rank(rank, range(40)) for rank in range(2)]
    for rank in ranks:
        for one, other in zip(rank.samples[::2], rank.samples[1::2]):
            one.is_shared = other.is_shared = 1
            other.device_ns = one.device_ns
    rows = report(
        "steps", planted.write_databases(tmp_path / "shared", ranks), "--json", "--per-call"
    ).rows
    group = only(rows, call="ncclGroup")
    assert (group["count"], group["total_ns"]) == (1, 20 * MS)
    assert (
        only(rows, call="ncclAllReduce")["count"],
        only(rows, call="ncclAllReduce")["total_ns"],
    ) == (2, 0)


# Facts in other reports


def test_bulk_and_control_hold_for_both(report, tmp_path):
    cells = [
        Cell("MPI_Allreduce", 8, [5_000] * 6_000),
        Cell("ncclAllReduce", 64 * MIB, [9_000] * 100, NCCL),
    ]
    cells.append(Cell("ncclAllReduce", 64 * MIB, [9 * MS] * 100, NCCL, "device"))
    world = Communicator(WORLD, planted.WORLD_IDENTITY, "0-3", 4, 0, name="MPI_COMM_WORLD")
    ranks = [
        nccl_rank(rank, *cells, communicators=[world, nccl(rank, [0, 1, 2, 3])])
        for rank in range(4)
    ]
    rows = report("traffic", planted.write_databases(tmp_path / "run", ranks), "--json").rows
    bulk, control = only(rows, traffic="bulk"), only(rows, traffic="control")
    assert of(bulk, "call count device_ns share_of_time") == (
        "ncclAllReduce",
        400,
        3_600 * MS,
        None,
    )
    assert of(control, "call share_of_time library") == ("MPI_Allreduce", 1, "mpi")


def test_small_messages_are_judged_by_the_device(report, run_of):
    cells = [
        Cell("ncclAllReduce", size, [ns] * 1_000, NCCL, "device")
        for size, ns in {1_024: 200_000, 64 * MIB: 400_000}.items()
    ]
    folder = run_of(Cell("ncclAllReduce", 64 * MIB, [5_000] * 1_000, NCCL), *cells)
    found = only(report("advise", folder, "--json").rows, rule="small_messages")
    assert (found["call"], found["certainty"]) == ("ncclAllReduce", "possible")
    assert found["saving_ns"] == pytest.approx(1_000 * 200_000, rel=0.01)


# Messages.


def passing(rank: int, stages: int = 4, first: int = 0, number: int = NCCL) -> list[tuple]:
    """Messages of a stage of a pipeline within a communicator that counts the other way round."""
    own = stages - 1 - (rank - first)
    forward = [
        ("ncclSend", "sent", own - 1, 5, 5 * MIB, MS, number),
        ("ncclRecv", "received", own - 1, 5, 2 * MIB, MS, number),
    ]
    backward = [
        ("ncclRecv", "received", own + 1, 5, 5 * MIB, MS, number),
        ("ncclSend", "sent", own + 1, 5, 2 * MIB, MS, number),
    ]
    return (forward if own > 0 else []) + (backward if own < stages - 1 else [])


@pytest.fixture
def pipeline():
    return [
        nccl_rank(
            rank,
            Cell("ncclSend", MIB, [MS] * 5, NCCL),
            communicators=[nccl(rank, [3, 2, 1, 0])],
            peers=passing(rank),
        )
        for rank in range(4)
    ]


@pytest.mark.parametrize("write", [planted.write_databases, planted.write_ledgers])
def test_messages_are_between_world_ranks(report, tmp_path, pipeline, write):
    rows = report("peers", write(tmp_path / "run", pipeline), "--json").rows
    down = {(rank, rank + 1): (5, 5 * MIB, MS) for rank in range(3)}
    up = {(rank + 1, rank): (5, 2 * MIB, MS) for rank in range(3)}
    assert {of(row, "sender receiver"): of(row, "count bytes time_ns") for row in rows} == down | up


def test_a_partner_that_was_not_read_is_unknown(report, tmp_path, pipeline):
    folder = planted.write_databases(tmp_path / "run", [pipeline[0], pipeline[2]])
    text = report("peers", folder).out.splitlines()
    assert [line.split()[:2] + line.split()[3:] for line in text] == [
        ["from", "to", "volume"],
        ["2", "unknown", "7.34", "MB"],
        ["0", "unknown", "5.24", "MB"],
    ]
    assert report("peers", folder, "--json").rows[0]["receiver"] is None
    assert "most from rank 2 to unknown: 7.34 MB" in report("summary", folder).out
    assert report("html", folder, "-o", str(tmp_path / "page.html")).status == 0


def test_a_pipeline_over_nccl_is_found_and_its_bubbles_are_not_told(report, tmp_path, pipeline):
    folder = planted.write_databases(tmp_path / "run", pipeline)
    rows = report("pipeline", folder, "--json").rows
    assert [(row["stage"], row["rank"]) for row in rows] == [(stage, stage) for stage in range(4)]
    assert {(row["bubble_share"], row["wait_ns"]) for row in rows} == {(None, None)}
    assert [(row["forward_bytes"], row["backward_bytes"]) for row in rows][1] == (5 * MIB, 2 * MIB)
    text = report("pipeline", folder).out
    assert (
        "1: ranks 0 > 1 > 2 > 3; NCCL's messages wait on the device: who waits for whom is not "
        "known." in text
    )

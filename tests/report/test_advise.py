"""`hvprof-report advise`: each rule on a planted run where it must speak, and on one where it must
not."""

from __future__ import annotations

import shutil

import parallel
import planted
import pytest
from planted import Cell, Rank, Sample, Step, Window
from planted_job import HostClock, Job
from sampled_bursts import Call, bursts

RANKS, MIB, KIB = 2, 1 << 20, 1 << 10
LARGE = Cell("MPI_Allreduce", MIB, [1_000_000] * 100)  # about 1 ns a byte
RULES = {
    "cores",
    "small_messages",
    "tiny_messages",
    "imbalance",
    "waiting",
    "overlap",
    "cycle",
    "barriers",
    "progress",
    "slow_link",
    "slow_size",
}


def run_of(*cells: Cell, ranks: int = RANKS, **more) -> list[Rank]:
    """Ranks that do the same."""
    return [
        Rank(rank, ranks, communicators=[parallel.world(rank, ranks)], cells=list(cells), **more)
        for rank in range(ranks)
    ]


@pytest.fixture
def advise(report, tmp_path):
    def ask(ranks):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        rows = report("advise", planted.write_databases(tmp_path / "run", ranks), "--json").rows
        return {row["rule"]: row for row in reversed(rows)}

    return ask


def found(rows: dict) -> set[str]:
    return {rule for rule, row in rows.items() if row["found"]}


HEALTHY = (
    LARGE,
    Cell("MPI_Allreduce", KIB, [2_000] * 30),
    Cell("MPI_Allreduce", 8, [2_000] * 30),
    Cell("MPI_Bcast", 64 * KIB, [60_000] * 20),
    Cell("MPI_Bcast", 96 * KIB, [90_000] * 20),
    Cell("MPI_Reduce", 64 * KIB, [60_000] * 25),
    Cell("MPI_Send", 8 * KIB, [5_000] * 30),
    Cell("MPI_Recv", 8 * KIB, [9_000] * 30, volume_bytes=0),
    Cell("MPI_Iallreduce", 64 * KIB, [400_000] * 20, measure="completion", blocked_ns=2_000_000),
    Cell("MPI_Test", 0, [200] * 500, communicator=0, measure="poll"),
    Cell("MPI_Wait", 0, [100_000] * 20, communicator=0),
    Cell("MPI_Barrier", 0, [10_000] * 3),
)


def test_a_healthy_run_is_left_in_peace_and_told_what_was_looked_for(report, advise, tmp_path):
    rows = advise(run_of(*HEALTHY))
    assert (found(rows), set(rows)) == (set(), RULES)
    out = report("advise", tmp_path / "run").prose
    assert " rules found nothing that could save 0.5 % of the time" in out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"facts": {"command_line": "horovodrun -np 2 python train.py"}}, "HOROVOD_CYCLE_TIME"),
        ({"threads": [(0, "python3", 1), (1, "pt_mpi_runloop", 0)]}, "raise bucket_cap_mb"),
    ],
)
def test_the_suggestion_speaks_to_the_framework(advise, more, said):
    row = advise(run_of(LARGE, Cell("MPI_Allreduce", KIB, [30_000] * 20_000), **more))[
        "small_messages"
    ]
    assert said in row["suggestion"] and ("HOROVOD" in row["suggestion"]) != (
        "bucket_cap_mb" in row["suggestion"]
    )


def saved_ns(cells: list[Cell], better: list[Cell]) -> int:
    """The time in the calls of all ranks of one run less that of the other."""
    return sum(cell.spread[0] for cell in cells) - sum(cell.spread[0] for cell in better)


def test_fusing_saves_what_the_twin_with_fused_messages_does_not_take(advise):
    cells = [LARGE, Cell("MPI_Allreduce", KIB, [30_000], times=102_400)]
    fused = [Cell("MPI_Allreduce", MIB, [1_000_000] * 200)]
    assert advise(run_of(*cells))["small_messages"]["saving_ns"] == saved_ns(cells, fused)
    assert not found(advise(run_of(*fused)))


def test_few_small_allreduces_are_left_alone(advise):
    cells = [
        LARGE,
        Cell("MPI_Allreduce", 2 * MIB, [2_000_000] * 100),
        Cell("MPI_Allreduce", KIB, [50_000_000] * 19),
    ]
    assert not advise(run_of(*cells))["small_messages"]["found"]


def test_tiny_allreduces_are_not_told_to_be_fused(advise):
    assert not advise(run_of(LARGE, Cell("MPI_Allreduce", 24, [30_000] * 20_000)))[
        "small_messages"
    ]["found"]


def test_one_small_message_a_step_is_not_fused(advise):
    small, large = Call(65 * KIB, 900_000), Call(MIB, 800_000)
    assert "small_messages" not in found(advise(bursts([small, large])))
    assert "small_messages" in found(advise(bursts([small, small, large])))


def waited_for(blocked_ns: int) -> list[Cell]:
    return [
        Cell("MPI_Iallreduce", MIB, [1_000] * 100),
        Cell("MPI_Iallreduce", MIB, [2_000_000] * 100, measure="completion", blocked_ns=blocked_ns),
        Cell("MPI_Wait", 0, [1_850_000] * 100, communicator=0),
    ]


def test_operations_that_overlap_are_left_alone(advise):
    assert not advise(run_of(*waited_for(blocked_ns=179_000_000)))["overlap"]["found"]


def test_operations_waited_for_together_save_no_more_than_the_waiting(advise):
    """Ten requests in one Waitall are each blocked as long as it lasts."""
    cells = [
        Cell("MPI_Irecv", MIB, [500_000_000] * 10, measure="completion", blocked_ns=5_000_000_000),
        Cell("MPI_Waitall", 0, [500_000_000], communicator=0),
    ]
    assert advise(run_of(*cells))["overlap"]["saving_ns"] == 500_000_000


@pytest.fixture
def waiting_job(report, tmp_path):
    """Four ranks, each last in turn by 500 us, in 900 Allreduces of 1 KiB that need 20 us, 100 of 1
    MiB that need 1 ms, and Barriers."""

    def ask() -> dict[str, dict]:
        job = Job([HostClock()] * 4, wall_ns=3_000_000_000)
        for call in range(1_000):
            arrivals = [
                call * 2_500_000 + 500_000 * (rank == call * 7 % 5 % 4) for rank in range(4)
            ]
            size, transfer_ns = (MIB, 1_000_000) if call % 10 == 0 else (KIB, 20_000)
            ends = job.collective("MPI_Allreduce", arrivals, [transfer_ns] * 4, message_bytes=size)
            job.collective(
                "MPI_Barrier",
                [ends[rank] + 200_000 * (rank == call % 3) for rank in range(4)],
                [30_000] * 4,
                message_bytes=0,
            )
        rows = report("advise", job.write(tmp_path / "run.db"), "--json").rows
        return {row["rule"]: row for row in rows}

    return ask


def test_waiting_is_no_cost_of_small_messages(waiting_job):
    """900 x 4 calls need 20 us each, of which 1 us would remain; they last 5 times as long in the
    mean."""
    row = waiting_job()["small_messages"]
    assert row["saving_ns"] == pytest.approx(900 * (20_000 - KIB * 1_000_000 / MIB), rel=0.01)
    assert "of it waiting for late ranks (not counted as saved)" in row["evidence"]
    assert row["certainty"] == "likely"


def test_waiting_is_no_cost_of_barriers(waiting_job):
    assert waiting_job()["barriers"]["saving_ns"] == pytest.approx(1_000 * 30_000, rel=0.01)


def test_what_could_not_be_looked_for_is_not_called_absent(report, tmp_path):
    out = report("advise", planted.write_databases(tmp_path / "run", stepping_ranks())).out
    assert (
        "; much waiting for ranks that are not named; operations that make no progress while ranks "
        "compute; a size of a collective that takes far longer than its neighbours (no call was "
        "split into waiting and transfer)" in " ".join(out.split())
    )


def stepping_ranks() -> list[Rank]:
    """Each receives for 8 ms of each step, from whom is not known."""
    step_ns, spent_ns = 10_000_000, 8_000_000
    ranks = run_of(ranks=4)
    for rank in ranks:
        rank.cells = [Cell("MPI_Recv", 8 * KIB, [spent_ns] * 40, volume_bytes=0)]
        rank.steps = [
            Step(number, number * step_ns, (number + 1) * step_ns) for number in range(1, 41)
        ]
        rank.samples = [
            Sample("MPI_Recv", step.begin_ns, step.begin_ns + spent_ns, bytes=8 * KIB)
            for step in rank.steps
        ]
        rank.windows = [Window(0, rank.wall_ns)]
    return ranks

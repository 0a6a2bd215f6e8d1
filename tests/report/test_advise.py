"""`hvprof-report advise`: each rule on a planted run where it must speak, and on one where it must
not."""

from __future__ import annotations

import shutil

import parallel
import planted
import pytest
from planted import Cell, Rank, Sample, Step, Window
from planted_job import HostClock, Job
from sampled_bursts import BITS, STEPS, Call, bursts

RANKS, MIB, KIB, MS = 2, 1 << 20, 1 << 10, 1_000_000
LARGE = Cell("MPI_Allreduce", MIB, [1_000_000] * 100)  # about 1 ns a byte
RULES = "cores small_messages tiny_messages imbalance waiting overlap cycle barriers progress "
RULES += "slow_link slow_size"


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
    assert (found(rows), set(rows)) == (set(), {*RULES.split()})
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
    small = Cell("MPI_Allreduce", KIB, [30_000] * 20_000)
    suggestion = advise(run_of(LARGE, small, **more))["small_messages"]["suggestion"]
    assert said in suggestion and ("HOROVOD" in suggestion) != ("bucket_cap_mb" in suggestion)


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
    rows = advise(run_of(LARGE, Cell("MPI_Allreduce", 24, [30_000] * 20_000)))
    assert not rows["small_messages"]["found"]


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
            begin_ns, last = call * 2_500_000, call * 7 % 5 % 4
            arrivals = [begin_ns + 500_000 * (rank == last) for rank in range(4)]
            size, transfer_ns = (MIB, 1_000_000) if call % 10 == 0 else (KIB, 20_000)
            ends = job.collective("MPI_Allreduce", arrivals, [transfer_ns] * 4, message_bytes=size)
            arrivals = [ends[rank] + 200_000 * (rank == call % 3) for rank in range(4)]
            job.collective("MPI_Barrier", arrivals, [30_000] * 4, message_bytes=0)
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
    folder = planted.write_databases(tmp_path / "run", stepping_ranks())
    said = (
        "; much waiting for ranks that are not named; operations that make no progress while ranks "
        "compute; a size of a collective that takes far longer than its neighbours (no call was "
        "split into waiting and transfer)"
    )
    assert said in report("advise", folder).prose


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


# Training whose framework communicates beside the main thread: Horovod, DistributedDataParallel.

ROUND = Call(16, 3_000, signature=BITS)
LAYERS = [Call(size, 60_000) for size in (1_000, 2_000, 1_000, 3_000)]
LARGE_CALL = Call(MIB, MS)
UNFUSED = {"env.HOROVOD_FUSION_THRESHOLD": "0"}


def beside(calls: list[Call], **more) -> list[Rank]:
    """On a thread beside the main one."""
    return bursts(calls, **{"thread": 1, **more})


def test_fusion_that_is_off_is_named_with_what_it_would_save(advise):
    """4 layers a step, three of at most 2 kB; the round before them is no message that could be
    fused, nor is the first of the five messages of each round."""
    row = advise(beside([ROUND, LARGE_CALL, *LAYERS], facts=UNFUSED))["small_messages"]
    assert row["title"] == "tensor fusion is off (HOROVOD_FUSION_THRESHOLD is 0)"
    fused_ns = sum(layer.bytes for layer in LAYERS) * MS / MIB
    assert row["saving_ns"] == pytest.approx(0.8 * STEPS * (4 * 60_000 - fused_ns))
    said = "400 calls a rank of 1,000 B to 3,000 B (4.00 a step) carry 700 KB."
    assert row["evidence"].startswith(said)
    assert row["suggestion"].startswith("leave HOROVOD_FUSION_THRESHOLD out")


EVERY_51_MS = [Step(number, number * 51 * MS, (number + 1) * 51 * MS) for number in range(1, 90)]


def idle_rounds(apart_ns: int) -> list[Call]:
    return [ROUND, LARGE_CALL, ROUND._replace(pause_ns=apart_ns), ROUND._replace(pause_ns=apart_ns)]


@pytest.mark.parametrize(("apart_ms", "is_long"), [(15, 1), (2, 0)])
def test_a_cycle_that_is_long_beside_the_step_is_named(advise, apart_ms, is_long):
    known = {"facts": {"env.HOROVOD_CYCLE_TIME": "15"}, "steps": EVERY_51_MS}
    row = advise(beside(idle_rounds(apart_ms * MS), **known))["cycle"]
    assert (row["found"], row["saving_ns"]) == (is_long, None)
    if is_long:
        assert row["title"] == "a cycle of 15.0 ms is long beside steps of 51.0 ms"
        assert "(HOROVOD_CYCLE_TIME is 15)" in row["evidence"]
        assert "7.50 ms on average, 14.7 % of the step" in row["evidence"]


def test_the_first_message_of_a_round_is_not_fused_with_the_others(advise):
    """In each step one round sends 1 kB after a pause, the other one 1 MiB: neither had another
    message to be sent with."""
    first = ROUND._replace(pause_ns=2 * MS)
    rounds = [ROUND, Call(1_000, 900_000, pause_ns=MS), first, LARGE_CALL._replace(pause_ns=2 * MS)]
    small = {"env.HOROVOD_FUSION_THRESHOLD": "4096"}
    assert not advise(beside(rounds, facts=small))["small_messages"]["found"]
    more = Call(1_000, 900_000, pause_ns=MS)
    row = advise(beside([*rounds, *4 * [more]], facts=small))["small_messages"]
    assert row["found"] and "The 66.7 % of them that could be sent with others" in row["evidence"]


@pytest.mark.parametrize(("threshold", "is_found"), [("4096", 1), ("67108864", 0)])
def test_a_threshold_that_is_in_the_way_is_named(advise, threshold, is_found):
    """If the threshold is not in the way, a longer cycle has a price, too."""
    facts = {"env.HOROVOD_FUSION_THRESHOLD": threshold}
    row = advise(beside([ROUND, LARGE_CALL, *LAYERS], facts=facts))["small_messages"]
    assert row["found"] == is_found
    said = "raise HOROVOD_FUSION_THRESHOLD, which is 4096, above 1 MiB"
    assert (row["suggestion"] == said) == bool(is_found)


@pytest.mark.parametrize(("thread", "is_found"), [(1, 0), (0, 1)])
def test_buckets_that_come_while_the_main_thread_computes_are_not_fused(advise, thread, is_found):
    """They compete with the computation, whatever their size."""
    buckets = [LARGE_CALL, *2 * [Call(50_000, 900_000, pause_ns=5 * MS)]]
    assert advise(bursts(buckets, thread=thread))["small_messages"]["found"] == is_found

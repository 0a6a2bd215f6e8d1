"""`hvprof-report advise`: each rule on a planted run where it must speak, and on one where it must
not."""

from __future__ import annotations

import shutil

import parallel
import planted
import pytest
from cases import of
from planted import SECOND, Cell, Rank, Sample, Step, Window
from planted_job import HostClock, Job
from sampled_bursts import Call, bursts

RANKS, MIB, KIB = 2, 1 << 20, 1 << 10
COUNTED_NS = 10 * SECOND
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


def test_many_small_allreduces_could_be_fused(advise):
    """205 MB of 1 KiB messages in 6 s a rank; at the rate of 1 MiB they take 0.2 s."""
    row = advise(run_of(LARGE, Cell("MPI_Allreduce", KIB, [30_000], times=200_000)))[
        "small_messages"
    ]
    assert row["saving_ns"] == pytest.approx(200_000 * (30_000 - KIB * 1_000_000 / MIB), rel=1e-6)
    assert row["saving_share"] == pytest.approx(row["saving_ns"] / COUNTED_NS)
    assert of(row, "bytes certainty communicator") == (
        KIB,
        "possible",
        "MPI_COMM_WORLD",  # how much of it is waiting is not known
    )
    assert row["suggestion"] == "send them together, 1 MiB or more at once"


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


def test_fused_messages_of_many_sizes_make_a_rate_together(advise):
    """A framework's fused messages hardly ever have the same size twice."""
    odd = [Cell("MPI_Allreduce", MIB + 4 * step, [1_000_000]) for step in range(1, 31)]
    row = advise(run_of(*odd, Cell("MPI_Allreduce", KIB, [30_000] * 20_000)))["small_messages"]
    assert row["found"] and row["saving_ns"] == pytest.approx(20_000 * (30_000 - KIB), rel=0.07)


def test_many_tiny_allreduces_could_be_fewer(advise):
    row = advise(run_of(LARGE, Cell("MPI_Allreduce", 24, [30_000] * 20_000)))["tiny_messages"]
    assert of(row, "found saving_ns bytes") == (1, 20_000 * 30_000, 24)
    assert "HOROVOD" not in row["suggestion"]  # it was not seen


def test_tiny_allreduces_are_not_told_to_be_fused(advise):
    assert not advise(run_of(LARGE, Cell("MPI_Allreduce", 24, [30_000] * 20_000)))[
        "small_messages"
    ]["found"]


def test_one_small_message_a_step_is_not_fused(advise):
    small, large = Call(65 * KIB, 900_000), Call(MIB, 800_000)
    assert "small_messages" not in found(advise(bursts([small, large])))
    assert "small_messages" in found(advise(bursts([small, small, large])))


@pytest.fixture
def misleading_job(tmp_path):
    """Rank 2 comes last to all calls, but is in them longest too: sums name another."""

    def write(is_sampled: bool):
        job = Job([HostClock()] * 3)
        for step in range(1_000):
            at_ns = step * 2_000_000
            job.collective(
                "MPI_Allreduce",
                [at_ns, at_ns, at_ns + 300_000],
                [10_000, 10_000, 500_000],
                is_sampled=is_sampled,
            )
        return job.write(tmp_path / "run.db")

    return write


def test_the_rank_that_is_waited_for_is_the_one_that_late_names(report, misleading_job):
    path = misleading_job(is_sampled=True)
    (row,) = [row for row in report("advise", path, "--json").rows if row["rule"] == "imbalance"]
    (late,) = report("late", path, "--json", "--by", "run").rows
    assert (row["title"], late["late_ranks"]) == ("rank 2 is waited for", "2")
    assert row["saving_ns"] == late["late_gain_ns"]
    assert late["late_gain_ns"] == pytest.approx(1_000 * 300_000, rel=0.01)


def test_all_commands_and_the_page_name_one_rank_in_one_sentence(report, misleading_job):
    path = misleading_job(is_sampled=True)
    report("html", path)
    first, *_ = report("late", path).out.splitlines()
    assert first.startswith("Rank 2 is late: it causes 100.0 % of the waiting. Without that the ")
    for command in ("advise", "summary"):  # which fits 80 columns
        headline, *_ = report(command, path).out.partition("\n\n")
        assert " ".join(headline.split()) == first, command
    assert path.with_suffix(".html").read_text().count(first) == 1


def waited_for(blocked_ns: int) -> list[Cell]:
    return [
        Cell("MPI_Iallreduce", MIB, [1_000] * 100),
        Cell("MPI_Iallreduce", MIB, [2_000_000] * 100, measure="completion", blocked_ns=blocked_ns),
        Cell("MPI_Wait", 0, [1_850_000] * 100, communicator=0),
    ]


@pytest.mark.parametrize("blocked_ns", (180_000_000, 185_000_000), ids=["90 %", "more"])
def test_operations_that_are_waited_for_all_the_time_overlap_with_nothing(advise, blocked_ns):
    row = advise(run_of(*waited_for(blocked_ns)))["overlap"]
    assert (row["call"], row["saving_ns"]) == ("MPI_Iallreduce", blocked_ns)


def test_operations_that_overlap_are_left_alone(advise):
    assert not advise(run_of(*waited_for(blocked_ns=179_000_000)))["overlap"]["found"]


def test_operations_waited_for_together_save_no_more_than_the_waiting(advise):
    """Ten requests in one Waitall are each blocked as long as it lasts."""
    cells = [
        Cell("MPI_Irecv", MIB, [500_000_000] * 10, measure="completion", blocked_ns=5_000_000_000),
        Cell("MPI_Waitall", 0, [500_000_000], communicator=0),
    ]
    assert advise(run_of(*cells))["overlap"]["saving_ns"] == 500_000_000


def test_barriers_cost_what_they_last(advise):
    row = advise(run_of(Cell("MPI_Barrier", 0, [100_000] * 1_000)))["barriers"]
    assert row["saving_ns"] == 1_000 * 100_000


def test_what_saves_most_comes_first(report, tmp_path):
    cells = [
        Cell("MPI_Barrier", 0, [100_000] * 1_000),
        LARGE,
        Cell("MPI_Allreduce", KIB, [30_000] * 20_000),
    ]
    folder = planted.write_databases(tmp_path / "run", run_of(*cells))
    rules = [row["rule"] for row in report("advise", folder, "--json").rows if row["found"]]
    assert rules == ["small_messages", "barriers"]
    assert (
        report("advise", folder).out.partition("\n\n")[2].startswith("1. Fuse small MPI_Allreduce")
    )


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


def completed(call: str, times: int) -> list[Cell]:
    return [
        Cell(call, KIB, [2_000], times=times),
        Cell(call, KIB, [40_000], measure="completion", blocked_ns=0, times=times),
    ]


LOOKED_AT = {
    "small_messages": "128 of 288 calls, 0.69 % of the time",
    "tiny_messages": "128 of 288 calls, 0.69 % of the time",
    "barriers": "6 of 86 calls, < 0.01 % of the time",
    "overlap": "160 of 240 operations",
}


def test_a_rule_that_found_nothing_says_in_how_many_calls(report, advise, tmp_path):
    allreduces = [Cell("MPI_Allreduce", size, [size] * 32) for size in (64 * KIB, 2 * MIB)]
    others = [Cell("MPI_Ibarrier", 0, [2_000] * 40), Cell("MPI_Barrier", 0, [9_000] * 3)]
    polls = Cell("MPI_Test", 0, [200] * 500, communicator=0, measure="poll")
    ranks = run_of(*allreduces, *completed("MPI_Iallreduce", 80), *others, polls)
    ranks[0].cells.append(Cell("MPI_Bcast", 8, [2_000]))
    rows = advise(ranks)
    out = " ".join(report("advise", tmp_path / "run").out.split())
    for rule, analysed in LOOKED_AT.items():
        assert (rows[rule]["evidence"], rows[rule]["analysed"]) == ("", analysed), rule
        assert f"{rows[rule]['title']} (in {analysed})" in out


def test_where_most_rules_could_not_look_nothing_to_advise_is_not_said(report, tmp_path):
    unseen, seen = run_of(*completed("MPI_Iallreduce", 4_000)), planted.gpu_run()
    for name, ranks, begin in (
        ("unseen", unseen, "No advice: "),
        ("seen", seen, "Nothing to advise: "),
    ):
        out = report("advise", planted.write_databases(tmp_path / name, ranks)).out
        assert out.splitlines()[2].startswith(begin) and "could not look" in out.splitlines()[2]

"""Steps of planted runs: how many there are, how they are told, and where their time goes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import permutations, product
from random import Random
from types import SimpleNamespace

import planted
import pytest
import training
from cases import Columns, No, Row, check, of
from commprof_report.base import Columns as Arrays, Texts, chance, score, table
from commprof_report.commands.steps import communication_parts
from commprof_report.run.unseen import Hole
from commprof_report.steps.boundaries import Boundaries, Bounds, judged
from commprof_report.steps.long_steps import explained, trend, why_longer
from planted import Rank, SECOND, Span
from planted_job import HostClock, Job as PlantedJob, Program, repeated
from read_once import read_once
from training import Job, MS, rank_of


@pytest.fixture
def steps(report, tmp_path):
    """The rows of these ranks, or of a job."""

    def answer(run: list[Rank] | PlantedJob, *words: str) -> list[dict]:
        path = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        is_job = isinstance(run, PlantedJob)
        path = run.write(path) if is_job else planted.write_databases(path, run)
        return report("steps", path, "--json", *words).rows

    return answer


LOOP = ("--loop", "1")  # of one call alone nothing shows that it is a step
CHOSEN = "steps --loop 1"
BOTH = (("late", "--by", "run"), ("steps", *LOOP))


def pair(job: Job, **fields) -> list[Rank]:
    """Rank 0 computes less than rank 1 and waits."""
    return [rank_of(job, 0, early=0.25, **fields), rank_of(job, 1, **fields)]


def ddp_pair(**fields) -> list[Rank]:
    return pair(training.ddp(has_pauses=False), **fields)


# How many there are


@pytest.mark.parametrize("name", training.JOBS)
def test_the_steps_are_counted_and_named(report, tmp_path, name):
    """Each has the largest call of one that was made."""
    make, period, is_handed_out = training.JOBS[name]
    job = make()
    path = planted.write_databases(tmp_path / "run", pair(job))
    with read_once():
        (row,) = report("steps", path, "--json").rows
        each = report("steps", path, "--per-step", "--json").rows
    by_size = sorted(job.made, key=lambda call: call.bytes)
    largest_ns = {call.step: call.last_ns for call in by_size if call.step is not None}
    assert len(each) == len(largest_ns)
    for one, (_, end_ns) in zip(each, sorted(largest_ns.items())):
        assert one["begin_ns"] < end_ns <= one["begin_ns"] + one["step_ns"]
    assert of(row, "steps delimited_by total_steps") == (len(job.step_ends), "calls", None)
    assert row["period"].endswith(period)
    kinds = row["evidence"].split("; ")
    assert kinds[-1] == "command line"
    assert (kinds[0] == "bytes of the parameters") == is_handed_out
    assert row["certainty"] == ("known" if len(kinds) > 1 else "probably")


NOTHING = "1 loop, and nothing shows which is a step"


@pytest.mark.parametrize("make", (training.poisson, training.random_mix, training.single_phase))
def test_a_job_without_steps_says_so_and_why(report, tmp_path, make):
    why = "in the calls of rank 0: "
    none = {"steps": 0, "delimited_by": "", "p50_ns": None, "why": lambda said: why in said}
    said = ("steps", none, f"Steps none found: {why}")
    check(report, tmp_path / "run", pair(make()), said, ("steps --per-step", 0))


def unmarked_solver() -> list[Rank]:
    run = pair(training.solver(norms_every=10))
    for rank in run:
        rank.facts["command_line"] = "solve"
    return run


# The time of steps


def slow_job(slow_step: int, slow_call: bool = False) -> Job:
    job = Job()
    for step in range(60):
        is_slow = step == slow_step
        job.compute(20 * MS + (80 * MS if is_slow and not slow_call else 0), 0.02)
        job.call("Allreduce", 40_000_000, step, ns=(100 if slow_call and is_slow else 5) * MS)
    return job


def slower_and_slower() -> list[Rank]:
    job = Job()
    for step in range(200):
        job.compute((20 + step / 20) * MS, 0.05)
        job.call("Allreduce", 40_000_000, step, ns=2 * MS)
    return pair(job)


def in_regions() -> list[Rank]:
    ranks = ddp_pair()
    for rank in ranks:
        rank.regions = {1: "epoch", 2: "epoch/forward"}
        rank.spans = [Span(2, at * 200 * MS, (at * 200 + 50) * MS) for at in range(1, 31)]
    return ranks


def ensemble(
    paces: tuple[int, int], late_ns: int = 0, uneven_ns: int = 0, random_from: int = 4
) -> PlantedJob:
    """Two communicators of two ranks that know nothing of each other, each with 60 steps. Rank 3
    may be late. uneven_ns: ranks 0 and 1 take turns in computing longer. random_from: pairs of this
    rank and further ones come at random times."""
    program, chance = Program(4), Random(11)
    pairs = [program.job.group((0, 1), "first"), program.job.group((2, 3), "second")]
    for own, pace_ns in zip(pairs, paces):
        is_random = own.ranks[0] >= random_from
        if not is_random:  # the parameters
            program.collective("MPI_Bcast", own, root=0, message_bytes=4_000_000)
        for step in range(60):
            if is_random:
                pace_ns = round(80 * MS * chance.random() ** 4)
            for rank in own.ranks:
                more_ns = late_ns if rank == 3 else uneven_ns if rank == step % 2 else 0
                program.compute(rank, pace_ns + more_ns)
            size = 5_000_000 if is_random else 4_000_000  # equal calls have equal steps
            program.collective("MPI_Allreduce", own, MS, message_bytes=size)
    for rank in range(4):
        program.job.thread(rank, is_main=1)
    return program.end()


def unsampled() -> list[Rank]:
    ranks = pair(training.nonblocking())
    for rank in ranks:
        rank.windows = []
    return ranks


def polling(ranks: list[Rank], times: int) -> list[Rank]:
    """Unsuccessful MPI_Test of 1 ms."""
    for rank in ranks:
        rank.cells.append(planted.Cell("MPI_Test", 0, [MS] * times, communicator=0, measure="poll"))
    return ranks


def allreducing(ranks: int, late_ns: Callable[[int, int], int]) -> PlantedJob:
    """A step is an Allreduce every 100 ms. late_ns(step, rank): by how much a rank comes later than
    10 ms after the step's begin."""
    come_ns = lambda step, rank: 10 * MS + late_ns(step, rank)  # noqa: E731
    size = {"message_bytes": 40_000_000}
    job = repeated([HostClock()] * ranks, 41, 100 * MS, come_ns, MS, **size)
    for rank in range(ranks):
        job.thread(rank, is_main=1)
    return job


def mostly_not_split() -> PlantedJob:
    """Receives from a rank that sent nothing that was kept."""
    job = allreducing(4, lambda step, rank: 5 * MS if rank == 2 else 0)
    for step, rank in product(range(41), range(4)):
        job.receive(rank, (rank + 1) % 4, (step * 100 + 40) * MS, (step * 100 + 60) * MS)
    return job


SLOWEST = "none: rank 2 makes the others wait for 2.0 % of a step or more in 2 of 40 steps only"
FEW = "unknown: rank 2 causes 100.0 % of the waiting, half of that in 4 late arrivals; 8 "
UNSPLIT = "unknown: in 40 of 40 steps less than half of the time inside MPI is split"
HEADLINE = "In a step 28.0 ms = 26.0 outside MPI + 1.0 transfer + 1.0 waiting"
SAID = {
    "without evidence all loops are shown and one can be chosen": (
        unmarked_solver,
        (
            "steps",
            {"steps": 0, "delimited_by": "", "certainty": "none"},
            "Steps none found: in the calls of rank 0: 2 loops, and noth",
            "Loops loop 1: 20 x (40 message calls, 10 Allreduce of 8 B",
            "loop 2: 200 x (4 message calls, Allreduce of 8 B); eve",
        ),
        *[
            (f"steps --loop {loop}", {"steps": number, "certainty": "known", "evidence": "--loop"})
            for loop, number in ((1, 20), (2, 200))
        ],
        ("steps --loop 3", {"why": lambda why: why.endswith("2 loops are known")}),
    ),
    "a checkpoint makes an outlier that names its calls": (
        lambda: pair(training.ddp()),
        (
            "steps --per-step",
            *[
                Row(
                    {"step": step},
                    is_outlier=1,
                    why=lambda why: why.startswith(
                        "MPI_Barrier and MPI_Bcast and MPI_File_write_at and MPI_Gather in it"
                    ),
                )
                for step in (101, 201)
            ],
            Row({"step": 101}, file_ns=lambda ns: ns > 100 * MS),
            Row({"step": 100}, file_ns=0),
        ),
        (
            "steps",
            "Steps 300 steps of 5 bulk MPI_Allreduce, 102 MB, on MPI_COMM_WORLD by bytes of the ",
            "Loops 300 x (Allreduce of 4.28 MB, 3 Allreduce of 25 MiB",
            "Step time median 14",
            "exposed communication, on the main thread",
            "Trend none beyond chance, in 299 steps",
            "Slowest rank rank 1 in 297 of 297 steps: the others wait about 2",
            # two steps have a checkpoint, of which most is not split
            {"slowest_ranks": "1", "slowest_steps": 297, "judged_steps": 297, "slowest_why": ""},
        ),
        ("steps --by marks", {"why": "the program marked none"}),
        ("steps --csv --per-step", "step"),
    ),
    "ranks that are alike have no slowest": (
        lambda: [rank_of(training.ddp(), rank) for rank in range(2)],
        ("steps", {"slowest_ranks": None, "slowest_why": lambda why: why.startswith("none: ")}),
    ),
    "a trend is a change that was seen": (
        slower_and_slower,
        (CHOSEN, {"trend": "slower", "trend_p": lambda p: p < 1e-9}),
        (CHOSEN, "Trend slower: first tenth 2", No("per 100 steps")),
    ),
    "communication on a background thread is not called exposed": (
        lambda: ddp_pair(thread=1),
        (
            "steps",
            {"is_driven": 0, "thread": "pt_mpi", "thread_is_main": 0, "communication_ns": None},
            {"background_share": lambda share: 0.3 < share < 0.7, "slowest_ranks": "1"},
            "Slowest rank rank 1 in 2",
            "communication (",
            "all on the thread pt_mpi",
            "may be exposed",
            No("exposed communication"),
        ),
    ),
    "a region can be the step": (
        in_regions,
        (
            "steps --region epoch/forward",
            {"steps": 30, "delimited_by": "region", "p50_ns": 50 * MS},
        ),
        ("steps --region back", "the program named: epoch, epoch/forward"),
    ),
    **{
        f"steps of ranks that do not step together are not added up: {pace_ns}": (
            partial(ensemble, (10 * MS, pace_ns)),
            (
                "steps",
                {"steps": 60, "communicator": "second", "why": ""},
                {"apart": "ranks 0-1: 60 steps of 1 bulk MPI_Allreduce, median 11.0 ms"},
                "Other steps ranks 0-1: 60 steps of 1 bulk MPI_Allreduce, median ",
                "MPI_Allreduce second ",
            ),
            ("steps --per-step", Columns(ranks=[2] * 60)),
        )
        for pace_ns in (11 * MS, 40 * MS)
    },
    "ranks without steps are said to have none": (
        lambda: ensemble((10 * MS, 10 * MS), random_from=2),
        ("steps", f"on first; ranks 2-3 have none: {NOTHING} (rank 2)"),
    ),
    # `late` names rank 3, for the whole run
    "waiting in steps is not for a rank that has none of them": (
        lambda: ensemble((25 * MS, 11 * MS), late_ns=9 * MS, uneven_ns=2 * MS),
        ("steps", HEADLINE),
        ("summary", "Rank 3 is late: ", HEADLINE),
    ),
    "where calls are not sampled, communication is at least what was": (
        unsampled,
        (
            "steps",
            {"complete_steps": 0, "steps": 200},
            "no step was sampled whole: the time inside MPI is at least",
        ),
    ),
    "where a program polls most of the time no slowest rank is known": (
        lambda: polling(pair(training.nonblocking()), 200_000),
        (
            "steps",
            {"slowest_ranks": None},
            " of the time inside MPI is in polls, between which a rank may work",
        ),
    ),
    # last in all steps, but by 1.9 %: only in the long one, and in the short one after it, by more
    "a rank that is notably late in two steps is not the slowest": (
        lambda: allreducing(
            4, lambda step, rank: (60 * MS if step == 20 else 1_900_000) * (rank == 2)
        ),
        (CHOSEN, {"slowest_ranks": None, "slowest_why": SLOWEST}),
    ),
    **{
        f"after {waits} late arrivals {named or 'nobody'} is named": (
            partial(
                lambda waits: allreducing(
                    4, lambda step, rank: 60 * MS if rank == 2 and step > 40 - waits else 0
                ),
                waits,
            ),
            (
                CHOSEN,
                {"slowest_ranks": named, "slowest_why": lambda why, say=why: why.startswith(say)},
            ),
        )
        for waits, named, why in ((8, "2", ""), (7, None, FEW))
    },
    "where most of a step inside MPI is not split the slowest rank is unknown": (
        mostly_not_split,
        (
            CHOSEN,
            {"slowest_ranks": None, "judged_steps": 0},
            {"slowest_why": UNSPLIT},
        ),
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_steps_of_a_planted_run_are_told(report, tmp_path, name):
    check(report, tmp_path / "run", *SAID[name])


def every_fourth_s(job: Job, first_s: int = 0) -> list[tuple[int, int]]:
    """Times: one in four seconds, but for the last."""
    begins = range(first_s * SECOND, job.now_ns - 5 * SECOND, 4 * SECOND)
    return [(at_ns, at_ns + SECOND) for at_ns in begins]


def test_of_a_run_sampled_in_part_no_step_spans_a_gap_and_all_ranks_have_it(steps):
    """One second in four; the rest is estimated. Another rank has sampled more."""
    job = training.ddp(2_000, has_pauses=False)
    both, other = every_fourth_s(job), every_fourth_s(job, 2)
    ranks = [rank_of(job, rank, sampled=both) for rank in range(2)]
    (row,) = steps(ranks)
    seen = 2_000 * len(both) * SECOND / job.now_ns
    assert seen - 2 * len(both) <= row["steps"] <= seen
    assert row["total_steps"] == pytest.approx(2_000, rel=0.02)
    assert max(step["step_ns"] for step in steps(ranks, "--per-step")[1:]) < 250 * MS
    ranks[0] = rank_of(job, 0, sampled=sorted([*both, *other]))
    complete = pytest.approx(row["complete_steps"], abs=2)
    assert steps(ranks)[0]["complete_steps"] == complete


def test_steps_name_nobody_whom_late_does_not_name(report, tmp_path):
    """Before the steps another rank was late for longer than in all of them."""
    job = allreducing(
        4, lambda step, rank: 20 * MS if rank == 2 else (step * 7919 * (rank + 1)) % 1000
    )
    arrivals = [(10_000 + 9_000 * (rank == 0)) * MS for rank in range(4)]
    job.collective("MPI_Barrier", arrivals, [MS] * 4)
    folder = job.write(tmp_path / "run.db")
    (late_run,), (row,) = (report(*words, folder, "--json").rows for words in BOTH)
    assert (late_run["late_ranks"], row["slowest_ranks"]) == (None, None)


def test_steps_and_late_agree_at_the_margin_of_chance(report, tmp_path):
    """Rank 2 is late more often than the others, but hardly beyond chance; the first step, which
    steps leave out, may decide."""
    named = []
    for seed in range(20):
        random = Random(seed)
        late_ns = [
            [random.expovariate(1 / (10 * MS)) * (1.9 if rank == 2 else 1) for rank in range(4)]
            for _ in range(41)
        ]
        job = allreducing(4, lambda step, rank: round(late_ns[step][rank]))
        path = job.write(tmp_path / "run.db")
        with read_once():
            (late_run,), (row,) = (report(*words, path, "--json").rows for words in BOTH)
        named.append((late_run["late_ranks"], row["slowest_ranks"]))
    assert {late for late, _ in named} == {None, "2"}  # else this test could not fail
    assert [late for late, _ in named] == [slowest for _, slowest in named]


# Formulas


def test_time_between_the_calls_of_another_thread_explains_no_outlier():
    """It says nothing of the thread that drives the steps: Horovod's joins each round in time."""
    assert why_longer(1_000, [], [0, 900], {}, False) == (
        "what the thread that drives the steps did is not known, and no call took longer on average"
    )


UNEXPLAINED = "no rank spent half of the excess outside MPI, and no call took longer on average"


@pytest.mark.parametrize(
    "call_ns, why",
    [(11 * MS, "1.00 ms more in MPI_Allreduce"), (10 * MS, UNEXPLAINED), (5 * MS, UNEXPLAINED)],
)
def test_an_outlier_in_which_no_call_took_longer_names_none(call_ns, why):
    """Its excess is neither outside MPI nor in a call that is compared."""
    texts = Texts()
    steps = [(step, 0, 0, 50 * MS if step == 2 else 30 * MS, 0, step == 2, 1) for step in range(3)]
    rows = table(Boundaries, steps, texts)
    spent = [(row, "MPI_Allreduce", ns) for row, ns in enumerate((10 * MS, 10 * MS, call_ns))]
    calls = table(Arrays, spent, texts, ("row", "name", "total_ns"))
    outside_ns = rows.step_ns - calls.total_ns - 20 * MS * rows.is_outlier  # 20 ms in files
    assert explained(rows, outside_ns, calls, True, texts) == {2: why}


def test_the_chance_of_an_order_is_that_of_all_permutations():
    for places in (2, 5, 6):
        scores = [score(order) for order in permutations(range(places))]
        for least in range(places * (places - 1) // 2 + 1):
            share = sum(abs(score) >= least for score in scores) / len(scores)
            assert chance(places, least) == pytest.approx(share)


@pytest.mark.parametrize("count", (20, 48, 300))
def test_healthy_steps_have_a_trend_in_one_run_of_a_hundred_at_most(count):
    random = Random(count)
    runs = [[20 * MS * random.lognormvariate(0, 0.1) for _ in range(count)] for _ in range(400)]
    # with a probability of 1 %, 11 or more in 1 of 300 trials
    assert sum(trend(run).trend != "none" for run in runs) <= 10
    slower = [[ns * (1 + 0.4 * at / count) for at, ns in enumerate(run)] for run in runs[:50]]
    found = {trend(run).trend for run in slower}
    assert found <= ({"slower"} if count >= 48 else {"slower", "none"})


def test_equal_steps_and_too_few_have_no_trend():
    assert trend([10 * MS] * 100) == ("none", 1.0, 10 * MS, 10 * MS)
    assert trend([10 * MS + step for step in range(19)]) == ("unknown", None, None, None)
    assert trend([10 * MS + step for step in range(100)]).trend == "none"  # sure, but not notable
    assert trend([20 * MS - 50_000 * step for step in range(100)]).trend == "faster"


# Stages of steps on columns that a test writes down.


def test_steps_that_a_hole_touches_are_not_complete():
    times = [(rank, 100 * place, 100 * place + 100) for rank in (0, 1) for place in range(4)]
    rows = [(place % 4 + 1, *of_rank) for place, of_rank in enumerate(times)]
    holes = {1: [Hole(1, 0, 0, 0), Hole(1, 0, 150, 200), Hole(1, 0, 310, 1 << 62)]}
    found = judged(table(Bounds, rows, Texts()), holes)
    assert found.is_complete.tolist() == [True] * 4 + [True, False, True, False]


def test_steps_without_length_as_a_damaged_file_has_them_have_no_fault():
    spent = dict(background_ns=0.0, step_ns=0.0, data_ns=None, negotiation=None)
    said = communication_parts(SimpleNamespace(**spent, complete_steps=1))
    assert said == "0.00 % communication (0 ns)"

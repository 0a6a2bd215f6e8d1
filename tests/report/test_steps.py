"""Steps of planted runs: how many there are, how they are told, and where their time goes."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import permutations, product
from random import Random

from cases import of
import planted
import pytest
import training
from commprof_report.base import Columns, Texts, summarize, table, units
from commprof_report.base.summarize import matched
from commprof_report.steps.boundaries import Boundaries
from commprof_report.steps.long_steps import explained, trend, why_longer
from planted import SECOND, Message, Rank, Sample, Span, Start, Step, Window
from planted_job import HostClock, Job as PlantedJob, Program, repeated
from training import MS, Job, rank_of


@pytest.fixture
def steps(report, tmp_path):
    """The answer about these ranks, or about a job."""

    def answer(run: list[Rank] | PlantedJob, *words: str):
        path = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        found = report(
            "steps",
            run.write(path) if isinstance(run, PlantedJob) else planted.write_databases(path, run),
            *words,
        )
        assert found.status == 0
        return found

    return answer


@pytest.fixture
def summary(steps):
    def answer(run: list[Rank] | PlantedJob, *words: str) -> dict:
        (row,) = steps(run, "--json", *words).rows
        return row

    return answer


@pytest.fixture
def per_step(steps):
    return lambda run, *words: steps(run, "--json", "--per-step", *words).rows


@pytest.fixture
def per_call(steps):
    return lambda run: steps(run, "--json", "--per-call").rows


LOOP = ("--loop", "1")  # of one call alone nothing shows that it is a step

BOTH = (("late", "--by", "run"), ("steps", *LOOP))


def pair(job: Job, **fields) -> list[Rank]:
    """Rank 0 computes less than rank 1 and waits."""
    return [rank_of(job, 0, early=0.25, **fields), rank_of(job, 1, **fields)]


JOBS = {
    "ddp": (training.ddp, 300, "5 bulk MPI_Allreduce, 102 MB"),
    "one allreduce": (training.one_allreduce, 300, "1 bulk MPI_Allreduce, 40.0 MB"),
    "equal layers": (training.equal_layers, 200, "10 bulk MPI_Allreduce, 20 MiB"),
    "zero": (training.zero, 150, "3 bulk MPI_Reduce_scatter + 3 bulk MPI_Allgather, 63.8 MB"),
    "k-means": (training.kmeans, 203, "2 bulk MPI_Allreduce, 1,280 B"),
    "caffe": (training.caffe, 120, "6 bulk MPI_Bcast + 6 bulk MPI_Reduce, 479 MB"),
    "nonblocking": (training.nonblocking, 200, "4 bulk MPI_Iallreduce, 698 KB"),
    "transformer": (training.transformer, 60, "145 bulk MPI_Allreduce, 1.01 GB"),
    "waiting in control": (training.waiting_in_control, 203, "2 bulk MPI_Allreduce, 1,280 B"),
    "control in flight": (training.control_in_flight, 100, "2 bulk MPI_Allreduce, 6.19 MB"),
    "solver": (training.solver, 200, "1 MPI_Allreduce, 8 B"),
}


HANDED_OUT = ("ddp", "one allreduce", "equal layers", "caffe", "transformer")


@pytest.mark.parametrize("name", JOBS)
def test_the_steps_are_counted_and_named(summary, name):
    make, steps, period = JOBS[name]
    row = summary(pair(make()))
    assert of(row, "steps delimited_by total_steps") == (steps, "calls", None)
    assert row["period"].endswith(period)
    kinds = row["evidence"].split("; ")
    assert kinds[-1] == "command line"
    assert (kinds[0] == "bytes of the parameters") == (name in HANDED_OUT)
    assert row["certainty"] == ("known" if len(kinds) > 1 else "probably")


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_step_ends_with_its_last_bulk_collective_and_its_parts_add_up(per_step, name):
    job = JOBS[name][0]()
    rows = per_step(pair(job))
    ends = [row["begin_ns"] + row["step_ns"] for row in rows[1:]]
    if name != "k-means":  # its last one is control
        assert ends == pytest.approx(job.step_ends[1:])
    assert [row["begin_ns"] for row in rows[2:]] == pytest.approx(ends[:-1])
    for row in rows:
        parts_ns = row["communication_ns"] + row["file_ns"] + row["outside_ns"]
        assert parts_ns == pytest.approx(row["step_ns"])
        assert row["outside_ns"] >= 0 and row["is_complete"]


@pytest.mark.slow
@pytest.mark.parametrize("make", [training.random_mix, training.poisson, training.single_phase])
def test_a_job_without_steps_says_so_and_why(summary, steps, make, per_step, per_call):
    row = summary(pair(make()))
    assert of(row, "steps delimited_by p50_ns") == (0, "", None)
    assert row["why"].startswith("in the calls of rank 0: ")
    text = steps(pair(make())).out
    assert text.startswith(f"Steps           none found: {row['why']}")
    assert per_step(pair(make())) == per_call(pair(make())) == []


def test_without_evidence_all_loops_are_shown_and_one_can_be_chosen(summary, steps):
    run = pair(training.solver(norms_every=10))
    for rank in run:
        rank.facts["command_line"] = "solve"
    row = summary(run)
    assert of(row, "steps delimited_by certainty") == (0, "", "none")
    assert [line[:70].rstrip() for line in steps(run).out.splitlines()[:3]] == [
        "Steps           none found: in the calls of rank 0: 2 loops, and nothi",
        "Loops           loop 1: 20 x (10 x (4 message calls, Allreduce of 8 B)",
        "                loop 2: 200 x (4 message calls, Allreduce of 8 B); eve",
    ]
    for loop, number in (("1", 20), ("2", 200)):
        row = summary(run, "--loop", loop)
        assert of(row, "steps certainty evidence") == (number, "known", "--loop")
    assert summary(run, "--loop", "3")["why"].endswith("2 loops are known")


@pytest.mark.parametrize("make", [training.negotiation, training.negotiation_of_kinds])
def test_messages_and_control_traffic_of_changing_number_are_no_steps(summary, make):
    row = summary(pair(make()))
    assert row["delimited_by"] == "", row["evidence"]


def several_sizes(sizes: list[int], times: int, compute_ns: int = 10 * MS) -> Job:
    job = Job()
    for place in range(times):
        job.compute(compute_ns)
        job.call("Allreduce", sizes[place % len(sizes)])
    return job


LARGE = [1_000_000, 3_000_000]
REASONS = {
    "one": (training.small("Allreduce", 400), "1 loop, and nothing shows which is a step"),
    "few": (several_sizes(LARGE, 5), "5 calls are too few, 8 are needed"),
    "few fit": (
        training.random_mix(),
        "what repeats has 28.4 % of the calls of its kind, 60.0 % are needed",
    ),
    "no repetition": (training.single_phase(), "no call repeats"),
}


@pytest.mark.parametrize("name", REASONS)
def test_the_reason_why_there_are_no_steps_is_the_reason(summary, name):
    job, why = REASONS[name]
    row = summary(pair(job))
    assert (row["delimited_by"], row["why"]) == ("", f"in the calls of rank 0: {why}")


def test_communication_of_a_step_is_the_time_inside_mpi(per_step):
    """Three calls, each 1 ms long, in steps of 10 ms."""
    job = Job()
    for step in range(50):
        job.compute(7 * MS - 6_000, 0)
        for size in (1_000_000, 2_000_000, 500_000):
            begin_ns = job.now_ns
            job.call("Allreduce", size, step)
            job.made[-1].end_ns, job.now_ns = begin_ns + MS, begin_ns + MS + 2_000
    rows = per_step([rank_of(job)])
    assert {of(row, "step_ns communication_ns outside_ns") for row in rows[1:]} == {
        (10 * MS, 3 * MS, 7 * MS)
    }


def test_calls_per_step_have_their_bytes_and_time(per_call):
    rows = {row["call"]: row for row in per_call(pair(training.zero()))}
    assert set(rows) == {"MPI_Reduce_scatter", "MPI_Allgather"}
    assert (rows["MPI_Reduce_scatter"]["count"], rows["MPI_Reduce_scatter"]["bytes"]) == (
        3,
        2 * 16_777_216 + 9_000_000,
    )
    assert rows["MPI_Allgather"]["communicator"] == "MPI_COMM_WORLD"
    assert rows["MPI_Allgather"]["exposed_ns"] == rows["MPI_Allgather"]["total_ns"]


def test_the_first_steps_are_left_out_as_long_as_they_are_slow(summary):
    job = Job()
    for step in range(60):
        job.compute((200 if step < 3 else 20) * MS)
        job.call("Allreduce", 40_000_000, step)
    row = summary(pair(job), *LOOP)
    assert of(row, "steps warm_up_steps outliers") == (60, 3, 0)


def test_a_checkpoint_makes_an_outlier_that_names_its_calls(per_step):
    rows = per_step(pair(training.ddp()))
    for row in (rows[100], rows[200]):
        own = "MPI_Barrier and MPI_Bcast and MPI_File_write_at and MPI_Gather in it"
        assert row["is_outlier"] and row["why"].startswith(own)
    assert rows[100]["file_ns"] > 100 * MS > rows[99]["file_ns"] == 0


def slow_job(slow_step: int, slow_call: bool = False) -> Job:
    job = Job()
    for step in range(60):
        job.compute(20 * MS + (80 * MS if step == slow_step and not slow_call else 0), 0.02)
        job.call(
            "Allreduce",
            40_000_000,
            step,
            ns=100 * MS if slow_call and step == slow_step else 5 * MS,
        )
    return job


def test_an_outlier_names_the_rank_that_computed_longer(per_step):
    job = slow_job(30)
    first, second = rank_of(job), rank_of(job, 1)
    one = first.samples[30]
    first.samples[30] = Sample(**{**vars(one), "start_ns": one.start_ns - 80 * MS})
    row = per_step([first, second], *LOOP)[30]
    assert (
        row["is_outlier"]
        and row["why"][0] == "8"
        and row["why"].endswith(
            " more outside MPI on 1 of 2 ranks; the others wait 80.0 ms because of rank 1"
        )
    )
    assert row["slowest_rank"] == 1 and row["lead_ns"] == pytest.approx(80 * MS, rel=0.01)


def test_an_outlier_names_the_call_that_took_longer(per_step):
    row = per_step(pair(slow_job(30, True)), *LOOP)[30]
    assert row["is_outlier"] and "more in MPI_Allreduce" in row["why"]


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
    rows = table(
        Boundaries,
        [(step, 0, 0, 50 * MS if step == 2 else 30 * MS, 0, step == 2, 1) for step in range(3)],
        texts,
    )
    spent_ns = [10 * MS, 10 * MS, call_ns]
    calls = table(
        Columns,
        [(row, "MPI_Allreduce", own_ns) for row, own_ns in enumerate(spent_ns)],
        texts,
        ("row", "name", "total_ns"),
    )
    outside_ns = rows.step_ns - calls.total_ns - 20 * MS * rows.is_outlier  # 20 ms in files
    assert explained(rows, outside_ns, calls, True, texts) == {2: why}


@pytest.mark.slow
def test_the_slowest_rank_is_the_one_that_the_others_wait_for(summary, steps):
    """Two steps have a checkpoint, of which most is not split."""
    row = summary(pair(training.ddp()))
    assert of(row, "slowest_ranks slowest_steps judged_steps slowest_why") == ("1", 297, 297, "")
    # of rank 0; of both
    assert row["slowest_lead_ns"] == pytest.approx(2 * row["wait_ns"], rel=0.1)
    assert (
        "Slowest rank    rank 1 in 297 of 297 steps: the others wait about 2"
        in steps(pair(training.ddp())).out
    )
    alike = summary([rank_of(training.ddp(), rank) for rank in range(2)])
    assert alike["slowest_ranks"] is None
    assert alike["slowest_why"].startswith("none: ")


@pytest.mark.slow
def test_a_trend_is_a_change_that_was_seen(summary, steps):
    job = Job()
    for step in range(200):
        job.compute((20 + step / 20) * MS, 0.05)
        job.call("Allreduce", 40_000_000, step, ns=2 * MS)
    row = summary(pair(job), *LOOP)
    assert row["trend"] == "slower" and row["trend_p"] < 1e-9
    assert row["last_tenth_ns"] - row["first_tenth_ns"] == pytest.approx(9 * MS, rel=0.15)
    assert (
        "Trend           slower: first tenth 2" in steps(pair(job), *LOOP).out
        and "per 100 steps" not in steps(pair(job), *LOOP).out
    )
    assert summary(pair(training.ddp()))["trend"] == "none"
    said = steps(pair(training.ddp())).out
    assert "Trend           none beyond chance, in 299 steps\n" in said
    few = steps(pair(training.ddp(steps=12, has_pauses=False))).out
    assert "Trend           unknown: 11 steps are too few, 20 are needed\n" in few
    assert re.search(r"Outliers        none of 11 steps is beyond \d+ ms\n", few)


def test_the_chance_of_an_order_is_that_of_all_permutations():
    for places in (2, 5, 6):
        scores = [summarize.score(order) for order in permutations(range(places))]
        for least in range(places * (places - 1) // 2 + 1):
            assert summarize.chance(places, least) == pytest.approx(
                sum(abs(score) >= least for score in scores) / len(scores)
            )


@pytest.mark.parametrize("count", (20, 25, 48, 300))
def test_healthy_steps_have_a_trend_in_one_run_of_a_hundred_at_most(count):
    random = Random(count)
    runs = [[20 * MS * random.lognormvariate(0, 0.1) for _ in range(count)] for _ in range(400)]
    # with a probability of 1 %, 11 or more in 1 of 300 trials
    assert sum(trend(run).trend != "none" for run in runs) <= 10
    assert {
        trend([ns * (1 + 0.4 * place / count) for place, ns in enumerate(run)]).trend
        for run in runs[:50]
    } <= ({"slower"} if count >= 48 else {"slower", "none"})


def test_equal_steps_and_too_few_have_no_trend():
    assert trend([10 * MS] * 100) == ("none", 1.0, 10 * MS, 10 * MS)
    assert trend([10 * MS + step for step in range(19)]) == ("unknown", None, None, None)
    assert trend([10 * MS + step for step in range(100)]).trend == "none"  # sure, but not notable
    assert trend([20 * MS - 50_000 * step for step in range(100)]).trend == "faster"


@pytest.mark.slow
def test_communication_on_a_background_thread_is_not_called_exposed(summary, steps):
    ranks = pair(training.ddp(has_pauses=False), thread=1)
    row = summary(ranks)
    assert of(row, "is_driven thread thread_is_main communication_ns") == (0, "pt_mpi", 0, None)
    assert 0.3 < row["background_share"] < 0.7 and row["slowest_ranks"] == "1"
    text = steps(ranks).out
    assert "Slowest rank    rank 1 in 2" in text
    assert (
        "communication (" in text
        and "all on the thread pt_mpi" in text
        and "may be exposed" in text
    )
    assert "exposed communication" not in text


def test_what_a_background_thread_does_beside_a_main_one_is_shown_apart(summary, steps):
    ranks = pair(training.ddp(has_pauses=False))
    for rank in ranks:
        rank.threads.append((1, "loader", 0))
        rank.samples.append(
            Sample("MPI_Send", 60 * MS, rank.wall_ns - 60 * MS, bytes=1_000, thread=1)
        )
        rank.windows.append(Window(0, rank.wall_ns, 1))
    row = summary(ranks)
    assert (
        row["is_driven"]
        and row["background_share"] == pytest.approx(1)
        and row["communication_share"] < 0.7
    )
    assert "another thread communicates 100.0 %" in steps(ranks).out


def test_marked_steps_come_before_found_ones(summary):
    ranks = pair(training.ddp(has_pauses=False))
    for rank in ranks:
        rank.steps = [
            Step(number, number * SECOND, (number + 1) * SECOND) for number in range(1, 11)
        ]
    row = summary(ranks)
    assert of(row, "steps delimited_by certainty p50_ns") == (10, "marks", "known", SECOND)
    assert summary(ranks, "--by", "calls")["steps"] == 300
    assert summary(pair(training.ddp()), "--by", "marks")["why"] == "the program marked none"


def test_the_last_marked_step_ends_with_its_last_call(per_step):
    rank = rank_of(training.ddp(has_pauses=False))
    last_ns = max(sample.end_ns for sample in rank.samples if sample.call != "MPI_Finalize")
    begin_ns = last_ns - 30 * MS
    rank.wall_ns = last_ns + 5 * SECOND
    rank.steps = [Step(1, begin_ns - 30 * MS, begin_ns), Step(2, begin_ns, rank.wall_ns)]
    assert [row["step_ns"] for row in per_step([rank])] == [30 * MS, 30 * MS]


def test_marked_steps_of_which_some_are_sampled_keep_their_numbers(summary, per_step):
    rank = rank_of(training.ddp(has_pauses=False))
    rank.steps = [
        Step(number, number * 10 * MS, (number + 1) * 10 * MS)
        for number in (*range(1, 1025), *range(2049, 2100))
    ]
    assert [row["step"] for row in per_step([rank])][-1] == 2099
    assert summary([rank])["total_steps"] == 2099


def test_a_region_can_be_the_step(summary, steps):
    ranks = pair(training.ddp(has_pauses=False))
    for rank in ranks:
        rank.regions = {1: "epoch", 2: "epoch/forward"}
        rank.spans = [
            Span(2, number * 200 * MS, number * 200 * MS + 50 * MS) for number in range(1, 31)
        ]
    row = summary(ranks, "--region", "epoch/forward")
    assert of(row, "steps delimited_by p50_ns") == (30, "region", 50 * MS)
    assert "the program named: epoch, epoch/forward" in steps(ranks, "--region", "back").out


def hybrid_ranks(**fields) -> list[Rank]:
    """Ranks 0-1 reduce gradients among themselves, ranks 2-3 others; the clocks of both pairs are
    told apart by their start."""
    return [rank_of(training.hybrid(pair=rank // 2), rank, 4, **fields) for rank in range(4)]


def test_steps_of_replica_groups_are_matched_by_time(summary, per_step):
    row = summary(hybrid_ranks())
    assert of(row, "steps communicator period") == (
        80,
        "Comm_split {0-1}",
        "2 bulk MPI_Allreduce, 500 KB",
    )
    rows = per_step(hybrid_ranks())
    assert [row["step"] for row in rows] == list(range(1, 81)) and {
        row["ranks"] for row in rows
    } == {4}


def test_groups_of_which_one_lacks_a_step_are_matched_in_order():
    """The other is late by more than half a step now and then."""
    ends = [number * 10 * MS for number in range(1, 101)]
    others = [end_ns + 7 * MS * (number % 3 == 0) for number, end_ns in enumerate(ends, 1)][1:]
    assert matched({0: ends, 2: others}) == {0: list(range(1, 101)), 2: list(range(2, 101))}


def test_a_rank_whose_samples_have_a_gap_keeps_its_steps():
    ends = [number * 10 * MS for number in range(1, 101)]
    assert matched({0: ends, 3: ends[:30] + ends[60:]})[3] == [*range(1, 31), *range(61, 101)]


def ensemble(
    paces: tuple[int, int], late_ns: int = 0, uneven_ns: int = 0, random_from: int = 4
) -> PlantedJob:
    """Two communicators of two ranks that know nothing of each other, each with 60 steps. Rank 3
    may be late. uneven_ns: ranks 0 and 1 take turns in computing longer. random_from: pairs of this
    rank and further ones come at random times."""
    program, chance = Program(4), Random(11)
    pairs = [program.job.group((0, 1), "first"), program.job.group((2, 3), "second")]
    for pair_of_ranks, pace_ns in zip(pairs, paces):
        if pair_of_ranks.ranks[0] < random_from:  # the parameters
            program.collective("MPI_Bcast", pair_of_ranks, root=0, message_bytes=4_000_000)
        for step in range(60):
            is_random = pair_of_ranks.ranks[0] >= random_from
            if is_random:
                pace_ns = round(80 * MS * chance.random() ** 4)
            for rank in pair_of_ranks.ranks:
                program.compute(
                    rank, pace_ns + (late_ns if rank == 3 else uneven_ns if rank == step % 2 else 0)
                )
            size = 5_000_000 if is_random else 4_000_000  # equal calls have equal steps
            program.collective("MPI_Allreduce", pair_of_ranks, MS, message_bytes=size)
    for rank in range(4):
        program.job.thread(rank, is_main=1)
    return program.end()


@pytest.mark.parametrize("pace_ns", [11 * MS, 15 * MS, 40 * MS])
def test_steps_of_ranks_that_do_not_step_together_are_not_added_up(
    summary, steps, per_step, pace_ns
):
    job = ensemble((10 * MS, pace_ns))
    row = summary(job)
    assert of(row, "steps communicator why") == (60, "second", "")
    said = "ranks 0-1: 60 steps of 1 bulk MPI_Allreduce, median 11.0 ms"
    assert row["apart"] == said
    assert {row["ranks"] for row in per_step(job)} == {2}
    begin = "\nOther steps     ranks 0-1: 60 steps of 1 bulk MPI_Allreduce, median "
    assert begin in steps(job).out


NOTHING = "1 loop, and nothing shows which is a step"


def test_ranks_without_steps_are_said_to_have_none(summary, steps):
    job = ensemble((10 * MS, 10 * MS), random_from=2)
    assert summary(job)["why"] == f"ranks 2-3 have none: {NOTHING} (rank 2)"
    assert f", on first; ranks 2-3 have none: {NOTHING} (rank 2)\n" in steps(job).out


def test_waiting_in_steps_is_not_for_a_rank_that_has_none_of_them(steps, report, tmp_path):
    """`late` names rank 3, for the whole run."""
    job = ensemble((25 * MS, 11 * MS), late_ns=9 * MS, uneven_ns=2 * MS)
    headline = "28.0 ms = 26.0 outside MPI + 1.0 transfer + 1.0 waiting\n"
    assert f"In a step       {headline}" in steps(job).out
    said = report("summary", job.write(tmp_path / "run.db")).out
    assert said.startswith("Rank 3 is late: ") and f"In a step       {headline}" in said


def every_fourth_s(job, first_s: int = 0) -> list[tuple[int, int]]:
    """Times: one in four seconds, but for the last."""
    return [
        (at_ns, at_ns + 1_000 * MS)
        for at_ns in range(first_s * 1_000 * MS, job.now_ns - 5_000 * MS, 4_000 * MS)
    ]


def test_of_a_run_sampled_in_part_no_step_spans_a_gap(summary, per_step):
    """One second in four; the rest is estimated."""
    job = training.ddp(2_000, has_pauses=False)
    sampled = every_fourth_s(job)
    ranks = [rank_of(job, rank, sampled=sampled) for rank in range(2)]
    row = summary(ranks)
    seen = 2_000 * len(sampled) * 1_000 * MS / job.now_ns
    assert seen - 2 * len(sampled) <= row["steps"] <= seen
    assert row["total_steps"] == pytest.approx(2_000, rel=0.02)
    assert max(row["step_ns"] for row in per_step(ranks)[1:]) < 250 * MS


def test_steps_that_not_all_ranks_have_sampled_are_incomplete(summary):
    job = training.ddp(2_000, has_pauses=False)
    both, other = every_fourth_s(job), every_fourth_s(job, 2)
    first, second = rank_of(job, 0, sampled=sorted([*both, *other])), rank_of(job, 1, sampled=both)
    expected = summary([rank_of(job, 0, sampled=both), second])["complete_steps"]
    assert summary([first, second])["complete_steps"] == pytest.approx(expected, abs=2)


def test_where_calls_are_not_sampled_communication_is_at_least_what_was(summary, steps):
    ranks = pair(training.nonblocking())
    for rank in ranks:
        rank.windows = []
    row = summary(ranks)
    assert (row["complete_steps"], row["steps"]) == (0, 200)
    assert "no step was sampled whole: the time inside MPI is at least" in steps(ranks).out


def test_persistent_operations_have_their_bytes_where_they_start(per_call):
    """A step: Startall of two messages and a collective, which Waitany and Waitall complete, a
    message that is not persistent, and an Allreduce. Sendrecv has a further message that nothing
    starts."""
    rank = planted.Rank(
        0, 1, wall_ns=2 * SECOND, threads=[(0, "python3", 1)], windows=[Window(0, 2 * SECOND)]
    )
    for step in range(20):
        begin_ns = step * 100 * MS
        started = {"start_ns": begin_ns + 2 * MS, "end_ns": begin_ns + 4 * MS}
        first_ns, last_ns = begin_ns + 8 * MS, begin_ns + 20 * MS
        rank.steps.append(Step(step + 1, begin_ns, begin_ns + 100 * MS))
        rank.samples += [
            Sample("MPI_Startall", **started, communicator=0, bytes=0),
            Sample(
                "MPI_Isend",
                begin_ns + 4 * MS,
                begin_ns + 6 * MS,
                peer=1,
                bytes=300,
                completed_ns=last_ns,
            ),
            Sample(
                "MPI_Waitany", begin_ns + 6 * MS, first_ns, bytes=10, request_call="MPI_Send_init"
            ),
            Sample("MPI_Waitall", first_ns, last_ns, bytes=10, request_call="MPI_Send_init"),
            Sample("MPI_Sendrecv", last_ns, last_ns + MS, peer=1, bytes=7),
        ]
        rank.messages += [
            Message("MPI_Send_init", "sent", **started, peer=1, bytes=10, completed_ns=first_ns),
            Message("MPI_Recv_init", "received", **started, peer=1, bytes=20, completed_ns=last_ns),
            Message("MPI_Sendrecv", "received", last_ns, last_ns + MS, peer=1, bytes=9),
        ]
        rank.starts.append(
            Start("MPI_Allreduce_init", 1, step + 1, **started, bytes=4_000, completed_ns=last_ns)
        )
    rows = {row["call"]: row["bytes"] for row in per_call([rank])}
    assert rows == {
        "MPI_Startall": 4_030,
        "MPI_Isend": 300,
        "MPI_Waitany": 0,
        "MPI_Waitall": 0,
        "MPI_Sendrecv": 7,
    }


def test_steps_that_are_a_small_part_of_the_run_say_so(summary, steps):
    """As in a run of two phases, or with a long warm-up."""
    job = Job()
    for _ in range(150):
        job.compute(60 * MS)
        job.call("Allgather", 40_000_000)
    for step in range(200):
        job.compute(20 * MS)
        job.call("Allreduce", 40_000_000, step)
    row = summary(pair(job), *LOOP)
    assert (row["steps"], row["period"]) == (150, "1 bulk MPI_Allgather, 40.0 MB")
    assert 0.55 < row["time_share"] < 0.65
    share = units.share(row["time_share"])
    assert (
        f"warm-up step left out; these steps are {share} of the counted time without set-up\n"
        in steps(pair(job), *LOOP).out
    )


def polling(ranks: list[Rank], times: int, thread: int = 0) -> list[Rank]:
    """Unsuccessful MPI_Test of 1 ms."""
    cell = planted.Cell("MPI_Test", 0, [MS] * times, communicator=0, measure="poll", thread=thread)
    for rank in ranks:
        rank.cells.append(cell)
    return ranks


def test_polls_are_said_not_to_be_in_the_steps(summary, steps):
    ranks = polling(pair(training.ddp(has_pauses=False)), 20_000)
    assert summary(ranks)["poll_share"] > 0.2
    text = steps(ranks).out
    assert "polls that found nothing" in text
    assert " outside MPI or in polls + " in text and " rank 1 outside MPI or in polls, " in text


def test_where_a_program_polls_most_of_the_time_no_slowest_rank_is_known(summary, steps):
    ranks = polling(pair(training.nonblocking()), 200_000)
    assert summary(ranks)["slowest_ranks"] is None
    said = " of the time inside MPI is in polls, between which a rank may work\n"
    assert said in steps(ranks).out


def test_the_text_has_the_answer_in_its_first_lines(steps):
    lines = steps(pair(training.ddp())).out.splitlines()
    assert (
        lines[0] == "Steps           300 steps of 5 bulk MPI_Allreduce, 102 MB, on MPI_COMM_WORLD"
    )
    assert lines[1].startswith("                by bytes of the parameters")
    assert lines[2].startswith("Loops           300 x (Allreduce of 4.28 MB, 3 Allreduce of 25 MiB")
    assert lines[3].startswith("Step time       median 14")
    assert "outside MPI + " in lines[4] and lines[5].startswith("Efficiency      ")
    assert "exposed communication, on the main thread" in lines[6]


def allreducing(ranks: int, late_ns: Callable[[int, int], int], steps: int = 41) -> PlantedJob:
    """A step is an Allreduce every 100 ms. late_ns(step, rank): by how much a rank comes later than
    10 ms after the step's begin."""
    job = repeated(
        [HostClock()] * ranks,
        steps,
        100 * MS,
        lambda step, rank: 10 * MS + late_ns(step, rank),
        MS,
        message_bytes=40_000_000,
    )
    for rank in range(ranks):
        job.thread(rank, is_main=1)
    return job


def test_a_rank_that_is_late_in_some_steps_is_named_with_their_number(summary, per_step):
    """In two of three steps by 20 ms."""
    job = allreducing(4, lambda step, rank: 20 * MS if rank == 2 and step % 3 else 0)
    row = summary(job, *LOOP)
    assert of(row, "slowest_ranks slowest_steps judged_steps") == ("2", 27, 40)
    assert row["slowest_lead_ns"] == pytest.approx(20 * MS)
    slowest = {row["step"]: row["slowest_rank"] for row in per_step(job, *LOOP)}
    assert slowest == {step + 1: 2 if step % 3 and step else None for step in range(41)}


def test_a_rank_that_is_notably_late_in_two_steps_is_not_the_slowest(summary):
    """It is last in all steps, but by 1.9 %: only in the long one, and in the short one after it,
    by more."""
    late_ns = [60 * MS if step == 20 else round(1.9 * MS) for step in range(41)]
    row = summary(allreducing(4, lambda step, rank: late_ns[step] * (rank == 2)), *LOOP)
    assert row["slowest_ranks"] is None
    said = "rank 2 makes the others wait for 2.0 % of a step or more in 2 of 40 steps only"
    assert row["slowest_why"] == f"none: {said}"


def test_two_late_ranks_of_eight_are_both_named(summary, steps):
    """In one step of five it is a third rank."""
    job = allreducing(8, lambda step, rank: 20 * MS if rank == (0, 3, 6, 3, 6)[step % 5] else 0)
    row = summary(job, *LOOP)
    assert of(row, "slowest_ranks slowest_steps judged_steps") == ("3,6", 32, 40)
    assert row["slowest_lead_ns"] == pytest.approx(20 * MS * 7 / 6, rel=0.01)
    said = "Slowest rank    ranks 3,6 in 32 of 40 steps: the others wait about 23"
    assert said in steps(job, *LOOP).out


def test_steps_name_nobody_whom_late_does_not_name(report, tmp_path):
    """Before the steps another rank was late for longer than in all of them."""
    job = allreducing(
        4, lambda step, rank: 20 * MS if rank == 2 else (step * 7919 * (rank + 1)) % 1000
    )
    job.collective(
        "MPI_Barrier",
        [10_000 * MS + (9_000 * MS if rank == 0 else 0) for rank in range(4)],
        [MS] * 4,
    )
    folder = job.write(tmp_path / "run.db")
    (late_run,), (row,) = (report(*words, folder, "--json").rows for words in BOTH)
    assert (late_run["late_ranks"], row["slowest_ranks"]) == (None, None)


def test_steps_and_late_agree_at_the_margin_of_chance(report, tmp_path):
    """Rank 2 is late more often than the others, but hardly beyond chance; the first step, which
    steps leave out, may decide."""
    named = []
    for seed in range(40):
        random = Random(seed)
        late_ns = [
            [random.expovariate(1 / (10 * MS)) * (1.9 if rank == 2 else 1) for rank in range(4)]
            for _ in range(41)
        ]
        folder = allreducing(4, lambda step, rank: round(late_ns[step][rank])).write(
            tmp_path / "run.db"
        )
        (late_run,), (row,) = (report(*words, folder, "--json").rows for words in BOTH)
        named.append((late_run["late_ranks"], row["slowest_ranks"]))
    assert {late for late, _ in named} == {None, "2"}  # else this test could not fail
    assert [late for late, _ in named] == [slowest for _, slowest in named]


@pytest.mark.parametrize("waits", (7, 8))
def test_too_few_late_arrivals_name_nobody(summary, waits):
    job = allreducing(4, lambda step, rank: 60 * MS if rank == 2 and step > 40 - waits else 0)
    row = summary(job, *LOOP)
    assert row["slowest_ranks"] == ("2" if waits == 8 else None)
    said = "unknown: rank 2 causes 100.0 % of the waiting, half of that in 4 late arrivals; 8 "
    assert waits == 8 or row["slowest_why"].startswith(said)


def test_where_most_of_a_step_inside_mpi_is_not_split_the_slowest_rank_is_unknown(summary):
    """Receives from a rank that sent nothing that was kept."""
    job = allreducing(4, lambda step, rank: 5 * MS if rank == 2 else 0)
    assert summary(job, *LOOP)["slowest_ranks"] == "2"
    for step, rank in product(range(41), range(4)):
        job.receive(rank, (rank + 1) % 4, step * 100 * MS + 40 * MS, step * 100 * MS + 60 * MS)
    row = summary(job, *LOOP)
    assert (row["slowest_ranks"], row["judged_steps"]) == (None, 0)
    assert (
        row["slowest_why"]
        == "unknown: in 40 of 40 steps less than half of the time inside MPI is split"
    )

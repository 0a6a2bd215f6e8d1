"""`late --with-trace`: which rank Horovod's timeline says was ready last."""

from __future__ import annotations

import random
from collections.abc import Callable

import planted
import pytest
from commprof_report.exporters.horovod_ready import ready, ready_text
from commprof_report.exporters.horovod_timeline import longest
from test_horovod_timeline import MS, Written, one_step
from test_pytorch_traces import kineto, pair_of_ranks, written

CYCLE_NS = 1_000_000
STEP = 100 * MS


def job(
    lag_us: Callable[[int, int], int], steps: int = 60, ranks: int = 2, jitter_us: int = 2 * MS,
    cached_from: int | None = None,
) -> Written:
    """Three tensors a step, after a broadcast that waits long for ranks that start late. lag_us: of
    a rank in a step. From the step `cached_from` on, Horovod does not say which rank is ready."""
    chance = random.Random(7)
    made = Written()
    started_us = [rank * 9_000 * MS for rank in range(ranks)]
    made.negotiate("broadcast", *started_us, operation="BROADCAST")
    for step in range(steps):
        begin_us = 10_000 * MS + step * STEP
        own = [begin_us + chance.randrange(jitter_us) + lag_us(rank, step) for rank in range(ranks)]
        for place, tensor in enumerate(("last", "middle", "first")):
            times = [at_us + place * MS for at_us in own]
            if cached_from is None or step < cached_from:
                made.negotiate(tensor, *times)
            else:
                made.add("B", tensor, min(times), "NEGOTIATE_ALLREDUCE")
                made.add("E", tensor, max(times))
    return made


def said(made: Written, path, cycle_ns: float | None = CYCLE_NS) -> str:
    return ready_text(ready(longest(made.write(path / "timeline.json")), cycle_ns))


@pytest.mark.parametrize("slow", (0, 1, 2, 3))
def test_a_rank_that_is_ready_late_in_each_step_is_named(tmp_path, slow):
    text = said(job(lambda rank, _: 48 * MS * (rank == slow), ranks=4), tmp_path)
    assert text.startswith(f"rank {slow} is ready last in 60 of 60 negotiations of ")
    assert text.endswith(" ms (median) after the mean of the others")
    assert float(text.split(", ")[1].split()[0]) == pytest.approx(48, abs=1)


def test_ranks_that_are_late_by_chance_are_not_named(tmp_path):
    """Each is behind the others by up to a fifth of a step."""
    text = said(job(lambda *_: 0, ranks=2, jitter_us=20 * MS), tmp_path)
    nobody = "no rank is ready notably later than the others, beyond chance"
    assert text == f"{nobody}, in 60 negotiations of last"


def test_the_order_in_which_rank_0_asks_is_no_lateness(tmp_path):
    """In a round of negotiation it hears of itself first, and of the others in their order."""
    made = job(lambda rank, _: 900 * rank, jitter_us=1)
    assert said(made, tmp_path).startswith("no rank is ready notably later than the others")
    assert said(made, tmp_path, cycle_ns=100_000).startswith("no rank")  # 2 % of a step are notable
    late = job(lambda rank, _: 4 * MS * rank, jitter_us=1)
    assert said(late, tmp_path).startswith("rank 1 is ready last in 60 of 60")
    assert said(late, tmp_path, cycle_ns=10_000_000).startswith("no rank")
    assert said(late, tmp_path, cycle_ns=None).startswith("no rank")  # it may be 5 ms


def test_a_rank_that_is_late_in_some_steps_alone_is_not_named(tmp_path):
    text = said(job(lambda rank, step: 48 * MS * (rank == 1 and step < 4)), tmp_path)
    assert text.startswith("no rank is ready notably later than the others")


def test_the_tensor_that_is_negotiated_for_longest_is_judged(tmp_path):
    """Not the broadcast at the start: it is negotiated once."""
    made = job(lambda rank, _: 0)
    for step in range(60):
        made.negotiate("loss", 10_000 * MS + step * STEP, 10_000 * MS + step * STEP + 30 * MS)
    assert "60 of 60 negotiations of loss, 30.0 ms (median)" in said(made, tmp_path)


def test_where_horovod_s_cache_hides_the_ranks_the_way_out_is_said(tmp_path):
    made = job(lambda rank, _: 48 * MS * (rank == 1), jitter_us=1, cached_from=12)
    assert said(made, tmp_path) == (
        "the ranks are ready 48.0 ms (median) apart in 60 negotiations of last; the timeline says"
        " which one is last only if Horovod's cache is off: HOROVOD_CACHE_CAPACITY=0"
    )


@pytest.mark.parametrize("steps", (0, 1, 7))
def test_few_negotiations_are_no_evidence(tmp_path, steps):
    text = said(job(lambda rank, _: 48 * MS * (rank == 1), steps=steps), tmp_path)
    assert text.startswith(f"{max(1, steps)} negotiation")
    assert text.endswith(": too few to tell a cause from chance")


def test_late_says_it_beside_its_own_verdict(report, tmp_path):
    folder = planted.write_databases(tmp_path / "run", pair_of_ranks())
    path = job(lambda rank, _: 48 * MS * (rank == 1), steps=40).write(tmp_path / "a.json", ",\n")
    answer = report("late", folder, "--with-trace", path)
    assert (answer.status, answer.err) == (0, "")
    (line,) = [line for line in answer.out.splitlines() if line.startswith("Horovod ")]
    assert line.startswith("Horovod         rank 1 is ready last in 40 of 40 negotiations of ")
    assert "Horovod" not in report("late", folder).out


def test_late_takes_one_timeline_alone(report, tmp_path):
    folder = planted.write_databases(tmp_path / "run", pair_of_ranks())
    trace = written(tmp_path / "pytorch.json", kineto(pair_of_ranks()[0]))
    answer = report("late", folder, "--with-trace", trace)
    what = f"{trace}: is a trace of PyTorch; late takes a timeline of Horovod"
    assert answer.status == 1 and what in answer.err
    (tmp_path / "two").mkdir()
    for name in ("a.json", "b.json"):
        one_step().write(tmp_path / "two" / name)
    answer = report("late", folder, "--with-trace", tmp_path / "two")
    assert answer.status == 1 and "two: holds several timelines: name one of them" in answer.err


@pytest.mark.parametrize("form", ("--json", "--csv"))
def test_rows_have_no_line_of_a_timeline(report, run_folder, tmp_path, form):
    answer = report("late", run_folder, form, "--with-trace", tmp_path / "a.json")
    assert (answer.status, answer.out) == (2, "")
    assert "--with-trace adds a line to the text" in answer.err

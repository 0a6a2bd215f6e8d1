"""The steps that are found in a sequence of calls are those that made it."""

from __future__ import annotations

import random

import numpy as np
import pytest
import training
from commprof_report.base.columns import Texts
from commprof_report.loops.choice import Kind
from commprof_report.loops.repeats import find_loops
from commprof_report.steps import lines
from commprof_report.steps.stepping import Found, steps_of
from training import Job

LEAST_BULK = 100  # bytes; what control traffic is, is another test's concern
ROOTED = ("MPI_Bcast", "MPI_Gather", "MPI_Reduce", "MPI_Barrier", "MPI_File_write_at")


def calls_of(
    job: Job, keep=lambda sequence: True
) -> tuple[lines.OwnCalls, lines.AboutCalls, Texts]:
    """The calls; where `keep` leaves a number out something is missing in between."""
    made = [one for one in job.made if one.sequence is not None and keep(one.sequence)]
    sequence = np.array([one.sequence for one in made])
    texts = Texts()
    call = texts.all([one.call for one in made])
    sizes = np.array([one.bytes for one in made])
    is_bulk = sizes >= LEAST_BULK
    is_rooted = np.array([name in ROOTED for name in texts.texts])
    similar = lines.by_first_use(call, lines.repeated(call, sizes))
    kind = np.where(is_rooted[call], Kind.ROOTED, np.where(is_bulk, Kind.DATA, Kind.SMALL))
    start = np.array([one.begin_ns for one in made])
    end = np.where(is_bulk, [one.last_ns for one in made], [one.end_ns for one in made])
    every, two = np.ones(len(made), bool), np.full(len(made), 2)
    own = lines.OwnCalls(
        two, call, call, similar, similar, similar, kind, is_bulk, sizes, two * 0, two, sequence,
        np.cumsum(sequence != np.append(0, sequence[:-1]) + 1), start, end,
        lines.free(start, end, every),
    )
    none = np.zeros(len(texts.texts), bool)
    is_reduction = np.array([lines.is_reduction(name) for name in texts.texts])
    return own, lines.AboutCalls(~none, ~none, none, is_rooted, is_reduction, none), texts


def found_in(
    job: Job, keep=lambda sequence: True
) -> tuple[Found, list[set]]:
    """The bulk calls of each step, by the step that made them."""
    own, *others = calls_of(job, keep)
    found = steps_of(own, *others, False, True)
    spans = zip(found.spans.first.tolist(), found.spans.end.tolist()) if found.spans else ()
    made = [one for one in job.made if one.sequence is not None and keep(one.sequence)]
    return found, [
        {
            made[place].step for place in range(first, end)
            if made[place].step is not None and made[place].bytes >= LEAST_BULK
        }
        for first, end in spans
    ]


JOBS = {
    "ddp": (training.ddp, "loops", 5),
    "one allreduce": (training.one_allreduce, "loops", 1),
    "equal layers": (training.equal_layers, "gaps", 10),
    "zero": (training.zero, "loops", 6),
    "k-means": (training.kmeans, "loops", 2),
    "caffe": (training.caffe, "loops", 12),
    "nonblocking": (training.nonblocking, "loops", 4),
    "transformer": (training.transformer, "loops", 145),
    "waiting in control": (training.waiting_in_control, "loops", 2),
    "control in flight": (training.control_in_flight, "loops", 2),
}


def found(calls: str) -> tuple[list[tuple[int, ...]], list[int]]:
    """The bodies of the loops in a sequence of letters, and how many iterations each has."""
    loops = find_loops(np.array(list(map(ord, calls))))
    return loops.bodies, [loops.iterations(loop) for loop in range(len(loops.bodies))]


A, B, C = map(ord, "abc")


@pytest.mark.parametrize(
    ("calls", "bodies", "iterations"),
    [
        ("abc", [], []),
        ("aaa", [(A,)], [3]),
        ("aabaaabcaababc", [(A,), (-1, B), (-2, C)], [8, 4, 2]),  # counts are data
        ("ababcababc", [(A, B), (-1, C)], [4, 2]),
        ("babaXbabab", [(B, A)], [4]),  # the same loop, wherever it begins
        ("aabab", [(A,), (-1, B)], [3, 2]),  # a body that stands alone is one iteration
    ],
)
def test_loops_are_bodies_that_follow_themselves(calls, bodies, iterations):
    assert found(calls) == (bodies, iterations)


def test_no_loop_spans_a_hole():
    loops = find_loops(np.array([1, 2, 1, 2]), np.array([0, 0, 1, 1]))
    assert loops.bodies == []


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", JOBS)
def test_every_step_is_found_once_and_whole(name, seed):
    make, how, calls = JOBS[name]
    job = make(seed=seed)
    found, steps = found_in(job)
    assert (found.how, found.why) == (how, "")
    assert [len(inside) for inside in steps] == [1] * len(steps)
    assert [min(inside) for inside in steps] == list(range(len(job.step_ends)))
    assert calls in (None, round(sum(found.functions.values())))


def test_parameters_handed_out_before_a_few_steps_do_not_hide_them():
    job = Job()
    training.parameters(job, [1_000 + 300 * number for number in range(40)])
    for step in range(12):
        job.compute(30 * training.MS)
        for size in (2_504_752, 1_181_696, 156_288):
            job.call("Allreduce", size, step)
    found, steps = found_in(job)
    assert (found.how, found.functions) == ("loops", {"MPI_Allreduce": 3})
    assert (len(steps), found.confidence) == (12, 1.0)


def test_a_few_equal_buckets_are_one_step_and_equal_steps_with_a_metric_are_not():
    """Pauses come before the first of the buckets; before each of the steps."""
    for in_a_row, is_step in ((3, True), (5, False)):
        job = Job()
        for number in range(120):
            is_last = number % in_a_row == in_a_row - 1
            step = number // in_a_row if is_step else number
            job.compute((20 if not is_step or number % in_a_row == 0 else 0) * training.MS)
            job.call("Allreduce", 400_000, step)
            if is_last:
                job.call("Allreduce", 8, step)
        found, whole = found_in(job)
        steps = 120 // in_a_row if is_step else 120
        assert whole == [{step} for step in range(steps)], in_a_row
        assert found.functions["MPI_Allreduce"] == (in_a_row if is_step else 1)


def test_pauses_at_the_beginning_alone_group_none():
    """Other work on the machine: each second one of the first ten is long."""
    job = Job()
    for step in range(40):
        job.compute((40 if step % 2 == 0 and step < 10 else 2) * training.MS)
        for size in (1_152, 128):
            job.call("Allreduce", size, step)
    _, whole = found_in(job)
    assert whole == [{step} for step in range(40)]


def test_pauses_that_group_few_of_the_calls_group_none():
    """Nearly all long pauses are two steps apart, but for a long while there is none."""
    job = Job()
    for step in range(60):
        job.compute((40 if step % 2 == 0 and not 10 < step < 50 else 2) * training.MS)
        for size in (1_152, 128):
            job.call("Allreduce", size, step)
    found, steps = found_in(job)
    assert (found.how, sum(found.functions.values()), len(steps)) == ("loops", 2, 60)


def test_buffers_broadcast_in_each_step_do_not_hide_the_first_one():
    """DistributedDataParallel's first step has one bucket, and hands out the new buckets' sizes
    after it."""
    job = Job()
    for step in range(20):
        job.compute(20 * training.MS)
        job.call("Bcast", 53_120, step)
        for size in (6_129_104,) if step == 0 else (1_062_288, 2_000_000, 3_066_816):
            job.call("Allreduce", size, step)
        if step == 0:
            job.call("Bcast", 648)
    found, whole = found_in(job)
    assert whole == [{step} for step in range(20)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "make", [training.random_mix, training.poisson, training.single_phase, training.Job]
)
def test_a_job_without_steps_has_none(make, seed):
    found, steps = found_in(make(seed=seed))
    assert (found.spans, found.how) == (None, "") and found.why


@pytest.mark.parametrize("name", JOBS)
def test_too_few_calls_are_no_steps(name):
    found, _ = found_in(JOBS[name][0](), lambda sequence: sequence < 8)
    assert found.why == "7 calls are too few, 8 are needed"


@pytest.mark.parametrize("name", [name for name in JOBS if name != "caffe"])
def test_no_step_spans_a_gap(name):
    """Every third block of 64 or 1024 has samples. Caffe's longest pause is within a step."""
    job = JOBS[name][0](steps=400 if name != "transformer" else 100)
    size = 1024 if name == "transformer" else 64
    found, steps = found_in(job, lambda sequence: (sequence - 1) // size % 3 == 0)
    assert found.how
    assert {len(inside) for inside in steps} == {1}
    kept = {one.step for one in job.made if one.step is not None}
    for one in job.made:
        if one.step is not None and one.sequence and (one.sequence - 1) // size % 3:
            kept.discard(one.step)
    assert len(kept & {min(inside) for inside in steps}) >= 0.8 * len(kept)


def in_windows(calls: int, times: int, seed: int):
    """Keeps about one call in `times`, in windows of about so many calls that begin anywhere."""
    rng, kept, at = random.Random(seed), set(), 1
    while at < 100_000:
        at += round(calls * times * rng.uniform(0.9, 1.1))
        kept.update(range(at, at + round(calls * rng.uniform(0.8, 1.2))))
    return kept.__contains__


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("calls", [8, 13, 24, 32])
def test_equal_layers_are_not_taken_for_steps_where_windows_are_short(calls, seed):
    """Steps of ten layers, and one of the longer pauses or a few in each window."""
    found, steps = found_in(training.equal_layers(seed=seed, steps=600), in_windows(calls, 8, seed))
    assert found.how in ("", "gaps") and all(len(step) == 1 for step in steps)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("calls", [24, 48, 64, 100])
def test_layers_of_several_calls_are_not_taken_for_steps_where_no_window_holds_a_step(calls, seed):
    """Steps of 145 calls: 24 layers of six, and one more."""
    found, _ = found_in(training.transformer(seed=seed, steps=100), in_windows(calls, 8, seed))
    assert found.how == "" and found.why


@pytest.mark.parametrize("seed", range(2))
def test_single_calls_with_a_rare_pause_are_steps_though_most_are_not_sampled(seed):
    """An evaluation is a pause, too."""
    found, _ = found_in(training.one_allreduce(seed=seed, steps=2000), in_windows(80, 4, seed))
    assert found.how == "loops" and sum(found.functions.values()) == 1


@pytest.mark.parametrize(("pause_ns", "how", "calls"), [(4_000, "loops", 1), (40_000, "gaps", 64)])
def test_pauses_that_the_profiler_itself_may_make_end_no_step(pause_ns, how, calls):
    """It takes a new page for samples after each 64th call, which takes some microseconds."""
    job = training.Job()
    for _ in range(100 * 64):
        job.compute(pause_ns if len(job.made) % 64 == 0 else 0)
        job.call("Allreduce", LEAST_BULK, ns=400)
        job.now_ns = job.made[-1].end_ns + 100
    found, _ = found_in(job)
    assert (found.how, sum(found.functions.values())) == (how, calls)

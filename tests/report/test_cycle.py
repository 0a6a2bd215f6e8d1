"""The cycle that is found in a sequence of collectives is the one that made it."""

from __future__ import annotations

import pytest
import training
from commprof_report.steps.period import Calls, Cycle, cycle, free_times
from training import Job

LEAST_BULK = 100  # bytes; what control traffic is, is another test's concern


def calls_of(job: Job, keep=lambda sequence: True) -> tuple[Calls, list]:
    """The bulk calls; where `keep` leaves a number out something is missing between."""
    made, stretches, free, stretch, last = [], [], [], 0, 0
    kept = [one for one in job.made if one.sequence is not None and keep(one.sequence)]
    ends = [one.last_ns if one.bytes >= LEAST_BULK else one.end_ns for one in kept]
    for one, free_ns in zip(kept, free_times([one.begin_ns for one in kept], ends)):
        stretch += one.sequence != last + 1
        last = one.sequence
        if one.bytes >= LEAST_BULK:
            made.append(one)
            stretches.append(stretch)
            free.append(free_ns)
    tokens = {key: number for number, key in enumerate(sorted({(one.call, one.bytes) for one in made}))}
    functions = {key: number for number, key in enumerate(sorted({one.call for one in made}))}
    columns = Calls(
        [tokens[one.call, one.bytes] for one in made],
        [functions[one.call] for one in made],
        [one.bytes for one in made],
        free,
        [one.last_ns for one in made],
        stretches,
    )
    return columns, made


def found_in(job: Job, keep=lambda sequence: True) -> tuple[Cycle, list[set]]:
    columns, made = calls_of(job, keep)
    found = cycle(columns)
    return found, [{one.step for one in made[span.first : span.end] if one.step is not None} for span in found.spans]


JOBS = {
    "ddp": (training.ddp, "sizes", 5),
    "one allreduce": (training.one_allreduce, "sizes", 1),
    "horovod": (training.horovod, "bytes", None),
    "equal layers": (training.equal_layers, "gaps", 10),
    "zero": (training.zero, "sizes", 6),
    "k-means": (training.kmeans, "sizes", 2),
    "caffe": (training.caffe, "sizes", 12),
    "nonblocking": (training.nonblocking, "sizes", 4),
    "transformer": (training.transformer, "sizes", 145),
    "waiting in control": (training.waiting_in_control, "sizes", 2),
    "control in flight": (training.control_in_flight, "sizes", 2),
}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", JOBS)
def test_every_step_is_found_once_and_whole(name, seed):
    make, how, calls = JOBS[name]
    job = make(seed=seed)
    found, steps = found_in(job)
    assert (found.how, found.why) == (how, "")
    assert [len(inside) for inside in steps] == [1] * len(steps)
    assert [min(inside) for inside in steps] == list(range(len(job.step_ends)))
    assert calls in (None, found.calls)


def test_parameters_handed_out_before_a_few_steps_do_not_hide_them():
    job = Job()
    training.parameters(job, [1_000 + 300 * number for number in range(40)])
    for step in range(12):
        job.compute(30 * training.MS)
        for size in (2_504_752, 1_181_696, 156_288):
            job.call("Allreduce", size, step)
    found, steps = found_in(job)
    assert (found.how, found.calls, len(steps), found.confidence) == ("sizes", 3, 12, 1.0)


def test_pauses_that_group_few_of_the_calls_group_none():
    """Nearly all long pauses are two steps apart, but for a long while there is none."""
    job = Job()
    for step in range(60):
        job.compute((40 if step % 2 == 0 and not 10 < step < 50 else 2) * training.MS)
        for size in (1_152, 128):
            job.call("Allreduce", size, step)
    found, steps = found_in(job)
    assert (found.how, found.calls, len(steps)) == ("sizes", 2, 60)


@pytest.mark.parametrize("seed", range(5))
def test_sums_that_follow_each_other_need_no_pauses(seed):
    """The pauses within steps are as long as those between them."""
    job = training.horovod(120, seed, noise_ns=60 * training.MS)
    found, steps = found_in(job)
    assert found.how == "bytes" and found.bytes == sum(training.TENSORS)
    whole = [min(inside) for inside in steps if len(inside) == 1]
    assert len(whole) >= 0.9 * 120


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("make", [training.random_mix, training.poisson, training.single_phase, training.Job])
def test_a_job_without_steps_has_none(make, seed):
    found, steps = found_in(make(seed=seed))
    assert (found.spans, found.how) == ([], "") and found.why


@pytest.mark.parametrize("name", JOBS)
def test_too_few_calls_are_no_steps(name):
    found, _ = found_in(JOBS[name][0](), lambda sequence: sequence < 8)
    assert found.why == "they are too few"


@pytest.mark.parametrize("name", JOBS)
def test_no_step_spans_a_gap(name):
    """Of every third block of 64 or 1024 there are samples. Steps are cut at the same place each time (caffe's before its Reduces,
    where the pause is longest, so that each has the Bcasts of the next)."""
    job = JOBS[name][0](steps=400 if name != "transformer" else 100)
    size = 1024 if name in ("horovod", "transformer") else 64
    found, steps = found_in(job, lambda sequence: (sequence - 1) // size % 3 == 0)
    assert found.how
    assert {len(inside) for inside in steps} == {2 if name == "caffe" else 1}
    kept = {one.step for one in job.made if one.step is not None}
    for one in job.made:
        if one.step is not None and one.sequence and (one.sequence - 1) // size % 3:
            kept.discard(one.step)
    assert len(kept & {min(inside) for inside in steps}) >= 0.8 * len(kept)

"""Repetition in the calls of a rank, and which of it may be the step."""

from __future__ import annotations

import numpy as np
from commprof_report.loops.levels import Kind, Line, Spans, find_loops, levels
from commprof_report.steps.stepping import (
    Found,
    VISITS,
    are_parts,
    doubt,
    is_better,
    steps_of,
    visited,
)
from test_loops import calls_of
from training import MS, Job

MANY = 1_000
PLACES = np.arange(20)
SPANS = Spans(PLACES[::2], PLACES[1::2] + 1)


def line(*calls: tuple[int, float, Kind]) -> Line:
    """Calls with their tokens and times."""
    token, spent_ns, kind = (np.array(column) for column in zip(*calls))
    return Line(token, token * 0, kind, np.cumsum(np.round(1_000 * spent_ns)).astype(np.int64))


def chosen(calls: list[tuple[int, float, Kind]], inner: set[int]) -> str:
    found = [level.loops.alphabet(level.loop) == inner for level in levels(line(*calls))]
    return {(): "no steps", (True,): "inner", (False,): "outer"}.get(tuple(found), "both")


def body(size: int) -> str:
    return "a loop" if find_loops(np.tile(np.arange(size), 3)).bodies else "no loop"


def time(share: float) -> str:
    """The iterations of loop 0, which fills the second half."""
    step = [(0, 0.0, Kind.DATA)] * 2 + [(1, share * 100 / 3, Kind.DATA)]
    return chosen([(0, 0.0, Kind.DATA), *step * 3, *[(0, 1.0, Kind.DATA)] * 100], {0})


def rest(share: float) -> str:
    """A checkpoint after ten steps."""
    steps = [(0, 1.0, Kind.DATA)] * 10
    return chosen([*steps, (1, 10 * share / (1 - share), Kind.ROOTED)] * 50, {0})


def often(times: int) -> str:
    halo = [(0, 1.0, Kind.START), (1, 1.0, Kind.MESSAGE)]
    return chosen([*halo * times, (2, 0.1, Kind.SMALL)] * 50, {0, 1})


def inner(share: float) -> str:
    equal = round(200 * share)
    others = [(number, 1.0, Kind.DATA) for number in range(1, 201 - equal)]
    return chosen([*[(0, 1.0, Kind.DATA)] * equal, *others] * 5, {0})


def better(more: float) -> str:
    first = Found(confidence=0.8, share=0.8)
    rough = first._replace(confidence=0.8 + more, share=0.8 + more)
    return "in less" if is_better([rough], [first]) else "in detail"


def doubted(**what: object) -> str:
    usual: dict = {"steps": 20, "confidence": 1.0, "step_bytes": np.full(20, MANY)}
    return "no steps" if doubt(**{**usual, **what}) else "steps"


def steps_in(job: Job, asked: int = 0) -> str:
    found = steps_of(*calls_of(job), False, (), f"train.py --steps {asked or ''}")
    return "probably" if found.evidence else "loops"


def calls(number: int) -> str:
    job = Job()
    for place in range(number):
        job.call("Allreduce", 1_000 + 1_000 * (place % 3))
    return "steps" if steps_of(*calls_of(job), False).levels else "no steps"


def asked(times: int) -> str:
    job = Job()
    for place in range(times):
        job.call("Allreduce", 1_000)
        job.call("Allreduce", 8)
    return steps_in(job, times)


def kinds(number: int) -> str:
    job = Job()
    for place in range(MANY * number):
        job.call("Allreduce", 2_000 + 1_000 * (place % number))
    return steps_in(job)


def set_up(share: float) -> str:
    """A turn before the loops, in which ranks do as much as in others, sums and a barrier."""
    job = Job()
    job.call("Allreduce", 8)
    job.compute(1_000 * share * MS, 0)
    job.call("Allreduce", 4)
    job.call("Barrier", 0)
    for place in range(400):
        job.call("Allreduce", 8)
        job.compute(1_000 * MS, 0)
        if place % 20 == 19:
            job.call("Allreduce", 16)
    return steps_in(job)


def longer(times: float) -> str:
    return "loops" if are_parts(np.tile([MANY, MANY * times], 100)) else "probably"


def periodic(deviations: float) -> str:
    """Most of 400 long turns are at odd places, among as many short ones."""
    turns, odd = np.full(800, MANY), int(200 + 10 * deviations)
    turns[1::2][:odd] = turns[::2][odd:] = 3 * MANY
    return "loops" if are_parts(turns) else "probably"


def ordered(share: float) -> str:
    """Gradients that are fused otherwise in each step, in some across its end."""
    job = Job()
    job.call("Bcast", 300_000)
    missed = round(MANY * (1 - share))
    for place in range(MANY - missed):
        first = 1_000 + 200 * place
        for size in (first, *[300_000] * (place < missed), 300_000 - first):
            job.call("Allreduce", size)
    return steps_in(job)


def gradients(share: float) -> str:
    """Steps of 12 layers and a metric."""
    job = Job()
    job.call("Bcast", round(12 * 400_000 / share))
    for place in range(12 * 20):
        job.compute(MS)
        job.call("Allreduce", 400_000)
        if place % 12 == 11:
            job.call("Allreduce", 8)
    return steps_in(job)


def in_region(share: float) -> str:
    visits = [VISITS.row("train", len(SPANS), round(MANY * share), 0)]
    return "probably" if visited(Found(SPANS), visits, MANY) else "loops"


EXAMPLES = {
    "loops.body": body,
    "loops.steps": lambda times: (
        "steps"
        if chosen([(0, 1.0, Kind.DATA), (1, 1.0, Kind.DATA)] * times, {0}) == "outer"
        else "no steps"
    ),
    "loops.time": time,
    "loops.rest": rest,
    "loops.often": often,
    "loops.inner": inner,
    "loops.calls": calls,
    "loops.spread": lambda times: doubted(step_bytes=np.repeat([MANY, round(times * MANY)], 10)),
    "loops.fits": lambda share: doubted(confidence=share),
    "loops.better": better,
    "steps.asked": asked,
    "steps.kinds": kinds,
    "steps.set-up": set_up,
    "steps.longer": longer,
    "steps.periodic": periodic,
    "steps.ordered": ordered,
    "steps.gradients": gradients,
    "steps.in-region": in_region,
}

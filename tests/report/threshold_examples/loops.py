"""Repetition in the calls of a rank, and which of it is the step."""

from __future__ import annotations

import numpy as np
from commprof_report.loops.choice import Kind, Line, choose
from commprof_report.loops.cut import (
    Spans, cut, filtered, grouped_by_pauses, joined_parts, long_pause,
)
from commprof_report.loops.repeats import find_loops
from commprof_report.steps.stepping import (
    Found, doubt, is_better, is_irregular, is_steady, unlike,
)

MANY = 1_000
SHORT_NS = 100_000


def line(*calls: tuple[int, float, Kind]) -> Line:
    """Calls with their tokens and times."""
    token, spent_ns, kind = (np.array(column) for column in zip(*calls))
    return Line(token, token * 0, kind, np.cumsum(np.round(1_000 * spent_ns)).astype(np.int64))


def chosen(calls: list[tuple[int, float, Kind]], inner: int) -> str:
    choice = choose(line(*calls))
    if choice is None:
        return "no steps"
    return "inner" if choice.loops.alphabet(choice.loop) == {inner} else "outer"


def body(size: int) -> str:
    return "a loop" if find_loops(np.tile(np.arange(size), 3)).bodies else "no loop"


def time(share: float) -> str:
    """The iterations of loop 0, which fills the second half."""
    step = [(0, 0.0, Kind.DATA)] * 2 + [(1, share * 100 / 3, Kind.DATA)]
    return chosen([(0, 0.0, Kind.DATA), *step * 3, *[(0, 1.0, Kind.DATA)] * 100], 0)


def rest(share: float) -> str:
    """A small reduction after ten halos."""
    halos = [(0, 1.0, Kind.MESSAGE)] * 10
    return chosen([*halos, (1, 10 * share / (1 - share), Kind.SMALL)] * 50, 0)


def often(times: int) -> str:
    return chosen([*[(0, 1.0, Kind.MESSAGE)] * times, (1, 0.1, Kind.SMALL)] * 50, 0)


def pause(share: float) -> str:
    """The longest pauses precede call 1; the sequence begins with call 0."""
    choice = choose(line(*[(0, 1.0, Kind.DATA), (1, 1.0, Kind.DATA)] * 5))
    assert choice is not None
    every, gap_ns = np.ones(10, bool), np.tile([round(share * MANY), MANY], 5)
    spans = cut(filtered(choice), every, gap_ns, True, every)
    return "tried" if len(spans) == 5 else "never"


def kinds(long_ns: float, long: int = 20, short: int = 20, short_ns: int = SHORT_NS) -> str:
    pauses = np.array([*[short_ns] * short, *[round(long_ns)] * long])
    return "one kind" if long_pause(pauses) is None else "two kinds"


def groups(distances: list[int]) -> str:
    pauses = np.concatenate([[10 * SHORT_NS, *[1] * (each - 1)] for each in distances])
    places = np.arange(len(pauses))
    return "layers" if grouped_by_pauses(Spans(places, places + 1), pauses)[1] > 1 else "steps"


def part(share: float) -> str:
    """The fourth of seven iterations has fewer calls; a call of others follows."""
    calls = [300, 300, 300, round(300 * share), 300, 300, 300]
    end = np.cumsum(calls) + (np.arange(7) > 3)
    is_own = np.ones(end[-1], bool)
    is_own[end[3]] = False
    spans = joined_parts(Spans(end - calls, end), is_own, np.zeros(end[-1], np.int64))
    return "a step" if len(spans) == 7 else "a part"


def better(more: float) -> str:
    nothing = np.empty(0, np.int64)
    first = Found(Spans(nothing, nothing), "loops", confidence=0.8, share=0.8)
    rough = first._replace(confidence=0.8 + more, share=0.8 + more)
    return "in less" if is_better(rough, first) else "in detail"


def doubted(**what: object) -> str:
    usual: dict = {"steps": 20, "single": False, "confidence": 1.0, "times": [MANY] * 19}
    return "no steps" if doubt(**{**usual, "is_small": False, **what}) else "steps"


EXAMPLES = {
    "loops.body": body,
    "loops.steps": lambda times: "steps" if chosen(
        [(0, 1.0, Kind.DATA), (1, 1.0, Kind.DATA)] * times, 0
    ) == "outer" else "no steps",
    "loops.single": lambda times: doubted(steps=times, single=True),
    "loops.time": time,
    "loops.rest": rest,
    "loops.often": often,
    "loops.pause": pause,
    "loops.long-pause": lambda times: kinds(times * SHORT_NS),
    "loops.long-pauses": lambda share: kinds(share / (1 - share) * 10 * SHORT_NS, 10, 100),
    "loops.profiler-pause": lambda ns: kinds(ns, short_ns=100),
    "loops.units": lambda number: groups([number] * 10),
    "loops.distance": lambda share: groups(
        [10] * round(share * MANY) + [9, 11] * round((1 - share) * MANY / 2)
    ),
    "loops.calls": lambda number: kinds(10 * SHORT_NS, number // 2, number - number // 2),
    "loops.part": part,
    "loops.alike": lambda share: "no steps" if unlike(round(share * MANY), MANY) else "steps",
    "loops.spread": lambda times: doubted(times=[MANY] * 10 + [round(times * MANY)] * 10),
    "loops.irregular": lambda far: "no steps" if is_irregular(
        [round(MANY * (1 - far)), MANY, round(MANY * (1 + far))]
    ) else "steps",
    "loops.steady": lambda share: "steps" if is_steady(
        [MANY] * round(share * MANY) + [1] * round((1 - share) * MANY)
    ) else "no steps",
    "loops.fits": lambda share: doubted(confidence=share),
    "loops.few-fit": lambda share: doubted(confidence=share, steps=5),
    "loops.better": better,
}

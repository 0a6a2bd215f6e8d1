"""The end of each iteration of the chosen loop.

A loop may be taken to begin with any element of its body. A step begins after the longest pause:
that is when data are read and the forward pass runs. A pause is time outside the calls that count:
the bulk collectives of the body, if it has any, else its collectives, else its calls.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..base.columns import Columns, Flags, Ints, np
from .choice import Level
from .repeats import Loops, Run, find_again


@dataclass(frozen=True)
class Spans(Columns):
    """Iterations: calls[first:end] of the line."""

    first: Ints
    end: Ints


@dataclass(frozen=True)
class Filtered:
    """The loop in the sequence of its own calls, so that others do not interrupt it."""

    loops: Loops
    loop: int
    place: Ints  # of each of these calls in the line, and the number of its calls


def filtered(level: Level) -> Filtered:
    own = level.loops.alphabet(level.loop)
    place = np.flatnonzero(np.isin(level.loops.tokens, [*own]))
    loops = find_again(level.loops, level.loop, place)
    return Filtered(loops, level.loop, np.append(place, len(level.loops.tokens)))


def cut(
    found: Filtered, is_counted: Flags, gap_ns: Ints, is_whole: bool, is_preferred: Flags
) -> Spans:
    """gap_ns: the pause before each call that counts; below 0: it is not known. is_whole: no sample
    is missing. is_preferred: calls with which a step may end; if the body has none, any that
    counts."""
    runs, size = found.loops.runs[found.loop], len(found.loops.bodies[found.loop])
    if not runs:  # among its own calls alone the loop repeats otherwise
        return Spans(found.place[:0], found.place[:0])
    pauses, is_good = _pauses(found, runs, size, is_counted, gap_ns, is_preferred)
    if is_good.any():
        pauses = np.where(is_good, pauses, -1.0)
    from_begin = (-1 - runs[0].before) % size  # so that no call precedes the first step
    phases = [int(pauses.argmax()), *[from_begin] * is_whole]
    return max((_of_phase(found, runs, size, phase) for phase in phases), key=len)


def _pauses(
    found: Filtered, runs: list[Run], size: int, is_counted: Flags, gap_ns: Ints,
    is_preferred: Flags,
) -> tuple[np.ndarray, Flags]:
    """By element of the body: the mean pause after its last call that counts; -1: it has none. And
    whether that is preferred."""
    counted = np.flatnonzero(is_counted)
    total, number = np.zeros(size), np.zeros(size)
    is_good, is_any = np.zeros(size, bool), np.zeros(size, bool)
    for run in runs:
        edges = found.place[run.starts]
        last = np.searchsorted(counted, edges[1:]) - 1
        phase = (np.arange(len(last)) - run.before) % size
        has_own = (last >= 0) & (counted[np.maximum(last, 0)] >= edges[:-1])
        phase, last = phase[has_own], last[has_own]
        is_any[phase] = True
        is_good[phase[is_preferred[counted[last]]]] = True
        after = np.append(counted, 0)[last + 1]
        pause = np.where(last + 1 < len(counted), gap_ns[after], -1)
        np.add.at(total, phase, np.maximum(pause, 0))
        np.add.at(number, phase, pause >= 0)
    means = np.where(is_any, total / np.maximum(number, 1), -1.0)
    return means, is_good


def _of_phase(found: Filtered, runs: list[Run], size: int, phase: int) -> Spans:
    """The iterations that end with this element of the body."""
    edges = [run.starts[(run.before + phase + 1) % size :: size] for run in runs]
    first = np.concatenate([found.place[each[:-1]] for each in edges])
    end = np.concatenate([found.place[each[1:] - 1] + 1 for each in edges])
    spans = Spans(first, end).take(np.argsort(first, kind="stable"))
    return spans.take(spans.first >= np.append(0, np.maximum.accumulate(spans.end)[:-1]))

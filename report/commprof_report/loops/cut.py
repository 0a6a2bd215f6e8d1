"""The end of each iteration of the chosen loop.

A loop may be taken to begin with any element of its body. A step begins after the longest pause:
that is when data are read and the forward pass runs. A pause is time outside the calls that count:
the bulk collectives of the body, if it has any, else its collectives, else its calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from ..base.arrays import np
from ..base.columns import Columns, Flags, Ints
from ..base.thresholds import threshold, whole
from .choice import FEWEST_STEPS, Choice
from .repeats import Loops, Run, find_again

PHASES_TRIED = 8
SMALLEST_PAUSE = threshold("loops.pause")
LONG_GAP, LONG_GAPS_SHARE = threshold("loops.long-pause"), threshold("loops.long-pauses")
LEAST_LONG_NS = whole("loops.profiler-pause")
MOST_UNITS, SAME_DISTANCE = whole("loops.units"), threshold("loops.distance")
FEWEST_CALLS = whole("loops.calls")
PART = threshold("loops.part")


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


def filtered(choice: Choice) -> Filtered:
    own = choice.loops.alphabet(choice.loop)
    place = np.flatnonzero(np.isin(choice.loops.tokens, [*own]))
    loops = find_again(choice.loops, choice.loop, place)
    return Filtered(loops, choice.loop, np.append(place, len(choice.loops.tokens)))


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
    order = np.argsort(-pauses, kind="stable")
    order = order[pauses[order] >= SMALLEST_PAUSE * pauses[order[0]]]
    order = order[: PHASES_TRIED if is_whole else 1]
    return max((_of_phase(found, runs, size, phase) for phase in order.tolist()), key=len)


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


def joined_parts(spans: Spans, is_own: Flags, stretch: Ints) -> Spans:
    """The same, where a short one that other calls interrupt, or part from the next one, is a part
    of that: in some steps of molecular dynamics neighbours are sought again."""
    if len(spans) < FEWEST_STEPS:
        return spans
    upto = np.append(0, np.cumsum(is_own))
    calls = upto[spans.end] - upto[spans.first]
    next_first = np.append(spans.first[1:], spans.end[-1])
    is_interrupted = calls < next_first - spans.first
    is_same = np.append(stretch[spans.first[1:]] == stretch[spans.first[:-1]], False)
    is_part = (calls < PART * np.median(calls)) & is_interrupted & is_same
    begins = np.flatnonzero(np.append(True, ~is_part[:-1]))
    return Spans(spans.first[begins], spans.end[~is_part])


def grouped_by_pauses(spans: Spans, pause_ns: Ints) -> tuple[Spans, int]:
    """The same in groups, if a long pause follows every so many of them: a step of equal layers. A
    job that pauses after so many steps looks the same. And how many make a group; 1: no group.
    Whether a pause is long does not depend on those in which there are other calls."""
    is_next = np.append(False, spans.first[1:] == spans.end[:-1])
    long_ns = long_pause(pause_ns[is_next])
    if long_ns is None:
        return spans, 1
    is_known = pause_ns >= 0
    begins = np.flatnonzero(~is_known | (pause_ns >= long_ns))
    ends = np.append(begins[1:], len(spans))
    is_whole = is_known[begins] & np.append(is_known[begins[1:]], False)
    distances = (ends - begins)[is_whole]
    if len(distances) < FEWEST_STEPS:
        return spans, 1
    values, counts = np.unique(distances, return_counts=True)
    units = int(values[counts.argmax()])
    if not 1 < units <= MOST_UNITS or counts.max() < SAME_DISTANCE * len(distances):
        return spans, 1
    is_unit = ends - begins == units
    # a group that the end, or a hole, cuts off is no longer than others
    cut_off = np.minimum(ends - begins, units)[~is_unit & ~is_whole].sum()
    if units * is_unit.sum() < SAME_DISTANCE * (len(spans) - cut_off):
        return spans, 1
    begins, ends = begins[is_unit], ends[is_unit]
    return Spans(spans.first[begins], spans.end[ends - 1]), units


def long_pause(pause_ns: Ints) -> int | None:
    """The shortest long pause, if pauses are of two kinds (Otsu's threshold on their
    logarithms)."""
    known = np.sort(pause_ns[pause_ns >= 0])
    if len(known) < FEWEST_CALLS:
        return None
    logs = np.cumsum(np.log(np.maximum(known, 1)))
    number = np.arange(1, len(known))
    low, high = logs[:-1] / number, (logs[-1] - logs[:-1]) / (len(known) - number)
    split = int((number * (len(known) - number) * (high - low) ** 2).argmax()) + 1
    matters = known[split:].sum() >= LONG_GAPS_SHARE * known.sum() and known[split] >= LEAST_LONG_NS
    is_far = exp(high[split - 1] - low[split - 1]) >= LONG_GAP
    return int(known[split]) if matters and is_far else None


def may_be_layers(spans: Spans, is_next: Flags, stretch: Ints, pause_ns: Ints) -> bool:
    """Whether the spans may be parts of steps, and the samples do not tell: calls are missing, and
    long pauses or other calls that count interrupt the spans, at distances most of which are not
    known. is_next: no such call is between a span and the one before."""
    if not len(spans) or stretch[0] == stretch[-1]:
        return False
    own = stretch[spans.first]
    is_seen = np.append(False, own[1:] == own[:-1])
    long_ns = long_pause(pause_ns)
    is_begin = ~is_next
    if long_ns is not None:
        is_begin |= pause_ns >= long_ns
    edges = np.flatnonzero(is_begin | ~is_seen)
    is_own = is_seen[edges]
    is_next = np.append(is_own[1:], False)
    longest = np.diff(np.append(edges, len(spans))).max()
    return bool(
        (is_own | is_next).any() and (is_own & is_next).sum() < FEWEST_STEPS
        and longest < MOST_UNITS
    )

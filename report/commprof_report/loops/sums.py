"""Steps as sums of bytes: a framework fuses what a step reduces into messages as it becomes ready,
so no call repeats, but the sum of a step does (Horovod).

All sums of successive calls that occur often enough to fill the sequence are candidates; those that
can be no steps are left out before they are tried. The step is the smallest one that explains
nearly as much as the best. Its spans must follow each other more often than by chance, or follow
long pauses.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import NamedTuple

from ..base import units
from ..base.arrays import np
from ..base.columns import Columns, Flags, Groups, Ints
from ..base.thresholds import threshold, whole
from .choice import FEWEST_STEPS
from .cut import Spans

MOST_CALLS_SUMMED = 3_000  # when searching
MOST_CALLS_OF_A_SUM = 400
# a sum that begins after one of the longest pauses may have more calls
MOST_CALLS_AFTER_A_PAUSE, LONGEST_PAUSES = 1_500, 64
FEWEST_SIZES, FEWEST_SUMMED = whole("loops.sizes"), threshold("loops.summed")
SUM_TOLERANCE = threshold("loops.better")
LINKED, SAFETY = threshold("loops.linked"), 3.0
FOLLOWING_PAUSES = threshold("loops.follow-pauses")
SURELY_LONG = 0.75  # of the pauses before the steps that there may be
# of those that there may be: so many of the longest pauses are looked at before a sum is tried
HALF_THE_STEPS = 0.5
DIVIDED = threshold("loops.divided")
# percent: a step of bytes that follows no long pause, relative to one that does; the second where
# it is known that steps are cut anew, and follow each other whatever the pauses
WORTH_WITHOUT_PAUSE, WORTH_CUT_ANEW = 75, 98
UNKNOWN = -1


@dataclass(frozen=True)
class Calls(Columns):
    """Bulk collectives of one function in order."""

    bytes: Ints
    pause_ns: Ints  # before each call; UNKNOWN: calls before it are missing
    stretch: Ints  # equal while no call is missing in between


class Sums(NamedTuple):
    spans: Spans
    bytes: int  # of a step
    confidence: float  # share of the calls that are in steps
    why: str  # there are no steps


def find_sums(calls: Calls, is_cut_anew: bool = False) -> Sums:
    """is_cut_anew: it is known that messages are cut anew in each step, so that equal sizes are a
    coincidence."""
    sizes = len(np.unique(calls.bytes))
    if sizes < (2 if is_cut_anew else FEWEST_SIZES):
        few = units.are(sizes, "size")
        return _none(f"{few} too few for sums, {FEWEST_SIZES} are needed")
    step_bytes = _step_bytes(_Line(_longest(calls, MOST_CALLS_SUMMED), is_cut_anew))
    if not step_bytes:
        return _none("no sum of their bytes repeats")
    spans, step_bytes = divided(calls, _Line(calls, is_cut_anew).walk(step_bytes).spans, step_bytes)
    confidence = _calls_in(spans) / len(calls)
    if confidence < FEWEST_SUMMED:
        share, needed = units.share(confidence), units.share(FEWEST_SUMMED)
        return _none(f"sums of bytes that repeat have {share} of them, {needed} are needed")
    return Sums(spans, step_bytes, confidence, "")


def _none(why: str) -> Sums:
    return Sums(Spans(np.empty(0, np.int64), np.empty(0, np.int64)), 0, 0.0, why)


def _calls_in(spans: Spans) -> int:
    return int((spans.end - spans.first).sum())


def _longest(calls: Calls, most: int) -> Calls:
    """The calls of the longest stretches, up to `most` in total."""
    stretches = Groups(calls.stretch)
    order = np.argsort(-stretches.counts, kind="stable")
    counts = stretches.counts[order]
    taken = np.empty_like(counts)
    taken[order] = np.clip(most - (np.cumsum(counts) - counts), 0, counts)
    return calls.take(stretches.place() < stretches.spread(taken))


class Walk(NamedTuple):
    """The sequence divided into steps of one sum of bytes."""

    spans: Spans
    linked: int  # steps that begin where another one ends
    hits: int  # calls that start a run of calls with this sum


class _Line:
    """The points between calls: one before each call, and one at the end of each stretch. A run of
    calls goes from one point of a stretch to another."""

    def __init__(self, calls: Calls, is_cut_anew: bool) -> None:
        stretches = Groups(calls.stretch)
        ends = stretches.first + stretches.counts
        self.calls, self.is_cut_anew = calls, is_cut_anew
        self.stretches, self.volume = len(stretches), float(calls.bytes.sum(dtype=np.float64))
        self.place = np.insert(np.arange(len(calls)), ends, ends)  # of the call after the point
        self.upto = np.append(0, np.cumsum(calls.bytes))[self.place]  # bytes before the point
        self.pause_ns = np.insert(calls.pause_ns, ends, UNKNOWN)
        self.begins = stretches.first + np.arange(len(stretches))
        # of the point's stretch, the last point
        self.last = np.repeat(self.begins + stretches.counts, stretches.counts + 1)
        known = np.flatnonzero(self.pause_ns >= 0)
        # points after a known pause, those after the longest first
        self.by_pause = known[np.argsort(-self.pause_ns[known], kind="stable")]

    def walk(self, step_bytes: int) -> Walk:
        """The steps that cover most; steps after a pause are preferred. A step that stands alone
        and follows no pause may consist of parts of two steps."""
        end = np.searchsorted(self.upto, self.upto + step_bytes, "right") - 1
        end = np.minimum(end, self.last)
        first = np.flatnonzero(self.upto[end] - self.upto == step_bytes)
        hits, end = len(first), end[first]
        is_long = np.maximum(0, self.pause_ns[first]) >= self._long_ns(step_bytes)
        worth = WORTH_CUT_ANEW if self.is_cut_anew else WORTH_WITHOUT_PAUSE
        taken = _worth_most(first, end, np.where(is_long, 100, worth))
        first, end, is_long = first[taken], end[taken], is_long[taken]
        is_next = np.isin(first, end)
        own = is_next | np.isin(end, first) | is_long
        spans = Spans(self.place[first[own]], self.place[end[own]])
        return Walk(spans, int(is_next.sum()), hits)

    def _long_ns(self, step_bytes: int) -> int:
        """As many pauses are longer as a part of the steps that there may be."""
        if not len(self.by_pause):
            return 0
        place = min(len(self.by_pause) - 1, round(SURELY_LONG * self.volume / step_bytes))
        return int(self.pause_ns[self.by_pause[place]])

    def is_linked(self, walk: Walk) -> bool:
        return is_linked(walk.linked, len(walk.spans) - self.stretches)

    def is_no_chance(self, walk: Walk, sums: int) -> bool:
        """True if the steps are linked, more often than expected by chance, of `sums` tried."""
        calls = len(self.calls)
        by_chance = log(calls * sums) + SAFETY
        return self.is_linked(walk) and walk.linked * log(calls / walk.hits) > by_chance


def _worth_most(first: Ints, end: Ints, worth: Ints) -> Flags:
    """Which of these runs, in order, that do not overlap are worth most together?"""
    after = np.searchsorted(first, end).tolist()  # the first run that does not begin before its end
    own, best = worth.tolist(), [0] * (len(first) + 1)
    for run in range(len(first) - 1, -1, -1):
        best[run] = max(best[run + 1], own[run] + best[after[run]])
    taken, run = np.zeros(len(first), bool), 0
    while run < len(first):
        taken[run] = best[run] == own[run] + best[after[run]]
        run = after[run] if taken[run] else run + 1
    return taken


def _step_bytes(line: _Line) -> int:
    """The bytes of a step: the smallest sum that explains nearly as much as the best one. 0: no sum
    explains enough. Where steps are known to be cut anew, a sum whose runs cover all calls, one
    after the other, needs no other proof: if most are cut alike, it occurs at each call, as by
    chance."""
    explained: dict[int, float] = {}
    sums, likely = _sums(line)
    for step_bytes in likely:
        walk = line.walk(step_bytes)
        share = _calls_in(walk.spans) / len(line.calls)
        is_cover = line.is_cut_anew and share >= 1 - SUM_TOLERANCE and line.is_linked(walk)
        if len(walk.spans) and (
            is_cover or line.is_no_chance(walk, sums)
            or follow_pauses(line.calls.pause_ns, walk.spans)
        ):
            explained[step_bytes] = share
            if share >= 1 - SUM_TOLERANCE:
                break  # no larger sum explains notably more
    least = max([FEWEST_SUMMED, *(share - SUM_TOLERANCE for share in explained.values())])
    return min((total for total, share in explained.items() if share >= least), default=0)


def _sums(line: _Line) -> tuple[int, list[int]]:
    """How many sums of successive calls occur often enough to fill the sequence; and those of them,
    in order, whose runs follow each other more often than by chance, or follow most of the longest
    pauses."""
    first, end = _runs(line)
    total, number, count = np.unique(
        line.upto[end] - line.upto[first], return_inverse=True, return_counts=True
    )
    often = (total > 0) & (count >= FEWEST_STEPS) & (
        total * count.astype(np.float64) >= FEWEST_SUMMED * line.volume
    )
    own = often[number]
    number, first, end = (np.cumsum(often) - 1)[number[own]], first[own], end[own]
    total, count = total[often], count[often]
    points, calls = len(line.upto), len(line.calls)
    is_next = np.isin(number * points + end, number * points + first)
    linked = np.bincount(number[is_next], minlength=len(total))
    is_no_chance = linked * np.log(calls / count) > log(calls * max(1, len(total))) + SAFETY
    at_most = np.maximum(1, np.rint(HALF_THE_STEPS * line.volume / total))
    longest = np.minimum(at_most, len(line.by_pause)).astype(np.int64)
    order = np.full(points, points)
    order[line.by_pause] = np.arange(len(line.by_pause))
    follow = np.bincount(number[order[first] < longest[number]], minlength=len(total))
    likely = total[is_no_chance | (follow >= FOLLOWING_PAUSES * longest)]
    return len(total), likely.tolist()


def _runs(line: _Line) -> tuple[Ints, Ints]:
    """The first and the last point of all runs of calls that are not too long."""
    points = np.arange(len(line.upto))
    most = np.full(len(points), MOST_CALLS_OF_A_SUM)
    most[[*line.by_pause[:LONGEST_PAUSES], *line.begins]] = MOST_CALLS_AFTER_A_PAUSE
    counts = np.minimum(most, line.last - points)
    first = np.repeat(points, counts)
    return first, first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)


def divided(calls: Calls, spans: Spans, step_bytes: int) -> tuple[Spans, int]:
    """If nearly all spans consist of the same number of parts with equal sums, these are the
    steps."""
    counts = spans.end - spans.first
    span = np.repeat(np.arange(len(spans)), counts)
    end = np.arange(len(span)) + (spans.end - np.cumsum(counts))[span] + 1
    upto = np.append(0, np.cumsum(calls.bytes))
    total = upto[end] - upto[spans.first[span]]
    for parts in range(min(counts.tolist(), default=0), 1, -1):
        if step_bytes % parts:
            continue
        is_end = total % (step_bytes // parts) == 0
        own = np.bincount(span[is_end], minlength=len(spans)) == parts
        if own.sum() >= DIVIDED * len(spans):
            ends = end[is_end & own[span]].reshape(-1, parts)
            firsts = np.column_stack([spans.first[own], ends[:, :-1]])
            return Spans(firsts.ravel(), ends.ravel()), step_bytes // parts
    return spans, step_bytes


def is_linked(linked: int, possible: int) -> bool:
    """True if nearly every step begins where another one ends."""
    return linked >= LINKED * possible


def follow_pauses(pause_ns: Ints, spans: Spans) -> bool:
    """True if the pause before most steps exceeds every pause inside them."""
    inside_ns = np.array([
        pause_ns[first + 1 : end].max(initial=0)
        for first, end in zip(spans.first.tolist(), spans.end.tolist())
    ])
    before_ns = pause_ns[spans.first]
    is_after = (before_ns > inside_ns) & (inside_ns > 0)
    return bool(is_after.sum() >= FOLLOWING_PAUSES * max(1, (before_ns >= 0).sum()))

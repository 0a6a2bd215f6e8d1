"""Steps as sums of bytes: a framework fuses what a step reduces into messages as it becomes ready,
so no call repeats, but the sum of a step does (Horovod).

All sums of successive calls that occur often enough to fill the sequence are candidates; those that
can be no steps are left out before they are tried. The step is the smallest one that explains
nearly as much as the best. Its spans must follow each other more often than by chance, or follow
long pauses.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby
from math import log
from typing import NamedTuple

from ..base import units
from ..base.thresholds import threshold, whole

FEWEST_STEPS = whole("loops.steps")
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
WORTH_WITHOUT_PAUSE = 0.75  # of a step of bytes, relative to one after a long pause
# the same where it is known that steps are cut anew, and follow each other whatever the pauses
WORTH_CUT_ANEW = 0.98


class Calls(NamedTuple):
    """Bulk collectives of one function in order, one list for each column."""

    bytes: Sequence[int]
    pause_ns: Sequence[int | None]  # before each call; None: calls before it are missing
    stretch: Sequence[int]  # equal while no call is missing in between


class Span(NamedTuple):
    """A step: calls[first:end] hold it."""

    first: int
    end: int


class Walk(NamedTuple):
    """A stretch divided into steps of one sum of bytes."""

    spans: list[Span]
    linked: int  # steps that begin where another one ends
    calls: int
    hits: int  # calls that start a run of calls with this sum


class Sums(NamedTuple):
    spans: list[Span]
    bytes: int  # of a step
    confidence: float  # share of the calls that are in steps
    why: str  # there are no steps


def find_sums(calls: Calls, is_cut_anew: bool = False) -> Sums:
    """is_cut_anew: it is known that messages are cut anew in each step, so that equal sizes are a
    coincidence."""
    sizes = len(set(calls.bytes))
    if sizes < (2 if is_cut_anew else FEWEST_SIZES):
        few = units.are(sizes, "size")
        return _none(f"{few} too few for sums, {FEWEST_SIZES} are needed")
    gaps = dict(enumerate(calls.pause_ns))
    stretches = [list(own) for _, own in groupby(gaps, calls.stretch.__getitem__)]
    step_bytes = _step_bytes(
        _summed(calls, gaps, _longest(stretches, MOST_CALLS_SUMMED), is_cut_anew)
    )
    if not step_bytes:
        return _none("no sum of their bytes repeats")
    summed = _summed(calls, gaps, stretches, is_cut_anew)
    spans, step_bytes = divided(
        calls, [span for walk in summed.walks(step_bytes) for span in walk.spans], step_bytes
    )
    confidence = sum(span.end - span.first for span in spans) / len(gaps)
    if confidence < FEWEST_SUMMED:
        share, needed = units.share(confidence), units.share(FEWEST_SUMMED)
        return _none(f"sums of bytes that repeat have {share} of them, {needed} are needed")
    return Sums(spans, step_bytes, confidence, "")


def _none(why: str) -> Sums:
    return Sums([], 0, 0.0, why)


def _longest(stretches: Iterable[Sequence[int]], most: int) -> list[Sequence[int]]:
    """The longest stretches, up to `most` calls in total."""
    chosen: list[Sequence[int]] = []
    for stretch in sorted(stretches, key=len, reverse=True):
        if most > 0:
            chosen.append(stretch[:most])
            most -= len(chosen[-1])
    return chosen


class Stretch(NamedTuple):
    """Calls without a hole in between."""

    places: Sequence[int]
    upto: list[int]  # bytes up to each call, and up to the end
    index_of: dict[int, int]  # of a sum in upto

    def hits(self, step_bytes: int) -> list[tuple[int, int]]:
        """(first, end) of each run of calls with this sum, in order."""
        ends = self.index_of
        return [
            (first, ends[total + step_bytes]) for first, total in enumerate(self.upto)
            if total + step_bytes in ends
        ]


class Summed(NamedTuple):
    """The calls of one function, prepared for trying sums of their bytes."""

    gaps: dict[int, int | None]
    stretches: list[Stretch]
    # the places of all calls after a known pause, those after the longest first
    after_longest_gaps: list[int]
    calls: int
    volume: int
    is_cut_anew: bool

    @property
    def worth(self) -> float:
        """Weight of a step that follows no long pause."""
        return WORTH_CUT_ANEW if self.is_cut_anew else WORTH_WITHOUT_PAUSE

    def walks(self, step_bytes: int) -> list[Walk]:
        """As many pauses are longer than a surely long one as a part of the steps that there may
        be."""
        after = self.after_longest_gaps
        place = min(len(after) - 1, round(SURELY_LONG * self.volume / step_bytes))
        long_ns = self.gaps[after[place]] or 0 if after else 0
        return [
            _walk(self, stretch, stretch.hits(step_bytes), long_ns) for stretch in self.stretches
        ]

    def most_calls(self) -> dict[int, int]:
        """By place of a call after a long pause, or the first of a stretch: how many calls a sum
        may have."""
        after = [
            *self.after_longest_gaps[:LONGEST_PAUSES],
            *(stretch.places[0] for stretch in self.stretches),
        ]
        return dict.fromkeys(after, MOST_CALLS_AFTER_A_PAUSE)


def _summed(
    calls: Calls, gaps: dict[int, int | None], stretches: Sequence[Sequence[int]], is_cut_anew: bool
) -> Summed:
    prepared = []
    for places in stretches:
        upto = [0, *accumulate(calls.bytes[place] for place in places)]
        prepared.append(Stretch(places, upto, {total: index for index, total in enumerate(upto)}))
    all_places = [place for places in stretches for place in places]
    after = sorted(
        (place for place in all_places if gaps[place] is not None),
        key=lambda place: -(gaps[place] or 0),
    )
    return Summed(
        gaps, prepared, after, len(all_places), sum(stretch.upto[-1] for stretch in prepared),
        is_cut_anew,
    )


def _step_bytes(summed: Summed) -> int:
    """The bytes of a step: the smallest sum that explains nearly as much as the best one. 0: no sum
    explains enough. Where steps are known to be cut anew, a sum whose runs cover all calls, one
    after the other, needs no other proof: if most are cut alike, it occurs at each call, as by
    chance."""
    explained: dict[int, float] = {}
    best = 0.0
    hits_of = _hits_of_sums(summed)
    for step_bytes in sorted(hits_of):
        if not _may_be_steps(summed, step_bytes, hits_of[step_bytes], len(hits_of)):
            continue
        walks = summed.walks(step_bytes)
        spans = [span for walk in walks for span in walk.spans]
        share = sum(place in summed.gaps for span in spans for place in range(*span)) / summed.calls
        is_cover = summed.is_cut_anew and share >= 1 - SUM_TOLERANCE and is_linked(walks)
        if spans and (
            is_cover or _is_no_chance(walks, len(hits_of)) or follow_pauses(summed.gaps, spans)
        ):
            explained[step_bytes] = share
            best = max(best, share)
        if best >= 1 - SUM_TOLERANCE:
            break  # no larger sum explains notably more
    return min(
        (
            total for total, share in explained.items()
            if share >= max(FEWEST_SUMMED, best - SUM_TOLERANCE)
        ),
        default=0,
    )


def divided(calls: Calls, spans: list[Span], step_bytes: int) -> tuple[list[Span], int]:
    """If nearly all spans consist of the same number of parts with equal sums,
    these are the steps."""
    for parts in range(min(span.end - span.first for span in spans), 1, -1):
        inner = (
            [_parts(calls, span, step_bytes // parts) for span in spans]
            if step_bytes % parts == 0 else []
        )
        divided = [span for own in inner if len(own) == parts for span in own]
        if len(divided) >= DIVIDED * parts * len(spans):
            return divided, step_bytes // parts
    return spans, step_bytes


def _parts(calls: Calls, span: Span, part_bytes: int) -> list[Span]:
    """The span cut where a sum of its calls is a multiple of `part_bytes`."""
    places = range(*span)
    upto = accumulate(calls.bytes[place] for place in places)
    ends = [place + 1 for place, total in zip(places, upto) if total % part_bytes == 0]
    return [Span(first, end) for first, end in zip([span.first, *ends], ends)]


def _hits_of_sums(summed: Summed) -> dict[int, list[tuple[int, int]]]:
    """The sums of consecutive calls that occur often enough to fill the sequence: the places where
    a run with this sum begins, and where the run after it would."""
    counts: Counter[int] = Counter()
    most = summed.most_calls()

    def sums(stretch: Stretch, first: int) -> list[int]:
        before, last = (
            stretch.upto[first], first + most.get(stretch.places[first], MOST_CALLS_OF_A_SUM),
        )
        return [total - before for total in stretch.upto[first + 1 : last + 1]]

    for stretch in summed.stretches:
        for first in range(len(stretch.places)):
            counts.update(sums(stretch, first))
    least = FEWEST_SUMMED * summed.volume
    hits_of: dict[int, list[tuple[int, int]]] = {
        total: [] for total, count in counts.items()
        if count >= FEWEST_STEPS and total * count >= least
    }
    for stretch in summed.stretches:
        places = [*stretch.places, stretch.places[-1] + 1]
        for first in range(len(stretch.places)):
            for end, total in enumerate(sums(stretch, first), first + 1):
                if total in hits_of:
                    hits_of[total].append((places[first], places[end]))
    return hits_of


def _may_be_steps(
    summed: Summed, step_bytes: int, hits: Sequence[tuple[int, int]], sums: int
) -> bool:
    """False if the runs with this sum neither follow each other more often than by chance, nor
    follow most of the longest pauses."""
    firsts = {first for first, _ in hits}
    linked = sum(end in firsts for _, end in hits)
    if linked * log(summed.calls / len(hits)) > log(summed.calls * sums) + SAFETY:
        return True
    longest = summed.after_longest_gaps[
        : max(1, round(HALF_THE_STEPS * summed.volume / step_bytes))
    ]
    return sum(map(firsts.__contains__, longest)) >= FOLLOWING_PAUSES * len(longest)


def _walk(
    summed: Summed, stretch: Stretch, hits: Sequence[tuple[int, int]], long_ns: float
) -> Walk:
    """The steps that cover most of a stretch, chosen from `hits`; steps after a pause are
    preferred. A step that stands alone and follows no pause may consist of parts of two steps."""
    places, gaps = stretch.places, summed.gaps
    # by hit: the first one that does not begin before its end
    after = [bisect_left(hits, (end,)) for _, end in hits]
    pays = [1.0 if (gaps[places[first]] or 0) >= long_ns else summed.worth for first, _ in hits]
    best = [0.0] * (len(hits) + 1)
    for hit in range(len(hits) - 1, -1, -1):
        best[hit] = max(best[hit + 1], pays[hit] + best[after[hit]])
    taken, hit = [], 0
    while hit < len(hits):
        is_taken = best[hit] == pays[hit] + best[after[hit]]
        if is_taken:
            taken.append(hits[hit])
        hit = after[hit] if is_taken else hit + 1
    firsts, ends = {first for first, _ in taken}, {end for _, end in taken}
    spans = [
        Span(places[first], places[end - 1] + 1) for first, end in taken
        if first in ends or end in firsts or (gaps[places[first]] or 0) >= long_ns
    ]
    return Walk(spans, len(firsts & ends), len(places), len(hits))


def is_linked(walks: Sequence[Walk]) -> bool:
    """True if nearly every step begins where another one ends."""
    return sum(walk.linked for walk in walks) >= LINKED * sum(len(walk.spans) - 1 for walk in walks)


def _is_no_chance(walks: Sequence[Walk], sums: int) -> bool:
    """True if the steps are linked, more often than expected by chance, of `sums` tried."""
    linked, calls, hits = (sum(column) for column in zip(*(walk[1:] for walk in walks)))
    return is_linked(walks) and linked * log(calls / hits) > log(calls * sums) + SAFETY


def follow_pauses(gaps: dict[int, int | None], spans: Sequence[Span]) -> bool:
    """True if the pause before most steps exceeds every pause inside them."""
    longest = [
        max((gaps.get(place) or 0 for place in range(span.first + 1, span.end)), default=0)
        for span in spans
    ]
    known = [
        (gap, inside) for span, inside in zip(spans, longest)
        if (gap := gaps[span.first]) is not None
    ]
    return sum(before > inside > 0 for before, inside in known) >= FOLLOWING_PAUSES * max(
        1, len(known)
    )

"""The steps of one rank, from the loops in its calls (loops/).

    calls of a thread  ->  loops  ->  the one that is the step  ->  where it ends   Found
    OwnCalls (lines.py)    with less detail of the messages, where that repeats better

All ranks of a communicator make the same collectives in the same order, so steps that end with one
hold for all of its ranks, by sequence number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import NamedTuple

from ..base import units
from ..base.arrays import np
from ..base.columns import NONE, Columns, Flags, Ints, Texts, covered
from ..base.present import present
from ..base.percentiles import around_median
from ..base.thresholds import threshold, whole
from ..loops.choice import FEWEST_STEPS, Choice, Kind, choose
from ..loops.cut import (
    Spans, cut, filtered, grouped_by_pauses, joined_parts, may_be_layers,
)
from ..loops.words import Word, nest_text
from .lines import FEWEST_CALLS, AboutCalls, OwnCalls, free

FEWEST_SINGLE = whole("loops.single")
FEWEST_SMALL = threshold("steps.small")
FITS, FEW_FIT = threshold("loops.fits"), threshold("loops.few-fit")
IRREGULAR, STEADY = threshold("loops.irregular"), threshold("loops.steady")
SURE, BETTER = threshold("steps.sure"), threshold("loops.better")
ALIKE, SPREAD = threshold("loops.alike"), threshold("loops.spread")
MANY_STEPS = 10
MAY_BE_PART = (
    "what repeats may be a step or a part of one; too little was sampled in a row to tell"
)


@dataclass(frozen=True)
class Numbered(Columns):
    """Steps as ranges of sequence numbers; before: that of the last collective of the step before,
    0 for the first step of the run."""

    before: Ints
    first: Ints
    last: Ints


class Found(NamedTuple):
    """The steps of a rank, or why there are none."""

    spans: Spans | None = None  # None: there are no steps
    how: str = ""  # 'loops', 'gaps', 'small'; '': there are none
    functions: dict[str, float] = {}  # the calls that count, and how many a step has
    is_bulk: bool = False  # these are bulk collectives
    bytes: int | None = 0  # of them in a step; None: ranks have sizes of their own
    confidence: float = 0.0  # share of the calls of these functions that are in steps
    is_close: bool = False  # another loop explains nearly as much
    words: str = ""  # the loops
    why: str = ""  # there are none, or this one was taken
    counted: Ints | None = None  # places of all calls that count
    share: float = 0.0  # of the time from the first call to the last, in steps


def steps_of(
    own: OwnCalls, about: AboutCalls, texts: Texts, is_negotiated: bool, is_main: bool
) -> Found:
    """is_negotiated: the thread agrees with the others on what to send."""
    if len(own) < FEWEST_CALLS:
        return Found(why=_too_few(len(own), "call"))
    if is_negotiated:  # whatever else it does, it does until something is to be sent
        return next(_by_loops(own, own.is_bulk, about, texts, own.token[own.is_bulk], False))
    tried: list[Found] = []
    best = Found()
    for token, which in _levels(own):
        of_level = [
            _even(own, found) if found.how else found
            for found in _by_loops(own, which, about, texts, token[which], is_main)
        ]
        tried += of_level
        found = max(of_level, key=_quality)
        if is_better(found, best):
            best = found
        if _quality(best) >= SURE:
            return best
    return best if best.how else tried[0]


def _even(own: OwnCalls, found: Found) -> Found:
    """No steps if these differ in their number of each call: what is repeated inside a step, or
    comes when messages happen to come, does."""
    spans, place = present(found.spans), np.arange(len(own))
    steps, step = len(spans), np.searchsorted(spans.first, place, "right") - 1
    inside = (step >= 0) & (place < spans.end[step])
    _, call = np.unique(own.call[inside], return_inverse=True)
    number = np.bincount(call * steps + step[inside], minlength=steps * (call.max() + 1))
    alike = max(np.bincount(of_call)[1:].max() for of_call in number.reshape(-1, steps))
    why = unlike(int(alike), steps)
    return Found(confidence=found.confidence, why=why, words=found.words) if why else found


def unlike(alike: int, steps: int) -> str:
    """Why these are no steps; empty: all but one, or but few, have as many of some call."""
    if alike >= min(steps - 1, ALIKE * steps):
        return ""
    return f"of no function do more than {alike:,} of {steps:,} repetitions have as many calls"


def is_better(rough: Found, best: Found) -> bool:
    return _quality(rough) > _quality(best) + BETTER


def _too_few(number: int, what: str) -> str:
    return f"{units.are(number, what)} too few, {FEWEST_CALLS} are needed"


def _quality(found: Found) -> float:
    return min(found.confidence, found.share) if found.how else 0.0


def _levels(own: OwnCalls) -> Iterator[tuple[Ints, Flags]]:
    """Less and less detail of the messages, as far as there are any; then of small collectives."""
    is_every = np.ones(len(own), bool)
    is_message = own.kind == Kind.MESSAGE
    if is_message.any():
        yield own.sized, is_every
    yield own.token, is_every
    if is_message.any():
        yield own.similar, is_every
        if not is_message.all():
            yield own.token, ~is_message
    is_rough = own.is_bulk | is_message
    yield np.where(is_rough, own.similar, own.similar.max() + 1 + own.function), is_every


def _share(own: OwnCalls, spans: Spans) -> float:
    """The part in steps of the time from the first call to the last."""
    upto_ns = np.append(int(own.start_ns[0]), np.maximum.accumulate(own.end_ns))
    inside = upto_ns[spans.end] - upto_ns[spans.first]
    return float(inside.sum()) / max(1, int(upto_ns[-1] - own.start_ns[0]))


def _by_loops(
    own: OwnCalls, which: Flags, about: AboutCalls, texts: Texts, token: Ints, is_main: bool
) -> Iterator[Found]:
    """which: the calls in which loops are sought, token: theirs. The chosen loop, and if that is
    interrupted too often, those inside it."""
    some, place = own.take(which), np.flatnonzero(which)

    def found(choice: Choice) -> Found:
        answer = _of_loop(choice, some, about, texts, token, is_main)
        if not answer.how:
            return answer
        some_spans = present(answer.spans)
        spans = Spans(place[some_spans.first], place[some_spans.end - 1] + 1)
        return answer._replace(
            spans=spans, counted=place[answer.counted], share=_share(own, spans)
        )

    choice = choose(some.line(token))
    if choice is None:
        yield Found(why="no call repeats")
        return
    first = found(choice)
    yield first
    if not first.how or first.confidence < SURE:
        yield from map(found, choice.inside())


def _of_loop(
    choice: Choice, some: OwnCalls, about: AboutCalls, texts: Texts, token: Ints, is_main: bool
) -> Found:
    mine = np.isin(token, [*choice.loops.alphabet(choice.loop)])
    counted, is_bulk = _counted(some, mine, token)
    is_small = not is_bulk and not (some.kind[mine] == Kind.MESSAGE).any()
    is_control = not is_bulk and bool((some.kind[counted] != Kind.MESSAGE).any())
    is_reducing = bool(about.is_reduction[some.call[counted]].any())
    if (is_control and not is_main) or (is_small and not is_reducing):
        return Found(why="none of them is a small reduction of the main thread")
    if is_small and (some.is_bulk & about.is_reduction[some.call]).sum() >= FEWEST_CALLS:
        return Found(why="only small collectives repeat, beside bulk reductions")
    nest = partial(nest_text, choice, words=_words(some, texts, token))
    gap_ns = _gaps(some, counted)
    largest = some.size == some.size[counted].max()
    spans = cut(filtered(choice), counted, gap_ns, some.stretch[0] == some.stretch[-1], largest)
    if not len(spans):
        return Found(why=doubt(0, False, 0.0, [], is_small))
    spans = joined_parts(spans, mine, some.stretch)
    last, first = _ends(counted, spans)
    spans, number = grouped_by_pauses(spans, gap_ns[first])
    if number == 1:
        number_of = np.cumsum(counted)
        is_next = np.append(False, number_of[first[1:]] == number_of[last[:-1]] + 1)
        if may_be_layers(spans, is_next, some.stretch, gap_ns[first]):
            return Found(why=MAY_BE_PART, words=nest(0))
        spans = _mended(some, counted, spans) if is_bulk else spans
    last, first = _ends(counted, spans)
    inside = _inside(spans, counted)
    confidence = float(inside.sum() / counted.sum())
    is_same = some.stretch[last[1:]] == some.stretch[last[:-1]]
    times = np.diff(some.end_ns[last])[is_same].tolist()
    is_single = number == 1 and bool((last == first).all())
    if why := doubt(len(spans), is_single, confidence, times, is_small):
        return Found(confidence=confidence, why=why, words=nest(0))
    calls = Counter(texts.texts[call] for call in some.call[inside].tolist())
    functions = {
        call: number / len(spans) for call, number in calls.items() if number >= len(spans) / 2
    }
    middle = Spans(*(column[len(spans) // 2 :][:1] for column in (spans.first, spans.end)))
    return Found(
        spans, "gaps" if number > 1 else "small" if is_small else "loops", functions, is_bulk,
        int(some.bytes[_inside(middle, counted & mine)].sum()), confidence,
        any(one.is_close for one in choice.refused),
        nest(len(spans) if number == 1 else 0),
        counted=np.flatnonzero(counted),
    )


def _counted(some: OwnCalls, mine: Flags, token: Ints) -> tuple[Flags, bool]:
    """The calls that count in steps of these calls: bulk collectives of their functions, else their
    collectives, else all of them. And whether they are bulk. A token counts as most of its calls
    do, so each iteration has a call that counts: MPI_Alltoallv has one token, whatever it sends."""
    number = np.bincount(token)

    def mostly(which: Flags) -> Flags:
        return (2 * np.bincount(token, which) > number)[token]

    is_bulk = mostly(some.is_bulk)
    if (is_bulk & mine).any():
        return is_bulk & np.isin(some.function, some.function[is_bulk & mine]), True
    small = mine & mostly(some.sequence != NONE)
    return (small if small.any() else mine), False


def _gaps(some: OwnCalls, counted: Flags) -> Ints:
    """The pause before each call that counts; -1: calls before it are missing."""
    gap_ns = np.full(len(some), -1)
    place = np.flatnonzero(counted)
    is_same = some.stretch[place[1:]] == some.stretch[place[:-1]]
    free_ns = some.free_ns
    if not (some.sequence[place] != NONE).any():
        free_ns = free(some.start_ns, some.end_ns, np.ones(len(some), bool))
    gap_ns[place[1:]] = np.where(is_same, np.diff(free_ns[place]), -1)
    return gap_ns


def _ends(counted: Flags, spans: Spans) -> tuple[Ints, Ints]:
    """The last and the first call of each that counts."""
    place = np.flatnonzero(counted)
    return place[np.searchsorted(place, spans.end) - 1], place[np.searchsorted(place, spans.first)]


def _inside(spans: Spans, counted: Flags) -> Flags:
    return covered(spans.first, spans.end, len(counted)) & counted


def _mended(some: OwnCalls, counted: Flags, spans: Spans) -> Spans:
    """Calls left over before a step are a step, too, if they carry the same bytes in other sizes:
    the first step of DistributedDataParallel has other buckets."""
    middle = slice(*(int(column[len(spans) // 2]) for column in (spans.first, spans.end)))
    function = some.function[middle]
    volumes = np.bincount(function, (some.bytes * counted)[middle])[function]
    step_bytes, of_most = int(volumes.max()), some.function == function[volumes.argmax()]
    if not step_bytes:
        return spans
    upto = np.append(0, np.cumsum(some.bytes * (counted & of_most)))
    wanted = upto[spans.first] - step_bytes
    extra = np.searchsorted(upto, wanted, "right") - 1
    is_extra = (upto[extra] == wanted) & (extra >= np.append(0, spans.end[:-1]))
    is_extra &= some.stretch[extra] == some.stretch[spans.first]
    return Spans(
        np.sort(np.append(spans.first, extra[is_extra])),
        np.sort(np.append(spans.end, spans.first[is_extra])),
    )


def doubt(
    steps: int, single: bool, confidence: float, times: Sequence[int], is_small: bool
) -> str:
    """Why these are no steps; empty: they are."""
    fewest = FEWEST_SINGLE if single else FEWEST_STEPS
    if steps < fewest:
        return f"what repeats occurs {units.counted(steps, 'time')}, {fewest} are needed"
    least = FEWEST_SMALL if is_small else FITS if steps >= MANY_STEPS else FEW_FIT
    if confidence < least:
        share, needed = units.share(confidence), units.share(least)
        return f"what repeats has {share} of the calls of its kind, {needed} are needed"
    if single and is_irregular(times):
        return "what repeats comes at irregular times"
    ordered = sorted(times)
    rare = -(-len(ordered) // 20) % max(1, len(ordered))
    shortest, longest = (ordered[rare], ordered[-1 - rare]) if ordered else (1, 1)
    if longest > SPREAD * shortest:
        ends = f"{units.duration(shortest)} to {units.duration(longest)}"
        return f"what repeats lasts {ends}, without the {rare:,} shortest and longest"
    if is_small:
        if len(times) < MANY_STEPS:
            return f"{units.are(len(times), 'interval')} too few, {MANY_STEPS} are needed"
        if not is_steady(times):
            return f"what repeats comes at irregular times ({len(times):,} intervals)"
    return ""


def is_irregular(times: Sequence[int]) -> bool:
    if len(times) < FEWEST_STEPS:
        return True
    middle, deviation = around_median(times)
    return deviation > IRREGULAR * middle


def is_steady(times: Sequence[int]) -> bool:
    """The intervals are alike and hold most of the time: not polls in quick succession with long
    pauses in between."""
    middle = median(times)
    near = [time for time in times if middle <= 2 * time <= 4 * middle]
    return len(near) >= STEADY * len(times) and sum(near) >= STEADY * sum(times)


def _words(some: OwnCalls, texts: Texts, token: Ints) -> dict[int, Word]:
    tokens, first = np.unique(token, return_index=True)
    return {
        number: Word(
            texts.texts[some.call[at]].removeprefix("MPI_"),
            int(some.bytes[at]) if some.sequence[at] != NONE else None,
            some.kind[at] == Kind.MESSAGE,
        )
        for number, at in zip(tokens.tolist(), first.tolist())
    }


def numbered_steps(own: OwnCalls, found: Found) -> tuple[int, Numbered] | None:
    """The communicator with whose collectives the steps end, and the steps by their numbers; None:
    they end with messages, or on several communicators. No step begins where calls are missing."""
    counted, spans = present(found.counted), present(found.spans)
    at = np.searchsorted(counted, spans.end) - 1
    identity = own.identity[counted[at]]
    if identity[0] == NONE or (identity != identity[0]).any():
        return None
    mine = counted[own.identity[counted] == identity[0]]
    sequence, stretch = own.sequence[mine], own.stretch[mine]
    first = np.searchsorted(mine, spans.first)
    last = np.searchsorted(mine, spans.end) - 1
    is_after = (first > 0) & (stretch[first - 1] == stretch[first])
    is_begin = ~is_after & (stretch[first] == 0)
    before = np.where(is_after, sequence[first - 1], 0)
    steps = Numbered(before, sequence[first], sequence[last])
    return int(identity[0]), steps.take(is_after | is_begin)


def own_bounds(own: OwnCalls, found: Found) -> tuple[Ints, Ints]:
    """When each step begins and ends: with the last call of the step before, and with its own."""
    upto_ns, spans = np.maximum.accumulate(own.end_ns), present(found.spans)
    first, end = spans.first, spans.end
    is_after = (first > 0) & (own.stretch[first - 1] == own.stretch[first])
    begin_ns = np.where(is_after, upto_ns[first - 1], own.start_ns[first])
    return begin_ns, upto_ns[end - 1]

"""The steps of one rank: the loop in its calls (loops/) for which there is evidence.

    calls of a thread  ->  levels of loops  ->  evidence for each  ->  where it ends   Found
    OwnCalls (lines.py)    with less detail of the messages, where that repeats better

That calls repeat shows a loop, not that a user would call it a step: an inner solver of equal
iterations repeats as steps do. A level is the step if the visits to a region or the bytes of the
parameters say so, if it repeats as often as the command line asks, if the program makes one turn
of it before a barrier, as the first forces or a warm-up, or if it is the only one and its ranks
wait for each other in more calls than those of a layer. Otherwise all levels are shown, and none is
called the step.

All ranks of a communicator make the same collectives in the same order, so steps that end with one
hold for all of its ranks, by sequence number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from ..base import (
    NONE,
    Columns,
    Flags,
    Ints,
    Row,
    Texts,
    View,
    covered,
    np,
    present,
    threshold,
    total,
    units,
    whole,
)
from ..late.marks import is_wait
from ..loops.levels import FEWEST_STEPS, Kind, Level, Spans, cut, levels
from .lines import FEWEST_CALLS, OwnCalls

FITS, ORDERED = threshold("loops.fits"), threshold("steps.ordered")
SPREAD, BETTER = threshold("loops.spread"), threshold("loops.better")
GRADIENTS, IN_REGION = threshold("steps.gradients"), threshold("steps.in-region")
LEAST_BYTES = whole("roles.control-bytes")
LEAST_OUTSIDE, LONGER = threshold("steps.set-up"), threshold("steps.longer")
BY_CHANCE = threshold("steps.periodic")
FEWEST_ASKED, FEWEST_KINDS = whole("steps.asked"), whole("steps.kinds")
REGION, PARAMETERS, ASKED = "region", "bytes of the parameters", "command line"
ONLY, SET_UP = "the only loop", "a turn before the others, and a barrier"
CHOSEN = "--loop"
MOST_PARTS, MESSAGE = 5, "message call"  # of a turn, in words
# of an option, or no option's
STEPS_ASKED = re.compile("^-N$|[Ss]tep|[Ii]ter|^[^-].*[^=]$")


VISITS = View(  # of a rank to a region, on one of its threads; the longest first
    "Visits",
    ("world_rank", "thread", "name"),
    {
        "name": "name",
        "number": lambda groups: groups.groups.counts,
        "time_ns": total("span_ns"),
        "rank": "world_rank",
    },
    lambda groups: (-groups.sum("span_ns"),),
    where=lambda spans: spans.span_ns > 0,
)


class Found(NamedTuple):
    """The steps of a rank, or why there are none."""

    spans: Spans | None = None
    evidence: tuple[str, ...] = ()  # that these are the steps; empty: there is none
    functions: dict[str, float] = {}  # the calls that count, and how many a step has
    is_bulk: bool = False  # these are bulk collectives
    bytes: int | None = 0  # of them in a step; None: ranks have sizes of their own
    confidence: float = 0.0  # share of the calls of these functions that are in steps
    words: str = ""  # the body of the loop, and what is around it
    why: str = ""  # there are none
    counted: Ints | None = None  # places of all calls that count
    share: float = 0.0  # of all calls, in steps
    median_ns: float = 0.0  # from the end of one to the end of the next
    reduced: int = 0  # bytes that a step reduces
    levels: tuple[Found, ...] = ()  # loops of which each may be the step, the outermost first

    @property
    def calls_text(self) -> str:
        """5 bulk MPI_Allreduce + 1.5 bulk MPI_Bcast"""
        kind = "bulk " if self.is_bulk else ""
        return " + ".join(
            f"{units.mean_count(count)} {kind}{call}" for call, count in self.functions.items()
        )

    @property
    def period(self) -> str:
        """Without bytes where each rank has its own."""
        sizes = [] if self.bytes is None else [units.size(self.bytes)]
        return ", ".join([self.calls_text, *sizes])

    @property
    def text(self) -> str:
        """300 x (5 Allreduce of 4 MiB); every 10: Allreduce of 8 B"""
        return f"{units.count(len(self.spans))} x {self.words}" if self.spans and self.words else ""


def steps_of(
    own: OwnCalls,
    about: Columns,
    texts: Texts,
    is_negotiated: bool,
    visits: Sequence[Row] = (),
    command: str = "",
    chosen: int | None = None,
) -> Found:
    """is_negotiated: the thread agrees with the others on what to send. command: its line. chosen:
    the number of the level that the user calls the step."""
    if len(own) < FEWEST_CALLS:
        return Found(why=f"{units.are(len(own), 'call')} too few, {FEWEST_CALLS} are needed")
    best: list[Found] = []
    for token in [own.token] if is_negotiated else [own.sized, own.token]:
        found = list(_of_levels(own, about, texts, token))
        if not best or is_better(found, best):
            best = found
        if _quality(best) >= ORDERED:
            break
    shown = _with_bytes(own, about, texts, [one for one in best if one.spans], is_negotiated)
    span_ns = int(own.end_ns[-1] - own.start_ns[0])
    is_whole = own.stretch[0] == own.stretch[-1]
    unproven = {SET_UP if len(best) == 1 else ONLY} if is_whole else {ONLY, SET_UP}
    shown = [_evident(one, visited(one, visits, span_ns), unproven) for one in shown]
    # of the outermost level: on busy cores what comes now and then takes as long as steps
    if is_whole and max([one.share for one in shown] or [0.0]) >= IN_REGION:
        shown = [_asked(one, command) for one in shown]
    if chosen and chosen <= len(shown):
        return shown[chosen - 1]._replace(evidence=(CHOSEN,))
    return _proven(shown, best, chosen)


def _proven(shown: Sequence[Found], found: Sequence[Found], chosen: int | None) -> Found:
    """The level for which there is evidence; if that says several, or there is none, no steps, and
    all levels. A number on the command line may be that of epochs, and sums of several sizes may be
    those of an epoch: alone they decide only about the level with most iterations."""
    if not shown:
        return found[0] if found else Found(why="no call repeats")
    inner = max(shown, key=lambda one: len(present(one.spans)))
    told = [one for one in shown if not one.why and {*one.evidence} - {ASKED, ONLY}]
    told = told or [one for one in [inner] if not one.why and one.evidence]
    if len(told) == 1 and not chosen:
        return told[0]
    why = shown[0].why if len(shown) == 1 else ""
    why = why or f"{units.counted(len(shown), 'loop')}, and nothing shows which is a step"
    if chosen:
        why = f"{units.are(len(shown), 'loop')} known"
    return Found(confidence=shown[0].confidence, why=why, levels=tuple(shown))


def _evident(found: Found, more: Sequence[str], unproven: Container[str]) -> Found:
    """With these kinds of evidence more, without the unproven; the turn of a set-up is no step."""
    kept = [kind for kind in found.evidence if kind not in unproven]
    spans = present(found.spans).take(slice(int(SET_UP in kept), None))
    return found._replace(spans=spans, evidence=(*more, *kept))


def visited(found: Found, visits: Sequence[Row], span_ns: int) -> list[str]:
    """The region that is visited once a step, and has most of the time or is a wait; an epoch is no
    step, nor are visits to a region inside another such."""
    steps = len(present(found.spans))
    likely = [
        visit
        for visit in visits
        if visit.number >= FEWEST_STEPS
        and "epoch" not in visit.name.lower()
        and (visit.time_ns >= IN_REGION * span_ns or is_wait(visit.name))
    ]
    outer = min(likely, key=lambda visit: visit.number, default=None)
    return [f"{REGION} '{outer.name}'"] if outer and abs(outer.number - steps) <= 1 else []


def _asked(found: Found, command: str) -> Found:
    """With the evidence that it repeats as often as a number on the command line says. Small
    numbers stand for ranks, layers and threads, too, and epochs are no steps. If fewer steps are
    asked for, that it is the only loop is none: its turns may be parts of a step."""
    words, turns = command.replace("=", "= ").split(), len(present(found.spans))
    numbers = {
        int(word): before
        for before, word in zip(words, words[1:])
        if word.isdigit() and FEWEST_ASKED <= int(word) <= turns and "epoch" not in before.lower()
    }
    if turns in numbers:
        return found._replace(evidence=(*found.evidence, ASKED))
    are_fewer = any(STEPS_ASKED.search(before) for before in numbers.values())
    return found._replace(
        evidence=tuple(kind for kind in found.evidence if kind != ONLY or not are_fewer)
    )


def _with_bytes(
    own: OwnCalls, about: Columns, texts: Texts, levels: list[Found], is_negotiated: bool
) -> list[Found]:
    """The bulk reductions, divided where they have summed the bytes of the parameters, however
    these are cut into messages: evidence for a level that has as many steps, which may lack the
    first one. Without such a level they are steps of their own, if their messages differ, are as
    many as the parameters were, or are negotiated."""
    is_reduced = own.is_bulk & about.is_reduction[own.call]
    sizes = [_parameters(own, about, is_reduced)]
    sizes += [level.reduced for level in levels if PARAMETERS in level.evidence]
    every = (_by_bytes(own, texts, is_reduced, size) for size in sizes if size)
    by_bytes = next((one for one in every if one), None)
    if by_bytes is None:
        return levels
    steps = len(present(by_bytes.spans))
    for place, one in enumerate(levels):
        own_steps = len(present(one.spans))
        if abs(own_steps - steps) <= 1:
            is_all = one.bytes == one.reduced or own_steps < steps
            mended = by_bytes._replace(functions=one.functions, words=one.words) if is_all else one
            mended = mended._replace(evidence=(PARAMETERS,))
            return [*levels[:place], mended, *levels[place + 1 :]]
    _, often = np.unique(own.bytes[is_reduced], return_counts=True)
    is_varied = often.max() < ORDERED * often.sum()  # sums of equal ones may be a coincidence
    is_each = sum(by_bytes.functions.values()) == _handed(own, about, is_reduced).sum()
    return [by_bytes, *levels] if is_varied or is_each or is_negotiated else levels


def _by_bytes(own: OwnCalls, texts: Texts, is_reduced: Flags, step_bytes: int) -> Found | None:
    """None: not where these bytes are full does a message end, or calls are missing."""
    place = np.flatnonzero(is_reduced)
    upto = np.cumsum(own.bytes[place])
    if not len(place) or own.stretch[0] != own.stretch[-1]:
        return None
    wanted = step_bytes * np.arange(1, int(upto[-1]) // step_bytes + 1)
    last = np.searchsorted(upto, wanted)
    is_hit = upto[last] == wanted
    if len(wanted) < FEWEST_STEPS or is_hit.sum() < ORDERED * len(wanted):
        return None
    last = last[is_hit]
    spans = Spans(place[np.append(0, last[:-1] + 1)], place[last] + 1)
    inside = _inside(spans, is_reduced)
    return Found(
        spans,
        (PARAMETERS,),
        _functions(own, texts, inside, len(spans)),
        True,
        step_bytes,
        float(inside.sum() / len(place)),
        "",
        "",
        place,
        _share(own, spans),
        middle_of(np.diff(own.end_ns[place[last]])),
    )


def _parameters(own: OwnCalls, about: Columns, is_reduced: Flags) -> int:
    """Their bytes: those of the bulk broadcasts before the first bulk reduction. 0: so few are
    no parameters."""
    handed = int(own.bytes[_handed(own, about, is_reduced)].sum())
    return handed * (handed > LEAST_BYTES)


def _handed(own: OwnCalls, about: Columns, is_reduced: Flags) -> Flags:
    return (np.cumsum(is_reduced) == 0) & own.is_bulk & about.is_broadcast[own.call]


def _quality(found: Sequence[Found]) -> float:
    return max((min(one.confidence, one.share) for one in found if not one.why), default=0.0)


def is_better(rough: Sequence[Found], best: Sequence[Found]) -> bool:
    return _quality(rough) > _quality(best) + BETTER


def _share(own: OwnCalls, spans: Spans) -> float:
    """The part of the calls that is in steps: busy cores stretch their time."""
    return float((spans.end - spans.first).sum() / len(own))


def _of_levels(own: OwnCalls, about: Columns, texts: Texts, token: Ints) -> Iterator[Found]:
    """A level that is no loop of steps says why."""
    parameters = _parameters(own, about, own.is_bulk & about.is_reduction[own.call])
    for level in levels(own.line(token)):
        spans, text = cut(level), _in_words(own, texts, level)
        if len(spans) < FEWEST_STEPS:
            yield Found(why=doubt(len(spans), 0.0, spans.end), words=text)
        else:
            mine = np.isin(token, [*level.loops.alphabet(level.loop)])
            found = _of_level(own, about, texts, token, mine, spans, parameters)
            yield found._replace(words=text)


def _of_level(
    own: OwnCalls,
    about: Columns,
    texts: Texts,
    token: Ints,
    mine: Flags,
    spans: Spans,
    parameters: int,
) -> Found:
    """mine: the calls of the kinds that are in the loop."""
    counted, is_bulk = _counted(own, mine, token)
    if is_bulk:
        spans = _with_last(spans, counted, token, own.stretch)
    place = np.flatnonzero(counted)
    last = place[np.searchsorted(place, spans.end) - 1]
    inside = _inside(spans, counted)
    confidence = float(inside.sum() / counted.sum())
    is_same = own.stretch[last[1:]] == own.stretch[last[:-1]]
    times = np.diff(own.end_ns[last])[is_same]
    middle = Spans(*(column[len(spans) // 2 :][:1] for column in (spans.first, spans.end)))
    in_turn = _inside(middle, mine)
    in_middle = in_turn & counted
    reduced = int(own.bytes[in_middle & about.is_reduction[own.call]].sum())
    # a loop that sums more than once what was handed out is no step
    least, most = sorted((parameters, reduced))
    is_gradients = is_bulk and 0 < GRADIENTS * most <= least
    is_often, outside_ns = len(spans) >= FEWEST_ASKED, _outside(own, spans)
    is_only = (
        is_often
        and confidence >= ORDERED
        and _is_composed(own, token, in_turn)
        and not are_parts(outside_ns)
    )
    is_set_up = is_often and not is_bulk and _has_set_up(own, about, token, spans, outside_ns)
    has_own_sizes = about.has_own_size[own.call[inside]].any()
    return Found(
        spans,
        (PARAMETERS,) * is_gradients + (ONLY,) * is_only + (SET_UP,) * is_set_up,
        _functions(own, texts, inside, len(spans)),
        is_bulk,
        None if has_own_sizes else int(own.bytes[in_middle].sum()),
        confidence,
        "",
        doubt(len(spans), confidence, _sums(spans, own.bytes * mine)),
        place,
        _share(own, spans),
        middle_of(times),
        reduced,
    )


def _is_composed(own: OwnCalls, token: Ints, in_turn: Flags) -> bool:
    """Whether all ranks wait for all in three kinds of calls of a turn, some bulk, or exchange
    messages and wait twice: a layer, a stage or a part of a step does less."""
    kind = own.kind[in_turn]
    together = token[in_turn][(kind == Kind.DATA) | (kind == Kind.SMALL)]
    if (kind == Kind.DATA).any():
        return len(np.unique(together)) >= FEWEST_KINDS
    return bool((kind >= Kind.MESSAGE).any() and len(together) > 1)


def _outside(own: OwnCalls, spans: Spans) -> Ints:
    """The time outside MPI in each turn and after it."""
    upto_ns = np.append(own.start_ns[:1], np.maximum.accumulate(own.end_ns))
    gaps_ns = np.append(np.maximum(0, own.start_ns - upto_ns[:-1]), 0)
    return _sums(Spans(spans.first + 1, spans.end + 1), gaps_ns)


def are_parts(outside_ns: Ints) -> bool:
    """Whether every n-th turn is longer or shorter outside MPI beyond chance: turns are parts of a
    step with other work. Busy cores lengthen turns at random."""
    usual_ns = np.median(outside_ns)
    for period in range(2, len(outside_ns) // FEWEST_ASKED + 1):
        rows = outside_ns[: len(outside_ns) // period * period].reshape(-1, period)
        deviations = np.abs(2 * (rows > usual_ns).sum(0) - len(rows)) / len(rows) ** 0.5
        middles_ns = np.median(rows, axis=0)
        if deviations.max() >= BY_CHANCE and middles_ns.max() >= LONGER * middles_ns.min():
            return True
    return False


def _has_set_up(own: OwnCalls, about: Columns, token: Ints, spans: Spans, outside_ns: Ints) -> bool:
    """Whether a barrier comes after the first turn and after no other: it computes the first
    forces, or warms up, and takes as long outside MPI as others do. No mere exchange of halos: it
    repeats calls, or others follow before the barrier."""
    turn = np.searchsorted(spans.first, np.flatnonzero(about.is_barrier[own.call]))
    if {*turn.tolist()} - {0, len(spans)} != {1}:
        return False
    first, end = spans.first[0], spans.end[0]
    is_exchange = about.is_barrier[own.call[end]] and end - first < 2 * len({*token[first:end]})
    return not is_exchange and bool(outside_ns[0] >= LEAST_OUTSIDE * np.percentile(outside_ns, 5))


def _with_last(spans: Spans, counted: Flags, token: Ints, stretch: Ints) -> Spans:
    """The same, and after the last one equal calls that count: it may lack what comes after the
    others, such as a metric that is there in the next step."""
    place = np.flatnonzero(counted)
    first, end = np.searchsorted(place, [spans.first[-1], spans.end[-1]]).tolist()
    own, after = place[first:end], place[end : 2 * end - first]
    is_same = np.array_equal(token[after], token[own]) and stretch[after[-1]] == stretch[own[0]]
    if not is_same:
        return spans
    return Spans(np.append(spans.first, spans.end[-1]), np.append(spans.end, after[-1] + 1))


def _functions(own: OwnCalls, texts: Texts, inside: Flags, steps: int) -> dict[str, float]:
    """How many of each call a step has, on average; without what is in fewer than half of them."""
    calls = Counter(texts.texts[call] for call in own.call[inside].tolist())
    return {call: number / steps for call, number in calls.items() if number >= steps / 2}


def middle_of(times: Ints) -> float:
    return float(np.median(times)) if len(times) else 0.0


def doubt(steps: int, confidence: float, step_bytes: Ints) -> str:
    """Why these are no steps; empty: they may be."""
    if steps < FEWEST_STEPS:
        return f"what repeats occurs {units.counted(steps, 'time')}, {FEWEST_STEPS} are needed"
    if confidence < FITS:
        share, needed = units.share(confidence), units.share(FITS)
        return f"what repeats has {share} of the calls of its kind, {needed} are needed"
    least, most = np.percentile(step_bytes, [5, 95])
    if most > SPREAD * max(1.0, least):
        return f"what repeats carries {units.size(int(least))} to {units.size(int(most))}"
    return ""


def _counted(own: OwnCalls, mine: Flags, token: Ints) -> tuple[Flags, bool]:
    """The calls that count in steps of these calls: bulk collectives of their functions, else their
    collectives, else all of them. And whether they are bulk. A token counts as most of its calls
    do, so each iteration has a call that counts: MPI_Alltoallv has one token, whatever it sends."""
    number = np.bincount(token)

    def mostly(which: Flags) -> Flags:
        return (2 * np.bincount(token, which) > number)[token]

    is_bulk = mostly(own.is_bulk)
    if (is_bulk & mine).any():
        return is_bulk & np.isin(own.function, own.function[is_bulk & mine]), True
    small = mine & mostly(own.sequence != NONE)
    return (small if small.any() else mine), False


def _sums(spans: Spans, values: Ints | Flags) -> Ints:
    """In each span."""
    upto = np.append(0, np.cumsum(values))
    return upto[spans.end] - upto[spans.first]


def _inside(spans: Spans, counted: Flags) -> Flags:
    return covered(spans.first, spans.end, len(counted)) & counted


def _in_words(own: OwnCalls, texts: Texts, level: Level) -> str:
    """A turn on average, and what each turn of the loops around it has besides."""
    loops = (level.loop, *reversed(level.outer))
    inside = [level.loops.inside(loop) for loop in loops]
    turns = [level.loops.iterations(loop) for loop in loops]
    said = [f"({_calls_text(own, texts, level, inside[0], turns[0])})"]
    for inner, outer, number in zip(inside, inside[1:], turns[1:]):
        rest = _calls_text(own, texts, level, outer & ~inner, number)
        said += [f"every {round(turns[0] / number):,}: {rest}"] if rest else []
    return "; ".join(said)


def _calls_text(own: OwnCalls, texts: Texts, level: Level, inside: Flags, times: int) -> str:
    """24 message calls, Allreduce of 8 B"""
    places, often = np.flatnonzero(inside), Counter[str]()
    _, first, count = np.unique(level.loops.tokens[places], return_index=True, return_counts=True)
    for at, number in sorted(zip(places[first].tolist(), count.tolist())):
        name, has_size = texts.texts[own.call[at]].removeprefix("MPI_"), own.bytes[at] > 0
        word = f"{name} of {units.size(int(own.bytes[at]))}" if has_size else name
        often[MESSAGE if own.kind[at] >= Kind.MESSAGE else word] += number / times
    parts = [
        f"{units.mean_count(number)} {word}{'s' * (word == MESSAGE)}"
        if round(number, 1) != 1
        else f"{'1 ' * (word == MESSAGE)}{word}"
        for word, number in often.items()
        if 2 * number >= 1
    ]
    more = len(parts) - MOST_PARTS
    return ", ".join(parts if more <= 0 else [*parts[: MOST_PARTS - 1], f"{more + 1} more"])


def numbered_steps(own: OwnCalls, found: Found) -> tuple[int, Columns] | None:
    """The communicator with whose collectives the steps end, and the steps by their numbers; None:
    they end with messages, or on several communicators. before: of the last collective of the step
    before, 0 for the first step of the run. No step begins where calls are missing."""
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
    steps = Columns(before=before, first=sequence[first], last=sequence[last])
    return int(identity[0]), steps.take(is_after | is_begin)

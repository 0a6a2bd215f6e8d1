"""The communicators whose collectives repeat in steps (period.py).

    sampled calls  ->  collectives of      ->  of each communicator,   ->  what repeats in them
                       several ranks           from its lowest rank        Group
                       Collectives             Stepping

All ranks of a communicator call the same collectives in the same order, so the boundaries found on
one rank hold for all, by sequence number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..base import units
from ..base.arrays import np
from ..base.columns import (
    NONE, Columns, Flags, Groups, Ints, TextInts, Texts, found_in, grouped, numbered, table,
)
from ..base.thresholds import threshold
from ..calls.by_call import operation
from ..run.sampled import Communicators
from .period import FEWEST_CALLS, MANY_STEPS, Calls, Period, find_period, free_times, is_steady
from .sampled_calls import SampledCalls

REDUCTIONS = ("reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "reducescatter")
FROM_THE_START = 0  # number of the stretch that begins with the first collective
FEWEST_SMALL, MOSTLY_TIMED = threshold("steps.small"), threshold("steps.timed")
KINDS_TRIED = 8


@dataclass(frozen=True)
class Collectives(Columns):
    """The sampled collectives of communicators of several ranks."""

    row: Ints  # of the call
    world_rank: Ints
    communicator: Ints
    identity: TextInts
    sequence: Ints
    # on the device if nine in ten of the communicator's operations have such times: with
    # intermittent tracing, steps would seem long and short
    start_ns: Ints
    done_ns: Ints  # when it was complete, or its call returned if that is later


@dataclass(frozen=True)
class Stepping(Columns):
    """The collectives in which steps are sought: of each communicator those of the lowest rank that
    has samples, as far as all such ranks have sampled the same ones."""

    identity: TextInts
    sequence: Ints
    call: TextInts
    bytes: Ints  # 0 where each rank has its own size: it is not compared between steps
    start_ns: Ints
    end_ns: Ints  # a small nonblocking one ends with its call: it hides no pause
    is_bulk: Flags
    is_small: Flags  # on the main thread: those of others are a framework's control messages
    is_negotiated: Flags  # the thread negotiates with the other ranks on what to send


@dataclass(frozen=True)
class Numbered(Columns):
    """Steps as ranges of sequence numbers; before: that of the last bulk collective before the
    step, 0 for the first step of the run."""

    before: Ints
    first: Ints
    last: Ints


class Group(NamedTuple):
    """A communicator whose collectives are periodic."""

    identity: str
    period: Period
    steps: Numbered
    functions: dict[str, float]  # how many of each a step has, on average
    sampled: int  # collectives that were analysed

    @property
    def rating(self) -> tuple[bool, int]:
        """Prefers reductions, because gradients are reduced and are most of what a step sends."""
        return any(map(is_reduction, self.functions)), self.period.bytes


class Refused(NamedTuple):
    """Collectives on a communicator that delimit no steps, and why."""

    calls: int
    what: str
    identity: str
    why: str
    confidence: float


class Found(NamedTuple):
    groups: list[Group]
    sampled: int  # collectives in which steps were sought
    bulk: list[Refused]
    small: list[Refused]


class Line(NamedTuple):
    """The collectives of one communicator in order."""

    identity: str
    rows: Stepping
    names: list[str]
    stretches: list[int]  # equal while no call is missing in between
    free_ns: list[int]  # up to each, time in which none was in progress


def is_reduction(call: str) -> bool:
    return operation(call) in REDUCTIONS


def collectives(sampled: SampledCalls, known: Communicators) -> Collectives:
    calls = sampled.calls
    rows = np.flatnonzero((calls.sequence != NONE) & (calls.communicator > 1))
    known = known.take((known.size > 1) | known.is_inter)
    place = known.row(calls.take(rows))
    rows, place = rows[place >= 0], place[place >= 0]
    identity = known.identity[place]
    start_ns, end_ns, done_ns = calls.start_ns[rows], calls.end_ns[rows], calls.completed_ns[rows]
    is_timed = calls.device_end_ns[rows] != NONE
    is_on_device = mostly_timed(identity, is_timed, known.is_nccl[place])
    start_ns = np.where(is_timed & is_on_device, calls.device_start_ns[rows], start_ns)
    done_ns = np.where(
        is_timed, np.where(is_on_device, calls.device_end_ns[rows], NONE), done_ns
    )
    return Collectives(
        rows, calls.world_rank[rows], calls.communicator[rows], identity, calls.sequence[rows],
        start_ns, np.maximum(end_ns, done_ns),
    )


def mostly_timed(identity: TextInts, is_timed: Flags, is_nccl: Flags) -> Flags:
    count = np.bincount(identity)[identity]
    timed = np.bincount(identity, is_timed)[identity]
    return is_nccl & (timed >= MOSTLY_TIMED * count)


def stepping(sampled: SampledCalls, found: Collectives) -> Stepping:
    calls, texts = sampled.calls, sampled.texts
    order, groups = grouped(found.identity, found.world_rank, found.communicator)
    members = found.take(order[groups.first])
    speakers = Groups(members.identity)  # the first member of each
    place = np.searchsorted(members.identity[speakers.first], found.identity)
    speaker = speakers.first[place]
    speaks = (found.world_rank == members.world_rank[speaker]) & (
        found.communicator == members.communicator[speaker]
    )
    same = numbered(found.identity, found.sequence)
    is_common = np.bincount(same, minlength=1)[same] >= speakers.counts[place]
    own = found.take(speaks & is_common)
    own = own.take(np.lexsort((own.sequence, texts.order()[own.identity])))
    about, row = sampled.known, own.row
    call, call_bytes = calls.call[row], calls.bytes[row]
    has_own_size = about.which(call, texts, lambda one: one.bandwidth == "own-size")
    is_collective = about.which(
        call, texts,
        lambda one: one.family in ("collective", "neighborhood") and one.form != "persistent",
    )
    is_unknown = (call_bytes == NONE) & (sampled.is_control[row] == NONE)
    is_large = sampled.is_large[row] | is_unknown
    return Stepping(
        own.identity, own.sequence, call,
        np.where(has_own_size | (call_bytes == NONE), 0, call_bytes),
        own.start_ns, np.where(is_collective & is_large, own.done_ns, calls.end_ns[row]),
        is_collective & is_large, is_collective & ~is_large & sampled.on_main(row),
        sampled.is_negotiated(row),
    )


def find_groups(rows: Stepping, texts: Texts) -> Found:
    lines = list(_lines(rows, texts))
    groups, refused = [], []
    for line in lines:
        group, calls = _group(line, line.rows.is_bulk)
        if len(group.steps):
            groups.append(group)
        elif calls:
            why = group.period.why or "no step was sampled whole"
            bulk = units.counted(calls, "bulk collective")
            refused.append(Refused(calls, bulk, line.identity, why, group.period.confidence))
    small: list[Refused] = []
    if not groups:
        groups, small = _small_groups(lines)
    return Found(groups, len(rows), refused, small)


def _lines(rows: Stepping, texts: Texts) -> Iterator[Line]:
    groups = Groups(rows.identity)
    for first, count in zip(groups.first.tolist(), groups.counts.tolist()):
        own = rows.take(slice(first, first + count))
        is_after_others = own.sequence != np.append(0, own.sequence[:-1]) + 1
        yield Line(
            texts.texts[own.identity[0]], own, [texts.texts[call] for call in own.call],
            np.cumsum(is_after_others).tolist(),
            free_times(own.start_ns.tolist(), own.end_ns.tolist()),
        )


def _small_groups(lines: Sequence[Line]) -> tuple[list[Group], list[Refused]]:
    """A solver may reduce only its time step or residual in each step. Not used if there are bulk
    reductions: small collectives serve those."""
    reductions = (
        call for line in lines for call, is_bulk in zip(line.names, line.rows.is_bulk) if is_bulk
    )
    if sum(map(is_reduction, reductions)) >= FEWEST_CALLS:
        return [], []
    groups, refused = [], []
    for line in lines:
        group, others = _small_group(line)
        groups += [group] if group else []
        refused += others
    return groups, refused


def _small_group(line: Line) -> tuple[Group | None, list[Refused]]:
    """The most frequent reduction of one small size that recurs at regular intervals."""
    kinds = list(zip(line.names, line.rows.bytes.tolist()))
    small = Counter(
        kind for kind, is_small in zip(kinds, line.rows.is_small)
        if is_small and is_reduction(kind[0])
    )
    regular, refused = {}, []
    for kind, calls in small.most_common(KINDS_TRIED):
        is_of_kind = np.array([each == kind for each in kinds], bool)
        group, _ = _group(line, line.rows.is_small & is_of_kind)
        why = irregular_text(group.period, _intervals(line.rows, group.steps))
        if why:
            what = f"{units.count(calls)} {_kind_text(*kind)}"
            refused.append(Refused(calls, what, line.identity, why, group.period.confidence))
        else:
            regular[kind] = group
    if not regular:
        return None, refused
    kind, group = next(iter(regular.items()))
    which = (
        "the only regular collective" if len(regular) == 1
        else "the most frequent of the regular collectives"
    )
    why = f"no bulk collective has a period: steps taken from {_kind_text(*kind)}, {which}"
    return group._replace(period=group.period._replace(how="small", why=why)), refused


def _kind_text(call: str, call_bytes: int) -> str:
    return f"{call} of {units.size(call_bytes)}"


def irregular_text(period: Period, intervals: Sequence[int]) -> str:
    """Why a small collective delimits no steps; "": it does."""
    if period.why:
        return period.why
    if period.confidence < FEWEST_SMALL:
        share, needed = units.share(period.confidence), units.share(FEWEST_SMALL)
        return f"{share} of them are in steps, {needed} are needed"
    if not intervals:
        return "no step was sampled whole"
    if len(intervals) < MANY_STEPS:
        return f"{units.counted(len(intervals), 'interval')} are too few, {MANY_STEPS} are needed"
    return (
        "" if is_steady(intervals)
        else f"they come at irregular times ({len(intervals):,} intervals)"
    )


def _intervals(rows: Stepping, steps: Numbered) -> list[int]:
    steps = steps.take(steps.before > 0)
    last, before = (
        rows.end_ns[found_in((of,), (rows.sequence,))] for of in (steps.last, steps.before)
    )
    return (last - before).tolist()


def _group(line: Line, is_counted: Flags) -> tuple[Group, int]:
    """The steps found from these calls, and the number of the calls."""
    chosen = np.flatnonzero(is_counted)
    rows, places = line.rows.take(chosen), chosen.tolist()
    names, sequences = [line.names[place] for place in places], rows.sequence.tolist()
    stretches = [line.stretches[place] for place in places]
    call_bytes = rows.bytes.tolist()
    calls = Calls(
        _numbers(zip(names, call_bytes)), _numbers(names), call_bytes,
        [line.free_ns[place] for place in places], rows.end_ns.tolist(), stretches,
    )
    found = find_period(calls, bool(rows.is_negotiated.any()))
    counts = Counter(names[place] for span in found.spans for place in range(*span))
    own = {
        call: count / len(found.spans) for call, count in counts.items()
        if count >= len(found.spans) / 2
    }
    steps = [
        (before, sequences[span.first], sequences[span.end - 1]) for span in found.spans
        if (before := _before(names, sequences, stretches, span.first, own)) is not None
    ]
    group = Group(line.identity, found, table(Numbered, steps, Texts()), own, len(line.rows))
    return group, len(rows)


def _numbers(keys: Iterable[object]) -> list[int]:
    """A number for each key; equal keys have equal numbers."""
    known: dict[object, int] = {}
    return [known.setdefault(key, len(known)) for key in keys]


def _before(
    names: Sequence[str], sequences: Sequence[int], stretches: Sequence[int], first: int,
    own: Container[str],
) -> int | None:
    """Sequence number of the last call of the step's functions before the step; a checkpoint
    between two steps belongs to the second. 0: the step begins with the run. None: samples before
    the step are missing."""
    for place in range(first - 1, -1, -1):
        if stretches[place] != stretches[first]:
            return None
        if names[place] in own:
            return sequences[place]
    return 0 if stretches[first] == FROM_THE_START else None

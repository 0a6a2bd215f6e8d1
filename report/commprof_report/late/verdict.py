"""The verdict on a run's waiting: who causes it, judged against chance.

The arrivals at which a rank could have been late are divided, in order of time, into up to 32
blocks of equal number, or into up to 64 where what delays an arrival hardly delays the next one; a
block has a cost for each rank: how much waiting it causes (root_causes.py). Waiting whose cause is
not known counts for nobody, but is part of the whole. If no rank were different from the others,
ranks that could have been late at the same arrivals could change places within each block. A rank
is named only if the probability that it then costs as much as it does, or more, times the number of
ranks (Bonferroni), is below 0.4 %, and if the named ranks cause at least half of the waiting. If
nobody is named so, few ranks that are beyond chance and cause a notable part of it are named as the
ones that the waiting is mostly for. The same test is made for hosts, and for each call on each
communicator. One extreme block cannot name a rank, not even together with others in which it costs
next to nothing: the probability is that of the cost without these.

Ranks cannot change places where only some of them can be waited for, such as the root of a Bcast or
the sender of an eager message. There, and in all messages, a rank's cost is replaced in the test,
but not in the half of the waiting, by how late it is, waited for or not (own_time.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, islice
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

from ..base.arrays import np
from ..base.columns import (
    NONE, Columns, Flags, Floats, Groups, Ints, TextInts, Texts, found_in, grouped, table,
)
from ..base.thresholds import threshold, whole

LEVEL = threshold("late.level")
MOST_BLOCKS = whole("late.most-blocks")
LONG_BLOCK = whole("late.long-block")
BRIEF = threshold("late.brief")
FEWEST_BLOCKS = whole("late.blocks")
RANKS_PER_NAMED = whole("late.ranks-per-named")
NOTABLY_MORE = threshold("late.notably-more")
MAJORITY = threshold("late.majority")
MOSTLY, MOSTLY_LEVEL = threshold("late.mostly"), threshold("late.mostly-level")
PARTS = 1000  # of what a unit costs, to which costs are rounded
NOTABLE = threshold("late.notable")
COVERED = threshold("late.covered")
NEGOTIATED = threshold("late.negotiated")
FEWEST_TRANSFERS = whole("late.transfers")
SHORTEST_NS = whole("late.shortest")
SLIGHT = threshold("late.slight")
NEARLY_ALL = threshold("late.nearly-all")
CONCENTRATED = threshold("late.concentrated")


Unit = TypeVar("Unit", int, str)  # a rank, or a host


@dataclass(frozen=True)
class LateUnits(Generic[Unit]):
    """p: the largest one of theirs, that chance alone would show this or more, corrected."""

    units: list[Unit]
    p: float


class Cause(NamedTuple):
    """A rank's part in the waiting that one late arrival cost; late_causes.sql."""

    call: str
    identity: str
    cause_rank: int | None  # None: not known
    cost_ns: float
    compared_ns: float  # in place of the cost when ranks are compared with each other
    arrival_ns: int
    arrival: int
    sampled_ns: float  # the cost before it is scaled to all calls
    awaited_rank: int | None = None  # the only one that may have been late; None: any
    is_message: int = 0


@dataclass(frozen=True)
class Costs(Columns):
    """The causes, as the verdict adds them up."""

    identity: TextInts
    cause_rank: Ints
    cost_ns: Floats
    compared_ns: Floats
    arrival: Ints
    awaited_rank: Ints


class Causes(NamedTuple):
    """Causes in order of time, and the same as columns."""

    rows: Sequence[Cause]
    costs: Costs
    texts: Texts

    @classmethod
    def of(cls, rows: Sequence[Cause]) -> Causes:
        texts, fields = Texts(), map(Cause._fields.index, Costs.__dataclass_fields__)
        return cls(rows, table(Costs, map(itemgetter(*fields), rows), texts), texts)

    def take(self, rows: Sequence[int]) -> Causes:
        own = self.costs.take(np.array(rows, np.int64))
        return Causes([self.rows[row] for row in rows], own, self.texts)


class Participants(NamedTuple):
    """Who may be late."""

    ranks: Sequence[int]  # all that take part in the analysed calls
    hosts: dict[int, str]
    members: dict[str, Sequence[int]]  # of each communicator


class Named(NamedTuple):
    """The ranks that cause the waiting. p: probability that chance alone would show this or more,
    corrected."""

    ranks: tuple[int, ...]
    share: float  # of the waiting
    others_share: float  # what all others cause; the cause of the rest is not known
    p: float
    # what a rank that waits for them waits at each of their late arrivals, on average
    lateness_ns: float

    @property
    def is_measurable(self) -> bool:
        return self.lateness_ns >= SHORTEST_NS

    @property
    def is_mostly(self) -> bool:
        """They cause less than half of the waiting."""
        return self.share < MAJORITY


class CallCause(NamedTuple):
    call: str
    identity: str
    named: Named
    cost_ns: float


class Blame(NamedTuple):
    """Result of the test: the named ranks of the run, or else of single calls."""

    named: Named | None
    calls: list[CallCause]


NOBODY = Blame(None, [])
Gains = Callable[[tuple[int, ...]], bool]


def blame(
    causes: Sequence[Cause], participants: Participants, gains: Gains = lambda ranks: True,
    is_part: bool = False,
) -> Blame:
    """`causes`: in order of time. is_part: of a run that was judged as a whole; a second test would
    err as often again, so ranks that cause less than half of the waiting are not named then.
    Different late ranks in different calls take precedence over ranks of the run that are as sure,
    if they explain notably more of the waiting. `gains`: whether the run could gain notably if
    these ranks were not late."""
    ranks = participants.ranks
    if len(ranks) < 2:
        return NOBODY
    columns = Causes.of(causes)
    suspected, by_call = _suspected(columns, participants, ranks), _by_call(columns, participants)

    def certain(each: Suspected) -> Named | None:
        return next(_candidates(each, LEVEL / len(by_call)), None)

    def mostly(each: Suspected) -> Named | None:
        return certain(each) or _below_half(each, MOSTLY_LEVEL / len(by_call))

    candidates = _candidates(suspected, LEVEL)
    first = next(candidates, None)
    tried = chain([first] if first else [], candidates)
    named = next((each for each in tried if each.is_measurable and gains(each.ranks)), first)
    calls = _late_in_calls(by_call, certain)
    if _explain_more(calls, named, suspected.ranks.whole_ns):
        return Blame(None, calls)
    if named or is_part:
        return Blame(named, [])
    named, calls = _below_half(suspected, MOSTLY_LEVEL), _late_in_calls(by_call, mostly)
    if _explain_more(calls, named, suspected.ranks.whole_ns):
        return Blame(None, calls)
    return Blame(named, [])


class Suspected(NamedTuple):
    """hosts: None if they say no more than the ranks."""

    ranks: Suspects[int]
    hosts: Suspects[str] | None
    participants: Participants


def _suspected(causes: Causes, participants: Participants, ranks: Sequence[int]) -> Suspected:
    host_of, members = participants.hosts.__getitem__, participants.members
    hosts = sorted({host_of(rank) for rank in ranks})
    return Suspected(
        Suspects(causes, lambda rank: rank, ranks, members),
        Suspects(causes, host_of, hosts, members) if 1 < len(hosts) < len(ranks) else None,
        participants,
    )


def _below_half(suspected: Suspected, level: float) -> Named | None:
    """The few ranks, or those of a few hosts if these cause notably more, that are beyond chance
    though they cause less than half of the waiting. None: there are none, or the cause of half of
    it is not known."""
    ranks, hosts, participants = suspected
    if ranks.whole_ns - sum(ranks.costs.values()) >= COVERED * ranks.whole_ns:
        return None
    found = []
    if of_ranks := ranks.below_half(level):
        found.append(_name(ranks.causes.rows, participants, of_ranks.units, of_ranks.p))
    if hosts and (of_hosts := hosts.below_half(level)):
        found.append(_name_hosts(ranks.causes.rows, participants, of_hosts))
    if len(found) > 1 and found[1].share > found[0].share + NOTABLY_MORE:
        return found[1]
    return found[0] if found else None


def _candidates(suspected: Suspected, level: float) -> Iterator[Named]:
    """A few of these ranks, and the ranks of a few hosts; the hosts first if they cause notably
    more than the few ranks do. Then more ranks: of equally late ones one may cause most by chance,
    but the run gains only if all of them are on time."""
    ranks, hosts, participants = suspected
    of_ranks = (
        _name(ranks.causes.rows, participants, found.units, found.p)
        for found in ranks.beyond_chance(level)
    )
    candidates = list(islice(of_ranks, 1))
    if hosts and (found := next(hosts.beyond_chance(level), None)):
        of_hosts = _name_hosts(ranks.causes.rows, participants, found)
        candidates.append(of_hosts)
        if of_hosts.share > candidates[0].share + NOTABLY_MORE:
            candidates.reverse()
    yield from candidates
    yield from of_ranks


class When(NamedTuple):
    """Ranks cause nearly all of what they cause in so few late arrivals of collectives, out of
    late_arrivals; few is 0: not in few."""

    few: int
    late_arrivals: int


def when(own: Sequence[Cause], among: Sequence[Cause]) -> When:
    """own: of the causes `among`. A message has only one rank that may be late."""
    arrived = len(late_arrivals([cause for cause in among if not cause.is_message]))
    needed = costliest_arrivals(own)
    is_known = not any(cause.is_message and cause.cost_ns for cause in own)
    return When(needed if is_known and is_concentrated(needed, arrived) else 0, arrived)


def is_later(causes: Sequence[Cause], rank: int) -> bool:
    """Than all others together, whether or not anyone waits for them."""
    known = [cause for cause in causes if cause.cause_rank is not None]
    own_ns = sum(cause.compared_ns for cause in known if cause.cause_rank == rank)
    return own_ns >= MAJORITY * sum(cause.compared_ns for cause in known)


def costliest_arrivals(causes: Sequence[Cause]) -> int:
    """The number of the costliest arrivals that together have nearly all of what these cost."""
    by_arrival = sorted(
        (sum(cause.cost_ns for cause in group) for group in arrivals(causes)), reverse=True
    )
    nearly_all = NEARLY_ALL * sum(by_arrival)
    return sum(upto < nearly_all for upto in accumulate(by_arrival, initial=0.0))


def late_arrivals(causes: Sequence[Cause]) -> list[int]:
    """In order of time."""
    return list(dict.fromkeys(cause.arrival for cause in causes if cause.cost_ns > 0))


def is_concentrated(needed: int, arrived: int) -> bool:
    """Whether so many are few of the late arrivals."""
    return needed <= max(1, CONCENTRATED * arrived)


def late_among(causes: Sequence[Cause], ranks: Sequence[int]) -> Sequence[int]:
    """The few of these ranks that cause half of the waiting that they all cause, or a notable part
    of it, beyond chance; empty: none do."""
    own = [cause for cause in causes if cause.cause_rank in ranks]
    found = few_beyond_chance(own, ranks)
    return found.units if found else []


def few_beyond_chance(causes: Sequence[Cause], ranks: Sequence[int]) -> LateUnits[int] | None:
    """Likewise, for ranks that may all be late at the same arrivals."""
    suspects = suspected(causes, ranks)
    return next(suspects.beyond_chance(LEVEL), None) or suspects.below_half(MOSTLY_LEVEL)


def suspected(causes: Sequence[Cause], ranks: Sequence[int]) -> Suspects[int]:
    return Suspects(Causes.of(causes), lambda rank: rank, ranks)


def _name(
    causes: Sequence[Cause], participants: Participants, ranks: Iterable[int], p: float
) -> Named:
    ranks = frozenset(ranks)
    own = [cause for cause in causes if cause.cause_rank in ranks]
    others = [
        cause for cause in causes if cause.cause_rank is not None and cause.cause_rank not in ranks
    ]
    share, others_share = (
        sum(cause.cost_ns for cause in part) / sum(cause.cost_ns for cause in causes)
        for part in (own, others)
    )
    return Named(
        tuple(sorted(ranks)), share, others_share, p, _lateness_ns(own, participants.members)
    )


def _name_hosts(
    causes: Sequence[Cause], participants: Participants, found: LateUnits[str]
) -> Named:
    """The ranks of these hosts, those included that cause waiting by making another rank late."""
    causing = {cause.cause_rank for cause in causes if cause.cause_rank is not None}
    ranks = [
        rank for rank in {*participants.ranks, *causing} if participants.hosts[rank] in found.units
    ]
    return _name(causes, participants, ranks, found.p)


def _lateness_ns(own: Sequence[Cause], members: Mapping[str, Sequence[int]]) -> float:
    """One rank waits for a message, all members but one for a collective."""
    late = [cause for cause in own if cause.sampled_ns > 0]
    each_ns = sum(
        cause.sampled_ns
        / (1 if cause.is_message else max(1, len(members.get(cause.identity, ())) - 1))
        for cause in late
    )
    return each_ns / max(1, len({cause.arrival for cause in late}))


def arrivals(causes: Iterable[Cause]) -> list[list[Cause]]:
    """The causes of each late arrival, in order of time."""
    by_arrival: dict[int, list[Cause]] = {}
    for cause in causes:
        by_arrival.setdefault(cause.arrival, []).append(cause)
    return list(by_arrival.values())


def block_count(causes: Sequence[Cause]) -> int:
    """The number of blocks into which the causes are divided, no more than late arrivals."""
    return _number_of_blocks(
        len(late_arrivals(causes)), persistence(Causes.of(causes).costs) < BRIEF
    )


def persistence(costs: Costs) -> float:
    """The correlation of what a rank costs at an arrival and at the next one, and two of its
    errors."""
    at, first = _by_first(costs.arrival)
    is_known = costs.cause_rank != NONE
    order, groups = grouped(costs.cause_rank[is_known], at[is_known])
    row = np.flatnonzero(is_known)[order]
    cost_ns, row = groups.sum(costs.compared_ns[row]), row[groups.first]
    rank, at = costs.cause_rank[row], at[row]
    _, of_rank = np.unique(rank, return_inverse=True)
    mean = (np.bincount(of_rank, cost_ns) ** 2).sum() / max(1, len(first))
    is_next = (np.diff(rank) == 0) & (np.diff(at) == 1)
    together = (cost_ns[1:] * cost_ns[:-1])[is_next].sum() - mean
    spread = (cost_ns**2).sum() - mean
    return float(together / spread if spread > 0 else 1) + 2 / max(1, len(first)) ** 0.5


def _number_of_blocks(arrivals: int, is_brief: bool) -> int:
    """As many, or half as many where they would be short; twice as many, and a quarter as long,
    where disturbances are brief."""
    most, long = (2 * MOST_BLOCKS, LONG_BLOCK // 4) if is_brief else (MOST_BLOCKS, LONG_BLOCK)
    return min(arrivals, max(MOST_BLOCKS // 2, min(most, arrivals // long)))


def spans(length: int, number: int) -> list[tuple[int, int]]:
    """Bounds of so many parts of equal length."""
    edges = [length * at // number for at in range(number + 1)] if number else []
    return list(zip(edges, edges[1:]))


def nameable(units: Sequence[Unit]) -> int:
    """How many of them may be named."""
    return max(1, len(units) // RANKS_PER_NAMED)


class Compared(NamedTuple):
    """The arrivals, in order of time, at which units are compared. Units and sets of them have
    numbers."""

    # of a unit that was late at an arrival: by both
    arrival: Ints
    unit: Ints
    cost_ns: Floats
    # by arrival
    compared: Ints  # the set of units; -1: nobody was late
    awaited: Ints  # the unit that could have been late; -1: any
    # members of sets
    sizes: Ints  # by set
    set_of_member: Ints
    member: Ints


class Suspects(Generic[Unit]):
    """Units (ranks, hosts) that may be late, and what they cost. members: the ranks of each
    communicator; of one that is missing here, all units call on it."""

    def __init__(
        self, causes: Causes, unit_of: Callable[[int], Unit], units: Sequence[Unit],
        members: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self.causes, self.members = causes, members or {}
        self.unit_of: Callable[[int], Unit] = unit_of
        self.units: Sequence[Unit] = units
        self.numbers: dict[Unit, int] = {unit: number for number, unit in enumerate(units)}
        costs = causes.costs
        self.unit = self._numbers(costs.cause_rank)  # of each cause
        own = self.unit >= 0
        sums_ns = np.bincount(self.unit[own], costs.cost_ns[own], len(self.numbers)).tolist()
        named = list(self.numbers)
        self.whole_ns = float(costs.cost_ns.sum())
        self.costs: dict[Unit, float] = {
            named[number]: sums_ns[number] for number in np.unique(self.unit[own]).tolist()
        }
        self.order: list[Unit] = sorted(self.costs, key=lambda unit: (-self.costs[unit], unit))
        self.is_brief = persistence(costs) < BRIEF
        self.is_enough = len(np.unique(costs.arrival[costs.cost_ns > 0])) >= FEWEST_BLOCKS

    def _numbers(self, ranks: Ints) -> Ints:
        """The units of these ranks; -1: not known."""
        known, place = np.unique(ranks, return_inverse=True)
        numbers = [
            -1 if rank == NONE
            else self.numbers.setdefault(self.unit_of(rank), len(self.numbers))
            for rank in known.tolist()
        ]
        return np.array(numbers, np.int64)[place]

    def beyond_chance(self, level: float) -> Iterator[LateUnits[Unit]]:
        """The fewest units that cause most of the whole cost, each beyond chance; then with 1, 2, 4
        ... of those that cause most of the rest, and with all of them, as long as each is beyond
        chance."""
        order = self.order[: nameable(self.units)] if self.is_enough else []
        caused_ns = accumulate(self.costs[unit] for unit in order)
        number = next(
            (
                place for place, upto_ns in enumerate(caused_ns, 1)
                if upto_ns >= MAJORITY * self.whole_ns
            ),
            None,
        )
        if number is None:
            return
        worst = 0.0
        for unit in reversed(order[:number]):  # the least cost is the most probable
            worst = max(worst, self._chance(unit))
            if worst >= level:
                return
        yield LateUnits(order[:number], worst)
        more = 0
        for more, unit in enumerate(order[number:], 1):
            if (p := self._chance(unit)) >= level:
                more -= 1
                break
            worst = max(worst, p)
            if more & (more - 1) == 0:
                yield LateUnits(order[: number + more], worst)
        if more & (more - 1):
            yield LateUnits(order[: number + more], worst)

    def below_half(self, level: float) -> LateUnits[Unit] | None:
        """The units with the largest costs that are far beyond chance, if these are few and cause a
        notable part of the whole cost. Where beyond_chance finds none, it is less than half."""
        most, notable_ns = nameable(self.units), MOSTLY * self.whole_ns
        order = self.order[: most + 1]
        if not self.is_enough or sum(self.costs[unit] for unit in order[:most]) < notable_ns:
            return None
        found: dict[Unit, float] = {}
        for unit in order:
            if (p := self._chance(unit)) >= level:
                break
            found[unit] = p
        is_notable = sum(self.costs[unit] for unit in found) >= notable_ns > 0
        is_few = len(found) <= most
        return LateUnits(list(found), max(found.values())) if is_notable and is_few else None

    def _chance(self, unit: Unit) -> float:
        """The bound of the probability that chance alone shows what a unit costs, corrected; at all
        arrivals, or at the costliest ones, which are the same whichever unit was late at them."""
        compared, number = self._compared, self.numbers[unit]
        p = _chance(compared, number, self.is_brief)
        if p * len(self.units) >= MOSTLY_LEVEL / 2:
            p = min(p, 2 * _chance(compared, number, self.is_brief, costliest(compared)))
        return min(1.0, len(self.units) * p)

    @cached_property
    def _compared(self) -> Compared:
        costs = self.causes.costs
        at, first = _by_first(costs.arrival)
        awaited = self._numbers(costs.awaited_rank[first])
        is_late = self.unit >= 0
        compared_ns = np.bincount(at[is_late], costs.compared_ns[is_late], len(first))
        late = np.flatnonzero(is_late & (compared_ns > 0)[at])
        order, groups = grouped(at[late], self.unit[late])
        late = late[order]
        arrival, unit = at[late[groups.first]], self.unit[late[groups.first]]
        is_costly = np.bincount(at, costs.cost_ns, len(first)) > 0
        identity = np.where(is_costly & (compared_ns > 0), costs.identity[first], NONE)
        compared, sets = self._sets(arrival, unit, identity)
        sizes = np.array([len(each) for each in sets], np.int64)
        return Compared(
            arrival, unit, groups.sum(costs.compared_ns[late]), compared, awaited, sizes,
            np.repeat(np.arange(len(sizes)), sizes),
            np.array([unit for own in sets for unit in own], np.int64),
        )

    def _sets(
        self, arrival: Ints, unit: Ints, identity: TextInts
    ) -> tuple[Ints, list[tuple[int, ...]]]:
        """By arrival the number of the units that are compared, and these. Without a cost
        (identity: NONE) there is a row for each rank that could have been late."""
        sets: dict[tuple[int, ...], int] = {}
        compared = np.full(len(identity), -1)
        callers: dict[int, tuple[int, ...]] = {
            number: self._callers(self.causes.texts.texts[number])
            for number in np.unique(identity[identity != NONE]).tolist()
        }
        for number, called in callers.items():
            compared[identity == number] = sets.setdefault(called, len(sets))
        known = [(number, each) for number, called in callers.items() for each in called]
        keys = list(np.array(known, np.int64).reshape(-1, 2).T)
        units, groups = unit.tolist(), Groups(arrival)
        is_apart = groups.max(found_in((identity[arrival], unit), keys) < 0)
        ends = groups.first + groups.counts
        for begin, end in zip(groups.first[is_apart].tolist(), ends[is_apart].tolist()):
            at = int(arrival[begin])
            own = sorted(set(units[begin:end]).union(callers.get(int(identity[at]), ())))
            compared[at] = sets.setdefault(tuple(own), len(sets))
        return compared, list(sets)

    def _callers(self, identity: str) -> tuple[int, ...]:
        """The units that call on a communicator."""
        if identity not in self.members:
            return tuple(range(len(self.units)))
        numbers = self._numbers(np.array(self.members[identity], np.int64))
        return tuple(np.unique(numbers).tolist())


def _by_first(values: Ints) -> tuple[Ints, Ints]:
    """For each row the number of its value, in the order in which they first occur, and the first
    row of each."""
    _, first, place = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order))
    return numbers[place], first[order]


def costliest(compared: Compared) -> Flags:
    """The fewest arrivals that have most of the cost, and those that cost as much as one of them: a
    unit that is late once a step is late at few of many."""
    costs = np.bincount(compared.arrival, compared.cost_ns, len(compared.compared))
    ordered = np.sort(costs)[::-1]
    least = ordered[np.searchsorted(np.cumsum(ordered), MAJORITY * ordered.sum())]
    return (costs >= least) & (costs > 0)


def _chance(
    compared: Compared, unit: int, is_brief: bool, is_counted: Flags | None = None
) -> float:
    """The probability that a unit costs as much as this one or more, if units change places in each
    block of the arrivals at which it could have been late: those that could have been late at the
    same ones. is_counted: whether what an arrival costs counts."""
    is_own = np.zeros(len(compared.sizes) + 1, bool)  # by set
    is_own[compared.set_of_member[compared.member == unit]] = True
    own = np.flatnonzero(is_own[compared.compared] & np.isin(compared.awaited, (-1, unit)))
    number = _number_of_blocks(len(own), is_brief)
    if number < FEWEST_BLOCKS:
        return 1.0
    block = np.repeat(np.arange(number), [end - begin for begin, end in spans(len(own), number)])
    # arrivals of a block are added up at which the same units could have been late
    order, groups = grouped(block, compared.compared[own])
    sizes = compared.sizes[compared.compared[own[order[groups.first]]]]
    group_of = np.full(len(compared.compared), -1)
    group_of[own[order]] = groups.of_row
    is_late = group_of[compared.arrival] >= 0
    late = np.flatnonzero(is_late if is_counted is None else is_late & is_counted[compared.arrival])
    if not len(late):
        return 1.0
    group, late_unit = group_of[compared.arrival[late]], compared.unit[late]
    order, sums = grouped(group, late_unit)
    cost_ns, one = sums.sum(compared.cost_ns[late[order]]), order[sums.first]
    own_ns = np.zeros(len(groups))
    own_ns[group[one][late_unit[one] == unit]] = cost_ns[late_unit[one] == unit]
    own_ns[own_ns < SLIGHT * own_ns.mean()] = 0
    if not own_ns.any():
        return 1.0
    # costs are rounded, whoever has them: to parts of what the unit costs
    part_ns = own_ns.sum() / PARTS
    needed = int(np.rint(own_ns / part_ns).sum())
    parts = np.minimum(np.rint(cost_ns / part_ns), needed).astype(np.int64)
    of_group = Groups(group[one])
    sizes = sizes[group[one][of_group.first]]
    below, beyond = np.ones(1), 0.0
    for begin, number, size in zip(of_group.first, of_group.counts, sizes):
        chances = np.bincount(parts[begin : begin + number]) / size
        chances[0] += 1 - number / size
        upto = np.convolve(below, chances)
        below, beyond = upto[:needed], beyond + upto[needed:].sum()
    return min(1.0, float(beyond))


def _by_call(
    causes: Causes, participants: Participants
) -> dict[tuple[str, str], Suspected]:
    """By call and communicator, if there are several."""
    by_call: dict[tuple[str, str], list[int]] = {}
    for row, cause in enumerate(causes.rows):
        by_call.setdefault((cause.call, cause.identity), []).append(row)
    if len(by_call) < 2:
        return {}
    return {
        key: _suspected(causes.take(own), participants, participants.members[key[1]])
        for key, own in by_call.items()
    }


def _late_in_calls(
    by_call: Mapping[tuple[str, str], Suspected], find: Callable[[Suspected], Named | None]
) -> list[CallCause]:
    """Calls with late ranks; those with most waiting first."""
    found = [
        CallCause(*key, named, suspected.ranks.whole_ns) for key, suspected in by_call.items()
        if (named := find(suspected)) and named.is_measurable
    ]
    return sorted(found, key=lambda each: -each.cost_ns)


def _explain_more(calls: Sequence[CallCause], named: Named | None, whole_ns: float) -> bool:
    """Whether different ranks are late in these calls, which have most of the waiting, and explain
    notably more of it than the named ranks do."""
    explained_ns = sum(each.named.share * each.cost_ns for each in calls)
    return (
        len({each.named.ranks for each in calls}) > 1
        and sum(each.cost_ns for each in calls) >= MAJORITY * whole_ns
        and explained_ns > ((named.share if named else 0) + NOTABLY_MORE) * whole_ns
    )

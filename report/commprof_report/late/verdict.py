"""The verdict on a run's waiting: who causes it, judged against chance.

The arrivals at which a rank could have been late are divided, in order of time, into up to 32
blocks of equal number, or into up to 64 where what delays an arrival hardly delays the next one; a
block has a cost for each rank: how much waiting it causes (causes.py). Waiting whose cause is
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
but not in the half of the waiting, by how late it is, waited for or not (causes.py).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import takewhile
from math import ceil, comb, log
from typing import Any, Optional

from ..base import (
    NONE,
    Columns,
    Flags,
    Floats,
    Groups,
    Ints,
    TextInts,
    Texts,
    found_in,
    gathered,
    grouped,
    np,
    pairs,
    side_by_side,
    threshold,
    whole,
)

LEVEL = threshold("late.level")
MOST_BLOCKS, LONG_BLOCK = whole("late.most-blocks"), whole("late.long-block")
BRIEF = threshold("late.brief")
FEWEST_BLOCKS = whole("late.blocks")
NOTABLY_MORE = threshold("late.notably-more")
MAJORITY, NEARLY_ALL = threshold("late.majority"), threshold("late.nearly-all")
MOSTLY, MOSTLY_LEVEL = threshold("late.mostly"), threshold("late.mostly-level")
NOTABLE, COVERED = threshold("late.notable"), threshold("late.covered")
NEGOTIATED = threshold("late.negotiated")
FEWEST_TRANSFERS = whole("late.transfers")
SHORTEST_NS = whole("late.shortest")
MANY_ROWS, MANY_RANKS = 50_000, 256  # both are worth a copy of this process

Caused = dict[Optional[int], float]  # by rank; None: not known who


class Costs(Columns):
    """The cost of late arrivals: a rank's part in the waiting for each, in order of time.

    call, identity
    cause_rank    NONE: not known
    cost_ns       and sampled_ns: before it is scaled to all calls
    compared_ns   in place of the cost when ranks are compared with each other
    arrival       its number; those of later ones are greater
    arrival_ns
    awaited_rank  the only one that may have been late; NONE: any
    is_message
    """

    def of(self, ranks: Collection[int]) -> Costs:
        return self.take(np.isin(self.cause_rank, list(ranks)))

    @property
    def compared(self) -> Costs:
        """With how late ranks are in place of what that costs."""
        return self.changed(cost_ns=self.compared_ns)

    @property
    def whole_ns(self) -> float:
        return float(self.cost_ns.sum())

    @property
    def caused_ns(self) -> Caused:
        return sums_of(self.cause_rank, self.cost_ns)


def sums_of(ranks: Ints, ns: Floats) -> Caused:
    known, place = np.unique(ranks, return_inverse=True)
    sums_ns = np.bincount(place, ns).tolist()
    return {None if rank == NONE else rank: each for rank, each in zip(known.tolist(), sums_ns)}


def costs_of(
    arrival: Sequence[int], ranks: Sequence[int | None], cost_ns: Sequence[float]
) -> Costs:
    """Costs of one call in which all wait for all, on one communicator."""
    at, ns = np.array(arrival, np.int64), np.array(cost_ns, np.float64)
    cause = np.array([NONE if rank is None else rank for rank in ranks], np.int64)
    none = np.zeros(len(at), np.int64)
    return Costs(
        call=none,
        identity=none,
        cause_rank=cause,
        cost_ns=ns,
        compared_ns=ns,
        sampled_ns=ns,
        arrival=at,
        arrival_ns=at,
        awaited_rank=none + NONE,
        is_message=none > 0,
    )


# Who may be late: all ranks that take part in the analysed calls. By rank: hosts, waited_ns.
# members: of each communicator, by its number. texts: of these numbers.
Participants = namedtuple(
    "Participants", "ranks hosts members texts waited_ns", defaults=[{}, {}, Texts(), {}]
)


class Named(namedtuple("Named", "ranks share p lateness_ns gain_ns", defaults=[0])):
    """The ranks that cause the waiting, and their share of it. p: probability that chance alone
    would show this or more, corrected. lateness_ns: what a rank that waits for them waits at each
    of their late arrivals, on average. gain_ns: by how much the run, or other ranks, would be done
    sooner without that."""

    @property
    def is_measurable(self) -> bool:
        return self.lateness_ns >= SHORTEST_NS

    @property
    def is_mostly(self) -> bool:
        """They cause less than half of the waiting."""
        return self.share < MAJORITY


# Result of the test: the named ranks of the run (None: nobody), or else of single calls.
Blame = namedtuple("Blame", "named calls")
CallCause = namedtuple("CallCause", "call identity named cost_ns")
NOBODY = Blame(None, [])
# The arrivals, in order of time, at which units are compared; units and sets of them have numbers.
# By a unit that was late at an arrival: arrival, unit, cost_ns. By arrival: compared, the number of
# the set (-1: nobody was late); awaited, the unit that could have been late (-1: any).
Compared = namedtuple("Compared", "arrival unit cost_ns compared awaited sets")
# Arrivals of a block at which the same units could have been late, added up: by group of these, how
# many units they are; by unit that was late in one: group, unit, cost_ns, in order of the groups.
Blocks = namedtuple("Blocks", "sizes group unit cost_ns")


def blame(
    costs: Costs,
    participants: Participants,
    gains_ns: Callable[[tuple[int, ...]], int] = lambda ranks: 1,
    least_ns: float = 1,
) -> Blame:
    """Different late ranks in different calls take precedence over ranks of the run that are as
    sure, if they explain notably more of the waiting. gains_ns: what the run would gain if these
    ranks were not late; more ranks are named if that is twice as much, and least_ns is notable."""
    if len(participants.ranks) < 2:
        return NOBODY
    by_call = _by_call(costs)

    def weighed(each: Named) -> Named:
        return each._replace(gain_ns=gains_ns(each.ranks) if each.is_measurable else 0)

    def late_in_run() -> tuple[Case, Named | None]:
        of_run = Case(costs, participants)
        candidates = of_run.candidates(LEVEL)
        candidates += of_run.wider(candidates[0]) if candidates else []
        named = weighed(candidates[0]) if candidates else None
        for each in map(weighed, candidates[1:]):
            if named and each.gain_ns >= max(least_ns, 2 * named.gain_ns):
                named = each
        return of_run, named

    (of_run, named), *found = together(
        len(costs),
        len(participants.ranks),
        late_in_run,
        *(partial(_late_in_call, costs, participants, rows, len(by_call)) for rows in by_call),
    )
    calls, likely = (
        sorted(filter(None, causes), key=lambda each: -each.cost_ns)
        for causes in list(zip(*found)) or [(), ()]
    )
    if not (named or _explain_more(calls, named, costs)):
        few, calls = of_run.below_half(MOSTLY_LEVEL), likely
        named = few and weighed(few)
    return Blame(None, calls) if _explain_more(calls, named, costs) else Blame(named, [])


def together(rows: int, ranks: int, *parts: Callable[[], Any]) -> list[Any]:
    """The results of parts that do not depend on each other. Those of many rows and ranks are
    called side by side: the first one, and every n-th, in this process, the others in copies of it.
    A large run of few ranks has simple causes: a copy of its memory takes as long."""
    is_large = rows >= MANY_ROWS and ranks >= MANY_RANKS
    each = partial(side_by_side, is_here=True) if is_large else map
    return [*each(lambda part: part(), parts)]


class Case:
    """Some of a run's costs, judged by ranks and, if these say more, by hosts."""

    def __init__(self, costs: Costs, participants: Participants) -> None:
        self.costs, self.participants = costs, participants
        self.ranks = Suspects(costs, participants.ranks, participants.members)
        numbers = {
            name: place for place, name in enumerate(sorted(set(participants.hosts.values())))
        }
        self.host_of = {rank: numbers[name] for rank, name in participants.hosts.items()}
        hosts = sorted({self.host_of.get(rank, 0) for rank in participants.ranks})
        self.hosts = None
        if 1 < len(hosts) < len(participants.ranks):
            members = {
                identity: {self.host_of[rank] for rank in ranks}
                for identity, ranks in participants.members.items()
            }
            host_of, known = np.array([*self.host_of.values(), NONE]), np.array([*self.host_of])
            of_hosts = {
                name: host_of[found_in((getattr(costs, name),), (known,))]
                for name in ("cause_rank", "awaited_rank")
            }
            # disturbances are those of ranks
            self.hosts = Suspects(costs.changed(**of_hosts), hosts, members, self.ranks.is_brief)

    def candidates(self, level: float) -> list[Named]:
        """A few of these ranks, and the ranks of a few hosts, that cause most of the waiting."""
        return self._found(lambda suspects: suspects.beyond_chance(level))

    def wider(self, found: Named) -> list[Named]:
        """With these ranks, the others that hardly wait either: of ranks that are equally late, one
        is last, and has the waiting of all who are not."""
        waited_ns, members = self.participants.waited_ns, self.participants.members
        theirs = [job for job in jobs([*waited_ns], members) if not job.isdisjoint(found.ranks)]
        order = sorted(sorted(set[int]().union(*theirs)), key=waited_ns.__getitem__)
        most = nameable(order, members)
        ns = np.array([waited_ns[rank] for rank in order], float)
        rest_ns = (ns.sum() - np.cumsum(ns))[:most] / np.arange(len(ns) - 1, 0, -1)[:most]
        hardly = np.flatnonzero(ns[: len(rest_ns)] <= threshold("late.hardly") * rest_ns)
        ranks = order[: int(hardly.max(initial=-1)) + 1]
        return [self._name(ranks, found.p)] if set(found.ranks) < set(ranks) else []

    def below_half(self, level: float) -> Named | None:
        """The few ranks, or those of a few hosts if these cause notably more, that are beyond
        chance though they cause less than half of the waiting. None: there are none, or the cause
        of half of it is not known."""
        is_known = self.costs.caused_ns.get(None, 0.0) < COVERED * self.costs.whole_ns
        found = self._found(lambda suspects: suspects.below_half(level)) if is_known else []
        return next(iter(found), None)

    def _found(self, find: Callable[[Suspects], tuple[list[int], float] | None]) -> list[Named]:
        """Candidates of ranks, and of hosts; those first that explain notably more."""
        of_ranks, of_hosts = (find(each) if each else None for each in (self.ranks, self.hosts))
        found = [self._name(*of_ranks)] if of_ranks else []
        if of_hosts:
            ranks = [
                rank
                for rank, host in self.host_of.items()
                if host in of_hosts[0]
                and (rank in self.participants.ranks or rank in self.costs.cause_rank)
            ]
            found.append(self._name(ranks, of_hosts[1]))
        if len(found) > 1 and found[1].share > found[0].share + NOTABLY_MORE:
            found.reverse()
        return found

    def _name(self, ranks: Sequence[int], p: float) -> Named:
        """One rank waits for a message, all members but one for a collective."""
        own, members = self.costs.of(ranks), self.participants.members
        late = own.take(own.sampled_ns > 0)
        others = [len(members.get(identity, ())) - 1 for identity in late.identity.tolist()]
        waiting = np.where(late.is_message, 1, np.maximum(1, np.array(others, np.int64)))
        lateness_ns = float((late.sampled_ns / waiting).sum()) / max(1, late_arrivals(late))
        return Named(tuple(sorted(ranks)), own.whole_ns / self.costs.whole_ns, p, lateness_ns)


def when(own: Costs, among: Costs) -> tuple[int, int]:
    """In how few late arrivals of collectives ranks cause nearly all of what they cause (0: not in
    few), and of how many. own: of the costs `among`. A message has only one rank that may be
    late."""
    arrived, needed = (
        late_arrivals(among.take(~among.is_message)),
        costliest_arrivals(own, NEARLY_ALL),
    )
    is_known = not (own.is_message & (own.cost_ns > 0)).any()
    return needed if is_known and is_concentrated(needed, arrived) else 0, arrived


def main_cause(costs: Costs) -> tuple[int, float, float]:
    """The rank that causes most of the waiting, its share, and that of unknown cause."""
    whole_ns, caused_ns = costs.whole_ns or 1, costs.caused_ns
    unknown_ns = caused_ns.pop(None, 0.0)
    ranks = [rank for rank in caused_ns if rank is not None]
    rank = max(ranks, key=lambda rank: (caused_ns[rank], -rank), default=0)
    return rank, caused_ns.get(rank, 0.0) / whole_ns, unknown_ns / whole_ns


def is_too_few(costs: Costs, ranks: int) -> bool:
    """One of so many ranks causes most of the waiting, is by far the latest, and so in fewer late
    arrivals than tell a rank from chance; or it causes nearly all, so it is no less late than the
    others, though in blocks that are too few."""
    (rank, share, _), (_, late_share, _) = main_cause(costs), main_cause(costs.compared)
    is_few = main_arrivals(costs, rank) < enough_arrivals(ranks)
    return min(share, late_share) >= (MAJORITY if is_few else NEARLY_ALL)


def main_arrivals(costs: Costs, rank: int) -> int:
    """The fewest arrivals at which a rank is half as late as at all of them."""
    return costliest_arrivals(costs.compared.of([rank]), MAJORITY)


def enough_arrivals(ranks: int) -> int:
    """So many late arrivals of one of these ranks, and no others, are beyond chance."""
    return max(FEWEST_BLOCKS, ceil(1 - log(LEVEL) / log(max(2, ranks))))


def costliest_arrivals(costs: Costs, share: float) -> int:
    """The number of the costliest arrivals that together have this share of what these cost."""
    order, arrivals = grouped(costs.arrival)
    return fewest(arrivals.sum(costs.cost_ns[order]), share)


def fewest(values: Floats, share: float) -> int:
    """The number of the largest values that together have this share of all; 0: all are 0."""
    upto = np.cumsum(np.append(0.0, np.sort(values)[::-1]))
    return int(np.searchsorted(upto, share * upto[-1]))


def late_arrivals(costs: Costs) -> int:
    return len(np.unique(costs.arrival[costs.cost_ns > 0]))


def is_concentrated(needed: int, arrived: int) -> bool:
    """Whether so many are few of the late arrivals."""
    return needed <= max(1, threshold("late.concentrated") * arrived)


def block_count(costs: Costs) -> int:
    """The number of blocks into which the costs are divided, no more than late arrivals."""
    return _number_of_blocks(late_arrivals(costs), persistence(costs) < BRIEF)


def persistence(costs: Costs) -> float:
    """The correlation of what a rank costs at an arrival and at the next one, and two of its
    errors."""
    arrived, at = np.unique(costs.arrival, return_inverse=True)
    row = np.flatnonzero(costs.cause_rank != NONE)
    order, groups = grouped(costs.cause_rank[row], at[row])
    cost_ns, row = groups.sum(costs.compared_ns[row[order]]), row[order[groups.first]]
    rank, at = costs.cause_rank[row], at[row]
    _, of_rank = np.unique(rank, return_inverse=True)
    mean = (np.bincount(of_rank, cost_ns) ** 2).sum() / max(1, len(arrived))
    is_next = (np.diff(rank) == 0) & (np.diff(at) == 1)
    together = (cost_ns[1:] * cost_ns[:-1])[is_next].sum() - mean
    spread = (cost_ns**2).sum() - mean
    return float(together / spread if spread > 0 else 1) + 2 / max(1, len(arrived)) ** 0.5


def _number_of_blocks(arrivals: int, is_brief: bool) -> int:
    """As many, or half as many where they would be short; twice as many, and a quarter as long,
    where disturbances are brief."""
    most, long = (2 * MOST_BLOCKS, LONG_BLOCK // 4) if is_brief else (MOST_BLOCKS, LONG_BLOCK)
    return min(arrivals, max(MOST_BLOCKS // 2, min(most, arrivals // long)))


def spans(length: int, number: int) -> list[tuple[int, int]]:
    """Bounds of so many parts of equal length."""
    edges = [length * at // number for at in range(number + 1)] if number else []
    return list(zip(edges, edges[1:]))


def jobs(units: Sequence[int], members: Mapping[int, Collection[int]]) -> list[set[int]]:
    """The parts of a job that no communicator joins."""
    part_of = {unit: {unit} for unit in units} if members else {}
    for own in members.values():
        parts = {id(part_of[unit]): part_of[unit] for unit in own if unit in part_of}
        job, *others = sorted(parts.values(), key=len, reverse=True) or [set[int]()]
        for part in others:
            job |= part
            part_of.update(dict.fromkeys(part, job))
    return list({id(job): job for job in part_of.values()}.values()) or [{*units}]


def nameable(units: Sequence[int], members: Mapping[int, Collection[int]]) -> int:
    """How many of them may be named, of each job."""
    each = whole("late.ranks-per-named")
    return sum(max(1, len(job) // each) for job in jobs(units, members))


class Suspects:
    """Units (ranks, or numbers of hosts) that may be late, and what they cost. members: the units
    of each communicator; on one that is missing here, all call. is_brief: what delays an arrival
    hardly delays the next one; None: by these costs."""

    def __init__(
        self,
        costs: Costs,
        units: Sequence[int],
        members: Mapping[int, Collection[int]] | None = None,
        is_brief: bool | None = None,
    ) -> None:
        self.costs, self.units, self.members = costs, units, members or {}
        others = np.setdiff1d(np.unique([costs.cause_rank, costs.awaited_rank]), [NONE, *units])
        self.all = np.append(np.array(units, np.int64), others)  # a unit's number is its place
        self.unit = found_in((costs.cause_rank,), (self.all,))  # -1: not known
        self.caused_ns = {unit: ns for unit, ns in costs.caused_ns.items() if unit is not None}
        self.order = sorted(self.caused_ns, key=lambda unit: (-self.caused_ns[unit], unit))
        self.is_brief = persistence(costs) < BRIEF if is_brief is None else is_brief
        self.is_enough = late_arrivals(costs) >= FEWEST_BLOCKS
        self.chances: dict[int, float] = {}  # by unit, as soon as one was asked for
        self.blocks: dict[tuple[bytes, bool], Blocks | None] = {}  # by arrivals, likewise

    def beyond_chance(self, level: float) -> tuple[list[int], float] | None:
        """The fewest units that cause most of the whole cost, each beyond chance; and the largest
        probability of theirs that chance alone would show this or more, corrected."""
        order = self.order[: nameable(self.units, self.members)] if self.is_enough else []
        upto_ns = np.cumsum([self.caused_ns[unit] for unit in order])
        fewest = int((upto_ns < MAJORITY * self.costs.whole_ns).sum()) + 1
        found = dict(self._sure(order[:fewest], level))
        # the first units cost about the same, and far more than the next one
        ns = np.array([self.caused_ns[unit] for unit in self.order] + [0.0])
        are_apart = len(found) < fewest <= len(order) and (
            min(ns[fewest - 1] / ns[0], 1 - ns[fewest] / ns[fewest - 1]) >= MAJORITY
        )
        if are_apart:
            found = {unit: self._chance_beside(order[:fewest], unit) for unit in order[:fewest]}
            level *= MOSTLY_LEVEL / LEVEL
        is_sure = len(found) == fewest and max(found.values()) < level
        return (list(found), max(found.values())) if is_sure else None

    def _chance_beside(self, several: Sequence[int], unit: int) -> float:
        """The same as chance, of one of several units that are equally late: each takes the cost
        of some arrivals from the others, so it is compared without these."""
        others = {*several} - {unit}
        members = {identity: {*own} - others for identity, own in self.members.items()}
        rest = self.costs.take(~np.isin(self.costs.cause_rank, list(others)))
        units = [each for each in self.units if each not in others]
        p = Suspects(rest, units, members, self.is_brief).chance(unit)
        return p / len(units) * comb(len(self.units), len(several))

    def below_half(self, level: float) -> tuple[list[int], float] | None:
        """The units with the largest costs that are far beyond chance, if these are few and cause a
        notable part of the whole cost, or many times the mean of all where these are many. Where
        beyond_chance finds none, it is less than half."""
        most, whole_ns = nameable(self.units, self.members), self.costs.whole_ns
        notable_ns = whole_ns * min(MOSTLY, threshold("late.times-others") / len(self.units))
        order = self.order[: most + 1]
        if not self.is_enough or sum(self.caused_ns[unit] for unit in order[:most]) < notable_ns:
            return None
        found = dict(self._sure(order, level))
        is_notable = sum(self.caused_ns[unit] for unit in found) >= notable_ns > 0
        is_few = len(found) <= most
        return (list(found), max(found.values())) if is_notable and is_few else None

    def _sure(self, order: Sequence[int], level: float) -> Iterator[tuple[int, float]]:
        """The units, in this order, up to the first that is not beyond chance; with its
        probability."""
        chances = ((unit, self.chance(unit)) for unit in order)
        return takewhile(lambda each: each[1] < level, chances)

    def chance(self, unit: int) -> float:
        """The bound of the probability that chance alone shows what a unit costs, corrected; at all
        arrivals, or at the costliest ones, which are the same whichever unit was late at them."""
        if unit not in self.chances:
            tested, number = len(self.units), int(np.flatnonzero(self.all == unit)[0])
            p = self._chance(number, 1 / tested, is_counted=None)
            if p * tested >= MOSTLY_LEVEL / 2:
                p = min(p, 2 * self._chance(number, 1 / tested, self._is_costly))
            self.chances[unit] = min(1.0, tested * p)
        return self.chances[unit]

    def _chance(self, unit: int, most: float, is_counted: Flags | None) -> float:
        """The probability that a unit costs as much as this one or more, if units change places in
        each block of the arrivals at which it could have been late: those that could have been late
        at the same ones; 1 if it is at least `most`. is_counted: whether what an arrival costs
        counts."""
        compared = self._compared
        is_own = np.array([*(unit in each for each in compared.sets), False])  # by set
        own = np.flatnonzero(is_own[compared.compared] & np.isin(compared.awaited, (-1, unit)))
        key = own.tobytes(), is_counted is None
        if key not in self.blocks:
            self.blocks[key] = _blocks(compared, own, self.is_brief, is_counted)
        return _beyond(self.blocks[key], unit, most)

    @cached_property
    def _is_costly(self) -> Flags:
        """The fewest arrivals that have most of the cost, and those that cost as much as one of
        them: a unit that is late once a step is late at few of many."""
        compared = self._compared
        costs = np.bincount(compared.arrival, compared.cost_ns, len(compared.compared))
        return (costs >= np.sort(costs)[-fewest(costs, MAJORITY)]) & (costs > 0)

    @cached_property
    def _compared(self) -> Compared:
        costs = self.costs
        _, first, at = np.unique(costs.arrival, return_index=True, return_inverse=True)
        is_late = self.unit >= 0
        compared_ns = np.bincount(at[is_late], costs.compared_ns[is_late], len(first))
        late = np.flatnonzero(is_late & (compared_ns > 0)[at])
        order, groups = grouped(at[late], self.unit[late])
        late = late[order]
        arrival, unit = at[late[groups.first]], self.unit[late[groups.first]]
        is_costly = np.bincount(at, costs.cost_ns, len(first)) > 0
        identity = np.where(is_costly & (compared_ns > 0), costs.identity[first], NONE)
        compared, sets = self._sets(arrival, unit, identity)
        awaited = found_in((costs.awaited_rank[first],), (self.all,))
        return Compared(arrival, unit, groups.sum(costs.compared_ns[late]), compared, awaited, sets)

    def _sets(
        self, arrival: Ints, unit: Ints, identity: TextInts
    ) -> tuple[Ints, list[frozenset[int]]]:
        """By arrival the number of the units that are compared, and these: the callers, and units
        that were late though they did not call. Without a cost (identity: NONE) there is a row for
        each rank that could have been late."""
        callers = {  # by communicator
            number: frozenset(found_in((np.array([*own], np.int64),), (self.all,)).tolist())
            for number in np.unique(identity).tolist()
            for own in [() if number == NONE else self.members.get(number, self.units)]
        }
        late = gathered(zip(arrival.tolist(), unit.tolist()))
        keys = [
            (number, frozenset(late.get(at, ())) - callers[number])
            for at, number in enumerate(identity.tolist())
        ]
        sets = {(number, more): callers[number] | more for number, more in dict.fromkeys(keys)}
        known = dict.fromkeys(filter(None, sets.values()))
        numbers = {own: place for place, own in enumerate(known)}
        return np.array([numbers.get(sets[key], -1) for key in keys], np.int64), list(numbers)


def _blocks(
    compared: Compared, own: Ints, is_brief: bool, is_counted: Flags | None
) -> Blocks | None:
    """own: arrivals. None: there are too few."""
    number = _number_of_blocks(len(own), is_brief)
    if number < FEWEST_BLOCKS:
        return None
    block = np.repeat(np.arange(number), [end - begin for begin, end in spans(len(own), number)])
    order, groups = grouped(block, compared.compared[own])
    own = own[order]
    sizes = [len(compared.sets[number]) for number in compared.compared[own[groups.first]]]
    row, late = pairs(own, compared.arrival)
    if is_counted is not None:
        is_late = is_counted[compared.arrival[late]]
        row, late = row[is_late], late[is_late]
    group, unit = groups.of_row[row], compared.unit[late]
    order, sums = grouped(group, unit)
    one = order[sums.first]
    return Blocks(sizes, group[one], unit[one], sums.sum(compared.cost_ns[late[order]]))


def _beyond(blocks: Blocks | None, unit: int, most: float) -> float:
    """The probability that one of the units of a block costs as much as this one or more, added up
    over blocks; 1 if it is at least `most`."""
    if not blocks:
        return 1.0
    own_ns, is_own = np.zeros(len(blocks.sizes)), blocks.unit == unit
    own_ns[blocks.group[is_own]] = blocks.cost_ns[is_own]
    own_ns[own_ns < threshold("late.slight") * own_ns.mean()] = 0
    if not own_ns.any():
        return 1.0
    # costs are rounded, whoever has them: to thousandths of what the unit costs
    part_ns = own_ns.sum() / 1000
    needed = int(np.rint(own_ns / part_ns).sum())
    parts = np.minimum(np.rint(blocks.cost_ns / part_ns), needed).astype(np.int64)
    of_group = Groups(blocks.group)
    below, beyond = np.ones(1), 0.0
    for begin, number in zip(of_group.first.tolist(), of_group.counts.tolist()):
        size = blocks.sizes[blocks.group[begin]]
        chances = np.bincount(parts[begin : begin + number]) / size
        chances[0] += 1 - number / size
        upto = np.convolve(below, chances)
        below, beyond = upto[:needed], beyond + upto[needed:].sum()
        if beyond >= most:
            return 1.0
    return float(beyond)


def _by_call(costs: Costs) -> list[Ints]:
    """The rows of each call on each communicator, if there are several."""
    order, groups = grouped(costs.call, costs.identity)
    return np.split(order, groups.first[1:]) if len(groups) > 1 else []


def _late_in_call(
    costs: Costs, participants: Participants, rows: Ints, calls: int
) -> list[CallCause | None]:
    """The late ranks of one of so many calls: those that are beyond chance and cause most of its
    waiting; and if there are none, those that it is mostly for."""
    call, identity = int(costs.call[rows[0]]), int(costs.identity[rows[0]])
    members, texts = participants.members[identity], participants.texts.texts
    own = participants._replace(ranks=members, members={identity: members})
    case = Case(costs.take(rows), own)
    certain = next(iter(case.candidates(LEVEL / calls)), None)
    return [
        CallCause(texts[call], texts[identity], named, case.costs.whole_ns)
        if named and named.is_measurable
        else None
        for named in (certain, certain or case.below_half(MOSTLY_LEVEL / calls))
    ]


def _explain_more(calls: Sequence[CallCause], named: Named | None, costs: Costs) -> bool:
    """Whether different ranks are late in these calls, which have most of the waiting, and explain
    notably more of it than the named ranks do."""
    explained_ns = sum(each.named.share * each.cost_ns for each in calls)
    return (
        len({each.named.ranks for each in calls}) > 1
        and sum(each.cost_ns for each in calls) >= MAJORITY * costs.whole_ns
        and explained_ns > ((named.share if named else 0) + NOTABLY_MORE) * costs.whole_ns
    )

"""Root causes of waiting: the rank that arrives last may be late only because it waited for another
one.

    rank 1     | outside | waits for 3                        | transfer | cause: 2, through 3
    rank 3     | outside | waits for 2             | transfer | arrives  | cause: 2, directly
    rank 2     | outside, longer                   | transfer | ...

Both ranks of a wait, the one that waits (A) and the one that arrives last (B), are compared since
they last were synchronized. The wait is exactly what B spent more than A in all states together. It
is distributed over the states in which B spent more. Outside MPI, in transfer and in files, B is
the cause. In waiting, the causes are those for which B waited longer than A; they are known,
because waits are taken in order of their end. The cause of calls that were not split, and of times
without samples, is not known. After Boehme, Geimer, Wolf: "Identifying the root causes of wait
states in large-scale parallel applications" (ICPP 2010). docs/METHODS.md has the formulas.

Here is, too, which ranks work longer than others, in collectives in which not all wait for all, and
in messages, whether or not anyone has to wait.

Only the root of a Bcast or Scatter can be waited for, only the other ranks of a Reduce or Gather,
only the lower ranks of a Scan, only the sender of an eager message. So their cost does not show
that they are late more often than the rest: the root of a Bcast has all of it in a balanced run,
too. The verdict therefore compares ranks by the same quantity: the time that each spent on its own,
outside MPI, in transfer and in files. The members of a communicator are compared since they
returned from the collective before on it. A rank's lateness is the sum of what it spent more than
each of the others.

    returned from the collective before      arrives
    rank 0 (root)  |======== 9 ms =========>|            late by 4 + 7 ms
    rank 1         |=== 5 ms ==>|- waits    |            late by 3 ms
    rank 2         |2 ms>|- waits           |            not late

A message's time is that since the message before between its two ranks. A rank that exchanges
messages with several others waits for whoever is ready first, though all of them work longer than
it does. So the rank that it waits for is compared with the others of them, at their latest
messages; with the one that waits if there are no others, or if they send far fewer. If two ranks
exchange messages only with each other, either may be the late one.

    rank 0     - waits |takes 1's |- waits |takes 2's |- waits ...
    rank 1     |==== 6 ms ======>|==== 6 ms ======>       no later than rank 2, though waited for
    rank 2     |======= 6 ms =======>|=== 6 ms =======>
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from itertools import chain
from typing import Dict, Tuple

from ..base import (
    NONE,
    Columns,
    Flags,
    Groups,
    Ints,
    by_rank,
    found_in,
    grouped,
    joined,
    np,
    numbered,
    pairs,
    threshold,
    whole,
)
from ..run.alignment import Alignment
from .depends import Collectives, Waits, before
from .reading import FIRST_PERSISTENT
from .wait_split import DIRECT, UNSEEN, UNSPLIT, WAITING, Lines

UNKNOWN = (UNSPLIT, UNSEEN)
BLOCK = 32  # waits whose causes are summed in advance
LEAST_SHARE = threshold("late.least-cause")

CausesOfWait = Dict[int, float]  # nanoseconds by rank; NONE: not known
Pairs = Collection[Tuple[int, float]]  # the same, as its items


class Causes(Columns):
    """The root causes of waits: which ranks caused how much of each. wait: row of Waits;
    cause_rank (NONE: not known); caused_ns."""


class Meetings(Columns):
    """Waits for a rank, and blocking collectives in which all depend on all, in order of the
    arrival that ended the waiting; of one arrival, the waits first. wait: row of Waits; NONE: a
    collective; identity; arrival_ns; is_followed: a wait on the host, on clocks that show when
    ranks arrived, and seen in the rank's timeline."""


class CausesOfRank:
    """One rank's waits with their causes, in order of time. known: of each wait that has ended, by
    its row."""

    def __init__(self, rows: list[int], ends: list[int], known: list[Pairs]) -> None:
        self.rows, self.ends, self.known = rows, ends, known
        self.blocks: list[Pairs] = []  # sums over BLOCK waits each

    def between(self, time_ns: int, row: int) -> CausesOfWait:
        """The waits that end after this time, up to the row."""
        upto = bisect_left(self.rows, row)
        first = bisect_right(self.ends, time_ns, 0, upto)
        block, whole_blocks = -(-first // BLOCK), upto // BLOCK
        if block >= whole_blocks:
            return _sum(self._of(first, upto))
        for at in range(len(self.blocks) * BLOCK, whole_blocks * BLOCK, BLOCK):
            self.blocks.append(_sum(self._of(at, at + BLOCK)).items())
        return _sum(
            [
                *self._of(first, block * BLOCK),
                *self.blocks[block:whole_blocks],
                *self._of(whole_blocks * BLOCK, upto),
            ]
        )

    def _of(self, first: int, upto: int) -> list[Pairs]:
        return [self.known[row] for row in self.rows[first:upto]]


def root_causes(waits: Waits, lines: Lines, is_nccl: Flags, is_all: Flags) -> Causes:
    """is_nccl, is_all: of each wait, whether it is of NCCL, and whether all wait for all in it and
    its call is blocking."""
    meetings = _meetings(waits, lines, is_nccl, is_all)
    since_ns = _synchronized(meetings, waits)
    followed = np.flatnonzero(meetings.is_followed)
    rows = meetings.wait[followed]
    late_ns = lines.spent_between(
        waits.last_rank[rows], since_ns[followed], meetings.arrival_ns[followed]
    )
    own_ns = lines.spent_between(waits.world_rank[rows], since_ns[followed], waits.start_ns[rows])
    return _caused(meetings, waits, since_ns, late_ns, own_ns)


def _meetings(waits: Waits, lines: Lines, is_nccl: Flags, is_all: Flags) -> Meetings:
    wait = np.flatnonzero((waits.wait_ns > 0) & (waits.last_rank != NONE))
    start_ns = waits.start_ns[wait]
    is_followed = ~waits.is_estimate[wait] & ~is_nccl[wait] & (start_ns >= 0)  # as the axis begins
    is_followed &= (
        lines.spent_between(waits.world_rank[wait], start_ns, start_ns + 1)[:, WAITING] > 0
    )
    met = np.flatnonzero(is_all & ~waits.is_estimate)
    order, groups = grouped(waits.identity[met], waits.sequence[met])
    collective = met[order[groups.first]]
    met_ns = groups.max(waits.start_ns[met[order]])
    found = Meetings(
        wait=np.append(wait, np.full(len(collective), NONE)),
        identity=np.append(waits.identity[wait], waits.identity[collective]),
        arrival_ns=np.append(waits.start_ns[wait] + waits.wait_ns[wait], met_ns),
        is_followed=np.append(is_followed, np.zeros(len(collective), bool)),
    )
    return found.take(np.lexsort((-found.wait, found.arrival_ns)))


def _synchronized(meetings: Meetings, waits: Waits) -> Ints:
    """For each wait that is followed, the last time at which both ranks had arrived, by a wait of
    one for the other or a collective of both; the begin of the run if there is none."""
    followed = np.flatnonzero(meetings.is_followed)
    ranks = [column[meetings.wait[followed]] for column in (waits.world_rank, waits.last_rank)]
    order, of_pair = grouped(np.minimum(*ranks), np.maximum(*ranks))
    followed = followed[order]
    arrival_ns = meetings.arrival_ns[followed]
    latest_ns = np.append(arrival_ns, 0)[before(of_pair.of_row)]
    low, high = (choose(*ranks)[order[of_pair.first]] for choose in (np.minimum, np.maximum))
    pair, identity = _shared(low, high, waits)
    row, entry = pairs(of_pair.of_row, pair)
    wanted = identity[entry] * len(meetings) + followed[row]
    collective = np.flatnonzero(meetings.wait == NONE)
    known = np.sort(meetings.identity[collective] * len(meetings) + collective)
    # -1: no collective was before
    met = np.append(known, -1)[np.searchsorted(known, wanted) - 1]
    is_met = met // max(1, len(meetings)) == identity[entry]
    np.maximum.at(latest_ns, row[is_met], meetings.arrival_ns[met[is_met] % len(meetings)])
    found = np.zeros(len(meetings), np.int64)
    found[followed] = np.maximum(latest_ns, 0)
    return found


def _shared(low: Ints, high: Ints, waits: Waits) -> tuple[Ints, Ints]:
    """The communicators on which both ranks of a pair have waits: rows of (pair, identity)."""
    known = np.flatnonzero(waits.identity != NONE)
    order, groups = grouped(waits.world_rank[known], waits.identity[known])
    first = known[order[groups.first]]
    rank, identity = waits.world_rank[first], waits.identity[first]
    pair, own = pairs(low, rank)
    is_shared = found_in((high[pair], identity[own]), (rank, identity)) >= 0
    return pair[is_shared], identity[own[is_shared]]


def _caused(
    meetings: Meetings, waits: Waits, since_ns: Ints, late_ns: np.ndarray, own_ns: np.ndarray
) -> Causes:
    """late_ns, own_ns: of the waits that are followed, what the last rank and the waiting one
    spent. Most waits have no indirect causes: these are known without the waits before them."""
    more = np.maximum(late_ns - own_ns, 0)
    direct, unknown, indirect = (
        more[:, states].sum(axis=1) for states in (DIRECT, UNKNOWN, [WAITING])
    )
    beyond = np.maximum(0, own_ns[:, DIRECT].sum(axis=1) - late_ns[:, DIRECT].sum(axis=1))
    rows = np.flatnonzero(meetings.wait != NONE)
    wait, is_followed = meetings.wait[rows], meetings.is_followed[rows]
    is_indirect = is_followed.copy()
    is_indirect[is_followed] = indirect > 0
    # of a wait without indirect causes, as `largest` has them
    share = np.ones(len(wait))
    share[is_followed] = direct / np.maximum(direct + unknown, 1)
    by_last = waits.wait_ns[wait] * share
    by_last[by_last < LEAST_SHARE * waits.wait_ns[wait]] = 0.0
    rest_ns = waits.wait_ns[wait] - by_last
    last = waits.last_rank[wait].tolist()
    known: list[Pairs] = [
        [(own, caused_ns)] * (caused_ns > 0) + [(NONE, other_ns)] * (other_ns >= 1)
        for own, caused_ns, other_ns in zip(last, by_last.tolist(), rest_ns.tolist())
    ]
    arrival_ns = meetings.arrival_ns[rows]
    of_rank = {
        rank: CausesOfRank(own.tolist(), arrival_ns[own].tolist(), known)
        for rank, own in by_rank(waits.world_rank[wait])
    }
    chosen = np.flatnonzero(is_indirect)
    columns = (
        chosen,
        waits.world_rank[wait[chosen]],
        waits.wait_ns[wait[chosen]],
        since_ns[rows[chosen]],
        *(part[indirect > 0] for part in (direct, unknown, indirect, beyond)),
    )
    for row, waiter, wait_ns, since, *parts in zip(*(column.tolist() for column in columns)):
        of_waiter, of_last = (
            of_rank[rank].between(since, row) if rank in of_rank else {}
            for rank in (waiter, last[row])
        )
        causes = _indirect(wait_ns, waiter, last[row], of_waiter, of_last, *parts)
        known[row] = causes.items()
    cause_rank, every_ns = np.array([*chain.from_iterable(known)], float).reshape(-1, 2).T
    return Causes(
        wait=np.repeat(wait, np.array([len(causes) for causes in known], np.int64)),
        cause_rank=cause_rank.astype(np.int64),
        caused_ns=every_ns,
    )


def _indirect(
    wait_ns: int,
    waiter: int,
    last: int,
    of_waiter: CausesOfWait,
    of_last: CausesOfWait,
    direct_ns: int,
    unknown_ns: int,
    indirect_ns: int,
    beyond_ns: int,
) -> CausesOfWait:
    """of_waiter, of_last: the causes of what both waited since they were synchronized."""
    found: CausesOfWait = {last: direct_ns} if direct_ns else {}
    found[NONE] = unknown_ns
    own = {**of_waiter, waiter: of_waiter.get(waiter, 0.0) + beyond_ns}
    # the causes for which the last rank waited longer than this one
    more = {rank: ns - own.get(rank, 0.0) for rank, ns in of_last.items()}
    longer = {rank: ns for rank, ns in more.items() if ns > 0}
    longer_ns = sum(longer.values()) or 1.0
    for rank, caused_ns in (longer or {NONE: 1.0}).items():
        found[rank] = found.get(rank, 0.0) + indirect_ns * caused_ns / longer_ns
    whole_ns = direct_ns + unknown_ns + indirect_ns
    return largest({rank: wait_ns * ns / whole_ns for rank, ns in found.items()}, wait_ns)


def largest(causes: CausesOfWait, wait_ns: float) -> CausesOfWait:
    """The largest causes, so that chains do not make them ever more; the rest is not known."""
    ranks = [
        rank
        for rank, caused_ns in causes.items()
        if rank != NONE and caused_ns >= LEAST_SHARE * wait_ns
    ]
    ranks = sorted(ranks, key=lambda rank: -causes[rank])[: whole("late.causes")]
    chosen: CausesOfWait = {rank: causes[rank] for rank in ranks}
    rest_ns = wait_ns - sum(chosen.values())
    return {**chosen, NONE: rest_ns} if rest_ns >= 1 else chosen


def _sum(parts: Iterable[Pairs]) -> CausesOfWait:
    total: CausesOfWait = {}
    for part in parts:
        for rank, caused_ns in part:
            total[rank] = total.get(rank, 0.0) + caused_ns
    return total


MOST_OTHERS = 15  # that a rank is compared with, so that the work does not grow with their square


class Compared(Columns):
    """How late each rank would have been at a collective in which not all wait for all, or at a
    message, had it been the one to be waited for.

    identity, sequence, call, world_rank  as in Waits
    arrival_ns, late_ns
    awaited_rank  NONE: any of them may have been waited for
    """


def compare_own_time(
    collectives: Collectives,
    alignment: Alignment,
    waits: Waits,
    lines: Lines,
    is_rooted: Flags,
) -> Compared:
    """is_rooted: of each wait, whether it is of a collective in which not all wait for all."""
    rooted = waits.take(is_rooted & (waits.sequence > 0))
    return joined(
        Compared,
        [_collectives(collectives, alignment, rooted, lines), _messages(waits, lines)],
    )


def _collectives(rows: Collectives, alignment: Alignment, rooted: Waits, lines: Lines) -> Compared:
    """rows: on the device, if they are NCCL's."""
    rows = rows.take(np.isin(rows.identity, rooted.identity) & (rows.sequence < FIRST_PERSISTENT))
    rows = rows.take(np.lexsort((rows.sequence, rows.world_rank, rows.identity)))
    earlier = before(rows.identity, rows.world_rank)
    is_wanted = found_in((rows.identity, rows.sequence), (rooted.identity, rooted.sequence)) >= 0
    order, groups = grouped(rows.identity[is_wanted], rows.sequence[is_wanted])
    wanted = np.flatnonzero(is_wanted)[order]
    wanted = wanted[groups.spread(groups.min(earlier[wanted])) >= 0]
    rows, since_ns = rows.take(wanted), rows.end_ns[earlier[wanted]]
    come_ns, since_ns = (
        alignment.aligned(rows.world_rank, times) for times in (rows.start_ns, since_ns)
    )
    own_ns = np.where(
        rows.is_nccl, come_ns - since_ns, _direct_ns(lines, rows.world_rank, since_ns, come_ns)
    )
    return Compared(
        identity=rows.identity,
        sequence=rows.sequence,
        call=rows.call,
        world_rank=rows.world_rank,
        arrival_ns=come_ns,
        late_ns=lateness(own_ns, Groups(rows.identity, rows.sequence)),
        awaited_rank=np.full(len(rows), NONE),
    )


def _direct_ns(lines: Lines, world_ranks: Ints, since_ns: Ints, until_ns: Ints) -> Ints:
    """Time of ranks in their own work; the timelines do not show the device."""
    return lines.spent_between(world_ranks, since_ns, until_ns)[:, DIRECT].sum(axis=1)


def _messages(waits: Waits, lines: Lines) -> Compared:
    """Rows of a rank in one call on a communicator in order of time; of a message the rank that is
    waited for first, then the others."""
    waits = waits.take((waits.peer != NONE) & ~waits.is_polled)
    order = np.lexsort((waits.start_ns, waits.world_rank, waits.call, waits.identity))
    waits = waits.take(order)
    # the message before, between the same two ranks in this call
    earlier = before(waits.identity, waits.call, waits.world_rank, waits.peer)
    own_ns = _direct_ns(lines, waits.world_rank, waits.start_ns[earlier], waits.start_ns)
    peers_ns = _direct_ns(lines, waits.peer, waits.peer_ns[earlier], waits.peer_ns)
    pairs, of_pairs = grouped(waits.identity, waits.peer, waits.world_rank)
    pairs = pairs[of_pairs.first]
    partner = numbered(waits.identity, waits.peer)
    partners = np.bincount(partner[pairs], minlength=len(waits))[partner]
    alike = numbered(waits.identity, waits.call, waits.world_rank, waits.peer)
    times = np.bincount(alike)[alike]
    is_known = earlier >= 0
    rows, own_ns, peers_ns = waits.take(is_known), own_ns[is_known], peers_ns[is_known]
    row, other = _others(rows, times[is_known])
    has_others = np.bincount(row, minlength=len(rows)) > 0
    alone = np.flatnonzero(~has_others)
    row = np.concatenate([np.arange(len(rows)), row, alone])
    order = np.argsort(row, kind="stable")
    spent_ns = np.concatenate([peers_ns, peers_ns[other], own_ns[alone]])[order]
    rank = np.concatenate([rows.peer, rows.peer[other], rows.world_rank[alone]])[order]
    row = row[order]
    is_awaited = has_others | (partners[is_known] > 1)
    rows = rows.take(row)
    return Compared(
        identity=rows.identity,
        sequence=rows.sequence,
        call=rows.call,
        world_rank=rank,
        arrival_ns=rows.peer_ns,
        late_ns=lateness(spent_ns, Groups(row)),
        awaited_rank=np.where(is_awaited[row], rows.peer, NONE),
    )


def _others(rows: Waits, times: Ints) -> tuple[Ints, Ints]:
    """Each message with the latest of each other rank before it, in the order in which these came
    first. times: how many messages the rank has sent in all."""
    count = len(rows)
    of_group = Groups(rows.identity, rows.call, rows.world_rank).of_row
    order, pairs = grouped(of_group, rows.peer)
    by_first = np.argsort(order[pairs.first])  # pairs, as they came first
    first = order[pairs.first][by_first]
    pair = np.empty(count, np.int64)
    pair[order] = np.argsort(by_first)[pairs.of_row]
    known = np.sort(pair * count + np.arange(count))
    candidate, first = np.searchsorted(of_group[first], of_group), np.append(first, count)
    row, left = np.arange(count), np.full(count, MOST_OTHERS)
    found = [(row[:0], row[:0])]
    while len(row):
        row = row[(first[candidate[row]] <= row) & (left[row] > 0)]
        other = candidate[row]
        is_other = (other != pair[row]) & comparable(times[row], times[first[other]])
        own, other = row[is_other], other[is_other]
        found.append((own, known[np.searchsorted(known, other * count + own) - 1] % count))
        left[own] -= 1
        candidate[row] += 1
    of_row, others = (np.concatenate(part) for part in zip(*found))
    return of_row, others


def comparable(times: Ints, others_times: Ints) -> Flags:
    """Whether the other ranks do not send far fewer messages. times: how many each sends."""
    return times < whole("late.fewer-messages") * others_times


def lateness(own_ns: Ints, groups: Groups) -> Ints:
    """For each row the sum of its excess over each smaller one of its group."""
    order = np.lexsort((own_ns, groups.of_row))
    smaller_ns = np.cumsum(own_ns[order]) - own_ns[order]
    late_ns = np.empty(len(own_ns), np.int64)
    late_ns[order] = groups.place() * own_ns[order] - (
        smaller_ns - groups.spread(smaller_ns[groups.first])
    )
    return late_ns

"""Which ranks work longer than others, in collectives in which not all wait for all, and in
messages, whether or not anyone has to wait.

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

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter

from ..base.columns import (
    NONE, Columns, Flags, Groups, Ints, TextInts, Texts, found_in, grouped, joined, np, table,
)
from ..base.thresholds import whole
from ..run.alignment import Alignment
from .depends import Collectives
from .reading import FIRST_PERSISTENT
from .timelines import DIRECT, Lines
from .waits import Waits

MOST_OTHERS = 15  # that a rank is compared with, so that the work does not grow with their square


@dataclass(frozen=True)
class Compared(Columns):
    """How late each rank would have been at a collective in which not all wait for all, or at a
    message, had it been the one to be waited for."""

    identity: TextInts
    sequence: Ints  # as in Waits
    call: TextInts
    world_rank: Ints
    arrival_ns: Ints
    late_ns: Ints
    awaited_rank: Ints  # NONE: any of them may have been waited for
    # what it did in its own time; NONE: awaited_rank was not compared with other ranks that are
    # waited for there
    own_ns: Ints


def compare_own_time(
    collectives: Collectives, alignment: Alignment, waits: Waits, lines: Lines, is_rooted: Flags,
    texts: Texts,
) -> Compared:
    """is_rooted: of each wait, whether it is of a collective in which not all wait for all."""
    rooted = waits.take(is_rooted & (waits.sequence > 0))
    of_collectives = _collectives(collectives, alignment, rooted, lines)
    of_messages = table(Compared, _messages(waits, lines, texts), texts)
    return joined(Compared, [of_collectives, of_messages])


def _collectives(
    rows: Collectives, alignment: Alignment, rooted: Waits, lines: Lines
) -> Compared:
    """rows: on the device, if they are NCCL's."""
    rows = rows.take(np.isin(rows.identity, rooted.identity) & (rows.sequence < FIRST_PERSISTENT))
    rows = rows.take(np.lexsort((rows.sequence, rows.world_rank, rows.identity)))
    before = _before(rows.identity, rows.world_rank)
    is_wanted = found_in((rows.identity, rows.sequence), (rooted.identity, rooted.sequence)) >= 0
    order, groups = grouped(rows.identity[is_wanted], rows.sequence[is_wanted])
    wanted = np.flatnonzero(is_wanted)[order]
    wanted = wanted[groups.spread(groups.min(before[wanted])) >= 0]
    rows, since_ns = rows.take(wanted), rows.end_ns[before[wanted]]
    come_ns, since_ns = (
        alignment.aligned(rows.world_rank, times) for times in (rows.start_ns, since_ns)
    )
    own_ns = np.where(
        rows.is_nccl, come_ns - since_ns, _direct_ns(lines, rows.world_rank, since_ns, come_ns)
    )
    nothing = np.full(len(rows), NONE)
    late_ns = lateness(own_ns, Groups(rows.identity, rows.sequence))
    return Compared(
        rows.identity, rows.sequence, rows.call, rows.world_rank, come_ns, late_ns, nothing, nothing
    )


def _direct_ns(lines: Lines, world_ranks: Ints, since_ns: Ints, until_ns: Ints) -> Ints:
    """Time of ranks in their own work; the timelines do not show the device."""
    return lines.spent_between(world_ranks, since_ns, until_ns)[:, DIRECT].sum(axis=1)


def _messages(waits: Waits, lines: Lines, texts: Texts) -> Iterator[tuple]:
    """Rows of Compared: those of a rank in one call on a communicator in order of time."""
    waits = waits.take((waits.peer != NONE) & ~waits.is_polled)
    order = np.lexsort((waits.start_ns, waits.world_rank, waits.call, waits.identity))
    waits = waits.take(order)
    pairs = {*zip(waits.identity.tolist(), waits.peer.tolist(), waits.world_rank.tolist())}
    partners = Counter((identity, peer) for identity, peer, _ in pairs)
    # the message before, between the same two ranks in this call
    before = _before(waits.identity, waits.call, waits.world_rank, waits.peer)
    own_ns = _direct_ns(lines, waits.world_rank, waits.start_ns[before], waits.start_ns)
    peers_ns = _direct_ns(lines, waits.peer, waits.peer_ns[before], waits.peer_ns)
    columns = (
        waits.identity, waits.call, waits.world_rank, waits.sequence, waits.peer, waits.peer_ns,
        before >= 0, own_ns, peers_ns,
    )
    for (identity, call, rank), group in groupby(
        zip(*(column.tolist() for column in columns)), key=itemgetter(0, 1, 2)
    ):
        rows = list(group)
        times = Counter(row[4] for row in rows)
        latest_ns: dict[int, int] = {}
        what = texts.text(identity), texts.text(call)
        for *_, sequence, peer, peer_ns, is_known, rank_ns, peer_own_ns in rows:
            if not is_known:
                continue
            others = list(islice(comparable(peer, latest_ns, times), MOST_OTHERS))
            compared = {peer: peer_own_ns, **{other: latest_ns[other] for other in others}}
            if not others:
                compared[rank] = rank_ns
            latest_ns[peer] = peer_own_ns
            awaited_rank = peer if others or partners[identity, peer] > 1 else None
            for (each, spent_ns), late_ns in zip(
                compared.items(), _lateness(list(compared.values()))
            ):
                yield (
                    what[0], sequence, what[1], each, peer_ns, late_ns, awaited_rank,
                    spent_ns if others else None,
                )


def comparable(peer: int, others: Iterable[int], times: Mapping[int, int]) -> Iterator[int]:
    """The others that do not send far fewer messages. times: how many each rank sends."""
    fewer = whole("late.fewer-messages")
    return (each for each in others if each != peer and times[peer] < fewer * times[each])


def _before(*keys: Ints) -> Ints:
    """Row of the one before each one that has the same keys; -1: there is none."""
    order, groups = grouped(*keys)
    before = np.full(len(order), -1)
    before[order[1:]] = np.where(groups.of_row[1:] == groups.of_row[:-1], order[:-1], -1)
    return before


def lateness(own_ns: Ints, groups: Groups) -> Ints:
    """For each row the sum of its excess over each smaller one of its group."""
    order = np.lexsort((own_ns, groups.of_row))
    smaller_ns = np.cumsum(own_ns[order]) - own_ns[order]
    late_ns = np.empty(len(own_ns), np.int64)
    late_ns[order] = groups.place() * own_ns[order] - (
        smaller_ns - groups.spread(smaller_ns[groups.first])
    )
    return late_ns


def _lateness(own_ns: list[int]) -> list[int]:
    """The same of one group of few."""
    return [sum(own - other for other in own_ns if other < own) for own in own_ns]

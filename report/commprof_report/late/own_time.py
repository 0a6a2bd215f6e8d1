"""Which ranks work longer than others, in collectives in which not all wait for all, and in messages, whether or not anyone has to wait.

Only the root of a Bcast or Scatter can be waited for, only the other ranks of a Reduce or Gather, only the lower ranks of a Scan, only the
sender of an eager message. So their cost does not show that they are late more often than the rest: the root of a Bcast has all of it in a
balanced run, too. The verdict therefore compares ranks by the same quantity: the time that each spent on its own, outside MPI, in transfer and
in files. The members of a communicator are compared since they returned from the collective before on it. A rank's lateness is the sum of what
it spent more than each of the others.

    returned from the collective before      arrives
    rank 0 (root)  |======== 9 ms =========>|            late by 4 + 7 ms
    rank 1         |=== 5 ms ==>|- waits    |            late by 3 ms
    rank 2         |2 ms>|- waits           |            not late

A message's time is that since the message before between its two ranks. A rank that exchanges messages with several others waits for whoever
is ready first, though all of them work longer than it does. So the rank that it waits for is compared with the others of them, at their latest
messages; with the one that waits if there are no others, or if they send far fewer. Of two ranks that exchange messages only with each other
either may be the late one.

    rank 0     - waits |takes 1's |- waits |takes 2's |- waits ...
    rank 1     |==== 6 ms ======>|==== 6 ms ======>             no later than rank 2, though rank 0 waits for it
    rank 2     |======= 6 ms =======>|=== 6 ms =======>
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby, islice
from operator import itemgetter
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from .timelines import DIRECT, Timeline

SQL = query.beside(__file__)


FEWER = 8  # times as many messages: too different to be compared
MOST_OTHERS = 15


class ArrivalRow(NamedTuple):
    """A rank's; own_time_arrivals.sql."""

    identity: str
    sequence: int
    call: str
    library: str
    world_rank: int
    arrival_ns: int
    since_ns: int | None


class MessageRow(NamedTuple):
    """own_time_messages.sql. The rank waits for the peer, or might have; sequence: negative, as in late_call."""

    identity: str
    call: str
    world_rank: int
    sequence: int
    arrival_ns: int
    since_ns: int | None
    peer: int
    peer_ns: int
    peer_since_ns: int | None


def compare_own_time(connection: Connection, lines: dict[int, Timeline]) -> None:
    """Fills the TEMP TABLE late_compared. Needs late_call, and the functions of an aligned run."""
    SQL.run(connection, "late_compared")
    rows = [*_collectives(connection, lines), *_messages(connection, lines)]
    connection.executemany("INSERT INTO late_compared VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)


def _collectives(connection: Connection, lines: dict[int, Timeline]) -> Iterator[tuple]:
    for _, group in groupby(map(ArrivalRow._make, SQL.run(connection, "own_time_arrivals")), key=itemgetter(0, 1)):
        rows = list(group)
        if any(row.since_ns is None for row in rows):
            continue
        for row, late_ns in zip(rows, lateness([_own_ns(row, lines[row.world_rank]) for row in rows])):
            yield row.identity, row.sequence, row.call, row.world_rank, row.arrival_ns, late_ns, None, None


def _own_ns(row: ArrivalRow, line: Timeline) -> int:
    """The timeline does not show the device."""
    return row.arrival_ns - row.since_ns if row.library == "nccl" else _direct_ns(line, row.since_ns, row.arrival_ns)


def _direct_ns(line: Timeline, since_ns: int, until_ns: int) -> int:
    """What the rank did in its own time."""
    spent_ns = line.between(since_ns, until_ns)
    return sum(spent_ns[state] for state in DIRECT)


def _messages(connection: Connection, lines: dict[int, Timeline]) -> Iterator[tuple]:
    messages = SQL.ask(connection, "own_time_messages", MessageRow)
    partners = Counter((identity, rank) for identity, rank, _ in {(row.identity, row.peer, row.world_rank) for row in messages})
    for _, group in groupby(messages, key=itemgetter(0, 1, 2)):
        rows = list(group)
        times = Counter(row.peer for row in rows)
        latest_ns: dict[int, int] = {}
        for row in rows:
            if row.since_ns is None:
                continue
            own_ns = _direct_ns(lines[row.peer], row.peer_since_ns, row.peer_ns)
            alike = (each for each in latest_ns if each != row.peer and times[row.peer] < FEWER * times[each])
            others = list(islice(alike, MOST_OTHERS))
            compared = {row.peer: own_ns, **{other: latest_ns[other] for other in others}}
            if not others:
                compared[row.world_rank] = _direct_ns(lines[row.world_rank], row.since_ns, row.arrival_ns)
            latest_ns[row.peer] = own_ns
            awaited_rank = row.peer if others or partners[row.identity, row.peer] > 1 else None
            for (rank, spent_ns), late_ns in zip(compared.items(), lateness(list(compared.values()))):
                yield row.identity, row.sequence, row.call, rank, row.peer_ns, late_ns, awaited_rank, spent_ns if others else None


def lateness(own_ns: Sequence[int]) -> list[int]:
    """For each, the sum of its excess over each smaller one."""
    order = sorted(range(len(own_ns)), key=own_ns.__getitem__)
    smaller = accumulate((own_ns[place] for place in order), initial=0)
    found = {place: number * own_ns[place] - sum_ns for number, (place, sum_ns) in enumerate(zip(order, smaller))}
    return [found[place] for place in range(len(own_ns))]

"""Which ranks work longer than others, in collectives in which not all wait for all, and in messages, whether or not anyone has to wait.

Only the root of a Bcast or Scatter can be waited for, only the other ranks of a Reduce or Gather, only the lower ranks of a Scan, only the
sender of an eager message. So their cost does not show that they are late more often than the rest: the root of a Bcast has all of it in a
balanced run, too. The verdict therefore compares ranks by the same quantity: the time that each spent on its own, outside MPI, in transfer and
in files. The members of a communicator are compared since they returned from the collective before on it, the two ranks of a message since the
message before between them. A rank's lateness is the sum of what it spent more than each of the others.

    returned from the collective before      arrives
    rank 0 (root)  |======== 9 ms =========>|            late by 4 + 7 ms
    rank 1         |=== 5 ms ==>|- waits    |            late by 3 ms
    rank 2         |2 ms>|- waits           |            not late
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from .timelines import DIRECT, Timeline

SQL = query.beside(__file__)


class ArrivalRow(NamedTuple):
    """A rank's; own_time_arrivals.sql. sequence: of a message, negative, as in late_call."""

    identity: str
    sequence: int
    call: str
    library: str
    world_rank: int
    arrival_ns: int
    since_ns: int | None


def compare_own_time(connection: Connection, lines: dict[int, Timeline]) -> None:
    """Fills the TEMP TABLE late_compared. Needs late_call, and the functions of an aligned run."""
    SQL.run(connection, "late_compared")
    connection.executemany("INSERT INTO late_compared VALUES (?, ?, ?, ?, ?, ?)", list(_rows(connection, lines)))


def _rows(connection: Connection, lines: dict[int, Timeline]) -> Iterator[tuple]:
    for _, group in groupby(map(ArrivalRow._make, SQL.run(connection, "own_time_arrivals")), key=itemgetter(0, 1)):
        rows = list(group)
        if any(row.since_ns is None for row in rows):
            continue
        for row, late_ns in zip(rows, lateness([_own_ns(row, lines[row.world_rank]) for row in rows])):
            yield row.identity, row.sequence, row.call, row.world_rank, row.arrival_ns, late_ns


def _own_ns(row: ArrivalRow, line: Timeline) -> int:
    """What the rank did in its own time. The timeline does not show the device."""
    if row.library == "nccl":
        return row.arrival_ns - row.since_ns
    spent_ns = line.between(row.since_ns, row.arrival_ns)
    return sum(spent_ns[state] for state in DIRECT)


def lateness(own_ns: Sequence[int]) -> list[int]:
    """For each, the sum of its excess over each smaller one."""
    order = sorted(range(len(own_ns)), key=own_ns.__getitem__)
    smaller = accumulate((own_ns[place] for place in order), initial=0)
    found = {place: number * own_ns[place] - sum_ns for number, (place, sum_ns) in enumerate(zip(order, smaller))}
    return [found[place] for place in range(len(own_ns))]

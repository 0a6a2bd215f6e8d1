"""Whether the clocks of ranks are accurate enough to split their calls by arrival times."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ..base import query
from ..base.columns import Flags, Floats, Groups, Ints, TextInts, np
from ..base.thresholds import threshold
from ..run.alignment import Alignment, Error
from .depends import Collectives

SQL = query.beside(__file__)

SECOND_LOG2 = 30  # 2^30 ns are about one second

Medians = dict[tuple[int, int], int]  # durations by numbers of communicator and call


class Errors(NamedTuple):
    """As Error, a row for each pair of ranks or group of them."""

    timestamp_ns: Floats
    distance_ns: Floats


class Clocks:
    def __init__(
        self, connection: Connection, alignment: Alignment, durations: Callable[[], Medians]
    ) -> None:
        self.alignment = alignment
        # by communicator or pair of ranks, and second
        self.errors: dict[tuple[Hashable, int], Error] = {}
        self.error_ns = 0.0  # the largest one of those by which calls were split
        self.device_ns: dict[int, float | None] = dict(SQL.run(connection, "device_clocks"))
        has_nccl = connection.execute(
            "SELECT 1 FROM communicator WHERE library = 'nccl'"
        ).fetchone()
        is_one_clock = len(alignment.clocks) <= 1 and not any(
            clock.violation_ns for clock in alignment.clocks.values()
        )
        # empty: one clock, without errors
        self.medians = {} if is_one_clock and not has_nccl else durations()

    def near(
        self, keys: Iterable[Hashable], members: Iterable[Sequence[int]], times_ns: Ints
    ) -> Errors:
        """Of these ranks' times, each near a time of the first of them. keys: stand for the
        ranks."""
        found = []
        for key, ranks, time_ns in zip(keys, members, times_ns.tolist() if self.medians else ()):
            at = key, time_ns >> SECOND_LOG2
            if at not in self.errors:
                self.errors[at] = self.alignment.error(list(ranks), time_ns)
            found.append(self.errors[at])
        return Errors(*np.array(found or np.zeros((len(times_ns), 2)), float).reshape(-1, 2).T)

    def between(self, ranks: Ints, peers: Ints, start_ns: Ints) -> Errors:
        """Of pairs of ranks near these times of `ranks`."""
        pairs = [
            (rank, peer if peer in self.alignment.clock_of else rank)  # not all are read
            for rank, peer in zip(ranks.tolist(), peers.tolist())
        ]
        return self.near(pairs, pairs, start_ns)

    def among(self, rows: Collectives, groups: Groups) -> Errors:
        """Of the ranks of each collective."""
        bounds = zip(groups.first.tolist(), (groups.first + groups.counts).tolist())
        members = (rows.world_rank[first:end].tolist() for first, end in bounds)
        error = self.near(
            rows.identity[groups.first].tolist(), members, rows.start_ns[groups.first]
        )
        of_rank = np.full(int(rows.world_rank.max(initial=0)) + 1, math.inf)
        for rank, error_ns in self.device_ns.items():
            of_rank[rank : rank + 1] = math.inf if error_ns is None else error_ns
        device_ns = groups.max(np.where(rows.is_nccl, of_rank[rows.world_rank], 0.0))
        return Errors(error.timestamp_ns + device_ns, error.distance_ns + 2 * device_ns)

    def are_sure(self, identity: TextInts, call: TextInts, error: Errors) -> Flags:
        """Whether clocks with these errors tell who was first in such calls."""
        if not self.medians:
            return np.ones(len(identity), bool)
        keys = zip(identity.tolist(), call.tolist())
        is_sure = is_resolved(error, np.array([self.medians.get(key, 0) for key in keys], float))
        self.error_ns = max(self.error_ns, error.distance_ns[is_sure].max(initial=0.0))
        return is_sure


def is_resolved(error: Error | Errors, median_ns: float | Floats) -> Any:
    """True if the error is small against the median duration. A host that is late by the same
    amount in all calls looks like a host whose clock is off, and causes an error of half the
    wait."""
    return error.timestamp_ns <= threshold("late.clock-error") * median_ns

"""Whether the clocks of ranks are accurate enough to split their calls by arrival times."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from sqlite3 import Connection

from ..base import query
from ..base.arrays import np
from ..base.columns import Flags, Floats, Groups, Ints, TextInts, Texts
from ..base.present import present
from ..base.thresholds import threshold
from ..run.alignment import Alignment, Error
from .collectives import Collectives

SQL = query.beside(__file__)

SECOND_LOG2 = 30  # 2^30 ns are about one second
NO_ERROR = Error(0, 0)

Medians = dict[tuple[str, str], int]  # durations by communicator and call


class Clocks:
    def __init__(
        self, connection: Connection, alignment: Alignment, durations: Callable[[], Medians]
    ) -> None:
        self.alignment = alignment
        self.medians: Medians = {}  # empty: one clock, without errors
        # by communicator or pair of ranks, and second
        self.errors: dict[tuple[Hashable, int], Error] = {}
        self.error_ns = 0.0  # the largest one of those by which calls were split
        self.device_errors: dict[int, float] = {}  # by rank
        has_nccl = connection.execute(
            "SELECT 1 FROM communicator WHERE library = 'nccl'"
        ).fetchone()
        if has_nccl:
            errors = SQL.run(connection, "device_clocks")
            self.device_errors = {
                rank: math.inf if error_ns is None else error_ns for rank, error_ns in errors
            }
        if (
            has_nccl or len(alignment.clocks) > 1
            or any(clock.violation_ns for clock in alignment.clocks.values())
        ):
            self.medians = durations()

    def error(self, key: Hashable, ranks: Iterable[int], time_ns: int) -> Error:
        """Error of these ranks' times, near a time of the first of them. key: stands for the
        ranks."""
        if not self.medians:
            return NO_ERROR
        at = (key, time_ns >> SECOND_LOG2)
        if at not in self.errors:
            self.errors[at] = self.alignment.error(list(ranks), time_ns)
        return self.errors[at]

    def resolves(self, identity: str, call: str, error: Error) -> bool:
        if not is_resolved(error, self.medians.get((identity, call), 0)):
            return False
        self.error_ns = max(self.error_ns, error.distance_ns)
        return True

    def tell(
        self, identity: TextInts, call: TextInts, ranks: Ints, peers: Ints, start_ns: Ints,
        texts: Texts,
    ) -> tuple[Flags, Floats]:
        """Whether they are accurate enough to tell which of two ranks was first in such calls, and
        their error. start_ns: in the time of `ranks`."""
        is_sure, errors = np.ones(len(ranks), bool), self.between(ranks, peers, start_ns)
        rows = zip(identity.tolist(), call.tolist(), errors) if self.medians else ()
        for row, (where, what, error) in enumerate(rows):
            is_sure[row] = self.resolves(texts.text(where) or "", texts.text(what) or "", error)
        return is_sure, np.array([error.distance_ns for error in errors], float)

    def between(self, ranks: Ints, peers: Ints, start_ns: Ints) -> list[Error]:
        """The errors of pairs of ranks near these times of `ranks`."""
        pairs = [
            (rank, peer if peer in self.alignment.clock_of else rank)  # not all are read
            for rank, peer in zip(ranks.tolist(), peers.tolist())
        ]
        return [self.error(pair, pair, at_ns) for pair, at_ns in zip(pairs, start_ns.tolist())]

    def resolve(self, rows: Collectives, groups: Groups, texts: Texts) -> np.ndarray:
        """True for each collective whose ranks' arrivals can be told apart."""
        if not self.medians:
            return np.ones(len(groups), bool)
        return np.array(
            [
                self._resolves(rows, first, count, texts)
                for first, count in zip(groups.first.tolist(), groups.counts.tolist())
            ],
            bool,
        )

    def _resolves(self, rows: Collectives, first: int, count: int, texts: Texts) -> bool:
        own = rows.world_rank[first : first + count].tolist()
        identity = present(texts.text(rows.identity[first]))
        error = self.error(identity, own, int(rows.start_ns[first]))
        if rows.is_nccl[first]:
            device_ns = max(self.device_errors.get(rank, math.inf) for rank in own)
            error = Error(error.timestamp_ns + device_ns, error.distance_ns + 2 * device_ns)
        return self.resolves(identity, present(texts.text(rows.call[first])), error)


def is_resolved(error: Error, median_ns: float) -> bool:
    """True if the error is small against the median duration. A host that is late by the same
    amount in all calls looks like a host whose clock is off, and causes an error of half the
    wait."""
    return error.timestamp_ns <= threshold("late.clock-error") * median_ns

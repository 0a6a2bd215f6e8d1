"""Columns of the split of calls into waiting and transfer, and of a completion's dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..base.arrays import np
from ..base.columns import Columns, Flags, Ints, TextInts


@dataclass(frozen=True)
class Waits(Columns):
    """One row for each rank of a sampled collective, and for each call that sent, received or
    completed messages: how long the rank waited, and for which one. Times are on the run's axis."""

    identity: TextInts
    sequence: Ints  # of a message a negative number of its own
    world_rank: Ints
    call: TextInts
    bytes: Ints  # NONE: not known
    region: TextInts
    start_ns: Ints
    end_ns: Ints
    wait_ns: Ints
    transfer_ns: Ints  # the rest of the call
    # the part of wait_ns that would be saved if the last rank had arrived together with the rank
    # before it
    alone_ns: Ints
    # whose arrival ended the wait (NONE: no wait); if all wait for all, that arrived last, on its
    # own row too
    last_rank: Ints
    # others waited for this rank, or all wait for all and it arrived last; never of a message
    is_last: Flags
    is_estimate: Flags  # derived from durations, because the clocks are not accurate enough
    # the call that completed requests, in which the rank waited; the row has its times and its
    # region, and
    completion: TextInts
    # is of the collective or message that decided when the call could return. NONE: a blocking call
    wait_state: TextInts  # the kind of waiting, as docs/SCHEMA.md defines it; NONE: no wait
    peer: Ints  # of a message, its other rank, waited for or not; NONE: a collective
    peer_ns: Ints  # when that rank posted its side
    operations: Ints  # that the call was, or completed
    is_polled: Flags  # in unsuccessful polls before the call, which has a row of its own

    def estimated(self) -> Iterator[tuple[int, int]]:
        """Rank and begin of the calls of whose waiting only an estimate is known."""
        return zip(
            self.world_rank[self.is_estimate].tolist(), self.start_ns[self.is_estimate].tolist()
        )

    @property
    def is_blocking_collective(self) -> Flags:
        return (self.completion < 0) & (self.sequence > 0)


@dataclass(frozen=True)
class Arrivals(Columns):
    """Dependencies of an operation's completion on one rank."""

    world_rank: Ints
    gone_ns: Ints  # return of the call that completed it, in the rank's own time
    identity: TextInts
    sequence: Ints  # of a collective; NONE: a message
    call: TextInts
    bytes: Ints
    wait_state: TextInts  # if the rank waited
    last_ns: Ints  # on the run's axis, as the next one
    without_ns: Ints  # the last arrival of any other rank than last_rank
    last_rank: Ints
    is_last: Flags  # of a collective in which all wait for all: the rank itself started last
    # of a message: when last_rank posted its side, waited for or not; NONE: a collective
    peer_ns: Ints
    peer_gone_ns: Ints  # when that side was complete; NONE: a collective, or not known
    is_known: Flags  # False: nothing of this is known but rank and gone_ns


def shares(
    start_ns: Ints, duration_ns: Ints, last_ns: Ints, before_last_ns: Ints
) -> tuple[Ints, Ints]:
    """How long a rank waited, and how much of that is due to the last rank alone."""
    wait_ns = np.minimum(np.maximum(last_ns - start_ns, 0), duration_ns)
    without_ns = np.minimum(
        np.maximum(np.minimum(before_last_ns, last_ns) - start_ns, 0), duration_ns
    )
    return wait_ns, wait_ns - without_ns

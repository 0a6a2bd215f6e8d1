"""Columns of the operations that may have to wait, and of the split of calls into waiting and
transfer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..base.columns import NONE, Columns, Flags, Ints, TextInts, np

LONG_AGO_NS = NONE  # before all times


@dataclass(frozen=True)
class Operations(Columns):
    """What a rank may have to wait for: its part of a collective, a side of a message, a partner of
    an epoch. Times are on the run's axis, but for gone_ns."""

    world_rank: Ints
    gone_ns: Ints  # return of the call that completed it, in the rank's own time
    identity: TextInts
    sequence: Ints  # of a collective; NONE: a message
    call: TextInts
    bytes: Ints
    wait_state: TextInts  # if the rank waited
    last_ns: Ints  # when the last rank that it depends on arrived; LONG_AGO_NS: it does not wait
    without_ns: Ints  # the last arrival of any other rank than last_rank
    last_rank: Ints
    is_last: Flags  # all wait for all, and the rank itself arrived last
    is_estimate: Flags  # durations stand for arrivals
    # of a message: when last_rank posted its side, waited for or not; NONE: a collective
    peer_ns: Ints
    peer_gone_ns: Ints  # when that side was complete; NONE: a collective, or not known
    is_known: Flags  # False: it is not known on whose arrival it depends


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
    last_rank: Ints  # whose arrival ended the wait; NONE: no wait
    is_last: Flags  # all wait for all, and the rank itself arrived last
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


def shares(
    start_ns: Ints, duration_ns: Ints, last_ns: Ints, before_last_ns: Ints
) -> tuple[Ints, Ints]:
    """How long a rank waited, and how much of that is due to the last rank alone."""
    wait_ns, without_ns = (
        np.clip(until_ns - start_ns, 0, duration_ns)
        for until_ns in (last_ns, np.minimum(before_last_ns, last_ns))
    )
    return wait_ns, wait_ns - without_ns

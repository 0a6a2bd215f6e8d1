"""Which rank each rank of a collective depends on, and how long it waited for it.

A rank waits from its own arrival until the last rank that it depends on arrives: all ranks in
Allreduce, Allgather, Alltoall, Reduce_scatter and Barrier; the root in Bcast and Scatter; all
others at the root of Reduce and Gather; the lower ranks in Scan; its neighbors in neighborhood
collectives. The rest of its call is transfer.

An NCCL collective lasts from the start of its kernel to its end; the call on the host shows
neither.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..base.arrays import np
from ..base.columns import NONE, Columns, Flags, Groups, Ints, TextInts, Texts
from .neighbors import Awaited, Sources, last_sources
from .waits import Arrivals, Shares, Waits, shares

NEVER_NS = -(1 << 62)
KINDS = ALL, ROOT_FIRST, ROOT_LAST, LOWER, NEIGHBORS = (
    "all", "root-first", "root-last", "lower", "neighbors",
)


@dataclass(frozen=True)
class Collectives(Columns):
    """The samples of synchronizing collectives, and of the starts of persistent ones;
    reading.py. In order of collectives, and in each by the rank in the communicator.
    """

    identity: TextInts
    sequence: Ints
    members: Ints  # ranks of the communicator that were read
    world_rank: Ints
    call: TextInts
    kind: TextInts
    wait_state: TextInts
    is_blocking: Flags
    bytes: Ints
    is_root: Flags
    region: TextInts
    start_ns: Ints  # in the rank's own time, as the next two
    end_ns: Ints
    completed_ns: Ints
    is_nccl: Flags


class Come:
    """When the ranks of collectives that have one kind arrived; a group for each collective."""

    def __init__(self, rows: Collectives, start_ns: Ints) -> None:
        """start_ns: on the run's axis."""
        self.rows, self.start_ns = rows, start_ns
        self.groups = Groups(rows.identity, rows.sequence)
        self.numbers = np.arange(len(rows))

    @classmethod
    def among(cls, rows: Collectives, start_ns: Ints, own: Flags) -> Come:
        return cls(rows.take(own), start_ns[own])

    def last_but(self, left_out: Flags) -> Ints:
        """First row of each group that came last, without those left out; such a row may be missing
        (NEVER_NS)."""
        return self.groups.first_most(np.where(left_out, NEVER_NS, self.start_ns))

    def time_but(self, left_out: Flags) -> Ints:
        """Time at which the last of the others of each group came; NEVER_NS: there are none."""
        return self.groups.max(np.where(left_out, NEVER_NS, self.start_ns))

    def is_at(self, of_group: Ints) -> Flags:
        return self.numbers == self.groups.spread(of_group)

    def spread(self, of_group: np.ndarray) -> np.ndarray:
        return self.groups.spread(of_group)


def whole(rows: Collectives) -> Flags:
    """The rows of collectives in which every member that was read has a sample, and all samples are
    of the same call."""
    groups = Groups(rows.identity, rows.sequence)
    is_whole = (groups.counts == rows.members[groups.first]) & (groups.counts > 1)
    return groups.spread(is_whole & (groups.min(rows.call) == groups.max(rows.call)))


def has_root(rows: Collectives, groups: Groups) -> Flags:
    """For each group; false if the root was not read, or if ranks named different roots."""
    return groups.sum(rows.is_root.astype(np.int64)) == 1


def blocking_waits(
    rows: Collectives, start_ns: Ints, is_estimate: Flags, sources: Sources, texts: Texts
) -> list[Waits]:
    """The split of blocking collectives. start_ns: on the run's axis; is_estimate: durations
    decide."""
    parts = []
    for kind in KINDS:
        come = Come.among(rows, start_ns, (rows.kind == texts.number(kind)) & ~is_estimate)
        if len(come.rows):
            parts.append(_waits(come, _by_arrival(come, kind, sources), False))
    if is_estimate.any():
        come = Come.among(rows, start_ns, is_estimate)
        parts.append(_waits(come, _by_duration(come), True))
    return parts


def _waits(come: Come, found: Shares, is_estimate: bool) -> Waits:
    rows, nothing = come.rows, np.full(len(come.rows), NONE)
    duration_ns = rows.end_ns - rows.start_ns
    return Waits(
        rows.identity,
        rows.sequence,
        rows.world_rank,
        rows.call,
        rows.bytes,
        rows.region,
        come.start_ns,
        come.start_ns + duration_ns,
        found.wait_ns,
        duration_ns - found.wait_ns,
        found.alone_ns,
        found.last_rank,
        _is_waited_for(come, found.last_rank),
        np.full(len(rows), is_estimate),
        nothing,
        np.where(found.wait_ns > 0, rows.wait_state, NONE),
        nothing,
        nothing,
        np.ones(len(rows), np.int64),
        np.zeros(len(rows), bool),
    )


def _is_waited_for(come: Come, last_rank: Ints) -> Flags:
    """Whether any rank of the collective has this one as its last rank."""
    span = int(max(last_rank.max(initial=0), come.rows.world_rank.max(initial=0))) + 1
    group = come.groups.of_row * span
    is_some = last_rank != NONE
    return np.isin(group + come.rows.world_rank, np.unique(group[is_some] + last_rank[is_some]))


def _duration_ns(come: Come) -> Ints:
    return come.rows.end_ns - come.rows.start_ns


def _by_duration(come: Come) -> Shares:
    duration_ns = _duration_ns(come)
    shortest = come.groups.first_most(-duration_ns)
    excess_ns = duration_ns - come.spread(duration_ns[shortest])
    next_ns = -come.groups.max(np.where(come.is_at(shortest), NEVER_NS, -duration_ns))
    alone_ns = excess_ns - np.maximum(0, duration_ns - come.spread(next_ns))
    return Shares(excess_ns, alone_ns, come.spread(come.rows.world_rank[shortest]))


def awaited(come: Come, kind: str, sources: Sources) -> Awaited:
    """The one place that says whom each rank of a collective depends on."""
    rows, groups = come.rows, come.groups
    if kind == NEIGHBORS:
        return last_sources(rows.identity, rows.world_rank, groups, come.start_ns, sources)
    if kind == LOWER:
        return _lower(come)
    last = (
        groups.first_at(rows.is_root) if kind == ROOT_FIRST
        else come.last_but(rows.is_root & (kind == ROOT_LAST))
    )
    row = come.spread(last)
    if kind != ALL:
        row = np.where(rows.is_root == (kind == ROOT_LAST), row, -1)
    return Awaited(row, come.spread(come.time_but(come.is_at(last))))


def _lower(come: Come) -> Awaited:
    """Rank after rank, in all collectives at once."""
    groups, start_ns = come.groups, come.start_ns
    found = Awaited(np.full(groups.rows, -1), np.full(groups.rows, NEVER_NS))
    last, before_ns = groups.first.copy(), np.full(len(groups), NEVER_NS)
    for place in range(1, int(groups.counts.max())):
        more = groups.counts > place
        row = groups.first[more] + place
        found.row[row], found.second_ns[row] = last[more], before_ns[more]
        last_ns = start_ns[last[more]]
        is_later = start_ns[row] > last_ns
        before_ns[more] = np.where(
            is_later, last_ns, np.maximum(before_ns[more], start_ns[row])
        )
        last[more] = np.where(is_later, row, last[more])
    return found


def _by_arrival(come: Come, kind: str, sources: Sources) -> Shares:
    """Nobody is last where nobody waited, unless all wait for all."""
    row, second_ns = awaited(come, kind, sources)
    found = shares(
        come.start_ns, _duration_ns(come), np.where(row >= 0, come.start_ns[row], NEVER_NS),
        second_ns, come.rows.world_rank[row],
    )
    is_known = (found.wait_ns > 0) | (kind == ALL)
    return replace(found, last_rank=np.where(is_known, found.last_rank, NONE))


def completed_arrivals(
    rows: Collectives, start_ns: Ints, sources: Sources, texts: Texts
) -> list[Arrivals]:
    """Dependencies of each rank's completion of nonblocking collectives."""
    parts = []
    for kind in KINDS:
        come = Come.among(rows, start_ns, rows.kind == texts.number(kind))
        if len(come.rows):
            found = _arrivals(come, awaited(come, kind, sources))
            parts.append(found.take(come.rows.completed_ns != NONE))
    return parts


def _arrivals(come: Come, found: Awaited) -> Arrivals:
    rows = come.rows
    last_ns = np.where(found.row >= 0, come.start_ns[found.row], NEVER_NS)
    return Arrivals(
        rows.world_rank,
        rows.completed_ns,
        rows.identity,
        rows.sequence,
        rows.call,
        rows.bytes,
        rows.wait_state,
        last_ns,
        np.minimum(found.second_ns, last_ns),
        rows.world_rank[found.row],
        found.row == come.numbers,  # only where all wait for all
        np.full(len(rows), NONE),
        np.full(len(rows), NONE),
        np.ones(len(rows), bool),
    )

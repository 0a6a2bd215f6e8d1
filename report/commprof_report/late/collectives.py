"""Which rank each rank of a collective depends on, and how long it waited for it.

A rank waits from its own arrival until the last rank that it depends on arrives: all ranks in
Allreduce, Allgather, Alltoall, Reduce_scatter and Barrier; the root in Bcast and Scatter; all
others at the root of Reduce and Gather; the lower ranks in Scan; its neighbors in neighborhood
collectives. The rest of its call is transfer.

An NCCL collective lasts from the start of its kernel to its end; the call on the host shows
neither.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..base.arrays import np
from ..base.columns import NONE, Columns, Flags, Groups, Ints, TextInts, Texts
from .neighbors import Awaited, Sources, last_sources
from .waits import Arrivals, Shares, Waits, shares

NEVER_NS = -(1 << 62)
ALL, ROOT_FIRST, ROOT_LAST, LOWER, NEIGHBORS = (
    "all", "root-first", "root-last", "lower", "neighbors",
)
KINDS = (ALL, ROOT_FIRST, ROOT_LAST, LOWER)  # NEIGHBORS need more than the arrivals: neighbors.py


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
    ways = {**SHARES, NEIGHBORS: lambda come: _of_sources(come, sources)}
    known = [
        ((rows.kind == texts.number(kind)) & ~is_estimate, way, False) for kind, way in ways.items()
    ]
    parts = []
    for own, way, is_guess in (*known, (is_estimate, _by_duration, True)):
        if own.any():
            come = Come(rows.take(own), start_ns[own])
            parts.append(_waits(come, way(come), is_guess))
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


def _waited(found: Shares) -> Shares:
    """Nobody is last where nobody waited."""
    return Shares(found.wait_ns, found.alone_ns, np.where(found.wait_ns > 0, found.last_rank, NONE))


def _duration_ns(come: Come) -> Ints:
    return come.rows.end_ns - come.rows.start_ns


def _by_duration(come: Come) -> Shares:
    duration_ns = _duration_ns(come)
    shortest = come.groups.first_most(-duration_ns)
    excess_ns = duration_ns - come.spread(duration_ns[shortest])
    next_ns = -come.groups.max(np.where(come.is_at(shortest), NEVER_NS, -duration_ns))
    alone_ns = excess_ns - np.maximum(0, duration_ns - come.spread(next_ns))
    return Shares(excess_ns, alone_ns, come.spread(come.rows.world_rank[shortest]))


def _after(come: Come, last: Ints) -> Shares:
    """All ranks wait for that row of their group."""
    before_ns = come.time_but(come.is_at(last))
    times_ns = (come.spread(come.start_ns[last]), come.spread(before_ns))
    return shares(
        come.start_ns, _duration_ns(come), *times_ns, come.spread(come.rows.world_rank[last])
    )


def _all(come: Come) -> Shares:
    return _after(come, come.last_but(np.zeros(len(come.rows), bool)))


def _root_first(come: Come) -> Shares:
    return _waited(_after(come, come.groups.first_at(come.rows.is_root)))


def _root_last(come: Come) -> Shares:
    """Waiting of the root for the last rank; if several came last together, the highest one
    counts."""
    rows, is_root = come.rows, come.rows.is_root
    last_ns = come.time_but(is_root)
    is_last = ~is_root & (come.start_ns == come.spread(last_ns))
    last_rank = come.groups.max(np.where(is_last, rows.world_rank, -1))
    before_ns = come.time_but(is_root | (is_last & (rows.world_rank == come.spread(last_rank))))
    root = come.groups.first_at(is_root)
    before_ns = np.where(before_ns == NEVER_NS, come.start_ns[root], before_ns)
    found = shares(come.start_ns[root], _duration_ns(come)[root], last_ns, before_ns, last_rank)
    wait_ns, alone_ns, last = (
        np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64), np.full(len(rows), NONE),
    )
    wait_ns[root], alone_ns[root], last[root] = found.wait_ns, found.alone_ns, found.last_rank
    return _waited(Shares(wait_ns, alone_ns, last))


def _lower(come: Come) -> Shares:
    """Rank after rank, in all collectives at once."""
    start_ns, duration_ns, ranks = come.start_ns, _duration_ns(come), come.rows.world_rank
    found = Shares(
        np.zeros(len(ranks), np.int64), np.zeros(len(ranks), np.int64), np.full(len(ranks), NONE)
    )
    last, before_ns = come.groups.first.copy(), come.groups.min(start_ns)
    for place in range(1, int(come.groups.counts.max())):
        more = come.groups.counts > place
        row = come.groups.first[more] + place
        start, last_ns = start_ns[row], start_ns[last[more]]
        own = shares(
            start, duration_ns[row], last_ns, np.maximum(start, before_ns[more]), ranks[last[more]]
        )
        found.wait_ns[row], found.alone_ns[row], found.last_rank[row] = (
            own.wait_ns, own.alone_ns, own.last_rank,
        )
        is_later = start > last_ns
        before_ns[more] = np.where(is_later, last_ns, np.maximum(before_ns[more], start))
        last[more] = np.where(is_later, row, last[more])
    return _waited(found)


def _last_sources(come: Come, sources: Sources) -> Awaited:
    rows = come.rows
    return last_sources(rows.identity, rows.world_rank, come.groups, come.start_ns, sources)


def _of_sources(come: Come, sources: Sources) -> Shares:
    awaited = _last_sources(come, sources)
    depends = awaited.row >= 0
    last_ns = np.where(depends, come.start_ns[awaited.row], come.start_ns)
    last_rank = np.where(depends, come.rows.world_rank[awaited.row], NONE)
    times_ns = (come.start_ns, _duration_ns(come), last_ns, awaited.second_ns)
    return _waited(shares(*times_ns, last_rank))


SHARES = {ALL: _all, ROOT_FIRST: _root_first, ROOT_LAST: _root_last, LOWER: _lower}


def completed_arrivals(
    rows: Collectives, start_ns: Ints, sources: Sources, texts: Texts
) -> list[Arrivals]:
    """Dependencies of each rank's completion of nonblocking collectives."""
    parts = []
    for kind in (*KINDS, NEIGHBORS):
        own = rows.kind == texts.number(kind)
        if own.any():
            come = Come(rows.take(own), start_ns[own])
            awaited = _last_sources(come, sources) if kind == NEIGHBORS else None
            found = (
                _arrivals(come, awaited.row, False, awaited.second_ns) if awaited is not None
                else _arrivals(come, DEPENDS[kind](come), kind == ALL)
            )
            parts.append(found.take(come.rows.completed_ns != NONE))
    return parts


def _arrivals(
    come: Come, last: Ints, is_all: bool, others_ns: Ints | None = None
) -> Arrivals:
    """last: for each row the row whose arrival it depends on; -1: nobody's. others_ns: when the
    last of the others arrived on which it depends; without it, when the last of all others did."""
    rows, start_ns = come.rows, come.start_ns
    first = come.last_but(np.zeros(len(rows), bool))
    second_ns = come.time_but(come.is_at(first))
    without_ns = np.where(
        last == come.spread(first), come.spread(second_ns), come.spread(start_ns[first])
    )
    last_ns = np.where(last >= 0, start_ns[last], NEVER_NS)
    return Arrivals(
        rows.world_rank,
        rows.completed_ns,
        rows.identity,
        rows.sequence,
        rows.call,
        rows.bytes,
        rows.wait_state,
        last_ns,
        np.minimum(without_ns if others_ns is None else others_ns, last_ns),
        rows.world_rank[last],
        (start_ns > last_ns) if is_all else np.zeros(len(rows), bool),
        np.full(len(rows), NONE),
        np.full(len(rows), NONE),
        np.ones(len(rows), bool),
    )


def _last_other(come: Come) -> Ints:
    first = come.last_but(np.zeros(len(come.rows), bool))
    is_first = come.is_at(first)
    return np.where(is_first, come.spread(come.last_but(is_first)), come.spread(first))


def _root_of_others(come: Come) -> Ints:
    return np.where(come.rows.is_root, -1, come.spread(come.groups.first_at(come.rows.is_root)))


def _last_for_root(come: Come) -> Ints:
    return np.where(come.rows.is_root, come.spread(come.last_but(come.rows.is_root)), -1)


def _last_lower(come: Come) -> Ints:
    last = np.full(len(come.rows), -1)
    latest = come.groups.first.copy()
    for place in range(1, int(come.groups.counts.max())):
        more = come.groups.counts > place
        row = come.groups.first[more] + place
        last[row] = latest[more]
        latest[more] = np.where(come.start_ns[row] > come.start_ns[latest[more]], row, latest[more])
    return last


DEPENDS = {
    ALL: _last_other, ROOT_FIRST: _root_of_others, ROOT_LAST: _last_for_root, LOWER: _last_lower,
}

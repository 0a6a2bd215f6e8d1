"""Which rank each rank of a collective depends on, and how long it waited for it.

A rank waits from its own arrival until the last rank that it depends on arrives: all ranks in
Allreduce, Allgather, Alltoall, Reduce_scatter and Barrier; the root in Bcast and Scatter; all
others at the root of Reduce and Gather; the lower ranks in Scan; its neighbors in neighborhood
collectives. The rest of its call is transfer.

An NCCL collective lasts from the start of its kernel to its end; the call on the host shows
neither. In a neighborhood collective a rank depends on those that send to it in the communicator's
topology:

    rank 2  |========= computes =======>| Neighbor_alltoall
    rank 1  | Neighbor_alltoall  waits for 2             |     a ring: 0 receives from 3 and 1,
    rank 0  | Neighbor_alltoall |                              and does not wait
"""

from __future__ import annotations

from collections.abc import Iterator
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.arrays import np
from ..base.columns import (
    NONE, Columns, Flags, Groups, Ints, TextInts, Texts, found_in, numbered, pairs,
)
from ..base.members import Members
from .waits import Arrivals, Waits, shares

SQL = query.beside(__file__)
MOST_RANKS = 1 << 31
NEVER_NS = -(1 << 62)
# how long ranks waited, how much of that is due to one rank alone, and which one
Shares = tuple[Ints, Ints, Ints]
KINDS = ALL, ROOT_FIRST, ROOT_LAST, LOWER, NEIGHBORS = (
    "all", "root-first", "root-last", "lower", "neighbors",
)


class Collectives(Columns):
    """The samples of synchronizing collectives, and of the starts of persistent ones;
    reading.py. In order of collectives, and in each by the rank in the communicator. members: ranks
    of the communicator that were read. start_ns, end_ns, completed_ns: in the rank's own time.
    wait_split.py adds begun_ns, start_ns on the run's axis; and is_estimate: durations stand for
    arrivals."""


class Sources(NamedTuple):
    """An edge in each row: a rank receives from another one on a communicator. is_known: the ranks
    and communicators of which all edges are known, whether there are any or not."""

    identity: TextInts
    world_rank: Ints
    source: Ints
    known: tuple[TextInts, Ints]  # identity and rank


def sources(connection: Connection, texts: Texts) -> Sources:
    edges, known = [], []
    for rank, identity, text in SQL.run(connection, "sources"):
        members = Members(text)
        if text and not members.is_whole:
            continue
        known.append((texts.number(identity), rank))
        edges += [(*known[-1], source) for source in members.below(MOST_RANKS)]
    identity, world_rank, source = np.array(edges, np.int64).reshape(-1, 3).T
    of_known, known_rank = np.array(known, np.int64).reshape(-1, 2).T
    return Sources(identity, world_rank, source, (of_known, known_rank))


def have_sources(
    identity: TextInts, world_rank: Ints, groups: Groups, found: Sources
) -> Flags:
    """For each group of rows, a collective, whether those that its ranks depend on are known."""
    is_known = found_in((identity, world_rank), found.known) >= 0
    return groups.min(is_known.astype(np.int64)) == 1


class Awaited(NamedTuple):
    """For each row: the row of the source that arrived last (-1: it depends on nobody), and the
    arrival of the last of the others (NONE: there is none)."""

    row: Ints
    second_ns: Ints


def last_sources(
    identity: TextInts, world_rank: Ints, groups: Groups, start_ns: Ints, found: Sources
) -> Awaited:
    """Each group of rows is a collective; start_ns: on the run's axis."""
    count = len(identity)
    last, second_ns = np.full(count, -1), np.full(count, NONE)
    key = numbered(
        np.concatenate([identity, found.identity]), np.concatenate([world_rank, found.world_rank])
    )
    order = np.argsort(key[count:], kind="stable")
    row, edge = pairs(key[:count], key[count:][order])
    source = found.source[order][edge]
    is_other = source != world_rank[row]
    row, source = row[is_other], source[is_other]
    at = found_in((groups.of_row[row], source), (groups.of_row, world_rank))
    row, at = row[at >= 0], at[at >= 0]
    order = np.lexsort((at, -start_ns[at], row))
    row, at = row[order], at[order]
    edges = Groups(row)
    last[row[edges.first]] = at[edges.first]
    others_ns = np.where(at == last[row], NONE, start_ns[at])
    second_ns[row[edges.first]] = edges.max(others_ns)
    return Awaited(last, second_ns)


def groups_of(rows: Collectives) -> Groups:
    """A group for each collective."""
    return Groups(rows.identity, rows.sequence)


def whole(rows: Collectives) -> Flags:
    """The rows of collectives in which every member that was read has a sample, and all samples are
    of the same call."""
    groups = groups_of(rows)
    is_whole = (groups.counts == rows.members[groups.first]) & (groups.counts > 1)
    return groups.spread(is_whole & (groups.min(rows.call) == groups.max(rows.call)))


def has_root(rows: Collectives, groups: Groups) -> Flags:
    """For each group; false if the root was not read, or if ranks named different roots."""
    return groups.sum(rows.is_root.astype(np.int64)) == 1


def by_kind(
    rows: Collectives, sources: Sources, texts: Texts
) -> Iterator[tuple[str, Collectives, Awaited]]:
    """The rows of each kind, and whom each depends on."""
    for kind in KINDS:
        own = rows.take(rows.kind == texts.number(kind))
        if len(own):
            yield kind, own, awaited(own, kind, sources)


def blocking_waits(rows: Collectives, sources: Sources, texts: Texts) -> list[Waits]:
    """The split of blocking collectives; if it is an estimate, durations decide."""
    parts = [
        _waits(own, _by_arrival(own, found, kind))
        for kind, own, found in by_kind(rows.take(~rows.is_estimate), sources, texts)
    ]
    if rows.is_estimate.any():
        own = rows.take(rows.is_estimate)
        parts.append(_waits(own, _by_duration(own)))
    return parts


def _waits(rows: Collectives, found: Shares) -> Waits:
    nothing, duration_ns = np.full(len(rows), NONE), rows.end_ns - rows.start_ns
    wait_ns, alone_ns, last_rank = found
    return Waits(
        rows.identity,
        rows.sequence,
        rows.world_rank,
        rows.call,
        rows.bytes,
        rows.region,
        rows.begun_ns,
        rows.begun_ns + duration_ns,
        wait_ns,
        duration_ns - wait_ns,
        alone_ns,
        last_rank,
        _is_waited_for(rows, last_rank),
        rows.is_estimate,
        nothing,
        np.where(wait_ns > 0, rows.wait_state, NONE),
        nothing,
        nothing,
        np.ones(len(rows), np.int64),
        np.zeros(len(rows), bool),
    )


def _is_waited_for(rows: Collectives, last_rank: Ints) -> Flags:
    """Whether any rank of the collective has this one as its last rank."""
    span = int(max(last_rank.max(initial=0), rows.world_rank.max(initial=0))) + 1
    group = groups_of(rows).of_row * span
    is_some = last_rank != NONE
    return np.isin(group + rows.world_rank, np.unique(group[is_some] + last_rank[is_some]))


def _by_duration(rows: Collectives) -> Shares:
    groups, duration_ns = groups_of(rows), rows.end_ns - rows.start_ns
    shortest = groups.spread(groups.first_most(-duration_ns))
    excess_ns = duration_ns - duration_ns[shortest]
    is_shortest = np.arange(len(rows)) == shortest
    next_ns = -groups.max(np.where(is_shortest, NEVER_NS, -duration_ns))
    alone_ns = excess_ns - np.maximum(0, duration_ns - groups.spread(next_ns))
    return excess_ns, alone_ns, rows.world_rank[shortest]


def awaited(rows: Collectives, kind: str, sources: Sources) -> Awaited:
    """The one place that says whom each rank of a collective depends on."""
    groups, begun_ns = groups_of(rows), rows.begun_ns
    if kind == NEIGHBORS:
        return last_sources(rows.identity, rows.world_rank, groups, begun_ns, sources)
    if kind == LOWER:
        return _lower(groups, begun_ns)
    if kind == ROOT_FIRST:
        last = groups.first_at(rows.is_root)
    else:
        is_left_out = rows.is_root & (kind == ROOT_LAST)
        last = groups.first_most(np.where(is_left_out, NEVER_NS, begun_ns))
    row = groups.spread(last)
    others_ns = np.where(np.arange(len(rows)) == row, NEVER_NS, begun_ns)
    if kind != ALL:
        row = np.where(rows.is_root == (kind == ROOT_LAST), row, -1)
    return Awaited(row, groups.spread(groups.max(others_ns)))


def _lower(groups: Groups, start_ns: Ints) -> Awaited:
    """Rank after rank, in all collectives at once."""
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


def _last_ns(rows: Collectives, found: Awaited) -> Ints:
    return np.where(found.row >= 0, rows.begun_ns[found.row], NEVER_NS)


def _by_arrival(rows: Collectives, found: Awaited, kind: str) -> Shares:
    """Nobody is last where nobody waited, unless all wait for all."""
    wait_ns, alone_ns = shares(
        rows.begun_ns, rows.end_ns - rows.start_ns, _last_ns(rows, found), found.second_ns
    )
    is_known = (wait_ns > 0) | (kind == ALL)
    return wait_ns, alone_ns, np.where(is_known, rows.world_rank[found.row], NONE)


def completed_arrivals(rows: Collectives, sources: Sources, texts: Texts) -> list[Arrivals]:
    """Dependencies of each rank's completion of nonblocking collectives."""
    return [
        _arrivals(own, found).take(own.completed_ns != NONE)
        for _, own, found in by_kind(rows, sources, texts)
    ]


def _arrivals(rows: Collectives, found: Awaited) -> Arrivals:
    last_ns = _last_ns(rows, found)
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
        found.row == np.arange(len(rows)),  # only where all wait for all
        np.full(len(rows), NONE),
        np.full(len(rows), NONE),
        np.ones(len(rows), bool),
    )

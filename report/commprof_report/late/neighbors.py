"""Neighborhood collectives: a rank depends on those that send to it in the communicator's topology,
not on all.

    rank 2  |========= computes =======>| Neighbor_alltoall
    rank 1  | Neighbor_alltoall  waits for 2             |     a ring: 0 receives from 3 and 1,
    rank 0  | Neighbor_alltoall |                              and does not wait
"""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.arrays import np
from ..base.columns import NONE, Flags, Groups, Ints, TextInts, Texts, found_in, numbered, pairs
from ..base.members import Members

SQL = query.beside(__file__)
MOST_RANKS = 1 << 31


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
    if not len(row):
        return Awaited(last, second_ns)
    order = np.lexsort((at, -start_ns[at], row))
    row, at = row[order], at[order]
    first = Groups(row).first
    last[row[first]] = at[first]
    is_second = np.ones(len(row), bool)
    is_second[first] = False
    is_second &= at != last[row]
    of_second, place = np.unique(row[is_second], return_index=True)
    second_ns[of_second] = start_ns[at[is_second][place]]
    return Awaited(last, second_ns)

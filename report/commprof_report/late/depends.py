"""The one table of whom each rank of a collective depends on.

    kind         who is waited for   who waits       calls
    all          all                 all             Allreduce, Allgather, Alltoall, Barrier ...
    root-first   the root            the others      Bcast, Scatter
    root-last    the others          the root        Reduce, Gather
    lower        the lower ranks     all             Scan, Exscan
    neighbors    those that send     all             neighborhood collectives
                 to it in the communicator's topology

A rank waits from its own arrival until the last rank that it depends on arrives. The rest of its
call is transfer. An NCCL collective lasts from the start of its kernel to its end; the call on the
host shows neither. Messages and epochs depend on their other side (messages.py).

    rank 2  |========= computes =======>| Neighbor_alltoall
    rank 1  | Neighbor_alltoall  waits for 2             |     a ring: 0 receives from 3 and 1,
    rank 0  | Neighbor_alltoall |                              and does not wait

If durations stand for arrivals, the rank with the shortest call is assumed to have arrived last:
the ranks arrive so long before a common end as their calls last.

Here are, too, the columns of the operations that may have to wait, and of the split of calls into
waiting and transfer, and what rows with the same keys have: the one before, a number of all.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable

from ..base import (
    Columns,
    Connection,
    Flags,
    Groups,
    Ints,
    Members,
    NONE,
    Texts,
    found_in,
    grouped,
    np,
    numbered,
    pairs,
    query,
)

MOST_RANKS = 1 << 31
KINDS = ALL, ROOT_FIRST, ROOT_LAST, LOWER, NEIGHBORS = (
    "all",
    "root-first",
    "root-last",
    "lower",
    "neighbors",
)


class Collectives(Columns):
    """The samples of synchronizing collectives, and of the starts of persistent ones;
    reading.py. In order of collectives, and in each by the rank in the communicator. members: ranks
    of the communicator that were read. start_ns, end_ns, completed_ns: in the rank's own time.
    wait_split.py adds begun_ns, start_ns on the run's axis; and is_estimate: durations stand for
    arrivals."""


# An edge in each row, in order of these columns: a rank receives from another one on a
# communicator. known: the communicators and ranks of which all edges are known, whether there are
# any or not.
Sources = namedtuple("Sources", "identity world_rank source known")


def sources(connection: Connection, texts: Texts) -> Sources:
    edges, known = [], []
    for rank, identity, text in query.run(connection, "late/sources"):
        members = Members(text)
        if members.is_whole or not text:
            known.append((texts.number(identity), rank))
            edges += [
                (*known[-1], source) for source in members.below(MOST_RANKS) if source != rank
            ]
    identity, world_rank, source = np.array(sorted(edges), np.int64).reshape(-1, 3).T
    return Sources(identity, world_rank, source, np.array(known, np.int64).reshape(-1, 2).T)


def whole(rows: Collectives) -> Flags:
    """The rows of collectives in which every member that was read has a sample, and all samples are
    of the same call."""
    groups = Groups(rows.identity, rows.sequence)
    is_whole = (groups.counts == rows.members[groups.first]) & (groups.counts > 1)
    return groups.spread(is_whole & (groups.min(rows.call) == groups.max(rows.call)))


def operations_of(rows: Collectives, known: Sources, texts: Texts) -> Operations:
    """Each rank of these collectives."""
    arrived_ns = np.where(rows.is_estimate, rows.start_ns - rows.end_ns, rows.begun_ns)
    found = awaited(rows, arrived_ns, known, texts)
    after_ns = rows.begun_ns - arrived_ns
    last_ns = np.where(found >= 0, arrived_ns[found] + after_ns, LONG_AGO_NS)
    nothing = np.full(len(rows), NONE)
    return Operations(
        world_rank=rows.world_rank,
        identity=rows.identity,
        sequence=rows.sequence,
        call=rows.call,
        bytes=rows.bytes,
        wait_state=rows.wait_state,
        gone_ns=np.where(rows.is_blocking, rows.end_ns, rows.completed_ns),
        last_ns=last_ns,
        last_rank=rows.world_rank[found],
        is_last=found == np.arange(len(rows)),  # only where all wait for all
        is_estimate=rows.is_estimate,
        peer_ns=nothing,
        peer_gone_ns=nothing,
        is_known=np.ones(len(rows), bool),
    )


def awaited(rows: Collectives, arrived_ns: Ints, known: Sources, texts: Texts) -> Ints:
    """For each row that of the rank that arrived last of those that it depends on; -1: it depends
    on nobody."""
    groups = Groups(rows.identity, rows.sequence)
    is_of = {kind: rows.kind == texts.number(kind) for kind in KINDS}
    is_awaited = np.where(is_of[ROOT_FIRST], rows.is_root, ~(rows.is_root & is_of[ROOT_LAST]))
    waits = np.where(is_of[ROOT_LAST], rows.is_root, ~(rows.is_root & is_of[ROOT_FIRST]))
    last = groups.spread(groups.first_most(np.where(is_awaited, arrived_ns, LONG_AGO_NS)))
    found = np.where(waits, last, -1)
    _lower(found, np.flatnonzero(is_of[LOWER]), groups, arrived_ns)
    _neighbors(found, np.flatnonzero(is_of[NEIGHBORS]), rows, groups, arrived_ns, known)
    return found


def _lower(found: Ints, own: Ints, groups: Groups, arrived_ns: Ints) -> None:
    """Sets these rows. Ranks have numbers in the order of arrival, in one collective after the
    other; so the largest number up to a row is that of the last rank of its own collective."""
    order = np.lexsort((-own, arrived_ns[own], groups.of_row[own]))
    number = np.empty(len(own), np.int64)
    number[order] = np.arange(len(own))
    before = np.append(-1, np.maximum.accumulate(number))[:-1]
    first = np.arange(len(own)) - groups.place()[own]
    found[own] = np.where(before >= first, own[order[before]], -1)


def _neighbors(
    found: Ints, own: Ints, rows: Collectives, groups: Groups, arrived_ns: Ints, known: Sources
) -> None:
    """Sets these rows."""
    key = numbered(
        np.append(rows.identity[own], known.identity),
        np.append(rows.world_rank[own], known.world_rank),
    )
    row, edge = pairs(key[: len(own)], key[len(own) :])
    keys = groups.of_row[own], rows.world_rank[own]
    at = found_in((keys[0][row], known.source[edge]), keys)
    row, at = np.divmod(np.unique((row * len(own) + at)[at >= 0]), max(1, len(own)))
    row, at = own[row], own[at]
    at = at[np.lexsort((at, -arrived_ns[at], row))]
    first = Groups(row).first
    found[own] = -1
    found[row[first]] = at[first]


def before(*keys: np.ndarray) -> Ints:
    """Row of the one before each one that has the same keys; -1: there is none."""
    order, groups = grouped(*keys)
    found = np.full(len(order), -1)
    found[order[1:]] = np.where(groups.of_row[1:] == groups.of_row[:-1], order[:-1], -1)
    return found


def of_alike(of: Callable[[Groups, Ints], Ints], values: Ints, *keys: np.ndarray) -> Ints:
    """For each row a whole number of all that have the same keys. of: gives it for groups of the
    values."""
    order, groups = grouped(*keys)
    found = np.empty(len(order), np.int64)
    found[order] = groups.spread(of(groups, values[order]))
    return found


LONG_AGO_NS = NONE  # before all times


class Operations(Columns):
    """Things that a rank may wait for: its part of a collective, a side of a message, a partner of
    an epoch. Times are on the run's axis, but for gone_ns.

    world_rank
    gone_ns       return of the call that completed it, in the rank's own time
    identity, call, bytes
    sequence      of a collective; NONE: a message
    wait_state    if the rank waited
    last_ns       when the last rank that it depends on arrived; LONG_AGO_NS: it does not wait
    last_rank
    is_last       all wait for all, and the rank itself arrived last
    is_estimate   durations stand for arrivals
    peer_ns       of a message: when last_rank posted its side, waited for or not; else NONE
    peer_gone_ns  when that side was complete; NONE: a collective, or not known
    is_known      False: it is not known on whose arrival it depends
    """


class Waits(Columns):
    """One row for each rank of a sampled collective, and for each call that sent, received or
    completed messages: how long the rank waited, and for which one. Times are on the run's axis.

    identity, world_rank, call, bytes, region, start_ns, end_ns
    sequence       of a message a negative number of its own
    wait_ns, transfer_ns    the latter is the rest of the call
    last_rank      whose arrival ended the wait; NONE: no wait
    is_last        all wait for all, and the rank itself arrived last
    is_estimate    derived from durations, because the clocks are not accurate enough
    completion     the call that completed requests, in which the rank waited; the row has its times
                   and its region, and is of the collective or message that decided when the call
                   could return. NONE: a blocking call
    wait_state     the kind of waiting, as docs/METHODS.md defines it; NONE: no wait
    peer, peer_ns  of a message, its other rank, waited for or not, and when that posted its side;
                   NONE: a collective
    operations     that the call was, or completed
    is_polled      in unsuccessful polls before the call, which has a row of its own
    """

    @property
    def is_blocking_collective(self) -> Flags:
        return (self.completion < 0) & (self.sequence > 0)

"""Waiting for progress: what is left of a call after the last rank has begun may be a wait, too.

Most MPI libraries move a message, or the parts of a collective, only while the ranks are inside
MPI. A rank that has begun its part and computes holds up the others until it comes back; so does
one that has not come yet to a collective in which the others depend on it without knowing, such as
the inner ranks of a Bcast's tree.

    rank 0  | Iallreduce | Wait   waits for progress of rank 1        | moves data |
    rank 1  | Iallreduce |====== outside MPI ========================>| Wait       |

Of what a call takes after the last arrival, the least of all ranks and all such calls of this size
(on this communicator) moves data. The excess over it is a wait for that partner of the operation
which was outside MPI for longest meanwhile, as far as it was, if

- it came back into MPI before the call returned, and its own part was not complete before, and
- it was outside for three quarters of the excess or more.

The rest is not known, and stays with transfer.
"""

from __future__ import annotations

from ..base.columns import (
    NONE, Columns, Flags, Groups, Ints, Texts, found_in, grouped, joined, np, pairs,
)
from ..base.thresholds import threshold
from .depends import Collectives
from .timelines import OUTSIDE, Lines
from .waits import Waits

NO_PROGRESS, LATE_PARTNER = ("no progress", "late partner")
MOST_PARTNERS = 4  # of a collective


def waiting_for_progress(
    waits: Waits, operations: Columns, parts: Collectives, lines: Lines, texts: Texts
) -> Waits:
    """The waits with those for progress. parts: the ranks of collectives in which not all depend on
    all, or that are not blocking; gone_ns: their part was complete. lines: of the calls, whatever
    was split of them."""
    excess_ns = _excess_ns(waits)
    operations = operations.take(excess_ns[operations.wait] > 0)
    held = joined(
        Columns,
        [_messages(waits, operations), _collectives(waits, operations, parts, lines)],
    )
    held = held.take(held.partner != waits.world_rank[held.wait])
    outside_ns = _outside_ns(lines, held.partner, _arrived_ns(waits)[held.wait], held.until_ns)
    held = held.changed(held_ns=np.minimum(outside_ns, excess_ns[held.wait]))
    return _with(waits, _longest(waits, held, excess_ns), texts)


def _arrived_ns(waits: Waits) -> Ints:
    return waits.start_ns + waits.wait_ns


def _excess_ns(waits: Waits) -> Ints:
    """How much longer each transfer is than the least of such calls."""
    order, groups = grouped(
        waits.call, waits.identity, waits.bytes, waits.completion,
        waits.is_estimate | waits.is_polled,
    )
    least_ns = np.empty(len(waits), np.int64)
    least_ns[order] = groups.spread(groups.min(waits.transfer_ns[order]))
    return np.where(waits.is_estimate | waits.is_polled, 0, waits.transfer_ns - least_ns)


def _messages(waits: Waits, operations: Columns) -> Columns:
    """Partners that may have held up a call: until its return, or the end of the partner's part,
    whichever is earlier. wait: row of Waits; begun_ns: of the partner's part."""
    own = operations.take(operations.peer != NONE)
    end_ns = waits.end_ns[own.wait]
    until_ns = np.where(own.peer_gone_ns == NONE, end_ns, np.minimum(own.peer_gone_ns, end_ns))
    return Columns(
        wait=own.wait, partner=own.peer, begun_ns=np.full(len(own), NONE), until_ns=until_ns
    )


def _collectives(
    waits: Waits, operations: Columns, parts: Collectives, lines: Lines
) -> Columns:
    """Only those partners of each that were outside MPI for longest while others were in it."""
    own = operations.take(operations.peer == NONE)
    order, groups = grouped(own.identity, own.sequence)
    own = own.take(order)
    since_ns = groups.min(_arrived_ns(waits)[own.wait])
    last_ns = groups.max(waits.end_ns[own.wait])
    first = own.take(groups.first)
    group = found_in((parts.identity, parts.sequence), (first.identity, first.sequence))
    parts, group = parts.take(group >= 0), group[group >= 0]
    parts_until_ns = np.where(parts.gone_ns == NONE, last_ns[group], parts.gone_ns)
    parts_until_ns = np.minimum(parts_until_ns, last_ns[group])
    outside_ns = _outside_ns(lines, parts.world_rank, since_ns[group], parts_until_ns)
    order = np.lexsort((-outside_ns, group))
    place = np.arange(len(group)) - np.searchsorted(group[order], group[order])
    chosen = order[(place < MOST_PARTNERS) & (outside_ns[order] > 0)]
    parts, group, until_ns = parts.take(chosen), group[chosen], parts_until_ns[chosen]
    row, entry = pairs(groups.of_row, group)
    wait = own.wait[row]
    return Columns(
        wait=wait, partner=parts.world_rank[entry], begun_ns=parts.begun_ns[entry],
        until_ns=np.minimum(until_ns[entry], waits.end_ns[wait]),
    )


def _outside_ns(lines: Lines, ranks: Ints, since_ns: Ints, until_ns: Ints) -> Ints:
    """How long each rank was outside MPI, up to its last call that began before until_ns."""
    back_ns = np.maximum(since_ns, lines.last_inside(ranks, until_ns))
    return lines.spent_between(ranks, since_ns, back_ns)[:, OUTSIDE]


def _longest(waits: Waits, held: Columns, excess_ns: Ints) -> Columns:
    """The one of several partners that held a call up for longest. second_ns: how long the call
    would have waited for others alone. A wait for another rank before must not be the longer one: a
    call waits for one rank."""
    held = held.take(np.lexsort((-held.held_ns, held.wait)))
    groups = Groups(held.wait)
    second_ns = groups.max(np.where(groups.place() > 0, held.held_ns, 0))
    held = held.take(groups.first).changed(second_ns=second_ns)
    is_same = waits.last_rank[held.wait] == held.partner
    is_longer = is_same | (held.held_ns >= waits.wait_ns[held.wait])
    return held.take(
        is_longer & (held.held_ns > 0) & is_explained(held.held_ns, excess_ns[held.wait])
    )


def is_explained(held_ns: Ints, excess_ns: Ints) -> Flags:
    return held_ns >= threshold("late.progress") * excess_ns


def _with(waits: Waits, found: Columns, texts: Texts) -> Waits:
    before, is_message = waits.take(found.wait), waits.peer[found.wait] != NONE
    is_same = before.last_rank == found.partner
    has_begun = (found.begun_ns == NONE) | (found.begun_ns <= _arrived_ns(before))
    state = np.where(has_begun, texts.number(NO_PROGRESS), texts.number(LATE_PARTNER))
    columns = {
        "wait_ns": before.wait_ns + found.held_ns,
        "transfer_ns": before.transfer_ns - found.held_ns,
        "alone_ns": np.where(is_same, before.alone_ns, 0) + found.held_ns - found.second_ns,
        "last_rank": found.partner,
        "wait_state": np.where(found.held_ns >= before.wait_ns, state, before.wait_state),
        "peer": np.where(is_message, found.partner, NONE),
        "peer_ns": np.where(is_message, _arrived_ns(before) + found.held_ns, NONE),
    }
    for name, values in columns.items():
        columns[name] = getattr(waits, name).copy()
        columns[name][found.wait] = values
    return waits.changed(**columns)

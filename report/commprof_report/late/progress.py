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

from dataclasses import dataclass, replace

from ..base.arrays import np
from ..base.columns import (
    NONE,
    Columns,
    Flags,
    Ints,
    TextInts,
    Texts,
    found_in,
    grouped,
    joined,
    pairs,
)
from ..base.thresholds import threshold
from .timelines import OUTSIDE, Lines
from .waits import Operations, Waits

NO_PROGRESS, LATE_PARTNER = ("no progress", "late partner")
EXPLAINED = threshold("late.progress")
MOST_PARTNERS = 4  # of a collective


@dataclass(frozen=True)
class Parts(Columns):
    """The ranks of collectives in which not all depend on all, or that are not blocking. Times are
    on the run's axis."""

    identity: TextInts
    sequence: Ints
    world_rank: Ints
    begun_ns: Ints
    gone_ns: Ints  # its part was complete; NONE: not known


@dataclass(frozen=True)
class Held(Columns):
    """A partner that may have held up a call."""

    wait: Ints  # row of Waits
    partner: Ints
    begun_ns: Ints
    until_ns: Ints  # return of the call, or the end of the partner's part, whichever is earlier


@dataclass(frozen=True)
class Progress(Columns):
    """A call that waited for progress of a partner."""

    wait: Ints  # row of Waits
    partner: Ints
    held_ns: Ints  # how long
    second_ns: Ints  # how long it would have waited for others alone
    has_begun: Flags  # the partner had begun its part before


def waiting_for_progress(
    waits: Waits, operations: Operations, parts: Parts, lines: Lines, texts: Texts
) -> Waits:
    """The waits with those for progress. lines: of the calls, whatever was split of them."""
    excess_ns = _excess_ns(waits)
    operations = operations.take(excess_ns[operations.wait] > 0)
    found = _messages(waits, operations), _collectives(waits, operations, parts, lines)
    held = joined(Held, found)
    held = held.take(held.partner != waits.world_rank[held.wait])
    held_ns = np.minimum(_outside_ns(waits, held, lines), excess_ns[held.wait])
    return _with(waits, _longest(waits, held, held_ns, excess_ns), texts)


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


def _messages(waits: Waits, operations: Operations) -> Held:
    own = operations.take(operations.peer != NONE)
    end_ns = waits.end_ns[own.wait]
    until_ns = np.where(own.peer_gone_ns == NONE, end_ns, np.minimum(own.peer_gone_ns, end_ns))
    return Held(own.wait, own.peer, np.full(len(own), NONE), until_ns)


def _collectives(waits: Waits, operations: Operations, parts: Parts, lines: Lines) -> Held:
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
    outside_ns = _spent_outside_ns(lines, parts.world_rank, since_ns[group], parts_until_ns)
    order = np.lexsort((-outside_ns, group))
    place = np.arange(len(group)) - np.searchsorted(group[order], group[order])
    chosen = order[(place < MOST_PARTNERS) & (outside_ns[order] > 0)]
    parts, group, until_ns = parts.take(chosen), group[chosen], parts_until_ns[chosen]
    row, entry = pairs(groups.of_row, group)
    wait = own.wait[row]
    return Held(
        wait, parts.world_rank[entry], parts.begun_ns[entry],
        np.minimum(until_ns[entry], waits.end_ns[wait]),
    )


def _outside_ns(waits: Waits, held: Held, lines: Lines) -> Ints:
    return _spent_outside_ns(lines, held.partner, _arrived_ns(waits)[held.wait], held.until_ns)


def _spent_outside_ns(lines: Lines, ranks: Ints, since_ns: Ints, until_ns: Ints) -> Ints:
    """How long each rank was outside MPI, up to its last call that began before until_ns."""
    back_ns = np.maximum(since_ns, lines.last_inside(ranks, until_ns))
    return lines.spent_between(ranks, since_ns, back_ns)[:, OUTSIDE]


def _longest(waits: Waits, held: Held, held_ns: Ints, excess_ns: Ints) -> Progress:
    """The one of several partners that held a call up for longest."""
    order = np.lexsort((-held_ns, held.wait))
    held, held_ns = held.take(order), held_ns[order]
    _, groups = grouped(held.wait)
    first = groups.first
    is_first = np.arange(len(held)) == groups.spread(first)
    longest = held.take(first)
    found = Progress(
        longest.wait, longest.partner, held_ns[first],
        groups.max(np.where(is_first, 0, held_ns)),
        (longest.begun_ns == NONE) | (longest.begun_ns <= _arrived_ns(waits)[longest.wait]),
    )
    return found.take(_counts(waits, found, excess_ns))


def _counts(waits: Waits, found: Progress, excess_ns: Ints) -> Flags:
    """A wait for another rank before must not be the longer one: a call waits for one rank."""
    is_same = waits.last_rank[found.wait] == found.partner
    is_longer = is_same | (found.held_ns >= waits.wait_ns[found.wait])
    return is_longer & (found.held_ns > 0) & is_explained(found.held_ns, excess_ns[found.wait])


def is_explained(held_ns: Ints, excess_ns: Ints) -> Flags:
    return held_ns >= EXPLAINED * excess_ns


def _with(waits: Waits, found: Progress, texts: Texts) -> Waits:
    rows, before = found.wait, waits.take(found.wait)
    is_same = before.last_rank == found.partner
    state = np.where(found.has_begun, texts.number(NO_PROGRESS), texts.number(LATE_PARTNER))
    is_longer = found.held_ns >= before.wait_ns
    is_message = before.peer != NONE
    return replace(
        waits,
        wait_ns=_changed(waits.wait_ns, rows, before.wait_ns + found.held_ns),
        transfer_ns=_changed(waits.transfer_ns, rows, before.transfer_ns - found.held_ns),
        alone_ns=_changed(
            waits.alone_ns, rows,
            np.where(is_same, before.alone_ns, 0) + found.held_ns - found.second_ns,
        ),
        last_rank=_changed(waits.last_rank, rows, found.partner),
        wait_state=_changed(
            waits.wait_state, rows, np.where(is_longer, state, before.wait_state)
        ),
        peer=_changed(waits.peer, rows, np.where(is_message, found.partner, NONE)),
        peer_ns=_changed(
            waits.peer_ns, rows, np.where(is_message, _arrived_ns(before) + found.held_ns, NONE)
        ),
    )


def _changed(column: np.ndarray, rows: Ints, values: np.ndarray) -> np.ndarray:
    column = column.copy()
    column[rows] = values
    return column

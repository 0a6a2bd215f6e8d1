"""The wait split: which rank arrived last in each sampled collective and message, and how long the
others waited for it.

This is the only analysis of waiting: every statement about waiting and late ranks is derived from
it.

    sampled collectives, blocking --> who came last (collectives.py) ------------------------> Waits
                         others   --> what a completion depends on (collectives.py) -+
    sampled messages              --> both sides, by number (messages.py) -----------+-> by call
    epochs of windows             --> both sides, by number (epochs.py) -------------+
                                                                        (arrivals.py) ----> Waits
    Waits, and what ranks did meanwhile --> waiting for progress (progress.py) ------------> Waits

If the clock error may exceed half the median duration of such a call (clocks.py), arrival times are
not used. Then the rank with the shortest blocking call is assumed to have arrived last, and the
excess of the other calls over it is waiting.

A rank waits for a nonblocking or persistent collective or message in the call that completes it
(Wait, Test): from the entry of that call until the last rank has started the collective, or the
other side has posted the message.
"""

from __future__ import annotations

from dataclasses import replace
from sqlite3 import Connection
from typing import NamedTuple

from ..base.arrays import np
from ..base.columns import NONE, Flags, Groups, Ints, TextInts, Texts, joined
from ..run.alignment import Alignment
from ..run.selection import Selection
from .arrivals import calls_left, completed, completing
from .clocks import Clocks
from .epochs import epoch_arrivals
from .collectives import (
    ALL,
    LOWER,
    NEIGHBORS,
    Collectives,
    blocking_waits,
    completed_arrivals,
    has_root,
    whole,
)
from .known import Known
from .messages import messages
from .neighbors import Sources, have_sources, sources
from .progress import Parts, waiting_for_progress
from .reading import sampled_collectives
from .retimed import Recorded
from .samples import samples
from .timelines import Called, called, timelines
from .waits import Arrivals, Operations, Waits


class WaitSplit(NamedTuple):
    """The split of a run's collectives and messages, whatever the user chose."""

    waits: Waits
    called: Called
    texts: Texts
    recorded: Recorded
    error_ns: float  # the largest clock error among the collectives split by arrival times
    # chosen ones not split: clocks too inaccurate and durations no substitute, or the root was not
    # read
    unsure: int
    # chosen nonblocking or persistent ones not split: the call that completed them is not sampled
    uncompleted: int
    unmatched: int  # chosen messages not split, each side's counted: their other side is not known
    unnumbered: int  # receives among them that have no number


class Chosen:
    """Whether the user chose a call on a communicator."""

    def __init__(self, connection: Connection) -> None:
        self.calls = {call for (call,) in connection.execute("SELECT call FROM selected_call")}
        self.identities = {
            identity
            for (identity,) in connection.execute("SELECT identity FROM selected_communicator")
        }

    def among(self, calls: TextInts, identities: TextInts, texts: Texts) -> Flags:
        return texts.among(calls, self.calls) & texts.among(identities, {None, *self.identities})


def wait_split(run: Selection, alignment: Alignment, known: Known) -> WaitSplit:
    """The run must have been opened with samples."""
    connection, texts = run.connection, Texts()
    chosen, clocks = Chosen(connection), Clocks(connection, alignment, known)
    rows = sampled_collectives(connection, texts)
    rows = rows.take(whole(rows))
    start_ns = alignment.aligned(rows.world_rank, rows.start_ns)
    edges = sources(connection, texts)
    is_estimate, is_sure = _judge(rows, clocks, edges, texts)
    first = Groups(rows.identity, rows.sequence).first
    left_out = first[~is_sure[first]]
    unsure = int(chosen.among(rows.call[left_out], rows.identity[left_out], texts).sum())
    blocking, others = is_sure & rows.is_blocking, is_sure & ~rows.is_blocking
    split = blocking_waits(
        rows.take(blocking), start_ns[blocking], is_estimate[blocking], edges, texts
    )
    arrived = completed_arrivals(rows.take(others), start_ns[others], edges, texts)
    found = messages(connection, alignment, clocks, known, chosen.among, texts)
    of_epochs, is_unsure = epoch_arrivals(connection, alignment, clocks, known, texts)
    is_unsure &= chosen.among(of_epochs.call, of_epochs.identity, texts)
    unsure += int(is_unsure.sum())
    arrivals = joined(Arrivals, [*arrived, found.arrivals, of_epochs])
    sampled = samples(connection, known, texts)
    calls = completing(connection, sampled, known, texts)
    completed_waits, operations, left = completed(
        arrivals, calls, alignment.aligned(calls.world_rank, calls.start_ns)
    )
    unseen = arrivals.take(left)
    uncompleted = found.uncompleted + calls_left(
        unseen, chosen.among(unseen.call, unseen.identity, texts)
    )
    recorded = Recorded(rows.take(is_sure), start_ns[is_sure], is_estimate[is_sure], arrivals)
    counts = (unsure + found.unsure, uncompleted, found.unmatched, found.unnumbered)
    waits, number = joined(Waits, [*split, completed_waits]), sum(map(len, split))
    operations = joined(
        Operations,
        [
            _rooted(waits.take(slice(number)), known, texts),
            replace(operations, wait=operations.wait + number),
        ],
    )
    own_calls = called(connection, alignment, sampled, known, texts)
    if len(operations):
        lines = timelines(own_calls, waits.take(slice(0)), texts)
        parts = _parts(rows, start_ns, alignment, texts)
        waits = waiting_for_progress(waits, operations, parts, lines, texts)
    return WaitSplit(waits, own_calls, texts, recorded, clocks.error_ns, *counts)


def _rooted(waits: Waits, known: Known, texts: Texts) -> Operations:
    """The blocking collectives in which not all depend on all, but on each other in the library's
    algorithm."""
    wait = np.flatnonzero(
        known.which(waits.call, texts, lambda call: call.is_rooted and call.kind != NEIGHBORS)
    )
    nothing = np.full(len(wait), NONE)
    return Operations(wait, waits.identity[wait], waits.sequence[wait], nothing, nothing)


def _parts(rows: Collectives, start_ns: Ints, alignment: Alignment, texts: Texts) -> Parts:
    own = ~rows.is_blocking | (rows.kind != texts.number(ALL))
    rows = rows.take(own)
    gone_ns = np.where(rows.is_blocking, rows.end_ns, rows.completed_ns)
    is_known = gone_ns != NONE
    gone_ns[is_known] = alignment.aligned(rows.world_rank[is_known], gone_ns[is_known])
    return Parts(rows.identity, rows.sequence, rows.world_rank, start_ns[own], gone_ns)


def _judge(
    rows: Collectives, clocks: Clocks, edges: Sources, texts: Texts
) -> tuple[Flags, Flags]:
    """For each row, whether only durations can split its collective, and whether it can be split at
    all."""
    groups = Groups(rows.identity, rows.sequence)
    is_estimate = ~clocks.resolve(rows, groups, texts)
    kind = rows.kind[groups.first]
    of_neighbors = kind == texts.number(NEIGHBORS)
    is_rooted = (kind != texts.number(ALL)) & (kind != texts.number(LOWER)) & ~of_neighbors
    needs_times = (kind != texts.number(ALL)) | ~rows.is_blocking[groups.first]
    is_sure = ~(needs_times & is_estimate) & ~(is_rooted & ~has_root(rows, groups))
    is_sure &= ~of_neighbors | have_sources(rows.identity, rows.world_rank, groups, edges)
    return groups.spread(is_estimate), groups.spread(is_sure)

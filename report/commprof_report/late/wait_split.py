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

from typing import NamedTuple

from ..base.arrays import np
from ..base.columns import NONE, Columns, Flags, Groups, Texts, joined
from ..run.alignment import Alignment
from ..run.selection import Selection
from .arrivals import calls_left, completed, completing
from .clocks import Clocks
from .epochs import epoch_arrivals, sampled_epochs
from .collectives import (
    ALL,
    LOWER,
    NEIGHBORS,
    Collectives,
    Sources,
    blocking_waits,
    completed_arrivals,
    has_root,
    have_sources,
    sources,
    whole,
)
from .known import Known
from .messages import Left, messages
from .progress import waiting_for_progress
from .reading import (
    are_chosen, median_durations, message_sides, sampled_collectives, samples,
)
from .retimed import Recorded
from .timelines import Called, called, timelines
from .waits import Arrivals, Waits


class WaitSplit(NamedTuple):
    """The split of a run's collectives and messages, whatever the user chose."""

    waits: Waits
    called: Called
    texts: Texts
    recorded: Recorded
    error_ns: float  # the largest clock error among the collectives split by arrival times
    left: Left


def wait_split(run: Selection, alignment: Alignment, known: Known) -> WaitSplit:
    """The run must have been opened with samples."""
    connection, texts = run.connection, Texts()
    rows, epochs = sampled_collectives(connection, texts), sampled_epochs(connection, texts)
    sides, edges = message_sides(connection, known, texts), sources(connection, texts)
    clocks = Clocks(connection, alignment, lambda: median_durations(rows, sides, epochs, texts))
    collectives = rows.take(whole(rows))
    is_estimate, is_sure = _judge(collectives, clocks, edges, texts)
    collectives = collectives.changed(
        begun_ns=alignment.aligned(collectives.world_rank, collectives.start_ns),
        is_estimate=is_estimate,
    )
    sure = collectives.take(is_sure)
    split = blocking_waits(sure.take(sure.is_blocking), edges, texts)
    arrived = completed_arrivals(sure.take(~sure.is_blocking), edges, texts)
    of_messages, left = messages(connection, alignment, clocks, sides, texts)
    of_epochs, is_unsure = epoch_arrivals(connection, alignment, clocks, epochs, known, texts)
    arrivals = joined(Arrivals, [*arrived, of_messages, of_epochs])
    sampled = samples(connection, known, texts)
    calls = completing(connection, sampled, known, texts)
    completed_waits, operations, unseen = completed(
        arrivals, calls, alignment.aligned(calls.world_rank, calls.start_ns)
    )

    def chosen(rows: Columns) -> Flags:
        return are_chosen(connection, texts, call=rows.call, identity=rows.identity)

    first = Groups(collectives.identity, collectives.sequence).first
    unsure = collectives.take(first[~is_sure[first]]), of_epochs.take(is_unsure)
    left = left._replace(
        unsure=left.unsure + sum(int(chosen(rows).sum()) for rows in unsure),
        uncompleted=left.uncompleted + calls_left(arrivals.take(unseen), chosen),
    )
    waits, number = joined(Waits, [*split, completed_waits]), sum(map(len, split))
    operations = joined(
        Columns,
        [
            _rooted(waits.take(slice(number)), known, texts),
            operations.changed(wait=operations.wait + number),
        ],
    )
    own_calls = called(connection, alignment, sampled, known, texts)
    if len(operations):
        lines = timelines(own_calls, waits.take(slice(0)), texts)
        parts = _parts(collectives, alignment, texts)
        waits = waiting_for_progress(waits, operations, parts, lines, texts)
    return WaitSplit(waits, own_calls, texts, Recorded(sure, arrivals), clocks.error_ns, left)


def _rooted(waits: Waits, known: Known, texts: Texts) -> Columns:
    """The blocking collectives in which not all depend on all, but on each other in the library's
    algorithm."""
    wait = np.flatnonzero(
        known.which(waits.call, texts, lambda call: call.is_rooted and call.kind != NEIGHBORS)
    )
    nothing = np.full(len(wait), NONE)
    return Columns(
        wait=wait, identity=waits.identity[wait], sequence=waits.sequence[wait], peer=nothing,
        peer_gone_ns=nothing,
    )


def _parts(rows: Collectives, alignment: Alignment, texts: Texts) -> Collectives:
    """The ranks of collectives in which not all depend on all, or that are not blocking. gone_ns:
    when its part was complete, on the run's axis; NONE: not known."""
    rows = rows.take(~rows.is_blocking | (rows.kind != texts.number(ALL)))
    gone_ns = np.where(rows.is_blocking, rows.end_ns, rows.completed_ns)
    aligned_ns = alignment.aligned(rows.world_rank, gone_ns)
    return rows.changed(gone_ns=np.where(gone_ns == NONE, NONE, aligned_ns))


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

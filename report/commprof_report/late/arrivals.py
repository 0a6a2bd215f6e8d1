"""Dependencies of calls that complete operations: the ranks that these wait for, and when each of
them arrived.

A call may complete several operations: requests of collectives and messages, both messages of a
Sendrecv. The operation that is ready last decides when it can return. A call of which any
operation's arrival is not known is not split.
"""

from __future__ import annotations

from collections.abc import Callable
from sqlite3 import Connection

from ..base.arrays import np
from ..base.columns import NONE, Columns, Flags, Groups, Ints, Texts, found_in, grouped, joined
from ..run.sampled import Calls
from .known import Known
from .reading import region_names
from .waits import Arrivals, Waits, shares


def completing(connection: Connection, rows: Calls, known: Known, texts: Texts) -> Calls:
    """The sampled calls that complete requests, or send, receive or find a message and return when
    that is done. completion: NONE for the latter. region: its name."""
    rows = rows.take(known.which(rows.call, texts, lambda call: call.is_completing))
    rows = rows.take(np.lexsort((rows.end_ns, rows.world_rank)))
    is_completion = known.which(rows.call, texts, lambda call: call.family == "completion")
    return rows.changed(
        completion=np.where(is_completion, rows.call, NONE),
        region=region_names(connection, rows.world_rank, rows.region, texts),
    )


def completed(
    arrivals: Arrivals, calls: Calls, start_ns: Ints
) -> tuple[Waits, Columns, Ints]:
    """The split of these calls, whose begins on the run's axis are start_ns, then of unsuccessful
    polls before them; what they completed; and the rows of arrivals whose calls are not sampled."""
    order, groups = grouped(arrivals.world_rank, arrivals.gone_ns)
    arrivals = arrivals.take(order)
    keys = arrivals.world_rank[groups.first], arrivals.gone_ns[groups.first]
    call = found_in(keys, (calls.world_rank, calls.end_ns))
    is_known = groups.sum((~arrivals.is_known).astype(np.int64)) == 0
    # the operation that was ready last, the first of several
    ready = groups.first_most(arrivals.last_ns)
    others_ns = np.where(
        arrivals.last_rank == groups.spread(arrivals.last_rank[ready]), arrivals.without_ns,
        arrivals.last_ns,
    )
    split = np.flatnonzero((call >= 0) & is_known)
    split = split[np.argsort(call[split], kind="stable")]
    parts = (
        arrivals.take(ready[split]), groups.max(others_ns)[split], calls.take(call[split]),
        start_ns[call[split]], groups.counts[split],
    )
    waits = _waits(*parts)
    waits = joined(Waits, [waits, _polls(*parts[:4], waits)])
    return waits, _operations(arrivals, groups, split), order[groups.spread(call < 0)]


def _operations(arrivals: Arrivals, groups: Groups, split: Ints) -> Columns:
    """The operations that calls completed; wait: row of Waits; peer: of a message, the other rank,
    NONE: a collective; peer_gone_ns: when that side was complete. split: of each of the waits its
    group of arrivals."""
    wait_of_group = np.full(len(groups), -1)
    wait_of_group[split] = np.arange(len(split))
    wait = groups.spread(wait_of_group)
    is_message = arrivals.peer_ns != NONE
    found = Columns(
        wait=wait, identity=arrivals.identity, sequence=arrivals.sequence,
        peer=np.where(is_message, arrivals.last_rank, NONE), peer_gone_ns=arrivals.peer_gone_ns,
    )
    return found.take(wait >= 0)


def _waits(
    ready: Arrivals, others_ns: Ints, calls: Calls, start_ns: Ints, operations: Ints
) -> Waits:
    duration_ns = calls.end_ns - calls.start_ns
    wait_ns, alone_ns = shares(start_ns, duration_ns, ready.last_ns, others_ns)
    is_message = ready.sequence == NONE
    return Waits(
        ready.identity,
        np.where(is_message, -np.cumsum(is_message), ready.sequence),
        ready.world_rank,
        ready.call,
        ready.bytes,
        calls.region,
        start_ns,
        start_ns + duration_ns,
        wait_ns,
        duration_ns - wait_ns,
        alone_ns,
        np.where(wait_ns > 0, ready.last_rank, NONE),
        ready.is_last,
        np.zeros(len(ready), bool),
        calls.completion,
        np.where(wait_ns > 0, ready.wait_state, NONE),
        np.where(ready.peer_ns == NONE, NONE, ready.last_rank),
        ready.peer_ns,
        operations,
        np.zeros(len(ready), bool),
    )


def _polls(
    ready: Arrivals, others_ns: Ints, calls: Calls, start_ns: Ints, waits: Waits
) -> Waits:
    """The unsuccessful polls before the calls of these waits. It is not known when each was made:
    as much of them is waiting as of the time from the first one to the call passes before the last
    rank arrives."""
    has = calls.polled_ns > 0
    ready, others_ns, calls, start_ns, waits = (
        ready.take(has), others_ns[has], calls.take(has), start_ns[has], waits.take(has),
    )
    span_ns = calls.start_ns - calls.polled_since_ns
    since_ns, part = start_ns - span_ns, calls.polled_ns / np.maximum(1, span_ns)
    found = shares(since_ns, span_ns, ready.last_ns, others_ns)
    wait_ns, alone_ns = ((ns * part).astype(np.int64) for ns in found)
    return waits.changed(
        start_ns=since_ns, end_ns=since_ns + calls.polled_ns, wait_ns=wait_ns,
        transfer_ns=calls.polled_ns - wait_ns, alone_ns=alone_ns,
        last_rank=np.where(wait_ns > 0, ready.last_rank, NONE),
        wait_state=np.where(wait_ns > 0, ready.wait_state, NONE),
        is_polled=np.ones(len(waits), bool),
    )


def calls_left(arrivals: Arrivals, are_chosen: Callable[[Arrivals], Flags]) -> int:
    """Number of calls without a sample that completed something that the user chose."""
    is_chosen = are_chosen(arrivals) | ~arrivals.is_known
    own = np.stack([arrivals.world_rank, arrivals.gone_ns], 1)[is_chosen]
    return len(np.unique(own, axis=0))

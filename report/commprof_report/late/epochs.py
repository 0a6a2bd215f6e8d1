"""Epochs of post, start, complete and wait (PSCW) of windows: an origin waits for the
Win_post of its targets, a target for the Win_complete of its origins.

    target  |========= computes ======>| Win_post |====>| Win_wait  waits for the origin |
    origin  | Win_start  waits for the target     |=== computes ==========>| Win_complete |

A library may let Win_start return before the targets have posted. Then Win_complete waits for them,
and for what the targets must do to move the data (progress.py).
"""

from __future__ import annotations

from sqlite3 import Connection

from ..base import query
from ..base.columns import NONE, Columns, Flags, Ints, Texts, by_rank, found_in, np, numbered, read
from ..run.alignment import Alignment
from ..run.sampled import sampled
from .clocks import Clocks
from .known import Known
from .waits import LONG_AGO_NS, Operations

SQL = query.beside(__file__)

START, COMPLETE, POST = "MPI_Win_start", "MPI_Win_complete", "MPI_Win_post"
WAITS = ("MPI_Win_wait", "MPI_Win_test")
LATE_POST, LATE_COMPLETE = "late post", "late complete"


def sampled_epochs(connection: Connection, texts: Texts) -> Columns:
    """A row is a partner of a sampled call, or all of them, which are not known then; identity: of
    the communicator on which the window was created; object: which of its windows; number: of the
    epoch between these two; partners: of the call. Times are the rank's own."""
    return read(Columns, SQL.run(connection, "sampled_epochs"), texts)


def epoch_operations(
    connection: Connection, alignment: Alignment, clocks: Clocks, rows: Columns, known: Known,
    texts: Texts,
) -> tuple[Operations, Flags]:
    """And which of them would be known, were the clocks more accurate. rows: of
    sampled_epochs."""
    start_ns, end_ns = (
        alignment.aligned(rows.world_rank, times) for times in (rows.start_ns, rows.end_ns)
    )
    of = {call: rows.call == texts.number(call) for call in (START, COMPLETE, POST)}
    is_start, is_complete, is_wait = of[START], of[COMPLETE], texts.among(rows.call, set(WAITS))
    is_origin = is_start | is_complete
    begun, post, complete, wait = (
        _of_epoch(rows, is_origin, side) for side in (is_start, of[POST], is_complete, is_wait)
    )
    awaited = np.where(is_wait, complete, post)
    last_ns = _at(awaited, start_ns)
    error = clocks.between(rows.world_rank, rows.peer, rows.start_ns)
    is_sure = clocks.are_sure(rows.identity, rows.call, error)
    has_returned = is_start & (last_ns >= end_ns + error.distance_ns)
    is_known = (last_ns != NONE) & _have_all(rows)
    # the partner's part ends with its post for Win_start, else with the epoch
    partner_gone_ns = _at(
        np.where(is_start, post, np.where(is_complete, wait, complete)), end_ns
    )
    nothing, no = np.full(len(rows), NONE), np.zeros(len(rows), bool)
    found = Operations(
        rows.world_rank,
        rows.end_ns,
        rows.identity,
        nothing,
        rows.call,
        _moved_bytes(connection, rows, np.where(is_complete, begun, -1), known, texts),
        np.where(is_wait, texts.number(LATE_COMPLETE), texts.number(LATE_POST)),
        np.where(has_returned | ~is_known, LONG_AGO_NS, last_ns),
        nothing,
        rows.peer,
        no,
        no,
        last_ns,
        partner_gone_ns,
        is_known & is_sure,
    )
    is_own = is_origin | is_wait
    return found.take(is_own), (is_known & ~is_sure)[is_own]


def _at(rows: Ints, values: Ints) -> Ints:
    """The values at these rows; NONE at row -1."""
    return np.append(values, NONE)[rows]


def _of_epoch(rows: Columns, is_origin: Flags, side: Flags) -> Ints:
    """For each row the row of that side that is of the same epoch; -1: it is not known. is_origin:
    which rows are an origin's."""
    origin = np.where(is_origin, rows.world_rank, rows.peer)
    target = np.where(is_origin, rows.peer, rows.world_rank)
    keys = rows.identity, rows.object, origin, target, rows.number
    places = np.flatnonzero(side & (rows.number != NONE))
    return np.append(places, -1)[found_in(keys, [key[places] for key in keys])]


def _have_all(rows: Columns) -> Flags:
    """Whether all partners of a row's call have a row."""
    number = numbered(rows.world_rank, rows.call, rows.start_ns, rows.end_ns)
    return np.bincount(number)[number] == rows.partners


def _moved_bytes(
    connection: Connection, rows: Columns, begun: Ints, known: Known, texts: Texts
) -> Ints:
    """Bytes that a rank has put, got and accumulated since the row `begun`, the Win_start that this
    Win_complete ends, on whatever window: only calls that move the same amount can be compared.
    NONE: another call (-1)."""
    calls = sampled(connection).in_texts(texts).calls
    calls = calls.take(
        known.which(calls.call, texts, lambda call: call.family == "rma") & (calls.bytes > 0)
    )
    calls = calls.take(np.lexsort((calls.start_ns, calls.world_rank)))
    found = np.full(len(rows), NONE)
    for rank, own in by_rank(rows.world_rank):
        own = own[begun[own] >= 0]
        low, high = np.searchsorted(calls.world_rank, [rank, rank + 1])
        times, moved = calls.start_ns[low:high], np.append(0, np.cumsum(calls.bytes[low:high]))
        begin, end = (
            np.searchsorted(times, rows.start_ns[of]) for of in (begun[own], own)
        )
        found[own] = moved[end] - moved[begin]
    return found

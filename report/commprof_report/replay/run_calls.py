"""The sampled calls of a run, one after the other, and the messages that they received."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from sqlite3 import Connection
from typing import Any

from ..base.columns import NONE, Columns, Texts, np
from ..base.query import row_type
from ..base.summarize import values_of
from ..run.alignment import Alignment
from ..run.sampled import sampled

SILENT = ("setup", "communicator")  # families that a replay needs no more
RECEIVES = ("MPI_Recv", "MPI_Irecv")
MOST_UNDERWAY = 64  # messages between two ranks at the begin of the window


TEXTS = ("call", "direction")  # columns
Row = Any  # of a table of the samples, with its columns; its numbers are None where there is none


def rows_in(table: Columns, texts: Texts) -> Iterator[Row]:
    columns = {
        name: values_of(column, texts if name in TEXTS else None)
        for name, column in vars(table).items()
    }
    return map(row_type(type(table).__name__, columns)._make, zip(*columns.values()))


def rows_with(table: Columns, texts: Texts, name: str, *wanted: str) -> Iterator[Row]:
    """The rows whose column has one of these texts."""
    return rows_in(table.take(texts.among(getattr(table, name), wanted)), texts)


def place_of(row: Row) -> tuple[int, int, int]:
    """Rank, thread and begin."""
    return row.world_rank, row.thread, row.start_ns


def rows_of(
    connection: Connection, alignment: Alignment, numbers: dict[tuple[int, int], int],
    since_ns: int, until_ns: int,
) -> Iterator[Row]:
    """The calls of MPI in the window, each thread's in their order. comm: the communicator in the
    kit; None: none that can be made. peer: world rank; None: MPI_PROC_NULL, or no message.
    polled_since_ns: begin of the first poll before it that found nothing; polled_ns: inside all of
    them."""
    samples = sampled(connection)
    calls, texts = samples.calls, samples.texts
    silent = {
        name
        for name, family, library in connection.execute("SELECT name, family, library FROM call")
        if family in SILENT or library != "mpi"
    }
    start_ns = alignment.aligned(calls.world_rank, calls.start_ns)
    end_ns = alignment.aligned(calls.world_rank, calls.end_ns)
    is_own = (start_ns >= since_ns) & (end_ns <= until_ns) & ~texts.among(calls.call, silent)
    calls = calls.take(np.flatnonzero(is_own))
    calls = calls.take(np.lexsort((calls.start_ns, calls.thread, calls.world_rank)))

    places = zip(calls.world_rank.tolist(), calls.communicator.tolist())
    comm = np.array([numbers.get(place, NONE) for place in places], np.int64)
    return rows_in(calls.changed(comm=comm, bytes=np.maximum(calls.bytes, 0)), texts)


def received_of(connection: Connection) -> dict[tuple[int, int, int], Row]:
    """By place, the messages that exchanges received."""
    samples = sampled(connection)
    received = rows_with(samples.messages, samples.texts, "direction", "received")
    return {place_of(row): row for row in received if row.peer is not None and row.peer >= 0}


def with_senders(rows: Sequence[Row], alignment: Alignment) -> list[Row]:
    """Gives receives that were posted without a tag those of their senders. Messages between two
    ranks do not overtake each other, so the n-th of these receives has the n-th message that no
    other receive has."""
    numbered = {received_by(row) for row in rows if row.call in RECEIVES}
    sent: dict[Hashable, list[Row]] = defaultdict(list)
    received: dict[Hashable, list[int]] = defaultdict(list)
    for at in sorted(range(len(rows)), key=lambda at: (rows[at].world_rank, rows[at].start_ns)):
        row = rows[at]
        if row.call in RECEIVES:
            if row.number is None and row.peer is not None:
                received[row.comm, row.peer, row.world_rank].append(at)
        elif "send" in row.call.lower() and row.number and sent_by(row) not in numbered:
            sent[row.comm, row.world_rank, row.peer].append(row)
    found = list(rows)
    for key, places in received.items():
        receives = [rows[at] for at in places]
        skipped, sends = _in_order(receives, sent[key], alignment)
        for at, send in zip(places[skipped:], sends):
            found[at] = rows[at]._replace(tag=send.tag, number=send.number)
    return found


def sent_by(row: Row) -> Hashable:
    """The message that a call sends: the same for the call that receives it."""
    return row.comm, row.world_rank, row.peer, row.tag, row.number


def received_by(row: Row) -> Hashable:
    """The message that a call receives or finds."""
    return row.comm, row.peer, row.world_rank, row.tag, row.number


def _in_order(
    receives: Sequence[Row], sends: Sequence[Row], alignment: Alignment
) -> tuple[int, Sequence[Row]]:
    """How many receives have messages from before the window, and the sends of the others: with the
    fewest skipped on either side so that sizes fit and none is complete before it is sent."""
    def is_one(receive: Row, send: Row) -> bool:
        fits = receive.bytes == send.bytes or (
            receive.call == "MPI_Irecv" and receive.bytes > send.bytes  # as it was posted
        )
        done_ns = alignment.aligned_ns(receive.world_rank, receive.completed_ns or receive.end_ns)
        return fits and done_ns >= alignment.aligned_ns(send.world_rank, send.start_ns)

    for skipped in range(MOST_UNDERWAY + 1):
        for own, other in ((skipped, 0), (0, skipped)):
            if all(map(is_one, receives[own:], sends[other:])):
                return own, sends[other:]
    return 0, []

"""The sampled calls of a run, one after the other, and the messages that they received."""

from __future__ import annotations

from collections import defaultdict, namedtuple
from collections.abc import Hashable, Iterator, Sequence
from sqlite3 import Connection

from ..base.arrays import np
from ..base.columns import NONE
from ..run.alignment import Alignment
from ..run.sampled import sampled

SILENT = ("setup", "communicator")  # families that a replay needs no more
RECEIVES = ("MPI_Recv", "MPI_Irecv")
MOST_UNDERWAY = 64  # messages between two ranks at the begin of the window


# A sampled call of a rank. comm: in the kit; None: on none that can be made. peer: world rank;
# None: MPI_PROC_NULL, or no message. polled_since_ns: begin of the first poll before it that
# found nothing; polled_ns: inside all of them.
Row = namedtuple(
    "Row",
    "rank thread call comm sequence start_ns end_ns completed_ns bytes peer root tag number "
    "signature polled_since_ns polled_ns",
    defaults=[None, None],
)


# The other half of an exchange.
Message = namedtuple("Message", "peer tag number bytes")


def rows_of(
    connection: Connection, alignment: Alignment, numbers: dict[tuple[int, int], int],
    since_ns: int, until_ns: int,
) -> Iterator[Row]:
    """The calls of MPI in the window, each thread's in their order."""
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

    def column(values: np.ndarray) -> list[int | None]:
        return [None if value == NONE else value for value in values.tolist()]

    for rank, thread, call, comm, sequence, begin, end, completed, size, *others in zip(
        calls.world_rank.tolist(), calls.thread.tolist(), calls.call.tolist(),
        calls.communicator.tolist(), column(calls.sequence), calls.start_ns.tolist(),
        calls.end_ns.tolist(), column(calls.completed_ns), column(calls.bytes), column(calls.peer),
        column(calls.root), column(calls.tag), column(calls.number), column(calls.signature),
        column(calls.polled_since_ns), column(calls.polled_ns),
    ):
        yield Row(
            rank, thread, texts.text(call) or "", numbers.get((rank, comm)), sequence, begin, end,
            completed, size or 0, *others,
        )


def received_of(connection: Connection) -> dict[tuple[int, int, int], Message]:
    """By rank, thread and begin, what exchanges received."""
    samples = sampled(connection)
    rows, texts = samples.messages, samples.texts
    rows = rows.take(np.flatnonzero(texts.among(rows.direction, ["received"])))
    return {
        (rank, thread, start_ns): Message(
            peer, None if tag == NONE else tag, None if number == NONE else number, size
        )
        for rank, thread, start_ns, peer, tag, number, size in zip(
            rows.world_rank.tolist(), rows.thread.tolist(), rows.start_ns.tolist(),
            rows.peer.tolist(), rows.tag.tolist(), rows.number.tolist(), rows.bytes.tolist(),
        )
        if peer >= 0
    }


def with_senders(rows: Sequence[Row], alignment: Alignment) -> list[Row]:
    """Gives receives that were posted without a tag those of their senders. Messages between two
    ranks do not overtake each other, so the n-th of these receives has the n-th message that no
    other receive has."""
    numbered = {received_by(row) for row in rows if row.call in RECEIVES}
    sent: dict[Hashable, list[Row]] = defaultdict(list)
    received: dict[Hashable, list[int]] = defaultdict(list)
    for at in sorted(range(len(rows)), key=lambda at: (rows[at].rank, rows[at].start_ns)):
        row = rows[at]
        if row.call in RECEIVES:
            if row.number is None and row.peer is not None:
                received[row.comm, row.peer, row.rank].append(at)
        elif "send" in row.call.lower() and row.number and sent_by(row) not in numbered:
            sent[row.comm, row.rank, row.peer].append(row)
    found = list(rows)
    for key, places in received.items():
        receives = [rows[at] for at in places]
        skipped, sends = _in_order(receives, sent[key], alignment)
        for at, send in zip(places[skipped:], sends):
            found[at] = rows[at]._replace(tag=send.tag, number=send.number)
    return found


def sent_by(row: Row) -> Hashable:
    """The message that a call sends: the same for the call that receives it."""
    return row.comm, row.rank, row.peer, row.tag, row.number


def received_by(row: Row) -> Hashable:
    """The message that a call receives or finds."""
    return row.comm, row.peer, row.rank, row.tag, row.number


def _in_order(
    receives: Sequence[Row], sends: Sequence[Row], alignment: Alignment
) -> tuple[int, Sequence[Row]]:
    """How many receives have messages from before the window, and the sends of the others: with the
    fewest skipped on either side so that sizes fit and none is complete before it is sent."""
    def is_one(receive: Row, send: Row) -> bool:
        fits = receive.bytes == send.bytes or (
            receive.call == "MPI_Irecv" and receive.bytes > send.bytes  # as it was posted
        )
        done_ns = alignment.aligned_ns(receive.rank, receive.completed_ns or receive.end_ns)
        return fits and done_ns >= alignment.aligned_ns(send.rank, send.start_ns)

    for skipped in range(MOST_UNDERWAY + 1):
        for own, other in ((skipped, 0), (0, skipped)):
            if all(map(is_one, receives[own:], sends[other:])):
                return own, sends[other:]
    return 0, []

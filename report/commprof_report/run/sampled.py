"""The sampled calls of a run as columns: what analyses of single calls begin with.

The processes that read parts of a large run send them (run.py); of other runs they are read from
the tables when they are first needed.

Messages between ranks that read different clocks relate these, for jobs in which no collective
does: no message has arrived before its send was posted.

    clock 1   |posted ------.                       arrived|     ->  upper bound of the difference
    clock 2                  `--> arrived|  |posted --'          ->  lower bound

The n-th message from one rank to another on a communicator with one tag is the n-th received
(late/messages.py). The numbers start again after 65,535, and without a common axis it is not
known which of two equal ones is meant: ranks with more messages for each other relate no clocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection
from typing import Any, NamedTuple

from ..base import (
    NONE,
    Columns,
    Flags,
    Ints,
    Table,
    TextInts,
    Texts,
    found_in,
    joined,
    np,
    query,
    read,
    read_large,
)

SQL = query.beside(__file__)


class Calls(Columns):
    """Table `sample`, as its columns are there; NONE: null. object_sequence, of a collective on a
    window or a file: which object of its communicator, and which collective on that, as one number
    above those of collectives on communicators. polled_since_ns: the begin of the first
    unsuccessful poll before it. sampled_calls.sql."""


class FurtherMessages(Columns):
    """Table `sample_message`."""


class Starts(Columns):
    """Table `sample_start`."""


TABLES: dict[Any, str] = {
    Calls: "sampled_calls",
    FurtherMessages: "sampled_messages",
    Starts: "sampled_starts",
}


class Sampled(NamedTuple):
    texts: Texts
    calls: Calls
    messages: FurtherMessages
    starts: Starts

    def in_texts(self, texts: Texts) -> Sampled:
        """The same with other numbers of texts."""
        numbers = np.append(texts.all(self.texts.texts), NONE)

        def renumbered(table: Table, *columns: str) -> Table:
            return table.changed(
                **{name: numbers[np.maximum(getattr(table, name), -1)] for name in columns}
            )

        return Sampled(
            texts,
            renumbered(self.calls, "call"),
            renumbered(self.messages, "call", "direction"),
            renumbered(self.starts, "call"),
        )


class Communicators(Columns):
    """The numbers of ranks for communicators, by identity; numbered_communicators.sql."""

    def row(self, rows: Calls | FurtherMessages | Starts) -> Ints:
        """The row of each call's communicator; -1: there is none."""
        return found_in((rows.world_rank, rows.communicator), (self.world_rank, self.communicator))


class Synchronizing(Columns):
    """Calls in which ranks wait for each other; synchronizing_calls.sql."""

    def row(self, calls: TextInts) -> Ints:
        """The row of each call here; -1: there is none."""
        return found_in((calls,), (self.call,))


def sampled(connection: Connection) -> Sampled:
    """Read once for a run that was opened."""
    known: Sampled | None = getattr(connection, "sampled", None)
    if known:
        return known
    texts = Texts()
    calls, messages, starts = (
        read_large(kind, connection, SQL.text(name).rstrip(";\n"), texts, ("call", "direction"))
        for kind, name in TABLES.items()
    )
    found = Sampled(texts, calls.changed(is_shared=calls.is_shared > 0), messages, starts)
    if hasattr(connection, "sampled"):
        connection.sampled = found
    return found


def communicators(connection: Connection, texts: Texts) -> Communicators:
    return read(Communicators, SQL.run(connection, "numbered_communicators"), texts)


def synchronizing(connection: Connection, texts: Texts) -> Synchronizing:
    SQL.run(connection, "synchronizing")
    return read(Synchronizing, SQL.run(connection, "synchronizing_calls"), texts)


NUMBERS = 65_535


def passed_messages(
    connection: Connection, ranks: Ints, clocks: Ints, starts_ns: Ints, most: int
) -> Columns:
    """Messages: the ranks of `sender` and `receiver`, posted_ns on the clock of the former, and
    arrived_ns on that of the latter. ranks: all that were read, in order; of each the clock, and
    when it started on that. Of more sides than `most` every second one counts, or every third, and
    so on."""
    sides = _sides(connection)
    place, peers = (_place(ranks, own) for own in (sides.world_rank, sides.peer))
    is_between = (peers >= 0) & (clocks[place] != clocks[peers]) & (sides.identity != NONE)
    sides = sides.take(is_between & (sides.number != NONE) & ~_are_many(connection, sides))
    sides = sides.take(sides.number % (len(sides) // most + 1) == 0)
    sent = sides.take(~sides.is_received)
    received = sides.take(sides.is_received & (sides.done_ns != NONE))
    match = found_in(
        (received.identity, received.peer, received.world_rank, received.tag, received.number),
        (sent.identity, sent.world_rank, sent.peer, sent.tag, sent.number),
    )
    received, sent = received.take(match >= 0), sent.take(match[match >= 0])
    return Columns(
        sender=sent.world_rank,
        receiver=received.world_rank,
        posted_ns=starts_ns[_place(ranks, sent.world_rank)] + sent.start_ns,
        arrived_ns=starts_ns[_place(ranks, received.world_rank)] + received.done_ns,
    )


def _place(ranks: Ints, own: Ints) -> Ints:
    """The place of each of these among the ranks; -1: it was not read."""
    return found_in((own,), (ranks,))


def _are_many(connection: Connection, sides: Columns) -> Flags:
    rows: Sequence[tuple] = SQL.run(connection, "many_messages", numbers=NUMBERS).fetchall()
    many = np.array(rows, np.int64).reshape(-1, 3)
    return (
        found_in((sides.world_rank, sides.is_received.astype(np.int64), sides.peer), tuple(many.T))
        >= 0
    )


def _sides(connection: Connection) -> Columns:
    """Sent or received messages: the posting, and the end of the operation; NONE: not seen."""
    texts = Texts()
    _, calls, further, _ = sampled(connection).in_texts(texts)
    known = communicators(connection, texts)
    kinds = read(Columns, SQL.run(connection, "message_calls"), texts)
    kind = found_in((calls.call,), (kinds.call,))
    calls, kind = calls.take(kind >= 0), kind[kind >= 0]
    of_further = found_in((further.call,), (kinds.call,))
    return joined(
        Columns,
        [
            _of(known, calls, kinds.is_receive[kind], kinds.is_blocking[kind]),
            _of(
                known,
                further,
                further.direction == texts.number("received"),
                np.append(kinds.is_blocking, False)[of_further],
            ),
        ],
    )


def _of(
    known: Communicators, rows: Calls | FurtherMessages, is_received: Flags, is_blocking: Flags
) -> Columns:
    return rows.changed(
        identity=np.append(known.identity, NONE)[known.row(rows)],
        done_ns=np.where(is_blocking, rows.end_ns, rows.completed_ns),
        is_received=is_received,
    )

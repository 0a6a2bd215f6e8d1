"""The sampled calls of a run as columns: what analyses of single calls begin with.

The processes that read parts of a large run send them (run.py); of other runs they are read from
the tables when they are first needed.
"""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.columns import NONE, Columns, Ints, Table, TextInts, Texts, found_in, np, read

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
    found = getattr(connection, "sampled", None) or sampled_read(connection)
    if hasattr(connection, "sampled"):
        connection.sampled = found
    return found


def sampled_read(connection: Connection) -> Sampled:
    texts = Texts()
    return Sampled(
        texts,
        read(Calls, SQL.run(connection, "sampled_calls"), texts),
        read(FurtherMessages, connection.execute("SELECT * FROM sample_message"), texts),
        read(Starts, connection.execute("SELECT * FROM sample_start"), texts),
    )


def communicators(connection: Connection, texts: Texts) -> Communicators:
    return read(Communicators, SQL.run(connection, "numbered_communicators"), texts)


def synchronizing(connection: Connection, texts: Texts) -> Synchronizing:
    SQL.run(connection, "synchronizing")
    return read(Synchronizing, SQL.run(connection, "synchronizing_calls"), texts)

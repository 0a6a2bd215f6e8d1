"""The number of collectives that each rank has begun on each communicator, mismatches between
ranks, and the calls that threads are in."""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query

SQL = query.beside(__file__)


class PositionRow(NamedTuple):
    """The last collective that a rank has begun on a communicator with several members."""

    communicator: str
    identity: str
    size: int
    members: str
    rank: int
    begun: int
    call: str | None
    bytes: int | None
    root: int | None
    kind: str | None


class MismatchRow(NamedTuple):
    """The call of one rank at the first collective in which the ranks of a communicator differ."""

    communicator: str
    identity: str
    sequence: int
    what: str
    is_first: int
    rank: int
    call: str
    bytes: int | None
    root: int | None


class WaitingRow(NamedTuple):
    """A thread that is inside a call."""

    rank: int
    thread: int
    state: str
    call: str
    request_call: str | None
    communicator: str | None
    identity: str
    family: str
    bytes: int | None
    peer: int | None
    tag: int | None
    since_unix_ns: int
    doing_ns: int


class SequenceRow(NamedTuple):
    sequence: int


def position_rows(connection: Connection) -> list[PositionRow]:
    return SQL.ask(connection, "positions", PositionRow)


def mismatch_rows(connection: Connection) -> list[MismatchRow]:
    return SQL.ask(connection, "mismatches", MismatchRow)


def waiting_rows(connection: Connection) -> list[WaitingRow]:
    return SQL.ask(connection, "waiting", WaitingRow)


def awaited_sequences(
    connection: Connection, rank: int, identity: str, call: str, message_bytes: int | None
) -> list[int]:
    rows = SQL.ask(
        connection, "awaited_collectives", SequenceRow, rank=rank, identity=identity, call=call,
        bytes=message_bytes,
    )
    return [row.sequence for row in rows]

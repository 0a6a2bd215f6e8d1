"""The number of collectives that each rank has begun on each communicator, mismatches between
ranks, and the calls that threads are in."""

from __future__ import annotations

from collections import namedtuple
from sqlite3 import Connection

from ..base import query

SQL = query.beside(__file__)


# The last collective that a rank has begun on a communicator with several members.
PositionRow = namedtuple(
    "PositionRow",
    "communicator identity size members rank begun call bytes root kind",
)


# The call of one rank at the first collective in which the ranks of a communicator differ.
MismatchRow = namedtuple(
    "MismatchRow",
    "communicator identity sequence what is_first rank call bytes root",
)


# A thread that is inside a call.
WaitingRow = namedtuple(
    "WaitingRow",
    "rank thread state call request_call communicator identity family bytes peer tag "
    "since_unix_ns doing_ns",
)


def position_rows(connection: Connection) -> list[PositionRow]:
    return SQL.ask(connection, "positions", PositionRow)


def mismatch_rows(connection: Connection) -> list[MismatchRow]:
    return SQL.ask(connection, "mismatches", MismatchRow)


def waiting_rows(connection: Connection) -> list[WaitingRow]:
    return SQL.ask(connection, "waiting", WaitingRow)


def awaited_sequences(
    connection: Connection, rank: int, identity: str, call: str, message_bytes: int | None
) -> list[int]:
    found = SQL.run(
        connection, "awaited_collectives", rank=rank, identity=identity, call=call,
        bytes=message_bytes,
    )
    return [sequence for (sequence,) in found]

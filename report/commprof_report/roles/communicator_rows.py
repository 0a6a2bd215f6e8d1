"""Communicators: the members of each, and the time of its calls."""

from __future__ import annotations

from collections.abc import Mapping
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query

SQL = query.beside(__file__)


class CommunicatorRow(NamedTuple):
    communicator: str
    identity: str
    size: int | None
    remote_size: int | None
    members: str
    ranks: int | None
    name: str
    constructor: str
    parent: str | None
    ordinal: int
    is_inter: int
    is_freed: int | None
    count: int  # type: ignore[assignment]  # hides tuple.count
    volume_bytes: int
    total_ns: int
    top_call: str | None
    role: str | None
    library: str
    device_ns: int | None


def communicator_rows(
    connection: Connection, roles: Mapping[str, str]
) -> list[CommunicatorRow]:
    """roles: by identity."""
    rows = SQL.ask(connection, "communicators", CommunicatorRow)
    return [row._replace(role=roles.get(row.identity)) for row in rows]

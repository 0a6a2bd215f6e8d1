"""Communicators: the members of each, and the time of its calls."""

from __future__ import annotations

from collections.abc import Mapping
from sqlite3 import Connection

from ..base import query
from ..base.field import Field, Row, row_type

SQL = query.beside(__file__)


COMMUNICATOR = (
    Field("communicator", "label and identity"),
    Field("identity", ""),
    Field(
        "size",
        "as in table `communicator`, from the lowest rank that has a name for it, else the lowest"
        " rank",
    ),
    Field("remote_size", ""),
    Field("members", ""),
    Field("ranks", "ranks whose files mention it"),
    Field("name", "as in table `communicator`, from such a rank"),
    Field("constructor", ""),
    Field("parent", "label of the communicator that it was created from"),
    Field("ordinal", "as in table `communicator`, from such a rank"),
    Field("is_inter", ""),
    Field("is_freed", ""),
    Field("count", "of the calls on it"),
    Field("volume_bytes", ""),
    Field("total_ns", ""),
    Field("top_call", "the call with the most time on it; for NCCL by time on the device"),
    Field("role", "its purpose, in words; null: the row stands for several"),
    Field(
        "library",
        "MPI's or NCCL's; time of NCCL's operations on the device (`total_ns` is that of the "
        "calls on the host); null: none",
    ),
    Field("device_ns", ""),
)
CommunicatorRow = row_type("CommunicatorRow", COMMUNICATOR)


def communicator_rows(
    connection: Connection, roles: Mapping[str, str]
) -> list[Row]:
    """roles: by identity."""
    rows = SQL.ask(connection, "communicators", CommunicatorRow)
    return [row._replace(role=roles.get(row.identity)) for row in rows]

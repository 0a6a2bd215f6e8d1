"""The state of ranks at one time, for a job that may still run."""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query

SQL = query.beside(__file__)


class LiveRow(NamedTuple):
    """A rank at one time."""

    rank: int
    host: str | None
    state: str
    abort_code: int
    is_copy: int
    start_unix_ns: int
    last_unix_ns: int | None
    reset_unix_ns: int
    wall_ns: int | None
    count: int  # type: ignore[assignment]  # hides tuple.count
    volume_bytes: int
    mpi_ns: int
    collective_ns: int
    doing_call: str | None
    doing_request_call: str | None
    doing_communicator: str | None
    doing_bytes: int | None
    doing_peer: int | None
    doing_tag: int | None
    doing_is_inside: int | None
    doing_ns: int | None
    has_nccl: int
    device_ns: int
    gpu_traced_ns: int
    gpu_busy_ns: int


def live_rows(connection: Connection) -> list[LiveRow]:
    return SQL.ask(connection, "live", LiveRow)

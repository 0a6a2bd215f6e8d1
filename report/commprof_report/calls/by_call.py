"""Calls, summed over ranks, communicators and sizes."""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query

SQL = query.beside(__file__)


class CallRow(NamedTuple):
    call: str
    family: str
    count: int  # type: ignore[assignment]  # hides tuple.count
    polls: int
    ranks: int
    volume_bytes: int
    total_ns: int
    mean_ns: float
    min_ns: int
    p50_ns: float
    p95_ns: float | None  # null: too few calls
    p99_ns: float | None
    max_ns: int
    share_of_wall: float | None
    dominating_bytes: int | None
    dominating_share: float | None
    completions: int | None
    completion_ns: int | None
    blocked_ns: int | None
    overlap: float | None
    library: str
    measure: str


def operation(call: str) -> str:
    """Operation of a call of any form of MPI or NCCL: allreduce of MPI_Iallreduce,
    MPI_Allreduce_init and ncclAllReduce."""
    name = call[4:].lower().removesuffix("_init")
    return name[1:] if name[:1] == "i" else name


def call_rows(connection: Connection) -> list[CallRow]:
    return SQL.ask(connection, "calls", CallRow)


def poll_rows(connection: Connection) -> list[query.Row]:
    return list(SQL.rows(connection, "polls"))

"""Calls by message size."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query

SQL = query.beside(__file__)


class SizeRow(NamedTuple):
    call: str
    communicator: str
    bytes: int | None
    count: int  # type: ignore[assignment]  # hides tuple.count
    volume_bytes: int
    total_ns: int
    mean_ns: float
    min_ns: int
    p50_ns: float
    p95_ns: float | None  # null: too few calls
    p99_ns: float | None
    max_ns: int
    algbw_bytes_per_s: float | None
    busbw_bytes_per_s: float | None
    rank: int | None
    family: str
    identity: str
    memory_kind: str
    bytes_low: int
    bytes_high: int | None
    is_folded: int
    is_own: int
    power_of_two: int
    bandwidth_bytes: float | None
    blocked_ns: int
    overlap: float | None
    library: str
    measure: str
    form: str
    bandwidth: str
    waits_for: str
    share_of_wall: float | None


def size_rows(
    connection: Connection, per_rank: bool = False, families: Mapping[str, str] | None = None
) -> list[SizeRow]:
    """families: names of communicators, by identity; those of one name share rows."""
    return SQL.ask(
        connection, "sizes", SizeRow, per_rank=per_rank, families=json.dumps(families or {})
    )


def best_timed(rows: Sequence[SizeRow]) -> list[SizeRow]:
    """Without calls that only start operations whose own times are known: from start to completion,
    or NCCL's on the device."""
    completed = {(row.call, row.identity) for row in rows if row.measure == "completion"}
    timed = {(row.call, row.identity, row.bytes_low) for row in rows if row.measure == "device"}

    def is_known(row: SizeRow) -> bool:
        if row.library == "mpi":
            return (row.call, row.identity) in completed
        return (row.call, row.identity, row.bytes_low) in timed

    return [row for row in rows if row.measure != "call" or not is_known(row)]


def reduce_bcast_rows(connection: Connection) -> list[query.Row]:
    return list(SQL.rows(connection, "reduce_bcast"))

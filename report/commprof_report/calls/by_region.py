"""Regions that the program has named."""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query

SQL = query.beside(__file__)


class RegionRow(NamedTuple):
    """A region including all regions inside it; own_: without these. span_: how long threads were
    in it, whatever they did."""

    region: str
    ranks: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    volume_bytes: int
    total_ns: int
    mean_ns: float
    max_ns: int
    max_rank: int | None
    share_of_wall: float | None
    top_call: str | None
    own_count: int
    own_ns: int
    own_mean_ns: float
    own_share_of_wall: float | None
    folded_count: int
    nccl_count: int
    nccl_host_ns: int
    nccl_device_ns: int
    visits: int
    span_ns: int
    span_mean_ns: float
    span_max_ns: int
    span_max_rank: int | None


def region_rows(connection: Connection) -> list[RegionRow]:
    return SQL.ask(connection, "regions", RegionRow)

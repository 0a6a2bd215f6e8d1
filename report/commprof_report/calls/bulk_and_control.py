"""Bulk traffic, which carries gradients, activations or data, and control traffic, with which
frameworks coordinate it.

Horovod makes six calls of 8 to 24 bytes for each one that carries gradients: most of the calls, but
almost none of the bytes. On a thread that negotiates, control is told by what it is; else by its
size. The rule is in run/traffic_class.sql; docs/SCHEMA.md explains it.
"""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..run.traffic_class import traffic_classify

SQL = query.beside(__file__)


class TrafficRow(NamedTuple):
    """The bulk or the control traffic of one call."""

    traffic: str
    call: str
    family: str
    count: int  # type: ignore[assignment]  # hides tuple.count
    least_bytes: int
    most_bytes: int
    volume_bytes: int
    total_ns: int
    share_of_time: float | None
    threshold_bytes: int | None
    control_share: float | None
    library: str
    device_ns: int | None
    told_count: int


def traffic_rows(connection: Connection) -> list[TrafficRow]:
    traffic_classify(connection)
    return SQL.ask(connection, "traffic", TrafficRow)

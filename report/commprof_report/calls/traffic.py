"""Bulk traffic, which carries gradients, activations or data, and control traffic, with which
frameworks coordinate it.

Horovod makes six calls of 8 to 24 bytes for each one that carries gradients: most of the calls, but
almost none of the bytes. On a thread that negotiates, control is told by what it is; else by its
size. The rule is in traffic_class.sql; docs/SCHEMA.md explains it.
"""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.thresholds import threshold, whole

SQL = query.beside(__file__)

CONTROL_BYTES = whole("calls.control-bytes")


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


def traffic_classify(connection: Connection) -> None:
    """Fills TEMP TABLEs control_size(call, threshold_bytes, volume_bytes), cell_traffic(cell,
    traffic, is_told), control_cell(cell), negotiating(world_rank, thread) and told_sample, unless
    that is done. Without samples, all traffic is told by its size."""
    if not connection.execute(
        "SELECT 1 FROM sqlite_temp_master WHERE name = 'control_cell'"
    ).fetchone():
        SQL.run(
            connection, "traffic_class",
            fewest_rounds=whole("calls.rounds"),
            most_distributed=whole("calls.distributed"),
            most_control_bytes=whole("calls.most-control-bytes"),
            control_share=threshold("calls.control-share"),
            jump=whole("calls.control-jump"),
            control_bytes=CONTROL_BYTES,
            data_share=threshold("calls.data-share"),
        )


def traffic_rows(connection: Connection) -> list[TrafficRow]:
    traffic_classify(connection)
    return SQL.ask(connection, "traffic", TrafficRow)

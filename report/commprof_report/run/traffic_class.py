"""Which calls are bulk traffic and which control, as tables of the run (traffic_class.sql)."""

from __future__ import annotations

from sqlite3 import Connection

from ..base import query
from ..base.thresholds import threshold, whole

SQL = query.beside(__file__)

CONTROL_BYTES = whole("calls.control-bytes")


def traffic_classify(connection: Connection) -> None:
    """Creates the tables once for each run, however many ask. Without samples, the size decides of
    all traffic."""
    if not connection.execute(
        "SELECT 1 FROM sqlite_temp_master WHERE name = 'cell_traffic'"
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

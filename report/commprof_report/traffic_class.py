"""Bulk and control: what carries gradients, activations or data, and what frameworks tell each other about it.

Frameworks negotiate: Horovod makes six calls of 8 to 24 bytes for each one that carries gradients. In calls they are the most, in bytes
nothing. The rule is in sql/traffic_class.sql, its reasons in docs/SCHEMA.md.
"""

from __future__ import annotations

from sqlite3 import Connection

from . import query


def traffic_classify(connection: Connection) -> None:
    """Fills TEMP TABLEs control_size(call, threshold_bytes, volume_bytes), cell_traffic(cell, traffic) and control_cell(cell), once."""
    if not connection.execute("SELECT 1 FROM temp.sqlite_master WHERE name = 'control_cell'").fetchone():
        query.run_script(connection, "traffic_class")

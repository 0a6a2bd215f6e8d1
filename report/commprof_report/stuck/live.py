"""The state of ranks at one time, for a job that may still run."""

from __future__ import annotations

from collections import namedtuple
from sqlite3 import Connection

from ..base import query

SQL = query.beside(__file__)


# A rank at one time.
LiveRow = namedtuple(
    "LiveRow",
    "rank host state abort_code is_copy start_unix_ns last_unix_ns reset_unix_ns wall_ns "
    "count volume_bytes mpi_ns collective_ns doing_call doing_request_call "
    "doing_communicator doing_bytes doing_peer doing_tag doing_is_inside doing_ns has_nccl "
    "device_ns gpu_traced_ns gpu_busy_ns",
)


def live_rows(connection: Connection) -> list[LiveRow]:
    return SQL.ask(connection, "live", LiveRow)

"""The negotiation of a framework such as Horovod: a background thread that agrees with the other
ranks, in every cycle, on what to send.

It is recognised by its calls, not by a name: a thread other than the main one that reduces bits
(MPI_BAND, MPI_BOR) or gathers bytes again and again (traffic_class.sql). Its rounds are those that
the library has counted; docs/SCHEMA.md has the definition.
"""

from __future__ import annotations

from collections import namedtuple
from sqlite3 import Connection

from ..base import query
from ..run.selection import traffic_classify

SQL = query.beside(__file__)


# The whole run's: means over the ranks that have such a thread. None: no rounds were counted,
# as without Horovod's cache.
Negotiation = namedtuple(
    "Negotiation",
    "call rounds cycle_ns idle_share rounds_per_step sending bulk_bytes bulk_ns control_ns",
)


def negotiation(connection: Connection) -> Negotiation | None:
    """The run must have been opened with samples."""
    traffic_classify(connection)
    return next(iter(SQL.ask(connection, "negotiated_time", Negotiation)), None)

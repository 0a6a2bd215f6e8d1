"""The negotiation of a framework such as Horovod: a background thread that agrees with the other
ranks, in every cycle, on what to send.

It is recognised by its calls, not by a name: a thread other than the main one that reduces bits
(MPI_BAND, MPI_BOR) or gathers bytes again and again (traffic_class.sql). Its rounds are those that
the library has counted; docs/SCHEMA.md has the definition.
"""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..run.traffic_class import traffic_classify

SQL = query.beside(__file__)


class Negotiation(NamedTuple):
    """The whole run's: means over the ranks that have such a thread. None: no rounds were counted,
    as without Horovod's cache."""

    call: str  # the most frequent one in which it negotiates
    rounds: int | None
    cycle_ns: float | None  # mean of the times from an idle round to the next one
    idle_share: float | None  # share of the rounds in which the rank offers nothing
    rounds_per_step: float | None
    sending: float  # sampled rounds that agree on something
    bulk_bytes: int
    bulk_ns: float
    control_ns: float


def negotiation(connection: Connection) -> Negotiation | None:
    """The run must have been opened with samples."""
    traffic_classify(connection)
    return next(iter(SQL.ask(connection, "negotiated_time", Negotiation)), None)

"""Which ranks have not handed over the tensors that others offer in the rounds of a negotiation."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query, units
from ..base.present import present
from ..base.query import Row

SQL = query.beside(__file__)


class Unhanded(NamedTuple):
    """Ranks `waiting` have handed over tensors that `behind` have not; if all ranks wait, for other
    tensors each, none is behind."""

    communicator: str
    identity: str
    behind: list[int]
    waiting: list[int]
    tensors: int  # the most that one of them waits for
    since_unix_ns: int  # all that wait do
    waited_ns: int

    @property
    def text(self) -> str:
        """ranks 0,2 have waited 3.2 s for 28 tensors that rank 1 has not handed over"""
        waits, hands = (
            units.agreeing("have", len(ranks)) for ranks in (self.waiting, self.behind)
        )
        what = units.counted(self.tensors, "tensor") if self.tensors else "tensors"
        whom = units.rank_names(self.behind) if self.behind else "others"
        return (
            f"{units.rank_names(self.waiting)} {waits} waited {units.duration(self.waited_ns)} for "
            f"{what} that {whom} {hands} not handed over"
        )


def negotiating_rows(connection: Connection) -> list[Row]:
    return list(SQL.rows(connection, "negotiating"))


def unhanded(connection: Connection, after_ns: int) -> list[Unhanded]:
    """On each communicator where a rank has waited for at least so long."""
    found = []
    open_rows = [row for row in negotiating_rows(connection) if row.is_open]
    for identity, rows in groupby(open_rows, attrgetter("identity")):
        ranks = list(rows)
        waiting = [row for row in ranks if row.waited_ns is not None]
        if not waiting or max(present(row.waited_ns) for row in waiting) < after_ns:
            continue
        found.append(
            Unhanded(
                ranks[0].communicator, identity,
                sorted({row.rank for row in ranks} - {row.rank for row in waiting}),
                sorted({row.rank for row in waiting}), max(row.tensors for row in waiting),
                min(present(row.since_unix_ns) for row in waiting),
                max(present(row.waited_ns) for row in waiting),
            )
        )
    return found

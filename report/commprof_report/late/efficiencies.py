"""From which recorded calls the efficiencies of the POP centre are known; of the run and of its
regions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from sqlite3 import Connection

from ..base import query
from ..base.arrays import np
from ..base.columns import by_rank
from ..base.summarize import Row, row_type
from ..base.thresholds import threshold
from ..calls import by_region
from ..calls.negotiation import Negotiation, negotiation
from ..retime.efficiency import Efficiency
from ..run.alignment import Alignment
from .retimed import Part, Retimed
from .stages import Split, played
from .verdict import NEGOTIATED

SQL = query.beside(__file__)
BACKGROUND = threshold("late.background")
RegionWorkRow = row_type("RegionWorkRow", (*by_region.RegionRow._fields, *Efficiency._fields))


def is_beside_main(row: Row) -> bool:
    return row.background_share >= BACKGROUND


def working(retimed: Retimed, run: Row, is_negotiated: bool) -> Part | None:
    """Not known where the time between calls is not that of the program's work: on threads beside
    the main one, or while GPUs communicate."""
    if retimed.device is not None or is_negotiated or is_beside_main(run):
        return None
    return retimed.host


def working_of(connection: Connection, alignment: Alignment, split: Split) -> Part | None:
    """The same, of a run that is not analysed further."""
    return working(
        played(connection, alignment, split), split.run,
        negotiated_share(connection, negotiation(connection)) >= NEGOTIATED,
    )


def negotiated_share(connection: Connection, found: Negotiation | None) -> float:
    """The share of the time inside MPI on threads that negotiate, in the whole run."""
    return SQL.run(connection, "negotiated_share").fetchone()[0] if found else 0.0


def efficiency_of(part: Part | None) -> Efficiency:
    return part.efficiency if part else Efficiency()


def region_rows(
    connection: Connection, alignment: Alignment, work: Callable[[], Part | None]
) -> list[Row]:
    """work: asked for only if a main thread visited a region."""
    found = dict(_efficiencies(connection, alignment, work))
    return [
        RegionWorkRow(*row, *found.get(row.region, Efficiency()))
        for row in by_region.region_rows(connection)
    ]


def _efficiencies(
    connection: Connection, alignment: Alignment, work: Callable[[], Part | None]
) -> Iterator[tuple[str, Efficiency]]:
    """The efficiency of each region that main threads visited, with the regions within it."""
    rows = SQL.run(connection, "main_visits").fetchall()
    part = work() if rows else None
    if part is None:
        return
    for name, visits in groupby(rows, lambda row: row[0]):
        ranks, *times = np.array([visit[1:] for visit in visits], np.int64).T
        bounds = np.stack([alignment.aligned(ranks, ns) for ns in times], 1)
        own = {rank: bounds[place] for rank, place in by_rank(ranks)}
        yield name, part.efficiency_within(own)

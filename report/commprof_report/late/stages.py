"""The analysis of waiting, stage by stage. Each is a function of what the stages before it gave;
only reading asks the run.

    sampled calls --> wait_split    of each: waiting, transfer, the rank that came last    Waits
                  --> timelines     what each rank did at every time                       Lines
                  --> root_causes   of each wait: which ranks caused how much of it        Causes
                  --> own_time      how late each rank was where not all wait for all      Compared
    cells         --> scale         the chosen waits, and how many calls each stands for   Sums
                  --> retimed       the calls played again: the gain without some ranks    Retimed
                  --> arrival_costs what each late arrival cost (sums.py), which verdict.py judges

late_ranks.py adds them up for the reports. Here is, too, from which recorded calls the efficiencies
of the POP centre are known; of the run and of its regions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.columns import Ints, by_rank, found_in, np
from ..base.summarize import Row, row_type
from ..base.thresholds import threshold
from ..calls import by_region
from ..calls.negotiation import Negotiation, negotiation
from ..retime.efficiency import Efficiency
from ..run.alignment import Alignment
from ..run.selection import Selection
from .known import Known, known
from .own_time import Compared, compare_own_time
from .retimed import Part, Retimed, retimed
from .root_causes import Causes, no_causes, root_causes
from .scaled import chosen_rows, scale
from .sums import Sums, run_row
from .timelines import Lines, timelines
from .verdict import NEGOTIATED
from .wait_split import WaitSplit, wait_split

SQL = query.beside(__file__)
RegionWorkRow = row_type("RegionWorkRow", (*by_region.RegionRow._fields, *Efficiency._fields))


class Split(NamedTuple):
    """Waiting and transfer of a run, without causes."""

    known: Known
    of_all: WaitSplit  # whatever was selected
    sums: Sums  # of the chosen calls of all ranks
    ranks: list[int]  # the chosen ones
    inside: list[Row]
    run: Row


@dataclass(frozen=True)
class Stages:
    split: Split
    lines: Lines  # of the whole run whatever was selected
    compared: Compared  # likewise
    sums: Sums  # with the root causes
    retimed: Retimed


def split(run: Selection, alignment: Alignment) -> Split:
    """The run must have been opened with samples."""
    connection, about = run.connection, known(run.connection)
    of_all = wait_split(run, alignment, about)
    waits, texts = of_all.waits, of_all.texts
    rows = chosen_rows(connection, waits, texts)
    sums = Sums(scale(connection, waits, rows, texts), no_causes(), texts)
    walls = connection.execute("SELECT world_rank, counted_ns FROM rank_wall ORDER BY world_rank")
    ranks = run.connection.chosen.ranks
    counted_ns = {rank: ns for rank, ns in walls if ranks is None or rank in ranks}
    inside = list(SQL.rows(connection, "time_inside"))
    return Split(
        about, of_all, sums, list(counted_ns), inside, run_row(sums, counted_ns, inside)
    )


def stages(run: Selection, alignment: Alignment) -> Stages:
    connection, found = run.connection, split(run, alignment)
    waits, texts = found.of_all.waits, found.of_all.texts
    is_nccl = found.known.is_nccl(waits.identity, texts)
    is_all = found.known.which(
        waits.call, texts, lambda call: call.kind == "all" and bool(call.is_blocking)
    )
    is_rooted = found.known.which(waits.call, texts, lambda call: call.is_rooted)
    lines = timelines(found.of_all.called, waits.take(~is_nccl), texts)
    causes = root_causes(waits, lines, is_nccl, is_all)
    compared = compare_own_time(
        found.of_all.collectives, alignment, waits, lines, is_rooted, texts
    )
    scaled = found.sums.scaled
    sums = Sums(scaled, _of_rows(causes, scaled.rows), texts)
    return Stages(found, lines, compared, sums, played(connection, alignment, found))


def played(connection: Connection, alignment: Alignment, split: Split) -> Retimed:
    of_all = split.of_all
    return retimed(
        connection, alignment, split.known, of_all.recorded, of_all.called, of_all.waits,
        split.run.sampled_share, of_all.texts,
    )


def _of_rows(causes: Causes, rows: Ints) -> Causes:
    """The causes of these waits, numbered as they are here."""
    wait = found_in((causes.wait,), (rows,))
    return replace(causes, wait=wait).take(wait >= 0)


def is_beside_main(row: Row) -> bool:
    return row.background_share >= threshold("late.background")


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

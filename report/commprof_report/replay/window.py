"""Which time of a run a kit covers."""

from __future__ import annotations

from collections import namedtuple
from sqlite3 import Connection

from ..base.columns import np
from ..run.alignment import Alignment
from ..run.holes import holes_aligned, without_holes
from .kit import Record


# The record of a rank; times are since its start. is_cut: by the end of the job.
RankRecord = namedtuple(
    "RankRecord", "world_rank begin_ns end_ns asked_ns is_full is_cut reset_ns"
)


def recorded(
    connection: Connection, alignment: Alignment
) -> tuple[Record | None, tuple[int, int]]:
    """The time that the records of all ranks have in common, on the run's axis. Each begins when
    the rank's own MPI_Init has returned."""
    records = [
        RankRecord(*row) for row in connection.execute(
            "SELECT world_rank, record_begin_ns, record_end_ns, record_asked_ns, record_is_full,"
            " record_end_ns >= rank_wall.wall_ns, coalesce(reset_unix_ns - start_unix_ns, 0)"
            " FROM rank JOIN rank_wall USING (world_rank) WHERE record_begin_ns IS NOT NULL"
        )
    ]
    if not records:
        return None, (0, 0)
    (ranks,) = connection.execute("SELECT count(*) FROM rank").fetchone()
    since_ns = max(
        alignment.aligned_ns(of.world_rank, max(of.begin_ns, of.reset_ns)) for of in records
    )
    until_ns = min(alignment.aligned_ns(of.world_rank, of.end_ns) for of in records)
    ns = max(0, until_ns - since_ns) if len(records) == ranks else 0
    asked_ns = max(of.asked_ns for of in records)
    return Record(ns, asked_ns, _why_short(records, ranks)), (since_ns, until_ns)


def _why_short(records: list[RankRecord], ranks: int) -> str | None:
    """Why ranks have less than they were asked to record."""
    full = sum(of.is_full for of in records)
    if len(records) < ranks:
        return f"only {len(records)} of {ranks} ranks were asked to"
    if full:
        return f"no more room on {full} of {ranks} ranks (COMMPROF_MEMORY)"
    if any(of.is_cut for of in records):
        return "the job ended before"
    if any(of.reset_ns > of.begin_ns for of in records):
        return "MPI_Pcontrol(2) has discarded the rest"
    return None


def window(connection: Connection, alignment: Alignment) -> tuple[int, int]:
    """The longest time, on the run's axis, without a hole in the samples of any thread."""
    walls = connection.execute("SELECT world_rank, coalesce(wall_ns, 0) FROM rank_wall").fetchall()
    begin_ns = min((alignment.aligned_ns(rank, 0) for rank, _ in walls), default=0)
    end_ns = max((alignment.aligned_ns(rank, wall_ns) for rank, wall_ns in walls), default=0)
    _, *unseen = holes_aligned(connection, alignment)
    windows = np.clip(without_holes(*unseen), begin_ns, max(begin_ns, end_ns))
    longest = np.diff(windows, axis=1).argmax()
    return int(windows[longest, 0]), int(windows[longest, 1])

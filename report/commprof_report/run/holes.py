"""Times in which samples of a rank may be missing, because the sample log was full or the reporter
has read only a part of it."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping
from sqlite3 import Connection

from ..base import query
from ..base.columns import Ints, np
from ..base.values import gathered
from ..base.query import Row
from .alignment import Alignment

SQL = query.beside(__file__)

FAR_NS = 1 << 62


# In the rank's own time; sampling windows are a thread's own.
Hole = namedtuple("Hole", "world_rank thread begin_ns end_ns")


def together_share(connection: Connection) -> float:
    """The share of the ranks' time in which all calls of the rank's main thread are sampled."""
    whole_ns = seen_ns = 0
    found, main = (
        holes(connection),
        dict(connection.execute("SELECT world_rank, thread FROM thread WHERE is_main")),
    )
    for rank, wall_ns in connection.execute(
        "SELECT world_rank, coalesce(wall_ns, 0) FROM rank_wall"
    ):
        windows = sampled_spans(
            hole for hole in found.get(rank, ()) if hole.thread == main.get(rank, 0)
        )
        whole_ns += wall_ns
        seen_ns += int(np.diff(np.clip(windows, 0, wall_ns)).sum())
    return 1 - (whole_ns - seen_ns) / whole_ns if whole_ns else 1.0


def holes(connection: Connection) -> dict[int, list[Row]]:
    """By rank, in order of their begin; docs/METHODS.md has the definition (steps, complete)."""
    return gathered((hole.world_rank, hole) for hole in SQL.ask(connection, "holes", Hole))


def holes_aligned(
    connection: Connection, alignment: Alignment, threads: Mapping[int, int] | None = None
) -> tuple[Ints, Ints, Ints]:
    """Rank, begin and end of each, on the run's axis. threads: only those of these, by rank."""
    found = [
        hole for of_rank in holes(connection).values() for hole in of_rank
        if threads is None or hole.thread == threads.get(hole.world_rank)
    ]
    rank, _, begin_ns, end_ns = np.array(found, np.int64).reshape(-1, 4).T
    return rank, alignment.aligned(rank, begin_ns), alignment.aligned(rank, end_ns)


def sampled_spans(holes: Iterable[Row]) -> Ints:
    """The time outside these holes, as rows of begin and end."""
    spans = [(hole.begin_ns, hole.end_ns) for hole in holes]
    return without_holes(*np.array(spans, np.int64).reshape(-1, 2).T)


def without_holes(begin_ns: Ints, end_ns: Ints) -> Ints:
    """The times in which none of these holes is, as rows of begin and end."""
    order = np.argsort(begin_ns, kind="stable")
    since_ns = np.maximum.accumulate(np.append(-FAR_NS, end_ns[order]))
    until_ns = np.append(begin_ns[order], FAR_NS)
    return np.stack([since_ns, until_ns], 1)[since_ns < until_ns]

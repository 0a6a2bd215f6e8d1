"""The calls of ranks up to now, for a job that may still run."""

from __future__ import annotations

from collections import namedtuple
from sqlite3 import Connection

from ..base import query
from ..base.gather import gathered
from ..base.query import Row
from ..base.summarize import View, summarize, total
from ..calls.by_rank import rank_rows
from ..calls.views import is_call, is_device, is_in_mpi, is_working
from ..run.cells import cells_of

SQL = query.beside(__file__)
# Sums over the threads of a rank; time in MPI, and in collectives, is that of the thread with the
# most, with the call that it is in. NCCL's operations have the time on the device. GPUs: the time
# that is summed up, and the part of it in which something ran, over the rank's devices.
Amounts = namedtuple(
    "Amounts", "wall_ns count volume_bytes device_ns mpi_ns collective_ns traced_ns busy_ns"
)
THREADS = View(
    "LiveRow",
    ("world_rank", "thread"),
    {
        "rank": "world_rank", "thread": "thread", "count": total("count", is_call),
        "volume_bytes": total("volume_bytes", is_call), "device_ns": total("total_ns", is_device),
        "mpi_ns": total("total_ns", is_in_mpi),
        "collective_ns": total(
            "total_ns", lambda cells: is_in_mpi(cells) & cells.is_in("family", "collective")
        ),
    },
    lambda groups: (groups.world_rank, groups.thread),
    where=is_working,
)


def live_rows(connection: Connection) -> list[tuple[Row, Amounts]]:
    """Ranks, as in rank_rows."""
    threads = {row[:2]: [*row[2:]] for row in summarize(cells_of(connection), THREADS)}
    for rank, thread, is_collective, ns in SQL.run(connection, "live"):
        own = threads.setdefault((rank, thread), [0] * 5)
        own[3:] = own[3] + ns, own[4] + ns * is_collective
    of_ranks = gathered((rank, own) for (rank, _), own in threads.items())
    gpus = {rank: times for rank, *times in SQL.run(connection, "live_gpus")}
    found = []
    for row in rank_rows(connection):
        *sums, mpi_ns, collective_ns = zip(*of_ranks.get(row.rank, [[0] * 5]))
        in_mpi = max(mpi_ns), max(collective_ns)
        amounts = row.wall_ns or 0, *map(sum, sums), *in_mpi, *gpus.get(row.rank, (0, 0))
        found.append((row, Amounts(*amounts)))
    return found

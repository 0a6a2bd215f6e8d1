"""Whether a replay stands for the job, and what a job does between polls."""

from __future__ import annotations

import sqlite3
from types import SimpleNamespace

from commprof_report.replay.check import check
from commprof_report.replay.traffic import Polls

from .compare import key, row, run


def verdict(difference: float) -> str:
    """One run of the job and one replay, whose calls take so much longer."""
    jobs, replays = (
        [run(rows={key("Bcast"): row(total_ns)}, labels={key("Bcast").group: "all"})]
        for total_ns in (1e6, 1e6 * (1 + difference))
    )
    (found,) = check(jobs, replays).rows
    return found.verdict


def scattered(scatter: float) -> str:
    """Two runs of the job, so far apart, and a replay that is like the first."""
    jobs = [
        run(rows={key("Bcast"): row(total_ns)}, labels={key("Bcast").group: "all"})
        for total_ns in (1e6, 1e6 * (1 + scatter))
    ]
    return check(jobs, jobs[:1]).rows[0].verdict


def between_polls(pause_ns: float) -> str:
    """One poll found nothing, the next one something."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE cell (world_rank, thread, call, measure, total_ns, count)")
    connection.execute("INSERT INTO cell VALUES (0, 0, 'MPI_Test', 'poll', 500, 1)")
    begin_ns = 500 + int(pause_ns)
    test = SimpleNamespace(
        world_rank=0, thread=0, call="MPI_Test", start_ns=begin_ns, polled_since_ns=0, polled_ns=500
    )
    return "waits" if Polls(connection).waits(test) else "computes"


EXAMPLES = {"replay.within": verdict, "replay.scatter": scattered, "replay.polls": between_polls}

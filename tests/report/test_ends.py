"""Ranks that ended early: which, when, how, and in which call."""

from __future__ import annotations


import planted
from planted import SECOND, START_UNIX_NS


def test_a_snapshot_is_no_early_end(report, run_folder):
    """MPI_Pcontrol(3) writes a wall time, and no end."""

    for path in run_folder.iterdir():
        planted.execute(path, "UPDATE rank SET ended = 'running', end_unix_ns = NULL")
    answer = report("summary", run_folder, "--json")
    assert (
        answer.err,
        answer.rows[0]["early_ended_ranks"],
        answer.rows[0]["wall_is_estimate"],
    ) == ("", 0, 0)
    row = report("ranks", run_folder, "--per-rank", "--json").rows[0]
    assert (row["state"], row["last_unix_ns"]) == ("snapshot", START_UNIX_NS + 10 * SECOND)

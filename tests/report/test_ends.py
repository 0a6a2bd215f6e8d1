"""Ranks that ended early: which, when, how, and in which call."""

from __future__ import annotations

import os

import planted
from planted import DATA, SECOND, START_UNIX_NS, Doing


def states_folder(tmp_path):
    """Rank 0 aborted, 1 left by exit, 2 and 3 were killed (nobody knows) in one and
    the same call."""
    ranks = planted.training_run()
    for rank, ended in zip(ranks, ("abort", "exit", "running", "running")):
        rank.ended = ended
    ranks[0].abort_code = 7
    ranks[0].doing = {0: Doing("MPI_Recv", 8 * SECOND, 1, bytes=4_096, peer=3, tag=5)}
    ranks[1].doing = {0: Doing("MPI_Bcast", 4 * SECOND, 0, bytes=64)}
    ranks[2].doing = {
        0: Doing("MPI_Wait", 9 * SECOND, 1, DATA, 65_536, request_call="MPI_Iallreduce")
    }
    ranks[3].doing = {
        0: Doing("MPI_Wait", 10 * SECOND, 1, DATA, 65_536, request_call="MPI_Iallreduce")
    }
    folder = planted.write_ledgers(tmp_path / "run", ranks)
    for path in folder.iterdir():
        os.utime(path, ns=(0, START_UNIX_NS + 13 * SECOND))
    return folder


def test_the_summary_names_who_ended_early_when_how_and_where(report, tmp_path):
    out = report("summary", states_folder(tmp_path)).out
    ends = out[out.index("Alive or ended ") :].splitlines()
    moments = [line.partition(" at ")[2] or line.partition("of life ")[2] for line in ends[::2]]
    assert [moment.partition("(")[2] for moment in moments] == [
        f"{s}.0 s after the start)" for s in (13, 10, 10)
    ]
    assert [line.partition(", ")[0] for line in ends[::2]] == [
        "Alive or ended  ranks 2-3",
        "Exited          rank 1 without MPI_Finalize",
        "Aborted         rank 0 by MPI_Abort(7)",
    ]
    assert [line.strip() for line in ends[1::2]] == [
        "in MPI_Wait for MPI_Iallreduce (64 KiB) on Comm_split {2-3}, for 3.00 s to 4.00 s or more",
        "outside MPI after MPI_Bcast, for 6.00 s",
        "in MPI_Recv (4 KiB from rank 3, tag 5) on MPI_COMM_WORLD, for 2.00 s",
    ]


def test_the_thread_that_is_inside_longest_is_the_one_shown(report, tmp_path):
    rank = planted.training_rank(0)
    rank.ended, rank.world_size = "running", 1
    rank.doing = {
        0: Doing("MPI_Bcast", 8 * SECOND, 0),
        1: Doing("MPI_Recv", 9 * SECOND, 1, peer=-2),
    }
    planted.write_ledger(tmp_path / "rank-0.ledger", rank)
    assert "in MPI_Recv (from any rank) on MPI_COMM_WORLD" in report("summary", tmp_path).out
    rank.doing[0].is_inside = 1
    planted.write_ledger(tmp_path / "rank-0.ledger", rank)
    assert "in MPI_Bcast on MPI_COMM_WORLD" in report("summary", tmp_path).out
    rank.doing[0].is_inside = rank.doing[1].is_inside = 0
    planted.write_ledger(tmp_path / "rank-0.ledger", rank)
    assert "outside MPI after MPI_Recv" in report("summary", tmp_path).out


def test_the_first_call_of_all_may_be_the_one_that_hangs(report, tmp_path):
    """Nothing is counted yet on any communicator."""
    rank = planted.training_rank(0)
    rank.ended, rank.world_size, rank.cells, rank.peers = "running", 1, [], []
    rank.doing = {0: Doing("MPI_Barrier", SECOND)}
    planted.write_ledger(tmp_path / "rank-0.ledger", rank)
    assert "  in MPI_Barrier on MPI_COMM_WORLD, for " in report("summary", tmp_path).out


def test_a_thousand_ranks_everywhere_are_a_few_lines(report, tmp_path):
    ranks = [
        planted.Rank(own, 40, ended="running", communicators=planted.communicators_of(0)[:1])
        for own in range(40)
    ]
    for rank in ranks:
        rank.doing = {0: Doing("MPI_Recv", SECOND, peer=(rank.world_rank + 1) % 40)}
    out = report("summary", planted.write_ledgers(tmp_path / "run", ranks)).out
    assert out.count("  in MPI_Recv (from rank ") == 12
    assert "and 28 ranks elsewhere; hvprof-report ranks --per-rank names them" in out


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

"""Ledgers that are being written, of processes that live or were killed, and copies of them."""

from __future__ import annotations

import os
import struct
import subprocess
import time

import planted
import pytest
from cases import of
from commprof_report.run import ledger, ledger_format, rank_files
from planted import SECOND, START_UNIX_NS, Cell, Doing, Rank, process_facts


def killed_rank(**changes: object) -> Rank:
    """The only rank of a job, without an end."""
    rank = planted.training_rank(0)
    rank.world_size, rank.ended = 1, "running"
    for name, value in changes.items():
        setattr(rank, name, value)
    return rank


def facts_read(report, path) -> dict[str, str]:
    return {row["key"]: row["value"] for row in report("export", path, "--table", "fact").rows}


@pytest.fixture
def other_process():
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        yield sleeper
        sleeper.kill()


def test_a_process_that_lives_is_told_from_one_that_was_killed(other_process):
    facts = process_facts(other_process.pid)
    assert ledger_format.process_state(other_process.pid, facts) == "running"
    other_process.kill()
    # a zombie still has a place in /proc
    os.waitid(os.P_PID, other_process.pid, os.WEXITED | os.WNOWAIT)
    assert ledger_format.process_state(other_process.pid, facts) == "killed"
    other_process.wait()
    assert ledger_format.process_state(other_process.pid, facts) == "killed"


def test_a_process_id_that_was_given_again_is_not_the_process():
    facts = process_facts(os.getpid())
    assert ledger_format.process_state(os.getpid(), {**facts, "process_start": "1"}) == "killed"


@pytest.mark.parametrize("fact", ("boot_id", "pid_namespace"))
def test_a_process_of_another_node_or_container_may_live_or_not(fact):
    facts = process_facts(os.getpid())
    assert ledger_format.process_state(os.getpid(), {**facts, fact: "another"}) == "unknown"
    del facts[fact]
    assert ledger_format.process_state(os.getpid(), facts) == "unknown"


def test_a_process_that_proc_hides_is_not_said_to_be_killed(monkeypatch, other_process):
    """Mounted with hidepid, it shows a user no processes of others."""
    monkeypatch.setattr(ledger_format, "_state_and_start", lambda pid: ("", ""))
    facts = process_facts(other_process.pid)
    assert ledger_format.process_state(other_process.pid, facts) == "unknown"
    other_process.kill()
    other_process.wait()
    assert ledger_format.process_state(other_process.pid, facts) == "killed"


def test_the_wall_time_of_a_process_that_lives_goes_up_to_now(report, tmp_path, monkeypatch):
    rank = killed_rank(facts=process_facts(os.getpid()), pid=os.getpid())
    planted.write_ledger(tmp_path / "rank-0.ledger", rank)
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _: planted.START_NS + 42 * SECOND)
    (row,) = report("ranks", tmp_path, "--per-rank", "--json").rows
    assert of(row, "wall_ns counted_ns wall_is_estimate") == (42 * SECOND, 42 * SECOND, 1)
    assert facts_read(report, tmp_path)["process_state"] == "running"


def test_the_last_sign_of_life_is_the_newest_of_calls_and_file(report, tmp_path):
    doing = {0: Doing("MPI_Recv", 3 * SECOND), 1: Doing("MPI_Send", 5 * SECOND, is_inside=0)}
    path = planted.write_ledger(tmp_path / "rank-0.ledger", killed_rank(doing=doing))
    for modified_s, last_s in ((4, 5), (6, 6)):
        os.utime(path, ns=(0, START_UNIX_NS + modified_s * SECOND))
        assert facts_read(report, path)["last_sign_unix_ns"] == str(START_UNIX_NS + last_s * SECOND)


def test_what_a_thread_is_doing_is_read(report, tmp_path):
    doing = Doing("MPI_Wait", 2 * SECOND, 1, planted.DATA, 65_536, 1, 99, request_call="MPI_Irecv")
    path = planted.write_ledger(tmp_path / "rank-0.ledger", killed_rank(doing={0: doing}))
    first, second = report("export", path, "--table", "thread").rows
    keys = "call communicator is_inside since_ns bytes peer tag request_call"
    keys = " ".join(f"doing_{key}" for key in keys.split())
    expected = ("MPI_Wait", planted.DATA, 1, 2 * SECOND, 65_536, 1, 99, "MPI_Irecv")
    assert of(first, keys) == expected
    assert of(second, keys) == ("", 0, 0, 0, None, None, None, "")


def test_of_recent_collectives_the_oldest_is_left_out_since_it_may_be_half_written(
    report, tmp_path
):
    planted.write_ledger(tmp_path / "rank-0.ledger", killed_rank())
    rows = report("export", tmp_path, "--table", "recent_collective").rows
    assert [row["sequence"] for row in rows] == list(range(8, 23))
    assert {row["call"] for row in rows} == {"MPI_Allreduce"}


def test_cells_and_peers_from_before_a_reset_do_not_count(report, tmp_path):
    rank = killed_rank(epoch=2)
    data = bytearray(planted.ledger_bytes(rank))
    at = data.rindex(struct.pack("<2Iq2I", 1, 0, 4_001, 2, 0))
    struct.pack_into("<I", data, at + 16, 1)  # thread 1 has not caught up
    path = tmp_path / "rank-0.ledger"
    path.write_bytes(data)
    (row,) = report("sizes", path, "--json", "--call", "allreduce", "--bytes", "1000").rows
    assert row["count"] == 50
    assert report("peers", path, "--json").rows != []
    struct.pack_into("<I", data, at + 16 - planted.THREAD_BYTES, 1)  # thread 0 neither
    path.write_bytes(data)
    assert report("calls", path, "--json").rows == report("peers", path, "--json").rows == []


def test_shares_are_of_the_time_that_was_counted(report, tmp_path):
    what = {"counted_ns": 4 * SECOND, "reset_unix_ns": START_UNIX_NS + SECOND}
    what["communicators"] = planted.communicators_of(0)[:1]
    rank = Rank(0, 1, cells=[Cell("MPI_Barrier", 0, [SECOND])], **what)
    for path in (
        planted.write_ledger(tmp_path / "a.ledger", rank),
        planted.write_database(tmp_path / "a.db", rank),
    ):
        (row,) = report("ranks", path, "--per-rank", "--json").rows
        assert of(row, "wall_ns counted_ns mpi_share") == (10 * SECOND, 4 * SECOND, 0.25)
        assert row["reset_unix_ns"] == START_UNIX_NS + SECOND
        assert report("calls", path, "--json").rows[0]["share_of_wall"] == 0.25
        shown = report("summary", path).out
        assert "wall time 10.0 s, calls counted during 4.00 s of it" in shown
        assert "25.0 % of counted time" in shown
        assert "of wall time" not in shown.partition("Profiler's cost")[0]


AT_REST = killed_rank(folds=(3, 3), cells=[Cell("MPI_Bcast", 8, [100] * 5)])


def test_a_ledger_that_folds_while_it_is_read_is_read_again(report, tmp_path, monkeypatch):
    path = planted.write_ledger(tmp_path / "rank-0.ledger", killed_rank(folds=(3, 2)))
    monkeypatch.setattr(ledger.time, "sleep", lambda _: planted.write_ledger(path, AT_REST))
    answer = report("calls", path, "--json")
    assert [(row["call"], row["count"]) for row in answer.rows] == [("MPI_Bcast", 5)]
    assert "changed each time" not in answer.err


def test_a_fold_from_begin_to_end_while_it_is_read_is_noticed_too(report, tmp_path, monkeypatch):
    path = planted.write_ledger(tmp_path / "rank-0.ledger", killed_rank(folds=(2, 2)))
    pread = os.pread

    def meanwhile(file: int, length: int, at: int) -> bytes:
        if length == 2 * planted.THREAD_BYTES:  # threads come last
            planted.write_ledger(path, AT_REST)
        return pread(file, length, at)

    monkeypatch.setattr(os, "pread", meanwhile)
    assert [row["call"] for row in report("calls", path, "--json").rows] == ["MPI_Bcast"]


@pytest.mark.slow
def test_a_ledger_that_never_rests_is_read_all_the_same_and_that_is_said(
    report, tmp_path, monkeypatch
):
    path = planted.write_ledger(tmp_path / "rank-0.ledger", killed_rank(folds=(1, 0)))
    folds = iter(range(2, 100))
    moving = lambda _: planted.write_ledger(path, killed_rank(folds=(next(folds), 0)))  # noqa: E731
    monkeypatch.setattr(ledger.time, "sleep", moving)
    answer = report("calls", path, "--json")
    assert answer.rows[0]["count"] == 160
    assert "changed each time it was read" in answer.err


def test_details_of_a_thread_that_does_not_stand_still_are_not_believed(
    report, tmp_path, monkeypatch
):
    """Each second read finds another call, with the details of the one before."""
    rank = killed_rank(doing={0: Doing("MPI_Recv", bytes=64, peer=3, tag=1)})
    path = planted.write_ledger(tmp_path / "rank-0.ledger", rank)
    calls, pread = iter(range(1_000)), os.pread

    def racing(file: int, length: int, at: int) -> bytes:
        data = pread(file, length, at)
        is_of_threads = length == 2 * planted.THREAD_BYTES
        return bytes([next(calls) % 15 + 1]) + data[1:] if is_of_threads else data

    monkeypatch.setattr(os, "pread", racing)
    row = report("export", path, "--table", "thread").rows[0]
    assert of(row, "doing_bytes doing_peer doing_tag") == (None, None, None)


def write_copy(path, original, **changes: object) -> None:
    facts = {**process_facts(os.getpid()), "ledger_file": str(original)}
    changes["copied_unix_ns"] = START_UNIX_NS + 8 * SECOND
    planted.write_ledger(path, killed_rank(facts=facts, **changes))


def test_the_original_is_read_where_it_is_on_this_machine(report, tmp_path):
    original = planted.write_ledger(tmp_path / "original", AT_REST)
    (tmp_path / "run").mkdir()
    write_copy(tmp_path / "run" / "rank-0.ledger", original)
    answer = report("calls", tmp_path / "run", "--json")
    assert [row["count"] for row in answer.rows] == [5]
    assert "is shown as of" not in answer.err


def written_with(**changes: object):
    return lambda path: planted.write_ledger(path, killed_rank(cells=[], **changes))


ORIGINALS = {
    "gone": lambda path: None,
    "another process's": written_with(start_unix_ns=START_UNIX_NS + 1),
    "a copy too": written_with(copied_unix_ns=1),
    "a pipe": os.mkfifo,
    "of another machine": written_with(),
}


@pytest.mark.parametrize("other", ORIGINALS)
def test_else_the_copy_is_read_and_says_as_of_when(report, tmp_path, other):
    ORIGINALS[other](tmp_path / "original")
    (tmp_path / "run").mkdir()
    copy = tmp_path / "run" / "rank-0.ledger"
    write_copy(copy, tmp_path / "original")
    if other == "of another machine":
        boot_id = process_facts(os.getpid())["boot_id"].encode()
        copy.write_bytes(copy.read_bytes().replace(boot_id, b"x" * 36))
    answer = report("ranks", tmp_path / "run", "--per-rank", "--json")
    assert answer.rows[0]["count"] > 100
    # a call after the moment of the copy counts as a sign of life
    assert answer.rows[0]["wall_ns"] == 9 * SECOND
    assert "rank 0 is shown as of 20" in answer.err
    assert "the time of the ledger's copy" in answer.err


def test_a_database_and_a_leftover_copy_of_its_rank_count_once(report, run_folder):
    whole = report("sizes", run_folder, "--json").out
    write_copy(run_folder / "rank-0.ledger", "/nowhere", world_size=4)
    answer = report("sizes", run_folder, "--json")
    assert (answer.out, answer.err) == (whole, "")


@pytest.mark.parametrize("moment", ("looking", "scanning", "reading"))
def test_a_rank_that_finalizes_while_the_folder_is_read_is_read_once(
    report, ledger_folder, monkeypatch, moment
):
    """Its ledger gives way to a database: while the folder is looked at first, which finds neither,
    after that, or after its first bytes."""
    whole = report("sizes", ledger_folder, "--json").out

    def finalize() -> None:
        if (ledger_folder / "rank-2.ledger").exists():
            planted.write_database(ledger_folder / "rank-2.db", planted.training_rank(2))
            (ledger_folder / "rank-2.ledger").unlink()

    owner, name = {
        "looking": (rank_files.os, "listdir"),
        "scanning": (rank_files, "file_scan"),
        "reading": (rank_files, "runs_split"),
    }[moment]
    before = getattr(owner, name)

    def meanwhile(*arguments: object) -> object:
        if moment == "looking" and (ledger_folder / "rank-2.ledger").exists():
            finalize()
            return [name for name in before(*arguments) if not name.startswith("rank-2.")]
        finalize()
        return before(*arguments)

    monkeypatch.setattr(
        "commprof_report.run.run.runs_split" if moment == "reading" else f"{owner.__name__}.{name}",
        meanwhile,
    )
    answer = report("sizes", ledger_folder, "--json")
    assert (answer.out, answer.err) == (whole, "")


@pytest.mark.slow
@pytest.mark.parametrize("is_of_this_run", (True, False))
def test_a_rank_that_begins_while_the_others_are_read_is_not_missing(
    report, ledger_folder, monkeypatch, is_of_this_run
):
    whole = report("sizes", ledger_folder, "--json").out
    later = planted.training_rank(2)
    if not is_of_this_run:
        later.run_id = "of another job"
    (ledger_folder / "rank-2.ledger").unlink()

    def meanwhile(*arguments: object, read=ledger.ledger_read) -> object:
        planted.write_ledger(ledger_folder / "rank-2.ledger", later)
        return read(*arguments)

    monkeypatch.setattr("commprof_report.run.run.ledger_read", meanwhile)
    answer = report("sizes", ledger_folder, "--json")
    if is_of_this_run:
        assert (answer.out, answer.err) == (whole, "")
    else:
        assert answer.err == f"hvprof-report: {ledger_folder}: rank 2 of 4 is missing\n"


def test_a_pipe_in_place_of_a_file_does_not_keep_the_reader_waiting(report, run_folder):
    os.mkfifo(run_folder / "rank-5.ledger")
    answer = report("calls", run_folder, "--json")
    assert answer.rows[0]["count"] == 640
    assert answer.err == f"hvprof-report: {run_folder}/rank-5.ledger: is not a regular file\n"

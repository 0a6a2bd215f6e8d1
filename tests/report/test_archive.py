"""Archives with the databases of a node's ranks: read like the ranks' own files, whatever a killed
rank has left at their end."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import planted
import pytest
from commprof_report.run import run as reading
from commprof_report.run.database import BLOCK
from planted import archive

NODES = ("node-1-node17-5c3e09b1.tar", "node-1-node18-00000000.tar")


@pytest.fixture
def of_nodes(run_folder, tmp_path) -> Path:
    """The planted run of four ranks on two nodes."""
    run = Path(shutil.copytree(run_folder, tmp_path / "nodes" / run_folder.name))
    archive(run, NODES[0], range(2))
    archive(run, NODES[1], range(2, 4))
    return run


@pytest.mark.parametrize("command", ("summary", "export"))
def test_archives_read_like_the_ranks_own_files(report, run_folder, of_nodes, command):
    files, nodes = (report(command, run, "--json") for run in (run_folder, of_nodes))
    assert nodes == files


def end_of_the_first_member(path: Path) -> int:
    with tarfile.open(path) as tar:
        return tar.getmembers()[1].offset


def negative_size(header: bytes) -> bytes:
    """A size of minus two blocks, with the right checksum: the next header would be the one
    before."""
    size = (-2 * BLOCK).to_bytes(12, "big", signed=True)
    header = header[:124] + size + header[136:148] + b" " * 8 + header[156:]
    return header[:148] + b"%06o\0 " % sum(header) + header[156:]


TAILS = {
    "nothing": lambda rest: b"",
    "a header": lambda rest: rest[:BLOCK],
    "half a header": lambda rest: rest[: BLOCK // 2],
    "half a database": lambda rest: rest[: len(rest) // 2],
    "another header": lambda rest: b"R" + rest[1:],
    "zeros before the data": lambda rest: bytes(BLOCK) + rest[BLOCK:],
    "a negative size": lambda rest: negative_size(rest[:BLOCK]) + rest[BLOCK:],
}


@pytest.mark.slow
@pytest.mark.parametrize("left", TAILS)
def test_what_a_kill_has_left_at_the_end_is_the_ledgers_rank(report, run_folder, of_nodes, left):
    path = of_nodes / NODES[1]
    end, data = end_of_the_first_member(path), path.read_bytes()
    rest = data[end : end + (len(data) - end) // 2 // BLOCK * BLOCK]
    path.write_bytes(data[:end] + TAILS[left](rest))
    assert report("calls", of_nodes).err == f"hvprof-report: {of_nodes}: rank 3 of 4 is missing\n"
    planted.write_ledger(of_nodes / "rank-3.ledger", planted.training_rank(3))
    answer = report("sizes", of_nodes, "--json")
    assert (answer.out, answer.err) == (report("sizes", run_folder, "--json").out, "")


def test_a_rank_that_was_killed_before_it_removed_its_ledger_counts_once(
    report, run_folder, of_nodes
):
    planted.write_ledger(of_nodes / "rank-3.ledger", planted.training_rank(3))
    answer = report("sizes", of_nodes, "--json")
    assert (answer.out, answer.err) == (report("sizes", run_folder, "--json").out, "")


def test_a_damaged_database_in_an_archive_is_named_and_the_ledger_is_read(
    report, run_folder, of_nodes
):
    path = of_nodes / NODES[1]
    with tarfile.open(path) as tar, open(path, "r+b") as file:
        file.seek(tar.getmembers()[1].offset_data + 100)
        file.write(bytes(4000))
    planted.write_ledger(of_nodes / "rank-3.ledger", planted.training_rank(3))
    answer = report("sizes", of_nodes, "--json")
    assert answer.out == report("sizes", run_folder, "--json").out
    (line,) = answer.err.splitlines()
    assert line.startswith(f"hvprof-report: {path}/rank-3.db: is damaged: ")


def test_an_archive_that_cannot_be_read_or_unpacked_is_named(report, of_nodes, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(of_nodes / "nowhere"))
    monkeypatch.setattr("tempfile.tempdir", str(of_nodes / "nowhere"))
    answer = report("sizes", of_nodes / NODES[0])
    assert answer.status == 1 and "cannot be unpacked: No such file or directory" in answer.err
    monkeypatch.undo()
    (of_nodes / NODES[0]).unlink()
    os.mkfifo(of_nodes / NODES[0])
    said = f"hvprof-report: {of_nodes / NODES[0]}: is not a regular file\n"
    assert report("calls", of_nodes).err.startswith(said)


@pytest.mark.parametrize("scanned", [False, True])
def test_a_ledger_that_has_gone_into_an_archive_meanwhile_is_read_there(
    report, run_folder, of_nodes, monkeypatch, scanned
):
    """Before its file is looked at, or between that and its reading."""
    (of_nodes / NODES[1]).rename(of_nodes / "later")
    for rank in (2, 3):
        planted.write_ledger(of_nodes / f"rank-{rank}.ledger", planted.training_rank(rank))

    def end() -> None:
        if (of_nodes / "later").exists():
            (of_nodes / "later").rename(of_nodes / NODES[1])
            for rank in (2, 3):
                (of_nodes / f"rank-{rank}.ledger").unlink()

    if scanned:
        monkeypatch.setattr(
            reading, "runs_split", lambda files, real=reading.runs_split: (end(), real(files))[1]
        )
    else:
        real = reading.folder_scan.__globals__["rank_paths"]
        monkeypatch.setitem(
            reading.folder_scan.__globals__, "rank_paths", lambda *given: (real(*given), end())[0]
        )
    answer = report("sizes", of_nodes, "--json")
    assert (answer.out, answer.err) == (report("sizes", run_folder, "--json").out, "")

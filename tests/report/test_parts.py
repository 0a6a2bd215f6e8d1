"""A large run is read in parts, side by side: it becomes the same run as one file
after the other."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import planted
import pytest
from commprof_report.main import main
from commprof_report.run import rank_files, sampled
from commprof_report.run import run as reading
from commprof_report.run.run import Run, run_open
from planted import ROOT, Rank

RANKS = 66


def rank_of(world_rank: int) -> Rank:
    """A rank with some rows of each kind: the training run with GPUs."""
    return replace(planted.gpu_rank(world_rank % 4), world_rank=world_rank, world_size=RANKS)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    return planted.write_databases(
        tmp_path_factory.mktemp("written"), [rank_of(rank) for rank in range(RANKS)]
    )


@pytest.fixture
def folder(written, tmp_path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "run"))


class Read(NamedTuple):
    rows: dict[str, list[tuple]]
    notes: list[str]


def everything(run: Run) -> Read:
    tables = "SELECT name FROM main.sqlite_master WHERE type = 'table'"
    rows = {
        table: run.connection.execute(f"SELECT * FROM main.{table}").fetchall()
        for (table,) in run.connection.execute(tables)
    }
    return Read(rows, run.notes)


def split(monkeypatch, files: int, first: int = sampled.FIRST) -> None:
    """Parts have so many files, and so many are read before them."""
    for module, name, value in (
        (rank_files, "FILES_OF_PART", files),
        (reading, "FILES_OF_PART", files),
        (reading, "FIRST", first),
        (sampled, "FIRST", first),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.fixture
def in_parts(monkeypatch):
    """Rows read of a folder: the same one file after the other as in parts, by one process or
    three."""

    def read(folder: Path, parts: int = 7, first: int = sampled.FIRST, **options: object) -> Read:
        answers, taken = [], []
        copy = reading.database_copy

        def counting(connection, path: Path, *more: object, **named: object) -> None:
            copy(connection, path, *more, **named)
            taken.extend([path] * path.name.startswith("commprof-"))

        monkeypatch.setattr(reading, "database_copy", counting)
        for files, cores in ((RANKS, 3), (10, 1), (10, 3)):
            split(monkeypatch, files, first)
            monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: set(range(cores)))
            answers.append(everything(run_open(folder, **options)))
        monkeypatch.setattr(reading, "database_copy", copy)
        alone, *others = answers
        assert all(other == alone for other in others)
        assert len(taken) == 2 * parts, "parts that were joined"
        return alone

    return read


def test_the_same_sums_are_read_in_parts(folder, in_parts):
    read = in_parts(folder)
    assert read.rows["sample"] == [] and read.rows["cell"] and read.notes == []


@pytest.mark.slow
@pytest.mark.parametrize("most, first, parts", [(20_000, 4, 7), (300, 0, 0)])
def test_the_same_samples_are_read_in_parts(folder, in_parts, most, first, parts):
    """Parts with more samples than the first files let expect are read again, file by file."""
    read = in_parts(folder, parts, first, with_samples=True, most_samples=most)
    assert 0 < len(read.rows["sample"]) + len(read.rows["gpu_sample"]) <= most


def test_the_first_files_tell_what_is_left_out_of_the_others(folder, monkeypatch):
    """The first 16, of which one is damaged, have fewer samples than all may have, but more than
    their share."""
    planted.execute(folder / "rank-3.db", "UPDATE cell SET count = 'many'")
    left_out, leave_out = [], sampled.Thinning._leave_out

    def noted(thinning, *more: object) -> None:
        left_out.append(thinning.files_read)
        leave_out(thinning, *more)

    monkeypatch.setattr(sampled.Thinning, "_leave_out", noted)
    split(monkeypatch, 10, 16)
    run_open(folder, with_samples=True, most_samples=2_500)
    assert left_out == [16]


@pytest.mark.slow
def test_files_that_are_damaged_are_named(folder, in_parts):
    planted.execute(folder / "rank-23.db", "UPDATE cell SET count = 'many'")
    (folder / "rank-31.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    read = in_parts(folder)
    assert [note.partition(": ")[0].rpartition("/")[2] for note in read.notes] == [
        "rank-31.db",
        "rank-23.db",
        "run",
    ]
    assert len(read.rows["rank"]) == RANKS - 2


@pytest.mark.slow
def test_ledgers_are_read_one_after_the_other(folder, in_parts):
    ended = replace(rank_of(5), ended="running")
    (folder / "rank-5.db").unlink()
    planted.write_ledgers(folder, [ended])
    assert "rank 5" in " ".join(in_parts(folder, parts=0).notes)


@pytest.mark.slow
def test_without_space_for_the_parts_files_are_read_one_after_the_other(
    folder, in_parts, monkeypatch
):
    def full(*_) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(reading, "database_write", full)
    assert in_parts(folder, parts=0).notes == []


@pytest.mark.parametrize("files", [RANKS, 10])
def test_a_full_disk_is_said_of_temporary_files(written, monkeypatch, capsys, files):
    """And sound files are not called damaged."""
    create = reading.database_create

    def small(*words: int):
        connection = create(*words)
        connection.execute("PRAGMA max_page_count = 60")
        return connection

    monkeypatch.setattr(reading, "database_create", small)
    split(monkeypatch, files)
    assert main(["calls", str(written)]) == 1
    said = "temporary files: no space is left for them; TMPDIR can name another folder"
    assert capsys.readouterr() == ("", f"hvprof-report: {said}\n")


@pytest.mark.slow
def test_numbers_that_do_not_fit_into_the_run_leave_one_file_out(folder, in_parts):
    for rank in (3, 44):
        path = folder / f"rank-{rank}.db"
        planted.execute(path, f"UPDATE cell SET cell = {1 << 62} WHERE cell = 1")
    read = in_parts(folder, parts=5)  # their parts are read file by file
    assert "rank-44.db: is damaged" in read.notes[0]


def said_by(*words: object) -> bytes:
    """stdout of hvprof-report calls --json: of a process, or of those of an MPI job."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "report")}
    environment.pop("TMPDIR", None)  # Open MPI's sockets need short paths
    done = subprocess.run(words, stdout=subprocess.PIPE, env=environment, check=True)
    return done.stdout


CALLS = (sys.executable, ROOT / "report" / "hvprof-report", "calls", "--json")
MPIRUN = "mpirun.openmpi"


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which(MPIRUN), reason="no Open MPI")
def test_the_processes_of_an_mpi_job_read_the_same(folder):
    pytest.importorskip("mpi4py.futures")
    options = ("--oversubscribe", "--allow-run-as-root", "-n", "3")
    by_job = said_by(MPIRUN, *options, *CALLS, "--executor", "mpi", folder)
    assert by_job == said_by(*CALLS, folder)

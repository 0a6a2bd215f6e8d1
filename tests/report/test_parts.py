"""A large run is read in parts, side by side: it becomes the same run as one file
after the other."""

from __future__ import annotations

import os
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import planted
import pytest
from commprof_report.base.columns import Texts
from commprof_report.run import rank_files
from commprof_report.run import run as reading
from commprof_report.run.run import Run, run_open
from commprof_report.run.sampled import Sampled, sampled, sampled_read
from planted import Rank, Sample

RANKS, MOST = 66, 20_000
TEXTS = Texts()  # have one number each in all runs
MS = 1_000_000


def rank_of(world_rank: int) -> Rank:
    """A rank with some rows of each kind: the training run with GPUs, and 2048 more collectives and
    90 messages."""
    rank = replace(planted.gpu_rank(world_rank % 4), world_rank=world_rank, world_size=RANKS)
    first = 1 + max(sample.sequence or 0 for sample in rank.samples)
    rank.samples += [
        Sample("MPI_Allreduce", n * MS, n * MS + 500, sequence=n) for n in range(first, 2_048)
    ]
    rank.samples += [
        Sample("MPI_Send", n * 90 * MS + 700, n * 90 * MS + 800, peer=0, tag=1, number=n)
        for n in range(1, 91)
    ]
    return rank


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
    masks: dict[str, int]


def everything(run: Run) -> Read:
    tables = [
        name
        for (name,) in run.connection.execute(
            "SELECT name FROM main.sqlite_master WHERE type = 'table'"
        )
    ]
    rows = {
        table: run.connection.execute(f"SELECT * FROM main.{table}").fetchall() for table in tables
    }
    thinning = run.thinning
    if thinning:
        rows |= columns_of(sampled(run.connection))
        assert columns_of(sampled_read(run.connection)).items() <= rows.items()
    return Read(rows, run.notes, thinning.masks if thinning else {})


def columns_of(calls: Sampled) -> dict[str, list[tuple]]:
    """By table the rows that the columns of sampled calls hold."""
    _, *tables = calls.in_texts(TEXTS)
    return {
        type(rows).__name__: [*zip(*(column.tolist() for column in vars(rows).values()))]
        for rows in tables
    }


@pytest.fixture
def in_parts(monkeypatch):
    """Rows read of a folder: the same one file after the other as in parts, by one process or
    three."""

    def read(
        folder: Path, most_samples: int | None = MOST, with_samples: bool = True, parts: int = 7
    ) -> Read:
        answers, taken = [], []
        part_take = reading._part_take
        monkeypatch.setattr(reading, "_part_take", lambda *part: taken.append(part_take(*part)))
        for files, cores in ((RANKS, 3), (10, 1), (10, 3)):
            monkeypatch.setattr(reading, "FILES_OF_PART", files)
            monkeypatch.setattr(rank_files, "SCANNED_AT_ONCE", files)
            monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: set(range(cores)))
            answers.append(
                everything(run_open(folder, with_samples=with_samples, most_samples=most_samples))
            )
        monkeypatch.setattr(reading, "_part_take", part_take)
        alone, *others = answers
        assert all(other == alone for other in others)
        assert len(taken) == 2 * parts, "parts that were joined"
        return alone

    return read


@pytest.mark.slow
@pytest.mark.parametrize("most", (MOST, 1_000_000))
def test_the_same_rows_are_read_in_parts(folder, in_parts, most):
    read = in_parts(folder, most)
    assert any(read.masks.values()) == (most == MOST)
    assert (all(read.rows.values()) or most == MOST) and read.notes == []


@pytest.mark.slow
def test_the_same_sums_are_read_in_parts(folder, in_parts):
    assert in_parts(folder, with_samples=False).rows["sample"] == []


@pytest.mark.slow
def test_a_damaged_file_is_left_out_and_does_not_count(folder, in_parts):
    planted.execute(folder / "rank-23.db", "UPDATE sample SET root = 'x'")
    (folder / "rank-31.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    read = in_parts(folder)
    assert [note.partition(": ")[0].rpartition("/")[2] for note in read.notes] == [
        "rank-31.db", "rank-23.db", "run",
    ]
    sums = in_parts(folder, with_samples=False)
    assert len(sums.rows["rank"]) == RANKS - 1


@pytest.mark.slow
def test_a_file_whose_sums_are_damaged_is_named(folder, in_parts):
    planted.execute(folder / "rank-23.db", "UPDATE cell SET count = 'many'")
    read = in_parts(folder, with_samples=False)
    assert [note.partition(": ")[0].rpartition("/")[2] for note in read.notes] == [
        "rank-23.db", "run",
    ]


@pytest.mark.slow
def test_ledgers_are_read_one_after_the_other(folder, in_parts):
    ended = replace(rank_of(5), ended="running")
    (folder / "rank-5.db").unlink()
    planted.write_ledgers(folder, [ended])
    read = in_parts(folder, parts=0)
    assert "rank 5" in " ".join(read.notes)


@pytest.mark.slow
def test_databases_to_which_something_was_added_are_read_in_parts_too(folder, in_parts):
    planted.execute(folder / "rank-5.db", "CREATE INDEX mine ON sample (start_ns)")
    assert in_parts(folder).notes == []
    assert in_parts(folder, with_samples=False).notes == []


@pytest.mark.slow
def test_without_space_for_the_parts_files_are_read_one_after_the_other(
    folder, in_parts, monkeypatch
):
    def full(*_) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(reading, "database_write", full)
    assert in_parts(folder, parts=0).notes == []


@pytest.mark.slow
def test_numbers_that_do_not_fit_into_the_run_leave_one_file_out(folder, in_parts):
    for rank in (3, 44):
        path = folder / f"rank-{rank}.db"
        planted.execute(path, f"UPDATE cell SET cell = {1 << 62} WHERE cell = 1")
    read = in_parts(folder, most_samples=1_000_000, parts=6)  # the other is read file by file
    assert "rank-44.db: is damaged" in read.notes[0]

"""The cache of a large run's folder: the same answers as from the ranks' files, and never a stale
one."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

import planted
import pytest
from commprof_report.run.cache import FEWEST_FILES, NAME

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))
import large_run  # noqa: E402

RANKS, STEPS = FEWEST_FILES, 10
COMMANDS = (
    "summary", "calls", "sizes", "late", "steps", "ranks", "peers", "pipeline", "advise", "gpu",
    "communicators",
)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    ranks = [large_run.rank_of(rank, RANKS, STEPS) for rank in range(RANKS)]
    return planted.write_databases(tmp_path_factory.mktemp("written"), ranks)


@pytest.fixture
def folder(written, tmp_path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "run"))


@pytest.fixture
def cached(report, folder) -> Path:
    """A folder with a cache."""
    answer = report("summary", folder)
    said = (
        f"{folder / NAME}: holds the run from now on, and is read instead of {RANKS} files as "
        "long as they do not change"
    )
    assert said in answer.err and (folder / NAME).exists()
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_the_cache_gives_the_same_rows_as_the_files(report, cached, command):
    from_files, from_cache = (
        report(command, cached, "--json", "--no-cache"), report(command, cached, "--json"),
    )
    assert from_cache.rows == from_files.rows
    assert report(command, cached).out == report(command, cached, "--no-cache").out


def test_the_cache_is_read_and_not_the_files(report, cached):
    path = cached / "rank-3.db"
    status = path.stat()
    with open(path, "r+b") as file:  # damaged, but as large and as old as before
        file.write(bytes(100))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert report("calls", cached).err == ""
    assert "rank-3.db" in report("calls", cached, "--no-cache").err


def ranks_of(report, folder: Path) -> int:
    return len(report("ranks", folder, "--per-rank", "--json").rows)


def test_a_changed_file_makes_it_out_of_date(report, cached):
    before = (cached / NAME).stat().st_mtime_ns
    planted.execute(cached / "rank-3.db", "UPDATE rank SET wall_ns = wall_ns + 7")
    walls = [row["wall_ns"] for row in report("ranks", cached, "--per-rank", "--json").rows]
    assert sorted(walls)[-1] == sorted(walls)[-2] + 7
    assert (cached / NAME).stat().st_mtime_ns == before, (
        "nothing writes it but a command that reads samples"
    )
    assert "holds the run from now on" in report("late", cached).err
    assert (cached / NAME).stat().st_mtime_ns > before


@pytest.mark.slow
def test_so_does_one_that_has_gone_and_one_that_has_come(report, cached):
    (cached / "rank-3.db").rename(cached / "aside")
    assert ranks_of(report, cached) == RANKS - 1
    (cached / "aside").rename(cached / "rank-3.db")
    assert ranks_of(report, cached) == RANKS
    planted.write_ledgers(cached, [planted.Rank(0, RANKS)])
    assert "which another file holds too" not in report("calls", cached).err
    assert "holds the run from now on" not in report("late", cached).err, (
        "a run with ledgers has none"
    )


@pytest.mark.slow
def test_a_damaged_cache_is_passed_over(report, cached):
    sound = report("sizes", cached, "--json", "--no-cache").rows
    planted.execute(cached / NAME, "UPDATE cell SET count = 'many'")
    answer = report("sizes", cached, "--json")
    assert (answer.rows, answer.err) == (sound, "")
    (cached / NAME).write_bytes(b"SQLite format 3\0" + bytes(100))
    assert report("sizes", cached, "--json").rows == sound


@pytest.mark.slow
def test_a_file_of_that_name_that_is_no_cache_stays(report, folder):
    (folder / NAME).write_text("mine")
    assert report("summary", folder).err == ""
    assert (folder / NAME).read_text() == "mine"
    shutil.copy(folder / "rank-3.db", folder / NAME)
    assert report("summary", folder).err == ""
    assert ranks_of(report, folder) == RANKS


@pytest.mark.slow
def test_it_is_neither_read_nor_written_where_that_is_not_wanted(report, folder):
    report("summary", folder, "--no-cache")
    report("calls", folder)  # which reads no samples
    assert not (folder / NAME).exists()
    (folder / "rank-3.db").unlink()
    (folder / "rank-4.db").unlink()
    report("summary", folder)  # of too few files
    assert not (folder / NAME).exists()


def test_who_may_read_the_files_may_read_it(report, folder):
    for path in folder.iterdir():
        path.chmod(0o640)
    report("summary", folder)
    assert stat.S_IMODE((folder / NAME).stat().st_mode) == 0o640


@pytest.mark.slow
def test_a_page_has_no_remark_about_it(report, folder):
    assert "cache.db" in report("html", folder).err
    assert "cache.db" not in (folder / "report.html").read_text()


@pytest.mark.slow
def test_it_is_a_merged_database_like_any_other(report, cached, tmp_path):
    moved = shutil.copy(cached / NAME, tmp_path / "moved.db")
    assert report("late", moved, "--json").rows == report("late", cached, "--json").rows


@pytest.mark.slow
def test_an_archive_is_one_file_and_a_changed_one_makes_it_out_of_date(report, folder):
    planted.archive(folder, "node-1-a-0.tar", range(RANKS // 2))
    path = planted.archive(folder, "node-1-b-0.tar", range(RANKS // 2, RANKS))
    assert (
        "cache.db: holds the run from now on, and is read instead of 2 files as long as they"
        in report("summary", folder).err
    )
    assert (
        report("summary", folder, "--json").rows
        == report("summary", folder, "--json", "--no-cache").rows
    )
    shutil.copy(path, folder / "aside")
    os.truncate(path, path.stat().st_size // 2)
    assert RANKS // 2 < ranks_of(report, folder) < RANKS
    (folder / "aside").rename(path)
    assert ranks_of(report, folder) == RANKS

"""merge and export lose nothing."""

from __future__ import annotations

import csv
import json
import re
import sqlite3

import planted
import pytest

TABLES = re.findall(r"CREATE TABLE (\w+)", planted.SCHEMA.read_text())


@pytest.mark.parametrize("write", (planted.write_databases, planted.write_ledgers))
@pytest.mark.parametrize("command", ("summary", "export", "gpu --by run"))
def test_a_merged_database_has_the_rows_of_its_files(report, tmp_path, write, command):
    folder = write(tmp_path / "run", planted.gpu_run())
    assert report("merge", folder, tmp_path / "all.db").status == 0
    merged, files = (
        report(*command.split(), run, "--json") for run in (tmp_path / "all.db", folder)
    )
    assert merged.out == files.out


def test_a_merged_database_carries_the_schema_and_every_call(report, run_folder, tmp_path):
    answer = report("merge", run_folder, tmp_path / "all.db")
    assert answer.out == f"{tmp_path}/all.db: 4 ranks of 4\n"
    counted = sum(len(cell.durations) for rank in planted.training_run() for cell in rank.cells)
    for question, expected in (
        *(("PRAGMA application_id", 0x636D7066), ("PRAGMA user_version", 10)),
        *((f"SELECT sum(count) FROM {table}", counted) for table in ("cell", "bucket")),
    ):
        assert sqlite3.connect(tmp_path / "all.db").execute(question).fetchone() == (expected,)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["all.db", "run"]


def test_merge_overwrites_its_own_databases_only(report, run_folder, tmp_path):
    (tmp_path / "thesis.txt").write_text("ten years of work")
    answer = report("merge", run_folder, tmp_path / "thesis.txt")
    assert (answer.status, (tmp_path / "thesis.txt").read_text()) == (1, "ten years of work")
    assert "not overwritten" in answer.err
    assert [report("merge", run_folder, tmp_path / "all.db").status for _ in range(2)] == [0, 0]


def test_a_merge_that_fails_leaves_nothing(report, run_folder, tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError("no more names here")

    monkeypatch.setattr("os.replace", refuse)
    assert report("merge", run_folder, tmp_path / "all.db").status == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["run"]


def test_export_writes_each_table_as_json_and_csv(report, run_folder, tmp_path):
    for form in ("json", "csv"):
        report("export", run_folder, "--format", form, "--output", tmp_path / form)
        assert sorted(path.stem for path in (tmp_path / form).iterdir()) == sorted(TABLES)
    cells = json.loads((tmp_path / "json" / "cell.json").read_text())
    with open(tmp_path / "csv" / "cell.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["total_ns"] for line in lines] == [str(cell["total_ns"]) for cell in cells]
    assert len(cells) == sum(len(rank.cells) for rank in planted.training_run())


def test_an_exported_table_takes_the_place_of_a_link_and_does_not_follow_it(
    report, run_folder, tmp_path
):
    (tmp_path / "thesis").write_text("ten years of work")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "fact.csv").symlink_to(tmp_path / "thesis")
    assert report("export", run_folder, "--csv", "--output", tmp_path / "tables").status == 0
    assert (tmp_path / "thesis").read_text() == "ten years of work"
    assert not (tmp_path / "tables" / "fact.csv").is_symlink()

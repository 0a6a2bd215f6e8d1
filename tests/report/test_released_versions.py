"""Databases of each released version of the schema stay readable: recordings/ has a run of each
(record.sh made them)."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

RECORDINGS = Path(__file__).parent / "recordings"
VERSIONS = sorted(path.name.partition(".")[0] for path in RECORDINGS.glob("schema-*.tar.xz"))
PERCENTILES = {"p50_ns", "p95_ns", "p99_ns"}
MEASURED = (int, str)  # what the ranks counted; what reports derive from it may change


@pytest.fixture(params=VERSIONS)
def recorded(request, tmp_path, monkeypatch) -> Path:
    with tarfile.open(RECORDINGS / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)
    return RECORDINGS / f"{request.param}.json"


def test_there_is_a_recording():
    assert {"schema-9", "schema-10"} <= {*VERSIONS}


def size_key(row: dict) -> tuple:
    return tuple(str(row[name]) for name in ("call", "identity", "memory_kind", "measure", "bytes"))


def test_what_was_counted_is_read_as_ever(report, recorded):
    for command, rows in json.loads(recorded.read_text()).items():
        read = report(*command.split(), "--json").rows
        if command.startswith("sizes"):
            measures = {row["measure"] for row in rows}  # in 0.1.0 without "completion"
            read = [row for row in read if row["measure"] in measures]
            read, rows = (sorted(each, key=size_key) for each in (read, rows))
        assert len(read) == len(rows), command
        for row, then in zip(read, rows):
            counted = {name: value for name, value in then.items() if isinstance(value, MEASURED)}
            for name in PERCENTILES & counted.keys():  # which were the middle of their bucket
                counted[name] = pytest.approx(counted[name], rel=1 / 16, abs=8)
            assert {name: row.get(name) for name in counted} == counted, command

"""Rows as columns: nulls, texts, groups, look-ups, and times on the run's axis, as Python's own
integers have them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import planted
import pytest
from commprof_report.base import (
    NONE,
    Columns,
    Flags,
    Ints,
    TextInts,
    Texts,
    found_in,
    grouped,
    numbered,
    read,
)
from commprof_report.run.alignment import Clock


REPORT = Path(__file__).resolve().parents[2] / "report"


@dataclass(frozen=True)
class Things(Columns):
    name: TextInts
    size: Ints
    is_large: Flags


ROWS = [("b", 3, True), (None, None, False), ("a", -(1 << 60), True)]


def test_a_query_s_rows_become_columns():
    connection, texts = sqlite3.connect(":memory:"), Texts()
    connection.execute("CREATE TABLE thing (name, size, is_large)")
    connection.executemany("INSERT INTO thing VALUES (?, ?, ?)", ROWS)
    things = read(Things, connection.execute("SELECT * FROM thing"), texts)
    assert [texts.text(number) for number in things.name.tolist()] == ["b", None, "a"]
    assert things.size.tolist() == [3, NONE, -(1 << 60)]
    assert things.is_large.tolist() == [True, False, True] and len(things) == 3
    assert texts.among(things.name, {"a", None}).tolist() == [False, True, True]
    assert things.take(things.is_large).size.tolist() == [3, -(1 << 60)]


def test_groups_are_runs_of_equal_keys():
    order, groups = grouped(np.array([2, 1, 2, 1, 1]), np.array([0, 5, 0, 6, 5]))
    values = np.array([10, 20, 30, 40, 50])[order]
    assert order.tolist() == [1, 4, 3, 0, 2]
    assert groups.sum(values).tolist() == [70, 40, 40] and groups.max(values).tolist() == [
        50,
        40,
        30,
    ]
    assert groups.place().tolist() == [0, 1, 0, 0, 1] and groups.first_most(values).tolist() == [
        1,
        2,
        4,
    ]
    assert groups.first_at(values > 45).tolist() == [1, 5, 5]  # 5: none
    assert numbered(np.array([7, -3, 7])).tolist() == [1, 0, 1]


def test_the_first_row_with_the_same_keys_is_found():
    known = (np.array([4, 4, 9]), np.array([1, 1, 2]))
    assert found_in((np.array([9, 4, 4]), np.array([2, 2, 1])), known).tolist() == [2, -1, 0]


KNOTS = [(1_000, 5_000, 0.0), (2_000, 6_003, 0.0), (10_000_000_000_000, 10_000_400_000_000, 0.0)]


@pytest.mark.parametrize("knots", [KNOTS[:1], KNOTS[:2], KNOTS], ids=["one", "two", "far apart"])
def test_many_readings_of_a_clock_are_mapped_as_each_one_is(knots):
    clock = Clock(0, 0, knots)
    readings = [0, 999, 1_000, 1_001, 1_999, 2_000, 2_001]
    readings += [5_000_000_000_123, 10_000_000_000_000, 1 << 50]
    assert clock.axis_times_ns(np.array(readings)).tolist() == [
        clock.axis_ns(reading) for reading in readings
    ]


WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None
from commprof_report.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_who_has_no_numpy_is_told_so_in_a_line_and_has_all_help(tmp_path):
    def report(*words: object) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-B", "-c", WITHOUT_NUMPY, *map(str, words)],
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(REPORT)},
        )

    ranks = [planted.Rank(0, 1, cells=[planted.Cell("MPI_Barrier", 0, [1000])])]
    done = report("calls", planted.write_databases(tmp_path / "run", ranks))
    assert done.returncode != 0 and done.stderr.count("\n") == 1 and "python3-numpy" in done.stderr
    assert report("--help").returncode == 0  # imports all commands, as for manual pages

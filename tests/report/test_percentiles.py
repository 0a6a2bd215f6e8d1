"""Percentiles from the histogram are in the same bucket as those of the sorted samples, so within
1/8, whatever the samples; of smooth ones much nearer."""

from __future__ import annotations

import random
import sqlite3

import planted
import pytest
from planted import Cell, Rank

SAMPLES = {
    "lognormal": lambda chance: int(chance.lognormvariate(12, 2)),
    "uniform": lambda chance: chance.randrange(1_000, 2_000),
    "two values at the bounds of a bucket": lambda chance: chance.choice((1_024, 1_151)),
    "two hills": lambda chance: chance.choice((500, 9_000_000)) + chance.randrange(100),
    "minutes": lambda chance: chance.randrange(10**10, 10**11),
}


def nearest_rank(samples: list[int], percent: int) -> int:
    return sorted(samples)[-(-len(samples) * percent // 100) - 1]


@pytest.mark.parametrize("count", (1, 2, 20, 100, 999))
@pytest.mark.parametrize("shape", SAMPLES)
def test_percentiles_are_within_an_eighth_of_sorted_samples(report, tmp_path, shape, count):
    chance = random.Random(f"{shape}{count}")
    parts = [[SAMPLES[shape](chance) for _ in range(count)] for _ in range(2)]
    cells = [[Cell("MPI_Bcast", 8, samples)] for samples in parts]
    planted.write_databases(tmp_path, [Rank(rank, 2, cells=cells[rank]) for rank in range(2)])
    (row,) = report("calls", tmp_path, "--json").rows
    samples = parts[0] + parts[1]
    shown = [min(samples)]
    for percent, fewest in ((50, 1), (95, 20), (99, 100)):
        found_ns = row[f"p{percent}_ns"]
        assert (found_ns is None) == (len(samples) < fewest)
        if found_ns is not None:
            assert found_ns == pytest.approx(nearest_rank(samples, percent), rel=1 / 8)
            shown.append(found_ns)
    assert [*shown, max(samples)] == sorted([*shown, max(samples)])


def test_a_missing_histogram_is_one_bucket(report, tmp_path):
    path = tmp_path / "rank-0.db"
    planted.write_database(path, Rank(0, 1, cells=[Cell("MPI_Bcast", 8, [1_000, 3_000])]))
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM bucket")
    (row,) = report("calls", path, "--json").rows
    assert (row["p50_ns"], row["p95_ns"]) == (2_000, None)
    assert report("html", path, "-o", tmp_path / "page.html").status == 0  # with axes for it


def test_durations_below_and_above_the_histogram_stay_between_minimum_and_maximum(report, tmp_path):
    cells = [Cell("MPI_Bcast", 8, [3] * 60 + [1 << 41] * 40)]
    planted.write_database(tmp_path / "rank-0.db", Rank(0, 1, cells=cells))
    (row,) = report("calls", tmp_path, "--json").rows
    assert 3 <= row["p50_ns"] <= 16
    assert 1 << 40 < row["p99_ns"] <= 1 << 41


@pytest.mark.parametrize(
    ("count", "shown"), [(19, []), (20, ["p95_ns"]), (99, ["p95_ns"]), (100, ["p95_ns", "p99_ns"])]
)
@pytest.mark.parametrize("command", ("calls", "sizes", "hvprof"))
def test_a_percentile_needs_calls_beyond_it(report, tmp_path, command, count, shown):
    cells = [Cell("MPI_Bcast", 8, [1_100], times=count)]
    planted.write_database(tmp_path / "rank-0.db", Rank(0, 1, cells=cells))
    (row,) = report(command, tmp_path, "--json").rows
    assert row["p50_ns"] == 1_100
    there = [key for key in ("p95_ns", "p99_ns") if key in row]
    for key in there:
        assert (row[key] is not None) == (key in shown)
    (line,) = [line for line in report(command, tmp_path).out.splitlines() if "MPI_Bcast" in line]
    assert line.count(" -") >= len({*there} - {*shown})

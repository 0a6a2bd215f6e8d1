"""Communicators of a family side by side: the one that differs from all others is named, and of a healthy family none."""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

import planted
import pytest
from commprof_report.base.siblings import Sibling, families, family
from commprof_report.display import pictures

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))
import large_run  # noqa: E402

RANKS, STEPS, SLOW, EARLIER_NS = 16, 30, 3, 2_000_000
SAID = "MPI_Allreduce on 8 communicators named data: ranks of data {3-11:8} wait"


def run(folder: Path, is_slow: bool) -> Path:
    """Eight pairs of ranks sum gradients; where one is slow, its first rank comes 2 ms earlier than that of the others."""
    ranks = [large_run.rank_of(rank, RANKS, STEPS) for rank in range(RANKS)]
    for rank in (ranks[SLOW], ranks[SLOW + large_run.ON_HOST]) if is_slow else ():
        for cell in rank.cells:
            cell.durations = [ns + EARLIER_NS * (cell.communicator == large_run.DATA) for ns in cell.durations]
    for sample in ranks[SLOW].samples if is_slow else ():
        sample.start_ns -= EARLIER_NS * (sample.communicator == large_run.DATA)
    return planted.write_databases(folder, ranks)


@pytest.mark.parametrize("is_slow", (True, False), ids=("slow", "healthy"))
def test_the_slow_sibling_is_named_in_text_and_pictures(report, tmp_path, monkeypatch, is_slow):
    monkeypatch.setattr(large_run, "LATE_RANK", None)
    folder, drawn = run(tmp_path / "run", is_slow), []
    monkeypatch.setattr(pictures, "save", lambda path, plot, rows, *_: drawn.append(rows))
    text = report("late", folder, "--plot", tmp_path / "late.svg").out
    assert report("latency", folder, "--call", "Allreduce", "--bytes", "16M", "--plot", tmp_path / "latency.svg").status == 0
    assert (SAID in text, "Siblings" in text) == (is_slow, is_slow)
    of_late, of_latency = ({each.name.rpartition(" on ")[2]: each for each in rows.families} for rows in drawn)
    for found in (of_late, of_latency):
        (band,) = [each for name, each in found.items() if name == "8 communicators named data"]
        assert len(band.siblings) == 8 and band.low_ns <= band.median_ns <= band.high_ns
        assert (band.outside.name if band.outside else "") == ("data {3-11:8}" if is_slow else "")


def test_a_family_has_one_histogram_with_the_calls_of_all_siblings(report, tmp_path):
    folder = run(tmp_path / "run", is_slow=True)
    assert report("html", folder).status == 0
    data = json.loads(re.search('id="histograms-data">(.*?)</script>', (folder / "report.html").read_text(), re.S)[1])
    curves = {curve["name"]: sum(curve["buckets"][2::3]) for curve in data["curves"]}
    of_data = {name: calls for name, calls in curves.items() if name.startswith("MPI_Allreduce 16 MiB")}
    name = "MPI_Allreduce 16 MiB, 8 communicators named data"
    rows = [row for row in report("sizes", folder, "--call", "Allreduce", "--bytes", "16M", "--json").rows]
    assert of_data.pop(name) == sum(row["count"] for row in rows) and len(rows) == 8
    assert set(of_data) == {f"{name}, rank {rank}" for rank in range(RANKS)}


@pytest.mark.parametrize("count", (8, 16, 64))
def test_a_healthy_family_has_none_outside(count):
    """Scatter of 30 %, far more than medians of many calls have."""
    chance, named = random.Random(1), 0
    for _ in range(1_000):
        values = [chance.lognormvariate(0, 0.3) for _ in range(count)]
        named += family("", [Sibling(str(place), value, value) for place, value in enumerate(values)]).outside is not None
    assert named <= 10


def test_a_sibling_is_outside_beyond_three_bands_and_a_quarter_of_the_time():
    def outside(value: float, others: list[float], whole: float) -> str | None:
        found = family("", [Sibling(str(own), own, whole) for own in [*others, value]])
        return found.outside and found.outside.name

    others = [100.0, 101, 102, 103, 104, 105, 110]
    assert (outside(150, others, 10), outside(139, others, 10)) == ("150", None)
    assert (outside(60, others, 10), outside(71, others, 10)) == ("60", None)
    assert (outside(150, others, 159), outside(150, others, 161)) == ("150", None)
    assert outside(150, others[1:], 10) is None, "seven are too few"


def test_three_siblings_are_no_band():
    rows = [("a", Sibling(str(place), place, place)) for place in range(4)] + [("b", Sibling("0", 1, 1))] * 3
    assert [each.name for each in families(rows)] == ["a"]

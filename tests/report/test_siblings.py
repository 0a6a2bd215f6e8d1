"""Communicators of a family have one row."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import fmean

import planted
import pytest
from commprof_report.base import units
from test_root_causes import MS, grid

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))
import large_run  # noqa: E402

RANKS, STEPS, SLOW, EARLIER_NS = 16, 30, 3, 2_000_000


def run(folder: Path, is_slow: bool) -> Path:
    """Eight pairs of ranks sum gradients; where one is slow, its first rank comes 2 ms earlier than
    that of the others."""
    ranks = [large_run.rank_of(rank, RANKS, STEPS) for rank in range(RANKS)]
    for rank in (ranks[SLOW], ranks[SLOW + large_run.ON_HOST]) if is_slow else ():
        for cell in rank.cells:
            cell.durations = [
                ns + EARLIER_NS * (cell.communicator == large_run.DATA) for ns in cell.durations
            ]
    for sample in ranks[SLOW].samples if is_slow else ():
        sample.start_ns -= EARLIER_NS * (sample.communicator == large_run.DATA)
    return planted.write_databases(folder, ranks)


@pytest.mark.slow
def test_a_family_has_one_row_in_late_whose_times_are_those_of_all_siblings(report, tmp_path):
    folder = run(tmp_path / "run", is_slow=True)
    shown, each = report("late", folder).out, report("late", folder, "--by", "call", "--json").rows
    of_data = [row for row in each if row["communicator"].startswith("data ")]
    (line,) = [
        line
        for line in shown.splitlines()
        if line.startswith("MPI_Allreduce  8 communicators named data")
    ]
    analysed, *times = re.split("  +", line)[2:6]
    assert len(of_data) == 8 and int(analysed.replace(",", "")) == sum(
        row["collectives"] for row in of_data
    )
    assert times == [
        units.duration(sum(row[key] for row in of_data))
        for key in ("total_ns", "wait_ns", "transfer_ns")
    ]
    assert (
        "data {3-11:8}" in report("late", folder, "--by", "call").out
        and "--by call has each communicator of a family." in shown
    )


def test_the_largest_cause_of_a_family_is_that_of_all_siblings_together(report, tmp_path):
    """In one column a rank waits for rank 2, in the other for rank 3, which has waited for 2."""
    folder = grid([{2: 8 * MS}] * 40).write(tmp_path / "run.db")
    each = [
        row
        for row in report("late", folder, "--by", "call", "--json").rows
        if row["call"] == "MPI_Allgather"
    ]
    assert [(row["top_rank"], row["top_cost_ns"]) for row in each] == [(2, 320 * MS)] * 2
    (line,) = [
        line for line in report("late", folder).out.splitlines() if line.startswith("MPI_Allgather")
    ]
    assert re.split("  +", line)[-2:] == ["rank 2", "640 ms"]


@pytest.mark.slow
def test_a_family_has_one_row_in_steps_with_the_means_of_all_its_ranks(report, tmp_path):
    folder = run(tmp_path / "run", is_slow=True)
    shown, each = report("steps", folder).out, report("steps", folder, "--per-call", "--json").rows
    of_tensor = [row for row in each if row["communicator"].startswith("tensor ")]
    (line,) = [
        line
        for line in shown.splitlines()
        if line.startswith("MPI_Allreduce  2 communicators named tensor")
    ]
    cells = re.split("  +", line)[2:]
    assert len(of_tensor) == 2 and {row["ranks"] for row in of_tensor} == {RANKS // 2}
    assert cells[0] == "6.00" and cells[2] == units.duration(
        fmean(row["total_ns"] for row in of_tensor)
    )
    assert cells[4] == units.share(sum(row["share_of_step"] for row in of_tensor))
    assert "tensor {0-7}" in report("steps", folder, "--per-call").out


@pytest.mark.slow
def test_the_page_has_a_row_for_a_family_and_none_for_its_siblings(report, tmp_path):
    folder = run(tmp_path / "run", is_slow=False)
    assert report("html", folder).status == 0
    text = (folder / "report.html").read_text()
    for section in ("steps", "who-is-late", "message-sizes"):
        tables = "".join(
            re.findall(
                "<tbody>.*?</tbody>",
                re.search(f'<section id="{section}">.*?</section>', text, re.S)[0],
                re.S,
            )
        )
        assert "8 communicators named data" in tables and "data {" not in tables

"""Communicators of a family have one row."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import fmean

import planted
import pytest
from commprof_report.base import units

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

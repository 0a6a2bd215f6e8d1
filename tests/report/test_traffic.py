"""Bulk and control traffic: the threshold is found where a person would put it."""

from __future__ import annotations

import planted
import pytest
from cases import of
from planted import Cell, Rank


@pytest.fixture
def traffic(report, tmp_path):
    """The answer about a job of two ranks with these cells each."""

    def answer(*cells: Cell, words=("--json",)):
        ranks = [Rank(rank, 2, cells=list(cells)) for rank in range(2)]
        return report(
            "traffic", planted.write_databases(tmp_path / f"run-{len(words)}", ranks), *words
        )

    return answer


def classes(rows: list[dict]) -> dict[tuple[str, str], tuple[int, int, int]]:
    return {of(row, "traffic call"): of(row, "count least_bytes most_bytes") for row in rows}


def test_small_gradients_are_not_control_because_they_are_few(traffic):
    """Up to the first leap: negotiation has 8 to 24 bytes, the least tensor 256."""
    tensors = [
        Cell("MPI_Allreduce", size, [40_000], times=5)
        for size in (256, 512, 1_024, 4_096, 9_408, 22 << 20)
    ]
    rows = traffic(
        *tensors, *(Cell("MPI_Allreduce", size, [20_000], times=900) for size in (8, 16, 24))
    ).rows
    assert classes(rows) == {
        ("bulk", "MPI_Allreduce"): (60, 256, 22 << 20),
        ("control", "MPI_Allreduce"): (5_400, 8, 24),
    }

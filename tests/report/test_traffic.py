"""Bulk and control traffic: the threshold is found where a person would put it."""

from __future__ import annotations

import planted
from cases import of
from planted import Cell, Rank


def test_small_gradients_are_not_control_because_they_are_few(report, tmp_path):
    """Up to the first leap: negotiation has 8 to 24 bytes, the least tensor 256."""
    tensors, rounds = (256, 512, 1_024, 4_096, 9_408, 22 << 20), (8, 16, 24)
    cells = [Cell("MPI_Allreduce", size, [40_000], times=5) for size in tensors]
    cells += [Cell("MPI_Allreduce", size, [20_000], times=900) for size in rounds]
    ranks = [Rank(rank, 2, cells=cells) for rank in range(2)]
    rows = report("traffic", planted.write_databases(tmp_path, ranks), "--json").rows
    found = {of(row, "traffic call"): of(row, "count least_bytes most_bytes") for row in rows}
    assert found == {
        ("bulk", "MPI_Allreduce"): (60, 256, 22 << 20),
        ("control", "MPI_Allreduce"): (5_400, 8, 24),
    }

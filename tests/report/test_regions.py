"""Time by region: rolled up by path, and by itself; numbers differ between ranks, names do not."""

from __future__ import annotations


import planted
import pytest
from planted import Cell, Rank

MS = 1_000_000
NUMBERS = [
    {"epoch": 1, "epoch/forward": 2, "epoch/forward/norm": 3, "late/alone": 4},
    {"epoch/forward": 1, "epoch": 5, "epochs": 6},
]


def cells_of(rank: int) -> list[Cell]:
    number = NUMBERS[rank]
    cells = [
        Cell("MPI_Init_thread", 0, [300 * MS], communicator=0),
        Cell("MPI_Barrier", 0, [MS] * 2),
        Cell("MPI_Allreduce", 1_000, [10 * MS * (rank + 1)] * 4, region=number["epoch/forward"]),
        Cell("MPI_Iallreduce", 64, [5 * MS], measure="completion", region=number["epoch"]),
        Cell("MPI_Barrier", 0, [2 * MS], region=number["epoch"]),
    ]
    if rank == 0:
        cells += [
            Cell("MPI_Bcast", 10, [3 * MS], region=3),
            Cell("MPI_Bcast", 10, [4 * MS], region=4),
        ]
    else:
        cells += [Cell("MPI_Bcast", 20, [7 * MS], region=6)]
    return cells


@pytest.fixture
def regions_folder(tmp_path):
    ranks = [
        Rank(
            rank,
            2,
            facts=planted.facts_of(rank),
            communicators=planted.communicators_of(rank),
            cells=cells_of(rank),
            regions={number: name for name, number in NUMBERS[rank].items()},
        )
        for rank in range(2)
    ]
    return planted.write_databases(tmp_path / "run", ranks[:1]) and planted.write_ledgers(
        tmp_path / "run", ranks[1:]
    )


def test_traffic_in_a_region_is_that_of_its_calls(report, regions_folder):
    rows = report("traffic", regions_folder, "--json", "--region", "epoch/forward").rows
    assert {row["call"]: row["count"] for row in rows} == {"MPI_Allreduce": 8, "MPI_Bcast": 1}

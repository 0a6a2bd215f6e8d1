"""Time by region: rolled up by path, and by itself; numbers differ between ranks, names do not."""

from __future__ import annotations


import planted
from planted import Cell, Rank

MS = 1_000_000
NUMBERS = [
    {"epoch": 1, "epoch/forward": 2, "epoch/forward/norm": 3},
    {"epoch/forward": 1, "epoch": 5, "epochs": 6},
]


def rank_of(rank: int) -> Rank:
    forward, epoch = NUMBERS[rank]["epoch/forward"], NUMBERS[rank]["epoch"]
    cells = [
        Cell("MPI_Barrier", 0, [MS] * 2),
        Cell("MPI_Allreduce", 1_000, [10 * MS] * 4, region=forward),
        Cell("MPI_Iallreduce", 64, [5 * MS], measure="completion", region=epoch),
        Cell("MPI_Barrier", 0, [2 * MS], region=epoch),
        Cell("MPI_Bcast", 10, [3 * MS], region=6 if rank else 3),
    ]
    regions = {number: name for name, number in NUMBERS[rank].items()}
    known = {"communicators": planted.communicators_of(rank), "regions": regions}
    return Rank(rank, 2, facts=planted.facts_of(rank), cells=cells, **known)


def test_traffic_in_a_region_is_that_of_its_calls(report, tmp_path):
    folder = planted.write_databases(tmp_path / "run", [rank_of(0)])
    planted.write_ledgers(folder, [rank_of(1)])
    rows = report("traffic", folder, "--json", "--region", "epoch/forward").rows
    assert {row["call"]: row["count"] for row in rows} == {"MPI_Allreduce": 8, "MPI_Bcast": 1}

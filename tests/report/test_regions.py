"""Time by region: rolled up by path, and by itself; numbers differ between ranks, names do not."""

from __future__ import annotations

from dataclasses import replace

import planted
import pytest
from cases import of
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


def test_a_region_holds_its_own_calls_and_those_of_the_regions_within(report, regions_folder):
    rows = {row["region"]: row for row in report("regions", regions_folder, "--json").rows}
    assert {name: of(row, "count total_ns own_count own_ns") for name, row in rows.items()} == {
        "epoch": (11, 127 * MS, 2, 4 * MS),
        "epoch/forward": (9, 123 * MS, 8, 120 * MS),
        "epoch/forward/norm": (1, 3 * MS, 1, 3 * MS),
        "epochs": (1, 7 * MS, 1, 7 * MS),
        "late": (1, 4 * MS, 0, 0),
        "late/alone": (1, 4 * MS, 1, 4 * MS),
        "": (4, 4 * MS, 4, 4 * MS),
    }
    assert list(rows) == [
        "epoch",
        "epoch/forward",
        "epochs",
        "late",
        "late/alone",
        "epoch/forward/norm",
        "",
    ]


def test_means_are_over_all_ranks_and_the_rank_with_most_is_named(report, regions_folder):
    rows = {row["region"]: row for row in report("regions", regions_folder, "--json").rows}
    epoch = rows["epoch"]
    assert of(epoch, "mean_ns max_ns max_rank ranks") == (63.5 * MS, 82 * MS, 1, 2)
    assert of(epoch, "share_of_wall top_call volume_bytes") == (
        127 * MS / 20e9,
        "MPI_Allreduce",
        8_010,
    )
    norm = rows["epoch/forward/norm"]
    assert of(norm, "mean_ns ranks max_rank") == (1.5 * MS, 1, 0)


def test_a_filter_takes_a_region_and_what_lies_within(report, regions_folder):
    def counts(*names):
        words = [word for name in names for word in ("--region", name)]
        return {
            row["call"]: row["count"]
            for row in report("calls", regions_folder, "--json", *words).rows
        }

    assert counts("epoch") == {"MPI_Allreduce": 8, "MPI_Barrier": 2, "MPI_Bcast": 1}
    assert counts("epoch/forward") == {"MPI_Allreduce": 8, "MPI_Bcast": 1}
    assert counts("epochs", "late") == {"MPI_Bcast": 2}


def test_traffic_in_a_region_is_that_of_its_calls(report, regions_folder):
    rows = report("traffic", regions_folder, "--json", "--region", "epoch/forward").rows
    assert {row["call"]: row["count"] for row in rows} == {"MPI_Allreduce": 8, "MPI_Bcast": 1}


def test_a_region_that_is_not_there_is_named_with_those_that_are(report, regions_folder):
    answer = report("calls", regions_folder, "--region", "epo")
    assert (answer.status, answer.out) == (2, "")
    assert (
        "--region epo: no call of this run is in such a region; there are: epoch, epoch/forward, "
        in answer.err
    )


def without_regions() -> list[Rank]:
    return [replace(rank, regions={}, spans=[]) for rank in planted.training_run()]


def test_a_run_without_regions_says_how_to_have_them(report, tmp_path):
    folder = planted.write_databases(tmp_path / "run", without_regions())
    answer = report("regions", folder)
    assert (answer.status, answer.out.count("\n")) == (0, 1)
    assert "this run has no regions" in answer.out and "commprof_step(3)" in answer.out

"""The filters, and the labels that communicators go by."""

from __future__ import annotations

import planted
import pytest
from cases import of
from planted import Cell, Rank


def test_a_size_that_no_call_has_is_refused_with_the_nearest_one(report, run_folder):
    answer = report("sizes", run_folder, "--bytes", "77")
    assert answer.status == 2 and "the nearest is 0 B" in answer.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ["--call", "Alreduce"],
            "--call Alreduce: this run made no such call; it made: MPI_Allgather, ",
        ),
        (
            ["--communicator", "c3"],
            "--communicator c3: this run has no such communicator; it has: ",
        ),
        (["--rank", "7"], "--rank: the run has ranks 0-3"),
        (["--rank", "a"], "argument --rank: a: ranks are a list like 0,3-5,8-16:2"),
        (["--bytes", "4X"], "argument --bytes: 4X: a size is a number"),
        (["--bytes", "4K:2K"], "4K is more than 2K"),
        (["--plot", "x.gif"], "x.gif: the name of a picture ends in .png, .svg, .pdf"),
        (["--bins", "odd"], "invalid choice: 'odd'"),
        (["--frobnicate"], "hvprof-report: sizes: unrecognized arguments: --frobnicate"),
    ],
)
def test_a_wrong_option_is_one_line_and_status_2(report, run_folder, words, complaint):
    answer = report("sizes", run_folder, *words)
    assert (answer.status, answer.out) == (2, "")
    assert complaint in answer.err
    assert answer.err.startswith("hvprof-report: ") and answer.err.count("\n") == 1


# Bulk and control traffic: the threshold is found where a person would put it.


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


# Time by region: numbers differ between ranks, names do not.

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

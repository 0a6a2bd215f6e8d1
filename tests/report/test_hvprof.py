"""`hvprof-report hvprof`: sizes, calls and times by hvprof's classes, of one run and of the same without fusion."""

from __future__ import annotations

import planted
import pytest
from planted import Cell, Rank

MIB = 1 << 20


def rank_with(world_rank: int, *cells: Cell) -> Rank:
    return Rank(world_rank, 2, communicators=planted.communicators_of(world_rank)[:1], cells=list(cells))


@pytest.fixture
def fused(tmp_path):
    """Two ranks: one of the 64 MiB messages is one byte too long for its class."""
    cells = (
        Cell("MPI_Allreduce", 8, [1_000] * 10),
        Cell("MPI_Allreduce", 128 << 10, [2_000] * 4),
        Cell("MPI_Allreduce", 64 * MIB, [5_000_000] * 3),
        Cell("MPI_Allreduce", 64 * MIB + 1, [6_000_000]),
        Cell("MPI_Wait", 0, [7_000], communicator=0),
    )
    return planted.write_databases(tmp_path / "fused", [rank_with(rank, *cells) for rank in range(2)])


@pytest.fixture
def unfused(tmp_path):
    cells = (Cell("MPI_Allreduce", 100, [10_000] * 500), Cell("MPI_Bcast", 100, [3_000]))
    return planted.write_databases(tmp_path / "unfused", [rank_with(rank, *cells) for rank in range(2)])


def test_each_call_has_a_row_a_class_in_use(report, fused):
    rows = report("hvprof", fused, "--json").rows
    assert [(row["bytes_low"], row["bytes_high"], row["count"], row["sizes"]) for row in rows] == [
        (1, 128 << 10, 28, 2),
        (32 * MIB + 1, 64 * MIB, 6, 1),
        (64 * MIB + 1, None, 2, 1),
    ]
    assert {row["library"] for row in rows} == {"MPI"}


def test_a_class_says_its_sizes_its_bytes_and_its_time_per_call(report, fused):
    row = report("hvprof", fused, "--json").rows[0]
    assert (row["smallest_bytes"], row["largest_bytes"]) == (8, 128 << 10)
    assert row["message_bytes"] == 2 * (10 * 8 + 4 * (128 << 10))
    assert (row["total_ns"], row["ranks"]) == (2 * (10_000 + 8_000), 2)
    assert row["mean_ns"] == pytest.approx(36_000 / 28)
    assert row["p50_ns"] == pytest.approx(1_000, rel=1 / 16)
    assert row["share_of_call"] == pytest.approx(18_000 / (18_000 + 15_000_000 + 6_000_000))


def test_a_row_a_rank_where_asked_for(report, fused):
    rows = report("hvprof", fused, "--json", "--per-rank", "--bytes", "64M").rows
    assert [(row["rank"], row["count"], row["share_of_call"]) for row in rows] == [(0, 3, 1.0), (1, 3, 1.0)]


def test_the_run_without_fusion_stands_beside_it(report, fused, unfused):
    rows = report("hvprof", fused, "--unfused", unfused, "--json").rows
    small = [(row["fusion"], row["call"], row["count"]) for row in rows if row["bytes_high"] == 128 << 10]
    assert small == [("as run", "MPI_Allreduce", 28), ("unfused", "MPI_Allreduce", 1_000), ("unfused", "MPI_Bcast", 2)]


def test_the_text_says_what_can_be_seen_and_how_to_see_more(report, fused, unfused):
    alone = report("hvprof", fused).out.splitlines()
    assert alone[0] == "As run, 2 ranks. MPI: 36 calls that carry messages, 18 a rank; 21.0 ms a rank inside them."
    assert "fused messages as one" in alone[1] and "HOROVOD_FUSION_THRESHOLD=0" in alone[1]
    assert "fusion" not in alone[3] and "NCCL" not in "".join(alone)
    both = report("hvprof", fused, "--unfused", unfused).out.splitlines()
    assert both[1].startswith("Unfused, 2 ranks. MPI: 1,002 calls") and "fusion" in both[4]


def test_starting_an_operation_is_not_taken_for_it(report, run_folder):
    rows = report("hvprof", run_folder, "--json").rows
    assert {row["call"] for row in rows if row["is_start"]} == {"MPI_Iallreduce"}
    assert "sizes --completion" in report("hvprof", run_folder).out


def test_nothing_to_show_is_said(report, fused):
    assert report("hvprof", fused, "--call", "Wait").out == "no call of this run that fits the filters carries a message\n"


def test_the_page_has_the_classes(report, fused, tmp_path):
    report("html", fused, "-o", tmp_path / "page.html")
    assert "Calls by size class (hvprof)" in (tmp_path / "page.html").read_text()

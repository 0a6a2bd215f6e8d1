"""The filters, and the labels that communicators go by."""

from __future__ import annotations

import planted
import pytest
from planted import Cell, Communicator, Rank


def calls_of(answer) -> set[str]:
    return {row["call"] for row in answer.rows}


@pytest.mark.parametrize(
    ("words", "calls"),
    [
        (["MPI_Bcast"], {"MPI_Bcast"}),
        (["bcast"], {"MPI_Bcast"}),
        (["mpi_BCAST,Send"], {"MPI_Bcast", "MPI_Send"}),
        (["Bcast", "--call", "Send"], {"MPI_Bcast", "MPI_Send"}),
    ],
)
def test_calls_are_chosen_by_name_with_or_without_prefix(report, run_folder, words, calls):
    assert calls_of(report("calls", run_folder, "--json", "--call", *words)) == calls


@pytest.mark.parametrize("wanted", ("Comm_split {0-1}", "c3d17e0065fa9b12", "c3d1", "C3D17E"))
def test_communicators_are_chosen_by_label_or_identity(report, run_folder, wanted):
    rows = report("sizes", run_folder, "--json", "--communicator", wanted).rows
    assert {row["communicator"] for row in rows} == {"Comm_split {0-1}"}


@pytest.mark.parametrize(
    ("wanted", "count"), [("0", 100), ("1-2", 200), ("0,3", 200), ("2-9", 200)]
)
def test_ranks_are_chosen_by_a_list(report, run_folder, wanted, count):
    (row,) = report(
        "sizes", run_folder, "--json", "--rank", wanted, "--call", "Allreduce", "--bytes", "1M:"
    ).rows
    assert row["count"] == count


@pytest.mark.parametrize(
    ("wanted", "sizes"),
    [
        ("1000", {1_000}),
        ("1K:4M", {4 << 20}),
        (":1000", {1_000}),
        ("1001:", {4 << 20}),
        ("1000:4MiB", {1_000, 4 << 20}),
        (":1G", {1_000, 4 << 20}),
    ],
)
def test_sizes_are_chosen_by_a_range_open_on_either_side(report, run_folder, wanted, sizes):
    rows = report("sizes", run_folder, "--json", "--call", "Allreduce", "--bytes", wanted).rows
    assert {row["bytes"] for row in rows} == sizes


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


def labels(report, tmp_path, communicators: list[Communicator]) -> dict[str, str]:
    cells = [
        Cell("MPI_Bcast", 8, [100], communicator=known.communicator) for known in communicators
    ]
    planted.write_database(
        tmp_path / "rank-0.db", Rank(0, 4, communicators=communicators, cells=cells)
    )
    return {
        row["identity"][:4]: row["communicator"]
        for row in report("communicators", tmp_path, "--json").rows
    }


def identity(digits: str) -> int:
    return int(digits.ljust(16, "0"), 16)


def test_a_label_tells_constructor_members_and_ordinal(report, tmp_path):
    split = dict(members="0-1", size=2, comm_rank=0, constructor="MPI_Comm_split")
    communicators = [
        Communicator(2, identity("aaaa"), **split),
        Communicator(3, identity("bbbb"), **split, ordinal=1),
    ]
    assert labels(report, tmp_path, communicators) == {
        "aaaa": "Comm_split {0-1}",
        "bbbb": "Comm_split {0-1} #2",
    }


def test_equal_names_get_members_and_then_digits(report, tmp_path):
    named = dict(comm_rank=0, name="data", constructor="MPI_Comm_split")
    communicators = [
        Communicator(2, identity("aaaa"), "0-1", 2, **named),
        Communicator(3, identity("bbbb"), "0,2", 2, **named),
        Communicator(4, identity("cccc"), "0,2", 2, **named),
    ]
    assert labels(report, tmp_path, communicators) == {
        "aaaa": "data {0-1}",
        "bbbb": "data {0,2} @bbbb00",
        "cccc": "data {0,2} @cccc00",
    }


def test_a_long_list_of_members_is_a_number_in_the_label(report, tmp_path):
    members = ",".join(str(rank) for rank in range(0, 100, 3))
    communicators = [
        Communicator(2, identity("aaaa"), members, 34, 0, constructor="MPI_Comm_create")
    ]
    assert labels(report, tmp_path, communicators) == {"aaaa": "Comm_create {34 ranks}"}

"""Exact numbers of every command on the planted run."""

from __future__ import annotations

import csv
import io
import re

import parallel
import planted
import pytest
from cases import of
from commprof_report.calls.parts import PeerRow
from commprof_report.calls.by_size import LatencyRow
from commprof_report.calls.views import CALLS, RANK_CALLS
from commprof_report.roles.roles import CommunicatorRow
from planted import Cell, Rank

SIZE_KEYS = (
    "call communicator bytes count volume_bytes total_ns mean_ns min_ns p50_ns p95_ns p99_ns "
    "max_ns algbw_bytes_per_s busbw_bytes_per_s"
).split()


def only(rows: list[dict], **wanted: object) -> dict:
    (row,) = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return row


def test_sizes_has_the_keys_that_scripts_rely_on_in_their_order(report, run_folder):
    row = report("sizes", run_folder, "--json").rows[0]
    assert list(row)[: len(SIZE_KEYS)] == SIZE_KEYS
    assert "rank" not in row
    assert "rank" in report("sizes", run_folder, "--json", "--per-rank").rows[0]


def test_folded_cells_are_a_row_of_their_own_that_says_so(report, tmp_path):
    cells = [Cell("MPI_Send", 4_096, [900] * 2), Cell("MPI_Send", 4_096, [800] * 5, is_folded=1)]
    planted.write_database(tmp_path / "rank-0.db", Rank(0, 1, cells=cells, folded_cells=3))
    rows = report("sizes", tmp_path, "--json").rows
    folded, exact = only(rows, is_folded=1), only(rows, is_folded=0)
    assert of(folded, "bytes_low bytes_high power_of_two count") == (2_049, 4_096, 0, 5)
    assert of(exact, "bytes_low power_of_two count") == (4_096, 1, 2)
    assert "2 KiB - 4 KiB~" in report("sizes", tmp_path).out


def test_a_nonblocking_operation_is_shown_by_its_completion_with_its_calls_beside_it(
    report, run_folder
):
    lines = report("sizes", run_folder, "--communicator", "Comm_split {0-1}").out.splitlines()
    heads, row = lines[0].split(), next(line for line in lines if "MPI_Iallreduce" in line)
    assert heads[-3:] == ["overlap", "start", "wait"]
    assert row.endswith("75.0 %  1.50 us  98.5 us")
    assert "400 us" in row and sum("MPI_Iallreduce" in line for line in lines) == 1
    assert any(line.startswith("Nonblocking operations last from") for line in lines)
    text = report("latency", run_folder, "--call", "Iallreduce").out
    assert re.match("MPI_Iallreduce of .*: [0-9,]+ times to completion", text)


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("total", "total_ns"),
        ("count", "count"),
        ("volume", "volume_bytes"),
        ("bytes", "bytes"),
        ("mean", "mean_ns"),
    ],
)
def test_sizes_can_be_sorted_and_cut(report, run_folder, order, key):
    values = [row[key] for row in report("sizes", run_folder, "--json").rows]
    shown = [
        row[key]
        for row in report("sizes", run_folder, "--json", "--sort", order, "--top", "3").rows
    ]
    assert values != sorted(values, reverse=True) and shown == sorted(values, reverse=True)[:3]


@pytest.mark.parametrize("call", ("MPI_Irecv", "MPI_Isend"))
def test_receives_have_no_volume_and_it_is_said_why(report, tmp_path, call):
    volume = [] if call == "MPI_Irecv" else [1_000]
    cell = planted.Cell(call, 1_000, [2_000], volume_bytes=sum(volume))
    planted.write_database(tmp_path / "rank-0.db", planted.Rank(0, 1, cells=[cell]))
    out = report("calls", tmp_path / "rank-0.db").out
    (row,) = [line.split() for line in out.splitlines() if line.startswith(call)]
    note = "Bytes of messages count where they are sent: receives have no volume. `steps` has"
    assert (row[2] == "-") == (note in out) == (call == "MPI_Irecv")


def test_a_rank_has_its_time_in_mpi_and_its_setup_apart(report, run_folder):
    row = report("ranks", run_folder, "--per-rank", "--json", "--call", "Init_thread,Bcast").rows[0]
    assert of(row, "mpi_ns setup_ns count") == (4_000_000, 300_000_000, 5)


def test_summary_fits_a_screen(report, run_folder):
    lines = report("summary", run_folder).out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_what_was_dropped_is_said(report, tmp_path):
    rank = planted.training_rank(0)
    rank.world_size, rank.dropped_calls, rank.untracked_requests, rank.folded_communicators = (
        1,
        1_234,
        1,
        2,
    )
    out = report("summary", planted.write_databases(tmp_path, [rank])).out
    assert (
        "\nSeen            not all: 1,234 calls dropped: the ledger was full (commprof-run\n" in out
    )


def test_what_is_counted_but_not_told_apart_is_no_loss(report, tmp_path):
    rank = planted.training_rank(0)
    rank.world_size, rank.folded_communicators, rank.folded_cells = 1, 2, 1
    folder = planted.write_databases(tmp_path, [rank])
    assert (
        "\nSeen            all calls\nLess detail     1 cell merged into cells of several sizes "
        "or communicators, 2 communicators counted as one; all their calls are counted\n"
    ) in report("summary", folder).out


def test_that_all_was_seen_is_said_too(report, run_folder):
    assert "\nSeen            all calls\n" in report("summary", run_folder).out


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        ("calls", CALLS.row._fields),
        ("latency", LatencyRow._fields),
        ("communicators", CommunicatorRow._fields),
        ("ranks", RANK_CALLS.row._fields),
        ("peers", PeerRow._fields),
    ],
)
def test_csv_has_the_keys_of_json_as_its_header(report, run_folder, command, keys):
    lines = list(csv.DictReader(io.StringIO(report(command, run_folder, "--csv").out)))
    rows = report(command, run_folder, "--json").rows
    assert tuple(lines[0]) == tuple(rows[0]) == tuple(keys)
    assert [list(line.values()) for line in lines] == [
        ["" if value is None else str(value) for value in row.values()] for row in rows
    ]


def test_no_command_is_summary(report, run_folder):
    assert report(run_folder).out == report("summary", run_folder).out


HALF = " (not seen: 50.0 % of the time not recorded; 1 rank not read or not profiled)"
REGIONS = (
    "this run has no regions; a program names them with commprof.h, MPI_Pcontrol or NVTX: "
    "see commprof_step(3)"
)
DENIED = {
    "peers": "no sent point-to-point message was counted in this run{part}\n",
    "peers --received": "no received point-to-point message was counted in this run{part}\n",
    "pipeline": "No pipeline: no ranks exchange bulk messages{part}.\n",
    "regions": REGIONS + "{part}\n",
    "sizes --call Barrier "
    "--bytes 1:": "no call with a message of this run fits the filters{part}\n",
}


@pytest.mark.parametrize("command", DENIED)
def test_what_is_not_there_is_denied_of_what_was_read_and_counted(report, tmp_path, command):
    cells = [
        planted.Cell("MPI_Allreduce", 1 << 20, [1_000_000] * 30),
        planted.Cell("MPI_Barrier", 0, [1_000]),
    ]
    counted_ns = {"part": 5 * planted.SECOND, "whole": None}
    for name, part in (("part", HALF), ("whole", "")):
        ranks = [
            Rank(
                rank,
                2,
                communicators=[parallel.world(rank, 2)],
                cells=cells,
                counted_ns=counted_ns[name],
            )
            for rank in range(2)
        ]
        folder = planted.write_databases(tmp_path / name, ranks[:1] if part else ranks)
        assert report(*command.split(), folder).out == DENIED[command].format(part=part)


def test_messages_are_denied_of_the_ranks_that_were_read(report, tmp_path):
    ranks = [Rank(rank, 2) for rank in range(2)]
    part, whole = (
        planted.write_databases(tmp_path / str(len(own)), own) for own in (ranks[:1], ranks)
    )
    assert "Point-to-point  none sent by 1 of 2 ranks\n" in report("summary", part).out
    assert "Point-to-point  none\n" in report("summary", whole).out

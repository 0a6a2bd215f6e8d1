"""A ledger in any state is read as far as it makes sense."""

from __future__ import annotations

import os

import numpy as np
import planted
import pytest
import stored
from cases import of
from commprof_report.run import ledger
from commprof_report.run.ledger_format import layout
from commprof_report.run.run import run_open
from planted import Cell, Rank


MAIN = planted.ledger_thread(0, "main", 1)


def ledger_of_cells(path, entries: list[bytes], thread: bytes = MAIN):
    """A ledger of one rank whose thread has the given cells."""
    rank = Rank(0, 1, communicators=[planted.communicators_of(0)[0]])
    chunks = [*planted.ledger_facts(rank), *planted.ledger_calls()]
    chunks += planted.ledger_communicators(rank) + planted.ledger_cell_chunks(entries)
    chunks += planted.ledger_chunks(6, planted.THREAD_BYTES, [thread])
    path.write_bytes(planted.ledger_header(rank, len(chunks)) + b"".join(chunks))
    return path


def test_a_cell_that_is_not_live_does_not_count(report, tmp_path):
    entries = [
        planted.ledger_cell(Cell("MPI_Bcast", 8, [100] * 3)),
        planted.ledger_cell(Cell("MPI_Bcast", 8, [100] * 4), live=0),
    ]
    path = ledger_of_cells(tmp_path / "rank-0.ledger", entries)
    assert report("calls", path, "--json").rows[0]["count"] == 3


def test_a_fold_under_way_counts_each_call_once(report, tmp_path):
    """Cells 2 (live) and 3 (live) are being folded into cell 1, which holds their sum and is not
    marked live yet."""
    cells = [Cell("MPI_Send", 64, [50]), Cell("MPI_Send", 128, [100] * 7, is_folded=1)]
    cells += [Cell("MPI_Send", 100, [100] * 3), Cell("MPI_Send", 120, [100] * 4)]
    entries = [planted.ledger_cell(cell, live=index != 1) for index, cell in enumerate(cells)]
    thread = planted.ledger_thread(0, "main", 1, 2 | 3 << 21 | 4 << 42)
    path = ledger_of_cells(tmp_path / "rank-0.ledger", entries, thread)
    rows = report("sizes", path, "--json").rows
    assert [of(row, "bytes count is_folded") for row in rows] == [(64, 1, 0), (128, 7, 1)]


def test_a_killed_rank_is_read_and_its_wall_time_is_estimated(report, tmp_path):
    rank = planted.training_rank(0)
    rank.world_size, rank.ended, rank.doing = 1, "running", {}
    path = planted.write_ledger(tmp_path / "rank-0.ledger", rank)
    end_ns = planted.START_UNIX_NS + 7 * planted.SECOND
    os.utime(path, ns=(end_ns, end_ns))
    answer = report("ranks", "--per-rank", tmp_path, "--json")
    assert of(answer.rows[0], "wall_ns wall_is_estimate") == (7 * planted.SECOND, 1)
    assert "still running, or ended without MPI_Finalize: killed, or left by" in answer.err
    assert "7.00 s (an estimate)" in report("summary", path).out


def test_a_header_with_other_sizes_is_refused(report, tmp_path):
    data = bytearray(planted.ledger_bytes(planted.training_rank(0)))
    data[32:36] = (2_048).to_bytes(4, "little")  # the size of a cell
    (tmp_path / "rank-0.ledger").write_bytes(data)
    answer = report("calls", tmp_path)
    assert answer.status == 1
    assert "is damaged: version and sizes in its header are " in answer.err


def test_a_process_that_never_got_its_rank_is_named(report, tmp_path):
    data = bytearray(planted.ledger_bytes(planted.training_rank(0)))
    data[48:56] = (-1).to_bytes(4, "little", signed=True) + bytes(4)
    (tmp_path / "rank-0.ledger").write_bytes(data)
    assert "names no rank (rank -1 of 0): MPI_Init did not finish" in report("calls", tmp_path).err


def test_a_damaged_chunk_is_left_out_and_named(report, tmp_path):
    data = bytearray(planted.ledger_bytes(planted.training_rank(0)))
    data[4096 + 5 * 65536 + 4] = 77  # the size of a peer
    path = tmp_path / "rank-0.ledger"
    path.write_bytes(data)
    answer = report("peers", path)
    said = "no sent point-to-point message was counted in this run (not seen: parts of a damaged "
    assert answer.out == f"{said}ledger; 3 ranks not read or not profiled)\n"
    assert answer.err == f"hvprof-report: {path}: chunk 5 is damaged and left out\n"


def test_a_cell_with_impossible_values_is_left_out_and_counted(report, tmp_path):
    sound, broken = (planted.ledger_cell(Cell("MPI_Send", size, [100])) for size in (8, 9))
    broken = broken[:16] + b"\xff" * 8 + broken[24:]  # total_ns
    path = ledger_of_cells(tmp_path / "rank-0.ledger", [sound, broken])
    answer = report("sizes", path, "--json")
    assert [row["bytes"] for row in answer.rows] == [8]
    assert "1 of its cells are damaged and left out" in answer.err


@pytest.mark.parametrize("distance", [1 << 30, -(1 << 30), 65_536, 65_500, -64], ids=str)
def test_a_cell_whose_histogram_is_elsewhere_is_left_out_and_counted(report, tmp_path, distance):
    cell = planted.ledger_cell(Cell("MPI_Send", 8, [100]))
    path = ledger_of_cells(tmp_path / "rank-0.ledger", [cell])
    data = bytearray(path.read_bytes())
    places = 4096 + 3 * 65536 + 64 + planted.offsets(ledger.CELL)["blocks"]
    used = next(at for at in range(places, places + 38 * 4, 4) if any(data[at : at + 4]))
    data[used : used + 4] = distance.to_bytes(4, "little", signed=True)
    path.write_bytes(data)
    answer = report("sizes", path)
    assert "1 of its cells are damaged and left out" in answer.err


USED = {"since_start_ns": 40, "cpu_user_ns": 7_000, "cpu_system_ns": 1}
USED |= {"voluntary_switches": 5, "involuntary_switches": 23_118}
USED |= {"minor_faults": 3, "major_faults": 0, "throttled_ns": 7, "stolen_ns": 0}
USED |= {"core": 0, "numa_node": 0}


def facts_of_usage(tmp_path, is_stored: bool = True, **changed: object) -> dict[str, str]:
    """Facts that come of a ledger whose header has this reading; the library stores the same."""
    usage = {**USED, "affinity": [0x10F, 3, *[0] * 14], **changed}
    data = bytearray(planted.ledger_header(Rank(0, 1), 0))
    at = planted.offsets(ledger.HEADER)["usage_last"]
    data[at : at + layout("usage").itemsize] = np.array(
        [tuple(usage[field] for field in layout("usage").dtype.names)], layout("usage").dtype
    ).tobytes()
    path = tmp_path / "rank-0.ledger"
    path.write_bytes(data)
    question = (
        "SELECT key, value FROM fact WHERE key GLOB 'begin.*' OR key GLOB 'last.*' ORDER BY 1"
    )
    facts = run_open(path).connection.execute(question).fetchall()
    if is_stored:
        of_library = run_open(stored.database_of(path)).connection
        assert of_library.execute(question).fetchall() == facts
    return dict(facts)


def test_what_the_process_used_is_read_from_the_header(tmp_path):
    used = {f"last.{key}": str(value) for key, value in USED.items()}
    assert facts_of_usage(tmp_path) == {**used, "last.affinity": "0-3,8,64-65"}


def test_a_damaged_reading_is_left_out(tmp_path):
    assert facts_of_usage(tmp_path, False, involuntary_switches=1 << 63) == {}

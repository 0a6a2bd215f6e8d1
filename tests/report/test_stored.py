"""The database that the library stores of a ledger has the rows that the reporter reads of it."""

from __future__ import annotations

import re

import planted
import pytest
import stored
from commprof_report.run.run import run_open
from planted import Cell, Communicator, Device, Doing, Rank
from test_ledger_gpu import without_numbers

TABLES = re.findall(r"CREATE TABLE (\w+)", (stored.SOURCES / "output/schema.sql").read_text())
KINDS = ("host", "device", "managed", "pinned")
PAIRS = [one if one == other else f"{one}>{other}" for one in KINDS for other in KINDS]
MEASURES = ("call", "completion", "poll", "device", "captured")


def full_rank() -> Rank:
    """Every counter of the header has its own number; every measure and memory kind has a cell."""
    counters = {name: 100 + place for place, name in enumerate(planted.COUNTERS)}
    of_gpu = {name[len("gpu_") :]: 200 + at for at, name in enumerate(planted.GPU_COUNTERS)}
    cells = [
        Cell("MPI_Send", 1 + 10 * kind + at, [100 + kind], planted.DATA, measure, 7, 3 * at)
        for kind in range(len(PAIRS))
        for at, measure in enumerate(MEASURES)
    ]
    for place, cell in enumerate(cells):
        cell.memory_kind = PAIRS[place // len(MEASURES)]
    cells += [
        Cell("MPI_Bcast", 9 << 30, [1, 3, 15, 16, 17, 101], thread=1, is_folded=1, region=9),
        Cell("MPI_Bcast", 9 << 30, [5 << 47, 1 << 47, (1 << 47) - 1]),
    ]
    spawned = Communicator(
        planted.DATA, (1 << 64) - 9, "1,3", 2, 1, "name", "MPI_Comm_split", 4, 1, 5, is_inter=1
    )
    doing = Doing("MPI_Wait", 2_000, 1, planted.DATA, 65_536, 1, 99, request_call="MPI_Irecv")
    peers = [("MPI_Send", "sent", -1, 1, 8, 50), ("MPI_Send", "received", 1, 3, 30, 40, 17)]
    return Rank(
        3,
        8,
        ended="abort",
        abort_code=9,
        reset_unix_ns=planted.START_UNIX_NS + 77,
        counted_ns=5 * planted.SECOND,
        communicators=[*planted.communicators_of(3)[:2], spawned],
        threads=[(0, "main", 1), (1, "helper", 0)],
        doing={0: doing},
        cells=cells,
        peers=peers,
        devices=[Device()],
        gpu_state="yielded",
        gpu_counts=of_gpu,
        cost_gpu=(300, 301),
        **counters,
    )


def tables_of(path) -> dict[str, list[tuple]]:
    ask = run_open(path, with_samples=True).connection.execute
    found = {table: ask(f"SELECT * FROM {table}").fetchall() for table in TABLES}
    columns = [row[1] for row in ask("PRAGMA table_info(rank)") if row[1] != "cost_finalize_ns"]
    found["rank"] = ask(f"SELECT {', '.join(columns)} FROM rank").fetchall()
    return without_numbers(found)


RANKS = {"run": planted.training_rank(1), "gpu": planted.gpu_rank(1), "full": full_rank()}


@pytest.mark.parametrize("rank", RANKS.values(), ids=RANKS)
def test_the_library_stores_what_was_planted_and_what_the_reporter_reads(tmp_path, rank):
    path = planted.write_ledger(tmp_path / f"rank-{rank.world_rank}.ledger", rank)
    of_library, of_reporter = tables_of(stored.database_of(path)), tables_of(path)
    assert of_reporter == tables_of(planted.write_database(tmp_path / "planted.db", rank))
    # Calls that no row names are not stored; of a ledger the oldest collective is not believed.
    assert set(of_library.pop("call")) <= set(of_reporter.pop("call"))
    assert set(of_library.pop("recent_collective")) >= set(of_reporter.pop("recent_collective"))
    for table, rows in of_reporter.items():
        assert of_library[table] == rows, table


def test_each_table_has_rows_in_one_of_them(tmp_path):
    found = [
        tables_of(planted.write_database(tmp_path / f"{name}.db", rank))
        for name, rank in RANKS.items()
    ]
    assert [table for table in TABLES if not any(tables[table] for tables in found)] == []

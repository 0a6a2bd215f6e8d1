"""What GPUs did, and NCCL's calls: ledgers and databases of a run hold the same rows."""

from __future__ import annotations

from pathlib import Path

import planted
import pytest
from commprof_report.run import run_open

TABLES = ("rank", "call", "communicator", "recent_collective", "cell", "bucket", "sample", "sample_window")
TABLES += ("gpu_device", "gpu_busy", "gpu_stream", "gpu_kernel", "gpu_activity", "gpu_bucket", "gpu_tracing", "gpu_sample")
TABLES += ("gpu_sample_window",)


def content(folder: Path, **options: object) -> dict[str, list[tuple]]:
    run = run_open(folder, with_samples=True, **options)
    assert run.notes == []
    return {table: sorted(run.connection.execute(f"SELECT * FROM {table}"), key=repr) for table in TABLES}


def without_numbers(tables: dict[str, list[tuple]]) -> dict[str, list[tuple]]:
    """Cells and activities may be numbered differently; the buckets of equal ones are equally many."""
    numbered = ("cell", "bucket", "gpu_activity", "gpu_bucket")
    return {table: sorted((row[table in numbered :] for row in rows), key=repr) for table, rows in tables.items()}


@pytest.fixture
def gpu_folder(tmp_path) -> Path:
    return planted.write_databases(tmp_path / "gpu", planted.gpu_run())


@pytest.fixture
def gpu_ledgers(tmp_path) -> Path:
    return planted.write_ledgers(tmp_path / "gpu-ledgers", planted.gpu_run())


def test_ledgers_and_databases_of_a_run_with_gpus_hold_the_same(gpu_folder, gpu_ledgers):
    from_databases, from_ledgers = without_numbers(content(gpu_folder)), without_numbers(content(gpu_ledgers))
    for table in TABLES:
        assert from_ledgers[table] == from_databases[table], table
        assert from_databases[table], table

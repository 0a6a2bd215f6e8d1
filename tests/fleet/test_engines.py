"""Spark, ClickHouse and PostgreSQL give DuckDB's rows for every question (`make check-engines`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "report"), str(ROOT / "tests" / "report")]

import fleets  # noqa: E402
import planted  # noqa: E402
from commprof_report.fleet.questions import Engine, engine_open, load, rows_of  # noqa: E402
from commprof_report.fleet.store import Store, jobs_write, store_create  # noqa: E402

ASKED = {"call": "MPI_Allreduce", "job": "100003", "program": "app1", "day": "2026-11-16"}
QUESTIONS = (
    "top", "programs", "libraries", "sizes", "trend", "job", "hosts", "changes", "around",
)
SERVER = "/usr/lib/postgresql/15/bin"


@pytest.fixture(scope="module", autouse=True)
def packages():
    """From the package registry, into build/engines."""
    names = ["duckdb", "sqlglot", "chdb", "pyspark"]
    made = subprocess.run([ROOT / "setup/engines.sh", *names], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no engines: {made.stderr[-200:]}")
    sys.path.insert(0, made.stdout.strip())


@pytest.fixture(scope="module")
def store(tmp_path_factory, packages) -> Store:
    """1,000 jobs of a month with a slow node and a changed program."""
    folder = tmp_path_factory.mktemp("fleet")
    template = fleets.template_of(planted.write_databases(folder / "run", planted.training_run()))
    fleet = fleets.Fleet(jobs=1000, slow_node=17, change_day=15)
    store = store_create(folder / "store", None, False)
    jobs_write(store, list(fleets.jobs_of(fleet, [template])), "main")
    return store


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory) -> Iterator[str]:
    """A server of its own on a socket, as the user postgres where root may not start one."""
    folder = tmp_path_factory.mktemp("postgresql")
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    as_user *= os.geteuid() == 0
    if as_user:
        for above in (folder, *folder.parents[:3]):
            above.chmod(0o755 if above != folder else 0o777)
    data = folder / "data"

    def control(*words: str) -> None:
        subprocess.run([*as_user, *words], check=True, stdout=subprocess.DEVNULL)

    try:
        control(f"{SERVER}/initdb", "-D", str(data), "-A", "trust", "-U", "postgres", "--no-sync")
    except FileNotFoundError:
        pytest.skip("no PostgreSQL server here")
    options = f"-k {folder} -c listen_addresses=''"
    control(f"{SERVER}/pg_ctl", "-D", str(data), "-o", options, "-w", "-l", f"{data}/log", "start")
    yield f"host={folder} user=postgres dbname=postgres"
    control(f"{SERVER}/pg_ctl", "-D", str(data), "-m", "immediate", "stop")


def same(one: object, other: object) -> bool:
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return abs(one - other) <= 1e-9 * max(1, abs(one))
    return one == other


def differences(store: Store, engine: Engine) -> dict[str, str]:
    """By question: the first row that is not DuckDB's."""
    ours, found = engine_open(store, "duckdb"), {}
    for question in QUESTIONS:
        wanted, rows = rows_of(ours, question, ASKED), rows_of(engine, question, ASKED)
        pairs = [pair for pair in zip(wanted, rows) if not all(map(same, *pair))]
        if len(wanted) != len(rows) or pairs:
            found[question] = f"{len(wanted)} rows, {len(rows)}; {pairs[:1]}"
    return found


def test_clickhouse_gives_the_same_rows(store):
    assert differences(store, engine_open(store, "clickhouse")) == {}


def test_postgresql_gives_the_same_rows(store, postgresql):
    load(store, postgresql)
    assert differences(store, engine_open(store, f"postgresql={postgresql}")) == {}


def test_a_spark_cluster_of_two_workers_gives_the_same_rows(store):
    assert differences(store, engine_open(store, "spark=local-cluster[2,1,1024]")) == {}

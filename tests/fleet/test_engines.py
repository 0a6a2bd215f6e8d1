"""Spark, ClickHouse and PostgreSQL give DuckDB's rows for every question (`make check-engines`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / each) for each in ("report", "tests/report", "docs")]

import fleets  # noqa: E402
import grafana  # noqa: E402
import planted  # noqa: E402
from commprof_report.fleet.questions import (  # noqa: E402
    Engine,
    engine_open,
    load,
    psql,
    rows_of,
)
from commprof_report.fleet.store import Store, jobs_write, store_create  # noqa: E402

ASKED = {"call": "MPI_Allreduce", "job": "100003", "program": "app1", "day": "2026-11-16"}
QUESTIONS = ("top", "programs", "libraries", "sizes", "trend", "job", "hosts", "changes", "around")
SERVER = "/usr/lib/postgresql/15/bin"


@pytest.fixture(scope="module", autouse=True)
def packages():
    """From the package registry, into build/engines."""
    names = ["duckdb", "sqlglot", "chdb", "pyspark", "grafana-foundation-sdk"]
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
def postgresql() -> Iterator[str]:
    """A server of its own on a socket, as the user postgres where root may not start one; in a
    folder that other sessions of pytest do not close to that user."""
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    as_user *= os.geteuid() == 0

    def control(*words: str) -> None:
        subprocess.run([*as_user, *words], check=True, stdout=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory(prefix="commprof-postgresql-") as folder:
        os.chmod(folder, 0o777)
        data, options = f"{folder}/data", f"-k {folder} -c listen_addresses=''"
        try:
            control(f"{SERVER}/initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
        except FileNotFoundError:
            pytest.skip("no PostgreSQL server here")
        server = (f"{SERVER}/pg_ctl", "-D", data)
        control(*server, "-o", options, "-w", "-l", f"{data}/log", "start")
        yield f"host={folder} user=postgres dbname=postgres"
        control(*server, "-m", "immediate", "stop")


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


def test_the_queries_of_the_dashboard_answer_as_the_questions_do(store, postgresql):
    load(store, postgresql)
    asked = engine_open(store, f"postgresql={postgresql}")
    for question in grafana.PANELS:
        own = grafana.query(question).replace("${call:sqlstring}", "'MPI_Allreduce'")
        said = psql(postgresql, [f"SELECT row_to_json(answer) FROM ({own}) AS answer"])
        rows = [json.loads(line).values() for line in said.splitlines()]
        wanted = rows_of(asked, question, ASKED)
        assert len(rows) == len(wanted) and (wanted or question == "libraries"), question
        assert all(all(map(same, *pair)) for pair in zip(rows, wanted)), question
    assert "MPI_Allreduce" in psql(postgresql, [grafana.CALLS]).split()


def same_below(ours: object, read: object) -> bool:
    """Whether all that we say is in what was read; more may be there, by default."""
    if isinstance(ours, dict) and isinstance(read, dict):
        return all(key in read and same_below(ours[key], read[key]) for key in ours)
    if isinstance(ours, list) and isinstance(read, list):
        return len(ours) == len(read) and all(map(same_below, ours, read))
    return ours == read


def test_grafana_s_own_types_read_all_of_the_dashboard():
    """As Grafana's authors publish them for its versions; Grafana itself is not to be had here."""
    types = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models import units

    read = types.Dashboard.from_json(grafana.dashboard())
    assert same_below(grafana.dashboard(), json.loads(JSONEncoder().encode(read)))
    assert not same_below({"panels": [{"no": 1}] * 5}, json.loads(JSONEncoder().encode(read)))
    assert all(unit in vars(units).values() for unit in grafana.UNITS.values())


def test_a_spark_cluster_of_two_workers_gives_the_same_rows(store):
    assert differences(store, engine_open(store, "spark=local-cluster[2,1,1024]")) == {}

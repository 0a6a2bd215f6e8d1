"""`hvprof-report merge --workers mpi`: the ranks of an MPI job read a run together."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from . import reporter
from .harness import Outcome, launch
from .libraries import REPOSITORY, Mpi

sys.path.insert(0, str(REPOSITORY / "tests" / "report"))
sys.path.insert(0, str(REPOSITORY / "bench"))
import large_run
import planted

pytestmark = [pytest.mark.slow, pytest.mark.one_mpi]

RANKS, STEPS = 7, 5
Merge = Callable[[Path], Outcome]


@pytest.fixture
def merge(mpi: Mpi, tmp_path: Path) -> Merge:
    """merge(run): by four ranks, into together.db."""
    if not mpi.has_mpi4py:
        pytest.skip(f"no mpi4py for {mpi.name} here")
    program = [mpi.python, str(REPOSITORY / "report/hvprof-report"), "merge", "--workers", "mpi"]
    return lambda run: launch(
        mpi, 4, [*program, str(run), str(tmp_path / "together.db")], tmp_path, {}
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The last rank left a ledger, the third one both."""
    ranks = [large_run.rank_of(rank, RANKS, STEPS) for rank in range(RANKS)]
    planted.write_databases(tmp_path / "run", ranks[:-1])
    for rank in (2, RANKS - 1):
        planted.write_ledger(tmp_path / "run" / f"rank-{rank}.ledger", ranks[rank])
    return tmp_path / "run"


def content(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


@pytest.mark.parametrize("damaged", (None, 1, 4))
def test_what_ranks_read_together_equals_what_one_process_reads(
    merge: Merge, run: Path, tmp_path: Path, damaged: int | None
) -> None:
    if damaged:
        (run / f"rank-{damaged}.db").write_bytes(planted.SCHEMA.read_bytes())
    alone, together = reporter.answer("merge", run, tmp_path / "alone.db"), merge(run)
    assert together.exit_status == alone.exit_status == 0
    assert together.stderr == alone.stderr and (
        damaged is None or f"rank-{damaged}.db" in alone.stderr
    )
    assert together.stdout == alone.stdout.replace("alone.db", "together.db")
    assert content(tmp_path / "together.db") == content(tmp_path / "alone.db")


def test_a_run_that_cannot_be_read_is_one_line_and_no_rank_waits(
    merge: Merge, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    outcome = merge(tmp_path / "run")
    assert outcome.exit_status != 0
    assert [line for line in outcome.stderr.splitlines() if line.startswith("hvprof-report: ")] == [
        f"hvprof-report: {tmp_path / 'run'}: holds no rank-<n>.db and no rank-<n>.ledger (it is "
        "empty)"
    ]

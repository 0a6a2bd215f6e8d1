"""One file per node: the ranks append their databases to it, and nothing of them is lost where that
fails."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest

from .disks import fill
from .harness import LIBRARY, Run, command_for, compile_program, profiled
from .reporter import answer, rows

pytestmark = pytest.mark.one_mpi

RANKS = 4
PROGRAM = "pcontrol"
NODE = r"node-1-.+-[0-9a-f]{8}\.tar"


@pytest.fixture
def job(mpi, tmp_path):
    """job(WHAT=..., ...): a run with one file per node, under programs/while_appending.c if WHAT is
    given."""

    def ran(folder: Path = tmp_path, **settings: str) -> Run:
        preload = [str(LIBRARY)]
        if "WHAT" in settings:
            preload.insert(0, str(compile_program(mpi, "while_appending", "-shared", "-fPIC")))
        command = ["env", f"LD_PRELOAD={':'.join(preload)}", *command_for(mpi, PROGRAM)]
        return profiled(mpi, RANKS, command, folder, COMMPROF_OUTPUT_PER="node", **settings)

    return ran


def complaints(run: Run) -> list[str]:
    lines = [line for line in run.outcome.stderr.splitlines() if line.startswith("commprof: ")]
    return [line for line in lines if not line.startswith("commprof: profile of ")]


def members(run: Run) -> list[str]:
    (archive,) = (name for name in run.files() if re.fullmatch(NODE, name))
    with tarfile.open(run.folder / archive) as tar:
        return sorted(tar.getnames())


def counted(run: Run) -> list[tuple]:
    """Counts that do not depend on time."""
    return sorted(
        (row["call"], row["count"], row["volume_bytes"]) for row in rows("calls", run.folder)
    )


def names(*ranks: int) -> list[str]:
    return [f"rank-{rank}.db" for rank in ranks]


@pytest.fixture
def by_rank(profile):
    """Counts with a file for each rank."""
    run = profile(PROGRAM, RANKS, env={"COMMPROF_OUTPUT_PER": "rank"})
    assert run.files() == names(0, 1, 2, 3)
    return counted(run)


@pytest.mark.parametrize("ledger", ["", "elsewhere"])
def test_the_ranks_of_a_node_leave_one_file_with_the_same_numbers(job, by_rank, tmp_path, ledger):
    run = job(**({"COMMPROF_LEDGER": str(tmp_path / ledger)} if ledger else {}))
    assert (run.outcome.exit_status, complaints(run)) == (0, [])
    assert len(run.files()) == 1 and members(run) == names(0, 1, 2, 3)
    assert (run.folder / run.files()[0]).stat().st_mode & 0o777 == 0o600
    assert counted(run) == by_rank
    assert not ledger or list((tmp_path / ledger).iterdir()) == []
    for command in ("summary", "late", "stuck", "steps"):
        said = answer(command, run.folder)
        assert (said.exit_status, said.stderr) == (0, "")
    merged = answer("merge", run.folder, tmp_path / "merged.db")
    assert merged.stdout == f"{tmp_path}/merged.db: 4 ranks of 4\n"


@pytest.mark.parametrize(
    ("what", "whole"), [("before", names(0, 1, 3)), ("after", names(0, 1, 2, 3))]
)
def test_a_rank_that_is_killed_while_it_appends_is_read_once(job, by_rank, what, whole):
    run = job(WHAT=what, WHOSE="2")
    assert [name for name in run.files() if name.endswith("ledger")] == ["rank-2.ledger"]
    assert members(run) == whole
    assert counted(run) == by_rank
    assert answer("calls", run.folder).stderr == ""


def test_without_locks_each_rank_has_its_own_file_and_the_node_says_it_once(job, by_rank):
    run = job(WHAT="no_locks")
    assert run.outcome.exit_status == 0
    assert [name for name in run.files() if name.startswith("rank-")] == names(0, 1, 2, 3)
    (line,) = complaints(run)
    why = "No locks available; a rank that cannot has a file of its own"
    assert re.fullmatch(rf"commprof: cannot append to .*/run/{NODE}: {why}", line)
    assert counted(run) == by_rank
    assert answer("calls", run.folder).stderr == ""


def test_a_full_disk_costs_no_rank_its_ledger(job, by_rank, disk, tmp_path):
    folder = disk("tmpfs", "size=256k")
    fill(folder, 100)  # for less than two databases
    run = job(folder, COMMPROF_LEDGER=str(tmp_path / "elsewhere"))
    assert run.outcome.exit_status == 0
    left = [path for path in (tmp_path / "elsewhere").rglob("*.ledger")]
    in_archive = members(run) if any(re.fullmatch(NODE, name) for name in run.files()) else []
    assert len(in_archive) + len(left) == RANKS and len(left) >= RANKS - 1
    assert not list((tmp_path / "elsewhere").rglob("*.tmp"))
    stays = re.compile("; the ledger .* stays and can be read as well")
    assert sum(bool(stays.search(line)) for line in complaints(run)) == len(left)

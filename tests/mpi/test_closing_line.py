"""The last lines of a job say what is there: run folders that are renamed, removed or replaced
while the job runs, and processes that can no longer see them. In programs/run_folder.c each rank
calls MPI_Barrier seven times."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from .disks import fill
from .harness import COMMPROF_RUN, Run, calls_in_ledger, command_for, launch
from .reporter import rows

pytestmark = [pytest.mark.slow, pytest.mark.one_mpi]

NOBODY = "65534"
# whether a copy is made before the end is a matter of time
COPIES = ("cannot copy the ledger to ", "cannot keep the ledger in ")
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become somebody else, or have another root folder"
)


@pytest.fixture
def job(mpi, tmp_path):
    """job("mv run run-1"): its run in <tmp_path>/run, and what it printed of itself."""

    def ran(command="true", *, user="0", root="/", end="finalize", ranks=2, **settings):
        words = [*command_for(mpi, "run_folder"), command, user, root, end]
        environment = {"COMMPROF_OUTPUT": str(tmp_path / "run"), **settings}
        outcome = launch(mpi, ranks, [str(COMMPROF_RUN), *words], tmp_path, environment)
        run = Run(ranks, tmp_path / "run", outcome)
        said = [
            line.removeprefix("commprof: ")
            for line in outcome.stderr.splitlines()
            if line.startswith("commprof: ")
        ]
        return run, sorted(line for line in said if not line.startswith(COPIES))

    return ran


def barriers_in(folder):
    """As the reporter finds them in this folder."""
    (row,) = rows("calls", folder, "--call", "MPI_Barrier")
    return row["count"]


def with_the_command(line):
    """A closing line without the path of the reporter."""
    return line.partition("; read it with: ")[0], line.rpartition(" summary ")[2]


GONE = "the folder was renamed or removed"


@pytest.mark.parametrize("settings", [{}, {"COMMPROF_OUTPUT": "run"}], ids=["absolute", "relative"])
def test_a_folder_that_stays_is_said_as_it_was_at_the_start_and_nothing_else(
    job, tmp_path, settings
):
    run, (line,) = job(**settings)
    assert with_the_command(line) == (f"profile of 2 ranks in {tmp_path}/run", f"{tmp_path}/run")
    assert run.files() == ["rank-0.db", "rank-1.db"]


@pytest.mark.parametrize(
    "command", ["mv run run-1", "mv run run-1; mkdir run", "mv run run-1; touch run"]
)
@pytest.mark.parametrize("place", ["beside", "on the node"])
def test_a_folder_that_is_renamed_gets_the_databases(job, tmp_path, command, place):
    (tmp_path / "node").mkdir()
    settings = {"COMMPROF_LEDGER": str(tmp_path / "node")} if place == "on the node" else {}
    _, (line,) = job(command, **settings)
    told, read = with_the_command(line)
    so_far = ", so far without rank 1"  # whose database may follow
    assert (told.partition(so_far)[0], read) == (
        f"profile of 2 ranks in {tmp_path}/run-1 (renamed from {tmp_path}/run)",
        f"{tmp_path}/run-1",
    )
    assert Run(2, tmp_path / "run-1", None).files() == ["rank-0.db", "rank-1.db"]
    assert barriers_in(tmp_path / "run-1") == 14
    assert list((tmp_path / "node").glob("*/*")) == []


def test_after_an_exit_it_is_said_too(job, tmp_path):
    """One rank's: a launcher may kill the others."""
    _, (line,) = job("mv run run-1", end="exit", ranks=1)
    said = f"profile of 1 rank in {tmp_path}/run-1 (renamed from {tmp_path}/run)"
    assert with_the_command(line)[0] == said
    assert barriers_in(tmp_path / "run-1") == 7
    _, (line,) = job("rm -r run", end="exit", ranks=1)
    assert line == f"no profile of 1 rank is in {tmp_path}/run: {GONE}"


def test_a_folder_that_is_removed_is_said_to_be_gone_and_the_ranks_with_it(job, tmp_path):
    run, lines = job("rm -r run")
    assert lines == [
        *(
            f"cannot write {run.database(rank)}: {GONE}; the ledger {run.ledger(rank)} was "
            f"removed, too: nothing of rank {rank} is left"
            for rank in range(2)
        ),
        f"no profile of 2 ranks is in {tmp_path}/run: {GONE}",
    ]
    assert not run.folder.exists()


def test_of_a_folder_that_is_removed_the_ledgers_on_the_node_stay(job, tmp_path):
    (tmp_path / "node").mkdir()
    # a copy may come into it meanwhile
    remove = "while [ -e run ]; do rm -rf run; done 2>/dev/null"
    _, lines = job(remove, COMMPROF_LEDGER=str(tmp_path / "node"))
    ledgers = sorted(
        (tmp_path / "node").glob("*/*.ledger"), key=lambda path: path.name.partition("-rank-")[2]
    )
    assert [calls_in_ledger(ledger)["MPI_Barrier"] for ledger in ledgers] == [7, 7]
    *of_ranks, closing = lines
    assert [line.partition("; ")[2] for line in of_ranks] == [
        f"the ledger {ledger} stays and can be read as well" for ledger in ledgers
    ]
    assert closing == f"no profile of 2 ranks is in {tmp_path}/run: {GONE}"


def test_a_folder_that_takes_its_place_stays_empty(job, tmp_path):
    (tmp_path / "node").mkdir()
    (tmp_path / "far").mkdir()
    run, lines = job("mv run far/away; mkdir run", COMMPROF_LEDGER=str(tmp_path / "node"))
    taken = "another folder has taken its place"
    assert lines[-1] == f"no profile of 2 ranks is in {tmp_path}/run: {taken}"
    assert run.files() == []
    assert barriers_in(tmp_path / "far/away") == 14  # what is there names the ledgers on the node


def test_a_rank_without_a_file_is_not_said_to_be_there(job, tmp_path):
    run, lines = job("rm run/rank-1.*; mkdir run/rank-1.db.tmp run/rank-1.ledger.tmp")
    said = f"profile of 1 of 2 ranks (there is no file of rank 1) in {tmp_path}/run"
    assert with_the_command(lines[-1])[0] == said
    removed = f"; the ledger {run.ledger(1)} was removed, too: nothing of rank 1 is left"
    assert lines[0].endswith(removed)


def test_a_rank_that_has_only_a_ledger_on_its_node_is_said(job, tmp_path):
    (tmp_path / "node").mkdir()
    stub = "echo commprof-ledger-at host boot namespace 1 1 /ledger > run/stub"
    run, lines = job(
        "until mkdir run/rank-1.ledger.tmp 2> /dev/null; do :; done; mkdir run/rank-1.db.tmp; "
        f"{stub}; mv run/stub run/rank-1.ledger",
        COMMPROF_LEDGER=str(tmp_path / "node"),
    )
    assert with_the_command(lines[-1])[0] == (
        f"profile of 2 ranks in {tmp_path}/run, so far without rank 1, which is on its node alone"
    )


@needs_root
@pytest.mark.parametrize("end", ["finalize", "exit"])
def test_a_process_that_has_lost_its_rights_loses_nothing(job, mpi, tmp_path, end):
    run, lines = job(user=NOBODY, end=end)
    stays = "stays and can be read as well, though not by this process"
    of_ranks = [
        f"cannot write {run.database(rank)}: Permission denied; the ledger {run.ledger(rank)} "
        f"{stays}"
        for rank in range(2)
    ]
    unseen = "which this process can no longer see (Permission denied)"
    said = f"profile of 2 ranks in {tmp_path}/run, {unseen}"
    closing = [with_the_command(line)[0] for line in lines if line not in of_ranks]
    # MPICH's launcher ends with the first rank that leaves without MPI_Finalize, without waiting
    # for what others still print
    assert closing == [said] or (mpi.name == "mpich" and end == "exit" and not closing)
    assert [line for line in lines if line in of_ranks] == (of_ranks if end == "finalize" else [])
    assert barriers_in(tmp_path / "run") >= (14 if end == "finalize" else 12)


@needs_root
def test_a_process_with_another_root_folder_loses_nothing_and_writes_nowhere_else(job, tmp_path):
    (tmp_path / "root" / tmp_path.relative_to("/") / "run").mkdir(parents=True)
    run, lines = job(root=str(tmp_path / "root"))
    root = "this process has another root folder by now"
    assert all(
        f"cannot write {run.database(rank)}: {root}; the ledger {run.ledger(rank)} " in lines[rank]
        for rank in range(2)
    )
    assert not any("removed" in line or "nothing" in line for line in lines)
    unseen = f"which this process can no longer see ({root})"
    assert with_the_command(lines[-1])[0] == f"profile of 2 ranks in {tmp_path}/run, {unseen}"
    assert barriers_in(tmp_path / "run") == 14
    assert list((tmp_path / "root" / tmp_path.relative_to("/") / "run").iterdir()) == []


def test_a_disk_that_is_full_from_the_start_has_no_profile(job, disk):
    folder = disk("tmpfs", "size=16k")
    fill(folder, 0)
    _, lines = job(COMMPROF_OUTPUT=str(folder / "run"))
    assert lines[-1] == f"no profile of 2 ranks is in {folder}/run: there is no file of ranks 0-1"
    ledgers = {
        line.rpartition("; the ledger ")[2].partition(" ")[0]
        for line in lines
        if line.startswith("cannot write ")
    }
    assert [
        calls_in_ledger(ledger)["MPI_Barrier"] for ledger in map(type(folder), sorted(ledgers))
    ] == [7, 7]
    for ledger in ledgers:
        os.unlink(ledger)


def test_on_a_disk_that_fills_up_the_ledgers_are_the_profile(job, disk):
    folder = disk("tmpfs", "size=4m")
    run, lines = job(
        f"cat /dev/zero > {folder}/filler 2> /dev/null; true", COMMPROF_OUTPUT=str(folder / "run")
    )
    assert all(
        "; the ledger " in line and line.endswith(" stays and can be read as well")
        for line in lines[:-1]
    )
    assert len(lines) == 3
    assert with_the_command(lines[-1])[0] == f"profile of 2 ranks in {folder}/run"
    assert barriers_in(folder / "run") == 14


def test_a_disk_that_is_unmounted_is_not_said_to_have_the_profile(job, disk):
    folder = disk("tmpfs")
    _, lines = job(f"umount --lazy {folder}", COMMPROF_OUTPUT=str(folder / "run"))
    assert lines[-1] == f"no profile of 2 ranks is in {folder}/run: {GONE}"
    assert all(
        "cannot be seen from this process; it can be read as well if it is still there" in line
        for line in lines[:-1]
    )


@pytest.mark.skipif(not shutil.which("bindfs"), reason="no bindfs")
def test_a_file_system_whose_server_has_died_is_said(job, tmp_path):
    (tmp_path / "disk").mkdir()
    server = subprocess.Popen(["bindfs", "-f", tmp_path / "disk", tmp_path / "disk"])
    try:
        while not os.path.ismount(tmp_path / "disk"):
            assert server.poll() is None
        _, lines = job(
            f"kill -9 {server.pid}; while stat disk; do :; done 2> /dev/null > /dev/null",
            COMMPROF_OUTPUT="disk/run",
        )
        dead = "Transport endpoint is not connected"
        assert lines[-1] == f"no profile of 2 ranks is in {tmp_path}/disk/run: {dead}"
        assert all(
            f": {dead}; the ledger /dev/shm/" in line
            and line.endswith(" stays and can be read as well")
            for line in lines[:-1]
        )
        for line in lines[:-1]:
            os.unlink(line.rpartition("; the ledger ")[2].partition(" ")[0])
    finally:
        server.kill()
        subprocess.run(["umount", "--lazy", tmp_path / "disk"], check=False)

"""Jobs that use one run folder at the same time, as job arrays and batch scripts with one
COMMPROF_OUTPUT do: nothing is lost, nothing counts twice, and the files of a job lie in one folder
(programs/overlapping.calls). TIMES says how often the races are run (once)."""

import os
import signal
import subprocess
import tarfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .harness import (
    COMMPROF_RUN,
    TIMEOUT_S,
    Run,
    calls_in_ledger,
    command_for,
    end_stragglers,
    launch,
    start,
    unprofiled_environment,
)
from .libraries import MPICH, OPEN_MPI, Mpi

pytestmark = [pytest.mark.slow, pytest.mark.one_mpi]

TIMES = int(os.environ.get("TIMES", "1"))
COMMON: dict[str, str] = {}  # settings of all jobs
SIZES = 300  # of which each has a cell of its own: the ledger grows several times


@pytest.fixture(params=["rank", "node"], autouse=True)
def per(request, monkeypatch):
    """With a file for each rank, and with one for each node."""
    monkeypatch.setitem(COMMON, "COMMPROF_OUTPUT_PER", request.param)


def unpack_archives(folder: Path) -> None:
    for path in folder.rglob("node-*.tar"):
        with tarfile.open(path) as archive:
            assert not any((path.parent / name).exists() for name in archive.getnames())
            archive.extractall(path.parent)


def counts_by_folder(folder: Path) -> dict[Path, Counter[str]]:
    """Counts of each folder with files of ranks: how often each rank's file counts MPI_Bcast, by
    the file's name."""
    counts: dict[Path, Counter[str]] = {}
    unpack_archives(folder)
    for path in folder.rglob("rank-*"):
        count = calls_in_ledger(path)["MPI_Bcast"] if path.suffix != ".db" else 0
        if path.suffix == ".db":
            cells = Run(1, path.parent, None).cells(int(path.stem[5:]), "MPI_Bcast")
            count = sum(cell.count for cell in cells)
        counts.setdefault(path.parent, Counter())[path.name] = count
    return counts


def whole(ranks: int) -> Counter[str]:
    """Counts that a job of so many ranks must have left in its folder."""
    return Counter({f"rank-{rank}.db": SIZES for rank in range(ranks)})


def alike(counts: Iterable[Counter[str]]) -> list[list[tuple[str, int]]]:
    """In an order of their own, whatever the folders are called."""
    return sorted(sorted(count.items()) for count in counts)


def environment(folder: Path, **settings: str) -> dict[str, str]:
    return {"COMMPROF_OUTPUT": str(folder / "run"), **COMMON, **settings}


def command(mpi: Mpi, *arguments: object) -> list[str]:
    return [str(COMMPROF_RUN), *command_for(mpi, "overlapping"), str(SIZES), *map(str, arguments)]


def alone(mpi: Mpi, folder: Path) -> subprocess.Popen[str]:
    """A job of one rank, without a launcher."""
    env = unprofiled_environment() | mpi.environment | environment(folder)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command(mpi), text=True, cwd=folder, env=env, **pipes)


def end(jobs: list[subprocess.Popen[str]]) -> str:
    """Their output."""
    said = [job.communicate(timeout=TIMEOUT_S)[1] for job in jobs]
    assert [job.returncode for job in jobs] == [0] * len(jobs), said
    return "".join(said)


@contextmanager
def job_half_way(mpi: Mpi, ranks: int, folder: Path, **settings: str) -> Iterator[tuple]:
    """A job that stands still, and a function that lets it end and returns what it said."""
    ready, go = folder / "ready", folder / "go"
    job = start(mpi, ranks, command(mpi, ready, go), folder, environment(folder, **settings))
    while not ready.exists() and job.poll() is None:
        time.sleep(0.001)
    try:
        yield job, lambda: (go.touch(), end([job]))[1]
    finally:
        go.touch()
        job.wait(TIMEOUT_S)


def test_a_job_that_begins_and_ends_while_another_one_runs_leaves_it_alone(mpi, tmp_path):
    with job_half_way(mpi, 2, tmp_path) as (_, go_on):
        inner = end([start(mpi, 2, command(mpi), tmp_path, environment(tmp_path))])
        outer = go_on()
    counts = counts_by_folder(tmp_path / "run")
    (own,) = counts.keys() - {tmp_path / "run"}
    assert counts == {tmp_path / "run": whole(2), own: whole(2)}
    assert f"commprof: {tmp_path}/run is left alone: process " in inner
    assert inner.count(f"writes to it; this run is in {own}\n") == 1
    assert f"profile of 2 ranks in {own};" in inner
    assert "cannot" not in outer and f"profile of 2 ranks in {tmp_path}/run;" in outer


def test_it_leaves_a_ledger_on_the_node_alone_too(mpi, tmp_path):
    (tmp_path / "node").mkdir()
    with job_half_way(mpi, 2, tmp_path, COMMPROF_LEDGER=str(tmp_path / "node")) as (_, go_on):
        end([start(mpi, 2, command(mpi), tmp_path, environment(tmp_path))])
        go_on()
    assert list(counts_by_folder(tmp_path / "run").values()) == [whole(2), whole(2)]


def test_jobs_one_after_the_other_use_the_folder_itself(mpi, tmp_path):
    for _ in range(3):
        outcome = launch(mpi, 2, command(mpi), tmp_path, environment(tmp_path))
        assert "left alone" not in outcome.stderr
    run = tmp_path / "run"
    assert counts_by_folder(run) == {
        run: whole(2),
        run / "earlier-1": whole(2),
        run / "earlier-2": whole(2),
    }


def test_a_job_after_one_that_was_killed_uses_the_folder_itself(mpi, tmp_path):
    with job_half_way(mpi, 2, tmp_path) as (other, _):
        os.killpg(other.pid, signal.SIGKILL)
        end_stragglers(0)
    outcome = launch(mpi, 2, command(mpi), tmp_path, environment(tmp_path))
    run = tmp_path / "run"
    assert counts_by_folder(run)[run] == whole(2), outcome
    assert sorted(os.listdir(run / "earlier-1")) == ["rank-0.ledger", "rank-1.ledger"]


@pytest.mark.parametrize("attempt", range(TIMES))
def test_jobs_that_overlap_in_any_way_lose_nothing(mpi, tmp_path, attempt):
    jobs = [start(mpi, ranks, command(mpi), tmp_path, environment(tmp_path)) for ranks in (1, 2, 3)]
    said = end(jobs)
    jobs = [start(mpi, ranks, command(mpi), tmp_path, environment(tmp_path)) for ranks in (2, 2)]
    said += end(jobs)
    counts = counts_by_folder(tmp_path / "run")
    assert alike(counts.values()) == alike(map(whole, (1, 2, 2, 2, 3))), said
    assert said.count("is left alone") == sum(path.name.startswith("job-") for path in counts)


@pytest.mark.parametrize("attempt", range(TIMES))
def test_jobs_of_one_rank_that_start_at_the_same_time_have_a_folder_each(mpi, tmp_path, attempt):
    said = end([alone(mpi, tmp_path) for _ in range(6)])
    counts = counts_by_folder(tmp_path / "run")
    assert list(counts.values()) == [whole(1)] * 6, said


def test_a_program_under_another_library_s_launcher_has_a_folder_for_each_process(tmp_path):
    if OPEN_MPI.missing or MPICH.missing:
        pytest.skip("needs both libraries")
    outcome = launch(OPEN_MPI, 3, command(MPICH), tmp_path, environment(tmp_path))
    assert outcome.exit_status == 0
    assert list(counts_by_folder(tmp_path / "run").values()) == [whole(1)] * 3, outcome.stderr
    # one that begins when another has ended moves that one's file aside
    folders = len(list((tmp_path / "run").glob("job-*")))
    assert outcome.stderr.count("is left alone") == folders

"""Jobs of a real Slurm, of one node."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpi.harness import (
    COMMPROF_RUN,
    LIBRARY,
    REPORT,
    Outcome,
    Run,
    calls_in_ledger,
    compile_program,
)
from mpi.libraries import MPICH, OPEN_MPI, SYSTEM_PYTHON, Mpi

from . import one_node
from .one_node import Slurm

PLUGIN = {"openmpi": "pmix", "mpich": "pmi2"}  # of Slurm, that Debian's libraries understand


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    if missing := one_node.missing():
        pytest.skip(f"no {missing}")
    with one_node.started(tmp_path_factory.mktemp("slurm")) as running:
        yield running


@pytest.fixture(params=[OPEN_MPI, MPICH], ids=lambda mpi: mpi.name)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    library: Mpi = request.param
    if library.missing:
        pytest.skip(f"{library.name} is not installed: no {library.missing}")
    return library


def profiled(mpi: Mpi, output: str = "run") -> str:
    return f"{COMMPROF_RUN} --output {output} {compile_program(mpi, 'pcontrol')}"


def srun(slurm: Slurm, ranks: int, plugin: str, command: str, folder: Path) -> Outcome:
    return slurm.run(["srun", "-n", str(ranks), f"--mpi={plugin}", *command.split()], folder)


def accusations(text: str) -> list[str]:
    return [line for line in text.splitlines() if "srun started" in line]


def test_srun_starts_one_profiled_world(slurm, mpi, tmp_path):
    outcome = srun(slurm, 3, PLUGIN[mpi.name], profiled(mpi), tmp_path)
    assert outcome.exit_status == 0 and accusations(outcome.stderr) == []
    assert "profile of 3 ranks in" in outcome.stderr
    facts = [Run(3, tmp_path / "run", outcome).facts(rank) for rank in range(3)]
    assert len({each["run_id"] for each in facts}) == 1
    assert not any("launcher" in each for each in facts)


def test_srun_without_a_plugin_that_the_library_understands_is_named_once(slurm, tmp_path, mpi):
    if mpi == OPEN_MPI:
        pytest.skip("Debian's Open MPI ends in MPI_Init then, with a message of its own")
    for plugin in ("none", "pmix"):
        outcome = srun(slurm, 2, plugin, profiled(mpi, plugin), tmp_path)
        (line,) = accusations(outcome.stderr)
        assert (
            "srun started 2 processes, but each is a job of 1 rank" in line and "--mpi=TYPE" in line
        )


def test_mpirun_in_a_batch_script_starts_one_profiled_world(slurm, mpi, tmp_path):
    command = " ".join([*mpi.mpirun, "-n", "2", profiled(mpi)])
    printed = slurm.batch(command, tmp_path, "-n", "2")
    assert "profile of 2 ranks in" in printed and "srun started" not in printed


def calls_in(folder: Path) -> int:
    ((calls,),) = Run(2, folder, None).query(
        0, "SELECT SUM(count) FROM cell WHERE measure = 'call'"
    )
    return calls


def test_the_jobs_of_an_array_that_share_an_output_folder_lose_nothing(slurm, mpi, tmp_path):
    alone = f"srun -n 2 --mpi={PLUGIN[mpi.name]} {profiled(mpi, 'alone')}"
    script = (
        f"export COMMPROF_OUTPUT=shared LD_PRELOAD={LIBRARY}\nsrun -n 2 "
        f"--mpi={PLUGIN[mpi.name]} {compile_program(mpi, 'pcontrol')}\n"
    )
    slurm.batch(alone, tmp_path, "-n", "2")
    slurm.batch(script + script, tmp_path, "-n", "2", "--array=1-4")
    profiles = {path.parent for path in (tmp_path / "shared").rglob("rank-*.db")}
    assert len(profiles) == 8
    assert {calls_in(each) for each in profiles} == {calls_in(tmp_path / "alone")}


def test_a_job_that_is_cancelled_can_be_read_and_blames_nobody(slurm, mpi, tmp_path):
    """The program cancels its own job, once all ranks have been in a collective, and waits for what
    comes."""
    program = compile_program(mpi, "cancels_itself")
    printed = slurm.batch(
        f"srun --mpi={PLUGIN[mpi.name]} {COMMPROF_RUN} --output run {program}", tmp_path, "-n", "2"
    )
    assert "CANCELLED" in printed
    summary = subprocess.run(
        [SYSTEM_PYTHON, REPORT, "summary", tmp_path / "run"], capture_output=True, text=True
    )
    assert "ranks 0-1 were killed" in summary.stderr and "Killed  " in summary.stdout, summary
    stuck = subprocess.run(
        [SYSTEM_PYTHON, REPORT, "stuck", tmp_path / "run"], capture_output=True, text=True
    ).stdout
    assert "All 2 ranks were killed" in stuck and "was killed first" not in stuck
    assert calls_in_ledger(tmp_path / "run/rank-0.ledger")["MPI_Barrier"] >= 1


def test_task_prolog_profiles_the_jobs_that_ask_for_it_where_the_site_says(slurm, mpi, tmp_path):
    (tmp_path / "site.conf").write_text("output = %u/%d/%j\n")
    command = [
        "srun",
        "-n",
        "2",
        f"--mpi={PLUGIN[mpi.name]}",
        str(compile_program(mpi, "pcontrol")),
    ]
    environment = {"COMMPROF_CONFIG": str(tmp_path / "site.conf"), "USER": "ada"}
    unasked = slurm.run(command, tmp_path, **environment)
    assert (
        unasked.exit_status == 0
        and "profile of" not in unasked.stderr
        and not (tmp_path / "ada").exists()
    )
    asked = slurm.run(command, tmp_path, **environment, PROFILE_MPI="1")
    assert asked.exit_status == 0 and "profile of 2 ranks in" in asked.stderr
    (folder,) = (tmp_path / "ada").glob("*/*")
    assert {path.name for path in folder.glob("rank-*.db")} == {"rank-0.db", "rank-1.db"}


def test_an_experiment_in_a_batch_job_runs_its_arms_by_srun(slurm, tmp_path):
    """One allocation, whose nodes all runs share."""
    if missing := [mpi.name for mpi in (OPEN_MPI, MPICH) if mpi.missing]:
        pytest.skip(f"{missing[0]} is not installed")
    arms = [
        f"--arm '{mpi.name}: srun -n 2 --mpi={PLUGIN[mpi.name]} {{}} "
        f"{compile_program(mpi, 'pcontrol')}'"
        for mpi in (OPEN_MPI, MPICH)
    ]
    experiment = REPORT.parent / "commprof-experiment"
    printed = slurm.batch(
        f"{experiment} run exp --blocks 2 {' '.join(arms)}\n", tmp_path, "--ntasks=2"
    )
    assert "done: 2 blocks. Read them with: hvprof-report compare exp" in printed, printed
    assert len(list(tmp_path.glob("exp/block-0[12]/*/rank-[01].db"))) == 8
    report = subprocess.run(
        [REPORT, "compare", "exp", "--by", "run", "--json"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    rows = json.loads(report.stdout)
    assert sorted((row["side"], row["block"]) for row in rows) == [
        ("mpich", 1),
        ("mpich", 2),
        ("openmpi", 1),
        ("openmpi", 2),
    ]
    assert all(row["memory_ns"] > 0 for row in rows), "the host was measured before each run"

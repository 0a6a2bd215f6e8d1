"""Programs under the launcher of another MPI are as many jobs of one rank as there are processes:
that is said, and nothing is said of jobs that are one rank because they should be."""

import os
import subprocess

import pytest

from .harness import COMMPROF_RUN, Run, command_for, compile_program, launch
from .harness import unprofiled_environment
from .libraries import AS_ROOT, MPICH, OPEN_MPI
from .reporter import text
from .test_doctor import can_be_profiled, doctor, findings, only_problem
from .test_guest_children import run_over_tcp

pytestmark = pytest.mark.slow

LAUNCHERS = {"openmpi": "Open MPI's mpirun", "mpich": "Hydra (mpirun of MPICH or Intel MPI)"}
OTHER = {"openmpi": MPICH, "mpich": OPEN_MPI}
IN_A_BATCH_SCRIPT = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"}
IN_A_STEP = {**IN_A_BATCH_SCRIPT, "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4"}
IN_A_BATCH_SCRIPT["SLURM_LOCALID"] = "0"


@pytest.fixture(autouse=True)
def both_are_here(mpi):
    if mpi not in (OPEN_MPI, MPICH) or OPEN_MPI.missing or MPICH.missing:
        pytest.skip("needs the distribution's Open MPI and MPICH")


def each_in_a_folder_of_its_own(program):
    return ["/bin/sh", "-c", f"exec {COMMPROF_RUN} --output run-$$ {program}"]


def accusations(outcome):
    lines = outcome.stderr.splitlines()
    return [line for line in lines if "started" in line and "processes" in line]


def facts_of_all(folder):
    return [Run(1, run, None).facts(0) for run in sorted(folder.glob("run-*"))]


def by_hand(mpi, folder, **environment):
    """A singleton."""
    command = [COMMPROF_RUN, "--output", "run-0", compile_program(mpi, "pcontrol")]
    env = unprofiled_environment() | AS_ROOT | environment
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600)


def is_silent(outcome, folder):
    assert accusations(outcome) == []
    facts = facts_of_all(folder)
    assert facts and not any("launcher" in each or "launcher_size" in each for each in facts)
    return True


def test_the_wrong_launcher_is_named_once_and_in_every_database_and_summary(mpi, tmp_path):
    program = compile_program(OTHER[mpi.name], "pcontrol")
    command = each_in_a_folder_of_its_own(program)
    outcome = launch(mpi, 2, command, tmp_path, AS_ROOT)
    (line,) = accusations(outcome)
    said = f"{LAUNCHERS[mpi.name]} started 2 processes, but each is a job of 1 rank"
    assert line.startswith(f"commprof: {said}: ")
    assert f"{OTHER[mpi.name].abi}, " in line and "use that MPI's own mpirun" in line
    facts = facts_of_all(tmp_path)
    named = [(each["launcher"], each["launcher_size"]) for each in facts]
    assert named == 2 * [(LAUNCHERS[mpi.name], "2")]
    assert said in text("summary", next(tmp_path.glob("run-*")))
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    outcome = launch(mpi, 2, command, quiet, {**AS_ROOT, "COMMPROF_QUIET": "on"})
    assert accusations(outcome) == [] and len(facts_of_all(quiet)) == 2


def test_srun_without_an_mpi_plugin_is_named(mpi, tmp_path):
    outcome = by_hand(mpi, tmp_path, **IN_A_STEP)
    (line,) = accusations(outcome)
    assert "srun started 4 processes" in line and "--mpi=TYPE that this MPI supports" in line


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_right_launcher_is_silent(mpi, tmp_path, ranks):
    command = [str(COMMPROF_RUN), "--output", "run-0", str(compile_program(mpi, "pcontrol"))]
    assert is_silent(launch(mpi, ranks, command, tmp_path, {}), tmp_path)


def test_the_wrong_launcher_of_one_process_does_no_harm(mpi, tmp_path):
    program = compile_program(OTHER[mpi.name], "pcontrol")
    assert is_silent(
        launch(mpi, 1, each_in_a_folder_of_its_own(program), tmp_path, AS_ROOT), tmp_path
    )


@pytest.mark.parametrize(
    "surroundings",
    [{}, IN_A_BATCH_SCRIPT, {**IN_A_STEP, "SLURM_PTY_PORT": "4711"}, {"WORLD_SIZE": "8"}],
)
def test_a_program_started_by_hand_is_silent(mpi, tmp_path, surroundings):
    assert is_silent(by_hand(mpi, tmp_path, **surroundings), tmp_path)


def test_a_job_within_a_job_is_silent(mpi, tmp_path):
    """A rank that starts one process of another MPI, by itself or with its launcher."""
    other = OTHER[mpi.name]
    alone = " ".join(each_in_a_folder_of_its_own(compile_program(other, "pcontrol"))[:2])
    inner = f"{COMMPROF_RUN} --output run-$$ {compile_program(other, 'pcontrol')}"
    launched = " ".join([*other.mpirun, "-n", "1", alone, f"'exec {inner}'"])
    outcome = launch(
        mpi, 2, [*command_for(mpi, "children"), f"{inner}; {launched}"], tmp_path, AS_ROOT
    )
    assert outcome.exit_status == 0, outcome
    assert len(facts_of_all(tmp_path)) >= 2 and is_silent(outcome, tmp_path)


def test_the_right_launcher_in_a_script_under_another_is_silent(mpi, tmp_path):
    other = OTHER[mpi.name]
    inner = [COMMPROF_RUN, "--output", "run-$$", compile_program(other, "pcontrol")]
    script = " ".join(map(str, [*other.mpirun, "-n", "1", *inner]))
    assert is_silent(launch(mpi, 2, ["/bin/sh", "-c", script], tmp_path, AS_ROOT), tmp_path)


def test_a_spawned_world_of_one_is_silent(tmp_path_factory):
    run = run_over_tcp(tmp_path_factory, "spawning_one")
    spawned = [Run(1, folder, run.outcome) for folder in run.folder.glob("spawned-*")]
    assert len(spawned) == 2 and not any("launcher" in world.facts(0) for world in spawned)
    assert accusations(run.outcome) == []


def test_the_doctor_compares_the_program_s_mpi_with_the_launcher_that_started_it(mpi, tmp_path):
    other = compile_program(OTHER[mpi.name], "pcontrol")
    ask = [str(COMMPROF_RUN), "--doctor"]
    wrong = launch(mpi, 1, [*ask, str(other)], tmp_path, {})
    problem = only_problem(wrong)
    assert problem.startswith(
        f"launcher: {LAUNCHERS[mpi.name]} has started this process, but the program's MPI is "
        f"{OTHER[mpi.name].abi}"
    )
    right = launch(mpi, 1, [*ask, str(compile_program(mpi, "pcontrol"))], tmp_path, {})
    assert can_be_profiled(right), right


def test_the_doctor_compares_it_with_the_mpirun_that_would_be_found(mpi, tmp_path):
    os.symlink(
        subprocess.check_output(["which", mpi.mpirun[0]], text=True).strip(), tmp_path / "mpirun"
    )
    path = f"{tmp_path}:{os.environ['PATH']}"
    wrong = doctor(compile_program(OTHER[mpi.name], "pcontrol"), PATH=path)
    assert can_be_profiled(wrong), wrong
    (note,) = (line for line in findings(wrong, "note") if line.startswith("launcher: "))
    assert note.startswith(f"launcher: {tmp_path}/mpirun is {LAUNCHERS[mpi.name]}")
    right = doctor(compile_program(mpi, "pcontrol"), PATH=path)
    assert can_be_profiled(right) and not [
        line for line in findings(right, "note") if line.startswith("launcher: ")
    ]


def test_the_doctor_knows_an_srun_that_offers_nothing(mpi):
    program = compile_program(mpi, "pcontrol")
    assert "srun offers neither PMIx nor PMI here" in only_problem(doctor(program, **IN_A_STEP))
    assert can_be_profiled(doctor(program, **IN_A_STEP, PMIX_RANK="0"))
    assert can_be_profiled(doctor(program, **IN_A_BATCH_SCRIPT))

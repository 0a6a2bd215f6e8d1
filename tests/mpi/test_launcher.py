"""commprof-run, and where a run is put."""

import json
import os
import shutil
import socket
import subprocess

import pytest

from .harness import COMMPROF_RUN, LIBRARY, Run, compile_program, launch
from .reporter import text

pytestmark = pytest.mark.one_mpi


def commprof_run(*arguments, **environment):
    command = [str(COMMPROF_RUN), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=600, env=os.environ | environment
    )


SHOWN = "OUTPUT LEDGER COPY_S MEMORY CLOCK EXCLUDE START BEGIN_S END_S VERBOSE QUIET".split()


def test_help_prints_every_setting_with_the_value_in_force():
    finished = commprof_run("--help", COMMPROF_MEMORY="48M")
    assert finished.returncode == 0 and "48M" in finished.stdout
    assert all(f"COMMPROF_{setting}" in finished.stdout for setting in SHOWN)


def test_the_program_s_exit_status_is_passed_on_and_one_that_is_not_there_named():
    assert commprof_run("/bin/sh", "-c", "exit 7").returncode == 7
    finished = commprof_run("/no/such/program")
    assert finished.returncode in (126, 127) and "/no/such/program" in finished.stderr


def test_what_was_preloaded_before_stays_preloaded(mpi):
    other = compile_program(mpi, "other_tool", "-shared", "-fPIC")
    lines = commprof_run("/usr/bin/env", LD_PRELOAD=str(other)).stdout.splitlines()
    (preloaded,) = (line for line in lines if line.startswith("LD_PRELOAD="))
    assert str(other) in preloaded and "libcommprof.so" in preloaded


def test_an_option_sets_the_run_folder_which_may_name_the_program_and_the_host(mpi, tmp_path):
    program = str(compile_program(mpi, "pcontrol"))
    command = [str(COMMPROF_RUN), "--output", str(tmp_path / "by option"), program]
    run = Run(2, tmp_path / "by option", launch(mpi, 2, command, tmp_path, {}))
    assert (run.outcome.exit_status, run.files()) == (0, ["rank-0.db", "rank-1.db"])
    command = ["env", f"LD_PRELOAD={LIBRARY}", program]
    named = {"COMMPROF_OUTPUT": f"{tmp_path}/runs/%p on %h"}
    assert launch(mpi, 2, command, tmp_path, named).exit_status == 0
    assert os.listdir(tmp_path / "runs") == [f"pcontrol on {socket.gethostname()}"]


def closing_line(outcome):
    begin = "commprof: profile of "
    (line,) = (line for line in outcome.stderr.splitlines() if line.startswith(begin))
    profile, _, command = line.removeprefix(begin).partition("; read it with: ")
    return profile, command


def as_a_shell_splits(command):
    words = subprocess.check_output(["bash", "-c", f"printf '%s\\n' {command}"], text=True)
    return words.splitlines()


@pytest.mark.parametrize("options", [[], ["--output", "run"]])
def test_the_programs_of_a_job_are_read_as_one_and_named(mpi, tmp_path, options):
    program = compile_program(mpi, "pcontrol")
    other = shutil.copy(program, tmp_path / "other")
    profiled = [str(COMMPROF_RUN), *options]
    command = [*profiled, str(program), ":", "-n", "1", *profiled, str(other)]
    profile, read = closing_line(launch(mpi, 1, command, tmp_path, {}))
    assert profile.startswith("2 ranks in ")
    _, run, *_ = text(*as_a_shell_splits(read)[1:]).split("\n\n")
    assert run.startswith("2 programs: pcontrol (rank 0), other (rank 1)\n")


@pytest.mark.parametrize("options", [[], ["--output", "run"]])
def test_the_first_rank_that_is_profiled_has_the_closing_line(mpi, tmp_path, options):
    program = str(compile_program(mpi, "pcontrol"))
    command = [program, ":", "-n", "2", str(COMMPROF_RUN), *options, program]
    profile, _ = closing_line(launch(mpi, 1, command, tmp_path, {}))
    assert profile.startswith("2 of 3 ranks (there is no file of rank 0) in ")


@pytest.mark.parametrize("pattern", ["split/%h-%r", "my run's/%r of %p"])
def test_the_closing_line_names_the_folders_of_all_ranks_as_a_shell_takes_them(
    mpi, tmp_path, pattern
):
    command = [str(COMMPROF_RUN), "--output", pattern, str(compile_program(mpi, "pcontrol"))]
    profile, read = closing_line(launch(mpi, 2, command, tmp_path, {}))
    assert profile == f"2 ranks in {read.partition(' summary ')[2]}" and "*" in profile
    shell = ["bash", "-c", f"{read} --json"]
    said = subprocess.run(shell, capture_output=True, text=True, check=True)
    assert (json.loads(said.stdout)[0]["ranks_read"], said.stderr) == (2, "")


def test_on_one_host_the_folder_of_a_host_is_that_of_all_ranks(mpi, tmp_path):
    command = [str(COMMPROF_RUN), "--output", "split/%h", str(compile_program(mpi, "pcontrol"))]
    profile, _ = closing_line(launch(mpi, 2, command, tmp_path, {}))
    assert profile == f"2 ranks in {tmp_path}/split/{socket.gethostname()}"


def test_ledgers_may_live_elsewhere_and_are_gone_after_finalize(profile, tmp_path):
    run = profile("pcontrol", 2, env={"COMMPROF_LEDGER": str(tmp_path / "ledgers")})
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert not (tmp_path / "ledgers").exists() or os.listdir(tmp_path / "ledgers") == []
    assert run.counts("MPI_Allreduce") == [8, 8]


def test_either_clock_counts_the_same_calls(profile):
    run = profile("pcontrol", 2, env={"COMMPROF_CLOCK": "monotonic"})
    assert run.counts("MPI_Allreduce") == [8, 8]
    assert 0 < run.query(0, "SELECT SUM(total_ns) FROM cell")[0][0] < run.rank_row(0)["wall_ns"]

"""The guest's promise: the job gets exactly what its MPI would have given it, and a process without
MPI nothing at all."""

import os
import re
import shlex

import pytest

from .harness import LIBRARY, PROGRAMS, Run, command_for, compile_program, launch

pytestmark = pytest.mark.slow


def lines_of(outcome):
    return sorted(outcome.stdout.splitlines())


def test_the_job_s_output_is_its_own_and_only_rank_0_says_one_line_on_stderr(profile, plain):
    run = profile("talkative", 4)
    assert lines_of(run.outcome) == lines_of(plain("talkative", 4))
    assert len(lines_of(run.outcome)) == 4 * 202
    said = [line for line in run.outcome.stderr.splitlines() if "commprof" in line]
    assert said == [run.outcome.stderr.strip()] and str(run.folder) in said[0]
    assert profile("talkative", 4, env={"COMMPROF_QUIET": "1"}).outcome.stderr == ""


def test_a_process_sees_the_same_files_signals_and_environment(profile, plain):
    marked = {"MARKED_BY_THE_TEST": "unchanged"}
    run = profile("surroundings", 2, env=marked)
    without = [
        line.partition("folder")[0] for line in lines_of(plain("surroundings", 2, env=marked))
    ]
    assert [line.partition("folder")[0] for line in lines_of(run.outcome)] == without


@pytest.mark.parametrize(
    "command", [["/bin/ls", "/"], ["/bin/sh", "-c", "/bin/true; exit 0"], ["/usr/bin/env"]]
)
def test_a_program_without_mpi_leaves_nothing_and_hears_nothing(profile, command):
    run = profile(command[0], 2, *command[1:])
    assert not run.folder.exists()
    assert "commprof:" not in run.outcome.stderr
    assert os.listdir(run.folder.parent) == []


def test_a_shell_around_the_program_is_no_rank_and_the_library_may_be_preloaded_by_hand(
    profile, mpi
):
    around = f"/bin/true; {compile_program(mpi, 'pcontrol')}; /bin/ls / > /dev/null"
    run = profile("/bin/sh", 2, "-c", around, preload=(LIBRARY,))
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert run.counts("MPI_Allreduce") == [8, 8]
    assert profile("pcontrol", 2, preload=(LIBRARY,)).counts("MPI_Allreduce") == [8, 8]


def test_forked_children_are_no_ranks(profile):
    run = profile("fork_children", 2)
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert run.rank_row(0)["ended"] == "finalize"


def test_a_run_folder_of_the_profiler_s_choice_is_the_same_for_all_ranks(mpi, tmp_path):
    command = ["env", f"LD_PRELOAD={LIBRARY}", str(compile_program(mpi, "pcontrol"))]
    outcome = launch(mpi, 3, command, tmp_path, {})
    assert outcome.exit_status == 0
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("commprof-pcontrol-")
    assert Run(3, folder, outcome).files() == ["rank-0.db", "rank-1.db", "rank-2.db"]


def test_a_run_folder_that_cannot_be_made_is_said_once_and_another_taken(mpi, tmp_path):
    (tmp_path / "file").write_text("in the way")
    command = ["env", f"LD_PRELOAD={LIBRARY}", str(compile_program(mpi, "pcontrol"))]
    settings = {
        "COMMPROF_OUTPUT": str(tmp_path / "file" / "run"),
        "TMPDIR": str(tmp_path),
        "COMMPROF_QUIET": "on",
    }
    outcome = launch(mpi, 2, command, tmp_path, settings)
    assert outcome.exit_status == 0
    (line,) = outcome.stderr.splitlines()
    assert line.startswith(
        f"commprof: cannot use the run folder {tmp_path}/file/run: Not a directory; "
    )
    (folder,) = (tmp_path / f"commprof-{os.geteuid()}").iterdir()
    assert Run(2, folder, outcome).files() == ["rank-0.db", "rank-1.db"]


def test_a_limit_on_the_size_of_files_stops_the_recording_and_not_the_job(profile, mpi):
    if mpi.family == "impi":
        pytest.skip("Intel MPI's own files in shared memory are larger than a ledger")
    kilobytes = 40000  # enough for MPI's own files, too little for a ledger of 20,000 sizes
    limited = f"ulimit -f {kilobytes}; exec {shlex.join(command_for(mpi, 'many_sizes'))}"
    run = profile("/bin/bash", 2, "-c", limited, preload=(LIBRARY,))
    assert run.counts("MPI_Send") == [20000, 0]


def test_unknown_and_malformed_settings_are_named_and_the_default_stands(profile):
    run = profile("pcontrol", 2, env={"COMMPROF_OUTPUTT": "x", "COMMPROF_MEMORY": "lots"})
    assert "COMMPROF_OUTPUTT" in run.outcome.stderr
    assert "COMMPROF_MEMORY" in run.outcome.stderr
    assert run.counts("MPI_Allreduce") == [8, 8]


FILE_WRITE = {"MPI_Init", "MPI_Finalize"} | {
    f"MPI_File_{call}" for call in ("open", "close", "write_at_all", "read_at_all")
}


def test_what_the_mpi_library_does_inside_is_not_counted(profile, tmp_path):
    run = profile("file_write", 2, str(tmp_path / "data"))
    assert run.calls(0) == FILE_WRITE


def test_what_romio_does_inside_open_mpi_is_not_counted(profile, mpi, tmp_path):
    if mpi.family != "openmpi":
        pytest.skip("ROMIO is MPICH's own: the test above covers it")
    run = profile("file_write", 2, str(tmp_path / "data"), env={"OMPI_MCA_io": "^ompio"})
    assert run.calls(0) == FILE_WRITE


@pytest.mark.parametrize("order", ["ours first", "other first"])
def test_another_profiler_and_ours_both_see_every_call(profile, mpi, order):
    other = compile_program(mpi, "other_tool", "-shared", "-fPIC")
    preload = (LIBRARY, other) if order == "ours first" else (other, LIBRARY)
    run = profile("for_tools", 2, preload=preload)
    assert lines_of(run.outcome) == ["other tool: 7 MPI_Allreduce, 5 MPI_Isend"] * 2
    assert run.sizes("MPI_Allreduce") == [{4: (7, 28)}] * 2
    assert run.sizes("MPI_Isend", "completion") == [{4: (5, 20)}] * 2
    assert run.counts("MPI_Finalize") == [1, 1]


def test_all_test_programs_are_used():
    rooms = ("mpi/test_*.py", "faults/*.py", "hosts/*.py", "slurm/*.py", "truth/*.py")
    tests = [path for room in rooms for path in PROGRAMS.parent.parent.glob(room)]
    sources = "".join(path.read_text() for path in tests)
    unused = {
        path.stem
        for path in PROGRAMS.iterdir()
        if path.suffix not in (".h", ".inc")
        and not re.search(rf'"{path.stem}|^{path.stem}( \d|,)|, {path.stem}[, ]', sources, re.M)
    }
    made_by_form = {name for name in unused if name.startswith(("calls", "completions_"))}
    assert unused == made_by_form

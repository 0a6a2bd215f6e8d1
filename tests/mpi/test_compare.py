"""The same program under two MPI libraries gives rows that pair exactly, with equal counts, bytes
and communicators."""

from __future__ import annotations

import json
import os
import subprocess
from itertools import combinations
from pathlib import Path

import pytest

from . import effects, reporter
from .harness import COMMPROF_RUN, command_for, profiled
from .libraries import libraries

pytestmark = pytest.mark.slow

PROGRAMS = {
    "training_loop": (2, "marked", "20"),
    "creation_order": (4,),
    "strided_members": (4,),
    "persistent": (2,),
}
OTHER_HOST = ("unshare", "--uts", "sh", "-c", 'hostname other && exec "$@"', "sh")
THERE = [mpi for mpi in libraries() if not mpi.missing]


@pytest.fixture(scope="module", params=PROGRAMS)
def runs(request, tmp_path_factory):
    ranks, *arguments = PROGRAMS[request.param]
    found = {}
    for mpi in THERE:
        # the paths of programs name the library
        command = [COMMPROF_RUN, "--no-arguments", *command_for(mpi, request.param), *arguments]
        run = profiled(mpi, ranks, command, tmp_path_factory.mktemp(mpi.name))
        assert run.outcome.exit_status == 0, run.outcome
        found[mpi.name] = run.folder
    return found


@pytest.mark.skipif(len(THERE) < 2, reason="one MPI library")
@pytest.mark.parametrize(
    "pair", list(combinations(THERE, 2)), ids=lambda pair: f"{pair[0].name}-{pair[1].name}"
)
def test_rows_of_two_libraries_pair_exactly(runs, pair):
    first, second = (runs[mpi.name] for mpi in pair)
    (verdict,) = reporter.rows("compare", first, second, "--by", "verdict")
    refused = {"work", "placement", "program", "partial"} & set(verdict["refused"].split("; "))
    assert not refused, verdict
    text = " ".join(reporter.text("compare", first, second).split())
    assert "Same work yes: " in text and "left out" not in text
    assert made(first) == made(second) != {}


def made(run: Path) -> dict[tuple[str, int], tuple[int, int]]:
    """Calls and bytes by call and size, over all communicators, from another command."""
    sums: dict[tuple[str, int], tuple[int, int]] = {}
    for row in reporter.rows("sizes", run):
        if row["family"] not in ("setup", "completion", "probe"):
            count, volume = sums.get((row["call"], row["bytes"]), (0, 0))
            own = (count + row["count"], volume + row["volume_bytes"])
            sums[row["call"], row["bytes"]] = own
    return sums


@pytest.mark.skipif(len(THERE) < 2, reason="one MPI library")
def test_another_number_of_steps_is_refused_as_other_work(tmp_path):
    for mpi, steps in zip(THERE, ("20", "30")):
        command = [COMMPROF_RUN, *command_for(mpi, "training_loop"), "marked", steps]
        (tmp_path / mpi.name).mkdir()
        profiled(mpi, 2, command, tmp_path / mpi.name)
    sides = (tmp_path / mpi.name / "run" for mpi in THERE[:2])
    (verdict,) = reporter.rows("compare", *sides, "--by", "verdict")
    assert {"work", "program"} <= set(verdict["refused"].split("; "))


def test_each_host_of_a_run_is_measured_once_and_the_slowest_counts(mpi, tmp_path):
    """Four ranks, of which two have another host name, in a namespace of their own."""
    if subprocess.run([*OTHER_HOST, "true"], capture_output=True).returncode:
        pytest.skip("no UTS namespaces here")
    canary = tmp_path / "run.canary"
    job = [*command_for(mpi, "training_loop"), "marked", "5"]
    command = [COMMPROF_RUN, "--canary", canary, COMMPROF_RUN, *job]
    run = profiled(mpi, 2, [*command, ":", "-n", "2", *OTHER_HOST, *command], tmp_path)
    assert run.outcome.exit_status == 0, run.outcome
    lines = {path.name: path.read_text().splitlines() for path in canary.iterdir()}
    assert {host: len(measured) for host, measured in lines.items()} == {
        os.uname().nodename: 1,
        "other": 1,
    }
    for name in ("arithmetic_ns", "memory_ns"):
        slowest = max(json.loads(*measured)[name] for measured in lines.values())
        assert slowest > 0
        with reporter.another_run(tmp_path / "run") as other:
            rows = reporter.rows("compare", tmp_path / "run", other, "--by", "run")
        assert rows[0][name] == slowest


@pytest.mark.nightly
@pytest.mark.skipif(
    not effects.has_real_time(), reason="no real-time priority: other processes would be measured"
)
def test_a_planted_effect_is_found_and_an_arm_against_itself_shows_none(tmp_path):
    """A layer below delays each Allreduce by 5 % more. python3 -m mpi.effects is the long form."""
    mpi = next((mpi for mpi in THERE if mpi.family == "mpich"), THERE[0])
    verdicts = reporter.rows(
        "compare", effects.run(mpi, tmp_path, [5], 6), "--by", "verdict", "--allow", "disturbed"
    )
    found = {row["side"]: row for row in verdicts}
    planted, itself = found["5"], found["base-again"]
    assert planted["verdict"] == "more" and abs(planted["change"] - 0.05) < 0.01
    assert itself["verdict"] in ("same", "unknown")

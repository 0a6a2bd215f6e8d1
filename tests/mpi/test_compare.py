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
from .harness import COMMPROF_RUN, command_for, launch
from .libraries import Mpi, libraries

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
def runs(request, tmp_path_factory) -> dict[str, Path]:
    ranks, *arguments = PROGRAMS[request.param]
    found = {}
    for mpi in THERE:
        folder = tmp_path_factory.mktemp(mpi.name)
        # the paths of programs name the library
        command = [
            str(COMMPROF_RUN),
            "--no-arguments",
            *command_for(mpi, request.param),
            *arguments,
        ]
        outcome = launch(mpi, ranks, command, folder, {"COMMPROF_OUTPUT": str(folder / mpi.name)})
        assert outcome.exit_status == 0, outcome
        found[mpi.name] = folder / mpi.name
    return found


@pytest.mark.skipif(len(THERE) < 2, reason="one MPI library")
@pytest.mark.parametrize(
    "pair", list(combinations(THERE, 2)), ids=lambda pair: f"{pair[0].name}-{pair[1].name}"
)
def test_rows_of_two_libraries_pair_exactly(runs, pair: tuple[Mpi, Mpi]) -> None:
    first, second = (runs[mpi.name] for mpi in pair)
    (verdict,) = reporter.rows("compare", first, second, "--by", "verdict")
    assert not {"work", "placement", "program", "partial"} & set(verdict["refused"].split("; ")), (
        verdict
    )
    text = " ".join(reporter.text("compare", first, second).split())
    assert "Same work yes: " in text and "left out" not in text
    for metric in ("count", "volume_bytes"):
        sums = [
            {(row["call"], row["bytes"]): row[metric] for row in made(run)}
            for run in (first, second)
        ]
        assert sums[0] == sums[1] != {}


def made(run: Path) -> list[dict]:
    """Calls and sizes over all communicators, from another command."""
    rows = [
        row
        for row in reporter.rows("sizes", run)
        if row["family"] not in ("setup", "completion", "probe")
    ]
    sums: dict[tuple, dict] = {}
    for row in rows:
        own = sums.setdefault(
            (row["call"], row["bytes"]),
            {"call": row["call"], "bytes": row["bytes"], "count": 0, "volume_bytes": 0},
        )
        own["count"] += row["count"]
        own["volume_bytes"] += row["volume_bytes"]
    return list(sums.values())


@pytest.mark.skipif(len(THERE) < 2, reason="one MPI library")
def test_another_number_of_steps_is_refused_as_other_work(tmp_path) -> None:
    for mpi, steps in zip(THERE, ("20", "30")):
        command = [str(COMMPROF_RUN), *command_for(mpi, "training_loop"), "marked", steps]
        launch(mpi, 2, command, tmp_path, {"COMMPROF_OUTPUT": str(tmp_path / mpi.name)})
    (verdict,) = reporter.rows(
        "compare", *(tmp_path / mpi.name for mpi in THERE[:2]), "--by", "verdict"
    )
    assert {"work", "program"} <= set(verdict["refused"].split("; "))


def test_each_host_of_a_run_is_measured_once_and_the_slowest_counts(mpi, tmp_path) -> None:
    """Four ranks, of which two have another host name, in a namespace of their own."""
    if subprocess.run([*OTHER_HOST, "true"], capture_output=True).returncode:
        pytest.skip("no UTS namespaces here")
    canary = tmp_path / "run.canary"
    profiled = [
        str(COMMPROF_RUN),
        "--canary",
        str(canary),
        str(COMMPROF_RUN),
        *command_for(mpi, "training_loop"),
        "marked",
        "5",
    ]
    outcome = launch(
        mpi,
        2,
        [*profiled, ":", "-n", "2", *OTHER_HOST, *profiled],
        tmp_path,
        {"COMMPROF_OUTPUT": str(tmp_path / "run")},
    )
    assert outcome.exit_status == 0, outcome
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
def test_a_planted_effect_is_found_and_an_arm_against_itself_shows_none(tmp_path) -> None:
    """A layer below delays each Allreduce by 5 % more. python3 -m mpi.effects is the long form."""
    mpi = next((mpi for mpi in THERE if mpi.family == "mpich"), THERE[0])
    verdicts = reporter.rows(
        "compare", effects.run(mpi, tmp_path, [5], 6), "--by", "verdict", "--allow", "disturbed"
    )
    found = {row["side"]: row for row in verdicts}
    planted, itself = found["5"], found["base-again"]
    assert planted["verdict"] == "more" and abs(planted["change"] - 0.05) < 0.01
    assert itself["verdict"] in ("same", "unknown")

"""Ranks that share cores: said where masks or a quota show it, and nowhere else."""

from __future__ import annotations

import re

import parallel
import pytest
from commprof_report.run.crowding import cores_of, crowding, sentence
from commprof_report.run.run import run_open
from planted import SECOND, Cell, Rank, write_databases
from planted_job import HostClock, Job

HOST = {"host": "x", "boot_id": "b"}
NUMBERS = tuple(
    "cpu_user_ns cpu_system_ns voluntary_switches involuntary_switches since_start_ns".split()
)


def facts_of(
    affinity: str | None, begin: tuple = (), last: tuple = (), **more: str
) -> dict[str, str]:
    known = {"begin.affinity": affinity, "last.affinity": affinity} if affinity else {}
    read = {
        f"{reading}.{key}": str(value)
        for reading, values in (("begin", begin), ("last", last))
        for key, value in zip(NUMBERS, values)
    }
    return {**HOST, **known, **read, **more}


def ranks_with(facts: list[dict[str, str]]) -> list[Rank]:
    """Rank 0 waits for the others in an Allreduce."""
    size = len(facts)
    ranks = []
    for rank, own in enumerate(facts):
        cells = [Cell("MPI_Allreduce", 8, [SECOND // (rank + 1)] * 30)]
        known = {"communicators": [parallel.world(rank, size)], "cells": cells}
        ranks.append(Rank(rank, size, facts=own, **known))
    return ranks


def crowded(tmp_path, facts: list[dict[str, str]]) -> list:
    return crowding(run_open(write_databases(tmp_path / "run", ranks_with(facts))).connection)


def by_masks(tmp_path, *masks: str | None) -> list:
    return crowded(tmp_path, [facts_of(mask) for mask in masks])


READ = {"begin": (5, 5, 10, 100, 1_000), "last": (SECOND, 0, 20, 5_879, SECOND + 1_000)}


QUOTA = {"cpu_quota_cores": "1.5", "cpu_quota_cgroup": "/job"}


def test_a_quota_below_the_ranks_crowds_them(tmp_path):
    (found,) = crowded(tmp_path, [facts_of("0-7", **QUOTA)] * 2)
    assert (
        sentence([found])
        == "2 ranks share 1.5 cores by cgroup quota on host x: part of the time in MPI here is "
        "scheduling"
    )


def test_without_masks_nobody_knows(tmp_path):
    assert by_masks(tmp_path, None, None) == []


@pytest.mark.parametrize("text", ["", "x", "0-", "9-1", "0-99999999999", "1,,2", "-1"])
def test_a_mask_that_makes_no_sense_is_unknown(text):
    assert cores_of(text) == 0


def test_where_ranks_lack_cores_no_command_names_one(report, tmp_path):
    """Rank 1 is late to all of 40 collectives: by its work, or because rank 0 had the core."""
    job = Job([HostClock()] * 2, wall_ns=SECOND)
    for step in range(40):
        begin_ns = step * 20_000_000
        job.collective("MPI_Allreduce", [begin_ns, begin_ns + 5_000_000], [1_000] * 2)
    for rank in range(2):
        job.add("fact", world_rank=rank, key="begin.affinity", value="0")
    folder = job.write(tmp_path / "run.db")
    (row,) = report("late", folder, "--by", "run", "--json").rows
    assert (row["verdict"], row["late_ranks"]) == ("cores", None)
    for command in ("summary", "late", "steps", "advise"):
        said = report(command, folder).out
        assert "Give each rank its own first" in said
        assert not re.search(r"rank 1 (is|causes|in \d)|Certainty", said, re.IGNORECASE), said
    advice = report("advise", folder, "--json").rows
    assert [row["rule"] for row in advice if row["found"]] == ["cores"]


def test_a_healthy_run_says_nothing_of_cores(report, tmp_path):
    folder = write_databases(
        tmp_path / "run", ranks_with([facts_of("0", **READ), facts_of("1", **READ)])
    )
    assert (
        "Crowded"
        not in report("summary", folder).out
        + report("late", folder).out
        + report("steps", folder).out
    )
    (row,) = report("summary", folder, "--json").rows
    assert (row["crowding"], row["crowded_ranks"]) == (None, "")


def test_impossible_readings_do_no_harm(report, tmp_path):
    impossible = {
        "begin": ("x",) * 5,
        "last": ("9223372036854775807",) * 5,
        "cpu_quota_cores": "nan",
        "cpu_quota_cgroup": "",
    }
    folder = write_databases(tmp_path / "run", ranks_with([facts_of("0", **impossible)] * 2))
    assert "Crowded" in report("summary", folder).out
    assert report("ranks", "--per-rank", folder, "--json").status == 0

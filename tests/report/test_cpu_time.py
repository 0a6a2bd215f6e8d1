"""Why named ranks are late, by the time on a core, waiting for one and blocked; and ranks that wait
for cores."""

from __future__ import annotations

import re

import parallel
import pytest
from cases import of
from commprof_report.late.judgement import compared
from commprof_report.run.crowding import Use, cores_of, crowding, sentence
from commprof_report.run.run import run_open
from planted import Cell, Rank, SECOND, write_databases
from planted_job import HostClock, Job

MS = 1_000_000
STEPS, STEP_NS = 100, 100 * MS
SEEN = tuple(
    "outside_ready outside_asleep outside_disk inside_ready inside_asleep inside_disk".split()
)
# Rank 0: 3 of 10 s outside MPI, on a core as inside, where it polls.
POLLS = (10 * SECOND, 0, (30, 0, 0, 70, 0, 0))
ASLEEP = (SECOND, 0, (10, 88, 0, 1, 0, 0))


def job_of(*used: tuple, late_ns: int = 70 * MS, transfer_ns: int = 100_000) -> Job:
    """Rank 1 is late to each of 100 collectives, 10 s in all. used: of each rank, time on a core,
    time waiting for one, and what the readings found."""
    job = Job([HostClock()] * 2, wall_ns=STEPS * STEP_NS)
    for step in range(STEPS):
        begin_ns = step * STEP_NS + 10 * MS
        job.collective("MPI_Allreduce", [begin_ns, begin_ns + late_ns], [transfer_ns] * 2)
    add_readings(job, *used)
    return job


def add_readings(job: Job, *used: tuple) -> None:
    for rank, (core_ns, waiting_ns, seen) in enumerate(used):
        for at_ns, share in ((0, 0), (STEPS * STEP_NS, 1)):
            row = {key: share * number for key, number in zip(SEEN, seen)}
            row |= {"world_rank": rank, "thread": 0, "at_ns": at_ns, "core_ns": share * core_ns}
            row["waiting_ns"] = None if waiting_ns is None else share * waiting_ns
            job.add("cpu_time", **row)


@pytest.fixture
def late_row(report, tmp_path):
    def ask(*used: tuple, **more) -> dict:
        folder = job_of(*used, **more).write(tmp_path / "run.db")
        (row,) = report("late", folder, "--by", "run", "--json").rows
        return row

    return ask


@pytest.mark.parametrize(("beside_s", "reason"), [(8, "threads"), (1, "asleep")])
def test_a_rank_whose_other_threads_compute_meanwhile_does_not_sleep(
    report, tmp_path, beside_s, reason
):
    """The twin sleeps while they do little."""
    job = job_of(POLLS, ASLEEP)
    for rank, cpu_ns in enumerate((10 * SECOND, (1 + beside_s) * SECOND)):
        for at, used_ns in (("begin", 0), ("last", cpu_ns)):
            job.add("fact", world_rank=rank, key=f"{at}.cpu_user_ns", value=str(used_ns))
            job.add("fact", world_rank=rank, key=f"{at}.cpu_system_ns", value="0")
    (row,) = report("late", job.write(tmp_path / "run.db"), "--by", "run", "--json").rows
    assert (row["late_ranks"], row["late_reason"]) == ("1", reason)


def test_a_balanced_twin_has_no_reason(late_row):
    row = late_row(POLLS, ASLEEP, late_ns=0)
    assert of(row, "late_ranks late_reason late_reason_ns") == (None, None, None)


@pytest.mark.parametrize(
    "used",
    [(), (POLLS,), (POLLS, (SECOND, None, ASLEEP[2]))],
    ids=["old database", "one rank", "no schedstat"],
)
def test_where_cpu_time_is_not_known_there_is_no_reason(late_row, used):
    row = late_row(*used)
    assert (row["late_ranks"], row["late_reason"]) == ("1", None)


def test_a_rank_that_may_wait_for_its_gpu_has_no_reason(tmp_path, report):
    job = job_of(POLLS, ASLEEP)
    counts = ("number", "kernels", "copies", "sets", "communication_ns", "communication_sm_ns")
    counts += ("communication_most_sms",)
    job.add("gpu_device", world_rank=1, device=0, uuid="1", name="H100", **dict.fromkeys(counts, 0))
    (row,) = report("late", job.write(tmp_path / "run.db"), "--by", "run", "--json").rows
    assert (row["late_ranks"], row["late_reason"]) == ("1", None)


# Who waits for a core


def advised(report, job: Job, tmp_path) -> dict:
    rows = report("advise", job.write(tmp_path / "run.db"), "--json").rows
    return {row["rule"]: row for row in rows if row["found"]}


@pytest.mark.parametrize(
    "waiting_s, outside, begins",
    [
        (3, (0, 40), "No rank is late beyond chance: ranks wait for"),
        (6, (40, 0), "Ranks 0-3 waited for a core 60.0 %"),
    ],
)
def test_waiting_for_a_core_inside_of_waiting_costs_nothing(
    report, tmp_path, waiting_s, outside, begins
):
    """Ranks sleep in turn, and those that poll meanwhile share cores. In the twin they are ready
    outside MPI, where a core might have saved the waiting."""
    job = Job([HostClock()] * 4, wall_ns=STEPS * STEP_NS)
    for step in range(STEPS):
        arrivals = [step * STEP_NS + MS + 50 * MS * (rank == step % 4) for rank in range(4)]
        job.collective("MPI_Allreduce", arrivals, [100_000] * 4)
    add_readings(job, *[(SECOND // 2, waiting_s * SECOND, (*outside, 0, 60, 0, 0))] * 4)
    path = job.write(tmp_path / "run.db")
    for command in ("late", "advise"):
        assert report(command, path).out.startswith(begins), command
    assert next(iter(advised(report, job, tmp_path))) == "cores"


def test_a_lost_core_is_no_reason_if_the_others_wait_for_one_as_long():
    """2.42 s ready without one, the others 2.31 s: it may have slept, which was not read."""
    own, others = (
        Use(*(each * SECOND for each in seconds), 0, 0, 0)
        for seconds in ((12, 7, 8.16, 3.84), (11, 8, 15.01, 3.99))
    )
    assert compared(own, others) is None


def polling(before_ns: int) -> Job:
    """Three ranks start an Iallreduce 60 ms before rank 1, and test it until all have. They have
    polled for it for before_ns, in polls of 1 us."""
    job = Job([HostClock()] * 4, wall_ns=STEPS * STEP_NS)
    poll = {"call": "MPI_Test", "communicator": 0, "bytes": 0, "region": 0, "measure": "poll"}
    for step in range(STEPS):
        begin_ns, end_ns = step * STEP_NS + MS, step * STEP_NS + 62 * MS
        starts = [begin_ns + (60 * MS if rank == 1 else 0) for rank in range(4)]
        job.collective("MPI_Iallreduce", starts, [end_ns - max(starts)] * 4)
        for rank in range(4):
            job.call("MPI_Test", end_ns - 1_000, end_ns, rank)
            job.made.append({**poll, "world_rank": rank, "duration_ns": 1_000})
            if rank != 1:
                since_ns = max(0, begin_ns + 2_000 - before_ns)
                job.rows["sample"][-1].update(polled_since_ns=since_ns, polled_ns=1_000)
    return job


def wait_share(report, path) -> float:
    """The three ranks wait for this share of the run; rank 1 is named where they do."""
    (row,) = report("late", path, "--by", "run", "--json").rows
    assert (row["late_ranks"] == "1") == (row["wait_ns"] > 0.1 * STEPS * STEP_NS)
    return row["wait_ns"] / (3 * STEPS * STEP_NS)


@pytest.mark.parametrize(
    "core_ns, wait_ns, before_ns, share",
    [
        (SECOND // 100, 0, 0, 0.6),
        (SECOND // 100, 5 * SECOND, 0, 0.6),
        (SECOND // 100, 0, 30 * MS, 0.6),  # it polled for this before it started the collective
        (8 * SECOND, 0, 0, 0.0),
        (2 * SECOND, 6 * SECOND, 0, 0.0),
    ],
    ids=["asleep", "lacking a core", "since a call before", "computing", "computing, lacking one"],
)
def test_a_rank_that_sleeps_between_its_polls_waits(
    report, tmp_path, core_ns, wait_ns, before_ns, share
):
    job = polling(before_ns)
    asleep = (core_ns, wait_ns, (100 * core_ns // SECOND // 10, 90, 0, 0, 0, 0))
    add_readings(job, *[asleep if share else (core_ns, wait_ns, (80, 0, 0, 0, 0, 0))] * 4)
    found = wait_share(report, job.write(tmp_path / "run.db"))
    assert found == pytest.approx(share, abs=0.02)


# Ranks that share cores: said where masks or a quota show it, and nowhere else.

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


READ = {"begin": (5, 5, 10, 100, 1_000), "last": (SECOND, 0, 20, 5_879, SECOND + 1_000)}


def test_a_quota_below_the_ranks_crowds_them(tmp_path):
    quota = {"cpu_quota_cores": "1.5", "cpu_quota_cgroup": "/job"}
    said = "2 ranks share 1.5 cores by cgroup quota on host x: part of the time in MPI here is "
    assert sentence(crowded(tmp_path, [facts_of("0-7", **quota)] * 2)) == f"{said}scheduling"


def test_without_masks_nobody_knows(tmp_path):
    assert crowded(tmp_path, [facts_of(None)] * 2) == []


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
    ranks = ranks_with([facts_of(mask, **READ) for mask in "01"])
    folder = write_databases(tmp_path / "run", ranks)
    for command in ("summary", "late", "steps"):
        assert "Crowded" not in report(command, folder).out
    (row,) = report("summary", folder, "--json").rows
    assert (row["crowding"], row["crowded_ranks"]) == (None, "")


def test_impossible_readings_do_no_harm(report, tmp_path):
    impossible = {"begin": ("x",) * 5, "last": ("9223372036854775807",) * 5}
    impossible |= {"cpu_quota_cores": "nan", "cpu_quota_cgroup": ""}
    folder = write_databases(tmp_path / "run", ranks_with([facts_of("0", **impossible)] * 2))
    assert "Crowded" in report("summary", folder).out
    assert report("ranks", "--per-rank", folder, "--json").status == 0

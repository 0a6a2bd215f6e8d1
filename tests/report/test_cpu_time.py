"""Why named ranks are late, by the time on a core, waiting for one and blocked."""

from __future__ import annotations

import pytest
from planted import SECOND
from planted_job import HostClock, Job

MS = 1_000_000
STEPS, STEP_NS = 100, 100 * MS
SEEN = (
    "outside_ready", "outside_asleep", "outside_disk", "inside_ready", "inside_asleep",
    "inside_disk",
)
# Rank 0: 3 of 10 s outside MPI, on a core as inside, where it polls.
POLLS = (10 * SECOND, 0, (30, 0, 0, 70, 0, 0))
ASLEEP = (SECOND, 0, (10, 88, 0, 1, 0, 0))
COMPUTES = (10 * SECOND, 0, (98, 0, 0, 1, 0, 0))
LOST_CORE = (35 * SECOND // 10, 65 * SECOND // 10, (98, 0, 0, 1, 0, 0))
DISK = (SECOND, 0, (10, 8, 80, 1, 0, 0))


def job_of(*used: tuple, late_ns: int = 70 * MS, transfer_ns: int = 100_000) -> Job:
    """Rank 1 is late to each of 100 collectives, 10 s in all. used: of each rank, time on a core,
    time waiting for one, and what the readings found."""
    job = Job([HostClock()] * 2, wall_ns=STEPS * STEP_NS)
    for step in range(STEPS):
        begin_ns = step * STEP_NS + 10 * MS
        job.collective("MPI_Allreduce", [begin_ns, begin_ns + late_ns], [transfer_ns] * 2)
    for rank, (core_ns, waiting_ns, seen) in enumerate(used):
        for at_ns, share in ((0, 0), (STEPS * STEP_NS, 1)):
            job.add(
                "cpu_time", world_rank=rank, thread=0, at_ns=at_ns, core_ns=share * core_ns,
                waiting_ns=None if waiting_ns is None else share * waiting_ns,
                **{key: share * number for key, number in zip(SEEN, seen)},
            )
    return job


@pytest.fixture
def late_row(report, tmp_path):
    def ask(*used: tuple, **more) -> dict:
        folder = job_of(*used, **more).write(tmp_path / "run.db")
        (row,) = report("late", folder, "--by", "run", "--json").rows
        return row

    return ask


@pytest.mark.parametrize(
    "used, reason, text",
    [
        (ASLEEP, "asleep", "it sleeps 9.00 s longer (9.00 s asleep outside MPI, the others 0 ns"),
        (COMPUTES, "computes", "it computes 7.00 s longer (9.99 s on a core outside MPI, the oth"),
        (LOST_CORE, "core", "it lost its core (6.49 s ready without one outside MPI, the others "),
        (DISK, "disk", "it waits 9.00 s longer for a disk (9.00 s waiting for it outside MPI, th"),
    ],
    ids=["asleep", "computes", "core", "disk"],
)
def test_a_named_rank_has_its_reason_wherever_it_is_named(
    report, late_row, tmp_path, used, reason, text
):
    row = late_row(POLLS, used)
    assert (row["late_ranks"], row["late_reason"]) == ("1", reason)
    (steps,) = report("steps", tmp_path / "run.db", "--json").rows
    assert (steps["slowest_ranks"], steps["slowest_reason"]) == ("1", reason)
    for command in ("late", "summary", "steps", "advise"):
        assert text in " ".join(report(command, tmp_path / "run.db").out.split()), command


def test_a_balanced_twin_has_no_reason(late_row):
    row = late_row(POLLS, ASLEEP, late_ns=0)
    assert (row["late_ranks"], row["late_reason"], row["late_reason_ns"]) == (None, None, None)


@pytest.mark.parametrize(
    "used",
    [
        (),
        (POLLS,),
        (POLLS, (SECOND, None, ASLEEP[2])),  # no schedstat
    ],
    ids=["old database", "one rank", "not counted"],
)
def test_where_cpu_time_is_not_known_there_is_no_reason(late_row, used):
    row = late_row(*used)
    assert (row["late_ranks"], row["late_reason"]) == ("1", None)


@pytest.mark.parametrize("readings, reason", [(3, None), (30, "asleep")], ids=str)
def test_a_few_readings_do_not_show_where_a_rank_sleeps(late_row, readings, reason):
    """Rank 1 is inside MPI for 5 s of 10, and blocked for 4 s: inside or outside."""
    sleeps = (6 * SECOND, 0, (0, readings, 0, 0, 0, 0))
    row = late_row(POLLS, sleeps, late_ns=30 * MS, transfer_ns=50 * MS)
    assert (row["late_ranks"], row["late_reason"]) == ("1", reason)


def test_a_rank_that_waits_for_cores_as_the_others_do_has_not_lost_its_own(late_row):
    crowded = (35 * SECOND // 10, 65 * SECOND // 10, POLLS[2])
    assert late_row(crowded, LOST_CORE)["late_reason"] == "ready"


def test_a_rank_that_may_wait_for_its_gpu_has_no_reason(tmp_path, report):
    job = job_of(POLLS, ASLEEP)
    counts = ("number", "kernels", "copies", "sets", "communication_ns", "communication_sm_ns")
    counts += ("communication_most_sms",)
    job.add("gpu_device", world_rank=1, device=0, uuid="1", name="H100", **dict.fromkeys(counts, 0))
    (row,) = report("late", job.write(tmp_path / "run.db"), "--by", "run", "--json").rows
    assert (row["late_ranks"], row["late_reason"]) == ("1", None)


def test_the_table_of_ranks_has_the_use_of_cores(report, tmp_path):
    job = job_of((6 * SECOND, 4 * SECOND, POLLS[2]))
    read, unread = report("ranks", "--per-rank", job.write(tmp_path / "run.db"), "--json").rows
    assert (read["core_share"], read["core_wait_share"]) == (0.6, 0.4)
    assert (read["outside_ready"], read["inside_ready"]) == (30, 70)
    assert (unread["core_ns"], unread["core_wait_share"]) == (None, None)
    assert "waits for one" in report("ranks", tmp_path / "run.db").out


def advised(report, job: Job, tmp_path) -> dict:
    rows = report("advise", job.write(tmp_path / "run.db"), "--json").rows
    return {row["rule"]: row for row in rows if row["found"]}


def test_a_rank_that_lost_its_core_needs_one(report, tmp_path):
    row = advised(report, job_of(POLLS, LOST_CORE), tmp_path)["imbalance"]
    assert row["suggestion"].startswith("give it a core of its own")

"""Why named ranks are late, by the time on a core, waiting for one and blocked; and ranks that wait
for cores."""

from __future__ import annotations

import pytest
from cases import of
from commprof_report.base.units import duration
from commprof_report.late.judgement import compared
from commprof_report.run.crowding import Use
from planted import SECOND, Cell, CpuTime, write_databases
from planted_job import HostClock, Job
from test_advise import KIB, run_of
from test_crowding import facts_of

MS = 1_000_000
STEPS, STEP_NS = 100, 100 * MS
SEEN = tuple(
    "outside_ready outside_asleep outside_disk inside_ready inside_asleep inside_disk".split()
)
# Rank 0: 3 of 10 s outside MPI, on a core as inside, where it polls.
POLLS = (10 * SECOND, 0, (30, 0, 0, 70, 0, 0))
ASLEEP = (SECOND, 0, (10, 88, 0, 1, 0, 0))
COMPUTES = (10 * SECOND, 0, (98, 0, 0, 1, 0, 0))
HALF_INSIDE = Cell("MPI_Allreduce", 8, [SECOND // 20] * 100)  # of 10 s
LOST_CORE = (35 * SECOND // 10, 65 * SECOND // 10, (98, 0, 0, 1, 0, 0))
DISK = (SECOND, 0, (10, 8, 80, 1, 0, 0))


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
            job.add(
                "cpu_time",
                world_rank=rank,
                thread=0,
                at_ns=at_ns,
                core_ns=share * core_ns,
                waiting_ns=None if waiting_ns is None else share * waiting_ns,
                **{key: share * number for key, number in zip(SEEN, seen)},
            )


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
        (ASLEEP, "asleep", "it sleeps 9.00 s longer"),
        (COMPUTES, "computes", "it computes 7.00 s longer"),
        (LOST_CORE, "core", "it lacks a core 6.49 s longer"),
        (DISK, "disk", "it waits 9.00 s longer for a disk"),
    ],
    ids=["asleep", "computes", "core", "disk"],
)
def test_a_named_rank_has_its_reason_wherever_it_is_named(
    report, late_row, tmp_path, used, reason, text
):
    row = late_row(POLLS, used)
    assert (row["late_ranks"], row["late_reason"]) == ("1", reason)
    for command in ("late", "summary", "steps", "advise"):
        said = " ".join(report(command, tmp_path / "run.db").out.split())
        assert f"Rank 1 is late: {text}. Without" in said, command


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


def job_by_call(late_ns: int) -> Job:
    """Rank 1 of three sleeps before each Allreduce, and rank 0 computes before each
    Barrier."""
    job = Job([HostClock()] * 3, wall_ns=STEPS * STEP_NS)
    for step in range(STEPS):
        for call, late, begin_ns in (("MPI_Allreduce", 1, 10 * MS), ("MPI_Barrier", 0, 60 * MS)):
            begin_ns += step * STEP_NS
            arrivals = [begin_ns + late_ns * (rank == late) for rank in range(3)]
            job.collective(call, arrivals, [100_000] * 3)
    add_readings(job, POLLS, (6 * SECOND, 0, (30, 40, 0, 30, 0, 0)), POLLS)
    return job


def test_ranks_that_are_late_in_single_calls_each_have_their_reason(report, tmp_path):
    folder = job_by_call(30 * MS).write(tmp_path / "run.db")
    reasons = [
        f"{kind} outside MPI, the others {others} on average)"
        for kind, others in (
            ("rank 1 causes 100.0 % of the waiting in MPI_Allreduce (4.00 s asleep", "0 ns"),
            ("rank 0 causes 100.0 % of the waiting in MPI_Barrier (6.98 s on a core", "3.98 s"),
        )
    ]
    said = f"Cause {'; '.join(reasons)}"
    for command in ("late", "summary"):
        out = " ".join(report(command, folder).out.split())
        assert said in out, command
    advised = {
        row["call"]: row
        for row in report("advise", folder, "--json").rows
        if row["rule"] == "imbalance"
    }
    assert reasons[0] in advised["MPI_Allreduce"]["evidence"]
    assert advised["MPI_Allreduce"]["suggestion"].startswith("look at what it does outside MPI")
    assert advised["MPI_Barrier"]["suggestion"] == "balance the work"


def test_a_balanced_twin_has_no_reason(late_row):
    row = late_row(POLLS, ASLEEP, late_ns=0)
    assert of(row, "late_ranks late_reason late_reason_ns") == (None, None, None)


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


def test_a_rank_that_may_wait_for_its_gpu_has_no_reason(tmp_path, report):
    job = job_of(POLLS, ASLEEP)
    counts = ("number", "kernels", "copies", "sets", "communication_ns", "communication_sm_ns")
    counts += ("communication_most_sms",)
    job.add("gpu_device", world_rank=1, device=0, uuid="1", name="H100", **dict.fromkeys(counts, 0))
    (row,) = report("late", job.write(tmp_path / "run.db"), "--by", "run", "--json").rows
    assert (row["late_ranks"], row["late_reason"]) == ("1", None)


# Who waits for a core


def waiting(share: float, *, outside: int = 50, read_ns: int = 10 * SECOND) -> list[CpuTime]:
    """A rank that is ready always."""
    core_ns, waiting_ns = round((1 - share) * read_ns), round(share * read_ns)
    seen = (outside, 0, 0, 100 - outside, 0, 0)
    return [CpuTime(0, 0, 0), CpuTime(read_ns, core_ns, waiting_ns, seen)]


def crowding_of(report, tmp_path, masks: str, *used: list[CpuTime], **facts: str) -> str | None:
    ranks = run_of(HALF_INSIDE, ranks=len(used))
    for rank, mask, own in zip(ranks, masks.split(), used):
        rank.facts = facts_of(mask, **facts)
        rank.cpu_times = own
    (row,) = report("summary", write_databases(tmp_path / "run", ranks), "--json").rows
    return row["crowding"]


def test_ranks_that_wait_for_cores_are_crowded_however_many_cores_they_have(report, tmp_path):
    said = crowding_of(report, tmp_path, "0-1 0-1", waiting(0.4), waiting(0.02))
    assert said is not None and said.startswith("rank 0 waited for a core 40.0 % of the time (")
    (row,) = report("summary", tmp_path / "run", "--json").rows
    assert row["crowded_ranks"] == "0"
    for command in ("summary", "late", "steps"):
        assert said in " ".join(report(command, tmp_path / "run").out.split())


@pytest.mark.parametrize(("inside", "is_said"), [(SECOND * 5, True), (SECOND // 100, False)])
def test_time_in_mpi_is_scheduling_only_if_ranks_wait_for_cores_there(
    report, tmp_path, inside, is_said
):
    ranks = run_of(Cell("MPI_Allreduce", KIB, [inside]), ranks=2)
    for rank in ranks:
        rank.facts = facts_of("0-1")
        rank.cpu_times = waiting(0.4, outside=50 if is_said else 100)
    out = report("late", write_databases(tmp_path / "run", ranks)).out
    assert "waited for a core 40.0 % of the time" in out
    assert ("part of the time in MPI here is scheduling" in out) == is_said


@pytest.mark.parametrize(
    "used",
    [[CpuTime(0, 0, None), CpuTime(10 * SECOND, SECOND, None)], waiting(0.0, read_ns=SECOND)],
    ids=["not counted", "a tenth of the time"],
)
def test_where_waiting_for_cores_is_not_known_masks_decide(report, tmp_path, used):
    said = crowding_of(report, tmp_path, "0 0", used, used)
    assert said is not None and said.startswith("2 ranks share 1 core on host x")


def test_a_quota_and_the_machine_beneath_are_said_to_take_cores(report, tmp_path):
    begin, last = (
        {
            f"{at}.since_start_ns": str(since),
            f"{at}.throttled_ns": str(lost),
            f"{at}.stolen_ns": str(lost),
        }
        for at, since, lost in (("begin", 0, 7), ("last", 10 * SECOND, 4 * SECOND + 7))
    )
    quota = {"cpu_quota_cores": "1", "cpu_quota_cgroup": "/job"}
    said = crowding_of(
        report, tmp_path, "0-1 0-1", waiting(0.4), waiting(0.4), **begin, **last, **quota
    )
    assert said is not None
    assert ", throttled by a cgroup quota 20.0 % of it" in said
    assert "20.0 % of the cores' time taken by the hypervisor" in said
    said = crowding_of(report, tmp_path, "0-1 0-1", waiting(0.4), waiting(0.4))
    assert said is not None and "throttled" not in said and "hypervisor" not in said


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


@pytest.mark.parametrize("own, others, named", [(60, 10, "1"), (60, 0, "1"), (10, 10, None)])
def test_a_rank_that_is_longer_in_its_own_files_waits_for_files(
    report, tmp_path, own, others, named
):
    job = Job([HostClock()] * 4, wall_ns=STEPS * STEP_NS)
    for step in range(STEPS):
        ends = [step * STEP_NS + (own if rank == 1 else others) * MS for rank in range(4)]
        for rank, end_ns in enumerate(ends):
            if end_ns > step * STEP_NS:
                job.call("MPI_File_sync", step * STEP_NS, end_ns, rank)
        job.collective("MPI_Allreduce", ends, [100_000] * 4)
    path = job.write(tmp_path / "run.db")
    (row,) = report("late", path, "--by", "run", "--json").rows
    assert (row["late_ranks"], row["late_reason"]) == (named, named and "files")
    longer_ns = STEPS * (own - others) * MS
    said = f"Rank 1 is late: it waits {duration(longer_ns)} longer for files. Without that the run "
    assert (said in report("late", path).out) == bool(named)
    if named:
        assert row["late_gain_ns"] == pytest.approx(longer_ns, rel=0.02)
    # files are no transfer of the network
    assert row["transfer_efficiency"] > 0.99


def polling(before_ns: int = 0, polled_ns: int = 1_000, poll_ns: int = 1_000) -> Job:
    """Three ranks start an Iallreduce 60 ms before rank 1, and test it until all have. They have
    polled for it for before_ns, in all for polled_ns, in polls of poll_ns each."""
    job = Job([HostClock()] * 4, wall_ns=STEPS * STEP_NS)
    poll = {"call": "MPI_Test", "communicator": 0, "bytes": 0, "region": 0, "measure": "poll"}
    for step in range(STEPS):
        begin_ns, end_ns = step * STEP_NS + MS, step * STEP_NS + 62 * MS
        starts = [begin_ns + (60 * MS if rank == 1 else 0) for rank in range(4)]
        job.collective("MPI_Iallreduce", starts, [end_ns - max(starts)] * 4)
        for rank in range(4):
            job.call("MPI_Test", end_ns - 1_000, end_ns, rank)
            job.made.append({**poll, "world_rank": rank, "duration_ns": poll_ns})
            if rank != 1:
                since_ns = max(0, begin_ns + 2_000 - before_ns)
                job.rows["sample"][-1].update(polled_since_ns=since_ns, polled_ns=polled_ns)
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


@pytest.mark.parametrize("poll_ns, share", [(500, 0.6), (5_000, 0.3)])
def test_a_rank_that_polls_all_the_time_waits(report, tmp_path, poll_ns, share):
    """For half of the time it is in polls. If these are long, it may compute between them."""
    path = polling(polled_ns=30 * MS, poll_ns=poll_ns).write(tmp_path / "run.db")
    assert wait_share(report, path) == pytest.approx(share, abs=0.02)

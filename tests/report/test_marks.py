"""Who is late, and what is exposed, where a thread that negotiates makes the MPI calls: by marks
and wait regions of the main thread."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from cases import of
from commprof_report.late.marks import HANDED
from negotiated import MS, STEP_NS, STEPS, WAIT, trained
from planted_job import Job
from read_once import read_once

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from truth import recordings

IN_REGION = f"it reaches region '{WAIT}' last in 39 of 39 visits. "
HANDS_OVER = "it hands its gradients over last in 39 of 39 steps. "


@pytest.fixture
def asked(report, tmp_path):
    """asked(job, command, words ...): its answer."""
    path, jobs = tmp_path / "run.db", []

    def ask(job: Job, *words: object):
        command, *more = words
        if job not in jobs[-1:]:
            jobs.append(job)
            job.write(path)
        return report(command, path, *more)

    with read_once():
        yield ask


def text_of(asked, job: Job, command: str) -> str:
    return asked(job, command).prose


@pytest.mark.parametrize(
    "how, mark, said",
    [
        ({"marks": True}, "commprof_step", "it reaches the mark last in 39 of 39 steps. "),
        ({"region": WAIT}, WAIT, IN_REGION),
        ({"region": WAIT, "marks": True}, WAIT, IN_REGION),
        ({"handed_over": True}, HANDED, HANDS_OVER),
        ({"handed_over": True, "region": WAIT, "marks": True}, HANDED, HANDS_OVER),
    ],
    ids=["marks", "region", "both", "handed over", "all"],
)
def test_who_comes_last_to_a_mark_or_a_wait_region_is_the_verdict_of_all_commands(
    asked, how, mark, said
):
    job = trained(30 * MS, **how)
    (row,) = asked(job, "late", "--json", "--by", "run").rows
    assert of(row, "verdict late_ranks late_mark late_share") == ("marks", "1", mark, 1.0)
    assert (row["late_mark_times"], row["late_mark_steps"]) == (39, 39)
    lead_ns = row["late_mark_lead_ns"]
    assert lead_ns == pytest.approx(30 * MS, abs=MS)
    assert row["late_gain_ns"] == pytest.approx(39 * 30 * MS, rel=0.03)
    (steps,) = asked(job, "steps", "--json").rows
    assert of(steps, "slowest_ranks slowest_steps slowest_lead_ns") == ("1", 39, lead_ns)
    for command in ("late", "summary", "steps"):
        found = text_of(asked, job, command)
        assert said in found and "not known" not in found and "To know it" not in found
    rows = asked(job, "advise", "--json").rows
    (advice,) = [row for row in rows if row["title"] == "rank 1 is waited for"]
    assert said[3:-2] in advice["evidence"] and advice["saving_ns"] == row["late_gain_ns"]


@pytest.mark.parametrize(
    "how",
    [{"marks": True}, {"region": WAIT}, {"handed_over": True}],
    ids=["marks", "region", "handed over"],
)
def test_of_ranks_that_come_together_nobody_is_named(asked, how):
    job = trained(0, **how)
    (row,) = asked(job, "late", "--json", "--by", "run").rows
    assert of(row, "verdict late_ranks late_mark_times late_gain_ns") == ("marks", None, None, None)
    for command in ("late", "summary", "steps"):
        found = text_of(asked, job, command)
        why = "2.0 % of a step after the others|last in 1 of 39 steps"
        assert "No rank " in found and re.search(why, found)


@pytest.mark.parametrize(
    "how, why",
    [
        ({}, "(HOROVOD_CACHE_CAPACITY not 0), or a region 'wait ...' around"),
        ({"region": "gradients"}, "(HOROVOD_CACHE_CAPACITY not 0), or a region 'wait ...' around"),
        ({"marks": True, "steps": 8}, "7 steps are too few to tell from chance who is last"),
    ],
    ids=["no mark", "another region", "few steps"],
)
def test_without_a_mark_it_is_unknown_and_said_what_would_show_it(asked, how, why):
    job = trained(30 * MS, **how)
    (row,) = asked(job, "late", "--json", "--by", "run").rows
    assert of(row, "verdict late_ranks late_mark") == ("unknown", None, None)
    assert why in text_of(asked, job, "late")


def test_what_is_agreed_on_is_the_step_and_exposed_until_its_sums_are_done(asked):
    """A metric that is summed alone is no step; 7 ms on rank 1, 30 more on rank 0, and half of the
    time since the round before."""
    job = trained(30 * MS, handed_over=True)
    (row,) = asked(job, "steps", "--json").rows
    assert of(row, "delimited_by steps period certainty") == (HANDED, 40, "30 tensors", "known")
    assert row["wait_region"] == HANDED
    assert row["wait_region_ns"] == pytest.approx((7 + 37 + 1) / 2 * MS, abs=MS / 2)
    text = text_of(asked, job, "steps")
    assert "between none and all" not in text
    assert "from then to the end of the sums, exposed communication (at least " in text


@pytest.mark.parametrize(
    ("run", "late", "steps", "logged_ms"),
    [
        ("Horovod-slow-rank", "1", 21, 84.2),
        ("Horovod-healthy", None, 21, 71.5),
        ("Horovod-slow-rank-without-cache", None, 22, None),  # its names are not read
    ],
)
def test_of_horovod_itself_it_says_what_the_programs_logged(
    report, tmp_path, run, late, steps, logged_ms
):
    """0.28.1, 14 tensors, unmarked; logged: how long main threads waited in a step, on average."""
    path = f"{run}/run.db"
    recordings.unpack(tmp_path, [path])
    row, found = (
        report(*words, "--json", tmp_path / path).rows[0]
        for words in (("late", "--by", "run"), ("steps",))
    )
    assert (row["late_ranks"], found["total_steps"] or found["steps"]) == (late, steps)
    assert found["wait_region_ns"] == (logged_ms and pytest.approx(0.87 * logged_ms * MS, rel=0.03))


def with_readings(job: Job, *core_ns: int) -> Job:
    """How long each main thread was on a core; it never waited for one."""
    for rank, own_ns in enumerate(core_ns):
        for at_ns, own in ((0, 0), (STEPS * STEP_NS, own_ns)):
            zero = "thread waiting_ns outside_disk inside_ready inside_asleep inside_disk".split()
            seen = dict.fromkeys(("outside_ready", "outside_asleep"), own // MS)
            what = {"world_rank": rank, "at_ns": at_ns, "core_ns": own}
            job.add("cpu_time", **what, **seen, **dict.fromkeys(zero, 0))
    return job


@pytest.mark.parametrize("how", [{"marks": True}, {"region": WAIT}], ids=["marks", "region"])
@pytest.mark.parametrize(
    "core_ms, reason, said",
    [
        ((40, 70), "computes", "it computes 1.23 s longer. "),
        ((2, 2), "asleep", "it sleeps 1.17 s longer. "),
        ((40, 40), None, ""),  # rank 0 may be on a core, or blocked, while it waits
    ],
)
def test_a_rank_that_comes_last_to_marks_has_its_reason(asked, how, core_ms, reason, said):
    job = with_readings(trained(30 * MS, **how), *(own * MS * STEPS for own in core_ms))
    (row,) = asked(job, "late", "--json", "--by", "run").rows
    assert (row["late_ranks"], row["late_reason"]) == ("1", reason)
    for command in ("late", "summary", "steps", "advise"):
        assert said in text_of(asked, job, command), command

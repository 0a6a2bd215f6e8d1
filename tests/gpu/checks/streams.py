"""Questions that may be asked about a stream, and when: each in a process of its own, since the
answer may be a crash."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from jobs import Job, Jobs
from table import Row, failed, row, same, skip

QUESTIONS = ("cuStreamGetId", "cuStreamGetCtx", "cuStreamIsCapturing", "cuptiGetStreamIdEx")


def ended(job: Job) -> str:
    """'': as it should."""
    if job.status < 0:
        return f"ended by {signal.Signals(-job.status).name}{job.last_words}"
    return job.problem


def destroyed(jobs: Jobs) -> Iterator[Row]:
    """Any answer will do: the profiler does not ask then. It says how much depends on that."""
    for question in QUESTIONS:
        job = jobs.run(
            "streams",
            "destroyed",
            question,
            profiled=False,
            limit_s=15,
            GPU_TEST_CUPTI=jobs.libcupti,
        )
        yield row(
            f"{question} of a destroyed stream",
            "any",
            ended(job) or f"answers {job.truth['answer']}",
            True,
        )
    job = jobs.run("streams", "handles", profiled=False, limit_s=15)
    job.must("handles of destroyed streams")
    yield row(
        "handles that 100 streams, one after the other, share",
        "any",
        job.truth["handles_used_again"],
        True,
    )
    yield same("ids of these streams", 100, job.truth["ids"])


def capture(jobs: Jobs) -> Iterator[Row]:
    for question in QUESTIONS:
        job = jobs.run(
            "streams", "capture", question, profiled=False, limit_s=15, GPU_TEST_CUPTI=jobs.libcupti
        )
        if job.problem:
            yield failed(f"{question} during a capture", ended(job))
            continue
        bad = {about: answer for about, answer in job.truth["answers"].items() if any(answer)}
        expected = "the answer 0, and a capture that goes on, in each mode and about each stream"
        yield row(f"{question} during a capture", expected, bad or "so", not bad)


def capturing(jobs: Jobs) -> Iterator[Row]:
    """Threads of ours and CUPTI's call the driver then; what it forbids ends the capture."""
    for mode in ("global", "thread-local"):
        alone = jobs.run("streams", "capturing", mode, profiled=False, limit_s=15)
        check = f"a capture in {mode} mode"
        if alone.problem or any(alone.truth["captures"].values()):
            seen = alone.problem or alone.truth["captures"]
            yield skip(check, f"it does not work here without us: {seen}")
            continue
        job = jobs.run("streams", "capturing", mode, limit_s=30)
        for during, error in job.truth.get("captures", {}).items():
            yield same(f"{check} while {during}: the driver's error", 0, error)
        if ended(job):
            yield failed(check, ended(job))
            continue
        planted = job.truth["launched"]
        seen = job.counts().get("planted_beside", 0)
        yield same(f"kernels beside {check}", planted, seen)

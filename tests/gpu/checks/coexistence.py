"""Other clients of CUPTI: PyTorch's profiler, NVIDIA's tools."""

from __future__ import annotations

from collections.abc import Iterator

from jobs import Jobs
from machine import tool
from table import Row, failed, row, same, skip


def kineto(jobs: Jobs) -> Iterator[Row]:
    alone = jobs.run("kineto", "alone", profiled=False, needs_torch=True, limit_s=40)
    if alone.problem or not all(alone.truth["kineto"]):
        yield skip(
            "PyTorch's profiler",
            alone.problem
            or f"it does not see its kernels without us either: {alone.truth['kineto']}",
        )
        return
    job = jobs.run("kineto", needs_torch=True)
    job.must("PyTorch's profiler")
    kernels = job.truth["kernels"]
    without, beside = alone.truth["kineto"], job.truth["kineto"]
    as_many = all(ours >= theirs for ours, theirs in zip(beside, without))
    yield row(
        f"kernels of {kernels} that PyTorch's profiler sees in each session",
        f"{without}, as without us",
        beside,
        as_many,
    )
    seen = job.counts()
    for name in ("planted_before", "planted_between", "planted_after"):
        yield same(
            f"kernels we see {name.removeprefix('planted_')} its sessions",
            kernels,
            seen.get(name, 0),
        )
    sql = "SELECT gpu_dropped_records, gpu_implausible_records FROM rank"
    yield same("records dropped, implausible", (0, 0), job.query(sql)[0])
    ended = [how for (how,) in job.query("SELECT ended FROM gpu_tracing ORDER BY begin_ns")]
    yield row(
        "the gap is marked",
        "yielded, yielded, stopped",
        ", ".join(ended),
        ended == ["yielded", "yielded", "stopped"],
    )
    yield same("complaints", [], job.complaints)


# Tool -> its words before the program, and what it prints or leaves where it works
TOOLS = {
    "nsys": (
        ("profile", "--trace=cuda", "--output=report", "--stats=true"),
        "planted_beside_a_tool",
    ),
    "ncu": (("--clock-control", "none"), "planted_beside_a_tool"),  # it locks them else
    "compute-sanitizer": ((), "ERROR SUMMARY: 0 errors"),
}


def tools(jobs: Jobs) -> Iterator[Row]:
    for name, (words, mark) in TOOLS.items():
        path = tool(name)
        if not path:
            yield skip(name, "not here")
            continue
        alone = jobs.run("yields", under=(path, *words), profiled=False)
        if alone.hung or mark not in alone.stdout + alone.stderr:
            yield skip(
                name, f"it does not work here without us: {alone.problem or 'no kernels seen'}"
            )
            continue
        job = jobs.run("yields", under=(path, *words))
        if job.hung or job.status:
            yield failed(name, job.problem)
            continue
        yield same(f"{name} works beside us", True, mark in job.stdout + job.stderr)
        state, reason = job.query(
            "SELECT gpu_state, (SELECT value FROM fact WHERE key = 'gpu.reason') FROM rank"
        )[0]
        yield row(
            f"we give way to {name}",
            "refused, with a reason",
            f"{state}: {reason}",
            state == "refused" and bool(reason),
        )

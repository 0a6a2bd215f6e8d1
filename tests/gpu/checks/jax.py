"""JAX, which looks up CUPTI and NCCL by name: its kernels, and its own profiler during a window of
ours."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from jobs import Jobs
from machine import asked
from table import Row, failed, row, same, skip

STEPS = 200
A_FEW = 5  # steps that compile and warm up may be traced as well


def jax(jobs: Jobs) -> Iterator[Row]:
    status, said = asked([sys.executable, "-c", "import jax; jax.devices('gpu')"], 40)
    if status:
        yield skip(
            "JAX",
            "no JAX"
            if "ModuleNotFoundError" in said
            else f"JAX sees no GPU: {said.splitlines()[-1] if said else status}",
        )
        return
    job = jobs.run("jax_steps", str(STEPS), needs_torch=True, limit_s=40)
    if job.problem:
        yield failed("kernels of JAX", job.problem)
    else:
        counts = job.counts()
        whole = [
            name
            for name, count in counts.items()
            if count >= STEPS and count % STEPS <= A_FEW * (count // STEPS)
        ]
        yield row(
            f"kernels of {STEPS} steps of JAX",
            "a multiple of the steps, and a few more",
            counts,
            bool(whole),
        )
    yield from beside_its_profiler(jobs)


def beside_its_profiler(jobs: Jobs) -> Iterator[Row]:
    alone = jobs.run("jax_steps", str(STEPS), "trace", profiled=False, needs_torch=True, limit_s=40)
    if alone.problem or not alone.truth["jax_sees"]:
        yield skip(
            "JAX's profiler",
            f"it does not work here without us: {alone.problem or 'it sees no kernels'}",
        )
        return
    job = jobs.run("jax_steps", str(STEPS), "trace", needs_torch=True, limit_s=40)
    job.must("JAX's profiler")
    yield same(
        "kernels that JAX's profiler sees, as without us",
        alone.truth["jax_sees"],
        job.truth["jax_sees"],
    )
    ended = [how for (how,) in job.query("SELECT ended FROM gpu_tracing ORDER BY begin_ns")]
    yield row(
        "the gap is marked",
        "lost or yielded, then another window",
        ", ".join(ended),
        len(ended) > 1 and ended[0] in ("lost", "yielded"),
    )
    yield row("we go on after it", "a word", job.truth["goes_on"], True)
    yield same("complaints", [], job.complaints)

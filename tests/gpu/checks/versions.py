"""A CUPTI of a newer minor version than the driver's CUDA."""

from __future__ import annotations

from collections.abc import Iterator

from jobs import Jobs
from table import Row, row, same, skip


def minor(jobs: Jobs) -> Iterator[Row]:
    """By itself first: whether it works here at all is NVIDIA's to say."""
    if not jobs.carried_cupti:
        yield skip("a carried CUPTI", "no wheel of nvidia-cuda-cupti came with --wheels")
        return
    program, problem = jobs.compiled("launches")
    alone = jobs.run(program, "cupti", jobs.carried_cupti, profiled=False, limit_s=25)
    if problem or "kernels" not in alone.truth:
        yield row(
            "the carried CUPTI by itself", "records", f"none: {problem or alone.problem}", False
        )
    else:
        truth = alone.truth
        told = (
            f"version {truth['version']}, {truth['bytes']} bytes of records of "
            f"{truth['kernels']} kernels"
        )
        yield row(
            "the carried CUPTI by itself",
            "records of all kernels",
            told,
            truth["bytes"] >= 100 * truth["kernels"],
        )
        yield row(
            "detaching it (cuptiFinalize)", "no crash", alone.problem or "done", not alone.problem
        )
    job = jobs.run(
        "planted",
        "kernels",
        COMMPROF_CUPTI=jobs.carried_cupti,
        COMMPROF_CUPTI_ANY_MINOR="on",
        limit_s=30,
    )
    job.must("kernels with the carried CUPTI")
    seen = job.counts()
    planted = {name: count for name, (count, _) in job.truth["kernels"].items()}
    yield same(
        "kernels with the carried CUPTI", planted, {name: seen.get(name, 0) for name in planted}
    )

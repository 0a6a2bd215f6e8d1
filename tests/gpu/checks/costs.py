"""Cost of single calls: programs/costs.c, without the profiler, with it but no GPU side, and
tracing."""

from __future__ import annotations

from collections.abc import Iterator

from jobs import Jobs
from table import Row, failed, row

WAYS = {"without": {}, "loaded": {"COMMPROF_GPU": "off"}, "tracing": {}}


def costs(jobs: Jobs) -> Iterator[Row]:
    program = jobs.built("costs", "costs")
    seen: dict[str, dict[str, float]] = {}
    for way, settings in WAYS.items():
        job = jobs.run(program, profiled=way != "without", **settings)
        if job.problem:
            yield failed(f"costs, {way}", job.problem)
            continue
        for what, ns in job.truth.items():
            seen.setdefault(what, {})[way] = ns
    for what, ways in seen.items():
        yield row(
            f"{what}, ns",
            "a number",
            ", ".join(f"{ns:.0f} {way}" for way, ns in ways.items()),
            True,
        )

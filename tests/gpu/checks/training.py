"""PyTorch programs: the same kernels as its own profiler sees, and what a step costs more."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from jobs import Jobs
from table import Row, failed, row, same

STEPS = 20
REPETITIONS = 3
AIM_PERCENT = {"loaded, COMMPROF_GPU=off": 1.0, "tracing always": 1.0, "tracing in windows": 1.0}


def against_pytorch(jobs: Jobs) -> Iterator[Row]:
    theirs = jobs.run("training", "steps", str(STEPS), "kineto", profiled=False, needs_torch=True)
    ours = jobs.run("training", "steps", str(STEPS), needs_torch=True)
    if theirs.problem or ours.problem:
        yield failed("kernels of training", theirs.problem or ours.problem)
        return
    kernels = ours.kernels()
    total_ns = sum(numbers[1] for numbers in kernels.values())
    count = sum(numbers[0] for numbers in kernels.values())
    # Ours may have seen the kernel that makes the context as well.
    yield row("kernels of training, against PyTorch's profiler", theirs.truth["kernels"], count, 0 <= count - theirs.truth["kernels"] <= 1)
    is_near = abs(total_ns - theirs.truth["ns"]) <= theirs.truth["ns"] / 5  # two runs: a GPU's clock may rise later in one of them
    yield row("their time, against PyTorch's profiler", f"{theirs.truth['ns']} ns to 20 %", f"{total_ns} ns", is_near)
    sql = "SELECT gpu_dropped_records, gpu_implausible_records, gpu_unattributed_records FROM rank"
    yield same("records dropped, implausible, unattributed", (0, 0, 0), ours.query(sql)[0])


def overhead(jobs: Jobs) -> Iterator[Row]:
    """One after the other in turns, so that what changes over minutes changes for all."""
    ways = {
        "without": (False, ("3",), {}),
        "loaded, COMMPROF_GPU=off": (True, ("3",), {"COMMPROF_GPU": "off"}),
        "tracing always": (True, ("3",), {"COMMPROF_GPU_COLLECT_MS": "1000"}),
    }
    windows = {"COMMPROF_GPU_COLLECT_MS": "1000", "COMMPROF_GPU_EVERY_S": "3", "COMMPROF_GPU_ON_S": "1"}
    step_ms: dict[str, dict[str, list[float]]] = {}
    repetitions = max(1, round(REPETITIONS * jobs.scale))
    for turn in range(repetitions):
        for way, (profiled, words, settings) in ways.items():
            yield from timed(jobs, step_ms, way, profiled, words, settings)
    yield from timed(jobs, step_ms, "tracing in windows", True, ("7", "late", "3"), windows)
    for model, times in step_ms.items():
        without = times.get("without") or [float("nan")]
        apart = 100 * (max(without) / min(without) - 1)
        yield row(f"a step of {model} without", "a number", shown(times.get("without", [])), bool(times.get("without")))
        for way, aim in AIM_PERCENT.items():
            more = 100 * (statistics.median(times.get(way) or [float("nan")]) / statistics.median(without) - 1)
            expected = f"at most {aim:.0f} % more, and the {apart:.2f} % that runs without are apart"
            yield row(f"a step of {model}, {way}", expected, f"{more:+.2f} %; {shown(times.get(way, []))}", more <= aim + apart)


STEP_KERNELS = 5_000
TURNS = 3


def step(jobs: Jobs) -> Iterator[Row]:
    """Without the profiler and with it in turns; in a process under the profiler, groups of steps traced and between windows in turns."""
    seen: dict[str, list[float]] = {}
    ratios: list[float] = []
    for _ in range(TURNS):
        for profiled in (False, True):
            settings = {"COMMPROF_GPU_COLLECT_MS": "1000"} if profiled else {}
            job = jobs.run("training", "turns", "6", profiled=profiled, needs_torch=True, limit_s=40, **settings)
            if job.problem:
                yield failed(f"a step of {STEP_KERNELS} kernels", job.problem)
                return
            for kind, ms in job.truth["turns_ms"].items():
                seen.setdefault(kind, []).append(statistics.median(ms))
            ratios += [100 * (on / off - 1) for on, off in zip(job.truth["turns_ms"].get("traced", []), job.truth["turns_ms"].get("off", []))]
    yield kernels_of_a_step(job)
    apart = 100 * (max(seen["without"]) / min(seen["without"]) - 1)
    yield row("a step without the profiler", "a number", shown(seen["without"]), True)
    for kind, what in (("off", "between windows"), ("traced", "traced")):
        more = 100 * (statistics.median(seen[kind]) / statistics.median(seen["without"]) - 1)
        expected = f"at most 1 % more, and the {apart:.2f} % that processes without are apart"
        yield row(f"a step {what}", expected, f"{more:+.2f} %; {shown(seen[kind])}", more <= 1 + apart)
    quarters = statistics.quantiles(ratios, n=4)
    told = f"{quarters[1]:+.2f} % ({quarters[0]:+.2f} to {quarters[2]:+.2f} in the middle half of {len(ratios)} pairs)"
    yield row("a step traced against the next one between windows", "at most 1 % more", told, quarters[1] <= 1)


def kernels_of_a_step(job) -> Row:
    steps, kernels = job.truth["traced_steps"], sum(job.counts().values())
    told = f"{kernels / steps:.0f} in each of {steps}"
    return row("kernels of a step", f"about {STEP_KERNELS}", told, 0.6 <= kernels / steps / STEP_KERNELS <= 1.6)


def timed(jobs: Jobs, step_ms: dict, way: str, profiled: bool, words: tuple, settings: dict) -> Iterator[Row]:
    job = jobs.run("training", "time", *words, profiled=profiled, needs_torch=True, **settings)
    if job.problem:
        yield failed(f"a step, {way}", job.problem)
        return
    for model, milliseconds in job.truth["step_ms"].items():
        step_ms.setdefault(model, {}).setdefault(way, []).append(milliseconds)


def shown(times: list[float]) -> str:
    """The median, and from where to where."""
    return f"{statistics.median(times):.3f} ms ({min(times):.3f} to {max(times):.3f}, {len(times)})" if times else "none"

"""PyTorch programs: the same kernels as its own profiler sees, and what a step costs more."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator

from jobs import CutOff, Jobs
from table import Row, row, same, skip

STEPS = 20
REPETITIONS = 3
AIM_PERCENT = {"loaded, COMMPROF_GPU=off": 1.0, "tracing always": 1.0, "tracing in windows": 1.0}


def against_pytorch(jobs: Jobs) -> Iterator[Row]:
    theirs = jobs.run("training", "steps", str(STEPS), "kineto", profiled=False, needs_torch=True)
    ours = jobs.run("training", "steps", str(STEPS), needs_torch=True)
    theirs.must("kernels of training")
    ours.must("kernels of training")
    kernels = ours.kernels()
    total_ns = sum(numbers[1] for numbers in kernels.values())
    count = sum(numbers[0] for numbers in kernels.values())
    # Ours may have seen the kernel that makes the context as well.
    yield row(
        "kernels of training, against PyTorch's profiler",
        theirs.truth["kernels"],
        count,
        0 <= count - theirs.truth["kernels"] <= 1,
    )
    # two runs: a GPU's clock may rise later in one of them
    is_near = abs(total_ns - theirs.truth["ns"]) <= theirs.truth["ns"] / 5
    yield row(
        "their time, against PyTorch's profiler",
        f"{theirs.truth['ns']} ns to 20 %",
        f"{total_ns} ns",
        is_near,
    )
    sql = "SELECT gpu_dropped_records, gpu_implausible_records, gpu_unattributed_records FROM rank"
    yield same("records dropped, implausible, unattributed", (0, 0, 0), ours.query(sql)[0])


ALWAYS_ON = {"COMMPROF_GPU_COLLECT_MS": "1000"}
IN_WINDOWS = {**ALWAYS_ON, "COMMPROF_GPU_EVERY_S": "3", "COMMPROF_GPU_ON_S": "1"}
# Way -> whether under the profiler, what training.py is asked, and settings
WAYS = {
    "without": (False, ("3",), {}),
    "loaded, COMMPROF_GPU=off": (True, ("3",), {"COMMPROF_GPU": "off"}),
    "tracing always": (True, ("3",), ALWAYS_ON),
    "tracing in windows": (True, ("7", "late", "3"), IN_WINDOWS),
}


def overhead(jobs: Jobs) -> Iterator[Row]:
    """In turns, so that what changes over minutes changes for all; the last way
    once, at the end."""
    step_ms: dict[str, dict[str, list[float]]] = {}
    repetitions = max(1, round(REPETITIONS * jobs.scale))
    *in_turns, last = WAYS
    turns = [(turn, way) for turn in range(repetitions) for way in in_turns]
    with contextlib.suppress(CutOff):
        for turn, way in [*turns, (0, last)]:
            yield from timed(jobs, step_ms, turn, way)
    for model, times in step_ms.items():
        yield from against_without(model, times)


def against_without(model: str, times: dict[str, list[float]]) -> Iterator[Row]:
    """Times of a step against those without the profiler, over as many turns as there were."""
    without = times.get("without")
    if not without:
        yield skip(f"a step of {model} without", "not timed")
        return
    apart = 100 * (max(without) / min(without) - 1)
    yield row(f"a step of {model} without", "a number", shown(without), True)
    for way, aim in AIM_PERCENT.items():
        if way not in times:
            yield skip(f"a step of {model}, {way}", "not timed")
            continue
        more = 100 * (statistics.median(times[way]) / statistics.median(without) - 1)
        expected = f"at most {aim:.0f} % more, and the {apart:.2f} % that runs without are apart"
        seen = f"{more:+.2f} %; {shown(times[way])}"
        yield row(f"a step of {model}, {way}", expected, seen, more <= aim + apart)


STEP_KERNELS = 5_000
STEP_KINDS = {"without": "without the profiler", "off": "between windows", "traced": "traced"}
TURNS = 3


def step(jobs: Jobs) -> Iterator[Row]:
    """Without the profiler and with it in turns; in a process under the profiler, groups of steps
    traced and between windows in turns."""
    seen: dict[str, list[float]] = {}
    ratios: list[float] = []
    with contextlib.suppress(CutOff):
        for turn in range(TURNS):
            for profiled in (False, True):
                settings = ALWAYS_ON if profiled else {}
                how = {"profiled": profiled, "needs_torch": True, "limit_s": 40}
                job = jobs.run("training", "turns", "6", **how, **settings)
                job.must(f"a step of {STEP_KERNELS} kernels")
                turns_ms = job.truth["turns_ms"]
                for kind, ms in turns_ms.items():
                    seen.setdefault(kind, []).append(statistics.median(ms))
                    yield row(
                        f"turn {turn + 1}: a step {STEP_KINDS[kind]}", "a number", shown(ms), True
                    )
                pairs = zip(turns_ms.get("traced", []), turns_ms.get("off", []))
                ratios += [100 * (on / off - 1) for on, off in pairs]
                if profiled and turn == 0:
                    yield kernels_of_a_step(job)
    if len(ratios) > 1:
        yield from step_costs(seen, ratios)


def step_costs(seen: dict[str, list[float]], ratios: list[float]) -> Iterator[Row]:
    """Cost of a step, over as many turns as there were."""
    apart = 100 * (max(seen["without"]) / min(seen["without"]) - 1)
    yield row("a step without the profiler", "a number", shown(seen["without"]), True)
    for kind in ("off", "traced"):
        more = 100 * (statistics.median(seen[kind]) / statistics.median(seen["without"]) - 1)
        expected = f"at most 1 % more, and the {apart:.2f} % that processes without are apart"
        told = f"{more:+.2f} %; {shown(seen[kind])}"
        yield row(f"a step {STEP_KINDS[kind]}", expected, told, more <= 1 + apart)
    quarters = statistics.quantiles(ratios, n=4)
    told = (
        f"{quarters[1]:+.2f} % ({quarters[0]:+.2f} to {quarters[2]:+.2f} in the middle half of "
        f"{len(ratios)} pairs)"
    )
    yield row(
        "a step traced against the next one between windows",
        "at most 1 % more",
        told,
        quarters[1] <= 1,
    )


def kernels_of_a_step(job) -> Row:
    steps, kernels = job.truth["traced_steps"], sum(job.counts().values())
    told = f"{kernels / steps:.0f} in each of {steps}"
    return row(
        "kernels of a step",
        f"about {STEP_KERNELS}",
        told,
        0.6 <= kernels / steps / STEP_KERNELS <= 1.6,
    )


def timed(jobs: Jobs, step_ms: dict, turn: int, way: str) -> Iterator[Row]:
    profiled, words, settings = WAYS[way]
    job = jobs.run("training", "time", *words, profiled=profiled, needs_torch=True, **settings)
    job.must(f"turn {turn + 1}: a step, {way}")
    for model, milliseconds in job.truth["step_ms"].items():
        step_ms.setdefault(model, {}).setdefault(way, []).append(milliseconds)
        told = f"{milliseconds:.3f} ms"
        yield row(f"turn {turn + 1}: a step of {model}, {way}", "a number", told, True)


def shown(times: list[float]) -> str:
    """The median, and from where to where."""
    return (
        f"{statistics.median(times):.3f} ms ({min(times):.3f} to {max(times):.3f}, {len(times)})"
        if times
        else "none"
    )

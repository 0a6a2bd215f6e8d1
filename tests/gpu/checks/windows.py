"""Cost of tracing and of CUPTI's presence: time of launches, how long launches are held up, and the
memory it takes on the device."""

from __future__ import annotations

import contextlib
import signal
import statistics
from collections.abc import Iterator

from jobs import CutOff, Job, Jobs
from table import Row, failed, row, same, skip

TURNS = 3
AIM_PERCENT = 1.0  # above what processes without the profiler are apart
LONGEST_STALL_MS = 50.0
MOST_MEMORY_MIB = 64.0
MANY = 25_000_000  # parcagpu#23: then CUPTI 13.0 had no time stamps any more
MANY_S = 60


def numbers(job: Job, word: str) -> dict[str, list[float]]:
    """Numbers of lines "WORD kind number" (programs/launches.c)."""
    found: dict[str, list[float]] = {}
    for line in job.stdout.splitlines():
        if line.startswith(f"{word} "):
            _, kind, number = line.split()
            found.setdefault(kind, []).append(float(number))
    return found


# Process -> what it does (programs/launches.c), whether under the profiler, and settings
PROCESSES = {
    "no profiler": ("rates", False, {}),
    "loaded, COMMPROF_GPU=off": ("rates", True, {"COMMPROF_GPU": "off"}),
    "profiler": ("rates", True, {"COMMPROF_GPU_COLLECT_MS": "1000"}),
    "CUPTI alone": ("cupti", False, {}),
}


def attached(jobs: Jobs) -> Iterator[Row]:
    """Processes in turns, so that what changes over minutes changes for all."""
    program = jobs.built("cost of a launch", "launches")
    seen: dict[str, list[float]] = {}
    with contextlib.suppress(CutOff):
        for turn in range(TURNS):
            for process, (what, profiled, settings) in PROCESSES.items():
                job = jobs.run(
                    program, what, jobs.libcupti, profiled=profiled, limit_s=25, **settings
                )
                for kind, block_ns in numbers(job, "block").items():
                    name = process if kind == "launches" else f"{process}: {kind}"
                    seen.setdefault(name, []).append(statistics.median(block_ns))
                    told = f"{seen[name][-1]:.0f} ns"
                    yield row(f"turn {turn + 1}: a launch, {name}", "a number", told, True)
                if job.problem and turn == 0:
                    yield failed(f"launches, {process}", job.problem)
    yield from against(
        seen, "no profiler", [name for name in seen if not name.startswith("CUPTI")], AIM_PERCENT
    )
    yield from against(
        seen,
        "CUPTI alone: without",
        [name for name in seen if name.startswith("CUPTI")],
        AIM_PERCENT,
    )


def against(
    seen: dict[str, list[float]], base: str, names: list[str], aim_percent: float
) -> Iterator[Row]:
    """Each one's ratio to the base, of medians of processes; what is traced has no limit here."""
    if base not in seen:
        return
    apart = 100 * (max(seen[base]) / min(seen[base]) - 1)
    for name in names:
        more = 100 * (statistics.median(seen[name]) / statistics.median(seen[base]) - 1)
        told = (
            f"{statistics.median(seen[name]):.0f} ns ({min(seen[name]):.0f} to "
            f"{max(seen[name]):.0f}), {more:+.1f} %"
        )
        if name.endswith(("traced", base)):
            yield row(f"a launch, {name}", "a number", told, True)
        else:
            expected = (
                f"at most {aim_percent:.0f} % more, and the {apart:.1f} % that "
                "processes of "
                f"'{base}' are apart"
            )
            yield row(f"a launch, {name}", expected, told, more <= aim_percent + apart)


def stalls(jobs: Jobs) -> Iterator[Row]:
    program = jobs.built("stalls", "launches")
    profiled, alone = (
        jobs.run(program, "stalls", profiled=is_profiled, limit_s=25)
        for is_profiled in (True, False)
    )
    profiled.must("stalls")
    alone.must("stalls")
    ours_ns, theirs_ns = numbers(profiled, "stall"), numbers(alone, "stall")
    for kind, what in STALLS.items():
        ours_ms, theirs_ms = ([ns / 1e6 for ns in of[kind]] for of in (ours_ns, theirs_ns))
        told = (
            f"{max(ours_ms):.2f} ms (median of {len(ours_ms)}: "
            f"{statistics.median(ours_ms):.2f}); without us {max(theirs_ms):.2f} ms"
        )
        limit_ms = max(LONGEST_STALL_MS, 2 * max(theirs_ms))
        yield row(
            f"longest call of the driver, {what}",
            f"at most {LONGEST_STALL_MS:.0f} ms",
            told,
            max(ours_ms) <= limit_ms,
        )


STALLS = {
    "first_on": "while tracing begins for the first time",
    "on": "while it goes on again",
    "off": "while it goes off",
    "traced": "traced",
    "between": "between windows",
}


def memory(jobs: Jobs) -> Iterator[Row]:
    job = jobs.run("memory", limit_s=25)
    job.must("memory of the device")
    in_windows, between = (
        [size / 2**20 for size in job.truth[name]] for name in ("in_windows", "between")
    )
    told = ", ".join(f"{mib:.1f}" for mib in in_windows)
    is_bounded = max(in_windows) <= MOST_MEMORY_MIB
    yield row(
        "MiB of the device that tracing takes, window by window",
        f"at most {MOST_MEMORY_MIB:.0f}",
        told,
        is_bounded,
    )
    yield row(
        "their growth after the third window",
        0,
        f"{in_windows[-1] - in_windows[2]:.1f}",
        in_windows[-1] <= in_windows[2],
    )
    yield row("MiB between windows", "a number", ", ".join(f"{mib:.1f}" for mib in between), True)


# Limit -> the setting
DEVICE_BUFFERS = {"our limit of 32 buffers": "32", "CUPTI's own limit": "0"}


def many(jobs: Jobs) -> Iterator[Row]:
    program = jobs.built("kernels of many replays", "launches")
    planted = 200_000 if jobs.is_double else MANY
    for limit, setting in DEVICE_BUFFERS.items():
        words = ("graphs", str(planted), str(MANY_S))
        settings = {"COMMPROF_GPU_COLLECT_MS": "250", "COMMPROF_GPU_DEVICE_BUFFERS": setting}
        job = jobs.run(program, *words, limit_s=MANY_S + 25, **settings)
        if job.problem:
            yield failed(f"kernels of many replays, {limit}", job.problem)
            continue
        launched = job.truth["launched"]
        kernels = job.counts().get("planted_empty", 0)
        yield same(f"kernels of many replays of a graph, {limit}", launched, kernels)
        sql = "SELECT gpu_dropped_records, gpu_implausible_records FROM rank"
        yield same(f"records dropped, implausible, {limit}", (0, 0), job.query(sql)[0])
        if launched < planted:
            why = f"{launched} kernels in {MANY_S} s: too few to tell"
            yield skip(f"{planted} kernels, {limit}", why)


BUSY_S = 6
MOST_LOST_S = 2.0  # a second until the next collection, and one in which a buffer fills


def busy(jobs: Jobs) -> Iterator[Row]:
    """A device that never idles until its process is killed: some record is always incomplete."""
    program = jobs.built("kernels of a busy device", "launches")
    for a_second in (1_000, 5_000):
        words = ("busy", str(a_second), str(BUSY_S))
        job = jobs.run(program, *words, limit_s=30, COMMPROF_GPU_COLLECT_MS="1000")
        check = f"kernels of a busy device, {a_second} a second, killed after {BUSY_S} s"
        if job.hung or job.status != -signal.SIGKILL:
            yield failed(check, job.problem or f"exit status {job.status}")
            continue
        ended, kernels = job.truth["ended"], job.counts().get("planted_gate", 0)
        most_lost = round(MOST_LOST_S * a_second)
        told = f"{kernels} of {ended}, {100 * kernels / ended:.1f} %"
        yield row(check, f"all but {most_lost} at most", told, kernels >= ended - most_lost)

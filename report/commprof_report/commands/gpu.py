"""What the GPUs did: computing, communicating, copying, idle; how much communication was exposed, and what is known of it.

The first lines say how much of the GPUs' time was what, how much communication no computing hid, how long GPUs idled while their
processes were in MPI, what tracing them cost, and how much of the run was traced. Then devices, kernels, copies and streams. Tracing
takes turns with pauses (COMMPROF_GPU_EVERY_S): shares are of the time that was traced.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from types import ModuleType, SimpleNamespace
from typing import Callable, NamedTuple

from .. import gpu, page, pictures, selection, tables, units
from ..alignment import align
from ..gpu import Gpu, GpuCopyRow, GpuDeviceRow, GpuKernelRow, GpuRow, GpuStreamRow, WindowRow
from ..gpu_steps import FEWEST_STEPS, OTHER_STREAM, GpuStepRow, StepTimes, TracingCost, step_times, tracing_cost
from ..plots import gpu as plot
from ..plots import gpu_kernels as kernels_plot
from ..run import Run
from ..steps_digest import StepsDigest, steps_digest
from ..tables import Column
from . import common

HEAD_WIDTH = 16
NOTHING = "nothing of that is known of these ranks"
TOP = 12  # kernels
MOST_DEVICES = 32
MOST_STREAMS = 16
MOST_COPIES = 32
MOST_STEPS = 200
MOST_WINDOWS = 200
NAME_WIDTH = 64
UNSEEN = {
    "none": "no GPU was used, or none was found",
    "dormant": "there is a GPU, the program has not used it",
    "refused": "the GPU was not traced",
}
LOSSES = (
    ("dropped_records", "{} dropped by the tracing interface or never handed over", "GPU record"),
    ("implausible_records", "{} with impossible times", "GPU record"),
    ("late_records", "{} too late for the sums of time (counted in the tables)", "GPU record"),
    ("unkept_records", "{} counted together with others: a table was full", "GPU record"),
    ("lost_intervals", "{} missing in times in MPI", "MPI call"),
    ("unmatched_operations", "{} without a time on the device", "NCCL operation"),
)
PAUSES = (
    ("duty_ns", "paused between windows"),
    ("yielded_ns", "left to another tool"),
    ("off_ns", "off, as calls were not counted"),
    ("lost_ns", "lost: records had stopped to come"),
)
DEVICE_COLUMNS = (
    Column("rank", lambda row: str(row.rank)),
    Column("host", lambda row: units.shortened(row.host or "", 20), False),
    Column("GPU", lambda row: f"{row.device} {units.shortened(row.name, 28)}", False),
    Column("traced", lambda row: units.duration(row.traced_ns)),
    Column("computing", lambda row: units.share(row.computing_share)),
    Column("communicating", lambda row: units.share(row.communicating_share)),
    Column("exposed", lambda row: units.share(row.exposed_share)),
    Column("copying", lambda row: units.share(row.copying_share)),
    Column("idle", lambda row: units.share(row.idle_share)),
    Column("in MPI", lambda row: units.share(row.in_mpi_share)),
)
KERNEL_COLUMNS = (
    Column("kernel", lambda row: units.shortened(row.kernel, NAME_WIDTH), False),
    Column("class", lambda row: "communication" if row.is_communication else "computing", False),
    Column("count", lambda row: units.count(row.count)),
    Column("by graphs", lambda row: units.share(row.graph_count / row.count) if row.graph_count else units.NO_VALUE),
    Column("time", lambda row: units.duration(row.total_ns)),
    Column("of all", lambda row: units.share(row.share)),
    Column("mean", lambda row: units.duration(row.mean_ns)),
    Column("p50", lambda row: units.duration(row.p50_ns)),
    Column("p99", lambda row: units.duration(row.p99_ns)),
)
COPY_COLUMNS = (
    Column("copy", lambda row: copy_text(row), False),
    Column("host memory", lambda row: memory_text(row), False),
    Column("size", lambda row: units.size_range(row.bytes_low, row.bytes_high)),
    Column("count", lambda row: units.count(row.count)),
    Column("volume", lambda row: units.volume(row.volume_bytes)),
    Column("time", lambda row: units.duration(row.total_ns)),
    Column("p50", lambda row: units.duration(row.p50_ns)),
    Column("p99", lambda row: units.duration(row.p99_ns)),
    Column("GB/s", lambda row: units.NO_VALUE if row.bytes_per_s is None else units.three_digits(row.bytes_per_s / 1e9)),
)
STREAM_COLUMNS = (
    Column("rank", lambda row: str(row.rank)),
    Column("GPU", lambda row: units.NO_VALUE if row.device is None else str(row.device)),
    Column("stream", lambda row: stream_text(row)),
    Column("computing", lambda row: units.duration(row.computing_ns)),
    Column("kernels", lambda row: units.count(row.computing_kernels)),
    Column("communicating", lambda row: units.duration(row.communicating_ns)),
    Column("kernels", lambda row: units.count(row.communicating_kernels)),
    Column("copying", lambda row: units.duration(row.copying_ns)),
    Column("copies", lambda row: units.count(row.copies + row.sets)),
    Column("volume", lambda row: units.volume(row.volume_bytes)),
)


STEP_COLUMNS = (
    Column("step", lambda row: units.count(row.step)),
    Column("GPUs", lambda row: units.count(row.devices)),
    Column("time", lambda row: units.duration(row.step_ns)),
    Column("computing", lambda row: units.duration(row.computing_ns)),
    Column("communicating", lambda row: units.duration(row.communicating_ns)),
    Column("exposed", lambda row: units.duration(row.exposed_ns)),
    Column("of step", lambda row: units.share(row.exposed_share)),
    Column("copying", lambda row: units.duration(row.copying_ns)),
    Column("idle", lambda row: units.duration(row.idle_ns)),
    Column("idle in MPI", lambda row: units.duration(row.starved_ns)),
)
WINDOW_COLUMNS = (
    Column("rank", lambda row: str(row.rank)),
    Column("begins", lambda row: units.duration(row.begin_ns)),
    Column("time", lambda row: units.duration(row.end_ns - row.begin_ns)),
    Column("ended", lambda row: row.ended, False),
    Column("clock error", lambda row: units.duration(row.clock_error_ns)),
    Column("records", lambda row: units.count(row.records)),
)


class Answers(NamedTuple):
    gpu: Gpu
    steps: list[GpuStepRow]
    cost: TracingCost


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_run_argument(parser)
    group = parser.add_argument_group("what to look at")
    group.add_argument("--rank", type=selection.rank_spans, metavar="LIST", help="these world ranks only: 0,3-5")
    shown = parser.add_argument_group("what to show")
    shown.add_argument("--by", choices=tuple(TABLES), metavar="TABLE", help=f"only this table: {', '.join(TABLES)}")
    shown.add_argument("--top", type=kernel_count, metavar="N", help=f"so many kernels, those with the most time (default {TOP}; of rows all)")
    tables.add_arguments(parser)
    parser.add_argument("--plot", type=pictures.picture_path, metavar="FILE", help="draw into FILE: .png, .svg or .pdf")


def kernel_count(word: str) -> int:
    if not word.isdecimal() or not 0 < int(word) < 1_000_000:
        raise argparse.ArgumentTypeError(f"{word} is no number of kernels")
    return int(word)


def run(arguments: argparse.Namespace) -> None:
    with_samples = arguments.by in (None, "run", "step")
    run = common.open_noted(arguments, with_histograms=arguments.by in (None, "kernel", "copy"), with_samples=with_samples)
    selection.select(run, argparse.Namespace(call=None, communicator=None, region=None, rank=arguments.rank, bytes=None))
    if arguments.plot:
        devices = [device for device in gpu.gpu(run.connection).devices if device.traced_ns]
        pictures.save(arguments.plot, plot.draw, devices, plot.figure_size(devices))
    if tables.is_for_scripts(arguments):
        write_rows(run, arguments)
    else:
        print_text(run, arguments)


def answer(run: Run, in_steps: StepsDigest | None = None) -> Answers:
    """`in_steps`: where the caller has looked for steps; of a run that was read with samples."""
    found = gpu.gpu(run.connection)
    if not found.is_seen:
        return Answers(found, [], tracing_cost(run.connection, []))
    in_steps = in_steps or steps_digest(run.connection, align(run.connection).moment)
    return Answers(found, in_steps.gpu, tracing_cost(run.connection, found.windows))


def run_row(answers: Answers) -> SimpleNamespace:
    parts = (answers.gpu.summary, step_times(answers.steps), answers.cost)
    return SimpleNamespace(**{key: value for part in parts for key, value in part._asdict().items()})


class Table(NamedTuple):
    rows: Callable[[Run], Sequence]
    fields: Sequence[str]
    columns: Sequence[Column] = ()  # of a text
    most: int = 0  # rows there


TABLES = {
    "run": Table(lambda run: [run_row(answer(run))], (*GpuRow._fields, *StepTimes._fields, *TracingCost._fields)),
    "device": Table(lambda run: gpu.gpu(run.connection).devices, GpuDeviceRow._fields, DEVICE_COLUMNS, MOST_DEVICES),
    "kernel": Table(lambda run: gpu.kernels(run.connection), GpuKernelRow._fields, KERNEL_COLUMNS, TOP),
    "copy": Table(lambda run: gpu.copies(run.connection), GpuCopyRow._fields, COPY_COLUMNS, MOST_COPIES),
    "stream": Table(lambda run: gpu.streams(run.connection), GpuStreamRow._fields, STREAM_COLUMNS, MOST_STREAMS),
    "step": Table(lambda run: answer(run).steps, GpuStepRow._fields, STEP_COLUMNS, MOST_STEPS),
    "window": Table(lambda run: gpu.gpu(run.connection).windows, WindowRow._fields, WINDOW_COLUMNS, MOST_WINDOWS),
}


def write_rows(run: Run, arguments: argparse.Namespace) -> None:
    by = arguments.by or "device"
    rows = TABLES[by].rows(run)
    tables.write_rows(arguments, rows[: arguments.top] if by == "kernel" else rows, TABLES[by].fields)


def print_text(run: Run, arguments: argparse.Namespace) -> None:
    if arguments.by not in (None, "run"):
        print(table_text(run, arguments, arguments.by) or NOTHING)
        return
    answers = answer(run)
    for head, text in facts(answers):
        common.print_line(f"{head:<{HEAD_WIDTH}}{text}")
    if arguments.by is None and answers.gpu.is_seen:
        texts = (table_text(run, arguments, by) for by in ("device", "kernel", "copy", "stream"))
        print("".join(f"\n{text}\n" for text in texts if text), end="")


def table_text(run: Run, arguments: argparse.Namespace, by: str) -> str:
    rows, most = TABLES[by].rows(run), TABLES[by].most
    if by == "kernel" and arguments.top:
        most = arguments.top
    if not rows:
        return ""
    more = f"\n... and {len(rows) - most:,} more; --by {by} --csv has them all." if len(rows) > most else ""
    return tables.text_table(TABLES[by].columns, rows[:most]) + more


def facts(answers: Answers) -> Iterator[tuple[str, str]]:
    """(head, text) a line."""
    if answers.gpu.is_seen:
        yield from traced_facts(answers)
    yield from unseen_facts(answers.gpu)


def traced_facts(answers: Answers) -> Iterator[tuple[str, str]]:
    summary = answers.gpu.summary
    yield "GPUs", devices_text(summary)
    yield "GPU time", time_text(summary)
    yield from exposed_facts(summary, step_times(answers.steps))
    yield from mpi_facts(summary)
    yield "Cost of tracing", cost_text(answers.cost)
    yield from coverage_facts(summary)
    yield "Not recorded", "; ".join(losses(answers.gpu)) or f"nothing is missing of {units.counted(summary.records, 'record')}"
    error = "an unknown time" if summary.clock_error_ns is None else f"{units.duration(summary.clock_error_ns)} at most"
    yield "GPU's clock", f"off by {error}"


def devices_text(summary: GpuRow) -> str:
    part = f"{summary.traced_ranks} of " if summary.traced_ranks < summary.ranks else ""
    ranks = f"{part}{units.counted(summary.ranks, 'rank')}"
    return f"{units.counted(summary.devices, 'device')}, {ranks}: {units.shortened(summary.names or 'of unknown kind', 60)}"


def time_text(summary: GpuRow) -> str:
    """Of the traced time of all devices."""
    if not summary.traced_ns:
        return "unknown: nothing has been summed up"
    parts = ("computing", "communicating", "copying", "idle")
    said = ", ".join(f"{units.share(getattr(summary, f'{part}_share'))} {part}" for part in parts)
    return f"{said}, some at once; of {units.duration(summary.traced_ns)} that were traced, over all devices"


def exposed_facts(summary: GpuRow, steps: StepTimes) -> Iterator[tuple[str, str]]:
    if not summary.traced_ns:
        return
    if not summary.communicating_ns:
        yield "Communication", "no kernel of a library that communicates was seen"
        return
    exposed = f"{units.share(summary.exposed_share)} of the traced time is exposed communication ({units.duration(summary.exposed_ns)})"
    hidden = f"{units.share(summary.overlap)} of all communication is hidden behind computing ({units.duration(summary.hidden_ns)})"
    yield "Communication", f"{exposed}; {hidden}"
    if summary.strictly_exposed_ns < summary.exposed_ns:
        strict_share = units.share(summary.strictly_exposed_ns / summary.traced_ns)
        yield "", f"{strict_share} ({units.duration(summary.strictly_exposed_ns)}) if copies hide it, too"
    if steps.steps:
        time = f"{units.duration(steps.step_exposed_ns)} of {units.duration(steps.step_ns)}"
        yield "  in a step", f"{units.share(steps.step_exposed_share)} exposed, {time} (medians of {units.counted(steps.steps, 'step')})"


def mpi_facts(summary: GpuRow) -> Iterator[tuple[str, str]]:
    """Idle, and in MPI: of the traced time, too."""
    if summary.traced_ns:
        starved = f"{units.share(summary.starved_ns / summary.traced_ns)} ({units.duration(summary.starved_ns)})"
        yield "Idle", f"{units.share(summary.idle_share)} ({units.duration(summary.idle_ns)}); while the process was in MPI {starved}"
        exposed = f"{units.share(summary.exposed_mpi_ns / summary.traced_ns)} ({units.duration(summary.exposed_mpi_ns)})"
        yield "Process in MPI", f"{units.share(summary.in_mpi_share)} ({units.duration(summary.in_mpi_ns)}); while no kernel computed {exposed}"


def cost_text(cost: TracingCost) -> str:
    """Of steps with tracing on against those with tracing paused."""
    sides = f"{units.counted(cost.traced_steps, 'step')} with tracing, {cost.untraced_steps:,} without"
    if cost.tracing_cost_share is None:
        return f"unknown: {sides}; {FEWEST_STEPS} of each are needed"
    medians = f"{units.duration(cost.traced_step_ns)} with tracing, {units.duration(cost.untraced_step_ns)} without"
    spreads = f"+- {units.duration(cost.traced_deviation_ns)} and {units.duration(cost.untraced_deviation_ns)}"
    counts = f"medians of {cost.traced_steps:,} and {cost.untraced_steps:,} steps, {spreads}"
    share, error = 100 * cost.tracing_cost_share, 100 * (cost.tracing_cost_error_share or 0)
    found = f"{share:+.1f} % of a step, within {error:.1f} %"
    return f"{found if abs(share) > error else f'less than can be told ({found})'}: {medians} ({counts})"


def coverage_facts(summary: GpuRow) -> Iterator[tuple[str, str]]:
    whole = f"{units.share(summary.window_share)} of the time of these ranks ({units.duration(summary.window_ns)})"
    yield "Traced", f"{whole}, in {units.counted(summary.windows, 'window')}"
    pauses = [f"{units.duration(getattr(summary, key))} {why}" for key, why in PAUSES if getattr(summary, key)]
    if pauses:
        times = f" ({units.counted(summary.yields, 'time')})" if summary.yields else ""
        yield "", f"not traced: {', '.join(pauses)}{times}"


def losses(found: Gpu) -> Iterator[str]:
    """What is missing, also for the summary; nothing where all is there."""
    for key, text, noun in LOSSES:
        if getattr(found.summary, key):
            yield text.format(units.counted(getattr(found.summary, key), noun))
    for (_, reason), ranks in gpu.cut_off(found.ranks).items():
        yield f"GPU records at the end of rank {units.shortened(units.rank_list(ranks), 40)}: {reason}"


def unseen_facts(found: Gpu) -> Iterator[tuple[str, str]]:
    """Ranks without a GPU, and why."""
    groups = gpu.unseen(found.ranks)
    for (state, reason), ranks in groups.items():
        who = "" if len(ranks) == len(found.ranks) else f"rank {units.shortened(units.rank_list(ranks), 40)}: "
        yield "No GPU", f"{who}{UNSEEN[state]}{f': {reason}' if reason else ''}"
    if not groups and not found.is_seen:
        yield "No GPU", "; ".join(losses(found)) or "nothing that a GPU did was seen"


def copy_text(row: GpuCopyRow) -> str:
    return f"copy {row.copy}" if row.kind == "copy" else row.kind


def memory_text(row: GpuCopyRow) -> str:
    if row.is_managed:
        return "managed"
    if row.copy in ("to device", "to host"):
        return "pageable" if row.is_pageable else "pinned"
    return units.NO_VALUE


def stream_text(row: GpuStreamRow) -> str:
    return "others" if row.stream == OTHER_STREAM else f"{row.number} of context {row.context}"


def gpu_section(run: Run, in_steps: StepsDigest) -> str:
    """Nothing where no GPU was traced."""
    answers = answer(run, in_steps)
    if not answers.gpu.is_seen:
        return ""
    kernels, copies = gpu.kernels(run.connection)[:TOP], gpu.copies(run.connection)
    devices = answers.gpu.devices[:MOST_DEVICES]
    sentence = (
        "Each bar is one GPU of a rank, over the time in which it was traced. Exposed communication is time in which a kernel of NCCL or its"
        " like ran and none that computes; hidden communication ran beside computing."
    )
    return page.section(
        "GPUs",
        sentence,
        page.facts_list(facts(answers)),
        page.picture(drawn(plot, devices), "what the GPUs did"),
        page.table(DEVICE_COLUMNS, devices),
        page.picture(drawn(kernels_plot, kernels), "kernels by time") if kernels else "",
        page.table(KERNEL_COLUMNS, kernels),
        page.table(COPY_COLUMNS, copies[:MOST_COPIES]) if copies else "",
    )


def drawn(module: ModuleType, rows: Sequence) -> bytes | None:
    return pictures.svg(module.draw, rows, module.figure_size(rows)) if pictures.is_possible() else None

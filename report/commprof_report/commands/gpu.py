"""Shows how much of the time the GPUs were computing, communicating (in kernels of NCCL and its
like), copying and idle; how much communication was exposed, that is, ran while no kernel computed,
and how much was hidden behind computing; and how long GPUs were idle while their processes were in
MPI. Where steps are known it shows the same per step.

The GPU is traced in windows, by default in one of 10 to 20 s while steps repeat
(COMMPROF_GPU_EVERY_S, COMMPROF_GPU_ON_S, COMMPROF_GPU_ONE_RANK_IN), and all shares are of the
traced time. The report says how much of the run that is, which part of it, how much longer steps
last while tracing is on, what was lost, and how far the GPU's clock may be off. Where the GPU was
not traced it says why; --by window says how each window ended.

A GPU that several ranks share is one device: it is busy while any of them has something running
there, as far as single activities of all of them are known. --by rank shows what each rank did on
its own.

Where communication kernels ran it says how many multiprocessors (SMs) they occupy.

Then it lists devices; where the driver's management library (NVML) was read, about once a second,
how fast the SMs' clock was, what lowered it, how much memory was in use, and what NVLink and PCIe
carried; the kernels with the most time, copies by direction and size with their rates, and streams.
Names of kernels are demangled where the system has c++filt, and shortened.
"""

from __future__ import annotations

import argparse
from collections import namedtuple
from collections.abc import Sequence
from types import SimpleNamespace

from ..base import column, keys, option, Row, shown, units
from ..display import render
from ..gpu import gpu_activity
from ..plots import bars
from ..run import reason_text, seen_rows, Selection
from ..steps.gpu_steps import (
    FEWEST_STEPS,
    STEP,
    StepTimes,
    TracingCost,
    step_times,
    tracing_cost,
)
from . import Command, common

TOP = 12  # kernels
MOST_DEVICES = 32
UNSEEN = {
    "none": "no GPU was used, or none was found",
    "dormant": "there is a GPU, the program has not used it",
    "refused": "the GPU was not traced",
}
DEVICE_COLUMNS = (
    column("rank", lambda row: row.ranks),
    column("host", lambda row: units.shortened(row.host or "", 20), False),
    column("GPU", lambda row: f"{row.device} {units.shortened(row.name, 28)}", False),
    column("traced", lambda row: units.duration(row.traced_ns)),
    column("computing", lambda row: units.share(row.computing_share)),
    column("communicating", lambda row: units.share(row.communicating_share)),
    column("exposed", lambda row: units.share(row.exposed_share)),
    column("copying", lambda row: units.share(row.copying_share)),
    column("idle", lambda row: units.share(row.idle_share)),
    column("in MPI", lambda row: units.share(row.in_mpi_share)),
)


Answers = namedtuple("Answers", "gpu steps cost seen")


def gpu(known: common.Analysed, arguments: argparse.Namespace) -> common.Answer:
    table = TABLES[arguments.by or "device"]
    devices = [row for row in gpu_activity.gpu(known.connection).devices if row.traced_ns]
    return common.Answer(
        table.rows(known)[: arguments.top if arguments.by == "kernel" else None],
        table.fields,
        lambda: blocks(known, arguments),
        lambda: (bars.of_gpus(devices), units.counted(len(devices), "device")),
        str,
        lambda: why_none(known.run, arguments.by),
    )


def why_none(run: Selection, by: str | None) -> str:
    found = gpu_activity.gpu(run.connection)
    unseen = [] if found.is_seen else unseen_facts(found, losses(seen_rows(run.connection)))
    return "; ".join(text for _, text in unseen if text) or f"no {by or 'GPU'} was traced"


def answer(known: common.Analysed) -> Answers:
    found, seen = gpu_activity.gpu(known.connection), seen_rows(known.connection)
    steps = known.steps_or_none if found.is_seen else None
    cost = tracing_cost(found.windows, steps.steps if steps else None)
    return Answers(found, steps.gpu if steps else [], cost, seen)


def run_row(answers: Answers) -> SimpleNamespace:
    parts = (answers.gpu.summary, step_times(answers.steps), answers.cost)
    return SimpleNamespace(**{key: getattr(part, key) for part in parts for key in part._fields})


# rows: of a run that is analysed; fields: their keys; columns: of a text, and the most rows there.
Table = namedtuple("Table", "rows fields columns most", defaults=[(), 0])


TABLES = {
    "run": Table(
        lambda known: [run_row(answer(known))],
        (*gpu_activity.GpuRow._fields, *StepTimes._fields, *TracingCost._fields),
    ),
    "device": Table(
        lambda known: gpu_activity.gpu(known.connection).devices,
        gpu_activity.GpuDeviceRow._fields,
        DEVICE_COLUMNS,
        MOST_DEVICES,
    ),
    "rank": Table(
        lambda known: gpu_activity.gpu(known.connection).parts,
        gpu_activity.GpuDeviceRow._fields,
        (
            column("rank", lambda row: str(row.rank)),
            column("GPU's ranks", lambda row: row.ranks),
            *(
                column._replace(head="rank idle") if column.head == "idle" else column
                for column in DEVICE_COLUMNS[1:]
            ),
        ),
        MOST_DEVICES,
    ),
    "sensor": Table(
        lambda known: gpu_activity.sensors(known.connection),
        keys(gpu_activity.SENSOR),
        shown(
            gpu_activity.SENSOR,
            "rank host device readings clock_mean_mhz clock_least_mhz throttled_share power_share "
            "heat_share hardware_share memory_most_bytes nvlink_sent_bytes_per_s "
            "nvlink_received_bytes_per_s pcie_sent_bytes_per_s pcie_received_bytes_per_s",
        ),
        MOST_DEVICES,
    ),
    "kernel": Table(
        lambda known: gpu_activity.kernels(known.connection),
        keys(gpu_activity.KERNEL),
        shown(
            gpu_activity.KERNEL,
            "kernel is_communication count graph_count total_ns share mean_ns p50_ns p99_ns",
        ),
        TOP,
    ),
    "copy": Table(
        lambda known: gpu_activity.activity_rows(known.connection, gpu_activity.COPIES),
        keys(gpu_activity.COPY),
        shown(
            gpu_activity.COPY,
            "kind is_pageable bytes_low count volume_bytes total_ns p50_ns p99_ns bytes_per_s",
        ),
        32,
    ),
    "stream": Table(
        lambda known: gpu_activity.activity_rows(known.connection, gpu_activity.STREAMS),
        keys(gpu_activity.STREAM),
        shown(
            gpu_activity.STREAM,
            "rank device stream computing_ns computing_kernels communicating_ns "
            "communicating_kernels copying_ns copies volume_bytes",
        ),
        16,
    ),
    "algorithm": Table(
        lambda known: gpu_activity.nccl_algorithms(known.connection),
        keys(gpu_activity.ALGORITHM),
        shown(gpu_activity.ALGORITHM, "call communicator bytes_low count algorithm"),
        32,
    ),
    "step": Table(
        lambda known: answer(known).steps,
        keys(STEP),
        shown(
            STEP,
            "step devices step_ns computing_ns communicating_ns exposed_ns exposed_share "
            "copying_ns idle_ns starved_ns",
        ),
        200,
    ),
    "window": Table(
        lambda known: gpu_activity.gpu(known.connection).windows,
        keys(gpu_activity.WINDOW),
        shown(gpu_activity.WINDOW, "rank begin_ns end_ns ended clock_error_ns records"),
        200,
    ),
}


def blocks(known: common.Analysed, arguments: argparse.Namespace) -> list:
    if arguments.by not in (None, "run"):
        table = table_of(known, arguments, arguments.by)
        return [table if table.rows else "not known of these ranks"]
    answers = answer(known)
    times = (
        ("Times of NCCL", f"on the device by its own time stamps ({source}), not by CUPTI")
        for source in gpu_activity.nccl_times(known.connection)
    )
    parts = ("rank",) if answers.gpu.summary.shared_devices else ()
    of_gpus = ("device", *parts, "sensor", "kernel", "copy", "stream")
    shown = (*(of_gpus if answers.gpu.is_seen else ()), "algorithm")
    return [
        common.Facts((*facts(answers), *times)),
        *(table_of(known, arguments, by) for by in shown if not arguments.by),
    ]


def table_of(known: common.Analysed, arguments: argparse.Namespace, by: str) -> common.Rows:
    most = arguments.top if by == "kernel" and arguments.top else TABLES[by].most
    return common.Rows(
        TABLES[by].columns, TABLES[by].rows(known), most, f"; --by {by} --csv has them all."
    )


def facts(answers: Answers) -> list[tuple[str, str]]:
    """(head, text) a line."""
    found, lost = answers.gpu, losses(answers.seen)
    if not found.is_seen:
        return unseen_facts(found, lost)
    summary = found.summary
    error = (
        "an unknown time"
        if summary.clock_error_ns is None
        else f"{units.duration(summary.clock_error_ns)} at most"
    )
    empty = units.counted(summary.empty_windows, "window")
    part = f"{summary.traced_ranks} of " if summary.traced_ranks < summary.ranks else ""
    memory = sorted({row.device_memory for row in found.ranks} - {""})  # mostly all report the same
    return [
        (
            "GPUs",
            f"{units.counted(summary.devices, 'device')}, {part}"
            f"{units.counted(summary.ranks, 'rank')}: "
            f"{units.shortened(summary.names or 'of unknown kind', 60)}",
        ),
        *shared_facts(found),
        ("Late records", late_text(found)),
        ("GPU time", time_text(found)),
        *exposed_facts(summary, step_times(answers.steps)),
        *mpi_facts(found),
        ("Cost of tracing", cost_text(answers.cost)),
        *(("", f"device memory: {text}") for text in memory),  # that CUPTI takes
        ("Traced", coverage_text(found)),
        (
            "",
            f"{empty} without any record: the GPU was idle, or CUPTI gave none"
            if summary.empty_windows
            else "",
        ),
        (
            "Not recorded",
            lost or f"nothing is missing of {units.counted(summary.records, 'record')}",
        ),
        ("GPU's clock", f"off by {error}"),
        *unseen_facts(found, lost),
    ]


def shared_facts(found: gpu_activity.Gpu) -> list[tuple[str, str]]:
    """Devices that several ranks use, how much is known of what these did together, and who is left
    out."""
    shared = [row for row in found.devices if row.sharing_ranks > 1]
    if not shared:
        return []
    first, more = shared[0], ", ..." if len(shared) > 1 else ""
    where = f" of {units.shortened(first.host, 30)}" if first.host else ""
    together = [row for row in shared if row.merged_ranks > 1]
    known_ns, unknown = (
        sum(row.traced_ns for row in together),
        sum(not row.traced_ns for row in together),
    )
    partly = sum(row.merged_ranks < row.sharing_ranks for row in shared)
    return [
        (
            "Shared",
            f"{devices_of(shared, found)}: ranks {units.shortened(first.ranks, 30)} use "
            f"GPU {first.device}{where}{more}",
        ),
        (
            "",
            f"busy while any of its ranks is: known for {units.duration(known_ns)}, where all "
            "activities and MPI calls are sampled"
            if known_ns
            else "",
        ),
        (
            "",
            f"what its ranks ran at once is not known for {units.counted(unknown, 'device')}, "
            "left out of the times below"
            if unknown
            else "",
        ),
        (
            "",
            f"{units.counted(partly, 'device')} also used by ranks that are not selected: "
            "times are of the selected ones alone"
            if partly
            else "",
        ),
    ]


def late_text(found: gpu_activity.Gpu) -> str:
    """Devices whose times are unknown, as records came too late to be summed up."""
    late = [
        row
        for row in found.devices
        if row.sharing_ranks == 1 and row.rank in found.incomplete and not row.traced_ns
    ]
    lasted = [found.incomplete[row.rank] for row in late]
    time = "" if None in lasted else f" of {units.duration(sum(filter(None, lasted)))}"
    why = f"records of activities{time} came too late to be summed up"
    return f"{devices_of(late, found)} left out of the times below: {why}" if late else ""


def devices_of(some: Sequence[gpu_activity.GpuDeviceRow], found: gpu_activity.Gpu) -> str:
    """1 device; 2 of 3 devices"""
    part = f"{len(some):,} of " if len(some) < len(found.devices) else ""
    return f"{part}{units.counted(len(found.devices), 'device')}"


def time_text(found: gpu_activity.Gpu) -> str:
    """Shares of the traced time of all devices."""
    summary = found.summary
    is_late = any(row.rank in found.incomplete for row in found.parts)
    is_told_above = summary.unmerged_devices or is_late
    if not summary.traced_ns:
        return "unknown: see above" if is_told_above else "unknown: nothing has been summed up"
    parts = ("computing", "communicating", "copying", "idle")
    said = ", ".join(f"{units.share(getattr(summary, f'{part}_share'))} {part}" for part in parts)
    return (
        f"{said}, some at once; of {units.duration(summary.traced_ns)} that were traced, over "
        "all devices"
    )


def exposed_facts(summary: gpu_activity.GpuRow, steps: Row) -> list[tuple[str, str]]:
    traced = units.duration(summary.traced_ns)
    none = f"no kernel of a library that communicates was seen in {traced} that were traced"
    if not summary.traced_ns or not summary.communicating_ns:
        said = none if summary.traced_ns else ""
        return [("Communication", said), ("  on SMs", sm_text(summary))]
    is_strict = summary.strictly_exposed_ns < summary.exposed_ns
    strictly = units.share(summary.strictly_exposed_ns / summary.traced_ns)
    return [
        (
            "Communication",
            f"{units.share(summary.exposed_share)} of the traced time is exposed communication "
            f"({units.duration(summary.exposed_ns)}); "
            f"{units.share(summary.overlap)} of all communication is hidden behind computing "
            f"({units.duration(summary.hidden_ns)})",
        ),
        (
            "",
            f"{strictly} ({units.duration(summary.strictly_exposed_ns)}) if copies hide it, too"
            if is_strict
            else "",
        ),
        (
            "  in a step",
            f"{units.share(steps.step_exposed_share)} exposed, "
            f"{units.duration(steps.step_exposed_ns)} of {units.duration(steps.step_ns)} (medians "
            f"of {units.counted(steps.steps, 'step')})"
            if steps.steps
            else "",
        ),
        ("  on SMs", sm_text(summary)),
    ]


def sm_text(summary: gpu_activity.GpuRow) -> str:
    if summary.communication_sms is None:
        return ""
    whole = "" if summary.sms is None else f" of {summary.sms:,}"
    return (
        f"its kernels' blocks occupy at most {units.three_digits(summary.communication_sms)}{whole}"
        f" SMs on average, those of one kernel {summary.communication_most_sms:,}"
    )


def mpi_facts(found: gpu_activity.Gpu) -> list[tuple[str, str]]:
    """Idle, and in MPI: of the traced time, too."""
    summary = found.summary
    if not summary.traced_ns:
        return []

    def part(name: str) -> str:
        ns = getattr(summary, f"{name}_ns")
        return f"{units.share(ns / summary.traced_ns)} ({units.duration(ns)})"

    doubt = gpu_activity.graph_doubt(found)
    return [
        ("Idle", f"{part('idle')}; while the process was in MPI {part('starved')}"),
        ("", f"idle and exposed time may hold kernels of CUDA graphs: {doubt}" if doubt else ""),
        (
            "Process in MPI",
            f"{part('in_mpi')}; while no kernel computed {part('exposed_mpi')}",
        ),
    ]


def cost_text(cost: Row) -> str:
    """Duration of steps with tracing on against those with tracing paused."""
    sides = (
        f"{units.counted(cost.traced_steps, 'step')} with tracing, {cost.untraced_steps:,} without"
    )
    if cost.tracing_cost_share is None:
        return f"unknown: {sides}; {FEWEST_STEPS} of each are needed"
    share, error = 100 * cost.tracing_cost_share, 100 * (cost.tracing_cost_error_share or 0)
    found = f"{share:+.1f} % of a step, within {error:.1f} %"
    return (
        f"{found if abs(share) > error else f'too small to measure ({found})'}: "
        f"{units.duration(cost.traced_step_ns)} with tracing, "
        f"{units.duration(cost.untraced_step_ns)} without (medians of {cost.traced_steps:,} and "
        f"{cost.untraced_steps:,} steps, +- {units.duration(cost.traced_deviation_ns)} and "
        f"{units.duration(cost.untraced_deviation_ns)})"
    )


def coverage_text(found: gpu_activity.Gpu) -> str:
    """6.00 s of 60.0 min (0.2 %), 1 window of rank 0"""
    summary = found.summary
    times = (
        f"{units.duration(summary.window_ns)} of {units.duration(summary.wall_ns)} "
        f"({units.share(summary.window_share)})"
    )
    ranks = units.rank_names(gpu_activity.traced_ranks(found))
    return f"{times}, {units.counted(summary.windows, 'window')} of {ranks}"


def losses(seen: Sequence[Row]) -> str:
    """Missing activities of GPUs, with the reasons; "": none."""
    return "; ".join(reason_text(row) for row in seen if row.reason.startswith("gpu-"))


def unseen_facts(found: gpu_activity.Gpu, lost: str) -> list[tuple[str, str]]:
    """Ranks without a GPU, and why."""
    groups = gpu_activity.unseen(found.ranks)
    nothing = "" if groups or found.is_seen else lost or "nothing that a GPU did was seen"
    return [
        *(
            (
                "No GPU",
                ("" if len(ranks) == len(found.ranks) else f"{units.rank_names(ranks)}: ")
                + UNSEEN[state]
                + (f": {reason}" if reason else ""),
            )
            for (state, reason), ranks in groups.items()
        ),
        ("No GPU", nothing),
    ]


COMMANDS = {
    "gpu": Command(
        __doc__,
        (
            *common.RUN,
            *common.ONLY_RANKS,
            option(
                "--by",
                choices=tuple(TABLES),
                metavar="TABLE",
                group="what to show",
                help=f"only this table: {', '.join(TABLES)}",
            ),
            option(
                "--top",
                type=common.row_count,
                metavar="N",
                group="what to show",
                help=f"N kernels, those with the most time (default {TOP}; of rows all)",
            ),
            *render.ROWS,
            common.PLOT,
        ),
        common.View(gpu, common.ALL),
        (
            ("Where the time of the GPUs of ranks 0 to 3 goes", "hvprof-report gpu --rank 0-3 RUN"),
            ("All kernels for a spreadsheet", "hvprof-report gpu --by kernel --csv RUN"),
            ("Exposed communication of each step", "hvprof-report gpu --by step --csv RUN"),
        ),
        ("export", "late", "steps"),
    )
}

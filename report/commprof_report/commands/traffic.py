"""Bulk traffic and control traffic: what carries data, and what coordinates it.

Shows how much of the calls, bytes and time is bulk, which carries gradients, activations or data,
and how much is control: the messages in which frameworks negotiate which gradients are ready,
barriers, probes, and constructors of communicators. The rule is the same for MPI and NCCL; shares
are of the time inside MPI.

Control messages have small sizes that together carry at most 1 % of the bytes of the run, up to the
first leap in the sizes of a call and none above 64 KiB. Thresholds are those of the whole run,
whatever is selected. On a background thread that negotiates, as Horovod's does, control is
instead reductions of bits, and bytes to or from a root; the smallest gradient is bulk there.
Collectives on communicators of one rank move nothing, and have a line of their own. --plot draws
the share of each kind in calls, bytes and time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from ..base import units
from ..base.field import Field, shown, telling
from ..calls.views import OF_TRAFFIC, TRAFFIC, TRAFFIC_HEADS, Row
from ..display import page, tables
from ..plots import row_bars as plot
from ..run.cells import view_rows
from ..run.run import Run
from . import common

EXAMPLES = (("What a framework's negotiation costs", "hvprof-report traffic RUN"),)
SEE_ALSO = ("sizes", "steps")
MOST_THRESHOLDS = 3


OPTIONS = common.DRAWN_BY_MEMORY_KIND


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, with_histograms=False, with_samples=True)
    rows = view_rows(run.connection, TRAFFIC)
    calls = units.counted(total(rows, "count"), "call")
    common.answer(
        arguments, rows, OF_TRAFFIC, lambda: print_text(rows), lambda: common.nothing_text(run),
        lambda: (run, plot, picture(rows), calls),
    )


def print_text(rows: list[Row]) -> None:
    common.print_facts(facts(rows))
    print("\n" + tables.text_table(columns_of(rows), rows))


def picture(rows: list[Row]) -> plot.Picture | None:
    """Shares of each kind of traffic in all calls, bytes and times."""
    mpi = [row for row in rows if row.library == "mpi"]
    measures = (
        ("calls", rows, "count", units.count), ("bytes", rows, "volume_bytes", units.volume),
        ("time in MPI", mpi, "total_ns", units.duration),
        ("NCCL on the device", rows, "device_ns", units.duration),
    )
    bars = [
        (f"{name} ({show(all_of)})", [part / all_of for part in parts])
        for name, own, key, show in measures
        for parts in [[total(of_kind(own, kind), key) for kind in TRAFFIC_HEADS]]
        for all_of in [sum(parts)] if all_of
    ]
    if not bars:
        return None
    names, shares = zip(*bars)
    parts = [
        plot.Part(head.lower(), colour, [each[place] for each in shares])
        for place, (head, colour) in enumerate(zip(TRAFFIC_HEADS.values(), plot.KINDS))
    ]
    control = [*TRAFFIC_HEADS].index("control")
    notes = [f"{units.share(each[control])} control" for each in shares]
    panel = plot.Panel("share", "share", parts, notes)
    return plot.Picture("Bulk and control traffic", names, [panel])


def of_kind(rows: list[Row], kind: str) -> list[Row]:
    return [row for row in rows if row.traffic == kind]


def columns_of(rows: list[Row]) -> list[Field]:
    """Columns for MPI, and for NCCL, where the rows have calls of them."""
    return telling(shown(OF_TRAFFIC), rows, "share_of_time", "device_ns")


def facts(rows: list[Row]) -> Iterator[tuple[str, str]]:
    """(head, text) a line."""
    for traffic, head in TRAFFIC_HEADS.items():
        own = of_kind(rows, traffic)
        if own and traffic == "alone":
            yield head, alone_text(own, rows)
        elif own:
            yield head, part_text(own, rows)
    bulk, control = (total(of_kind(rows, kind), "count") for kind in ("bulk", "control"))
    if any(row.call.endswith("_init") for row in rows):  # a persistent operation
        yield (
            "",
            "persistent operations are counted once, where they are set up, however often they "
            "start",
        )
    elif bulk and control:
        yield "", f"{units.three_digits(control / bulk)} control calls for each bulk call"
    is_told = any(row.told_count for row in rows)
    if is_told:
        yield (
            "Negotiation",
            "control on the thread that negotiates is reductions of bits, and bytes to or from a "
            "root",
        )
    if not is_told or any(row.threshold_bytes for row in rows):
        yield "Control sizes", threshold_text(rows)


def part_text(own: list[Row], rows: list[Row]) -> str:
    """371 calls (13.3 %), 716 MB (100.0 %), 1.24 s (93.0 % of the time in MPI)"""
    calls, volume_bytes = (total(own, key) for key in ("count", "volume_bytes"))
    volumes = total((row for row in rows if row.traffic != "alone"), "volume_bytes")
    volume = (
        f"{units.volume(volume_bytes)} ({units.share(volume_bytes / volumes)}), "
        if volumes and volume_bytes else ""
    )
    all_calls = (
        f"{units.counted(calls, 'call')} ({units.share(calls / (total(rows, 'count') or 1))})"
    )
    return f"{all_calls}, {volume}{time_text(own, rows)}"


def alone_text(own: list[Row], rows: list[Row]) -> str:
    """60 calls (33.3 %), 1.24 s (93.0 % of the time in MPI): on communicators of one rank, which
    move nothing, though 24.0 MB are passed to them"""
    volume = units.volume(total(own, "volume_bytes"))
    without = [row._replace(volume_bytes=0) for row in own]
    return (
        f"{part_text(without, rows)}: on communicators of one rank, which move nothing, though "
        f"{volume} are passed to them"
    )


def time_text(own: list[Row], rows: list[Row]) -> str:
    """1.24 s (93.0 % of the time in MPI), NCCL 15.2 ms on the host and 2.10 s on the device"""
    said = []
    mpi, nccl = ([row for row in own if row.library == library] for library in ("mpi", "nccl"))
    if mpi:
        mpi_ns = total((row for row in rows if row.library == "mpi"), "total_ns")
        total_ns = total(mpi, "total_ns")
        said.append(
            f"{units.duration(total_ns)} ({units.share(total_ns / (mpi_ns or 1))} of the time "
            "in MPI)"
        )
    if nccl:
        device_ns = sum(row.device_ns or 0 for row in nccl)
        on_device = f" and {units.duration(device_ns)} on the device" if device_ns else ""
        said.append(f"NCCL {units.duration(total(nccl, 'total_ns'))} on the host{on_device}")
    return ", ".join(said)


def total(rows: Iterable[Row], key: str) -> float:
    return sum(getattr(row, key) or 0 for row in rows)


def threshold_text(rows: list[Row]) -> str:
    sizes = {row.call: row.threshold_bytes for row in rows if row.threshold_bytes}
    if not any(row.most_bytes for row in rows if row.traffic != "alone"):
        return "none: no call with a size was counted"
    if not sizes:
        return "none: messages of every size carry a notable part of the bytes"
    named = ", ".join(
        f"{call} of at most {units.size(threshold_bytes)}"
        for call, threshold_bytes in list(sizes.items())[:MOST_THRESHOLDS]
    )
    more = f" and {len(sizes) - MOST_THRESHOLDS} more calls" if len(sizes) > MOST_THRESHOLDS else ""
    return f"{named}{more}: {units.share(rows[0].control_share)} of the bytes of the run"


def traffic_section(run: Run) -> str:
    rows = view_rows(run.connection, TRAFFIC)
    if not rows:
        return ""
    sentence = (
        "Bulk calls carry gradients, activations or data. Control calls coordinate them: "
        "negotiation of what is ready, barriers and the like."
    )
    return page.section(
        "Bulk and control", sentence, page.facts_list(facts(rows)),
        page.table(columns_of(rows), rows),
    )

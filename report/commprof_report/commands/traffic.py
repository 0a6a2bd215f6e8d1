"""Shows how much of the calls, bytes and time is bulk, which carries gradients, activations or data,
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
from collections.abc import Iterator

from ..base import units
from ..base.field import Field, shown, telling
from ..calls.views import KINDS, OF_KIND, OF_TRAFFIC, TRAFFIC, TRAFFIC_HEADS, Row
from ..display import page, tables
from ..plots import row_bars as plot
from ..run.cells import view_rows
from ..run.run import Run
from . import Command, common

MOST_THRESHOLDS = 3


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, with_histograms=False, with_samples=True)
    kinds, rows = (view_rows(run.connection, view) for view in (KINDS, TRAFFIC))
    calls = units.counted(sum(row.count for row in rows), "call")
    common.answer(
        arguments, rows, OF_TRAFFIC, lambda: print_text(kinds, rows),
        lambda: common.nothing_text(run), lambda: (run, plot, picture(kinds), calls),
    )


def print_text(kinds: list[Row], rows: list[Row]) -> None:
    print(tables.text_table(columns_of_kinds(kinds), kinds) + "\n")
    common.print_facts(facts(rows))
    print("\n" + tables.text_table(columns_of(rows), rows))


def picture(kinds: list[Row]) -> plot.Picture | None:
    """Shares of each kind of traffic in all calls, bytes and times."""
    measures = (
        ("calls", "count", units.count), ("bytes", "volume_bytes", units.volume),
        ("time in MPI", "mpi_ns", units.duration),
        ("NCCL on the device", "device_ns", units.duration),
    )
    sums = {key: sum(getattr(row, key) for row in kinds) for _, key, _ in measures}
    bars = {
        key: f"{name} ({show(sums[key])})" for name, key, show in measures if sums[key]
    }
    if not bars:
        return None
    parts = [
        plot.Part(TRAFFIC_HEADS[kind].lower(), colour, [
            sum(getattr(row, key) for row in kinds if row.traffic == kind) / sums[key]
            for key in bars
        ])
        for kind, colour in zip(TRAFFIC_HEADS, plot.KINDS)
    ]
    control = parts[[*TRAFFIC_HEADS].index("control")]
    notes = [f"{units.share(share)} control" for share in control.values]
    panel = plot.Panel("share", "share", parts, notes)
    return plot.Picture("Bulk and control traffic", [*bars.values()], [panel])


def columns_of_kinds(kinds: list[Row]) -> list[Field]:
    return telling(
        shown(OF_KIND), kinds, "volume_bytes volume_share", "mpi_ns mpi_share",
        "nccl_ns device_ns",
    )


def columns_of(rows: list[Row]) -> list[Field]:
    """Columns for MPI, and for NCCL, where the rows have calls of them."""
    return telling(shown(OF_TRAFFIC), rows, "share_of_time", "device_ns")


def facts(rows: list[Row]) -> Iterator[tuple[str, str]]:
    """(head, text) a line."""
    bulk, control = (
        sum(row.count for row in rows if row.traffic == kind) for kind in ("bulk", "control")
    )
    if any(row.call.endswith("_init") for row in rows):
        yield (
            "Persistent",
            "operations are counted once, where they are set up, however often they start",
        )
    elif bulk and control:
        yield "Control calls", f"{units.three_digits(control / bulk)} for each bulk call"
    is_told = any(row.told_count for row in rows)
    if is_told:
        yield (
            "Negotiation",
            "control on the thread that negotiates is reductions of bits, and bytes to or from a "
            "root",
        )
    if not is_told or any(row.threshold_bytes for row in rows):
        yield "Control sizes", threshold_text(rows)


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
    kinds, rows = (view_rows(run.connection, view) for view in (KINDS, TRAFFIC))
    if not rows:
        return ""
    sentence = (
        "Bulk calls carry gradients, activations or data. Control calls coordinate them: "
        "negotiation of what is ready, barriers and the like."
    )
    return page.section(
        "Bulk and control", sentence, page.table(columns_of_kinds(kinds), kinds),
        page.facts_list(facts(rows)), page.table(columns_of(rows), rows),
    )


COMMANDS = {"traffic": Command(
    __doc__, common.DRAWN_BY_MEMORY_KIND, run,
    (("What a framework's negotiation costs", "hvprof-report traffic RUN"),),
    ("sizes", "steps"),
)}

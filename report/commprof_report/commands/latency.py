"""Histogram of the durations of one call at one message size.

Without --call it shows the call with the most time; without --bytes, the size of that call with the
most time. A range adds the sizes in it up (--bytes : adds all). An octave, in which the duration
doubles, has eight equal buckets, so a duration is known to 1/8. Bars show calls per octave: the
count alone would drop by half wherever buckets become twice as wide. The text merges neighbouring
buckets where there are more than 24; --json and --csv have all. NCCL's operations are shown by
their time on the device, nonblocking operations by that from start to completion; where these are
not known, by the time of the calls that start them.
"""

from __future__ import annotations

import argparse
from ..base import units
from ..base.query import Row
from ..calls.histogram import LatencyRow, latency_rows, merged
from ..calls.views import dominating_size
from ..display import tables
from ..display.tables import Column
from ..plots import duration_histogram as plot
from ..run.run import Run
from ..run.selection import Selection
from . import common

EXAMPLES = (
    ("Allreduces of 4 MiB", "hvprof-report latency --call Allreduce --bytes 4M RUN"),
    ("Broadcasts of all sizes together", "hvprof-report latency --call Bcast --bytes : RUN"),
)
SEE_ALSO = ("sizes",)
BAR_WIDTH, MOST_BARS = 40, 24
LARGEST = (1 << 63) - 1


OPTIONS = common.DRAWN_BY_MEMORY_KIND


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments)
    rows = histogram(run, arguments)
    if arguments.plot:
        save_picture(arguments, run, rows)
    common.answer(
        arguments, rows, LatencyRow._fields, lambda: print_text(rows),
        lambda: common.nothing_text(run),
    )


def save_picture(arguments: argparse.Namespace, run: Selection, rows: list[Row]) -> None:
    calls = units.counted(sum(row.count for row in rows), "call")
    common.picture_save(arguments, run, plot, rows, calls, common.nothing_text(run))


def histogram(run: Run, arguments: argparse.Namespace) -> list[Row]:
    """The buckets of the call and size that were asked for, or that took the most time of what was
    asked for."""
    chosen = dominating_size(run.connection)
    if chosen is None:
        return []
    low, high = chosen.bytes_low, chosen.bytes_high
    if arguments.bytes:
        low = min(arguments.bytes.low or 0, LARGEST)
        high = None if arguments.bytes.high is None else min(arguments.bytes.high, LARGEST)
    return latency_rows(run.connection, chosen.call, low, high, chosen.measure)


def print_text(buckets: list[Row]) -> None:
    rows = merged(buckets, MOST_BARS)
    densest = max(row.density for row in rows)
    columns = (
        Column("from", lambda row: units.duration(row.low_ns)),
        Column("to", lambda row: units.duration(row.high_ns)),
        Column("count", lambda row: units.count(row.count)),
        Column("share", lambda row: units.share(row.share)),
        Column("up to here", lambda row: units.share(row.cumulative_share)),
        Column("calls per octave", lambda row: bar(row.density, densest), False),
    )
    common.print_line(plot.title(rows))
    print("\n" + tables.text_table(columns, rows))


def bar(density: float, densest: float) -> str:
    return "#" * max(1, round(BAR_WIDTH * density / densest))

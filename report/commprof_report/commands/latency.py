"""Histogram of the durations of one call at one message size.

Without --call it shows the call with the most time; without --bytes, the size of that call with the most time. A range adds the sizes in it
up (--bytes : adds all). An octave, in which the duration doubles, has eight equal buckets, so a duration is known to 1/16. Bars show calls per
octave: the count alone would drop by half wherever buckets become twice as wide. NCCL's operations are shown by their time on the device; where
that is unknown, by the time of the calls on the host.
"""

from __future__ import annotations

import argparse

from ..base import units
from ..calls.latency import LatencyRow, dominating_size, latency_rows
from ..display import tables
from ..display.tables import Column
from ..plots import latency as plot
from ..run.run import Run
from . import common

EXAMPLES = (
    ("Allreduces of 4 MiB", "hvprof-report latency --call Allreduce --bytes 4M RUN"),
    ("Broadcasts of all sizes together", "hvprof-report latency --call Bcast --bytes : RUN"),
)
SEE_ALSO = ("sizes",)
BAR_WIDTH = 40
LARGEST = (1 << 63) - 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_arguments(parser, draws=True, by_memory_kind=True)
    parser.add_argument(
        "--completion", action="store_true", help="nonblocking operations from start to completion, not the calls"
    )


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments)
    rows = histogram(run, arguments)
    if arguments.plot:
        common.picture_save(arguments, run, plot.draw, rows, units.counted(sum(row.count for row in rows), "call"))
    if tables.is_for_scripts(arguments):
        tables.write_rows(arguments, rows, LatencyRow._fields)
    elif not rows:
        common.print_nothing_chosen()
    else:
        print_text(rows)


def histogram(run: Run, arguments: argparse.Namespace) -> list[LatencyRow]:
    """The buckets of the call and size that were asked for, or that took the most time of what was asked for."""
    chosen = dominating_size(run.connection, completion=arguments.completion)
    if chosen is None:
        return []
    low, high = chosen.bytes_low, chosen.bytes_high
    if arguments.bytes:
        low = min(arguments.bytes.low or 0, LARGEST)
        high = None if arguments.bytes.high is None else min(arguments.bytes.high, LARGEST)
    return latency_rows(run.connection, chosen.call, low, high, chosen.measure)


def print_text(rows: list[LatencyRow]) -> None:
    densest = max(row.density for row in rows)
    columns = (
        Column("from", lambda row: units.duration(row.low_ns)),
        Column("to", lambda row: units.duration(row.high_ns)),
        Column("count", lambda row: units.count(row.count)),
        Column("share", lambda row: units.share(row.share)),
        Column("up to here", lambda row: units.share(row.cumulative_share)),
        Column("calls per octave", lambda row: bar(row.density, densest), False),
    )
    common.print_line(f"{plot.title(rows)}\n".rstrip())
    print("\n" + tables.text_table(columns, rows))


def bar(density: float, densest: float) -> str:
    return "#" * max(1, round(BAR_WIDTH * density / densest))

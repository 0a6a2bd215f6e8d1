"""Without --call it shows the call with the most time; without --bytes, the size of that call with the
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
from ..base.field import Field, shown
from ..base.query import Row
from ..calls.histogram import LATENCY, latency_rows, merged
from ..calls.views import dominating_size
from ..display import tables
from ..plots import duration_histogram as plot
from ..run.run import Run
from . import Command, common

BAR_WIDTH, MOST_BARS = 40, 24
LARGEST = (1 << 63) - 1


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments)
    rows = histogram(run, arguments)
    calls = units.counted(sum(row.count for row in rows), "call")
    common.answer(
        arguments, rows, LATENCY, lambda: print_text(rows), lambda: common.nothing_text(run),
        lambda: (run, plot, rows, calls),
    )


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

    def bar(row: Row) -> str:
        return "#" * max(1, round(BAR_WIDTH * row.density / densest))

    common.print_line(plot.title(rows))
    bars = Field("density", "", "calls per octave", is_number=False, of_row=bar)
    print("\n" + tables.text_table([*shown(LATENCY), bars], rows))


COMMANDS = {"latency": Command(
    __doc__, common.DRAWN_BY_MEMORY_KIND, run,
    (
        ("Allreduces of 4 MiB", "hvprof-report latency --call Allreduce --bytes 4M RUN"),
        ("Broadcasts of all sizes together", "hvprof-report latency --call Bcast --bytes : RUN"),
    ),
    ("sizes",),
)}

"""Histogram of the durations of one call at one message size.

Without --call, the call that took the most time; without --bytes, that call's size that took the most time (--bytes :
for all of its sizes together). Each bucket is an eighth of an octave: a value is known to 1/16. Operations of NCCL are shown by their time
on the device; where nobody knows that, by that of the calls on the host.
"""

from __future__ import annotations

import argparse

from .. import pictures, questions, tables, units
from ..plots import latency as plot
from ..run import Run
from ..tables import Column
from . import common

BAR_WIDTH = 40
LARGEST = (1 << 63) - 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_arguments(parser, draws=True, by_place=True)
    parser.add_argument(
        "--completion", action="store_true", help="nonblocking operations from start to completion, not the calls"
    )


def run(arguments: argparse.Namespace) -> None:
    rows = histogram(common.open_selected(arguments), arguments)
    if arguments.plot:
        pictures.save(arguments.plot, plot.draw, rows)
    if tables.is_for_scripts(arguments):
        tables.write_rows(arguments, rows, questions.LatencyRow._fields)
    elif not rows:
        common.print_nothing_chosen()
    else:
        print_text(rows)


def histogram(run: Run, arguments: argparse.Namespace) -> list[questions.LatencyRow]:
    """The buckets of the call and size that were asked for, or that took the most time of what was asked for."""
    chosen = questions.dominating(run.connection, completion=arguments.completion)
    if chosen is None:
        return []
    low, high = chosen.bytes_low, chosen.bytes_high
    if arguments.bytes:
        low = min(arguments.bytes.low or 0, LARGEST)
        high = None if arguments.bytes.high is None else min(arguments.bytes.high, LARGEST)
    return questions.latency(run.connection, chosen.call, low, high, chosen.measure)


def print_text(rows: list[questions.LatencyRow]) -> None:
    largest = max(row.count for row in rows)
    columns = (
        Column("from", lambda row: units.duration(row.low_ns)),
        Column("to", lambda row: units.duration(row.high_ns)),
        Column("count", lambda row: units.count(row.count)),
        Column("share", lambda row: units.share(row.share)),
        Column("up to here", lambda row: units.share(row.cumulative_share)),
        Column("", lambda row: bar(row.count, largest), False),
    )
    common.print_line(f"{plot.title(rows)}\n".rstrip())
    print("\n" + tables.text_table(columns, rows))


def bar(count: int, largest: int) -> str:
    return "#" * max(1, round(BAR_WIDTH * count / largest))

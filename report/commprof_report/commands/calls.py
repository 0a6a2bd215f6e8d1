"""Time and volume of each MPI call.

One row a call, over all chosen ranks: how often, how many bytes, how long (mean, percentiles), and its share of the
wall time of all ranks together. Nonblocking calls return at once; what they started is shown as completion: the time
from start to completion, and the overlap, the part of it not spent blocked in Wait or Test.
"""

from __future__ import annotations

import argparse

from .. import pictures, questions, tables, units
from ..plots import calls as plot
from ..tables import Column
from . import common

COLUMNS = (
    Column("call", lambda row: row.call, False),
    Column("count", lambda row: units.count(row.count)),
    Column("volume", lambda row: units.volume(row.volume_bytes)),
    Column("total", lambda row: units.duration(row.total_ns)),
    Column("of wall", lambda row: units.share(row.share_of_wall)),
    Column("mean", lambda row: units.duration(row.mean_ns)),
    Column("min", lambda row: units.duration(row.min_ns)),
    Column("p50", lambda row: units.duration(row.p50_ns)),
    Column("p95", lambda row: units.duration(row.p95_ns)),
    Column("p99", lambda row: units.duration(row.p99_ns)),
    Column("max", lambda row: units.duration(row.max_ns)),
)
COMPLETION_COLUMNS = (
    Column("nonblocking call", lambda row: row.call, False),
    Column("completed", lambda row: units.count(row.completions)),
    Column("start to completion", lambda row: units.duration(row.completion_ns)),
    Column("of that blocked", lambda row: units.duration(row.blocked_ns)),
    Column("overlap", lambda row: units.share(row.overlap)),
)
POLL_COLUMNS = (
    Column("polling call", lambda row: row.call, False),
    Column("count", lambda row: units.count(row.count)),
    Column("found nothing", lambda row: units.count(row.polls)),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_arguments(parser, draws=True)


def run(arguments: argparse.Namespace) -> None:
    rows = questions.calls(common.open_selected(arguments).connection)
    if arguments.plot:
        pictures.save(arguments.plot, plot.draw, rows, plot.figure_size(rows))
    if tables.is_for_scripts(arguments):
        tables.write_rows(arguments, rows, questions.CallRow._fields)
    elif not rows:
        common.print_nothing_chosen()
    else:
        print_text(rows)


def print_text(rows: list[questions.CallRow]) -> None:
    print(tables.text_table(COLUMNS, rows))
    completed = [row for row in rows if row.completions]
    if completed:
        print("\n" + tables.text_table(COMPLETION_COLUMNS, completed))
    polled = [row for row in rows if row.polls]
    if polled:
        print("\n" + tables.text_table(POLL_COLUMNS, polled))

"""Latency and bandwidth of each message size.

One row per call, communicator and message size: count, volume, total time and its share of the wall
time of all ranks, mean, percentiles, algorithm bandwidth and bus bandwidth. The message size is
that of the OSU micro-benchmarks, so rows can be compared with theirs; bandwidths are those of
nccl-tests. In the text, `!` marks a size that is no power of two, `~` several sizes that were
counted together, and `*` a size that each rank has of its own (v- and w-variants). A percentile
that the number of calls does not support (p95 of fewer than 20, p99 of fewer than 100) is shown as
`-`.

NCCL's operations stand beside MPI's calls, by the same definitions, with their time on the device.
Where that is unknown, because the GPU was not traced, the time of the call on the host is shown,
which says nothing about bandwidth. Nonblocking and persistent operations of MPI have their time
from start to completion, with the means of what the calls take that start them and that wait for
them; the rest is overlap.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from ..base import units
from ..base.bins import BINS
from ..base.options import option
from ..calls.views import Row, best_timed, size_rows, size_view
from ..display import tables
from ..display.tables import Column, volume_column
from ..plots import size_lines as plot
from ..roles import roles
from ..run.selection import Selection
from . import common

EXAMPLES = (
    (
        "Large Allreduces, rank by rank",
        "hvprof-report sizes --call Allreduce --bytes 1M: --per-rank RUN",
    ),
    ("The ten sizes with the most time", "hvprof-report sizes --sort total --top 10 RUN"),
    ("Latency over message size", "hvprof-report sizes --plot sizes.png RUN"),
)
SEE_ALSO = ("calls", "latency")
ORDERS = {
    "total": lambda row: row.total_ns,
    "count": lambda row: row.count,
    "volume": lambda row: row.volume_bytes,
    "bytes": lambda row: math.inf if row.bytes is None else row.bytes,
    "mean": lambda row: row.mean_ns,
    "max": lambda row: row.max_ns,
}
COLUMNS = (
    Column("call", lambda row: row.call, False),
    Column("communicator", lambda row: units.shortened(row.communicator, 40), False),
    Column("rank", lambda row: str(row.rank)),
    Column("memory kind", lambda row: row.memory_kind, False),
    Column("timed on", lambda row: timed_on(row), False),
    Column(
        "bytes", lambda row: size_with_mark(row), exact=lambda row: exact_range(row) + marks(row)
    ),
    Column("count", lambda row: units.count(row.count)),
    volume_column("volume", "volume_bytes"),
    Column("total", lambda row: units.duration(row.total_ns)),
    Column("of wall", lambda row: units.share(row.share_of_wall)),
    Column("mean", lambda row: units.duration(row.mean_ns)),
    Column("p50", lambda row: units.duration(row.p50_ns)),
    Column("p95", lambda row: units.duration(row.p95_ns)),
    Column("p99", lambda row: units.duration(row.p99_ns)),
    Column("max", lambda row: units.duration(row.max_ns)),
    Column(
        "S", lambda row: units.size(row.bandwidth_bytes),
        exact=lambda row: units.count(row.bandwidth_bytes),
    ),
    Column("algbw", lambda row: units.bandwidth(row.algbw_bytes_per_s)),
    Column("busbw", lambda row: units.bandwidth(row.busbw_bytes_per_s)),
    Column("overlap", lambda row: units.share(row.overlap)),
)


OPTIONS = (
    *common.DRAWN_BY_MEMORY_KIND,
    option(
        "--bins", choices=BINS, default="exact",
        help="each size by itself (default); above 2^(k-1) up to 2^k; or hvprof's ranges: up to "
        "128 KiB, 16, 32, 64 MiB, and above",
    ),
    option(
        "--sort", choices=ORDERS,
        help="by what, the largest first; default: calls by their time, then by size",
    ),
    option("--top", type=common.row_count, metavar="N", help="only the first N rows"),
    option("--exact", action="store_true", help="bytes to the byte instead of KB and MB"),
    option("--per-rank", action="store_true", help="one row a rank"),
)


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, bins=arguments.bins, with_samples=bool(arguments.plot))
    rows = size_rows(run.connection, arguments.per_rank)
    if arguments.plot:
        in_families = size_rows(
            run.connection, arguments.per_rank, roles.of_run(run.connection, roles.families)
        )
        drawn = plot.with_message(best_timed(in_families))
        calls = units.counted(sum(row.count for row in drawn), "call")
        common.picture_save(arguments, run, plot, drawn, calls, nothing_text(run, arguments))
    if arguments.sort:
        rows.sort(key=ORDERS[arguments.sort], reverse=True)
    common.answer(
        arguments, rows[: arguments.top], fields_of(arguments),
        lambda: print_text(run, rows, arguments),
    )


def fields_of(arguments: argparse.Namespace) -> list[str]:
    """All keys; `rank` only where it says something."""
    return [field for field in size_view().row._fields if field != "rank" or arguments.per_rank]


def nothing_text(run: Selection, arguments: argparse.Namespace) -> str:
    return common.nothing_text(run, "call with a message")


def print_text(run: Selection, rows: list[Row], arguments: argparse.Namespace) -> None:
    shown = [row for row in best_timed(rows) if arguments.call or carries_messages(row)]
    if not shown:
        print(nothing_text(run, arguments))
        return
    absent = {"rank": not arguments.per_rank, **nothing_to_tell(shown)}
    columns = [column for column in columns_of(rows) if not absent.get(column.head)]
    if arguments.exact:
        columns = [column._replace(show=column.exact or column.show) for column in columns]
    print(tables.text_table(columns, shown[: arguments.top]))
    if arguments.top and len(shown) > arguments.top:
        print(f"... and {units.counted(len(shown) - arguments.top, 'more row')}.")
    for note in filter(None, (completion_note(rows), device_note(rows))):
        print(f"\n{note}")
    if len(shown) < len(best_timed(rows)):
        print(
            "\nCalls that carry no message (MPI_Wait and such) are left out here; `calls` has them."
        )


def columns_of(rows: Sequence[Row]) -> tuple[Column, ...]:
    """With what the calls take on the host that start and complete nonblocking operations."""
    starts: dict[tuple, list[Row]] = {}
    for start in rows:
        if start.measure == "call":
            starts.setdefault(_operation(start), []).append(start)

    def start_ns(row: Row) -> float | None:
        """Receives are posted with other sizes: of all sizes then."""
        all_sizes = starts.get(_operation(row), [])
        own = [start for start in all_sizes if start.bytes_low == row.bytes_low] or all_sizes
        if not own or row.measure != "completion":
            return None
        return sum(start.total_ns for start in own) / sum(start.count for start in own)

    def wait_ns(row: Row) -> float | None:
        own_ns = start_ns(row)
        return None if own_ns is None else max(0.0, row.blocked_ns / row.count - own_ns)

    return (
        *COLUMNS,
        Column("start", lambda row: units.duration(start_ns(row))),
        Column("wait", lambda row: units.duration(wait_ns(row))),
    )


def _operation(row: Row) -> tuple:
    return row.call, row.identity, row.rank, row.memory_kind


def completion_note(rows: Sequence[Row]) -> str:
    """A note on the times of nonblocking operations, and how many have none."""
    completed = [row for row in rows if row.measure == "completion"]
    if not completed:
        return ""
    calls = {row.call for row in completed}
    started = sum(row.count for row in rows if row.measure == "call" and row.call in calls)
    left = started - sum(row.count for row in completed)
    more = f" {units.counted(left, 'started operation')} not seen to complete." if left > 0 else ""
    return (
        "Nonblocking operations last from their start to completion; start and wait are the times "
        f"in the calls for these, overlap the rest.{more}"
    )


def nothing_to_tell(rows: Sequence[Row]) -> dict[str, bool]:
    """Columns that say the same of all rows: all on the host, all of MPI."""
    return {
        "memory kind": all(row.memory_kind == "host" for row in rows),
        "timed on": all(row.library == "mpi" for row in rows),
        **dict.fromkeys(
            ("overlap", "start", "wait"), all(row.measure != "completion" for row in rows)
        ),
    }


def timed_on(row: Row) -> str:
    return {"device": "device", "captured": "host, into a graph"}.get(row.measure, "host")


def device_note(rows: Sequence[Row]) -> str:
    """How many of NCCL's operations were timed on the device."""
    made = sum(
        row.count for row in rows
        if row.library == "nccl" and row.measure == "call" and carries_messages(row)
    )
    timed = sum(row.count for row in rows if row.measure == "device")
    if not made and not timed:
        return ""
    said = (
        f"NCCL: {units.counted(made, 'operation')} queued on the host, "
        f"{units.counted(timed, 'time')} on the device"
    )
    grouped = any(row.call == "ncclGroup" for row in rows)
    return f"{said} (an ncclGroup is one for all its operations)." if grouped else f"{said}."


def carries_messages(row: Row) -> bool:
    return row.bandwidth != "silent"


def size_with_mark(row: Row) -> str:
    return units.size_range(row.bytes_low, row.bytes_high) + marks(row)


def exact_range(row: Row) -> str:
    is_one = row.bytes_low == row.bytes_high
    return (
        units.count(row.bytes_low) if is_one
        else f"{units.count(row.bytes_low)} - {units.count(row.bytes_high)}"
    )


def marks(row: Row) -> str:
    mark = "~" if row.is_folded else "!" if is_odd(row) else ""
    return mark + ("*" if row.is_own else "")


MARKS = {
    "!": "no power of two", "~": "several sizes that were counted together",
    "*": "a size that each rank has of its own",
}


def marks_note(rows: Sequence[Row]) -> str:
    """Explains the marks that these rows have."""
    used = {mark for row in rows for mark in marks(row)}
    return ", ".join(f"{mark} {meaning}" for mark, meaning in MARKS.items() if mark in used)


def is_odd(row: Row) -> bool:
    return bool(row.bytes_low) and row.bytes_low == row.bytes_high and not row.power_of_two

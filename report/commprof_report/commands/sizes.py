"""One row per call, communicator and message size: count, volume, total time and its share of the wall
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
from collections.abc import Callable, Sequence

from ..base import units
from ..base.bins import BINS
from ..base.field import Field, shown
from ..base.options import option
from ..calls.views import MARKS, SIZE, Row, best_timed, marks, size_rows
from ..display import tables
from ..plots import size_lines as plot
from ..roles import roles
from . import Command, common

ORDERS = {
    "total": lambda row: row.total_ns,
    "count": lambda row: row.count,
    "volume": lambda row: row.volume_bytes,
    "bytes": lambda row: math.inf if row.bytes is None else row.bytes,
    "mean": lambda row: row.mean_ns,
    "max": lambda row: row.max_ns,
}
COLUMNS = shown(
    SIZE,
    "call communicator rank memory_kind measure bytes count volume_bytes total_ns share_of_wall "
    "mean_ns p50_ns p95_ns p99_ns max_ns bandwidth_bytes algbw_bytes_per_s busbw_bytes_per_s "
    "overlap",
)


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, bins=arguments.bins, with_samples=bool(arguments.plot))
    rows = size_rows(run.connection, arguments.per_rank)
    if arguments.sort:
        rows.sort(key=ORDERS[arguments.sort], reverse=True)
    fields = [field for field in SIZE if field.key != "rank" or arguments.per_rank]

    def nothing() -> str:
        return common.nothing_text(run, "call with a message")

    def draw() -> tuple:
        in_families = size_rows(
            run.connection, arguments.per_rank, roles.of_run(run.connection, roles.families)
        )
        drawn = plot.with_message(best_timed(in_families))
        return run, plot, drawn, units.counted(sum(row.count for row in drawn), "call")

    common.answer(
        arguments, rows[: arguments.top], fields,
        lambda: print_text(rows, arguments, nothing), draw=draw, nothing=nothing,
    )


def print_text(
    rows: list[Row], arguments: argparse.Namespace, nothing: Callable[[], str]
) -> None:
    timed = best_timed(rows)
    messages = [row for row in timed if arguments.call or carries_messages(row)]
    if not messages:
        print(nothing())
        return
    columns = telling_columns(rows, messages, arguments.per_rank)
    if arguments.exact:
        columns = [column._replace(of_row=column.exact) for column in columns]
    print(tables.text_table(columns, messages[: arguments.top]))
    if arguments.top and len(messages) > arguments.top:
        print(f"... and {units.counted(len(messages) - arguments.top, 'more row')}.")
    for note in filter(None, (completion_note(rows), device_note(rows))):
        print(f"\n{note}")
    if len(messages) < len(timed):
        print(
            "\nCalls that carry no message (MPI_Wait and such) are left out here; `calls` has them."
        )


def telling_columns(
    rows: Sequence[Row], messages: Sequence[Row], per_rank: bool = False
) -> list[Field]:
    """Without those that say the same of all messages: all on the host, all of MPI. rows: with the
    calls that start and complete nonblocking operations, whose times stand beside these."""
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

    more = [
        Field("start_ns", "", "start", of_row=lambda row: units.duration(start_ns(row))),
        Field("wait_ns", "", "wait", of_row=lambda row: units.duration(wait_ns(row))),
    ]
    completes = any(row.measure == "completion" for row in messages)
    telling = {
        "rank": per_rank,
        "memory_kind": any(row.memory_kind != "host" for row in messages),
        "measure": any(row.library != "mpi" for row in messages),
        **dict.fromkeys(("overlap", "start_ns", "wait_ns"), completes),
    }
    return [column for column in [*COLUMNS, *more] if telling.get(column.key, True)]


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


def marks_note(rows: Sequence[Row]) -> str:
    """Explains the marks that these rows have."""
    used = {mark for row in rows for mark in marks(row)}
    return ", ".join(f"{mark} {meaning}" for mark, meaning in MARKS.items() if mark in used)


COMMANDS = {"sizes": Command(
    __doc__, (
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
    ), run,
    (
        (
            "Large Allreduces, rank by rank",
            "hvprof-report sizes --call Allreduce --bytes 1M: --per-rank RUN",
        ),
        ("The ten sizes with the most time", "hvprof-report sizes --sort total --top 10 RUN"),
        ("Latency over message size", "hvprof-report sizes --plot sizes.png RUN"),
    ),
    ("calls", "latency"),
)}

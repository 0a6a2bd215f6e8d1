"""Time and volume of each call of MPI and NCCL.

One row per call, over all selected ranks: count, volume, total time, mean, percentiles, and its
share of the wall time of all ranks. Nonblocking calls return at once; for them a second row shows
the time from start to completion, and the overlap: the part of it that was spent neither in the
call that started it nor in Wait or Test. The volume of an operation is that of the call that starts
it; calls that complete operations have none ("-"). Unsuccessful polls (Test, Iprobe) are counted,
and shown apart.

NCCL's calls have tables of their own. On the host a call only puts an operation into a stream's
queue; the time of the operation on the device is known where the GPU was traced; operations that
share kernels are an ncclGroup; calls that went into CUDA graphs are counted apart.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..base import units
from ..calls.views import CALLS, Row, call_rows
from ..display import tables
from ..display.tables import Column
from ..plots import row_bars as plot
from ..summary.run_summary import of_nccl
from . import common

EXAMPLES = (
    ("Only collectives of rank 0", "hvprof-report calls --rank 0 --call Allreduce,Bcast RUN"),
    ("A picture of all", "hvprof-report calls --plot calls.svg RUN"),
)
SEE_ALSO = ("sizes", "summary")
COLUMNS = (
    Column("call", lambda row: row.call, False),
    Column("count", lambda row: units.count(row.count)),
    Column(
        "volume", lambda row: units.volume(own_volume(row)),
        exact=lambda row: units.count(own_volume(row)),
    ),
    Column("total", lambda row: units.duration(row.total_ns)),
    Column("of wall", lambda row: units.share(row.share_of_wall)),
    Column("mean", lambda row: units.duration(row.mean_ns)),
    Column("min", lambda row: units.duration(row.min_ns)),
    Column("p50", lambda row: units.duration(row.p50_ns)),
    Column("p95", lambda row: units.duration(row.p95_ns)),
    Column("p99", lambda row: units.duration(row.p99_ns)),
    Column("max", lambda row: units.duration(row.max_ns)),
)
RECEIVES = frozenset(
    f"{name}recv{end}" for name in ("MPI_", "MPI_I", "MPI_M", "MPI_Im", "nccl")
    for end in ("", "_init")
)
RECEIVES_NOTE = (
    "Bytes of messages count where they are sent: receives have no volume. `steps` has the sizes "
    "that they are posted for."
)
HOST_COLUMNS = (Column("NCCL call on the host", lambda row: row.call, False), *COLUMNS[1:])
DEVICE_COLUMNS = (
    Column("NCCL operation on the device", lambda row: row.call, False),
    Column("timed", lambda row: units.count(row.count)),
    *(column for column in COLUMNS[2:] if column.head != "of wall"),
)
CAPTURED_COLUMNS = (
    Column("NCCL call into a CUDA graph", lambda row: row.call, False),
    *(column for column in COLUMNS[1:] if column.head != "volume"),
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


OPTIONS = common.DRAWN_BY_MEMORY_KIND


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments)
    rows = call_rows(run.connection)
    if arguments.plot:
        shown = drawn(rows)
        calls = units.counted(sum(row.count for row in shown), "call")
        common.picture_save(
            arguments, run, plot, plot.of_calls(shown), calls, common.nothing_text(run)
        )
    common.answer(
        arguments, rows, CALLS.row._fields, lambda: print_text(rows),
        lambda: common.nothing_text(run),
    )


def own_volume(row: Row) -> int | None:
    """None: the call passes none to MPI. What completes operations has the bytes of the calls that
    started them; what receives has those of the sends."""
    return None if row.family == "completion" else row.volume_bytes or None


def print_text(rows: Sequence[Row]) -> None:
    polled = [row for row in rows if row.polls]
    blocks = [
        tables.text_table(columns, shown)
        for columns, shown in [*parts(rows), (POLL_COLUMNS, polled)] if shown
    ]
    print("\n\n".join([*blocks, *filter(None, [volume_note(rows)])]))


def volume_note(rows: Sequence[Row]) -> str:
    """Why receives have no volume."""
    receives = any(row.call in RECEIVES for row in rows)
    return RECEIVES_NOTE if receives else ""


def parts(rows: Sequence[Row]) -> list[tuple[Sequence[Column], list[Row]]]:
    """The tables with something in them: MPI's calls, what they started, and NCCL's calls and
    operations."""
    found = [
        (COLUMNS, [row for row in rows if row.library == "mpi"]),
        (COMPLETION_COLUMNS, [row for row in rows if row.completions]),
        (HOST_COLUMNS, of_nccl(rows, "call")),
        (DEVICE_COLUMNS, of_nccl(rows, "device")),
        (CAPTURED_COLUMNS, of_nccl(rows, "captured")),
    ]
    return [(columns, shown) for columns, shown in found if shown]


def drawn(rows: Sequence[Row]) -> list[Row]:
    """MPI's calls; where there are none but set-up, NCCL's operations, or its calls where nobody
    timed these."""
    mpi = [row for row in rows if row.library == "mpi"]
    if any(row.family != "setup" for row in mpi):
        return mpi
    return of_nccl(rows, "device") or of_nccl(rows, "call") or mpi

"""One row per call, over all selected ranks: count, volume, total time, mean, percentiles, and its
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
from ..base.field import Field, shown
from ..calls.views import CALL, CALLS, Row, of_nccl
from ..display import tables
from ..plots import row_bars as plot
from ..run.cells import view_rows
from . import Command, common

OF_SINGLE = "mean_ns min_ns p50_ns p95_ns p99_ns max_ns"
KEYS = f"count volume_bytes total_ns share_of_wall {OF_SINGLE}"
RECEIVES = frozenset(
    f"{name}recv{end}" for name in ("MPI_", "MPI_I", "MPI_M", "MPI_Im", "nccl")
    for end in ("", "_init")
)
RECEIVES_NOTE = (
    "Bytes of messages count where they are sent: receives have no volume. `steps` has the sizes "
    "that they are posted for."
)


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments)
    rows = view_rows(run.connection, CALLS)
    bars = drawn(rows)
    calls = units.counted(sum(row.count for row in bars), "call")
    common.answer(
        arguments, rows, CALL, lambda: print_text(rows), lambda: common.nothing_text(run),
        lambda: (run, plot, plot.of_calls(bars), calls),
    )


def print_text(rows: Sequence[Row]) -> None:
    polled = part("polling call", "count polls", [row for row in rows if row.polls])
    blocks = [tables.text_table(*each) for each in [*parts(rows), polled] if each[1]]
    print("\n\n".join([*blocks, *filter(None, [volume_note(rows)])]))


def volume_note(rows: Sequence[Row]) -> str:
    """Why receives have no volume."""
    receives = any(row.call in RECEIVES for row in rows)
    return RECEIVES_NOTE if receives else ""


def part(head: str, keys: str, rows: list[Row]) -> tuple[list[Field], list[Row]]:
    call, *others = shown(CALL, f"call {keys}")
    return [call._replace(head=head), *others], rows


def parts(rows: Sequence[Row]) -> list[tuple[list[Field], list[Row]]]:
    """The tables with something in them: MPI's calls, what they started, and NCCL's calls and
    operations."""
    found = (
        part("call", KEYS, [row for row in rows if row.library == "mpi"]),
        part(
            "nonblocking call", "completions completion_ns blocked_ns overlap",
            [row for row in rows if row.completions],
        ),
        part("NCCL call on the host", KEYS, of_nccl(rows, "call")),
        part(
            "NCCL operation on the device", f"count volume_bytes total_ns {OF_SINGLE}",
            of_nccl(rows, "device"),
        ),
        part(
            "NCCL call into a CUDA graph", f"count total_ns share_of_wall {OF_SINGLE}",
            of_nccl(rows, "captured"),
        ),
    )
    return [each for each in found if each[1]]


def drawn(rows: Sequence[Row]) -> list[Row]:
    """MPI's calls; where there are none but set-up, NCCL's operations, or its calls where nobody
    timed these."""
    mpi = [row for row in rows if row.library == "mpi"]
    if any(row.family != "setup" for row in mpi):
        return mpi
    return of_nccl(rows, "device") or of_nccl(rows, "call") or mpi


COMMANDS = {"calls": Command(
    __doc__, common.DRAWN_BY_MEMORY_KIND, run,
    (
        ("Only collectives of rank 0", "hvprof-report calls --rank 0 --call Allreduce,Bcast RUN"),
        ("A picture of all", "hvprof-report calls --plot calls.svg RUN"),
    ),
    ("sizes", "summary"),
)}

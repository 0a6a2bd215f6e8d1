"""How evenly time is spread over the ranks.

For each call the least, mean and most time that a rank spent in it, and which rank. Then for each
rank its wall time, the time inside MPI of its thread with the most, what it sent, how much of the
time it was on a core and how much it waited for one, and how it ended.
NCCL's calls on the host and its operations on the device are apart. How long ranks waited for each
other is in hvprof-report late. --json and --csv give the table of calls, with --per-rank that of
ranks.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..base import units
from ..base.options import option
from ..calls.by_rank import rank_rows
from ..calls.views import RANK_CALLS, Row, rank_call_rows, rank_time_rows
from ..display import tables
from ..display.tables import Column, volume_column
from ..plots import stacks as plot
from ..stuck import doing
from ..summary.run_summary import of_nccl
from . import common

EXAMPLES = (
    ("The time of each rank in Allreduce", "hvprof-report ranks --call Allreduce RUN"),
    ("All ranks for a spreadsheet", "hvprof-report ranks --per-rank --csv RUN"),
)
SEE_ALSO = ("late", "summary")
MOST_ROWS = 64
CALL_COLUMNS = (
    Column("call", lambda row: row.call, False),
    Column("ranks", lambda row: units.count(row.ranks)),
    Column("count", lambda row: units.count(row.count)),
    Column("least", lambda row: units.duration(row.min_total_ns)),
    Column("least rank", lambda row: str(row.min_rank)),
    Column("mean", lambda row: units.duration(row.mean_total_ns)),
    Column("most", lambda row: units.duration(row.max_total_ns)),
    Column("most rank", lambda row: str(row.max_rank)),
    Column("most/mean", lambda row: f"{row.imbalance or 0:.2f}"),
)
HOST_COLUMNS = (Column("NCCL call on the host", lambda row: row.call, False), *CALL_COLUMNS[1:])
DEVICE_COLUMNS = (
    Column("NCCL operation on the device", lambda row: row.call, False), *CALL_COLUMNS[1:],
)
RANK_COLUMNS = (
    Column("rank", lambda row: str(row.rank)),
    Column("host", lambda row: units.shortened(row.host or "", 20), False),
    Column("wall", lambda row: ("~" if row.wall_is_estimate else "") + units.duration(row.wall_ns)),
    Column("in MPI", lambda row: units.duration(row.mpi_ns)),
    Column("MPI share", lambda row: units.share(row.mpi_share)),
    Column("thread", lambda row: thread_of(row), False),
    Column("calls", lambda row: units.count(row.count)),
    volume_column("volume", "volume_bytes"),
    Column("end", lambda row: how_ended(row), False),
)
CORE_COLUMNS = (
    Column("on a core", lambda row: units.share(row.core_share)),
    Column("waits for one", lambda row: units.share(row.core_wait_share)),
)
NCCL_COLUMNS = (
    Column("NCCL calls", lambda row: units.count(row.nccl_count)),
    Column("on host", lambda row: units.duration(row.nccl_host_ns)),
    Column("on device", lambda row: units.duration(row.nccl_device_ns)),
)

NO_SETUP = "call but those that set MPI up"


OPTIONS = (
    *common.DRAWN,
    option("--per-rank", action="store_true", help="only the table of ranks"),
)


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, with_histograms=False)
    connection = run.connection
    if arguments.plot:
        times = rank_time_rows(connection)
        noun = "operation" if times and times[0].measure == "device" else "call"
        drawn = (
            f"{units.counted(sum(row.count for row in times), noun)} on "
            f"{units.counted(len({row.rank for row in times}), 'rank')}"
        )
        common.picture_save(
            arguments, run, plot, plot.of_ranks(times), drawn, common.nothing_text(run, NO_SETUP)
        )
    if tables.is_for_scripts(arguments) and arguments.per_rank:
        rows = rank_rows(connection)
        tables.write_rows(arguments, rows, rows[0]._fields)
    elif tables.is_for_scripts(arguments):
        tables.write_rows(arguments, rank_call_rows(connection), RANK_CALLS.row._fields)
    else:
        print_text(rank_call_rows(connection), rank_rows(connection), arguments.per_rank)


def print_text(calls: list[Row], ranks: list[Row], per_rank_only: bool) -> None:
    for columns, shown in () if per_rank_only else parts(calls):
        print(tables.text_table(columns, shown) + "\n")
    more = " ranks; --per-rank --csv has them all."
    print(tables.first_rows(rank_columns(ranks), ranks, MOST_ROWS, more))


def parts(calls: Sequence[Row]) -> list[tuple[Sequence[Column], list[Row]]]:
    """The tables with something in them. Operations that went into graphs are in --json."""
    mpi = [row for row in calls if row.library == "mpi"]
    found: list[tuple[Sequence[Column], list[Row]]] = [
        (CALL_COLUMNS, mpi),
        (HOST_COLUMNS, of_nccl(calls, "call")),
        (DEVICE_COLUMNS, of_nccl(calls, "device")),
    ]
    return [(columns, shown) for columns, shown in found if shown]


def rank_columns(ranks: Sequence[Row]) -> tuple[Column, ...]:
    core = CORE_COLUMNS if any(row.core_wait_share is not None for row in ranks) else ()
    is_nccl = any(row.nccl_count or row.nccl_device_ns for row in ranks)
    nccl = NCCL_COLUMNS if is_nccl else ()
    return (*RANK_COLUMNS[:-1], *core, *nccl, RANK_COLUMNS[-1])


def thread_of(row: Row) -> str:
    return "main" if row.mpi_thread_is_main else units.shortened(row.mpi_thread or "another", 15)


def how_ended(row: Row) -> str:
    """And where, unless it came to its end."""
    state = {
        "exit": "exit without MPI_Finalize", "abort": f"MPI_Abort({row.abort_code})",
        "killed": "killed or left", "running or killed": "alive or ended",
    }.get(row.state, row.state)
    return (
        state if row.state in ("finalize", "end")
        else f"{state}, {units.shortened(doing.place_text(row), 64)}"
    )

"""For each call the least, mean and most time that a rank spent in it, and which rank. Then for each
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
from ..base.field import Field, shown, telling
from ..base.options import option
from ..calls.by_rank import RANK, rank_rows
from ..calls.views import RANK_CALL, RANK_CALLS, RANK_TIMES, Row, of_nccl
from ..display import tables
from ..plots import stacks as plot
from ..run.cells import view_rows
from ..stuck import doing
from . import Command, common

MOST_ROWS = 64
NO_SETUP = "call but those that set MPI up"


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, with_histograms=False)
    ranks, calls = rank_rows(run.connection), view_rows(run.connection, RANK_CALLS)

    def draw() -> tuple:
        times = view_rows(run.connection, RANK_TIMES)
        noun = "operation" if times and times[0].measure == "device" else "call"
        drawn = (
            f"{units.counted(sum(row.count for row in times), noun)} on "
            f"{units.counted(len({row.rank for row in times}), 'rank')}"
        )
        return run, plot, plot.of_ranks(times), drawn

    common.answer(
        arguments, *((ranks, RANK) if arguments.per_rank else (calls, RANK_CALL)),
        lambda: print_text([] if arguments.per_rank else calls, ranks), draw=draw,
        why_none=lambda: common.nothing_text(run, NO_SETUP),
    )


def print_text(calls: list[Row], ranks: list[Row]) -> None:
    for columns, rows in parts(calls):
        print(tables.text_table(columns, rows) + "\n")
    more = " ranks; --per-rank --csv has them all."
    print(tables.first_rows(rank_columns(ranks), ranks, MOST_ROWS, more))


def parts(calls: Sequence[Row]) -> list[tuple[list[Field], list[Row]]]:
    """The tables with something in them. Operations that went into graphs are in --json."""
    call, *others = shown(RANK_CALL)
    found = (
        ("call", [row for row in calls if row.library == "mpi"]),
        ("NCCL call on the host", of_nccl(calls, "call")),
        ("NCCL operation on the device", of_nccl(calls, "device")),
    )
    return [([call._replace(head=head), *others], rows) for head, rows in found if rows]


def rank_columns(ranks: Sequence[Row]) -> list[Field]:
    fields = shown(
        RANK,
        "rank host wall_ns mpi_ns mpi_share mpi_thread count volume_bytes core_share "
        "core_wait_share nccl_count nccl_host_ns nccl_device_ns",
    )
    end = Field("state", "", "end", is_number=False, of_row=how_ended)
    return [
        *telling(
            fields, ranks, "core_share core_wait_share", "nccl_count nccl_host_ns nccl_device_ns"
        ),
        end,
    ]


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


COMMANDS = {"ranks": Command(
    __doc__, (
        *common.DRAWN,
        option("--per-rank", action="store_true", help="only the table of ranks"),
    ), run,
    (
        ("The time of each rank in Allreduce", "hvprof-report ranks --call Allreduce RUN"),
        ("All ranks for a spreadsheet", "hvprof-report ranks --per-rank --csv RUN"),
    ),
    ("late", "summary"),
)}

"""Shows in which part of the program the time inside MPI is spent, and where NCCL's calls are made. A
program names its regions with commprof.h, MPI_Pcontrol or NVTX: see commprof_step(3).

The first line names the region with the most time, without regions inside it. Then one row per
region, with everything inside it, the one with the most time first: calls, volume, the time inside
MPI as a mean over the selected ranks and as a share of wall time, the part of it outside inner
regions ("by itself"), the rank with the most, and the call with the most. A call counts in the
innermost region of its thread. MPI_Init and MPI_Finalize are left out. Then how often a rank was in
the region and for how long, whatever it did there, as means: of a region in which the main thread
waits for a framework's thread, which makes the calls, this is the exposed communication. Visits are
known of the time in which calls are sampled. --plot draws the times inside MPI, and
those of NCCL on the device.
"""

from __future__ import annotations

import argparse

from ..base import units
from ..base.attempt import attempt
from ..base.field import Field, shown, telling
from ..base.query import Row
from ..base.thresholds import threshold
from ..calls.by_region import OUTSIDE, REGION
from ..display import tables
from ..late.sentences import least_factor_text
from ..late.stages import RegionWorkRow, region_rows, split, working_of
from ..plots import row_bars as plot
from ..run.alignment import align
from ..run.holes import together_share
from ..run.run import Run
from ..run.selection import Selection
from ..run.unseen import unseen_calls_text
from . import Command, common

ALL = threshold("base.all")
NONE = (
    "this run has no regions; a program names them with commprof.h, MPI_Pcontrol or NVTX: see "
    "commprof_step(3)"
)
COLUMNS = (
    *shown(
        REGION,
        "region count volume_bytes mean_ns share_of_wall own_mean_ns max_ns max_rank nccl_count "
        "nccl_host_ns nccl_device_ns top_call visits span_mean_ns span_max_ns span_max_rank",
    ),
    Field("parallel_efficiency", "", "efficiency", units.share),
    Field("serialization", "", "least factor", is_number=False, of_row=least_factor_text),
)


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, with_histograms=False, with_samples=True)
    alignment = align(run.connection)
    rows = region_rows(
        run.connection, alignment,
        lambda: attempt(
            "Efficiency", lambda: working_of(run.connection, alignment, split(run, alignment))
        ),
    )
    drawn = units.counted(sum(bool(row.region) for row in rows), "region")
    common.answer(
        arguments, rows, RegionWorkRow._fields, lambda: print_text(run, rows),
        lambda: why_none(run, rows), lambda: (run, plot, picture(run, rows), drawn),
    )


def print_text(run: Selection, rows: list[Row]) -> None:
    if not has_regions(run):
        print(why_none(run, rows))
    else:
        common.print_line(headline(rows))
        print("\n" + tables.text_table(columns_of(rows), rows))
        common.print_lines(what_is_missing(run, rows))


def picture(run: Run, rows: list[Row]) -> plot.Picture | None:
    """In the order of the rows."""
    own, within = (
        [row.own_mean_ns for row in rows], [row.mean_ns - row.own_mean_ns for row in rows],
    )
    device_ns = [row.nccl_device_ns for row in rows]
    panels = []
    if any(own):
        parts = [
            plot.Part("by itself", plot.KINDS[0], own),
            plot.Part("in regions inside it", plot.KINDS[4], within),
        ]
        panels.append(plot.Panel("time inside MPI, mean of the ranks", "time", parts))
    if any(device_ns):
        on_device = plot.Part("NCCL", plot.KINDS[2], device_ns)
        panels.append(plot.Panel("NCCL on the device, all ranks", "time", [on_device]))
    if not panels or not has_regions(run):
        return None
    return plot.Picture("Time by region", [row.region or OUTSIDE for row in rows], panels)


def why_none(run: Selection, rows: list[Row]) -> str:
    if not has_regions(run):
        return NONE + common.but_unseen(unseen_calls_text(run.connection))
    return headline(rows) if rows else common.nothing_text(run)


def has_regions(run: Run) -> bool:
    return (
        run.connection.execute("SELECT count(*) FROM region_of WHERE region > 0").fetchone()[0] > 0
    )


def columns_of(rows: list[Row]) -> list[Field]:
    return telling(
        COLUMNS, rows, "nccl_count nccl_host_ns nccl_device_ns",
        "visits span_mean_ns span_max_ns span_max_rank", "parallel_efficiency serialization",
    )


def headline(rows: list[Row]) -> str:
    """The region with the most time, without the regions within it."""
    inside = [row for row in rows if row.region]
    if not any(row.count or row.nccl_count for row in inside):
        most = max(inside, key=lambda row: row.span_ns, default=None)
        if most is None:
            return "No region of this selection was visited"
        return (
            f"No MPI call is made in a region; the longest is {most.region}: "
            f"{units.duration(most.span_mean_ns)} per rank in"
            f" {units.counted(round(most.visits / most.ranks), 'visit')}"
        )
    if not any(row.count for row in rows):
        most = max(rows, key=lambda row: (row.nccl_device_ns, row.nccl_host_ns))
        where = f"in {most.region}" if most.region else "outside all regions"
        return (
            f"No call of MPI was counted; most of NCCL's time is {where}, with the regions within"
        )
    most = max(rows, key=lambda row: row.own_ns)
    total_ns = sum(row.own_ns for row in rows)
    where = f"in {most.region}" if most.region else "outside all regions"
    share = units.share(most.own_ns / total_ns) if total_ns else units.NO_VALUE
    return (
        f"Most time inside MPI is spent {where}: {units.duration(most.own_mean_ns)} per rank, "
        f"{share} of the time inside MPI,"
        f" {units.share(most.own_share_of_wall)} of wall time"
    )


def what_is_missing(run: Run, rows: list[Row]) -> list[str]:
    lines = []
    folded = sum(row.folded_count for row in rows if not row.region)
    if folded:
        lines.append(
            f"{units.counted(folded, 'call')} of folded sizes may belong to any region; they stand "
            "outside all regions"
        )
    share = together_share(run.connection)
    if share < ALL and any(row.visits for row in rows):
        sampled = f"the {units.share(share)} of the main threads' time in which calls are sampled"
        lines.append(f"visits and the time in regions are those of {sampled}")
    refused = run.connection.execute(
        "SELECT value FROM fact WHERE key = 'region_refused' ORDER BY world_rank LIMIT 1"
    ).fetchone()
    if refused:
        lines.append(
            f"regions from {refused[0]} on were too many, too long or too deep; each is counted in "
            "its parent"
        )
    return lines


COMMANDS = {"regions": Command(
    __doc__, common.DRAWN, run,
    (
        (
            "The communication of the backward pass, call by call",
            "hvprof-report calls --region backward RUN",
        ),
    ),
    ("calls", "steps"),
)}

"""The commands about parts of a run: communicators, regions, stages of pipelines."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from statistics import fmean

from ..base import column, Field, gathered, present, Row, shown, telling, units
from ..calls.parts import REGION
from ..display import render
from ..late import ALL, Late, RegionWorkRow, least_factor_text, region_rows
from ..roles import roles
from ..roles.world import Star, World
from ..run import Alignment, Run, Selection, together_share, unseen_calls_text
from . import Command, common


def communicators(known: common.Analysed, arguments: argparse.Namespace) -> common.Answer:
    """One row per communicator, the same on all its ranks: the label that other commands show and
    take with --communicator, its size and world ranks, the call that created it and its parent,
    what it is used for as far as that can be recognized (the world, replicas, tensor-parallel
    groups, pipeline neighbours, a master or server with its workers, control, I/O), and its
    traffic. A name that says what it is for (data, tensor, dp, tp), set with MPI_Comm_set_name,
    decides between replicas and tensor-parallel groups; otherwise the sampled calls do. Time is
    that of the calls on the host; NCCL's operations on the device are apart. Members of NCCL's
    communicators are known as far as their ranks were read."""
    rows = roles.communicator_rows(known.connection, known.named(roles.roles))
    fields = shown(
        roles.COMMUNICATOR,
        "communicator size members role constructor parent count volume_bytes total_ns device_ns "
        "top_call identity",
    )
    return common.Answer(
        rows,
        roles.COMMUNICATOR,
        lambda: [common.Rows(telling(fields, rows, "device_ns"), rows)],
        nothing=lambda: "this run has no communicator that fits the filters",
    )


NONE = (
    "this run has no regions; a program names them with commprof.h, MPI_Pcontrol or NVTX: see "
    "commprof_step(3)"
)


def regions(
    known: common.Analysed, arguments: argparse.Namespace, alignment: Alignment
) -> common.Answer:
    """Shows in which part of the program the time inside MPI is spent, and where NCCL's calls are
    made. A program names its regions with commprof.h, MPI_Pcontrol or NVTX: see commprof_step(3).

    The first line names the region with the most time, without regions inside it. Then one row per
    region, with everything inside it, the one with the most time first: calls, volume, the time
    inside MPI as a mean over the selected ranks and as a share of wall time, the part of it outside
    inner regions ("by itself"), the rank with the most, and the call with the most. A call counts
    in the innermost region of its thread. MPI_Init and MPI_Finalize are left out. Then how often a
    rank was in the region and for how long, whatever it did there, as means: of a region in which
    the main thread waits for a framework's thread, which makes the calls, this is the exposed
    communication. Visits are known of the time in which calls are sampled."""
    rows = region_rows(
        known.connection, alignment, lambda: known.waits.working if known.waits else None
    )
    nothing = partial(why_no_region, known.run, rows)
    columns = telling(
        (
            *shown(
                REGION,
                "region count volume_bytes mean_ns share_of_wall own_mean_ns max_ns max_rank "
                "nccl_count nccl_host_ns nccl_device_ns top_call visits span_mean_ns span_max_ns "
                "span_max_rank",
            ),
            Field("parallel_efficiency", "", "efficiency", units.share),
            Field("serialization", "", "least factor", is_number=False, of_row=least_factor_text),
        ),
        rows,
        "nccl_count nccl_host_ns nccl_device_ns",
        "visits span_mean_ns span_max_ns span_max_rank",
        "parallel_efficiency serialization",
    )
    return common.Answer(
        rows,
        RegionWorkRow._fields,
        lambda: (
            [headline(rows), [common.Rows(columns, rows), *gaps(known.run, rows)]]
            if has_regions(known.run)
            else [common.Hint(nothing())]
        ),
        nothing=nothing,
    )


def why_no_region(run: Selection, rows: Sequence[Row]) -> str:
    if not has_regions(run):
        return NONE + common.but_unseen(unseen_calls_text(run.connection))
    return headline(rows) if rows else common.nothing_text(run)


def has_regions(run: Run) -> bool:
    return (
        run.connection.execute("SELECT count(*) FROM region_of WHERE region > 0").fetchone()[0] > 0
    )


def headline(rows: Sequence[Row]) -> str:
    """The region with the most time, without the regions within it."""
    inside = [row for row in rows if row.region]
    if not any(row.count or row.nccl_count for row in inside):
        longest = max(inside, key=lambda row: row.span_ns, default=None)
        return (
            (
                f"No MPI call is made in a region; the longest is {longest.region}: "
                f"{units.duration(longest.span_mean_ns)} per rank in"
                f" {units.counted(round(longest.visits / longest.ranks), 'visit')}"
            )
            if longest
            else "No region of this selection was visited"
        )
    most = max(rows, key=lambda row: (row.own_ns, row.nccl_device_ns, row.nccl_host_ns))
    where = f"in {most.region}" if most.region else "outside all regions"
    total_ns = sum(row.own_ns for row in rows)
    if not total_ns:
        return (
            f"No call of MPI was counted; most of NCCL's time is {where}, with the regions within"
        )
    return (
        f"Most time inside MPI is spent {where}: {units.duration(most.own_mean_ns)} per rank, "
        f"{units.share(most.own_ns / total_ns)} of the time inside MPI,"
        f" {units.share(most.own_share_of_wall)} of wall time"
    )


def gaps(run: Run, rows: Sequence[Row]) -> list[str]:
    """The facts that the rows do not have."""
    folded = sum(row.folded_count for row in rows if not row.region)
    share = together_share(run.connection)
    refused = run.connection.execute(
        "SELECT value FROM fact WHERE key = 'region_refused' ORDER BY world_rank LIMIT 1"
    ).fetchone()
    said = {
        f"{units.counted(folded, 'call')} of folded sizes may belong to any region; they stand "
        "outside all regions": folded,
        "visits and the time in regions are those of the "
        f"{units.share(share)} of the main threads' time in which calls are sampled": share < ALL
        and any(row.visits for row in rows),
        f"regions from {refused and refused[0]} on were too many, too long or too deep; each is "
        "counted in its parent": refused,
    }
    return [text for text, is_so in said.items() if is_so]


MOST_PIPELINES = 32
MOST_RANKS = 40  # characters
NO_PIPELINES = {  # by the shape of the graph of messages
    "webs": "exchange messages, but not along a line: that is no pipeline",
    "exchanges": "exchange messages with their neighbours in a line, but do not pass them on: that "
    "is no pipeline",
}
STAGE_COLUMNS = (
    column("pipeline", lambda row: str(row.pipeline)),
    column("stage", lambda row: str(row.stage)),
    column("rank", lambda row: str(row.rank)),
    column("outside MPI", lambda row: units.share(row.outside_share)),
    column("waits", lambda row: units.duration(row.wait_ns)),
    column("bubble", lambda row: units.share(row.bubble_share)),
    Field("forward_bytes", "", "forward"),
    Field("backward_bytes", "", "backward"),
    column("replicas on", lambda row: units.shortened(row.replica_communicator or "", 32), False),
    column("", lambda row: "<- waited for" if row.is_waited_for else " ", False),
)


def pipeline(
    known: common.Analysed, arguments: argparse.Namespace, world: World, waits: Late
) -> common.Answer:
    """Recognizes pipelines by who sends to whom: ranks that pass bulk messages to fixed neighbours,
    in a line. The first lines name them, and the stage for which the others wait: the one that is
    outside MPI for longer, while they wait. A row per stage shows how long it waits for other ranks
    in messages and collectives, as `late` has it, the share of that in the counted time (the
    bubble), the share of time outside MPI, and the volume sent forward and backward. If less than
    half of the time inside MPI can be split into waiting and transfer, no stage is called slow, and
    none that `late` does not name, unless several pipelines have more slow stages than it names.

    Pipelines whose stages reduce their gradients on common communicators are replicas of each
    other. Ranks in a line that send to their neighbours before they have received, as jobs that
    exchange borders do, are no pipeline; if calls were not sampled, they look like one. A rank that
    exchanges messages with all others of a group, which exchange none with each other, is named as
    their master or parameter server: traffic does not show which. NCCL's messages wait on the
    device: for a pipeline that uses them the volume is shown, not who waits."""
    found = roles.pipelines(world, roles.stage_times(known.connection), waits)
    stages = [row for rows in by_pipeline(found)[:MOST_PIPELINES] for row in rows]
    more = len(by_pipeline(found)) - MOST_PIPELINES
    left = common.Hint(f"... and {more:,} more pipelines; --csv has them all." if more > 0 else "")
    return common.Answer(
        found.rows,
        roles.StageRow._fields,
        lambda: [
            verdict(found, unseen_calls_text(known.connection)),
            [common.Rows(STAGE_COLUMNS, stages), left],
        ],
        nothing=str,
    )


def by_pipeline(found: roles.Pipelines) -> list[list[roles.StageRow]]:
    return list(gathered((row.pipeline, row) for row in found.rows).values())


def verdict(found: roles.Pipelines, unseen: str = "") -> list[str]:
    """Sentences to print first."""
    graph, pipelines = found.graph, by_pipeline(found)
    said = [
        f"Ranks {units.shortened(units.rank_list(ranks), MOST_RANKS)} {what_they_do}."
        for shape, what_they_do in NO_PIPELINES.items()
        for ranks in getattr(graph, shape)
    ]
    said += map(star_text, graph.stars)
    if not found.rows:
        pairs = f"{units.counted(graph.pairs, 'pair')} of ranks" if graph.pairs else "no ranks"
        return [*said, f"No pipeline: {pairs} exchange bulk messages{common.but_unseen(unseen)}."]
    are_replicas = all(rows[0].replicas == len(pipelines) > 1 for rows in pipelines)
    number = units.counted(len(pipelines), "pipeline")
    said += [f"{number}{', replicas of each other' if are_replicas else ''}."]
    for rows in pipelines[:MOST_PIPELINES]:
        ranks = units.shortened(" > ".join(str(row.rank) for row in rows), MOST_RANKS)
        said.append(f"{rows[0].pipeline}: ranks {ranks}; {waiting_text(rows)}.")
    way = "As much goes either way, so the end with the lower rank is taken for the first stage."
    return said if all(row.is_direction_known for row in found.rows) else [*said, way]


def star_text(star: Star) -> str:
    """Rank 0 serves ranks 1-3 as a master or parameter server: they exchange messages with it, and
    none with each other."""
    servers, others = (units.rank_names(ranks, MOST_RANKS) for ranks in (star.servers, star.others))
    number = len(star.servers)
    if star.has_workers:
        return (
            f"{units.capital(servers)} {units.agreeing('serve', number)} {others} as "
            f"{'a master or parameter server' if number == 1 else 'masters or parameter servers'}: "
            f"these exchange messages with {units.agreeing('them', number)}, and none with each "
            "other."
        )
    verb, word = ("send", "to") if star.sent_bytes else ("receive", "from")
    return (
        f"{units.capital(servers)} {units.agreeing(verb, number)} messages {word} {others}, which "
        "exchange none with each other."
    )


def waiting_text(rows: Sequence[Row]) -> str:
    """The others wait for stage 1 (rank 1): it waits 2.0 % of the time, they 61.2 %."""
    if any(row.has_nccl for row in rows):
        return "NCCL's messages wait on the device: who waits for whom is not known"
    if any(row.outside_share is None for row in rows):
        return "not all of its ranks were read"
    if any(row.bubble_share is None for row in rows):
        covered = units.share(rows[0].coverage)
        return (
            f"which stage is slow is not known: only {covered} of the time inside MPI is in "
            "calls whose waiting is known"
        )
    slow = next((row for row in rows if row.is_waited_for), None)
    if slow is None:
        coverage = rows[0].coverage
        known = (
            "" if coverage >= ALL else f" (based on {units.share(coverage)} of the time inside MPI)"
        )
        waits = units.share(fmean(present(row.bubble_share) for row in rows))
        return f"no stage is notably waited for; {waits} of the time is waiting{known}"
    others = units.share(fmean(row.bubble_share for row in rows if row is not slow))
    return (
        f"the others wait for stage {slow.stage} (rank {slow.rank}): it waits "
        f"{units.share(slow.bubble_share)} of the time, they {others}"
    )


COMMANDS = {
    "communicators": Command(
        communicators.__doc__,
        common.BY_MEMORY_KIND,
        common.View(communicators, common.SAMPLES),
        (("The traffic of each communicator", "hvprof-report communicators RUN"),),
        ("ranks", "sizes"),
    ),
    "regions": Command(
        regions.__doc__,
        common.SELECTED,
        common.View(regions, common.SAMPLES, ("alignment",)),
        (
            (
                "The communication of the backward pass, call by call",
                "hvprof-report calls --region backward RUN",
            ),
        ),
        ("calls", "steps"),
    ),
    "pipeline": Command(
        pipeline.__doc__,
        (*common.RUN, *render.ROWS),
        common.View(pipeline, common.SAMPLES, ("world", "waits")),
        (("The bubble of each stage", "hvprof-report pipeline RUN"),),
        ("communicators", "peers"),
    ),
}

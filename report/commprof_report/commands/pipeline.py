"""Recognizes pipelines by who sends to whom: ranks that pass bulk messages to fixed neighbours, in a
line. The first lines name them, and the stage for which the others wait: the one that is outside
MPI for longer, while they wait. A row per stage shows how long it waits for other ranks in messages
and collectives, as `late` has it, the share of that in the counted time (the bubble), the share of
time outside MPI, and the volume sent forward and backward. If less than half of the time inside MPI
can be split into waiting and transfer, no stage is called slow, and none that `late` does not name,
unless several pipelines have more slow stages than it names.

Pipelines whose stages reduce their gradients on common communicators are replicas of each other.
Ranks in a line that send to their neighbours before they have received, as jobs that
exchange borders do, are no pipeline; if calls were not sampled, they look like one. A rank that
exchanges messages with all others of a group, which exchange none with each other, is named as
their master or parameter server: traffic does not show which. NCCL's messages wait on the device:
for a pipeline that uses them the volume is shown, not who waits. --plot draws what
the stages do in the counted time.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from statistics import fmean

from ..base import units
from ..base.gather import gathered
from ..base.present import present
from ..base.query import Row
from ..display import page, tables
from ..display.tables import Column, volume_column
from ..late.late_ranks import Late, late
from ..late.sentences import ALL
from ..plots import row_bars as plot
from ..roles import pipelines
from ..roles.message_graph import Star
from ..roles.pipelines import Pipelines, StageRow
from ..roles.world import World, world_of
from ..run.alignment import align
from ..run.run import Run
from ..run.unseen import unseen_calls_text
from . import Command, common

MOST_PIPELINES = 32
MOST_RANKS = 40  # characters
NO_PIPELINES = {  # by the shape of the graph of messages
    "rings": "pass messages in a ring: no first and no last stage can be told",
    "webs": "exchange messages, but not along a line: that is no pipeline",
    "exchanges": "exchange messages with their neighbours in a line, but do not pass them on: that "
    "is no pipeline",
}
COLUMNS = (
    Column("pipeline", lambda row: str(row.pipeline)),
    Column("stage", lambda row: str(row.stage)),
    Column("rank", lambda row: str(row.rank)),
    Column("outside MPI", lambda row: units.share(row.outside_share)),
    Column("waits", lambda row: units.duration(row.wait_ns)),
    Column("bubble", lambda row: units.share(row.bubble_share)),
    volume_column("forward", "forward_bytes"),
    volume_column("backward", "backward_bytes"),
    Column("replicas on", lambda row: units.shortened(row.replica_communicator or "", 32), False),
    Column("", lambda row: "<- waited for" if row.is_waited_for else " ", False),
)


def run(arguments: argparse.Namespace) -> None:
    run = common.open_whole(arguments, with_histograms=False, with_samples=True)
    found = pipelines_of(run, world_of(run.connection), late(run, align(run.connection)))
    unseen = unseen_calls_text(run.connection)
    if arguments.plot:
        drawn = units.counted(len(found.rows), "stage")
        common.picture_save(arguments, run, plot, picture(found), drawn, why_none(found, unseen))
    common.answer(
        arguments, found.rows, StageRow._fields,
        lambda: common.print_lines(lines(found, unseen)),
    )


def picture(found: Pipelines) -> plot.Picture | None:
    """The counted time of each stage whose times are known, by what it does."""
    rows = [
        row for row in found.rows
        if row.bubble_share is not None and row.outside_share is not None and not row.has_nccl
    ]
    if not rows:
        return None
    waits, outside = (
        [present(getattr(row, key)) for row in rows] for key in ("bubble_share", "outside_share")
    )
    in_mpi = [max(0.0, 1 - each - wait) for each, wait in zip(outside, waits)]
    several = len({row.pipeline for row in rows}) > 1
    names = [
        (f"{row.pipeline}, " if several else "") + f"stage {row.stage} (rank {row.rank})"
        for row in rows
    ]
    parts = [
        plot.Part("outside MPI", plot.OUTSIDE, outside),
        plot.Part("in MPI, not waiting", plot.IN_MPI, in_mpi),
        plot.Part("waiting for other ranks", plot.WAITING, waits),
    ]
    notes = [
        f"waits {units.share(wait)}" + (", waited for" if row.is_waited_for else "")
        for row, wait in zip(rows, waits)
    ]
    panel = plot.Panel("share of the counted time", "share", parts, notes)
    return plot.Picture("Stages of pipelines", names, [panel])


def why_none(found: Pipelines, unseen: str) -> str:
    return waiting_text(found.rows) if found.rows else [*verdict(found, unseen)][-1]


def pipelines_of(run: Run, world: World, split: Late) -> Pipelines:
    return pipelines.pipelines(world, pipelines.stage_times(run.connection), split)


def lines(found: Pipelines, unseen: str = "") -> Iterator[str]:
    yield from verdict(found, unseen)
    shown = by_pipeline(found)[:MOST_PIPELINES]
    if shown:
        yield ""
        yield from tables.text_table(COLUMNS, [row for rows in shown for row in rows]).splitlines()
    if len(by_pipeline(found)) > len(shown):
        yield (
            f"... and {len(by_pipeline(found)) - len(shown):,} more pipelines; --csv has them all."
        )


def by_pipeline(found: Pipelines) -> list[list[StageRow]]:
    return list(gathered((row.pipeline, row) for row in found.rows).values())


def verdict(found: Pipelines, unseen: str = "") -> Iterator[str]:
    """Sentences to print first."""
    for shape, what_they_do in NO_PIPELINES.items():
        for ranks in getattr(found.graph, shape):
            yield f"Ranks {ranks_text(ranks)} {what_they_do}."
    for star in found.graph.stars:
        yield star_text(star)
    if not found.rows:
        pairs = (
            f"{units.counted(found.graph.pairs, 'pair')} of ranks" if found.graph.pairs
            else "no ranks"
        )
        yield f"No pipeline: {pairs} exchange bulk messages{common.but_unseen(unseen)}."
        return
    pipelines = by_pipeline(found)
    yield f"{units.counted(len(pipelines), 'pipeline')}{replicas_text(pipelines)}."
    for rows in pipelines[:MOST_PIPELINES]:
        yield f"{rows[0].pipeline}: ranks {arrow_text(rows)}; {waiting_text(rows)}."
    if not all(row.is_direction_known for row in found.rows):
        yield (
            "As much goes either way, so the end with the lower rank is taken for the first stage."
        )


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


def replicas_text(pipelines: Sequence[Sequence[Row]]) -> str:
    if all(rows[0].replicas == len(pipelines) > 1 for rows in pipelines):
        return ", replicas of each other"
    return ""


def arrow_text(rows: Sequence[Row]) -> str:
    return units.shortened(" > ".join(str(row.rank) for row in rows), MOST_RANKS)


def ranks_text(ranks: Sequence[int]) -> str:
    return units.shortened(units.rank_list(ranks), MOST_RANKS)


def waiting_text(rows: Sequence[Row]) -> str:
    """The others wait for stage 1 (rank 1): it is outside MPI 90 % of the time and waits
    2.0 %, they 30 % and 61.2 %."""
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
    others = [row for row in rows if row is not slow]
    outside, waits = (
        units.share(fmean(getattr(row, key) for row in others))
        for key in ("outside_share", "bubble_share")
    )
    own = (
        f"outside MPI {units.share(slow.outside_share)} of the time and waits "
        f"{units.share(slow.bubble_share)}"
    )
    return (
        f"the others wait for stage {slow.stage} (rank {slow.rank}): it is {own}, they "
        f"{outside} and {waits}"
    )


def pipeline_section(run: Run, world: World, split: Late) -> str:
    found = pipelines_of(run, world, split)
    if not found.rows:
        said = [star_text(star) for star in found.graph.stars]
        return page.section("Messages", "", page.bullets(said)) if said else ""
    shown = [row for rows in by_pipeline(found)[:MOST_PIPELINES] for row in rows]
    sentence = "The bubble is the waiting for other ranks over the counted time."
    return page.section(
        "Pipelines", sentence, page.bullets(verdict(found)), page.table(COLUMNS, shown)
    )


COMMANDS = {"pipeline": Command(
    __doc__, (*common.RUN, *tables.ROWS, common.PLOT), run,
    (("The bubble of each stage", "hvprof-report pipeline RUN"),),
    ("communicators", "peers"),
)}

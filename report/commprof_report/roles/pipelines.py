"""The pipelines of a run: their stages, the messages between these, and which stage the others wait
for."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Collection, Iterable, Sequence
from sqlite3 import Connection
from statistics import fmean
from typing import NamedTuple

from ..base import Row, query, row_type, threshold
from ..base.field import Field
from ..late.late_ranks import Late
from ..late.verdict import COVERED, MAJORITY, nameable
from . import roles
from .world import Chain, Group, World

SQL = query.beside(__file__)

NOTABLE = threshold("roles.slow-stage")


# A rank's times; stage_times.sql.
StageTimesRow = namedtuple("StageTimesRow", "rank counted_ns inside_ns outside_ns has_nccl")


class Stage(NamedTuple):
    """Times of a stage's rank, and how much of its time inside MPI was split."""

    times: Row
    wait_ns: int
    split_ns: int

    @property
    def bubble(self) -> float:
        return self.wait_ns / self.times.counted_ns

    @property
    def outside(self) -> float:
        return self.times.outside_ns / self.times.counted_ns


STAGE = (
    Field("pipeline", "number of the pipeline, from 1"),
    Field(
        "replicas",
        "number of pipelines that have a rank in a common `replica group` (see "
        "[roles](METHODS.md#roles)), including this one",
    ),
    Field("stage", "number of the stage in it, from 0; number of its stages"),
    Field("stages", ""),
    Field("rank", "the rank that is this stage"),
    Field("previous_rank", "its neighbours; null: none"),
    Field("next_rank", ""),
    Field("replica_communicator", "label of its replica group; null: none"),
    Field(
        "wait_ns",
        "waiting for other ranks ([late](#late)); null: `coverage` is less than half, its file "
        "was not read, or it has NCCL messages, which wait on the device",
    ),
    Field("bubble_share", "wait_ns / counted_ns"),
    Field(
        "outside_share",
        "time outside MPI (set-up counts as inside) on the thread that spends most time inside, "
        "over counted_ns",
    ),
    Field(
        "coverage",
        "wait and transfer over the time inside MPI (all threads, without set-up) of the "
        "pipeline's ranks",
    ),
    Field("forward_bytes", "sent to the next and to the previous stage"),
    Field("backward_bytes", ""),
    Field("is_waited_for", "1: the stage that the others wait for"),
    Field("is_direction_known", "0: as many bytes go in either direction"),
    Field("has_nccl", "1: the rank's messages include NCCL's; null: its file was not read"),
)
StageRow = row_type("StageRow", STAGE)


# Rows of their stages, and the graph in which they were found.
Pipelines = namedtuple("Pipelines", "rows graph")


def stage_times(connection: Connection) -> list[Row]:
    return SQL.ask(connection, "stage_times", StageTimesRow)


def pipelines(world: World, times: Iterable[Row], late: Late) -> Pipelines:
    """All pipelines, with the stages of each from first to last. A stage is called slow by its
    times, and only if `late` names its rank; where causes are not known, by its times alone."""
    replicas = [group for group in world.groups if roles.role(group, world) == roles.REPLICA]
    split = {row.rank: (row.wait_ns, row.wait_ns + row.transfer_ns) for row in late.ranks}
    of_ranks = {row.rank: Stage(row, *split.get(row.rank, (0, 0))) for row in times}
    are_known = late.run.unknown_cause_ns < COVERED * late.run.wait_ns
    rows: list[Row] = []
    for number, chain in enumerate(world.graph.chains, 1):
        alike = 1 + sum(
            linked(chain, other, replicas) for other in world.graph.chains if other is not chain
        )
        rows += stages_of(
            number, alike, chain, replicas, of_ranks, world.sent_bytes,
        )
    slow = [row.rank for row in rows if row.is_waited_for]
    waited_for = agreed(slow, late) if are_known else slow
    return Pipelines(
        [row._replace(is_waited_for=row.is_waited_for * (row.rank in waited_for)) for row in rows],
        world.graph,
    )


def agreed(slow: Collection[int], late: Late) -> Collection[int]:
    """The ranks that late names, of the run or of single calls. Slow stages of several replicas may
    be more ranks than it may name: then all of them, if together they cause most of the waiting of
    the run."""
    is_most = late.costs.of(slow).whole_ns >= MAJORITY * late.costs.whole_ns
    if is_most and len(slow) > nameable(late.participants.ranks):
        return slow
    if late.blame.named and late.run.late_ranks is not None:
        return late.blame.named.ranks
    return {rank for each in late.blame.calls for rank in each.named.ranks}


def linked(chain: Chain, other: Chain, replicas: Sequence[Group]) -> bool:
    """Whether some replica group has ranks of both."""
    return any(
        group.ranks.intersection(chain.ranks) and group.ranks.intersection(other.ranks)
        for group in replicas
    )


def stages_of(
    number: int, alike: int, chain: Chain, replicas: Sequence[Group],
    of_ranks: dict[int, Stage], sent: dict[tuple, int],
) -> list[Row]:
    ranks = chain.ranks
    known = [
        of_ranks[rank] for rank in ranks if rank in of_ranks and of_ranks[rank].times.counted_ns
        and not of_ranks[rank].times.has_nccl
    ]
    coverage = coverage_of(known)
    slow = slow_stage(chain, known) if len(known) == len(ranks) and coverage >= COVERED else None
    last = len(ranks) - 1
    rows = []
    for stage, rank in enumerate(ranks):
        before = ranks[stage - 1] if stage else None
        after = ranks[stage + 1] if stage < last else None
        own = of_ranks.get(rank)
        label = next((group.described.label for group in replicas if rank in group.ranks), None)
        shown = own if own in known else None
        rows.append(
            StageRow(
                pipeline=number,
                replicas=alike,
                stage=stage,
                stages=len(ranks),
                rank=rank,
                previous_rank=before,
                next_rank=after,
                replica_communicator=label,
                wait_ns=shown.wait_ns if shown and coverage >= COVERED else None,
                bubble_share=shown.bubble if shown and coverage >= COVERED else None,
                outside_share=shown.outside if shown else None,
                coverage=coverage,
                forward_bytes=sent.get((rank, after), 0),
                backward_bytes=sent.get((rank, before), 0),
                is_waited_for=int(stage == slow),
                is_direction_known=int(chain.is_direction_known),
                has_nccl=own and own.times.has_nccl,
            )
        )
    return rows


def coverage_of(stages: Sequence[Stage]) -> float:
    """The part of their time inside MPI that was split."""
    inside_ns = sum(stage.times.inside_ns for stage in stages)
    return min(1.0, sum(stage.split_ns for stage in stages) / inside_ns) if inside_ns else 1.0


def slow_stage(chain: Chain, stages: Sequence[Stage]) -> int | None:
    """The stage with most time outside MPI, if it is notably ahead of the others there, and they
    wait notably more. If messages go in one direction only, stages before the slow one need not
    wait either: then it is the last of those with about as much."""
    outside = [stage.outside for stage in stages]
    if chain.backward_bytes:
        slow = outside.index(max(outside))
        others: Sequence[Stage] = [*stages[:slow], *stages[slow + 1 :]]
    else:
        slow = max(place for place, share in enumerate(outside) if max(outside) - share < NOTABLE)
        others = stages[slow + 1 :]
    if not others:
        return None
    ahead = outside[slow] - fmean(other.outside for other in others)
    waited = fmean(other.bubble for other in others) - stages[slow].bubble
    return slow if ahead >= NOTABLE and waited >= NOTABLE else None

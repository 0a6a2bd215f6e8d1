"""The pipelines of a run: their stages, the messages between these, and which stage the others wait
for."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean

from ..base import (
    Connection,
    Field,
    Groups,
    Row,
    np,
    row_type,
    sums,
    threshold,
)
from ..calls.views import is_mpi_call, is_working
from ..late.late_ranks import Late
from ..late.verdict import COVERED
from ..run import cells_of
from . import roles
from .world import Chain, Group, World

NOTABLE = threshold("roles.slow-stage")


# A rank's times: inside MPI on all threads, without set-up; outside MPI, set-up included in MPI, on
# the thread that spends most time inside. NCCL's messages wait on the device.
StageTimesRow = namedtuple("StageTimesRow", "rank counted_ns inside_ns outside_ns has_nccl")


class Stage(namedtuple("Stage", "times wait_ns split_ns")):
    """Times of a stage's rank, and how much of its time inside MPI was split."""

    @property
    def bubble(self) -> float:
        return self.wait_ns / self.times.counted_ns


STAGE = (
    Field("pipeline", "number of the pipeline, from 1"),
    Field(
        "replicas",
        "pipelines that share a `replica group` ([roles](METHODS.md#roles)) with it, "
        "itself included",
    ),
    Field("stage", "number of the stage in it, from 0; number of its stages"),
    Field("stages", ""),
    Field("rank", "the rank that is this stage"),
    Field("previous_rank", "its neighbours"),
    Field("next_rank", ""),
    Field("replica_communicator", "label of its replica group"),
    Field(
        "wait_ns",
        "waiting ([late](#late)); null: `coverage` is below half, its file was not read, "
        "or its NCCL messages wait on the device",
    ),
    Field("bubble_share", "wait_ns / counted_ns"),
    Field(
        "outside_share",
        "time outside MPI (and set-up) of the thread that spends most inside, over counted_ns",
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
    cells = cells_of(connection).whole
    threads = sums(cells, ["world_rank", "thread"], is_mpi_call)
    ranks, rank = Groups(threads.of), np.unique(threads.of).tolist()
    inside_ns = ranks.sum(threads.sum("total_ns", is_working))
    inside = dict(zip(rank, zip(inside_ns.tolist(), ranks.max(threads.sum("total_ns")).tolist())))
    nccl = connection.execute("SELECT DISTINCT world_rank FROM peer WHERE communicator > 0")
    has_nccl = {rank for (rank,) in nccl}
    return [
        StageTimesRow(rank, counted_ns, own_ns, max(counted_ns - most_ns, 0), int(rank in has_nccl))
        for rank, counted_ns in sorted(cells.counted.items())
        for own_ns, most_ns in [inside.get(rank, (0, 0))]
    ]


def pipelines(world: World, times: Iterable[Row], late: Late) -> Pipelines:
    """All pipelines, with the stages of each from first to last."""
    replicas = [group for group in world.groups if roles.role(group, world) == roles.REPLICA]
    split = {row.rank: (row.wait_ns, row.wait_ns + row.transfer_ns) for row in late.ranks}
    of_ranks = {row.rank: Stage(row, *split.get(row.rank, (0, 0))) for row in times}
    waited_for = ranks_waited_for(world.graph.chains, of_ranks, late)
    rows: list[Row] = []
    for number, chain in enumerate(world.graph.chains, 1):
        alike = 1 + sum(
            linked(chain, other, replicas) for other in world.graph.chains if other is not chain
        )
        rows += stages_of(
            number,
            alike,
            chain,
            replicas,
            of_ranks,
            world.sent_bytes,
            waited_for,
        )
    return Pipelines(rows, world.graph)


def ranks_waited_for(
    chains: Sequence[Chain], of_ranks: Mapping[int, Stage], late: Late
) -> Collection[int]:
    """The ranks that late names, of the run or of single calls; or those of a stage that the same
    test names, if it is slow in all replicas: they may be more than late may name."""
    if late.is_known and late.run.late_ranks is not None:
        return late.run.late_ranks
    stages = {rank: str(place) for each in chains for place, rank in enumerate(each.ranks)}
    named, slow = late.named_among(stages), set()
    for each in chains:
        slow |= keeping_waiting([of_ranks[rank] for rank in each.ranks if rank in of_ranks], named)
    if named and slow.issuperset(named):
        return named
    return {rank for each in late.blame.calls for rank in each.named.ranks}


def linked(chain: Chain, other: Chain, replicas: Sequence[Group]) -> bool:
    """Whether some replica group has ranks of both."""
    return any(
        group.ranks.intersection(chain.ranks) and group.ranks.intersection(other.ranks)
        for group in replicas
    )


def stages_of(
    number: int,
    alike: int,
    chain: Chain,
    replicas: Sequence[Group],
    of_ranks: dict[int, Stage],
    sent: dict[tuple, int],
    waited_for: Collection[int],
) -> list[Row]:
    ranks = chain.ranks
    known = [
        of_ranks[rank]
        for rank in ranks
        if rank in of_ranks
        and of_ranks[rank].times.counted_ns
        and not of_ranks[rank].times.has_nccl
    ]
    coverage = coverage_of(known)
    waited_for = keeping_waiting(known, waited_for) if coverage >= COVERED else set()
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
                outside_share=shown.times.outside_ns / shown.times.counted_ns if shown else None,
                coverage=coverage,
                forward_bytes=sent.get((rank, after), 0),
                backward_bytes=sent.get((rank, before), 0),
                is_waited_for=int(len(known) == len(ranks) and rank in waited_for),
                is_direction_known=int(chain.is_direction_known),
                has_nccl=own and own.times.has_nccl,
            )
        )
    return rows


def keeping_waiting(stages: Sequence[Stage], named: Collection[int]) -> set[int]:
    """The named ranks among a pipeline's for which its other stages wait notably more than these
    themselves."""
    return {
        own.times.rank
        for own in stages
        if own.times.rank in named
        and len(stages) > 1
        and fmean(other.bubble for other in stages if other is not own) - own.bubble >= NOTABLE
    }


def coverage_of(stages: Sequence[Stage]) -> float:
    """The part of their time inside MPI that was split."""
    inside_ns = sum(stage.times.inside_ns for stage in stages)
    return min(1.0, sum(stage.split_ns for stage in stages) / inside_ns) if inside_ns else 1.0

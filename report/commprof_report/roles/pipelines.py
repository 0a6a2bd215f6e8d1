"""The pipelines of a run: their stages, the messages between these, and which stage the others wait for."""

from __future__ import annotations

from collections.abc import Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..calls.peers import PeerRow
from . import roles
from .message_graph import Chain, Graph

SQL = query.beside(__file__)

NOTABLE = 0.02  # of the counted time: the least mean excess of the others at which they count as waiting for a stage


class PassingRow(NamedTuple):
    rank: int
    receive_ns: int | None
    send_ns: int | None
    counted_ns: int
    has_nccl: int


class StageRow(NamedTuple):
    pipeline: int
    replicas: int
    stage: int
    stages: int
    rank: int
    opposite_stage: int | None
    previous_rank: int | None
    next_rank: int | None
    replica_communicator: str | None
    receive_ns: int | None
    bubble_share: float | None
    send_ns: int | None
    forward_bytes: int
    backward_bytes: int
    is_waited_for: int
    is_direction_known: int
    has_nccl: int | None


class Pipelines(NamedTuple):
    rows: list[StageRow]
    graph: Graph


def pipelines(connection: Connection) -> Pipelines:
    """All pipelines, with the stages of each from first to last."""
    world = roles.look(connection)
    replicas = [group for group in world.groups if roles.role(group, world) == roles.REPLICA]
    passing = {row.rank: row for row in SQL.ask(connection, "passing", PassingRow)}
    sent = {(row.sender, row.receiver): row.bytes for row in SQL.ask(connection, "messages", PeerRow)}
    rows: list[StageRow] = []
    for number, chain in enumerate(world.graph.chains, 1):
        alike = 1 + sum(linked(chain, other, replicas) for other in world.graph.chains if other is not chain)
        rows += stages_of(number, alike, chain, replicas, passing, sent)
    return Pipelines(rows, world.graph)


def linked(chain: Chain, other: Chain, replicas: Sequence[roles.Group]) -> bool:
    """Whether some replica group has ranks of both."""
    return any(group.ranks.intersection(chain.ranks) and group.ranks.intersection(other.ranks) for group in replicas)


def stages_of(
    number: int, alike: int, chain: Chain, replicas: Sequence[roles.Group], passing: dict[int, PassingRow], sent: dict[tuple, int]
) -> list[StageRow]:
    ranks = chain.ranks
    awaited = waited_for(chain, passing)
    last = len(ranks) - 1
    is_mirrored = has_opposite(chain, replicas)
    rows = []
    for stage, rank in enumerate(ranks):
        before = ranks[stage - 1] if stage else None
        after = ranks[stage + 1] if stage < last else None
        own = passing.get(rank)
        label = next((group.described.label for group in replicas if rank in group.ranks), None)
        bubble = own.receive_ns / own.counted_ns if own and own.receive_ns is not None and own.counted_ns else None
        rows.append(
            StageRow(
                pipeline=number,
                replicas=2 * alike if is_mirrored else alike,
                stage=stage,
                stages=len(ranks),
                rank=rank,
                opposite_stage=last - stage if is_mirrored else None,
                previous_rank=before,
                next_rank=after,
                replica_communicator=label,
                receive_ns=own and own.receive_ns,
                bubble_share=bubble,
                send_ns=own and own.send_ns,
                forward_bytes=sent.get((rank, after), 0),
                backward_bytes=sent.get((rank, before), 0),
                is_waited_for=int(rank == awaited),
                is_direction_known=int(chain.is_direction_known),
                has_nccl=own and own.has_nccl,
            )
        )
    return rows


def has_opposite(chain: Chain, replicas: Sequence[roles.Group]) -> bool:
    """Whether two replicas run in opposite directions, as in GEMS: gradients are summed over the first and the last rank of the line,
    the second and the last but one, and so on."""
    stages = range(len(chain.ranks))
    mirrored = {frozenset((stage, stages[-1 - stage])) for stage in stages}
    within = {frozenset(stage for stage in stages if chain.ranks[stage] in group.ranks) for group in replicas}
    alone = {frozenset(), frozenset((len(stages) // 2,))} if len(stages) % 2 else {frozenset()}  # the one in the middle has no partner
    return within - alone == mirrored - alone


def waited_for(chain: Chain, passing: dict[int, PassingRow]) -> int | None:
    """The stage with the least share of time in messages, if the others' mean share is notably larger. If messages go in one direction
    only, stages before the slow one need not wait either: then it is the last of those with about the least share."""
    kept = [kept_share(passing.get(rank)) for rank in chain.ranks]
    if None in kept:
        return None
    least = min(kept)
    if chain.backward_bytes:
        stage = kept.index(least)
        others = [share for place, share in enumerate(kept) if place != stage]
    else:
        stage = max(place for place, share in enumerate(kept) if share - least < NOTABLE)
        others = kept[stage + 1 :]
    return chain.ranks[stage] if others and sum(others) / len(others) - kept[stage] >= NOTABLE else None


def kept_share(row: PassingRow | None) -> float | None:
    return (row.receive_ns + row.send_ns) / row.counted_ns if row and not row.has_nccl and row.counted_ns else None

"""Planted runs of model-parallel training: pipelines, their replicas, tensor-parallel groups."""

from __future__ import annotations

import planted
from commprof_report.base import present
from planted import SECOND, Cell, Communicator, Rank, Sample

PASSED_BYTES, GRADIENT_BYTES = 64 << 10, 4 << 20
MICRO_BATCHES = 100
REPLICA, PIPELINE, TENSOR, CONTROL, FILES = 4, 5, 6, 7, 8  # a rank's numbers for its communicators


def world(rank: int, size: int) -> Communicator:
    return Communicator(
        planted.WORLD, planted.WORLD_IDENTITY, f"0-{size - 1}", size, rank, name="MPI_COMM_WORLD"
    )


def split(number: int, rank: int, members: list[int], salt: int) -> Communicator:
    """A part of the world; the same identity on all of its ranks."""
    identity = (salt << 32) + min(members) + 1
    text = ",".join(map(str, members))
    parent = planted.WORLD_IDENTITY
    place = members.index(rank)
    return Communicator(
        number,
        identity,
        text,
        len(members),
        place,
        constructor="MPI_Comm_split",
        parent_identity=parent,
    )


def passing_cells(
    before: int | None, after: int | None, wait_ns: int, communicator: int, both_ways: bool
) -> list[Cell]:
    """One stage's sends and receives: each receive takes wait_ns."""
    sends = MICRO_BATCHES * ((after is not None) + (both_ways and before is not None))
    receives = MICRO_BATCHES * ((before is not None) + (both_ways and after is not None))
    return [
        Cell("MPI_Send", PASSED_BYTES, [10_000] * sends, communicator) for _ in range(bool(sends))
    ] + [
        Cell("MPI_Recv", PASSED_BYTES, [wait_ns] * receives, communicator, volume_bytes=0)
        for _ in range(bool(receives))
    ]


def passing_peers(
    before: int | None, after: int | None, wait_ns: int, both_ways: bool
) -> list[tuple]:
    volume = MICRO_BATCHES * PASSED_BYTES
    towards = [after] + ([before] if both_ways else [])
    sources = [before] + ([after] if both_ways else [])
    return [
        ("MPI_Send", "sent", peer, MICRO_BATCHES, volume, 1_000_000)
        for peer in towards
        if peer is not None
    ] + [
        ("MPI_Recv", "received", peer, MICRO_BATCHES, volume, MICRO_BATCHES * wait_ns)
        for peer in sources
        if peer is not None
    ]


def passing_samples(
    before: int | None,
    after: int | None,
    rank: int,
    wait_ns: int,
    communicator: int,
    both_ways: bool,
) -> list[Sample]:
    """The calls of passing_cells: each micro-batch has 100 ms, the second half of it for the way
    back. Each rank sends 40 us after the one before it. A receive that waits 10 us or less is
    posted after its send."""
    ways = [(before, after, 0)] + ([(after, before, 50_000_000)] if both_ways else [])
    samples = []
    for number in range(1, MICRO_BATCHES + 1):
        for source, target, begin_ns in ways:
            is_upward = rank > source if source is not None else present(target) > rank
            step_ns = 40_000 if is_upward else -40_000
            sent_ns = (number - 1) * 100_000_000 + begin_ns + 29_000_000 + step_ns * rank
            more = {"bytes": PASSED_BYTES, "tag": begin_ns, "number": number}
            if source is not None:
                end_ns = sent_ns - 20_000
                samples.append(
                    Sample("MPI_Recv", end_ns - wait_ns, end_ns, communicator, peer=source, **more)
                )
            if target is not None:
                samples.append(
                    Sample("MPI_Send", sent_ns, sent_ns + 10_000, communicator, peer=target, **more)
                )
    return samples


def step_samples(*calls: tuple[int, int], steps: int = 10) -> list[Sample]:
    """Allreduces, step after step: numbers of communicators, and bytes."""
    numbered = enumerate(calls * steps)
    return [
        Sample("MPI_Allreduce", begin_ns, begin_ns + 2_000, number, place + 1, bytes=size)
        for place, (number, size) in numbered
        for begin_ns in [10_000 * place]
    ]


def pipeline_run(
    stages: int,
    replicas: int = 1,
    slow: int | None = None,
    both_ways: bool = True,
    reverse: bool = False,
) -> list[Rank]:
    """Rank = replica x stages + stage. The slow stage never waits, the others 20 ms a receive;
    without one all wait 1 ms."""
    return [
        stage_rank(rank, stages, replicas, slow, both_ways, reverse)
        for rank in range(stages * replicas)
    ]


def stage_rank(
    rank: int, stages: int, replicas: int, slow: int | None, both_ways: bool, reverse: bool
) -> Rank:
    stage, first = rank % stages, rank - rank % stages
    before, after = (rank - 1 if stage else None), (rank + 1 if stage < stages - 1 else None)
    if reverse:
        before, after = after, before
    wait_ns = 1_000_000 if slow is None else 10_000 if stage == slow else 20_000_000
    known = [
        world(rank, stages * replicas),
        split(PIPELINE, rank, list(range(first, first + stages)), 2),
    ]
    cells = passing_cells(before, after, wait_ns, PIPELINE, both_ways)
    if replicas > 1:
        known.append(split(REPLICA, rank, list(range(stage, stages * replicas, stages)), 1))
        cells.append(Cell("MPI_Allreduce", GRADIENT_BYTES + 4 * stage, [5_000_000] * 10, REPLICA))
    peers = passing_peers(before, after, wait_ns, both_ways)
    samples = passing_samples(before, after, rank, wait_ns, PIPELINE, both_ways)
    facts = {"boot_id": "one", "time_namespace": "time:[1]"}  # one clock
    times = {
        "wall_ns": 10 * SECOND,
        "samples": samples,
        "windows": [planted.Window(0, 10 * SECOND)],
    }
    return Rank(
        rank, stages * replicas, communicators=known, cells=cells, peers=peers, facts=facts, **times
    )


def tensor_run() -> list[Rank]:
    """Two stages of two tensor-parallel ranks each, twice: ranks 0-3 and 4-7. Activations are
    summed within {0,1}, {2,3}, ..., gradients over {0,4}, {1,5}, ..., messages go from 0 to 2 and
    from 1 to 3."""
    return [tensor_rank(rank) for rank in range(8)]


def tensor_rank(rank: int) -> Rank:
    is_first = rank % 4 < 2
    before, after = (None, rank + 2) if is_first else (rank - 2, None)
    pair = [rank - rank % 2, rank - rank % 2 + 1]
    column = [rank % 4, rank % 4 + 4]
    known = [world(rank, 8), split(TENSOR, rank, pair, 3), split(REPLICA, rank, column, 1)]
    cells = passing_cells(before, after, 1_000_000, planted.WORLD, True) + [
        Cell("MPI_Allreduce", PASSED_BYTES, [100_000] * 4 * MICRO_BATCHES, TENSOR),
        Cell("MPI_Allreduce", GRADIENT_BYTES, [5_000_000] * 10, REPLICA),
    ]
    return Rank(
        rank,
        8,
        communicators=known,
        cells=cells,
        peers=passing_peers(before, after, 1_000_000, True),
    )

"""Planted runs of model-parallel training: pipelines, their replicas, tensor-parallel groups."""

from __future__ import annotations

from typing import NamedTuple

import planted
from commprof_report.base import present
from planted import SECOND, Cell, Communicator, Rank, Sample

PASSED_BYTES, GRADIENT_BYTES = 64 << 10, 4 << 20
MICRO_BATCHES = 100
REPLICA, PIPELINE, TENSOR, CONTROL, FILES = 4, 5, 6, 7, 8  # a rank's numbers for its communicators


def world(rank: int, size: int) -> Communicator:
    members = (f"0-{size - 1}", size, rank, "MPI_COMM_WORLD")
    return Communicator(planted.WORLD, planted.WORLD_IDENTITY, *members)


def split(number: int, rank: int, members: list[int], salt: int) -> Communicator:
    """A part of the world; the same identity on all of its ranks."""
    identity, text = (salt << 32) + min(members) + 1, ",".join(map(str, members))
    made = {"constructor": "MPI_Comm_split", "parent_identity": planted.WORLD_IDENTITY}
    return Communicator(number, identity, text, len(members), members.index(rank), **made)


class Passing(NamedTuple):
    """Messages of a stage, once or both ways for each micro-batch: each receive takes wait_ns."""

    before: int | None
    after: int | None
    wait_ns: int
    both_ways: bool = True

    @property
    def neighbours(self) -> tuple[list[int], list[int]]:
        """The ranks it sends to, and those it receives from."""
        there, back = (self.after, self.before), (self.before, self.after)
        number = 1 + self.both_ways
        to, source = ([one for one in own[:number] if one is not None] for own in (there, back))
        return to, source

    def cells(self, communicator: int) -> list[Cell]:
        sends, receives = (MICRO_BATCHES * len(own) for own in self.neighbours)
        sent = Cell("MPI_Send", PASSED_BYTES, [10_000] * sends, communicator)
        received = Cell("MPI_Recv", PASSED_BYTES, [self.wait_ns] * receives, communicator)
        received.volume_bytes = 0
        return [cell for cell in (sent, received) if cell.durations]

    def peers(self) -> list[tuple]:
        volume, waited_ns = MICRO_BATCHES * PASSED_BYTES, MICRO_BATCHES * self.wait_ns
        to, source = self.neighbours
        return [("MPI_Send", "sent", peer, MICRO_BATCHES, volume, 1_000_000) for peer in to] + [
            ("MPI_Recv", "received", peer, MICRO_BATCHES, volume, waited_ns) for peer in source
        ]

    def samples(self, rank: int, communicator: int) -> list[Sample]:
        """Each micro-batch has 100 ms, the second half of it for the way back. Each rank sends 40
        us after the one before it. A receive that waits 10 us or less is posted after its send."""
        ways = [(self.before, self.after, 0), (self.after, self.before, 50_000_000)]
        samples = []
        for number in range(1, MICRO_BATCHES + 1):
            for source, target, begin_ns in ways[: 1 + self.both_ways]:
                is_upward = rank > source if source is not None else present(target) > rank
                step_ns = 40_000 if is_upward else -40_000
                sent_ns = (number - 1) * 100_000_000 + begin_ns + 29_000_000 + step_ns * rank
                end_ns = sent_ns - 20_000
                for call, peer, *times in (
                    ("MPI_Recv", source, end_ns - self.wait_ns, end_ns),
                    ("MPI_Send", target, sent_ns, sent_ns + 10_000),
                ):
                    if peer is not None:
                        more = {"bytes": PASSED_BYTES, "tag": begin_ns, "number": number}
                        samples.append(Sample(call, *times, communicator, peer=peer, **more))
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

    def ranked(rank: int) -> Rank:
        stage, first = rank % stages, rank - rank % stages
        beside = [rank - 1 if stage else None, rank + 1 if stage < stages - 1 else None]
        wait_ns = 1_000_000 if slow is None else 10_000 if stage == slow else 20_000_000
        passing = Passing(*(beside[::-1] if reverse else beside), wait_ns, both_ways)
        own = Rank(rank, stages * replicas, cells=passing.cells(PIPELINE), peers=passing.peers())
        own.communicators = [world(rank, stages * replicas)]
        own.communicators.append(split(PIPELINE, rank, list(range(first, first + stages)), 2))
        if replicas > 1:
            column = list(range(stage, stages * replicas, stages))
            own.communicators.append(split(REPLICA, rank, column, 1))
            reduced = ("MPI_Allreduce", GRADIENT_BYTES + 4 * stage, [5_000_000] * 10, REPLICA)
            own.cells.append(Cell(*reduced))
        own.facts = {"boot_id": "one", "time_namespace": "time:[1]"}  # one clock
        own.samples = passing.samples(rank, PIPELINE)
        own.windows = [planted.Window(0, 10 * SECOND)]
        return own

    return [ranked(rank) for rank in range(stages * replicas)]


def tensor_run() -> list[Rank]:
    """Two stages of two tensor-parallel ranks each, twice: ranks 0-3 and 4-7. Activations are
    summed within {0,1}, {2,3}, ..., gradients over {0,4}, {1,5}, ..., messages go from 0 to 2 and
    from 1 to 3."""
    return [tensor_rank(rank) for rank in range(8)]


def tensor_rank(rank: int) -> Rank:
    beside = (None, rank + 2) if rank % 4 < 2 else (rank - 2, None)
    pair, column = [rank - rank % 2, rank - rank % 2 + 1], [rank % 4, rank % 4 + 4]
    known = [world(rank, 8), split(TENSOR, rank, pair, 3), split(REPLICA, rank, column, 1)]
    passing = Passing(*beside, 1_000_000)
    cells = passing.cells(planted.WORLD) + [
        Cell("MPI_Allreduce", PASSED_BYTES, [100_000] * 4 * MICRO_BATCHES, TENSOR),
        Cell("MPI_Allreduce", GRADIENT_BYTES, [5_000_000] * 10, REPLICA),
    ]
    return Rank(rank, 8, communicators=known, cells=cells, peers=passing.peers())

#!/usr/bin/python3
"""Train two replicas of one network over the same ranks, in opposite directions, so that no rank's
memory lies idle.

The network has a partition for every rank. Of replica A rank 0 holds the first partition and the
last rank the last one; of replica B the last rank holds the first. While A's backward pass moves
away from the last rank, B's forward pass begins there. The two ranks that hold the same partition
add up its gradients. Exits 1 unless the loss fell and the replicas are equal.
"""

import sys
from pathlib import Path
from typing import List, Tuple

import numpy as np
from mpi4py import MPI

sys.path.append(str(Path(__file__).resolve().parents[1]))
from dense import (
    REAL,
    Array,
    Partition,
    Task,
    all_are_equal,
    draw_task,
    mean_over,
    say_epoch,
    size_arguments,
    squared_error,
    verdict,
)

LEARNING_RATE = 0.05


class Replica:
    """One rank's part of a replica: one partition, and where its neighbours are."""

    def __init__(self, name: str, direction: int, layers: int, width: int) -> None:
        self.world, self.direction = MPI.COMM_WORLD, direction
        last = self.world.size - 1
        self.number = self.world.rank if direction > 0 else last - self.world.rank
        self.is_first, self.is_last = self.number == 0, self.number == last
        here = layers // self.world.size
        self.partition = Partition(range(self.number * here, (self.number + 1) * here), width)
        self.tag = ord(name)
        self.sends: List[Tuple[MPI.Request, Array]] = []  # a buffer lives as long as its send

    def receive(self, neighbour: int, like: Array) -> Array:
        received = np.empty(like.shape, REAL)
        self.world.Irecv(
            received, source=self.world.rank + neighbour * self.direction, tag=self.tag
        ).Wait()
        return received

    def send(self, neighbour: int, values: Array) -> None:
        request = self.world.Isend(
            values, dest=self.world.rank + neighbour * self.direction, tag=self.tag
        )
        self.sends.append((request, values))

    def train(self, batch: Task) -> float:
        """One pass forward and one back. The loss, known where the last partition is."""
        loss = 0.0
        values = self.partition.forward(
            batch.inputs if self.is_first else self.receive(-1, batch.inputs)
        )
        if self.is_last:
            loss, gradient = squared_error(values, batch.targets)
        else:
            self.send(+1, values)
            gradient = self.receive(+1, batch.inputs)
        gradient = self.partition.backward(gradient)
        if not self.is_first:
            self.send(-1, np.ascontiguousarray(gradient))
        return loss

    def wait_for_sends(self) -> None:
        for request, _ in self.sends:
            request.Wait()
        self.sends.clear()


class Pair:
    """The two replicas' partitions on this rank, and the rank that holds the same two the other way
    round."""

    def __init__(self, layers: int, width: int) -> None:
        world = MPI.COMM_WORLD
        self.replicas = Replica("A", +1, layers, width), Replica("B", -1, layers, width)
        ranks = sorted({world.rank, world.size - 1 - world.rank})
        self.holders = world.Split(color=ranks[0], key=world.rank)
        self.holders.Set_name(f"holders of partitions {ranks[0]} and {ranks[-1]}")

    @property
    def in_one_order(self) -> List[Replica]:
        """By partition: the order on both ranks of the pair, for one's A is the other's B."""
        return sorted(self.replicas, key=lambda replica: replica.number)

    def step(self, batches: Tuple[Task, Task]) -> float:
        loss = sum(replica.train(batch) for replica, batch in zip(self.replicas, batches))
        for replica in self.replicas:
            replica.wait_for_sends()
        for replica in self.in_one_order:
            for gradient in replica.partition.gradients:
                self.holders.Allreduce(MPI.IN_PLACE, gradient)
            replica.partition.step(LEARNING_RATE / 2)
        return loss / 2

    @property
    def weights(self) -> List[Array]:
        return [weights for replica in self.in_one_order for weights in replica.partition.weights]


def main() -> int:
    sizes = size_arguments(__doc__, epochs=10, batches=50, batch=64, layers=8, width=128)
    world = MPI.COMM_WORLD
    if world.size % 2:
        sys.exit(
            "train.py: an even number of ranks, please, so that each has another that holds the "
            "same partitions"
        )
    pair = Pair(sizes.layers, sizes.width)
    tasks = [draw_task(sizes.batches * sizes.batch, sizes.width, seed) for seed in (0, 1)]

    losses = []
    for epoch in range(sizes.epochs):
        loss = (
            sum(
                pair.step(tuple(task.batch(number, sizes.batch) for task in tasks))
                for number in range(sizes.batches)
            )
            / sizes.batches
        )
        losses.append(world.size * mean_over(world, loss))
        say_epoch(epoch + 1, losses[-1])
    return verdict(losses, all_are_equal(pair.holders, pair.weights))


if __name__ == "__main__":
    sys.exit(main())

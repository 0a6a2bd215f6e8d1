#!/usr/bin/python3
"""Train a network that is cut into partitions and replicated: 4 ranks are 2 replicas of 2
partitions each.

Within a replica, activations go forward and their gradients back by send and receive, a micro-batch
at a time. Across the replicas, the ranks that hold the same partition add up its gradients, a layer
at a time. Exits 1 unless the loss fell and the replicas are equal in the end.
"""

import sys
from pathlib import Path

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


class Worker:
    """One rank: a partition of one replica."""

    def __init__(self, partitions: int, layers: int, width: int, micro_batches: int) -> None:
        world = MPI.COMM_WORLD
        replica, partition = divmod(world.rank, partitions)
        self.pipeline = world.Split(color=replica, key=partition)
        self.pipeline.Set_name(f"pipeline of replica {replica}")
        self.replicas = world.Split(color=partition, key=replica)
        self.replicas.Set_name(f"replicas of partition {partition}")
        self.replica = replica
        self.is_first, self.is_last = partition == 0, partition == partitions - 1
        here = layers // partitions
        self.partition = Partition(range(partition * here, (partition + 1) * here), width)
        self.micro_batches = micro_batches

    def receive(self, neighbour: int, like: Array) -> Array:
        received = np.empty(like.shape, REAL)
        self.pipeline.Recv(received, source=self.pipeline.rank + neighbour)
        return received

    def send(self, neighbour: int, values: Array) -> None:
        self.pipeline.Send(np.ascontiguousarray(values), dest=self.pipeline.rank + neighbour)

    def step(self, batch: Task) -> float:
        """The loss, known where the last partition is. All forward passes come first, as in GPipe
        (Huang et al., 2019)."""
        size = len(batch.inputs) // self.micro_batches
        loss, gradients = 0.0, []
        for number in range(self.micro_batches):
            micro_batch = batch.batch(number, size)
            values = self.partition.forward(
                micro_batch.inputs if self.is_first else self.receive(-1, micro_batch.inputs)
            )
            if self.is_last:
                micro_loss, gradient = squared_error(values, micro_batch.targets)
                loss += micro_loss / self.micro_batches
                gradients.append(gradient / REAL(self.micro_batches))
            else:
                self.send(+1, values)
        for number in reversed(range(self.micro_batches)):
            gradient = (
                gradients[number]
                if self.is_last
                else self.receive(+1, batch.batch(number, size).inputs)
            )
            gradient = self.partition.backward(gradient)
            if not self.is_first:
                self.send(-1, gradient)
        for gradient in reversed(self.partition.gradients):
            self.replicas.Allreduce(MPI.IN_PLACE, gradient)
        self.partition.step(LEARNING_RATE / self.replicas.size)
        return loss


def main() -> int:
    sizes = size_arguments(
        __doc__, epochs=10, batches=50, batch=64, micro_batches=4, partitions=2, layers=8, width=128
    )
    worker = Worker(sizes.partitions, sizes.layers, sizes.width, sizes.micro_batches)
    task = draw_task(sizes.batches * sizes.batch, sizes.width, worker.replica)

    losses = []
    for epoch in range(sizes.epochs):
        loss = (
            sum(worker.step(task.batch(number, sizes.batch)) for number in range(sizes.batches))
            / sizes.batches
        )
        losses.append(worker.pipeline.size * mean_over(MPI.COMM_WORLD, loss))
        say_epoch(epoch + 1, losses[-1])
    return verdict(losses, all_are_equal(worker.replicas, worker.partition.weights))


if __name__ == "__main__":
    sys.exit(main())

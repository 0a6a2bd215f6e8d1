"""Dense layers in numpy, and a task for them: what the examples share that cut a network into
partitions."""

import argparse
from typing import List, NamedTuple, Tuple

import numpy as np
from mpi4py import MPI

REAL = np.float32
Array = np.ndarray


class Task(NamedTuple):
    """Inputs, and what a network is to make of them."""

    inputs: Array  # [count, width]
    targets: Array  # [count, width]

    def batch(self, number: int, size: int) -> "Task":
        rows = slice(number * size, (number + 1) * size)
        return Task(self.inputs[rows], self.targets[rows])


def draw_task(count: int, width: int, seed: int) -> Task:
    """The teacher, one layer, is the same for every seed; the inputs are not."""
    teacher = np.random.default_rng(1).normal(0, width**-0.5, (width, width))
    inputs = np.random.default_rng(1000 + seed).normal(size=(count, width))
    return Task(inputs.astype(REAL), np.tanh(inputs @ teacher).astype(REAL))


def squared_error(outputs: Array, targets: Array) -> Tuple[float, Array]:
    """The loss, a mean over the batch, and its gradient."""
    difference = outputs - targets
    return float(np.square(difference).sum(axis=1).mean()), 2 * difference / REAL(len(difference))


def with_ones(inputs: Array) -> Array:
    return np.hstack([inputs, np.ones((len(inputs), 1), REAL)])


class Partition:
    """Consecutive layers of a network of equal layers. A layer is one matrix, (width + 1) x width:
    its last row is the bias."""

    def __init__(self, layers: range, width: int) -> None:
        self.weights = [
            np.random.default_rng(layer).normal(0, width**-0.5, (width + 1, width)).astype(REAL)
            for layer in layers
        ]
        self.gradients = [np.zeros_like(weights) for weights in self.weights]
        # a forward pass each: what went into each layer, and what came out
        self.passed: List[List[Tuple[Array, Array]]] = []

    def forward(self, inputs: Array) -> Array:
        passed = []
        for weights in self.weights:
            outputs = np.tanh(with_ones(inputs) @ weights)
            passed.append((inputs, outputs))
            inputs = outputs
        self.passed.append(passed)
        return inputs

    def backward(self, gradient: Array) -> Array:
        """Runs the backward pass for the last forward pass that has had none. Adds to the
        gradients; returns the gradient of the pass's inputs."""
        for layer, (inputs, outputs) in reversed(list(enumerate(self.passed.pop()))):
            gradient = gradient * (1 - outputs * outputs)
            self.gradients[layer] += with_ones(inputs).T @ gradient
            gradient = gradient @ self.weights[layer][:-1].T
        return gradient

    def step(self, learning_rate: float) -> None:
        for weights, gradient in zip(self.weights, self.gradients):
            weights -= REAL(learning_rate) * gradient
            gradient[:] = 0


def mean_over(communicator: MPI.Comm, value: float) -> float:
    total = np.array([value], float)
    communicator.Allreduce(MPI.IN_PLACE, total)
    return total[0] / communicator.size


def all_are_equal(communicator: MPI.Comm, weights: List[Array]) -> bool:
    """Bit for bit, on all ranks of all these communicators. An Allreduce gives all ranks the same
    result, so equal replicas that take equal steps stay equal (MPI-4.1, 6.9.6)."""
    ours = np.concatenate([matrix.ravel() for matrix in weights])
    first = ours.copy()
    communicator.Bcast(first, root=0)
    return mean_over(MPI.COMM_WORLD, np.array_equal(ours, first)) == 1


def say_epoch(epoch: int, loss: float) -> None:
    if MPI.COMM_WORLD.rank == 0:
        print(f"epoch {epoch:2}: loss {loss:.3f}", flush=True)


def verdict(losses: List[float], equal: bool) -> int:
    """The program's exit status."""
    learned = losses[-1] < losses[0]
    if MPI.COMM_WORLD.rank == 0:
        print("the replicas are equal" if equal else "train.py: the replicas differ")
        print("the loss fell" if learned else "train.py: the loss did not fall")
    return 0 if equal and learned else 1


def size_arguments(description: str, **defaults: int) -> argparse.Namespace:
    """Options of the command line that are numbers, each with its default."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in defaults.items():
        parser.add_argument(
            "--" + name.replace("_", "-"), type=int, default=default, help="default: %(default)s"
        )
    return parser.parse_args()

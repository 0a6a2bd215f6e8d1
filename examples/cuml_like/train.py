#!/usr/bin/python3
"""Reduce data that is spread over the ranks to its main directions, then train a linear model on
them.

The manner of RAPIDS cuML's estimators for many processes, with numpy in place of a GPU: each rank
keeps its rows, and only statistics travel. Standardize: Allreduce of sums and squares. Principal
components: Reduce of the covariance to rank 0, which solves, and Bcast of the solution. Logistic
regression: Allreduce of the gradient in each iteration. Exits 1 unless the loss fell, the model is
better than chance, and all ranks have the same one.
"""

import argparse
import sys
from typing import Tuple

import numpy as np
from mpi4py import MPI

Array = np.ndarray
WORLD = MPI.COMM_WORLD
LEARNING_RATE = 1.0


def sum_over_ranks(values: Array) -> Array:
    total = np.empty_like(values)
    WORLD.Allreduce(values, total)
    return total


def draw_rows(count: int, features: int, seed: int) -> Tuple[Array, Array]:
    """Rows of a few hidden factors and much noise; the label is the sign of the first
    factors' sum."""
    mixing = np.random.default_rng(1).normal(size=(4, features))
    random = np.random.default_rng(1000 + seed)
    factors = random.normal(size=(count, 4))
    rows = 3 + factors @ mixing + random.normal(size=(count, features))
    return rows, (factors[:, 0] + factors[:, 1] > 0).astype(float)


def standardize(rows: Array) -> Array:
    count = WORLD.size * len(rows)
    mean, square = sum_over_ranks(np.stack([rows.sum(axis=0), np.square(rows).sum(axis=0)])) / count
    return (rows - mean) / np.sqrt(square - mean**2)


def principal_components(rows: Array, components: int) -> Array:
    """The directions of greatest variance, [features, components]."""
    covariance = np.empty((rows.shape[1], rows.shape[1])) if WORLD.rank == 0 else None
    WORLD.Reduce(rows.T @ rows, covariance, root=0)
    directions = np.empty((rows.shape[1], components))
    if WORLD.rank == 0:
        directions[:] = np.linalg.eigh(covariance)[1][:, -components:]
    WORLD.Bcast(directions, root=0)
    return directions


def loss_and_gradient(weights: Array, rows: Array, labels: Array) -> Tuple[float, Array]:
    """Loss and gradient of the logistic regression, means over the rows of all ranks; both travel
    in one Allreduce."""
    probability = 1 / (1 + np.exp(-rows @ weights))
    likelihood = np.where(labels == 1, probability, 1 - probability)
    ours = np.append(rows.T @ (probability - labels), -np.log(likelihood).sum())
    *gradient, loss = sum_over_ranks(ours) / (WORLD.size * len(rows))
    return loss, np.array(gradient)


def accuracy(weights: Array, rows: Array, labels: Array) -> float:
    right = np.array([np.count_nonzero((rows @ weights > 0) == labels)])
    total = np.zeros_like(right)
    WORLD.Reduce(right, total, root=0)
    return total[0] / (WORLD.size * len(rows))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", type=int, default=20000, help="for each rank (default: %(default)s)"
    )
    parser.add_argument("--features", type=int, default=256, help="default: %(default)s")
    parser.add_argument("--components", type=int, default=16, help="default: %(default)s")
    parser.add_argument("--iterations", type=int, default=200, help="default: %(default)s")
    arguments = parser.parse_args()

    rows, labels = draw_rows(arguments.rows, arguments.features, WORLD.rank)
    rows = standardize(rows)
    rows = rows @ principal_components(rows, arguments.components)

    weights = np.zeros(arguments.components)
    losses = []
    for _ in range(arguments.iterations):
        loss, gradient = loss_and_gradient(weights, rows, labels)
        weights -= LEARNING_RATE / arguments.components * gradient
        losses.append(loss)

    right = accuracy(weights, rows, labels)
    everyone_s = np.empty((WORLD.size, arguments.components))
    WORLD.Gather(weights, everyone_s, root=0)
    if WORLD.rank != 0:
        return 0
    equal = (everyone_s == weights).all()
    print(
        f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, {right:.0%} right, the ranks' models are "
        f"{'equal' if equal else 'not equal'}"
    )
    return 0 if losses[-1] < losses[0] and right > 0.5 and equal else 1


if __name__ == "__main__":
    sys.exit(main())

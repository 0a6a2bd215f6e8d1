"""A training run as a graph of tasks, as Dask writes one: a name -> a function and its arguments,
which may be names of other tasks."""

import itertools
from typing import Any, Dict, List, Tuple

import numpy as np

Array = np.ndarray
Graph = Dict[str, Tuple[Any, ...]]

LEARNING_RATE = 0.5


def draw_chunk(seed: int, rows: int, features: int) -> Array:
    """[rows, features + 1]: the last column is what a linear model, the same for all seeds, makes
    of the others."""
    truth = np.random.default_rng(1).normal(size=features)
    random = np.random.default_rng(1000 + seed)
    inputs = random.normal(size=(rows, features))
    return np.column_stack([inputs, inputs @ truth + 0.1 * random.normal(size=rows)])


def first_weights(features: int) -> Array:
    """[features + 1]: behind the weights stands the loss of those before them."""
    return np.append(np.zeros(features), np.inf)


def gradient(chunk: Array, weights: Array) -> Array:
    """[features + 1]: of the mean squared error, which stands behind it."""
    inputs, errors = chunk[:, :-1], chunk[:, :-1] @ weights[:-1] - chunk[:, -1]
    return np.append(inputs.T @ errors / len(chunk), np.square(errors).mean())


def step(weights: Array, *gradients: Array) -> Array:
    mean = np.mean(gradients, axis=0)
    return np.append(weights[:-1] - LEARNING_RATE * mean[:-1], mean[-1])


def training_graph(epochs: int, chunks: int, rows: int, features: int) -> Graph:
    graph: Graph = {"weights 0": (first_weights, features)}
    for chunk in range(chunks):
        graph[f"chunk {chunk}"] = (draw_chunk, chunk, rows, features)
    for epoch in range(epochs):
        gradients = [f"gradient {epoch} of chunk {chunk}" for chunk in range(chunks)]
        for chunk, name in enumerate(gradients):
            graph[name] = (gradient, f"chunk {chunk}", f"weights {epoch}")
        graph[f"weights {epoch + 1}"] = (step, f"weights {epoch}", *gradients)
    return graph


def needs(graph: Graph, name: str) -> List[str]:
    return [argument for argument in graph[name][1:] if argument in graph]


def place(graph: Graph, workers: List[int]) -> Dict[str, int]:
    """Worker of each task: that of the first task that it needs; tasks that need none go to the
    workers in turn."""
    placed: Dict[str, int] = {}
    turns = itertools.cycle(workers)
    for name in graph:
        needed = needs(graph, name)
        placed[name] = placed[needed[0]] if needed else next(turns)
    return placed

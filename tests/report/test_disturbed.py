"""Waiting for cores among many ranks: what is the same on both sides is no reason against a
verdict, whatever the number of ranks; what differs is."""

from __future__ import annotations

from random import Random
from typing import Callable

import pytest
from commprof_report.compare import refusals
from commprof_report.compare.figures import Figures
from threshold_examples.compare import ONE, rank, run, side

RUNS, EXPERIMENTS = 10, 20
Waits = Callable[[Random, int], list[float]]


def quiet(median: float) -> Waits:
    """A wait of each rank, with the long tail that daemons make."""
    return lambda chance, ranks: [median * chance.lognormvariate(0, 1) for _ in range(ranks)]


def busy_core(chance: Random, ranks: int) -> list[float]:
    return [0.4, *quiet(0.005)(chance, ranks - 1)]


def waiting(waits: list[float]) -> Figures:
    return run(ranks=[rank(core_wait=wait) for wait in waits])


def refused(ranks: int, first: Waits, second: Waits) -> int:
    """A share of 20 experiments of ten runs a side."""
    chance, number = Random(1), 0
    for _ in range(EXPERIMENTS):
        sides = [
            side((waiting(waits(chance, ranks)) for _ in range(RUNS)), name)
            for name, waits in (("a", first), ("b", second))
        ]
        number += any(each.kind for each in refusals.disturbances(ONE, sides))
    return number


@pytest.mark.parametrize("ranks", [2, 64, pytest.param(512, marks=pytest.mark.slow)])
def test_only_what_differs_between_the_sides_is_a_reason_against_a_verdict(ranks):
    found = {
        "0.5 % on both": refused(ranks, quiet(0.005), quiet(0.005)),
        "1 % on both": refused(ranks, quiet(0.01), quiet(0.01)),
        "a busy core on both": ranks > 2 and refused(ranks, busy_core, busy_core),
        "a busy core on one": EXPERIMENTS - refused(ranks, quiet(0.005), busy_core),
        "10 % on both": EXPERIMENTS - refused(ranks, quiet(0.1), quiet(0.1)),
    }
    assert all(wrong <= 0.05 * EXPERIMENTS for wrong in found.values()), found

"""Waiting for cores among many ranks: what is the same on both sides is no reason against a
verdict, whatever the number of ranks; what differs is."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Callable

import pytest
from commprof_report.compare import refusals
from commprof_report.compare.comparison import compare
from commprof_report.compare.figures import Figures
from commprof_report.compare.sides import Side
from threshold_examples.compare import ONE, RULES, key, rank, row, run, side

RUNS, EXPERIMENTS = 10, 20
Waits = Callable[[Random, int], list[float]]


def quiet(median: float) -> Waits:
    """A wait of each rank, with the long tail that daemons make."""
    return lambda chance, ranks: [median * chance.lognormvariate(0, 1) for _ in range(ranks)]


def busy_core(chance: Random, ranks: int) -> list[float]:
    return [0.4, *quiet(0.005)(chance, ranks - 1)]


def refused(ranks: int, first: Waits, second: Waits) -> int:
    """A share of 20 experiments of ten runs a side."""
    chance, number = Random(1), 0
    for _ in range(EXPERIMENTS):
        sides = [
            side(
                (
                    run(ranks=[rank(core_wait=wait) for wait in waits(chance, ranks)])
                    for _ in range(RUNS)
                ),
                name,
            )
            for name, waits in (("a", first), ("b", second))
        ]
        number += bool(refusals.disturbances(ONE, sides)[0])
    return number


@pytest.mark.parametrize("ranks", [2, 64, 512])
def test_only_what_differs_between_the_sides_is_a_reason_against_a_verdict(ranks):
    found = {
        "0.5 % on both": refused(ranks, quiet(0.005), quiet(0.005)),
        "1 % on both": refused(ranks, quiet(0.01), quiet(0.01)),
        "a busy core on both": ranks > 2 and refused(ranks, busy_core, busy_core),
        "a busy core on one": EXPERIMENTS - refused(ranks, quiet(0.005), busy_core),
        "10 % on both": EXPERIMENTS - refused(ranks, quiet(0.1), quiet(0.1)),
    }
    assert all(wrong <= 0.05 * EXPERIMENTS for wrong in found.values()), found


def held_up(chance: Random, ranks: int, median: float, times: float, start: int) -> Figures:
    """A run that scatters by 2 % and that its longest wait for a core holds up."""
    waits = quiet(median)(chance, ranks)
    ns = 1e9 * times * chance.lognormvariate(0, 0.02) * (1 + max(waits))
    called = row(ns * ranks)
    called.calls.update(dict.fromkeys(range(ranks), 1))
    return run(
        ranks=[rank(rank=number, core_wait=wait) for number, wait in enumerate(waits)],
        world_size=ranks,
        start_unix_ns=start,
        transfer_ns=ns,
        rows={key("Allreduce"): called},
    )


def verdicts(ranks: int, median: float, times: float) -> Counter[str]:
    """Counts of 20 experiments of ten blocks."""
    chance, found = Random(ranks), Counter()
    for _ in range(EXPERIMENTS):
        sides = [
            Side(
                name,
                [
                    held_up(chance, ranks, median, factor, 2 * block + place)
                    for block in range(RUNS)
                ],
                [*range(RUNS)],
            )
            for place, (name, factor) in enumerate((("a", 1.0), ("b", times)))
        ]
        found[compare(sides, RULES).pairs[0].verdict.verdict] += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "ranks, median", [(2, 0.01), (64, 0.01), pytest.param(512, 0.005, marks=pytest.mark.nightly)]
)
def test_a_planted_tenth_is_found_and_nothing_where_nothing_differs(ranks, median):
    """docs/METHODS.md says what more of them have shown."""
    alike, planted = verdicts(ranks, median, 1.0), verdicts(ranks, median, 1.1)
    assert alike["less"] + alike["more"] <= 0.2 * EXPERIMENTS and alike["refused"] <= 1
    assert planted["more"] >= 0.9 * EXPERIMENTS and not planted["less"] + planted["same"]

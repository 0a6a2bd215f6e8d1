"""Whether steps became slower over the run: Kendall's test on the medians of parts of it.

The steps are divided, in order of time, into up to 16 parts with the same number of steps, three or more. Under chance every order of their
medians is equally probable, so the probability that as many pairs are in order, or more, follows from the number of permutations with so
many inversions. Kendall, Rank Correlation Methods; a run has less than 1 % probability of showing a trend if all orders are equally probable.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import factorial
from statistics import median
from typing import NamedTuple

from ..late.verdict import LEVEL

FEWEST_STEPS = 20
MOST_PARTS = 16
FEWEST_OF_A_PART = 3
NOTABLE = 0.02  # share of the median step


class Trend(NamedTuple):
    trend: str  # 'none', 'slower', 'faster', 'unknown'
    trend_p: float | None
    first_tenth_ns: float | None
    last_tenth_ns: float | None


def trend(step_ns: Sequence[float]) -> Trend:
    """Of the durations of steps in order of time."""
    if len(step_ns) < FEWEST_STEPS:
        return Trend("unknown", None, None, None)
    medians = [median(part) for part in parts(step_ns)]
    score = sum((later > earlier) - (later < earlier) for earlier, later in combinations(medians, 2))
    tenth = len(step_ns) // 10
    first_ns, last_ns = median(step_ns[:tenth]), median(step_ns[-tenth:])
    change_ns, p = last_ns - first_ns, chance(len(medians), abs(score))
    is_seen = p < LEVEL and change_ns * score > 0 and abs(change_ns) >= NOTABLE * median(step_ns)
    return Trend(("slower" if score > 0 else "faster") if is_seen else "none", p, first_ns, last_ns)


def parts(step_ns: Sequence[float]) -> list[Sequence[float]]:
    number = min(MOST_PARTS, len(step_ns) // FEWEST_OF_A_PART)
    edges = [len(step_ns) * at // number for at in range(number + 1)]
    return [step_ns[begin:end] for begin, end in zip(edges, edges[1:])]


def chance(places: int, score: int) -> float:
    """Probability that the pairs of a random permutation that are in order exceed the others, or the reverse, by `score` or more."""
    inversions = [1]  # number of permutations with so many inversions
    for places_yet in range(2, places + 1):
        longer = [0] * (len(inversions) + places_yet - 1)
        for number, count in enumerate(inversions):
            for more in range(places_yet):
                longer[number + more] += count
        inversions = longer
    pairs = len(inversions) - 1
    return sum(count for number, count in enumerate(inversions) if abs(pairs - 2 * number) >= score) / factorial(places)

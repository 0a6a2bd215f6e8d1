"""Differences beyond chance.

Kendall's test, exact: whether values in order of time rise or fall. Under chance every order of the
values is equally probable. So the probability that as many pairs are in order, or more, follows
from the number of permutations with so many inversions. Kendall, Rank Correlation Methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import factorial


def score(values: Sequence[float]) -> int:
    """The pairs that rise less those that fall; equal ones are neither."""
    return sum((later > earlier) - (later < earlier) for earlier, later in combinations(values, 2))


def chance(places: int, least: int) -> float:
    """Probability that the score of a random permutation, or its negative, is `least` or more."""
    inversions = [1]  # number of permutations with so many inversions
    for places_yet in range(2, places + 1):
        longer = [0] * (len(inversions) + places_yet - 1)
        for number, count in enumerate(inversions):
            for more in range(places_yet):
                longer[number + more] += count
        inversions = longer
    pairs = len(inversions) - 1
    return sum(
        count for number, count in enumerate(inversions) if abs(pairs - 2 * number) >= least
    ) / factorial(places)

"""Differences beyond chance.

Kendall's test, exact: whether values in order of time rise or fall. Under chance every order of the
values is equally probable. So the probability that as many pairs are in order, or more, follows
from the number of permutations with so many inversions. Kendall, Rank Correlation Methods.

Siblings: communicators of a family side by side, and the one among them that differs from all
others. docs/METHODS.md has the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, combinations
from math import factorial
from statistics import median
from typing import NamedTuple

from . import threshold, whole


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


FAR = threshold("base.sibling-band")


class Sibling(NamedTuple):
    """whole_ns: the time that value_ns is a part of, or value_ns itself."""

    name: str
    value_ns: float
    whole_ns: float


class Outside(NamedTuple):
    """The band has all others."""

    sibling: Sibling
    low_ns: float
    high_ns: float


def outside(siblings: Sequence[Sibling]) -> Outside | None:
    ordered = sorted(siblings, key=lambda sibling: sibling.value_ns)
    if len(ordered) < whole("base.siblings-judged"):
        return None
    least_ns = threshold("base.sibling-gap") * median(sibling.whole_ns for sibling in ordered)
    for apart, others in ((ordered[-1], ordered[:-1]), (ordered[0], ordered[1:])):
        low_ns, high_ns = others[0].value_ns, others[-1].value_ns
        gap_ns = max(apart.value_ns - high_ns, low_ns - apart.value_ns)
        if gap_ns > max(FAR * (high_ns - low_ns), least_ns):
            return Outside(apart, low_ns, high_ns)
    return None


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Each p adjusted: those below q are a set of findings of which a share of q is expected to be
    false."""
    order = sorted(range(len(ps)), key=ps.__getitem__, reverse=True)
    corrected = (ps[index] * len(ps) / (len(ps) - place) for place, index in enumerate(order))
    found = dict(zip(order, accumulate(corrected, min)))
    return [found[index] for index in range(len(ps))]

"""Siblings: communicators of a family side by side, and the one among them that differs from all
others. docs/METHODS.md has the rule."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from .thresholds import threshold, whole

FEWEST = whole("base.siblings-judged")
FAR = threshold("base.sibling-band")
NOTABLE = threshold("base.sibling-gap")


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
    if len(ordered) < FEWEST:
        return None
    least_ns = NOTABLE * median(sibling.whole_ns for sibling in ordered)
    for apart, others in ((ordered[-1], ordered[:-1]), (ordered[0], ordered[1:])):
        low_ns, high_ns = others[0].value_ns, others[-1].value_ns
        gap_ns = max(apart.value_ns - high_ns, low_ns - apart.value_ns)
        if gap_ns > max(FAR * (high_ns - low_ns), least_ns):
            return Outside(apart, low_ns, high_ns)
    return None

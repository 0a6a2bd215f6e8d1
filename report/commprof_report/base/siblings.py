"""Siblings: communicators of a family side by side, and the one among them that differs from all
others. docs/SCHEMA.md has the rule."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from .gather import gathered
from .thresholds import threshold, whole

FEWEST = whole("base.siblings")
FEWEST_JUDGED = whole("base.siblings-judged")
FAR = threshold("base.sibling-band")
NOTABLE = threshold("base.sibling-gap")
MOST = 6  # families


class Sibling(NamedTuple):
    """whole_ns: the time that value_ns is a part of, or value_ns itself."""

    name: str
    value_ns: float
    whole_ns: float


class Family(NamedTuple):
    """The band holds all siblings but `outside`."""

    name: str
    siblings: list[Sibling]
    median_ns: float
    low_ns: float
    high_ns: float
    outside: Sibling | None


def families(rows: Iterable[tuple[str, Sibling]]) -> list[Family]:
    """By name, in the order of their first rows."""
    members = gathered(rows)
    return [family(name, own) for name, own in members.items() if len(own) >= FEWEST][:MOST]


def family(name: str, siblings: list[Sibling]) -> Family:
    ordered = sorted(siblings, key=lambda sibling: sibling.value_ns)
    middle_ns, least_ns = (
        median(sibling.value_ns for sibling in ordered),
        NOTABLE * median(sibling.whole_ns for sibling in ordered),
    )
    for apart, others in ((ordered[-1], ordered[:-1]), (ordered[0], ordered[1:])):
        low_ns, high_ns = others[0].value_ns, others[-1].value_ns
        gap_ns = max(apart.value_ns - high_ns, low_ns - apart.value_ns)
        if len(ordered) >= FEWEST_JUDGED and gap_ns > max(FAR * (high_ns - low_ns), least_ns):
            return Family(name, ordered, middle_ns, low_ns, high_ns, apart)
    return Family(name, ordered, middle_ns, ordered[0].value_ns, ordered[-1].value_ns, None)

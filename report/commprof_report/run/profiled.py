"""Which ranks of a job were profiled, where COMMPROF_RANKS chose some. The others leave no file and
are not missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

ONE_PER_NODE = "one-per-node"
SPAN = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")
MOST = 1 << 20  # ranks that are listed; a file may claim any number


class Profiled(NamedTuple):
    setting: str  # as it was given: 0-63:8
    ranks: frozenset[int]

    def __contains__(self, rank: object) -> bool:
        return rank in self.ranks


def profiled_ranks(setting: str, present: Iterable[int], world_size: int) -> Profiled | None:
    """None: all were to be. One per node: which ones is known from their files alone."""
    if setting == ONE_PER_NODE:
        return Profiled(setting, frozenset(present))
    spans = _spans(setting, world_size) if setting else None
    if spans is None or sum(map(len, spans)) > MOST:
        return None
    return Profiled(setting, frozenset(present).union(*spans))


def _spans(setting: str, world_size: int) -> list[range] | None:
    spans = []
    for part in setting.split(","):
        match = SPAN.fullmatch(part)
        if not match:
            return None
        first, last, step = match.groups()
        spans.append(
            range(int(first), min(int(last or first) + 1, world_size), int(step or 0) or 1)
        )
    return spans


def as_ranges(ranks: Sequence[int]) -> list[range]:
    """Ascending ranks as ranges without gaps."""
    found: list[range] = []
    for rank in ranks:
        if found and found[-1].stop == rank:
            found[-1] = range(found[-1].start, rank + 1)
        else:
            found.append(range(rank, rank + 1))
    return found

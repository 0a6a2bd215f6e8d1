"""Which ranks of a job were profiled, where COMMPROF_RANKS chose some. The others leave no file and
are not missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..base.units import span_of

ONE_PER_NODE = "one-per-node"
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
    found = [span_of(part) for part in setting.split(",")]
    known = [span for span in found if span is not None]
    spans = [range(span.start, min(span.stop, world_size), span.step) for span in known]
    return spans if len(spans) == len(found) else None

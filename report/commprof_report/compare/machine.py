"""Whether the machine was the same for both sides, by what was measured on its hosts before each run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from ..base import units
from .figures import Figures
from .judge import Judge
from .sides import Side

NAMES = {"arithmetic_ns": "arithmetic", "memory_ns": "copies in memory"}


class Drift(NamedTuple):
    """change: of the side against the reference, ratio - 1."""

    what: str
    change: float


def drifts(judge: Judge, reference: Side, side: Side) -> Iterator[Drift]:
    """Differences beyond chance that matter. On each run the slowest host counts."""
    strict = judge._replace(level=1 - (1 - judge.level) / len(NAMES))
    for name, noun in NAMES.items():
        found = strict.contrast(*([run.canary_ns(name) for run in each.runs] for each in (reference, side)))
        if found.outcome in ("less", "more") and abs(math.log1p(found.change)) > judge.margin:
            change = f"{units.share(abs(found.change))} {'more' if found.change > 0 else 'less'} time"
            than = f"before the runs of {side.name} than before those of {reference.name}"
            yield Drift(f"{noun} took {change} {than}{_where(name, reference, side, found.change)}", found.change)


def _where(name: str, reference: Side, side: Side, change: float) -> str:
    """The host that changed most, if there are several."""
    first, second = (_medians(name, each.runs) for each in (reference, side))
    ratios = {host: math.log(second[host] / first[host]) for host in first if host in second}
    return f", most on {max(ratios, key=lambda host: math.copysign(1, change) * ratios[host])}" if len(ratios) > 1 else ""


def _medians(name: str, runs: Sequence[Figures]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for run in runs:
        for host, canary in run.canaries.items():
            values.setdefault(host, []).append(getattr(canary, name))
    return {host: median(own) for host, own in values.items()}

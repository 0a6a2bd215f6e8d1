"""Whether the machine was the same for both sides, and its hosts alike, by what was measured on
them before each run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from ..base import units
from ..base.gather import gathered
from ..base.thresholds import threshold
from .figures import Figures
from .judge import Judge
from .rank_tests import Paired, shift_of
from .refusals import Refusal
from .sides import Side

NAMES = {"arithmetic_ns": "arithmetic", "memory_ns": "copies in memory"}
MOST_SLOW = 3  # that are named


def weighed(
    judge: Judge, reference: Side, sides: Sequence[Side], metric: str
) -> tuple[list[Refusal], list[str]]:
    """A difference of the machine is a reason against a verdict if it is as large as that of the
    metric; else it is noted."""
    refused, noted = [], []
    for side in sides:
        of_metric = judge.contrast(
            *([run.of_run(metric) for run in each.runs] for each in (reference, side))
        )
        for what, change in drifts(judge, reference, side):
            if of_metric.change is None or _size(change) >= _size(of_metric.change):
                way_out = "run more blocks on a machine that nothing else uses; or --allow machine"
                what = f"{what}: as much as the sides differ in {metric}"
                refused.append(Refusal("machine", what, way_out))
            else:
                noted.append(
                    f"the machine was not the same: {what}; the sides differ by more in {metric}"
                )
    return refused, noted


def _size(change: float) -> float:
    return abs(math.log1p(change))


def drifts(judge: Judge, reference: Side, side: Side) -> Iterator[tuple[str, float]]:
    """Differences beyond chance that matter, ratios - 1. On each run the slowest host counts."""
    strict = judge._replace(level=1 - (1 - judge.level) / len(NAMES))
    for name, noun in NAMES.items():
        change = strict.contrast(
            *([run.canary_ns(name) for run in each.runs] for each in (reference, side))
        ).difference
        if change is not None and _size(change) > judge.margin:
            took = f"{units.share(abs(change))} {'more' if change > 0 else 'less'} time"
            than = f"before the runs of {side.name} than before those of {reference.name}"
            where = _where(name, reference, side, change)
            yield f"{noun} took {took} {than}{where}", change


def slow_hosts(runs: Sequence[Figures]) -> Iterator[str]:
    """Hosts that were slower than the others of their runs, beyond chance and by
    enough to matter."""
    for name, noun in NAMES.items():
        found = sorted(_slow(name, runs).items(), key=lambda host: -host[1])
        if found:
            said = [f"{units.share(slower)} longer on {host}" for host, slower in found[:MOST_SLOW]]
            more = f", and on {len(found) - MOST_SLOW} more" if len(found) > MOST_SLOW else ""
            yield (
                f"{noun} took {', '.join(said)}{more} than on the other hosts, before the runs "
                "of all sides"
            )


def _slow(name: str, runs: Sequence[Figures]) -> dict[str, float]:
    """By host: its time over the median of the others, less 1."""
    measured = (
        {host: getattr(canary, name) for host, canary in run.canaries.items()} for run in runs
    )
    ratios = gathered(
        (host, math.log(own / median(other for place, other in times.items() if place != host)))
        for times in measured if len(times) > 1 and min(times.values()) > 0
        for host, own in times.items()
    )
    level = 1 - threshold("compare.host-chance") / (len(NAMES) * max(1, len(ratios)))
    shifts = {host: shift_of(Paired(own), level) for host, own in ratios.items()}
    return {
        host: math.expm1(shift.estimate) for host, shift in shifts.items()
        if shift.low > math.log(threshold("compare.slow-host"))
    }


def _where(name: str, reference: Side, side: Side, change: float) -> str:
    """The host that changed most, if there are several."""
    first, second = (_medians(name, each.runs) for each in (reference, side))
    ratios = {host: math.log(second[host] / first[host]) for host in first if host in second}
    return (
        f", most on {max(ratios, key=lambda host: math.copysign(1, change) * ratios[host])}"
        if len(ratios) > 1 else ""
    )


def _medians(name: str, runs: Sequence[Figures]) -> dict[str, float]:
    values = gathered(
        (host, getattr(canary, name)) for run in runs for host, canary in run.canaries.items()
    )
    return {host: median(own) for host, own in values.items()}

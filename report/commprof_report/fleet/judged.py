"""Who is late in other people's jobs, too, and which calls have changed: tests over all jobs of a
store, adjusted for how many are looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..base import gathered, threshold, units
from ..base.columns import np
from ..base.chance import benjamini_hochberg
from ..base.query import Row, row_type
from .engines import Asked, Engine, rows_of
from .questions import QUESTIONS

LEVEL = threshold("fleet.level")
BEHIND, CHANGE = threshold("fleet.behind"), threshold("fleet.change")
LEAST_DAYS = threshold("fleet.days")
NEAR = 3  # days on either side of a change
HOST, CHANGED = (row_type(name, QUESTIONS[name].columns.split()) for name in ("hosts", "changes"))


def answers(engine: Engine, name: str, asked: Asked) -> list[Row]:
    """The rows of a question, judged where chance has a part in them."""
    rows = rows_of(engine, name, asked)
    if name == "hosts":
        return hosts_judged(rows)
    return [_since(engine, row) for row in changes_judged(rows)] if name == "changes" else rows


def _since(engine: Engine, row: Row) -> Row:
    asked = {"program": row.program, "day": row.day}
    found = (f"{each.name}={each.value}" for each in rows_of(engine, "around", asked))
    return row._replace(since=", ".join(found))


def verdict(hosts: Sequence[Row]) -> list[str]:
    late = [row for row in hosts if row.is_late]
    return [
        f"{row.host} came last in {row.last_jobs:,} of {row.jobs:,} jobs of {row.users:,} users; "
        f"any host there in {row.expected_jobs:,.0f}. It is behind by "
        f"{units.share(row.behind_share)} of the wall time." for row in late
    ] or ["No host comes last in other people's jobs, too, beyond chance."]


def hosts_judged(rows: Sequence[Row]) -> list[Row]:
    """rows: of hosts.sql, a host and user each. The user whose jobs say most against a host does
    not count for it, so one person's habit is no fault of the host's."""
    found = []
    for host, own in gathered((row.host, row) for row in rows).items():
        others = sorted(own, key=lambda row: row.expected_jobs - row.last_jobs)[1:]
        jobs, last, expected, behind_ns, wall_ns = (
            sum(getattr(row, key) for row in own)
            for key in ("jobs", "last_jobs", "expected_jobs", "behind_ns", "wall_ns")
        )
        p = tail(*(
            sum(getattr(row, key) for row in others)
            for key in ("last_jobs", "expected_jobs", "variance")
        ))
        found.append(HOST(
            host, int(jobs), len(own), int(last), expected, behind_ns / max(1, wall_ns), p, 0,
        ))
    adjusted = benjamini_hochberg([row.p for row in found])
    judged = (
        row._replace(p=p, is_late=int(is_late(p, row.behind_share)))
        for row, p in zip(found, adjusted)
    )
    return sorted(judged, key=lambda row: (-row.is_late, row.p, row.host))


def is_late(p: float, behind_share: float) -> bool:
    return p <= LEVEL and behind_share >= BEHIND


def tail(observed: float, mean: float, variance: float) -> float:
    """How often chance shows as much: of a binomial distribution with this mean and variance, which
    sums of hypergeometric ones have less than."""
    share = 1 - variance / mean if mean else 1.0
    if observed <= mean or share <= 0 or share >= 1:
        return 1.0
    trials = max(math.ceil(mean / share), math.ceil(observed))
    logs = [
        math.lgamma(trials + 1) - math.lgamma(number + 1) - math.lgamma(trials - number + 1)
        + number * math.log(share) + (trials - number) * math.log1p(-share)
        for number in range(math.ceil(observed), trials + 1)
    ]
    return min(1.0, sum(map(math.exp, logs)))


def changes_judged(rows: Sequence[Row]) -> list[Row]:
    """rows: of changes.sql, a day each of a call of a program on so many ranks."""
    series = gathered(
        ((row.program, row.ranks, row.hosts, row.call, row.role, row.high_bytes, row.measure), row)
        for row in rows
    )
    long = {key: own for key, own in series.items() if len(own) >= LEAST_DAYS}
    tested = [_changed(key, own) for key, own in long.items()]
    adjusted = benjamini_hochberg([row.p for row, _ in tested])
    found = [
        row._replace(p=p) for (row, is_step), p in zip(tested, adjusted)
        if is_step and has_changed(p, row.change)
    ]
    return sorted(found, key=lambda row: (row.program, row.day, row.p, row.call))


def has_changed(p: float, change: float) -> bool:
    return p <= LEVEL and abs(change) >= CHANGE


def _changed(key: tuple, days: Sequence[Row]) -> tuple[Row, bool]:
    """The day before which days differ most from those from it on (Pettitt 1979), and whether the
    days right before and after it differ by half as much: else it is a drift, without a date."""
    values = np.array([float(day.mean_ns) for day in days])
    at, p = pettitt(values)
    before, after = np.median(values[:at]), np.median(values[at:])
    step = np.median(values[at : at + NEAR]) - np.median(values[max(0, at - NEAR) : at])
    row = CHANGED(
        *key, days[at].day, len(days), int(sum(day.jobs for day in days)), float(before),
        float(after), float(after / before - 1) if before else 0.0, p, "",
    )
    return row, bool(step / (after - before) >= 0.5) if after != before else False


def pettitt(values: np.ndarray) -> tuple[int, float]:
    """The begin of the second part, and the probability that chance alone differs as much."""
    n = len(values)
    order = np.sort(values)
    ranks = (np.searchsorted(order, values) + np.searchsorted(order, values, "right") + 1) / 2
    sums = np.abs(2 * np.cumsum(ranks) - np.arange(1, n + 1) * (n + 1))[:-1]
    at = int(np.argmax(sums))
    return at + 1, min(1.0, 2 * math.exp(-6 * sums[at] ** 2 / (n**3 + n**2)))

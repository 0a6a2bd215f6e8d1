"""Percentiles: of values, and of the buckets of a histogram (run/chosen_cell.sql has the latter for
groups of cells); and how far values lie around their median."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import TypeVar

DEVIATION = 1.4826  # standard deviation / median absolute deviation, of a normal distribution
Value = TypeVar("Value")


def of_values(ordered: Sequence[Value], percent: int) -> Value:
    """The least value that so many percent of the values do not exceed."""
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


def of_buckets(
    buckets: Iterable[tuple[int, int, int]], percent: int, least_ns: int, most_ns: int
) -> float:
    """Within the first bucket at which so many percent of the calls are reached, as if its calls
    were spread evenly in it. buckets: lower and upper bound, calls."""
    ordered = sorted(buckets)
    wanted = percent / 100 * sum(count for _, _, count in ordered)
    for low_ns, high_ns, count in ordered:
        if wanted <= count:
            low_ns, high_ns = max(low_ns, least_ns), min(high_ns, most_ns)
            return low_ns + (high_ns - low_ns) * wanted / count
        wanted -= count
    return most_ns


def around_median(values: Sequence[float]) -> tuple[float, float]:
    """The median, and the median absolute deviation from it."""
    middle = median(values)
    return middle, median(abs(value - middle) for value in values)

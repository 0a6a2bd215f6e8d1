"""Percentiles: of values, and of the buckets of histograms. There is one definition of the latter:
within the first bucket at which so many percent of the calls are reached, as if its calls were
spread evenly in it, between the least and the most duration. And how far values lie around their
median."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple, TypeVar

from .columns import Floats, Groups, Ints, np

DEVIATION = 1.4826  # standard deviation / median absolute deviation, of a normal distribution
Value = TypeVar("Value")

BUCKETS = 512  # at least as many as a histogram has
AT_ONCE = 1 << 22  # buckets of groups that are summed at once
ASKED = (50, 95, 99)
BEYOND = 100  # percents of calls: fewer beyond a percentile do not support it


class Histogram(NamedTuple):
    """Buckets in use of many histograms: the row that each belongs to, its number, its calls. And
    the bounds of all buckets, by number; an upper bound of 0: none."""

    row: Ints
    bucket: Ints
    count: Ints  # type: ignore[assignment]  # hides tuple.count
    low_ns: Ints
    high_ns: Ints


def of_values(ordered: Sequence[Value], percent: int) -> Value:
    """The least value that so many percent of the values do not exceed."""
    return ordered[max(0, -(-percent * len(ordered) // 100) - 1)]


def of_groups(values: Ints, groups: Groups, percent: int) -> Ints:
    """The same, of each group of rows."""
    ordered = values[np.lexsort((values, groups.of_row))]
    return ordered[groups.first + np.maximum(0, -(-percent * groups.counts // 100) - 1)]


def of_buckets(
    buckets: Iterable[tuple[int, int, int]], percent: int, least_ns: int, most_ns: int
) -> float:
    """The percentile of one histogram. buckets: lower and upper bound, calls."""
    low_ns, high_ns, count = np.array(sorted(buckets) or [(least_ns, most_ns, 0)], float).T
    places = np.arange(len(count))
    one = Histogram(0 * places, places, count, low_ns, high_ns)
    found = of_histograms(one, places[:1], np.array([least_ns]), np.array([most_ns]), [percent], 0)
    return found[percent].item()


def summed(histogram: Histogram, group_of_row: Ints, groups: int) -> Histogram:
    """The histogram of each group, whose number stands for its row; -1: in none. In pieces, so that
    buckets that no call is in take little memory."""
    group = group_of_row[histogram.row]
    width = int(histogram.bucket.max(initial=0)) + 1
    keys: list[Ints] = [np.zeros(0, np.int64)]
    counts: list[Floats] = [np.zeros(0)]
    for first in range(0, groups, max(1, AT_ONCE // width)):
        last = min(groups, first + max(1, AT_ONCE // width))
        own = (group >= first) & (group < last)
        key = (group[own] - first).astype(np.int64) * width + histogram.bucket[own]
        calls = np.bincount(key, histogram.count[own])
        used = np.flatnonzero(calls)
        keys.append(used + first * width)
        counts.append(calls[used])
    key = np.concatenate(keys)
    return histogram._replace(row=key // width, bucket=key % width, count=np.concatenate(counts))


def of_histograms(
    histogram: Histogram, group_of_row: Ints, least_ns: Ints, most_ns: Ints,
    asked: Sequence[int] = ASKED, beyond: int = BEYOND,
) -> dict[int, Floats]:
    """By percent, those of each group. Null where too few calls support it: p95 needs 20, p99
    100."""
    found = summed(histogram, group_of_row, len(least_ns))
    groups, number = Groups(found.row), found.row
    before = np.cumsum(found.count) - found.count
    own = 100 * found.count
    upto = 100 * (before - before[groups.first][groups.of_row]) + own
    whole = groups.sum(found.count)
    high_ns = found.high_ns[found.bucket]
    low_ns = np.maximum(found.low_ns[found.bucket], least_ns[number])
    high_ns = np.minimum(np.where(high_ns, high_ns, most_ns[number]), most_ns[number])
    answers = {}
    for percent in asked:
        wanted = percent * whole
        at = groups.first_at(upto >= groups.spread(wanted))
        values = low_ns[at] + (high_ns - low_ns)[at] * (wanted - upto[at] + own[at]) / own[at]
        is_known = (percent <= 50) | ((100 - percent) * whole >= beyond)
        answers[percent] = np.where(  # in a file that is not ours a histogram may be missing
            (percent <= 50) & (least_ns <= most_ns),
            least_ns * (1 - percent / 100) + most_ns * (percent / 100), np.nan,
        )
        answers[percent][number[groups.first]] = np.where(is_known, values, np.nan)
    return answers


def around_median(values: Sequence[float]) -> tuple[float, float]:
    """The median, and the median absolute deviation from it."""
    middle = median(values)
    return middle, median(abs(value - middle) for value in values)

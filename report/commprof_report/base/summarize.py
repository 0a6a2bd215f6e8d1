"""Views of counters: group rows by these keys, and show that of each group.

A view is a table: its keys, the fields of its answer, which rows it looks at, and their order. A
field is a column that all rows of a group have the same value of, or a function of the groups.
Sizes of messages may be grouped by bins.

Percentiles: of values, and of the buckets of histograms. There is one definition of the latter:
within the first bucket at which so many percent of the calls are reached, as if its calls were
spread evenly in it, between the least and the most duration.

Kendall's test, exact: whether values in order of time rise or fall. Under chance every order of the
values is equally probable. So the probability that as many pairs are in order, or more, follows
from the number of permutations with so many inversions. Kendall, Rank Correlation Methods.

Steps of different ranks: which are the same, by the times at which they end; which are the
warm-up.
"""

from __future__ import annotations

from collections import namedtuple
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, combinations
from math import exp, factorial, log
from statistics import median
from typing import Any, NamedTuple, Union

from .core import (
    NONE,
    Columns,
    Flags,
    Floats,
    Groups,
    Ints,
    Row,
    Texts,
    Value,
    grouped,
    np,
    row_type,
    threshold,
    whole,
)


Where = Callable[[Any], Any]  # from the counters to flags; None: all of them
MOST_SUM = (1 << 63) - 1


class Counters:
    """Rows as columns, which are attributes, as its `histogram` is. texts: of the columns that are
    named here."""

    texts: Texts
    text_names: frozenset[str]

    def is_in(self, name: str, *texts: str) -> Flags:
        """Whether the column has one of these texts."""
        return self.texts.among(getattr(self, name), texts)


class Table(Counters):
    """Columns, so that their rows can be grouped."""

    text_names = frozenset(("identity", "call", "wait_state", "name"))

    def __init__(self, columns: Columns, texts: Texts) -> None:
        self.columns, self.texts = columns, texts

    def __getattr__(self, name: str) -> Any:
        return getattr(self.columns, name)

    def __len__(self) -> int:
        return len(self.columns)


class Sums:
    """Groups of counters that have the same keys, and what is computed of each."""

    def __init__(self, counters: Any, rows: Ints, keys: Sequence[np.ndarray]) -> None:
        self.counters = counters
        order, self.groups = grouped(*keys)
        self.rows = rows[order]  # in the order of the groups
        self.keys = [key[order[self.groups.first]] for key in keys]
        self.percentiles: dict[Where | None, dict[int, Floats]] = {}

    def __len__(self) -> int:
        return len(self.groups)

    def __getattr__(self, name: str) -> Any:
        """A column of which all rows of a group have the same value."""
        return getattr(self.counters, name)[self.rows[self.groups.first]]

    def flags(self, where: Where | None) -> Flags:
        return np.ones(len(self.rows), bool) if where is None else where(self.counters)[self.rows]

    def values(self, name: str, where: Where | None, other: int) -> Ints:
        values = getattr(self.counters, name)[self.rows]
        values = values if values.dtype.kind == "f" else values.astype(np.int64)
        return values if where is None else np.where(self.flags(where), values, other)

    def has(self, where: Where) -> Flags:
        return self.groups.max(self.flags(where))

    def sum(self, name: str, where: Where | None = None) -> np.ndarray:
        """Exact up to 2^63, a float beyond."""
        values = self.values(name, where, 0)
        if values.dtype.kind == "f" or values.sum(dtype=float) < MOST_SUM / 2:
            return self.groups.sum(values)
        exact = self.groups.sum(values.astype(object))
        return np.array([each if each <= MOST_SUM else float(each) for each in exact], object)

    def min(self, name: str, where: Where | None = None) -> Ints:
        return self.groups.min(self.values(name, where, MOST_SUM))

    def max(self, name: str, where: Where | None = None) -> Ints:
        return self.groups.max(self.values(name, where, NONE))

    def distinct(self, name: str, where: Where | None = None) -> Ints:
        """How many values the column has."""
        return np.bincount(self.within(name, where=where).of, minlength=len(self))

    @property
    def of(self) -> Ints:
        """The first key: of groups in groups, which of these each is in."""
        return self.keys[0]

    def within(self, *keys: str, where: Where | None = None) -> Sums:
        """Groups in these groups, by more keys."""
        chosen = np.flatnonzero(self.flags(where))
        rows = self.rows[chosen]
        more = [getattr(self.counters, key)[rows] for key in keys]
        return Sums(self.counters, rows, [self.groups.of_row[chosen], *more])

    def first_of(self, inner: Sums, *order: np.ndarray) -> Ints:
        """For each group the one within it that comes first; -1: there is none."""
        places = np.lexsort((*order[::-1], inner.of))
        found = np.full(len(self), -1)
        found[inner.of[places[::-1]]] = places[::-1]
        return found

    def histograms(self) -> Histogram:
        """A histogram for each group, whose number is its row."""
        return summed(self.counters.histogram, self.of_rows(None))

    def of_rows(self, where: Where | None) -> Ints:
        """By row of the counters: its group, or -1."""
        found = np.full(len(self.counters), -1)
        found[self.rows] = np.where(self.flags(where), self.groups.of_row, -1)
        return found

    def percentile(self, percent: int, where: Where | None = None) -> Floats:
        if where not in self.percentiles:
            self.percentiles[where] = of_histograms(
                self.counters.histogram,
                self.of_rows(where),
                self.min("min_ns", where),
                self.max("max_ns", where),
            )
        return self.percentiles[where][percent]

    def spread(self, values: np.ndarray, *keys: str) -> np.ndarray:
        """The sum of the values over all groups with the same value of these columns."""
        order, groups = grouped(*(getattr(self, key) for key in keys))
        found = np.empty(len(self), values.dtype)
        found[order] = groups.spread(groups.sum(values[order]))
        return found

    def place(self, texts: str | Ints) -> Ints:
        """In alphabetical order, of a column or of numbers of texts."""
        numbers = getattr(self, texts) if isinstance(texts, str) else texts
        return self.counters.texts.order()[numbers]

    def texts(self, numbers: Ints) -> np.ndarray:
        """As an answer has them."""
        return np.array([*self.counters.texts.texts, None], object)[numbers]

    def is_in(self, name: str, *texts: str) -> Flags:
        return self.counters.texts.among(getattr(self, name), texts)


Field = Union[str, Callable[[Sums], Any]]


class View(NamedTuple):
    """keys: columns, or functions of the counters. fields: by key how each is computed; or Fields
    of base. order: what groups are sorted by, the first key first. having: which groups are
    shown."""

    name: str
    keys: Sequence[str | Where]
    fields: Mapping[str, Field] | Sequence[Any]
    order: Callable[[Sums], Sequence[np.ndarray]]
    where: Where | None = None
    having: Callable[[Sums], Flags] | None = None

    @property
    def row(self) -> Any:
        """The type of its rows."""
        return row_type(self.name, self.fields)

    @property
    def computed(self) -> Iterator[Field]:
        """By default a Field is a measure of its key, or a column."""
        if isinstance(self.fields, Mapping):
            return iter(self.fields.values())
        return (each.of or MEASURES.get(each.key, each.key) for each in self.fields)


def among(name: str, *texts: str) -> Where:
    """The rows whose column has one of these texts."""
    return lambda counters: counters.is_in(name, *texts)


def total(name: str, where: Where | None = None) -> Field:
    return lambda groups: groups.sum(name, where)


def any_total(name: str, where: Where) -> Field:
    """Null where no cell counts."""
    return lambda groups: np.where(groups.has(where), groups.sum(name, where), NONE)


def durations(*percents: int, where: Where | None = None) -> dict[str, Field]:
    """Durations of single calls."""

    def at(percent: int) -> Field:
        return lambda groups: groups.percentile(percent, where)

    return {
        "total_ns": total("total_ns", where),
        "mean_ns": lambda groups: ratio(groups.sum("total_ns", where), groups.sum("count", where)),
        "min_ns": lambda groups: groups.min("min_ns", where),
        **{f"p{percent}_ns": at(percent) for percent in percents},
        "max_ns": lambda groups: groups.max("max_ns", where),
    }


MEASURES: dict[str, Field] = {
    "ranks": lambda groups: groups.distinct("world_rank"),
    **{key: total(key) for key in ("count", "volume_bytes", "blocked_ns")},
    **durations(50, 95, 99),
}


def measures(*keys: str) -> dict[str, Field]:
    return {key: MEASURES[key] for key in keys}


def own(*names: str) -> dict[str, Field]:
    """Fields that are columns of the same name."""
    return {name: name for name in names}


def sums(counters: Any, keys: Sequence[str | Where], where: Where | None = None) -> Sums:
    rows = np.arange(len(counters)) if where is None else np.flatnonzero(where(counters))
    of_all = [getattr(counters, key) if isinstance(key, str) else key(counters) for key in keys]
    return Sums(counters, rows, [key[rows] for key in of_all])


def summarize(counters: Any, view: View) -> list[Row]:
    groups = sums(counters, view.keys, view.where)
    order = np.lexsort(tuple(view.order(groups))[::-1])
    if view.having:
        order = order[view.having(groups)[order]]
    columns = []
    for field in view.computed:
        values = np.asarray(getattr(groups, field) if isinstance(field, str) else field(groups))
        values = np.broadcast_to(values, len(groups))[order]
        is_text = isinstance(field, str) and field in counters.text_names
        columns.append(values_of(values, counters.texts if is_text else None))
    return list(map(view.row._make, zip(*columns)))


def values_of(column: np.ndarray, texts: Texts | None = None) -> Iterator[Any]:
    """Python's values; None for NONE and for numbers that are not there."""
    if texts:
        return map([*texts.texts, None].__getitem__, np.where(column == NONE, -1, column).tolist())
    if column.dtype == bool:
        return map(int, column.tolist())
    values = column.tolist()
    return (None if value == NONE or value != value else value for value in values)


def ratio(part: np.ndarray, whole: np.ndarray | float) -> Floats:
    """Null of nothing."""
    whole = np.asarray(whole, float)
    return np.asarray(part, float) / np.where(whole == 0, np.nan, whole)


KIB, MIB = 1 << 10, 1 << 20

# The ranges in hvprof's tables of Horovod's Allreduce (Awan et al., Hot Interconnects 2019): upper
# bounds; the last bin is open.
HVPROF_BOUNDS = (0, 128 * KIB, 16 * MIB, 32 * MIB, 64 * MIB)
HVPROF_LOW, HVPROF_HIGH = (0, *(bound + 1 for bound in HVPROF_BOUNDS)), (*HVPROF_BOUNDS, NONE)


def exact(sizes: Ints, are_folded: Ints) -> tuple[Ints, Ints]:
    """A bin for each size; for a folded cell the range of its sizes."""
    return np.where(are_folded, sizes // 2 + 1, sizes), sizes


def pow2(sizes: Ints, _: Ints) -> tuple[Ints, Ints]:
    """Above 2^(k-1), up to 2^k. 0 and 1 have their own bins."""
    powers = 1 << np.arange(63)
    high = np.where(sizes, powers[np.searchsorted(powers, sizes)], 0)
    return np.where(sizes, high // 2 + 1, 0), high


def hvprof(sizes: Ints, _: Ints) -> tuple[Ints, Ints]:
    """1 B to 128 KiB, up to 16 MiB, up to 32 MiB, up to 64 MiB, above; empty messages
    separately."""
    place = np.searchsorted(HVPROF_BOUNDS, sizes)
    return np.array(HVPROF_LOW)[place], np.array(HVPROF_HIGH)[place]


BINS = {"exact": exact, "pow2": pow2, "hvprof": hvprof}


DEVIATION = 1.4826  # standard deviation / median absolute deviation, of a normal distribution
ASKED = (50, 95, 99)
BEYOND = 100  # percents of calls: fewer beyond a percentile do not support it


# Buckets in use of many histograms: the row that each belongs to, its number, its calls. And the
# bounds of all buckets, by number; an upper bound of 0: none.
Histogram = namedtuple("Histogram", "row bucket count low_ns high_ns")


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


def summed(histogram: Histogram, group_of_row: Ints) -> Histogram:
    """The histogram of each group, whose number stands for its row; -1: in none."""
    group = group_of_row[histogram.row]
    own = np.flatnonzero((group >= 0) & (histogram.count > 0))
    order, groups = grouped(group[own], histogram.bucket[own])
    rows = own[order]
    first = rows[groups.first]
    calls = groups.sum(histogram.count[rows].astype(float))
    return histogram._replace(row=group[first], bucket=histogram.bucket[first], count=calls)


def of_histograms(
    histogram: Histogram,
    group_of_row: Ints,
    least_ns: Ints,
    most_ns: Ints,
    asked: Sequence[int] = ASKED,
    beyond: int = BEYOND,
) -> dict[int, Floats]:
    """By percent, those of each group. Null where too few calls support it: p95 needs 20, p99
    100."""
    found = summed(histogram, group_of_row)
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
            least_ns * (1 - percent / 100) + most_ns * (percent / 100),
            np.nan,
        )
        answers[percent][number[groups.first]] = np.where(is_known, values, np.nan)
    return answers


def around_median(values: Sequence[float]) -> tuple[float, float]:
    """The median, and the median absolute deviation from it."""
    middle = median(values)
    return middle, median(abs(value - middle) for value in values)


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Each p adjusted: those below q are a set of findings of which a share of q is expected to be
    false."""
    order = sorted(range(len(ps)), key=ps.__getitem__, reverse=True)
    corrected = (ps[index] * len(ps) / (len(ps) - place) for place, index in enumerate(order))
    found = dict(zip(order, accumulate(corrected, min)))
    return [found[index] for index in range(len(ps))]


def line_ns(size: int, below: tuple[int, float], above: tuple[int, float] | None) -> float:
    """How long a call of this size takes by the sizes next to it, which have bytes and durations:
    on the line between them on logarithmic axes; beyond the largest in proportion to the bytes."""
    if above is None:
        return below[1] * size / below[0]
    part = log(size / below[0]) / log(above[0] / below[0])
    return exp((1 - part) * log(below[1]) + part * log(above[1]))


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


MOST_MISSED = whole("base.missed-steps")
SAME_STEP = threshold("base.same-step")


def agree(times: dict[int, list[int]]) -> bool:
    """True if all ranks have equally many times, and those with equal numbers lie close
    together."""
    first, *others = times.values()
    apart = _apart(first)
    return all(len(own) == len(first) and _is_close(own, first, apart) for own in others)


def matched(ends: dict[int, list[int]]) -> dict[int, list[int]]:
    """By key, step numbers from the times at which steps end: steps of different keys that end
    together share a number. Keys whose steps do not go with the others' are left out: nobody makes
    as many steps as all of them together, or one step is several of another."""
    if not ends:
        return {}
    first, *others = sorted(ends, key=lambda key: -len(ends[key]))
    apart = _apart(ends[first])
    known = sorted(ends[first])
    matches = {first: list(ends[first])}
    for key in others:
        if _apart(ends[key]) > threshold("base.several-steps") * apart:
            continue
        if len(ends[first]) - len(ends[key]) <= MOST_MISSED:
            in_order = _in_order(ends[first], ends[key])
            if _is_close(ends[key], in_order, apart):
                matches[key] = list(in_order)
            continue
        nearest = [_nearest(known, end_ns, SAME_STEP * apart) for end_ns in ends[key]]
        if len({*known, *nearest}) <= len(ends[first]) + MOST_MISSED:
            matches[key], known = nearest, sorted({*known, *nearest})
    number = {end_ns: place for place, end_ns in enumerate(known, 1)}
    return {key: _unique([number[end_ns] for end_ns in own]) for key, own in matches.items()}


def _apart(ends: Sequence[int]) -> float:
    return median([later - earlier for earlier, later in zip(ends, ends[1:])] or [0])


def _in_order(known: Sequence[int], ends: Sequence[int]) -> Sequence[int]:
    """As many of the known ends, of which there are at least as many: those after each other with
    the least total distance. So steps were missed at the begin or at the end."""
    missed = range(len(known) - len(ends) + 1)
    return min(
        (known[first : first + len(ends)] for first in missed),
        key=lambda chosen: sum(abs(end_ns - own_ns) for end_ns, own_ns in zip(chosen, ends)),
    )


def _is_close(ends: Sequence[int], others: Sequence[int], apart: float) -> bool:
    return median(abs(end_ns - other_ns) for end_ns, other_ns in zip(ends, others)) < max(
        SAME_STEP * apart, 1
    )


def _nearest(known: Sequence[int], end_ns: int, within: float) -> int:
    place = bisect_left(known, end_ns)
    nearest = min(known[max(0, place - 1) : place + 1], key=lambda other: abs(other - end_ns))
    return nearest if abs(nearest - end_ns) <= within else end_ns


def _unique(numbers: list[int]) -> list[int]:
    """Two steps of a rank never share a number."""
    for place in range(1, len(numbers)):
        numbers[place] = max(numbers[place], numbers[place - 1] + 1)
    return numbers


def warm_up(times: dict[int, float]) -> Iterator[int]:
    """The first step, and the steps directly after it that last much longer than usual."""
    if 1 not in times or len(times) < 2:
        return
    usual = median(times.values())
    for place, (number, time) in enumerate(times.items()):
        is_slow = time > threshold("base.slow-start") * usual
        if place and (not is_slow or place >= threshold("base.warm-up") * len(times)):
            return
        yield number

"""Columns: many rows of one kind, as one numpy array for each field, and groups of rows.

Those of a query are as it names them; what makes others may declare them, as a dataclass. `np` is
numpy, imported when it is first used: what only prints starts without it, and who lacks it is told
so in a line.

Percentiles: of values, and of the buckets of histograms. There is one definition of the latter:
within the first bucket at which so many percent of the calls are reached, as if its calls were
spread evenly in it, between the least and the most duration.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from sqlite3 import Connection, Cursor
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from . import ReportError

NONE = -(1 << 62)  # a number that is not there: SQL's null
AT_ONCE = 50_000  # rows
FEW = 512  # rows that are sorted at once

if TYPE_CHECKING:
    import numpy as np

    Ints = np.ndarray  # of int64
    Floats = np.ndarray  # of float64
    Flags = np.ndarray  # of bool
    TextInts = np.ndarray  # of int64: numbers of texts (Texts), or NONE
else:
    Ints = Floats = Flags = TextInts = "np.ndarray"

    class Deferred:
        def __getattr__(self, name: str) -> Any:
            try:
                import numpy
            except ImportError:
                how = "the package python3-numpy, or pip install numpy"
                raise ReportError(
                    "numpy", f"this needs it, and this Python does not have it: {how}"
                ) from None
            vars(self).update(vars(numpy))
            return getattr(numpy, name)

    np = Deferred()


class Texts:
    """Numbers for texts, from 0 in the order in which they were first seen."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.numbers: dict[str | None, int] = {None: NONE}

    def number(self, text: str | None) -> int:
        if text is not None and text not in self.numbers:
            self.numbers[text] = len(self.texts)
            self.texts.append(text)
        return self.numbers[text]

    def all(self, texts: Sequence[str | None]) -> TextInts:
        for text in dict.fromkeys(texts):
            self.number(text)
        return np.fromiter(map(self.numbers.__getitem__, texts), np.int64, len(texts))

    def text(self, number: int) -> str | None:
        return None if number == NONE else self.texts[number]

    def among(self, numbers: TextInts, texts: Container[str | None]) -> Flags:
        """Which of the numbers are those of these texts?"""
        chosen = np.fromiter(
            (text in texts for text in [*self.texts, None]), bool, len(self.texts) + 1
        )
        return chosen[np.where(numbers == NONE, len(self.texts), numbers)]

    def order(self) -> Ints:
        """By number: the place of its text among all, in alphabetical order."""
        order = np.empty(len(self.texts), np.int64)
        order[sorted(range(len(self.texts)), key=self.texts.__getitem__)] = np.arange(
            len(self.texts)
        )
        return order


class Columns:
    """Columns of the same length, by name."""

    def __init__(self, **columns: np.ndarray) -> None:
        vars(self).update(columns)

    def __getattr__(self, name: str) -> np.ndarray:
        raise AttributeError(f"there is no column {name}")

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    def take(self: Table, rows: np.ndarray | slice) -> Table:
        """These rows, by their numbers or flags."""
        if not isinstance(rows, slice) and rows.dtype == bool and rows.all():
            return self
        return type(self)(**{name: column[rows] for name, column in vars(self).items()})

    def changed(self: Table, **columns: np.ndarray) -> Table:
        """With these columns."""
        return type(self)(**{**vars(self), **columns})


Table = TypeVar("Table", bound=Columns)


def table(
    kind: type[Table], rows: Iterable[Sequence[Any]], texts: Texts, names: Sequence[str] = ()
) -> Table:
    """Rows of Python's values; texts become numbers, None becomes NONE. names: of columns that the
    kind does not declare. Those that begin with is_ are flags."""
    columns = list(zip(*rows)) or repeat(())
    names = names or [*getattr(kind, "__dataclass_fields__")]
    return kind(**{name: _array(name, values, texts) for name, values in zip(names, columns)})


def read(kind: type[Table], cursor: Cursor, texts: Texts) -> Table:
    """The rows that a query answers."""
    names = [column[0] for column in cursor.description]
    pieces = iter(partial(cursor.fetchmany, AT_ONCE), [])
    parts = [table(kind, rows, texts, names) for rows in pieces]
    return joined(kind, parts or [table(kind, [], texts, names)])


def read_large(
    kind: type[Table], connection: Connection, query: str, texts: Texts, text_names: Container[str]
) -> Table:
    """The rows of a query of whole numbers and texts, of which the first column is their number.
    SQL writes each column of numbers as one text for numpy: no number becomes Python's."""
    described = connection.execute(f"SELECT * FROM ({query}) LIMIT 0").description
    place, *names = [column[0] for column in described]
    counts = ", ".join(f"count({name})" for name in names)
    last, *present = connection.execute(f"SELECT max({place}), {counts} FROM ({query})").fetchone()
    numbers = [
        f"group_concat(coalesce({name}, {NONE}))"
        for name, count in zip(names, present)
        if count and name not in text_names
    ]
    parts = []
    for first in range(0, (last or 0) + 1, AT_ONCE):
        rows = f"FROM ({query}) WHERE {place} BETWEEN {first} AND {first + AT_ONCE - 1}"
        counted = ", ".join(["count(*)", *numbers])
        size, *found = connection.execute(f"SELECT {counted} {rows}").fetchone()
        left = iter(found)
        columns = {
            name: np.full(size, NONE)
            if not count
            else texts.all([text for (text,) in connection.execute(f"SELECT {name} {rows}")])
            if name in text_names
            else np.fromstring(next(left) or "", np.int64, sep=",")
            for name, count in zip(names, present)
        }
        parts.append(kind(**columns))
    return joined(kind, parts)


def joined(kind: type[Table], parts: Sequence[Columns]) -> Table:
    """The rows of all parts, with the columns that each of them has."""
    parts = [part for part in parts if len(part)] or parts[:1]
    names = [name for name in vars(parts[0]) if all(name in vars(part) for part in parts)]
    if len(parts) == 1:
        return kind(**vars(parts[0]))
    return kind(**{name: np.concatenate([vars(part)[name] for part in parts]) for name in names})


def _array(name: str, values: Sequence[Any], texts: Texts) -> np.ndarray:
    first = next((value for value in values if value is not None), None)
    if isinstance(first, str):
        return texts.all(values)
    if isinstance(first, float) or name.startswith("is_"):
        return np.array(values, np.float64 if isinstance(first, float) else bool)
    try:
        return np.fromiter(values, np.int64, len(values))
    except TypeError:
        return np.array([NONE if value is None else value for value in values], np.int64)


class Groups:
    """Runs of neighbouring rows that have the same keys. There may be no row."""

    def __init__(self, *keys: np.ndarray) -> None:
        rows = len(keys[0])
        changes = np.zeros(rows, bool)
        changes[:1] = True
        for key in keys:
            changes[1:] |= key[1:] != key[:-1]
        self.first = np.flatnonzero(changes)  # row of each group
        self.counts = np.diff(np.append(self.first, rows))
        self.of_row = np.cumsum(changes) - 1  # group of each row
        self.rows = rows

    def __len__(self) -> int:
        return len(self.first)

    def spread(self, of_groups: np.ndarray) -> np.ndarray:
        """A value for each group, at each of its rows."""
        return of_groups[self.of_row]

    def max(self, values: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(values, self.first) if self.rows else values[:0]

    def min(self, values: np.ndarray) -> np.ndarray:
        return np.minimum.reduceat(values, self.first) if self.rows else values[:0]

    def sum(self, values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, self.first) if self.rows else values[:0]

    def place(self) -> Ints:
        """Position of each row in its group, from 0."""
        return np.arange(self.rows) - self.first[self.of_row]

    def first_at(self, flags: Flags) -> Ints:
        """First row of each group at which the flag is set; the number of all rows if there is
        none."""
        return self.min(np.where(flags, np.arange(self.rows), self.rows))

    def first_most(self, values: np.ndarray) -> Ints:
        """First row of each group that has the group's largest value."""
        return self.first_at(values == self.spread(self.max(values)))


def _packed(keys: Sequence[np.ndarray]) -> Ints | None:
    """One number for each row, in the order of its keys, which is sorted faster than they are.
    None: there are few rows, or no numbers are large enough."""
    if len(keys[0]) < FEW or any(key.dtype.kind == "f" for key in keys):
        return None
    numbers, count = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        low = key.min()
        if low == NONE:
            low = key[key != NONE].min(initial=1 << 62) - 1
            key = np.maximum(key, low)
        size = int(key.max()) - int(low) + 1
        count *= size
        if count > 1 << 62:
            return None
        numbers = numbers * size + (key.astype(np.int64) - low)
    return numbers


def grouped(*keys: np.ndarray) -> tuple[Ints, Groups]:
    """The order of the rows by these keys, equal ones in their own order, and the groups in that
    order."""
    packed = _packed(keys)
    if packed is not None:
        order = np.argsort(packed, kind="stable")
        return order, Groups(packed[order])
    order = np.lexsort(keys[::-1])
    return order, Groups(*(key[order] for key in keys))


def numbered(*keys: np.ndarray) -> Ints:
    """For each row the number of its keys, in their order: the same for the same keys."""
    order, groups = grouped(*keys)
    numbers = np.empty(groups.rows, np.int64)
    numbers[order] = groups.of_row
    return numbers


def found_in(keys: Sequence[np.ndarray], known: Sequence[np.ndarray]) -> Ints:
    """For each row of keys the first row of `known` that has the same; -1: none has."""
    both = [np.concatenate(pair) for pair in zip(known, keys)]
    packed = _packed(both)
    numbers = numbered(*both) if packed is None else packed
    number, first = np.unique(numbers[: len(known[0])], return_index=True)
    if not len(number):
        return np.full(len(keys[0]), -1)
    own = numbers[len(known[0]) :]
    place = np.minimum(np.searchsorted(number, own), len(number) - 1)
    return np.where(number[place] == own, first[place], -1)


def pairs(wanted: Ints, keys: Ints) -> tuple[Ints, Ints]:
    """Each row of wanted with each row of keys, which are in order, that is equal."""
    begin, end = (np.searchsorted(keys, wanted, side) for side in ("left", "right"))
    counts = end - begin
    row = np.repeat(np.arange(len(wanted)), counts)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts - begin, counts)


def covered(begins: Ints, ends: Ints, number: int) -> Flags:
    """Which of so many places are in a span, from its begin up to its end?"""
    change = np.zeros(number + 1, np.int64)
    np.add.at(change, begins, 1)
    np.add.at(change, ends, -1)
    return np.cumsum(change)[:-1] > 0


def by_rank(world_ranks: Ints) -> Iterator[tuple[int, Ints]]:
    """Each rank with its rows."""
    order, groups = grouped(world_ranks)
    for first, rows in zip(groups.first.tolist(), np.split(order, groups.first[1:])):
        yield int(world_ranks[order[first]]), rows


DEVIATION = 1.4826  # standard deviation / median absolute deviation, of a normal distribution
Value = TypeVar("Value")

BUCKETS = 512  # at least as many as a histogram has
BUCKETS_AT_ONCE = 1 << 22  # buckets of groups that are summed at once
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
    for first in range(0, groups, max(1, BUCKETS_AT_ONCE // width)):
        last = min(groups, first + max(1, BUCKETS_AT_ONCE // width))
        own = (group >= first) & (group < last)
        key = (group[own] - first).astype(np.int64) * width + histogram.bucket[own]
        calls = np.bincount(key, histogram.count[own])
        used = np.flatnonzero(calls)
        keys.append(used + first * width)
        counts.append(calls[used])
    key = np.concatenate(keys)
    return histogram._replace(row=key // width, bucket=key % width, count=np.concatenate(counts))


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
            least_ns * (1 - percent / 100) + most_ns * (percent / 100),
            np.nan,
        )
        answers[percent][number[groups.first]] = np.where(is_known, values, np.nan)
    return answers


def around_median(values: Sequence[float]) -> tuple[float, float]:
    """The median, and the median absolute deviation from it."""
    middle = median(values)
    return middle, median(abs(value - middle) for value in values)

"""The counters of a run as columns, in terms of the whole run; the filters leave some of them.

timed: what the times of a cell are of: 'call' (unsuccessful polls included), 'completion'; for NCCL
also 'device', and 'captured', which has moved nothing yet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from sqlite3 import Connection, Cursor
from typing import Any

from ..base.columns import (
    NONE, Columns, Flags, Histogram, Ints, Texts, found_in, np, numbered, read,
)
from ..base.summarize import BINS, Counters, Row, View, summarize
from .traffic_class import traffic_classify

CELLS = (
    "SELECT cell, world_rank, thread, call, communicator, bytes, measure, memory_kind, region,"
    " is_folded, count, CASE measure WHEN 'captured' THEN 0 ELSE volume_bytes END AS volume_bytes,"
    " total_ns, min_ns, max_ns, blocked_ns FROM cell ORDER BY cell"
)
# of a call that the schema does not know
UNKNOWN = {
    "family": "unknown", "library": "mpi", "form": "blocking", "bandwidth": "unrated",
    "waits_for": "nobody",
}
TEXTS = frozenset(
    ("call", "measure", "memory_kind", "region", "identity", "label", "timed", "traffic", *UNKNOWN)
)


class Cells(Counters):
    """following: columns that follow from another one, as the values at each of its values."""

    text_names = TEXTS

    def __init__(self, chosen: Chosen) -> None:
        self.chosen, self.connection, self.texts = chosen, chosen.connection, Texts()
        self.columns = columns_of(self.connection.execute(CELLS), self.texts)
        self.following: dict[str, tuple[str, np.ndarray]] = {}
        self._calls_describe()
        self._communicators_describe()
        self._sizes_bin(chosen.bins)

    def __len__(self) -> int:
        return len(self.columns["cell"])

    def __getattr__(self, name: str) -> Any:
        if name in ("columns", "following") or name.startswith("__"):
            raise AttributeError(name)
        if name in ("traffic", "is_told"):
            self._traffic_add()
        if name in self.following:
            key, values = self.following[name]
            return values[self.columns[key]]
        return self.columns[name]

    def take(self, flags: Flags) -> Cells:
        """These cells."""
        chosen = object.__new__(Cells)
        vars(chosen).update(vars(self))
        chosen.columns = {name: values[flags] for name, values in self.columns.items()}
        return chosen

    @cached_property
    def counted(self) -> dict[int, int]:
        """The selected ranks, and the time in which calls of each were counted."""
        counted = self.connection.execute("SELECT world_rank, counted_ns FROM rank_wall")
        ranks = self.chosen.ranks
        return {rank: ns for rank, ns in counted if ranks is None or rank in ranks}

    @property
    def counted_ns(self) -> int:
        return sum(self.counted.values())

    @property
    def message_bytes(self) -> np.ndarray:
        """The bytes of all messages of a cell."""
        return self.count.astype(float if self.is_huge else np.int64) * self.bytes

    @cached_property
    def is_huge(self) -> bool:
        return float(self.count.max(initial=0)) * float(self.bytes.max(initial=0)) >= 1 << 63

    @cached_property
    def histogram(self) -> Histogram:
        return histogram_of(
            self.connection, self.cell, "SELECT cell AS number, bucket, count FROM bucket"
        )

    def _calls_describe(self) -> None:
        known = self.connection.execute(f"SELECT name, {', '.join(UNKNOWN)} FROM call")
        described = {name: values for name, *values in known}
        calls, unknown = list(self.texts.texts), [*UNKNOWN.values()]
        timed = ["call" if text == "poll" else text for text in calls]
        for name, *of_texts in zip(UNKNOWN, *(described.get(call, unknown) for call in calls)):
            self.following[name] = "call", self.texts.all(of_texts)
        self.following["timed"] = "measure", self.texts.all(timed)

    def _communicators_describe(self) -> None:
        known = columns_of(self.connection.execute("SELECT * FROM communicator_of"), self.texts)
        self.columns["communicator"] = found_in(
            [self.world_rank, self.communicator], [known["world_rank"], known["communicator"]]
        )
        self.following.update(
            {name: ("communicator", known[name]) for name in ("identity", "label", "size")}
        )
        regions = columns_of(self.connection.execute("SELECT * FROM region_of"), self.texts)
        place = found_in([self.world_rank, self.region], [regions["world_rank"], regions["region"]])
        self.columns["region"] = regions["region_name"][place]

    def _sizes_bin(self, bins: str) -> None:
        """bytes_low, bytes_high: the bin of each size."""
        keys = self.bytes, self.is_folded
        number = numbered(*keys)
        _, first = np.unique(number, return_index=True)
        sizes = zip(*(key[first].tolist() for key in keys))
        of_sizes = [BINS[bins](size, bool(is_folded)) for size, is_folded in sizes]
        self.columns["own_size"] = number
        for place, name in enumerate(("bytes_low", "bytes_high")):
            values = [NONE if each[place] is None else each[place] for each in of_sizes]
            self.following[name] = "own_size", np.array(values, np.int64)

    def _traffic_add(self) -> None:
        """Traffic of the whole run, whatever is selected."""
        traffic_classify(self.connection)
        known = columns_of(
            self.connection.execute("SELECT * FROM cell_traffic ORDER BY cell"), self.texts
        )
        place = np.searchsorted(known["cell"], self.cell)
        self.columns.update({name: known[name][place] for name in ("traffic", "is_told")})


def histogram_of(connection: Connection, numbers: Ints, buckets: str) -> Histogram:
    """Histograms of rows with these numbers, which are in order. buckets: what selects number,
    bucket, count."""
    found = columns_of(connection.execute(buckets), Texts())
    bounds = columns_of(
        connection.execute(
            "SELECT low_ns, coalesce(high_ns, 0) AS high_ns FROM bucket_bound ORDER BY bucket"
        ),
        Texts(),
    )
    row = np.searchsorted(numbers, found["number"])
    is_own = np.append(numbers, -1)[row] == found["number"]
    own = [found[name][is_own] for name in ("bucket", "count")]
    return Histogram(row[is_own], *own, *bounds.values())


def columns_of(cursor: Cursor, texts: Texts) -> dict[str, np.ndarray]:
    """The columns of a query's answer, in as few bytes as they need."""
    return {name: _small(column) for name, column in vars(read(Columns, cursor, texts)).items()}


def _small(column: np.ndarray) -> np.ndarray:
    is_small = column.dtype == np.int64 and len(column) and -(1 << 31) <= column.min()
    return column.astype(np.int32) if is_small and column.max() < 1 << 31 else column


class Chosen:
    """A run as the filters leave it; None: all. sizes: the smallest and the largest one."""

    def __init__(
        self, connection: Connection, texts: Mapping[str, Collection[str]],
        ranks: Collection[int] | None, sizes: tuple[int | None, int | None], bins: str,
    ) -> None:
        self.connection, self.texts, self.ranks = connection, texts, ranks
        self.sizes, self.bins = sizes, bins

    def has(self, name: str, text: str) -> bool:
        return name not in self.texts or text in self.texts[name]

    @cached_property
    def cells(self) -> Cells:
        cells = Cells(self)
        low, high = self.sizes
        flags = (cells.bytes >= (low or 0)) & (high is None or cells.bytes <= high)
        for name, texts in self.texts.items():
            flags &= cells.is_in(name, *texts)
        if self.ranks is not None:
            flags &= np.isin(cells.world_rank, [*self.ranks])
        return cells if flags.all() else cells.take(flags)


def cells_of(connection: Any) -> Cells:
    """The selected cells."""
    return connection.chosen.cells


def view_rows(connection: Any, view: View) -> list[Row]:
    """The view of the selected cells."""
    return summarize(cells_of(connection), view)

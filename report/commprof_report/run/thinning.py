"""Reduces the samples of a run to the number that a command requests, the same ones on all ranks.

During the job, each rank reduces its samples by raising levels (ledger_format.h). This module raises the levels further, for all ranks at
once. There is a level for the collectives of each communicator, one for all calls without a sequence number, and one for GPU activities.
The level of the class with the most samples is raised until there are few enough samples. A communicator of which a higher level would leave
less than a quarter is at its last blocks: of each of them, only the first half is retained, then a quarter, and so on. The last windows stay.

    each file   count its samples in each block and window -> raise levels -> read the rows of those retained, check and copy them
    at the end  delete the samples that were copied before the levels rose; store the new levels in the tables

A run of databases alone is counted before any of them is read, so that the levels are the last ones then.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ..base import query
from .ledger import BLOCK_SAMPLES, LEVEL_NONE, WINDOW_NS_LOG2
from .ledger_samples import block_of, covered, is_retained

SQL = query.beside(__file__)

MOST_SAMPLES = 500_000
FEWEST_OF_BLOCK = 32  # collectives of a block that are retained at least
WITHOUT_SEQUENCE = ""  # the class of all calls without a sequence number
OF_GPUS = "gpu"  # the class of GPU activities
WINDOWS = {  # by class: SQL that reads the windows, deletes them, and inserts those that remain
    WITHOUT_SEQUENCE: (
        "SELECT world_rank, thread, begin_ns, end_ns, start_unix_ns FROM sample_window JOIN rank USING (world_rank)",
        "DELETE FROM sample_window",
        "INSERT INTO sample_window VALUES (?, ?, ?, ?)",
    ),
    OF_GPUS: (
        "SELECT world_rank, stream, begin_ns, end_ns, start_unix_ns FROM gpu_sample_window JOIN rank USING (world_rank)",
        "DELETE FROM gpu_sample_window",
        "INSERT INTO gpu_sample_window VALUES (?, ?, ?, ?)",
    ),
}
PASSED_BLOCK = """EXISTS (  -- is a row of the table sample with a sequence number not retained?
    SELECT 1
    FROM temp.thinned_communicator AS thinned
    WHERE thinned.world_rank = sample.world_rank AND thinned.communicator = sample.communicator
      AND ((((sequence - 1) >> 10) + 1) & ((1 << level) - 1) <> 0 OR (sequence - 1) & 1023 >= most)
)"""
THINNED = """INSERT INTO temp.thinned_communicator
SELECT world_rank, communicator, level, most FROM {0}.communicator JOIN temp.sample_class ON class = identity"""


class Sampled(NamedTuple):
    """A table whose rows are retained or not."""

    class_: str  # of its rows without a sequence number
    time: str = "start_ns"  # the column that says in which window these are
    has_sequence: bool = False  # its other rows are in blocks of a communicator's collectives


SAMPLED = {
    "sample": Sampled(WITHOUT_SEQUENCE, has_sequence=True),
    "sample_message": Sampled(WITHOUT_SEQUENCE),
    "sample_start": Sampled(WITHOUT_SEQUENCE),
    "region_span": Sampled(WITHOUT_SEQUENCE, "end_ns"),
    "gpu_sample": Sampled(OF_GPUS),
}


class CountRow(NamedTuple):
    """Samples of a file in one block or window, and the rows of their table that they are between; null for impossible rows."""

    sampled: str
    class_: str | None
    number: int | None
    count: int
    first_row: int
    last_row: int


Counts = dict[str, Counter[tuple[int, int]]]  # by class: blocks of ranks by their highest level and number of samples


class Counted(NamedTuple):
    """The samples of a file, and between which rows they are."""

    counts: Counts
    rows: list[CountRow]


class Thinning:
    """Which samples of a run are retained; `most` None: all."""

    def __init__(self, connection: sqlite3.Connection, most: int | None = MOST_SAMPLES) -> None:
        self.connection = connection
        self.most = most
        self.levels: dict[str, int] = {}  # by class: a communicator's identity, WITHOUT_SEQUENCE, OF_GPUS
        self.firsts: dict[str, int] = {}  # by class: how many collectives of a block are retained, if not all
        self.counts: Counts = {}
        self.ahead: dict[Path, Counted] = {}  # files that are counted, but not read yet
        self.classes: list[tuple[str, int, int]] = []  # rows of the TEMP TABLE sample_class
        SQL.run(connection, "thinning_create")

    @property
    def is_needed(self) -> bool:
        return bool(self.levels or self.firsts)

    @property
    def found(self) -> int:
        """The number of samples without thinning."""
        return sum(count * blocks for counts in self.counts.values() for (_, count), blocks in counts.items())

    @contextmanager
    def adding(self) -> Iterator[None]:
        """While samples of a file are added. If that fails, they do not count."""
        before = {kind: Counter(counts) for kind, counts in self.counts.items()}, dict(self.levels), dict(self.firsts)
        try:
            yield
        except BaseException:
            self.counts, self.levels, self.firsts = before
            raise

    def look_ahead(self, path: Path, counted: Counted) -> None:
        """Raises the levels as a file requires that is read later."""
        self.count(counted.counts)
        self._raise()
        self.ahead[path] = counted._replace(rows=self._retained_rows(counted.rows))

    def forget(self) -> None:
        self.levels.clear()
        self.firsts.clear()
        self.counts.clear()
        self.ahead.clear()

    def part(self, connection: sqlite3.Connection, paths: Iterable[Path]) -> Thinning:
        """The same levels, for a part of the files; those counted ahead do not raise them."""
        part = Thinning(connection, self.most)
        part.levels, part.firsts, part.ahead = self.levels, self.firsts, {path: self.ahead[path] for path in paths if path in self.ahead}
        return part

    def attached_count(self, filled: Container[str]) -> Counted:
        """Counts the samples of the attached database `source`. filled: its tables that have rows."""
        rows = [] if self.most is None else self._counted(filled)
        counts = _counts((row.class_, row.number, row.count) for row in rows if None not in row)
        return Counted(counts, rows)

    def _retained_rows(self, rows: Iterable[CountRow]) -> list[CountRow]:
        """Those of a rank or communicator that is not there are retained, so that they are found."""
        return [row for row in rows if None in row or self._keeps(row.class_, row.number)]

    def attached_choose(self, path: Path, filled: Container[str]) -> dict[str, str]:
        """Which samples of the attached database `source`, which is `path`, are retained? Fills the TEMP TABLE retained_rows with the rows
        between which they are; gives, by table, SQL that is true for others among these. Nothing: all are."""
        is_ahead = path in self.ahead
        counted = self.ahead.pop(path) if is_ahead else self.attached_count(filled)
        self.count(counted.counts)
        if not is_ahead:
            self._raise()
        if not self.is_needed:
            return {}
        spans = _joined((row.sampled, row.first_row, row.last_row) for row in self._retained_rows(counted.rows))
        self.connection.execute("DELETE FROM temp.retained_rows")
        self.connection.executemany("INSERT INTO temp.retained_rows VALUES (?, ?, ?)", spans)
        return dict(self._passed("source"))

    def _counted(self, filled: Container[str]) -> list[CountRow]:
        """Windows that the levels do not retain count as window 1, which is none of those retained either."""
        rows = SQL.run(self.connection, "thinning_count").fetchall() if "sample" in filled else []
        for table, (kind, _, has_sequence) in SAMPLED.items():
            if table not in filled:
                continue
            window, mask = _window("source", table), self._mask(kind)
            rows += self.connection.execute(
                f"SELECT '{table}', '{kind}', CASE WHEN {window} & {mask} THEN 1 ELSE {window} END, count(*), min(rowid), max(rowid) "
                f"FROM source.{table} {'WHERE sequence IS NULL' if has_sequence else ''} GROUP BY 3"
            )
        return list(map(CountRow._make, rows))

    def _mask(self, kind: str) -> int:
        """The bits that are 0 in the numbers of retained blocks and windows."""
        return (1 << self.levels.get(kind, 0)) - 1

    def _passed(self, database: str) -> Iterator[tuple[str, str]]:
        """For each table of samples in the database, SQL: is a row not retained?"""
        classes = [(kind, self.levels.get(kind, 0), self.firsts.get(kind, BLOCK_SAMPLES)) for kind in {**self.levels, **self.firsts}]
        if classes != self.classes:
            self.classes = classes
            self.connection.execute("DELETE FROM temp.sample_class")
            self.connection.executemany("INSERT INTO temp.sample_class VALUES (?, ?, ?)", classes)
        self.connection.execute("DELETE FROM temp.thinned_communicator")
        self.connection.execute(THINNED.format(database))
        for table, (kind, _, has_sequence) in SAMPLED.items():
            passed = f"coalesce({_window(database, table)} & {self._mask(kind)}, 0)"
            yield table, f"CASE WHEN sequence IS NULL THEN {passed} ELSE {PASSED_BLOCK} END" if has_sequence else passed

    def ledger_rows_thin(self, rows: dict[str, list[Any]]) -> None:
        """The same for a ledger's samples; removes those that are not retained."""
        if self.most is None:
            return
        identities = {row[1]: row[2] for row in rows["communicator"]}
        start_unix_ns = rows["rank"][0].start_unix_ns
        places = {
            table: [(kind, start_unix_ns + getattr(row, time) >> WINDOW_NS_LOG2) for row in rows[table]]
            for table, (kind, time, _) in SAMPLED.items()
        }
        places["sample"] = [
            place if row.sequence is None else (identities[row.communicator], block_of(row.sequence))
            for row, place in zip(rows["sample"], places["sample"])
        ]
        self.count(_counts((*place, count) for place, count in Counter(chain(*places.values())).items()))
        self._raise()
        if self.is_needed:
            for table, its_places in places.items():
                rows[table] = [row for row, place in zip(rows[table], its_places) if self._keeps(*place)]
            rows["sample"] = [row for row in rows["sample"] if self._is_first(row, identities)]

    def finish(self) -> None:
        if not self.is_needed:
            return
        self.connection.execute("BEGIN")
        for table, passed in self._passed("main"):
            self.connection.execute(f"DELETE FROM main.{table} WHERE {passed}")
        SQL.run(self.connection, "thinning_levels")
        for kind in WINDOWS:
            self._windows_cut(kind, self.levels.get(kind, 0))
        self.connection.execute("COMMIT")

    def count(self, counts: Counts) -> None:
        for kind, blocks in counts.items():
            self.counts.setdefault(kind, Counter()).update(blocks)

    def _raise(self) -> None:
        largest = [(-self._retained(kind, self.levels.get(kind, 0)), kind) for kind in self.counts]
        retained = -sum(count for count, _ in largest)
        heapq.heapify(largest)
        while self.most is not None and retained > self.most and largest and largest[0][0]:
            before, kind = heapq.heappop(largest)
            if self._retain_less(kind, -before):
                after = self._retained(kind, self.levels.get(kind, 0))
                retained -= -before - after
                heapq.heappush(largest, (-after, kind))

    def _retain_less(self, kind: str, retained: int) -> bool:
        """False if the class is left as it is."""
        level, first = self.levels.get(kind, 0), self.firsts.get(kind, BLOCK_SAMPLES)
        after = self._retained(kind, level + 1)
        if after if kind in WINDOWS else 4 * after >= retained:
            self.levels[kind] = level + 1
        elif kind not in WINDOWS and first > FEWEST_OF_BLOCK:
            self.firsts[kind] = first // 2
        else:
            return False
        return True

    def _retained(self, kind: str, level: int) -> int:
        first = self.firsts.get(kind, BLOCK_SAMPLES)
        return sum(min(samples, first) * times for (highest, samples), times in self.counts[kind].items() if level <= highest)

    def _keeps(self, kind: str, number: int) -> bool:
        return is_retained(number, self.levels.get(kind, 0))

    def _is_first(self, row, identities: dict[int, str]) -> bool:
        """False for a collective that is not among the first of its block, which are retained."""
        return row.sequence is None or (row.sequence - 1) % BLOCK_SAMPLES < self.firsts.get(identities[row.communicator], BLOCK_SAMPLES)

    def _windows_cut(self, kind: str, level: int) -> None:
        if level == 0:
            return
        select, delete, insert = WINDOWS[kind]
        windows = self.connection.execute(select).fetchall()
        self.connection.execute(delete)
        cut = (
            (world_rank, owner, low_ns, high_ns)
            for world_rank, owner, begin_ns, end_ns, start_unix_ns in windows
            for low_ns, high_ns in covered(begin_ns, end_ns, start_unix_ns, level, {})
            if low_ns < high_ns
        )
        self.connection.executemany(insert, cut)


def _window(database: str, table: str) -> str:
    """SQL for the number of a row's window."""
    start_unix_ns = f"(SELECT start_unix_ns FROM {database}.rank WHERE rank.world_rank = {table}.world_rank)"
    return f"({start_unix_ns} + {SAMPLED[table].time} >> {WINDOW_NS_LOG2})"


def _level_of(number: int) -> int:
    """The highest level that retains a block or window of this number: how often 2 divides it."""
    return (number & -number).bit_length() - 1 if number else LEVEL_NONE - 1


def _counts(counted: Iterable[tuple[str, int, int]]) -> Counts:
    """Of blocks and windows: class, number, samples."""
    counts: Counts = {}
    for kind, number, count in counted:
        samples, times = (1, count) if kind in WINDOWS else (count, 1)
        counts.setdefault(kind, Counter())[_level_of(number), samples] += times
    return counts


def _joined(spans: Iterable[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Spans of rows (table, first, last) in order; those that overlap are one."""
    joined: list[tuple[str, int, int]] = []
    for table, first, last in sorted(spans):
        if joined and joined[-1][0] == table and first <= joined[-1][2]:
            joined[-1] = (table, joined[-1][1], max(last, joined[-1][2]))
        else:
            joined.append((table, first, last))
    return joined

"""Reduces the samples of a run to the number that a command requests, the same ones on all ranks.

During the job, each rank reduces its samples by raising levels (ledger_format.h). This module raises the levels further, for all ranks at
once. There is a level for the collectives of each communicator, one for all calls without a sequence number, and one for GPU activities.
The level of the class with the most samples is raised until there are few enough samples. A communicator of which a higher level would leave
less than a quarter is at its last blocks: of each of them, only the first half is retained, then a quarter, and so on. The last windows stay.

    each file   count its samples in each block and window -> raise levels -> read the rows of those retained, check and copy them
    at the end  delete the samples that were copied before the levels rose; store the new levels in the tables
"""

from __future__ import annotations

import heapq
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import NamedTuple

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
SAMPLED = ("sample", "sample_message", "sample_start", "region_span", "gpu_sample")  # tables whose rows are retained or not
ALL_ROWS = (-(1 << 63), (1 << 63) - 1)


class CountRow(NamedTuple):
    """Samples of a file, and the rows of their table that they are between; thinning_count.sql."""

    sampled: str
    class_: str | None
    number: int | None
    count: int
    first_row: int
    last_row: int


class Thinning:
    """Which samples of a run are retained; `most` None: all."""

    def __init__(self, connection: sqlite3.Connection, most: int | None = MOST_SAMPLES) -> None:
        self.connection = connection
        self.most = most
        self.levels: dict[str, int] = {}  # by class: a communicator's identity, WITHOUT_SEQUENCE, OF_GPUS
        self.firsts: dict[str, int] = {}  # by class: how many collectives of a block are retained, if not all
        self.counts: dict[str, Counter[tuple[int, int]]] = {}  # by class: blocks of ranks by their highest level and number of samples
        SQL.run(connection, "thinning_create")

    @property
    def is_needed(self) -> bool:
        return bool(self.levels or self.firsts)

    @property
    def found(self) -> int:
        """The number of samples without thinning."""
        return sum(count * blocks for counts in self.counts.values() for (_, count), blocks in counts.items())

    @contextmanager
    def attached(self) -> Iterator[None]:
        """While samples of the attached database `source` are added: counts them, and reads those that are retained into the TEMP TABLEs
        retained_<table>. If adding them fails, they do not count."""
        before = {kind: Counter(counts) for kind, counts in self.counts.items()}, dict(self.levels), dict(self.firsts)
        try:
            self._count_attached()
            SQL.run(self.connection, "thinning_retain", is_whole=not self.is_needed)
            yield
        except BaseException:
            self.counts, self.levels, self.firsts = before
            raise

    def _count_attached(self) -> None:
        rows = [] if self.most is None else self._counted()
        self._add((row.class_, row.number, row.count) for row in rows if None not in row)
        spans = [(table, *ALL_ROWS) for table in SAMPLED]
        if self.is_needed:
            spans = _joined((row.sampled, row.first_row, row.last_row) for row in rows if None in row or self._keeps(row.class_, row.number))
        self.connection.execute("DELETE FROM temp.retained_rows")
        self.connection.executemany("INSERT INTO temp.retained_rows VALUES (?, ?, ?)", spans)

    def _counted(self) -> list[CountRow]:
        windows, of_gpus = ((1 << self.levels.get(kind, 0)) - 1 for kind in (WITHOUT_SEQUENCE, OF_GPUS))
        return list(map(CountRow._make, SQL.run(self.connection, "thinning_count", passed_windows=windows, passed_of_gpus=of_gpus)))

    def ledger_rows_thin(self, rows: dict[str, list[tuple]]) -> None:
        """The same for a ledger's samples; removes those that are not retained."""
        if self.most is None:
            return
        identities = {row[1]: row[2] for row in rows["communicator"]}
        start_unix_ns = rows["rank"][0][5]
        places = [_place(row, identities, start_unix_ns) for row in rows["sample"]]
        further = {
            table: [(WITHOUT_SEQUENCE, start_unix_ns + row.start_ns >> WINDOW_NS_LOG2) for row in rows[table]]
            for table in ("sample_message", "sample_start")
        }
        spans = [(WITHOUT_SEQUENCE, start_unix_ns + row[4] >> WINDOW_NS_LOG2) for row in rows["region_span"]]
        activities = [(OF_GPUS, start_unix_ns + row.start_ns >> WINDOW_NS_LOG2) for row in rows["gpu_sample"]]
        self._add((*place, count) for place, count in Counter([*places, *chain(*further.values()), *spans, *activities]).items())
        if self.is_needed:
            tables = {"sample": places, **further, "region_span": spans, "gpu_sample": activities}
            for table, its_places in tables.items():
                rows[table] = [row for row, place in zip(rows[table], its_places) if self._keeps(*place)]
            rows["sample"] = [row for row in rows["sample"] if self._is_first(row, identities)]

    def finish(self) -> None:
        if not self.is_needed:
            return
        self.connection.execute("BEGIN")
        SQL.run(self.connection, "thinning_finish")
        for kind in WINDOWS:
            self._windows_cut(kind, self.levels.get(kind, 0))
        self.connection.execute("COMMIT")

    def _add(self, counted: Iterable[tuple[str, int, int]]) -> None:
        for kind, number, count in counted:
            samples, times = (1, count) if kind in WINDOWS else (count, 1)
            self.counts.setdefault(kind, Counter())[_level_of(number), samples] += times
        largest = [(-self._retained(kind, self.levels.get(kind, 0)), kind) for kind in self.counts]
        retained = -sum(count for count, _ in largest)
        heapq.heapify(largest)
        while self.most is not None and retained > self.most and largest and largest[0][0]:
            before, kind = heapq.heappop(largest)
            if self._retain_less(kind, -before):
                after = self._retained(kind, self.levels.get(kind, 0))
                retained -= -before - after
                heapq.heappush(largest, (-after, kind))
        rows = [(kind, self.levels.get(kind, 0), self.firsts.get(kind, BLOCK_SAMPLES)) for kind in {**self.levels, **self.firsts}]
        self.connection.executemany("INSERT OR REPLACE INTO temp.sample_class VALUES (?, ?, ?)", rows)

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


def _place(row, identities: dict[int, str], start_unix_ns: int) -> tuple[str, int]:
    """The class of a sample, and the number of its block or window."""
    if row.sequence is None:
        return WITHOUT_SEQUENCE, start_unix_ns + row.start_ns >> WINDOW_NS_LOG2
    return identities[row.communicator], block_of(row.sequence)


def _level_of(number: int) -> int:
    """The highest level that retains a block or window of this number: how often 2 divides it."""
    return (number & -number).bit_length() - 1 if number else LEVEL_NONE - 1


def _joined(spans: Iterable[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """Spans of rows (table, first, last) in order; those that overlap are one."""
    joined: list[tuple[str, int, int]] = []
    for table, first, last in sorted(spans):
        if joined and joined[-1][0] == table and first <= joined[-1][2]:
            joined[-1] = (table, joined[-1][1], max(last, joined[-1][2]))
        else:
            joined.append((table, first, last))
    return joined

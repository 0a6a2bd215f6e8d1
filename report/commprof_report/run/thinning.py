"""Reduces the samples of a run to the number that a command requests: to the same stretches of time
on all ranks.

During the job, each rank reduces its samples by giving its mask more bits (ledger_format.h). This
module does the same again, for all ranks at once, with windows that are as short as the samples
require: there is a mask for calls (with messages, starts and regions), and one for the activities
of GPUs. Samples that only the record has (COMMPROF_RECORD) are left out, too: they are of one time,
and would outweigh those of all the others.

    databases   samples of some files are counted -> windows, masks -> rows in windows that have a
                bit of the mask are not read
    any file    if the samples read so far are too many after all: another bit; rows that have it
                are deleted
    at the end  sample_window and gpu_sample_window are cut
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .ledger_format import WINDOW_NS_LOG2
from .ledger_samples import covered

MOST_SAMPLES = 500_000
COUNTED_FILES = 64  # if there are more, these are counted, and the others are taken to be like them
WINDOWS_LOG2 = 8  # the samples are in at most 2^8 + 1 windows
SHORTEST_NS_LOG2 = 16  # of a window
# stretches of consecutive windows that are retained at least, if the samples allow that
STRETCHES = 4
BALANCED = 4  # a bit should leave out at least a quarter, and retain as much
CALLS, ACTIVITIES = "calls", "activities"
ALL = "0"  # SQL: no row is left out


class Sampled(NamedTuple):
    """A table whose rows are retained or not."""

    kind: str
    time: str = "end_ns"  # the column that says in which window a row is


SAMPLED = {
    "sample": Sampled(CALLS),
    "sample_message": Sampled(CALLS),
    "sample_start": Sampled(CALLS),
    "sample_epoch": Sampled(CALLS),
    "region_span": Sampled(CALLS),
    "gpu_sample": Sampled(ACTIVITIES, "start_ns"),
}
WINDOWS = {  # by kind: SQL that reads the windows, deletes them, and inserts those that remain
    CALLS: (
        "SELECT world_rank, thread, begin_ns, end_ns, start_unix_ns FROM sample_window JOIN rank "
        "USING (world_rank)",
        "DELETE FROM sample_window",
        "INSERT INTO sample_window VALUES (?, ?, ?, ?)",
    ),
    ACTIVITIES: (
        "SELECT world_rank, stream, begin_ns, end_ns, start_unix_ns FROM gpu_sample_window JOIN "
        "rank USING (world_rank)",
        "DELETE FROM gpu_sample_window",
        "INSERT INTO gpu_sample_window VALUES (?, ?, ?, ?)",
    ),
}
Counts = dict[str, Counter[int]]  # by kind: samples by window


class Extent(NamedTuple):
    """Extent of the samples in some tables. Times are nanoseconds since 1970."""

    count: int  # type: ignore[assignment]  # hides tuple.count
    low_ns: int
    high_ns: int


class Thinning:
    """Which samples of a run are retained; `most` None: all."""

    def __init__(self, connection: sqlite3.Connection, most: int | None = MOST_SAMPLES) -> None:
        self.connection = connection
        self.most = most
        self.with_record = most is None  # and the samples that only the record has
        self.window_ns_log2 = SHORTEST_NS_LOG2
        self.masks = {CALLS: 0, ACTIVITIES: 0}
        self.files, self.files_read = 1, 0
        # files that were read before, side by side, may bring more of what is left out since
        self.has_deleted = False
        # samples after that, and the sum of their tables' last row numbers
        self.retained, self.newest = 0, 0

    @property
    def is_needed(self) -> bool:
        return any(self.masks.values())

    @property
    def share(self) -> float:
        """Share of the run's time in which calls are retained."""
        return 0.5 ** bin(self.masks[CALLS]).count("1")

    def begin(self, extents: Sequence[Extent]) -> None:
        """Settles how long windows are, before anything is left out."""
        low_ns, high_ns = (
            choose(extent[which] for extent in extents) for which, choose in ((1, min), (2, max))
        )
        self.window_ns_log2 = max(SHORTEST_NS_LOG2, (high_ns - low_ns).bit_length() - WINDOWS_LOG2)

    def part(self, connection: sqlite3.Connection) -> Thinning:
        """The same masks, for a part of the files, which does not have too many."""
        part = Thinning(connection, None)
        part.with_record = self.with_record
        part.window_ns_log2, part.masks = self.window_ns_log2, dict(self.masks)
        return part

    def extents(self, database: str, tables: Iterable[str]) -> list[Extent]:
        """The samples in each of the tables of an attached database that has any."""
        found: list[tuple] = []
        for table in tables:
            if table in SAMPLED:
                time = self._time(database, table)
                found += self.connection.execute(
                    f"SELECT count(*), min({time}), max({time}) FROM {database}.{table} "
                    f"WHERE NOT {self._record(database, table)}"
                )
        return [
            extent for extent in map(Extent._make, found)
            if all(isinstance(number, int) for number in extent)
        ]

    def counts(self, database: str, tables: Iterable[str]) -> Counts:
        """The samples in tables of an attached database that the masks do not
        leave out, by window."""
        counts: Counts = {kind: Counter() for kind in self.masks}
        for table in tables:
            if table in SAMPLED:
                kind, window = SAMPLED[table].kind, self._window(database, table)
                for number, count in self.connection.execute(
                    f"SELECT {window}, count(*) FROM {database}.{table} "
                    f"WHERE NOT {self._record(database, table)} GROUP BY 1"
                ):
                    if isinstance(number, int) and not number & self.masks[kind]:
                        counts[kind][number] += count
        return counts

    def passed(self, database: str) -> dict[str, str]:
        """By table, SQL: is a row not retained? Nothing: all rows are."""
        passes = {}
        for table, (kind, _) in SAMPLED.items():
            of_record = self._record(database, table)
            if self.masks[kind] or of_record != ALL:
                passes[table] = f"{self._passes(database, table)} OR {of_record}"
        return passes

    def ledger_rows_thin(self, rows: dict[str, list[Any]]) -> None:
        """The same for a ledger's samples; removes those that are not retained."""
        rank = rows["rank"][0]
        start_unix_ns = rank.start_unix_ns
        is_record_left_out = not self.with_record and rank.record_begin_ns is not None
        for table, (kind, time) in SAMPLED.items():
            if mask := self.masks[kind]:
                rows[table] = [
                    row for row in rows[table]
                    if not start_unix_ns + getattr(row, time) >> self.window_ns_log2 & mask
                ]
            if kind == CALLS and is_record_left_out:
                rows[table] = [
                    row for row in rows[table]
                    if not start_unix_ns + row.end_ns >> WINDOW_NS_LOG2 & rank.window_mask
                ]

    def added(self, files: int = 1) -> None:
        """Files were read. If there are too many samples now, more of them are left out."""
        self.files_read += files
        if (
            self.most is None
            or self.retained + sum(self._rows("max(rowid)")) - self.newest <= self.most
        ):
            return
        if not self.is_needed:
            self.begin(self.extents("main", SAMPLED))
        self.leave_out(
            self.counts("main", SAMPLED), times_later=max(1.0, self.files / self.files_read)
        )
        self._delete()

    def finish(self) -> None:
        """The windows that remain; after the last file."""
        if self.has_deleted:
            self._delete()
        for kind, mask in self.masks.items():
            if mask:
                self._windows_cut(kind, mask)

    def _rows(self, what: str) -> Iterator[int]:
        for table in SAMPLED:
            yield self.connection.execute(
                f"SELECT coalesce({what}, 0) FROM main.{table}"
            ).fetchone()[0]

    def leave_out(self, counts: Counts, times: float = 1.0, times_later: float = 1.0) -> None:
        """Adds bits to the mask of the kind with most samples until there are few enough, of
        `times` as many as were counted. Stretches are as short as is right if there will be
        `times_later` as many."""
        while (
            self.most is not None
            and (found := sum(map(_total, counts.values()))) * times > self.most
        ):
            kind = max(counts, key=lambda kind: _total(counts[kind]))
            bit = _bit(counts[kind], self.masks[kind], found * times * times_later / self.most)
            if bit is None:
                break
            self.masks[kind] |= 1 << bit
            counts[kind] = Counter(
                {window: count for window, count in counts[kind].items() if not window >> bit & 1}
            )

    def _window(self, database: str, table: str) -> str:
        """SQL for the number of a row's window."""
        return f"({self._time(database, table)} >> {self.window_ns_log2})"

    def _time(self, database: str, table: str) -> str:
        start_unix_ns = (
            f"(SELECT start_unix_ns FROM {database}.rank WHERE rank.world_rank = "
            f"{table}.world_rank)"
        )
        return f"{start_unix_ns} + {SAMPLED[table].time}"

    def _passes(self, database: str, table: str) -> str:
        return f"coalesce({self._window(database, table)} & {self.masks[SAMPLED[table].kind]}, 0)"

    def _record(self, database: str, table: str) -> str:
        """SQL: is a row there for the record alone, in a window that the rank's mask leaves out?"""
        (has_record,) = self.connection.execute(
            f"SELECT EXISTS (SELECT 1 FROM {database}.rank WHERE record_begin_ns IS NOT NULL)"
        ).fetchone()
        if self.with_record or not has_record or SAMPLED[table].kind != CALLS:
            return ALL
        mask = (
            f"(SELECT window_mask FROM {database}.rank WHERE rank.world_rank = {table}.world_rank)"
        )
        return f"coalesce(({self._time(database, table)} >> {WINDOW_NS_LOG2}) & {mask}, 0)"

    def _delete(self) -> None:
        self.connection.execute("BEGIN")
        for table, passes in self.passed("main").items():
            self.connection.execute(f"DELETE FROM main.{table} WHERE {passes}")
        self.connection.execute("COMMIT")
        self.has_deleted, self.retained, self.newest = (
            True, sum(self._rows("count(*)")), sum(self._rows("max(rowid)")),
        )

    def _windows_cut(self, kind: str, mask: int) -> None:
        select, delete, insert = WINDOWS[kind]
        windows = self.connection.execute(select).fetchall()
        cut = (
            (world_rank, owner, low_ns, high_ns)
            for world_rank, owner, begin_ns, end_ns, start_unix_ns in windows
            for low_ns, high_ns in covered(
                begin_ns, end_ns, start_unix_ns, mask, self.window_ns_log2
            )
        )
        self.connection.execute("BEGIN")
        self.connection.execute(delete)
        self.connection.executemany(insert, cut)
        self.connection.execute("COMMIT")


def _total(counts: Counter[int]) -> int:
    return sum(counts.values())


def _bit(counts: Counter[int], mask: int, excess: float) -> int | None:
    """The bit to add to the mask: from the preferred one on, then below it, the first that is
    balanced, else the one nearest to that. None: no bit leaves out any. As in samples.c. excess:
    how many times too many samples there are."""
    preferred = (
        mask.bit_length()
        or max(1, int((max(counts) - min(counts) + 1) / (STRETCHES * excess))).bit_length() - 1
    )
    highest = max(counts).bit_length()
    lesser = {bit: _lesser_part(counts, bit) for bit in range(highest) if not mask >> bit & 1}
    order = [
        bit for bit in (*range(preferred, highest), *reversed(range(min(preferred, highest))))
        if lesser.get(bit)
    ]
    balanced = (bit for bit in order if BALANCED * lesser[bit] >= _total(counts))
    return next(balanced, max(order, key=lesser.__getitem__, default=None))


def _lesser_part(counts: Counter[int], bit: int) -> int:
    """How many samples the bit leaves out or retains, whichever is less."""
    left_out = sum(count for window, count in counts.items() if window >> bit & 1)
    return min(left_out, _total(counts) - left_out)

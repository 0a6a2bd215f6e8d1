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
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from .ledger_format import WINDOW_NS_LOG2
from .ledger_samples import covered, in_windows

MOST_SAMPLES = 500_000
COUNTED_FILES = 64  # if there are more, so many are counted, the others taken to be like them
WINDOWS_LOG2 = 8  # the samples are in at most 2^8 + 1 windows
SHORTEST_NS_LOG2 = 16  # of a window
# stretches of consecutive windows that are retained at least, if the samples allow that
STRETCHES = 4
BALANCED = 4  # a bit should leave out at least a quarter, and retain as much
CALLS, ACTIVITIES = "calls", "activities"


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
# SQL: whether a row is in a window that the mask of its rank, which has a record, leaves out
OF_RECORD = (
    "coalesce({time} >> {log2} & (SELECT window_mask FROM {database}.rank WHERE rank.world_rank = "
    "{table}.world_rank), 0)"
)


def time_of(table: str, database: str = "main") -> str:
    """SQL: when a row was, in ns since 1970."""
    own = f"FROM {database}.rank WHERE rank.world_rank = {table}.world_rank"
    return f"((SELECT start_unix_ns {own}) + {SAMPLED[table].time})"


class Thinning:
    """Which samples of a run are retained; `most` None: all."""

    def __init__(self, most: int | None = MOST_SAMPLES) -> None:
        self.most = most
        self.with_record = most is None  # and the samples that only the record has
        self.window_ns_log2 = SHORTEST_NS_LOG2
        self.masks = {CALLS: 0, ACTIVITIES: 0}
        self.files, self.files_read = 1, 0
        # samples after the last deletion, and the sum of their tables' last row numbers
        self.retained, self.newest = 0, 0

    @property
    def is_needed(self) -> bool:
        return any(self.masks.values())

    @property
    def share(self) -> float:
        """Share of the run's time in which calls are retained."""
        return 0.5 ** bin(self.masks[CALLS]).count("1")

    def expect(self, ask: Callable[[Callable[..., Any]], Iterable[Any]], times: float) -> None:
        """Settles what is not read of the run, before any of it is. ask: calls a function with the
        connection of each of some files, of which the run has `times` as many, and its tables."""
        extents = [extent for found in ask(self.extents) for extent in found]
        if self.most is None or sum(count for count, _, _ in extents) * times <= self.most:
            return
        self._windows_choose(extents)
        counts: Counts = {kind: Counter() for kind in self.masks}
        for found in ask(self.counts):
            for kind, of_kind in found.items():
                counts[kind].update(of_kind)
        self._leave_out(counts, times)

    def extents(
        self, connection: sqlite3.Connection, tables: Iterable[str]
    ) -> list[tuple[int, int, int]]:
        """By table: the number of its samples, and the first and last of their times."""
        found = [
            connection.execute(
                f"SELECT count(*), min({time}), max({time}) FROM {table} NOT INDEXED "
                f"WHERE NOT ({passed}) AND typeof({time}) = 'integer'"
            ).fetchone()
            for table, passed in self.passed(connection, tables).items()
            for time in [time_of(table)]
        ]
        return [extent for extent in found if extent[0]]

    def counts(self, connection: sqlite3.Connection, tables: Iterable[str]) -> Counts:
        """The samples that the masks do not leave out."""
        counts: Counts = {kind: Counter() for kind in self.masks}
        for table, passed in self.passed(connection, tables).items():
            counts[SAMPLED[table].kind].update(
                dict(
                    connection.execute(
                        f"SELECT {time_of(table)} >> {self.window_ns_log2}, count(*) FROM {table} "
                        f"NOT INDEXED WHERE NOT ({passed}) AND typeof({time_of(table)}) = "
                        "'integer' GROUP BY 1"
                    )
                )
            )
        return counts

    def passed(
        self, connection: sqlite3.Connection, tables: Iterable[str], database: str = "main"
    ) -> dict[str, str]:
        """By table of samples, SQL: is a row not retained?"""
        has_record = not self.with_record and _has_record(connection, database)
        found = {}
        for table in filter(SAMPLED.__contains__, tables):
            kind, time = SAMPLED[table].kind, time_of(table, database)
            mask, log2 = self.masks[kind], self.window_ns_log2
            found[table] = f"coalesce({time} >> {log2} & {mask}, 0)" if mask else "0"
            if kind == CALLS and has_record:
                found[table] += " OR " + OF_RECORD.format(
                    time=time, log2=WINDOW_NS_LOG2, database=database, table=table
                )
        return found

    def ledger_rows_thin(self, rows: dict[str, list[Any]]) -> None:
        """The same for a ledger's samples; removes those that are not retained."""
        rank = rows["rank"][0]
        for table, (kind, time) in SAMPLED.items():
            masks = [(self.masks[kind], self.window_ns_log2)]
            if kind == CALLS and not self.with_record and rank.record_begin_ns is not None:
                masks.append((rank.window_mask, WINDOW_NS_LOG2))
            for mask, log2 in masks:
                rows[table] = in_windows(rank.start_unix_ns, mask, rows[table], time, log2)

    def added(self, connection: sqlite3.Connection) -> None:
        """A file was read. If there are too many samples now, more of them are left out."""
        self.files_read += 1
        newest = _rows(connection, "max(rowid)")
        if self.most is None or self.retained + newest - self.newest <= self.most:
            return
        if not self.is_needed:
            self._windows_choose(self.extents(connection, SAMPLED))
        counts = self.counts(connection, SAMPLED)
        self._leave_out(counts, times_later=max(1.0, self.files / self.files_read))
        connection.execute("BEGIN")
        for table, passed in self.passed(connection, SAMPLED).items():
            connection.execute(f"DELETE FROM main.{table} WHERE {passed}")
        connection.execute("COMMIT")
        self.retained = _rows(connection, "count(*)")
        self.newest = _rows(connection, "max(rowid)")

    def finish(self, connection: sqlite3.Connection) -> None:
        """The windows that remain; after the last file."""
        for kind, mask in self.masks.items():
            if mask:
                self._windows_cut(connection, kind, mask)

    def _windows_choose(self, extents: Sequence[tuple[int, int, int]]) -> None:
        """Settles how long windows are, before anything is left out."""
        _, low_ns, high_ns = zip(*extents)
        length_ns = max(high_ns) - min(low_ns)
        self.window_ns_log2 = max(SHORTEST_NS_LOG2, length_ns.bit_length() - WINDOWS_LOG2)

    def _leave_out(self, counts: Counts, times: float = 1.0, times_later: float = 1.0) -> None:
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

    def _windows_cut(self, connection: sqlite3.Connection, kind: str, mask: int) -> None:
        select, delete, insert = WINDOWS[kind]
        windows = connection.execute(select).fetchall()
        cut = [
            (world_rank, owner, low_ns, high_ns)
            for world_rank, owner, begin_ns, end_ns, start_unix_ns in windows
            for low_ns, high_ns in covered(
                begin_ns, end_ns, start_unix_ns, mask, self.window_ns_log2
            )
        ]
        connection.execute(delete)
        connection.executemany(insert, cut)


def _rows(connection: sqlite3.Connection, what: str) -> int:
    """The sum of an aggregate over the tables of samples."""
    asked = " + ".join(f"(SELECT coalesce({what}, 0) FROM main.{table})" for table in SAMPLED)
    return connection.execute(f"SELECT {asked}").fetchone()[0]


def _has_record(connection: sqlite3.Connection, database: str) -> bool:
    columns = connection.execute(f"PRAGMA {database}.table_info(rank)")
    if not any(name == "record_begin_ns" for _, name, *_ in columns):
        return False  # an older version
    ranks = f"SELECT 1 FROM {database}.rank WHERE record_begin_ns IS NOT NULL"
    return connection.execute(ranks).fetchone() is not None


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
        bit
        for bit in (*range(preferred, highest), *reversed(range(min(preferred, highest))))
        if lesser.get(bit)
    ]
    balanced = (bit for bit in order if BALANCED * lesser[bit] >= _total(counts))
    return next(balanced, max(order, key=lesser.__getitem__, default=None))


def _lesser_part(counts: Counter[int], bit: int) -> int:
    """How many samples the bit leaves out or retains, whichever is less."""
    left_out = sum(count for window, count in counts.items() if window >> bit & 1)
    return min(left_out, _total(counts) - left_out)

"""The sampled calls of a run: which of them are retained, and these as columns, what analyses of
single calls begin with, read from the tables when they are first needed.

A command requests a number of samples: they are those of the same stretches of time on all ranks.
During the job, each rank reduces its samples by giving its mask more bits (ledger_format.h). This
module does the same again, for all ranks at once, with windows that are as short as the samples
require: there is a mask for calls (with messages, starts and regions), and one for the activities
of GPUs. Samples that only the record has (COMMPROF_RECORD) are left out, too: they are of one time,
and would outweigh those of all the others.

    databases   rows in windows that have a bit of the mask are not read; if a file has too many
                samples by itself, they are counted before
    any file    if the samples read so far are too many, or are going to be if the rest of many
                files have as many: another bit; rows that have it are deleted
    at the end  sample_window and gpu_sample_window are cut
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from copy import copy
from itertools import chain
from sqlite3 import Connection, OperationalError
from typing import Any

from ..base import (
    Columns,
    Ints,
    TextInts,
    Texts,
    found_in,
    np,
    query,
    read,
    read_large,
)
from .ledger_format import WINDOW_NS_LOG2
from .ledger_samples import covered, in_windows


class Calls(Columns):
    """Table `sample`, as its columns are there; NONE: null. object_sequence, of a collective on a
    window or a file: which object of its communicator, and which collective on that, as one number
    above those of collectives on communicators. polled_since_ns: the begin of the first
    unsuccessful poll before it. sampled_calls.sql."""


class FurtherMessages(Columns):
    """Table `sample_message`."""


class Starts(Columns):
    """Table `sample_start`."""


TABLES: dict[Any, str] = {  # by kind, the query of its rows and their places
    Calls: query.text("run/sampled_calls").rstrip(";\n"),
    FurtherMessages: "SELECT rowid AS place, * FROM sample_message",
    Starts: "SELECT rowid AS place, * FROM sample_start",
}


Sampled = namedtuple("Sampled", "texts calls messages starts")


class Communicators(Columns):
    """The numbers of ranks for communicators, by identity; numbered_communicators.sql."""

    def row(self, rows: Calls | FurtherMessages | Starts) -> Ints:
        """The row of each call's communicator; -1: there is none."""
        return found_in((rows.world_rank, rows.communicator), (self.world_rank, self.communicator))


class Synchronizing(Columns):
    """Calls in which ranks wait for each other; synchronizing.sql."""

    def row(self, calls: TextInts) -> Ints:
        """The row of each call here; -1: there is none."""
        return found_in((calls,), (self.call,))


def sampled(connection: Connection) -> Sampled:
    """Read once for a run that was opened."""
    known: Sampled | None = getattr(connection, "sampled", None)
    if known:
        return known
    texts = Texts()
    calls, messages, starts = (
        read_large(kind, connection, query, texts, ("call", "direction"))
        for kind, query in TABLES.items()
    )
    found = Sampled(texts, calls.changed(is_shared=calls.is_shared > 0), messages, starts)
    if hasattr(connection, "sampled"):
        connection.sampled = found
    return found


def communicators(connection: Connection, texts: Texts) -> Communicators:
    return read(Communicators, query.run(connection, "run/numbered_communicators"), texts)


def synchronizing(connection: Connection, texts: Texts) -> Synchronizing:
    return read(Synchronizing, query.run(connection, "run/synchronizing"), texts)


MOST_SAMPLES = 250_000
WINDOWS_LOG2 = 8  # the samples are in at most 2^8 + 1 windows
SHORTEST_NS_LOG2 = 16  # of a window
# stretches of consecutive windows that are retained at least, if the samples allow that
STRETCHES = 4
FIRST = 32  # of many files: they tell how many samples the rest have
BALANCED = 4  # a bit should leave out at least a quarter, and retain as much
CALLS, ACTIVITIES = "calls", "activities"


# by table whose rows are retained or not: the kind, and the column with the time of their window
SAMPLED = {
    "sample": (CALLS, "end_ns"),
    "sample_message": (CALLS, "end_ns"),
    "sample_start": (CALLS, "end_ns"),
    "sample_epoch": (CALLS, "end_ns"),
    "region_span": (CALLS, "end_ns"),
    "gpu_sample": (ACTIVITIES, "start_ns"),
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
Times = dict[str, Ints]  # by kind: when each sample was, in ns since 1970
# SQL: whether a row is in a window that the mask of its rank, which has a record, leaves out
OF_RECORD = (
    "coalesce({time} >> {log2} & (SELECT window_mask FROM {database}.rank WHERE rank.world_rank = "
    "{table}.world_rank), 0)"
)


def time_of(table: str, database: str = "main") -> str:
    """SQL: when a row was, in ns since 1970."""
    own = f"FROM {database}.rank WHERE rank.world_rank = {table}.world_rank"
    return f"((SELECT start_unix_ns {own}) + {SAMPLED[table][1]})"


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

    def of_part(self) -> Thinning:
        """The same for some files that are read aside, as if these were all."""
        part = copy(self)
        part.masks, part.files = dict(self.masks), 1
        part.files_read = part.retained = part.newest = 0
        return part

    def expect(self, connection: Connection, tables: Sequence[str]) -> None:
        """Settles what is not read of the attached file `source`, before any of it is."""
        # the last row's number is known at once, and the count unless rows were deleted
        if self.most is not None and all(
            _rows(connection, what, "source", tables) > self.most
            for what in ("max(rowid)", "count(*)")
        ):
            self._leave_out(self._times(connection, tables, "source"), self.most)

    def _times(
        self, connection: Connection, tables: Iterable[str], database: str = "main"
    ) -> Times:
        """The times of samples that the masks do not leave out."""
        found: dict[str, list[int]] = {kind: [] for kind in self.masks}
        for table, passed in self.passed(connection, tables, database).items():
            asked = (
                f"SELECT {time_of(table, database)} AS time FROM {database}.{table} NOT INDEXED "
                f"WHERE NOT ({passed}) AND typeof(time) = 'integer'"
            )
            found[SAMPLED[table][0]] += chain.from_iterable(connection.execute(asked))
        return {kind: np.array(times, np.int64) for kind, times in found.items()}

    def passed(
        self, connection: Connection, tables: Iterable[str], database: str = "main"
    ) -> dict[str, str]:
        """By table of samples, SQL: is a row not retained?"""
        has_record = not self.with_record and _has_record(connection, database)
        found = {}
        for table in filter(SAMPLED.__contains__, tables):
            kind, time = SAMPLED[table][0], time_of(table, database)
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

    def added(self, connection: Connection, files: int = 1) -> None:
        """Files were read. If there are too many samples now, more of them are left out."""
        self.files_read += files
        newest = _rows(connection, "max(rowid)")
        is_first = self.files_read == FIRST <= self.files // 4
        most = self.most and (self.most * FIRST // self.files if is_first else self.most)
        if most is None or self.retained + newest - self.newest <= most:
            return
        self._leave_out(self._times(connection, SAMPLED), most)
        connection.execute("BEGIN")
        for table, passed in self.passed(connection, SAMPLED).items():
            connection.execute(f"DELETE FROM main.{table} WHERE {passed}")
        connection.execute("COMMIT")
        self.retained = _rows(connection, "count(*)")
        self.newest = _rows(connection, "max(rowid)")

    def finish(self, connection: Connection) -> None:
        """The windows that remain; after the last file."""
        for kind, mask in self.masks.items():
            select, delete, insert = WINDOWS[kind]
            windows = connection.execute(select).fetchall() if mask else []
            cut = [
                (world_rank, owner, low_ns, high_ns)
                for world_rank, owner, begin_ns, end_ns, start_unix_ns in windows
                for low_ns, high_ns in covered(
                    begin_ns, end_ns, start_unix_ns, mask, self.window_ns_log2
                )
            ]
            if windows:
                connection.execute(delete)
                connection.executemany(insert, cut)

    def _leave_out(self, times: Times, most: int) -> None:
        """Adds bits to the mask of the kind with most samples until there are at most so many.
        Stretches are as short as is right if the files that follow have as many."""
        every = np.concatenate([*times.values()])
        if len(every) and not self.is_needed:
            length_ns = int(every.max()) - int(every.min())
            self.window_ns_log2 = max(SHORTEST_NS_LOG2, length_ns.bit_length() - WINDOWS_LOG2)
        later = max(1.0, self.files / max(1, self.files_read))
        windows = {kind: of_kind >> self.window_ns_log2 for kind, of_kind in times.items()}
        while (found := sum(map(len, windows.values()))) > most:
            kind = max(windows, key=lambda kind: len(windows[kind]))
            bit = _bit(windows[kind], self.masks[kind], found * later / (self.most or most))
            if bit is None:
                break
            self.masks[kind] |= 1 << bit
            windows[kind] = windows[kind][windows[kind] >> bit & 1 == 0]


def _rows(
    connection: Connection, what: str, database: str = "main", tables: Container[str] = SAMPLED
) -> int:
    """The sum of an aggregate over the tables of samples."""
    asked = "".join(
        f" + (SELECT coalesce({what}, 0) FROM {database}.{table})"
        for table in SAMPLED
        if table in tables
    )
    return connection.execute(f"SELECT 0 {asked}").fetchone()[0]


def _has_record(connection: Connection, database: str) -> bool:
    with suppress(OperationalError):  # an older version has no such column
        ranks = f"SELECT 1 FROM {database}.rank WHERE record_begin_ns IS NOT NULL"
        return connection.execute(ranks).fetchone() is not None
    return False


def _bit(windows: Ints, mask: int, excess: float) -> int | None:
    """The bit to add to the mask: from the preferred one on, then below it, the first that is
    balanced, else the one nearest to that. None: no bit leaves out any. As in samples.c. windows:
    of each sample; excess: how many times too many samples there are."""
    first, last = int(windows.min()), int(windows.max())
    preferred = (
        mask.bit_length() or max(1, int((last - first + 1) / (STRETCHES * excess))).bit_length() - 1
    )
    highest = last.bit_length()
    lesser: dict[
        int, int
    ] = {}  # by bit: how many samples it leaves out or retains, whichever is less
    for bit in (*range(preferred, highest), *reversed(range(min(preferred, highest)))):
        left_out = int(np.count_nonzero(windows >> bit & 1)) if not mask >> bit & 1 else 0
        lesser[bit] = min(left_out, len(windows) - left_out)
    balanced = (bit for bit, number in lesser.items() if BALANCED * number >= len(windows))
    return next(balanced, max(filter(lesser.get, lesser), key=lesser.__getitem__, default=None))

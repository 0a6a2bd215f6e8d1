"""Of the samples of a run, as many as a command asks for: the same ones of all ranks.

A job keeps fewer samples by raising levels (ledger_format.h), each rank by itself; this raises them further, for all ranks at once.
The collectives of each communicator have a level, and so have all calls without a sequence, and what GPUs did. The level of those that
have most samples grows by one until there are few enough. A communicator whose level would leave less than a quarter keeps what it has:
its last block.

    each file   how many samples it has in each block and window -> levels grow -> what the levels leave is copied
    at the end  what was copied before the levels grew is thinned, too; tables say the new levels
"""

from __future__ import annotations

import heapq
import sqlite3
from collections import Counter
from collections.abc import Iterable

from ..base import query
from .ledger import LEVEL_NONE, WINDOW_NS_LOG2
from .ledger_samples import block_of, covered, is_kept

SQL = query.beside(__file__)

MOST_SAMPLES = 500_000
WITHOUT_SEQUENCE = ""  # the class of all calls that no communicator numbers
OF_GPUS = "gpu"  # the class of what GPUs did
WINDOWS = {  # by class: those that are kept, and how they are put in place of these
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


class Thinning:
    """What is to be kept of a run; `most` None: everything."""

    def __init__(self, connection: sqlite3.Connection, most: int | None = MOST_SAMPLES) -> None:
        self.connection = connection
        self.most = most
        self.levels: dict[str, int] = {}  # by class: a communicator's identity, WITHOUT_SEQUENCE, OF_GPUS
        self.counts: dict[str, Counter[int]] = {}  # by class: samples by the highest level that keeps them
        SQL.run(connection, "thinning_create")

    @property
    def is_needed(self) -> bool:
        return bool(self.levels)

    @property
    def found(self) -> int:
        """How many there are without thinning."""
        return sum(sum(counts.values()) for counts in self.counts.values())

    def count_attached(self) -> None:
        """The samples of the database `source` are going to be added."""
        if self.most is not None:
            self._add(SQL.run(self.connection, "thinning_count"))

    def ledger_rows_thin(self, rows: dict[str, list[tuple]]) -> None:
        """The same for a ledger's, of which those that are not kept are taken away."""
        if self.most is None:
            return
        identities = {row[1]: row[2] for row in rows["communicator"]}
        start_unix_ns = rows["rank"][0][5]
        places = [_place(row, identities, start_unix_ns) for row in rows["sample"]]
        spans = [(WITHOUT_SEQUENCE, start_unix_ns + row[4] >> WINDOW_NS_LOG2) for row in rows["region_span"]]
        activities = [(OF_GPUS, start_unix_ns + row.start_ns >> WINDOW_NS_LOG2) for row in rows["gpu_sample"]]
        self._add((*place, count) for place, count in Counter([*places, *spans, *activities]).items())
        if self.is_needed:
            for table, its_places in {"sample": places, "region_span": spans, "gpu_sample": activities}.items():
                rows[table] = [row for row, place in zip(rows[table], its_places) if self._keeps(*place)]

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
            self.counts.setdefault(kind, Counter())[_level_of(number)] += count
        largest = [(-self._kept(kind, self.levels.get(kind, 0)), kind) for kind in self.counts]
        kept = -sum(count for count, _ in largest)
        heapq.heapify(largest)
        while self.most is not None and kept > self.most and largest and largest[0][0]:
            before, kind = heapq.heappop(largest)
            level = self.levels.get(kind, 0) + 1
            after = self._kept(kind, level)
            if kind in WINDOWS or 4 * after >= -before:
                self.levels[kind] = level
                kept -= -before - after
                heapq.heappush(largest, (-after, kind))
        self.connection.executemany("INSERT OR REPLACE INTO temp.sample_class VALUES (?, ?)", self.levels.items())

    def _kept(self, kind: str, level: int) -> int:
        return sum(count for highest, count in self.counts[kind].items() if level <= highest)

    def _keeps(self, kind: str, number: int) -> bool:
        return is_kept(number, self.levels.get(kind, 0))

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
    """The class of a sample, and its block or window."""
    if row.sequence is None:
        return WITHOUT_SEQUENCE, start_unix_ns + row.start_ns >> WINDOW_NS_LOG2
    return identities[row.communicator], block_of(row.sequence)


def _level_of(number: int) -> int:
    """The highest level that keeps a block or window of this number: how often 2 divides it."""
    return (number & -number).bit_length() - 1 if number else LEVEL_NONE - 1

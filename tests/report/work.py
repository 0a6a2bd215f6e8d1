"""How much work something is, in counts that do not depend on the machine or on
what else it does."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

INSTRUCTIONS = 1_000  # of SQLite's virtual machine between two counts


@dataclass
class Work:
    calls: int = 0  # of Python's functions and of those written in C
    sqlite_instructions: int = 0

    def is_at_most(self, times: float, other: Work) -> bool:
        return (
            self.calls <= times * other.calls
            and self.sqlite_instructions <= times * other.sqlite_instructions + INSTRUCTIONS
        )


@contextmanager
def counted(*connections: sqlite3.Connection) -> Iterator[Work]:
    """Counts what is done meanwhile; of SQLite on these connections and on those opened
    meanwhile."""
    work, connect = Work(), sqlite3.connect

    def count_call(_frame: object, event: str, _argument: object) -> None:
        work.calls += event in ("call", "c_call")

    def count_instructions() -> None:
        work.sqlite_instructions += INSTRUCTIONS

    def connect_counted(*arguments: object, **options: object) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_progress_handler(count_instructions, INSTRUCTIONS)
        return connection

    for connection in connections:
        connection.set_progress_handler(count_instructions, INSTRUCTIONS)
    sqlite3.connect = connect_counted
    sys.setprofile(count_call)
    try:
        yield work
    finally:
        sys.setprofile(None)
        sqlite3.connect = connect

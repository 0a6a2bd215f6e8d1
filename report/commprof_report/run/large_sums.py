"""Sums beyond 2^63."""

from __future__ import annotations

import sqlite3

from ..base import query

SQL = query.beside(__file__)

MOST_SUM = (1 << 63) - 1  # largest integer of SQLite
ALMOST = 0.999  # share of MOST_SUM; a sum of floats is not exact


class LargeSum:
    """SQL's sum() without overflow: exact up to SQLite's largest integer, a float beyond."""

    def __init__(self) -> None:
        self.sum: int | float | None = None

    def step(self, value: int | float | None) -> None:
        if value is not None:
            self.sum = value if self.sum is None else self.sum + value

    def finalize(self) -> int | float | None:
        return self.sum if self.sum is None or abs(self.sum) <= MOST_SUM else float(self.sum)


def sums_secure(connection: sqlite3.Connection) -> None:
    """SQLite's sum() fails with an error beyond 2^63. Ours is slow, so it replaces it only in runs
    whose sums may come near, after the files were read: views of a trusted schema alone, which is
    ours, may call it. Window functions must use total(), because Python cannot replace sum() there.
    """
    (largest,) = SQL.run(connection, "largest_sum").fetchone()
    if largest > ALMOST * MOST_SUM:
        # typeshed knows aggregates of one integer alone
        connection.create_aggregate("sum", 1, LargeSum)  # type: ignore[arg-type]
        connection.execute("PRAGMA trusted_schema = ON")

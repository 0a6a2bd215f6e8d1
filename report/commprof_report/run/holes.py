"""Times in which samples of a rank may be missing, because the sample log was full or the reporter has read only a part of it."""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from ..base import query

SQL = query.beside(__file__)


class Hole(NamedTuple):
    """In the rank's own time. thread: None for all threads; sampling windows are a thread's own."""

    world_rank: int
    thread: int | None
    begin_ns: int
    end_ns: int


def holes(connection: Connection) -> dict[int, list[Hole]]:
    """By rank, in order of their begin; docs/SCHEMA.md has the definition (steps, complete)."""
    found: dict[int, list[Hole]] = {}
    for hole in SQL.ask(connection, "holes", Hole):
        found.setdefault(hole.world_rank, []).append(hole)
    return found

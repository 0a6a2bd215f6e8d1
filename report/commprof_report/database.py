"""SQLite files of a rank or of a merged run: checked before anything of them is believed, then copied."""

from __future__ import annotations

import os
import re
import sqlite3
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from . import APPLICATION_ID, SCHEMA_VERSION, query
from .errors import ReportError
from .thinning import Thinning

DAMAGE = (sqlite3.Error, UnicodeError, MemoryError)  # sqlite3 raises all of these on damaged files
CACHE_KIB = 262_144  # what a run may hold in memory before SQLite moves to a temporary file


class RankOfFile(NamedTuple):
    run_id: str
    world_rank: int
    world_size: int
    start_unix_ns: int
    end_unix_ns: int | None


def database_create() -> sqlite3.Connection:
    """An empty database of the schema, in memory as long as it is small."""
    connection = sqlite3.connect("", uri=True, isolation_level=None)
    connection.text_factory = _text
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.executescript(query.schema_text())
    return connection


def database_ranks(path: Path) -> list[RankOfFile]:
    """The ranks that a file holds. Raises ReportError if it is no database of ours."""
    connection = sqlite3.connect(_read_only(path), uri=True, isolation_level=None)
    connection.text_factory = _text
    try:
        _database_check(path, connection)
        ranks = query.ask(connection, "ranks_of_file", RankOfFile)
    except DAMAGE as error:
        raise ReportError(path, f"is damaged: {error}") from None
    finally:
        connection.close()
    if not ranks:
        raise ReportError(path, "is damaged: it holds no rank")
    if not all(_is_rank(rank) for rank in ranks) or len({(rank.run_id, rank.world_size) for rank in ranks}) > 1:
        raise ReportError(path, "is damaged: impossible values in table rank")
    return ranks


def _is_rank(rank: RankOfFile) -> bool:
    end_unix_ns = rank.start_unix_ns if rank.end_unix_ns is None else rank.end_unix_ns
    numbers = (rank.world_rank, rank.world_size, rank.start_unix_ns, end_unix_ns)
    return isinstance(rank.run_id, str) and all(isinstance(number, int) for number in numbers)


def _database_check(path: Path, connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application_id != APPLICATION_ID:
        raise ReportError(path, "is an SQLite database, but not one of commprof's")
    if version < SCHEMA_VERSION:
        older = f"was written by an older commprof (schema version {version}); read it with that one"
        raise ReportError(path, older)
    if version > SCHEMA_VERSION:
        raise ReportError(path, f"has schema version {version}, this reporter knows {SCHEMA_VERSION}: use a newer one")
    ours, theirs = _our_schema(), _schema_of(connection)
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            what = "is missing" if name not in theirs else "is nothing that commprof writes"
            raise ReportError(path, f"is damaged: '{name}' {what}")


@lru_cache
def _our_schema() -> dict[str, str]:
    return _schema_of(database_create())


def _schema_of(connection: sqlite3.Connection) -> dict[str, str]:
    """The statements that made all that is there, by its name. What is not a table of ours to the letter, comments and spaces
    apart, could make reading it as expensive as it likes (views, computed columns, defaults)."""
    made = connection.execute("SELECT name, coalesce(sql, '') FROM sqlite_master")
    return {name: " ".join(re.sub("--.*", "", sql).split()) for name, sql in made}


def database_copy(connection: sqlite3.Connection, path: Path, with_histograms: bool, thinning: Thinning | None) -> None:
    """Adds all of a file's rows to the run, or none; of samples what is to be kept, or without `thinning` none."""
    try:
        connection.execute("ATTACH ? AS source", (_read_only(path),))
        try:
            _copy_attached(connection, path, with_histograms, thinning)
        finally:
            connection.execute("DETACH source")
    except DAMAGE as error:
        raise ReportError(path, f"is damaged: {error}") from None


def _copy_attached(connection: sqlite3.Connection, path: Path, with_histograms: bool, thinning: Thinning | None) -> None:
    wanted = {"with_histograms": with_histograms, "with_samples": thinning is not None}
    impossible = query.run_script(connection, "impossible", **wanted).fetchall()
    if impossible:
        raise ReportError(path, "is damaged: impossible values in table " + ", ".join(name for (name,) in impossible))
    first_cell, first_activity = query.run_script(connection, "first_numbers").fetchone()
    connection.execute("BEGIN")
    try:
        query.run_script(connection, "copy", first_cell=first_cell, first_activity=first_activity, **wanted)
        if thinning:
            thinning.count_attached()
            query.run_script(connection, "copy_samples", is_whole=not thinning.is_needed)
        connection.execute("COMMIT")
    except DAMAGE:
        connection.execute("ROLLBACK")
        raise


def _read_only(path: Path) -> str:
    """Files of a run are never written again, so no lock is taken, and none could be on a read-only file system."""
    return f"file:{quote(os.fsencode(path.absolute()))}?mode=ro&immutable=1"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")

"""The ranks of a large run folder in one database, RUN/cache.db: later commands read it instead of
hundreds of files.

It is a merged database with the samples that commands read unless they ask for others. Its facts
`cache.source.<name>` say size and time of change of each file that it was read from; as soon as one
differs, or is missing, or there is another, the cache is out of date. It is only an offer: one that
is out of date, damaged or unreadable is passed over without a word, and the ranks' files are read.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from .. import __version__
from ..base.aside import aside_of
from ..base.errors import ReportError
from .archive import ARCHIVE, file_of
from .database import database_facts, database_write
from .rank_files import RANK_FILE, RankFile, file_scan, files_mode

NAME = "cache.db"
SOURCE = "cache.source."
FEWEST_FILES = 32  # fewer are read fast enough

Sources = dict[str, str]  # by the name of a file


def sources(folder: Path) -> Sources:
    """The ranks' files and archives as they are now. The version is in it, because another one may
    choose other samples."""
    with os.scandir(folder) as entries:
        found = [
            (entry.name, entry.stat()) for entry in entries
            if RANK_FILE.fullmatch(entry.name) or ARCHIVE.fullmatch(entry.name)
        ]
    return {
        SOURCE + name: f"{status.st_size} {status.st_mtime_ns} {__version__}"
        for name, status in found
    }


class Cache:
    """Cache of a folder, whose files are looked at when this is created."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / NAME
        self.sources = sources(folder)

    def find(self) -> RankFile | None:
        """The cache, unless it is out of date."""
        try:
            file = file_scan(self.path)
            return (
                None if file.is_ledger or database_facts(file.path, SOURCE) != self.sources
                else file
            )
        except ReportError:
            return None

    def is_worthwhile(self, files: Sequence[RankFile]) -> bool:
        """True for our own folders, and runs that have ended."""
        return (
            len(files) >= FEWEST_FILES and not any(file.is_ledger for file in files)
            and self.folder.stat().st_uid == os.geteuid()
        )

    def write(self, connection: sqlite3.Connection, files: Sequence[RankFile]) -> bool:
        """Who may read the ranks' files may read the cache. False if there is none: something else
        has its name, the folder cannot be written, or its files have changed while they were read.
        """
        try:
            if sources(self.folder) != self.sources or (
                os.path.lexists(self.path) and not database_facts(self.path, SOURCE)
            ):
                return False
            names = [SOURCE + file_of(file.path).name for file in files]
            rows = [
                (file.ranks[0].world_rank, name, self.sources[name])
                for file, name in zip(files, names)
            ]
            connection.executemany("INSERT INTO fact VALUES (?, ?, ?)", rows)
            with aside_of(self.path, files_mode(file.path for file in files)) as aside:
                database_write(connection, aside)
        except (ReportError, sqlite3.Error, OSError):
            return False
        finally:
            facts_forget(connection)
        return True


def facts_forget(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM fact WHERE substr(key, 1, ?) = ?", (len(SOURCE), SOURCE))

"""Archives with the databases of a node's ranks, node-*.tar: <archive>/rank-<n>.db is the path of
one, which is unpacked while it is read.

An archive is untrusted input, and ranks may be appending to it. Bytes after its last whole member
are no part of it.
"""

from __future__ import annotations

import os
import re
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

from ..base.errors import ReportError
from ..base.files import regular_open

ARCHIVE = re.compile(r"node-\d+-.+\.tar")
BLOCK = tarfile.BLOCKSIZE


class Member(NamedTuple):
    """Position of a file in its archive."""

    begin: int
    bytes: int


def archive_members(archive: Path) -> dict[str, Member]:
    """By name. Raises ReportError if the archive cannot be read."""
    try:
        status = os.stat(archive)
        return _members(archive, status.st_size, status.st_mtime_ns)
    except OSError as error:
        raise ReportError(archive, error.strerror or str(error)) from None


@lru_cache(maxsize=4096)
def _members(archive: Path, archive_bytes: int, _changed_ns: int) -> dict[str, Member]:
    found: dict[str, Member] = {}
    begin = BLOCK
    with regular_open(archive) as file, suppress(tarfile.HeaderError):
        while True:
            file.seek(begin - BLOCK)
            header = tarfile.TarInfo.frombuf(file.read(BLOCK), "utf-8", "surrogateescape")
            if not 0 <= header.size <= archive_bytes - begin:
                break
            found.setdefault(header.name, Member(begin, header.size))
            begin += -(-header.size // BLOCK) * BLOCK + BLOCK
    return found


def file_of(path: Path) -> Path:
    """The file on the disk: the path itself, or the archive that it is in."""
    return path.parent if ARCHIVE.fullmatch(path.parent.name) and path.parent.is_file() else path


def database_of(ledger: Path) -> Path:
    """The database that a ledger has become: a file of its own, or one in an archive beside it."""
    own = ledger.with_suffix(".db")
    for archive in [] if own.exists() else ledger.parent.glob("node-*.tar"):
        with suppress(ReportError):
            if ARCHIVE.fullmatch(archive.name) and own.name in archive_members(archive):
                return archive / own.name
    return own


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The file itself; a temporary one for that of an archive."""
    if file_of(path) == path:
        yield path
        return
    with ExitStack() as stack:
        try:
            aside = stack.enter_context(NamedTemporaryFile(prefix="commprof-"))
            aside.write(_read(path))
            aside.flush()
        except OSError as error:
            raise ReportError(path, f"cannot be unpacked: {error.strerror or error}") from None
        yield Path(aside.name)


def _read(path: Path) -> bytes:
    member = archive_members(path.parent).get(path.name)
    if not member:
        raise ReportError(path, "is not in the archive")
    with regular_open(path.parent) as file:
        file.seek(member.begin)
        return file.read(member.bytes)

"""Files: those from outside, opened if they are files at all; those that are written aside and then
renamed, so that whoever reads one finds all of it, or what was there before; and those that the
reporter has in common with the library, in the package's src/ where it is installed, in src/ in the
source tree.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, TextIO

from . import ReportError


def regular_open(path: Path) -> BinaryIO:
    """Opens a regular file; not a pipe or device, which might block or react to being opened."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ReportError(path, "is not a regular file")
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))


def distinct(paths: Iterable[Path]) -> list[Path]:
    """The paths without those that lead to the same file or folder as one before."""
    found: dict[object, Path] = {}
    for path in paths:
        identity: object = path
        with suppress(OSError):
            identity = attrgetter("st_dev", "st_ino")(os.stat(path))
        found.setdefault(identity, path)
    return list(found.values())


def common_folder(paths: Iterable[Path]) -> Path:
    """The folder that all paths are below, each relative or absolute."""
    words = list(paths)
    if len({path.is_absolute() for path in words}) > 1:
        words = [Path(os.path.abspath(path)) for path in words]
    return Path(os.path.commonpath(words) or ".")


@contextmanager
def renamed_whole(output: Path, mode: int = 0o666) -> Iterator[Path]:
    """An empty file beside a command's output, which takes its place in the end. A run's mode
    (rank_files.files_mode) makes it as private as the run; a file that is there already keeps its
    own. A link that somebody has laid beside it is not followed. A device or a pipe is written
    itself: root would replace /dev/null for everybody. Failures are ReportErrors."""
    aside = output.with_name(f"{output.name}.{os.getpid()}.tmp")
    try:
        if output.exists() and not output.is_file() and not output.is_dir():
            yield output
            return
        own = stat.S_IMODE(output.stat().st_mode) if output.is_file() else None
        aside.unlink(missing_ok=True)
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        yield aside
        if own is not None:
            os.chmod(aside, own)
        os.replace(aside, output)
    except OSError as error:
        raise ReportError(output, f"cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            aside.unlink()


@contextmanager
def written_whole(output: Path, mode: int) -> Iterator[TextIO]:
    with (
        renamed_whole(output, mode) as aside,
        open(aside, "w", encoding="utf-8", errors="replace", newline="") as file,
    ):
        yield file


PACKAGE = Path(__file__).resolve().parent.parent
FOLDERS = (PACKAGE / "src", PACKAGE.parent.parent / "src")


@lru_cache
def source_text(name: str) -> str:
    """The same of C: without comments, with the macros expanded that it defines right before it
    includes a list of entries (`*.def`)."""
    text = re.sub(r"/\*.*?\*/", "", library_text(name), flags=re.S)
    return re.sub(r'((?:#define \w+\(name\).*\n)+)#include "(?:.*/)?(\w+\.def)"\n', _entries, text)


def _entries(include: re.Match) -> str:
    bodies = dict(re.findall(r"#define (\w+)\(name\) *(.*)", include[1]))
    entries = re.findall(r"^(\w+)\((\w+)\)", library_text(f"ledger/{include[2]}"), re.M)
    return "".join(
        re.sub(r"\bname\b", name, bodies[macro]) + "\n" for macro, name in entries if bodies[macro]
    )


@lru_cache
def library_text(name: str) -> str:
    """The text of a file, by its path in src/."""
    path = _path_of(name)
    if not path:
        raise ReportError(FOLDERS[0] / name, "is missing; the installation is incomplete")
    return path.read_text(encoding="utf-8")


def has_library_file(name: str) -> bool:
    return _path_of(name) is not None


def _path_of(name: str) -> Path | None:
    return next((folder / name for folder in FOLDERS if (folder / name).is_file()), None)

"""Files: those from outside, opened if they are files at all; those that are written aside and then
renamed, so that whoever reads one finds all of it, or what was there before; and those that the
reporter has in common with the library, in the package's src/ where it is installed, in src/ in the
source tree.

JSON from outside. Small files that somebody may have changed: whoever reads one gets the types
that it asks for, or a ValueError that says what is wrong. Files of any size, piece by piece, with
at most one value of up to MOST_CHARACTERS in memory.

json.loads takes more than JSON (NaN), more than a float holds (1e999), and the last of two equal
keys. None of these is what the writer of a small file meant.

Truncated files, invalid JSON, and files that were made to exhaust their reader raise ReportError
with the position: a file that is much larger than its gzip file, a value that is too long or nested
too deeply, a number of too many digits. Python's objects take up to 40 times the memory of their
text ({},{},...).
"""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from .core import ReportError, Value


def regular_open(path: Path) -> BinaryIO:
    """Opens a regular file; not a pipe or device, which might block or react to being opened."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ReportError(path, "is not a regular file")
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))


def distinct(paths: Iterable[Path]) -> list[Path]:
    """The paths without those that lead to the same file or folder as one before."""
    found: dict[str, Path] = {}
    for path in paths:
        found.setdefault(os.path.realpath(path), path)
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
    path = library_file(name)
    if not path:
        raise ReportError(FOLDERS[0] / name, "is missing; the installation is incomplete")
    return path.read_text(encoding="utf-8")


def library_file(name: str) -> Path | None:
    return next((folder / name for folder in FOLDERS if (folder / name).is_file()), None)


MOST_BYTES = 1 << 20
MOST_DIGITS = 300  # of a whole number; a float has as many


def json_read(path: Path) -> Any:
    """Raises ReportError if it cannot be read or is not a file of ours."""
    try:
        with regular_open(path) as file:
            return json_parse(file.read(MOST_BYTES + 1))
    except OSError as error:
        raise ReportError(path, f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ReportError(path, f"is damaged: {error}") from None


def format_read(path: Path, name: str, version: int, make: Callable[[Any], Value]) -> Value:
    """Reads a small file that names its format and version. make: gives what its values say."""
    values = json_read(path)
    try:
        if text_in(values, "format") == name and whole_in(values, "version", 0, 99) == version:
            return make(values)
    except (KeyError, TypeError, ValueError) as error:
        raise ReportError(path, f"is damaged: {error}") from None
    raise ReportError(path, f"is not version {version} of {name}")


def json_parse(data: bytes) -> Any:
    if len(data) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES >> 20} MiB")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_whole,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key is in it twice")
    return values


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits")
    return int(digits)


def _finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError(f"{text:.20} is no number that can be read")
    return float(text)


ABSENT = object()


def text_in(values: Any, key: str, default: Any = ABSENT) -> str:
    """A text that can be part of a path or a command."""
    value = _value(
        values, key, default, lambda value: isinstance(value, str) and "\0" not in value, "a text"
    )
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        raise ValueError(f"'{key}' has half a character") from None
    return value


def list_in(values: Any, key: str) -> list:
    return _value(values, key, ABSENT, lambda value: isinstance(value, list), "a list")


def whole_in(values: Any, key: str, least: int, most: int, default: Any = ABSENT) -> int:
    return _value(
        values,
        key,
        default,
        lambda value: type(value) is int and least <= value <= most,
        f"a whole number from {least:,} to {most:,}",
    )


def number_in(values: Any, key: str, least: float, most: float, default: Any = ABSENT) -> float:
    value = _value(
        values,
        key,
        default,
        lambda value: type(value) in (int, float) and least <= value <= most,
        f"a number from {least:g} to {most:g}",
    )
    return float(value)


def _value(values: Any, key: str, default: Any, is_right: Callable[[Any], bool], what: str) -> Any:
    if not isinstance(values, dict):
        raise ValueError(f"there is no object with '{key}'")
    value = values.get(key, default)
    if value is ABSENT:
        raise ValueError(f"it has no '{key}'")
    if not is_right(value):
        raise ValueError(f"'{key}' is not {what}")
    return value


PIECE_CHARACTERS = PIECE_BYTES = 1 << 20
MOST_CHARACTERS = 1 << 21  # of one value; an event has a few hundred
MOST_DEPTH = 64  # of one value; an event has 4
# times the size of a gzip file; traces have 5 to 30 times, what repeats a few bytes 200 to 1,000
# times
MOST_EXPANSION = 100
FREE_BYTES = 1 << 24  # that a gzip file may expand to anyway
GZIP_MAGIC = b"\x1f\x8b"
NO_SPACE = re.compile(r"[^ \t\n\r]")
# NaN becomes a string, so that the output is valid JSON
decode = json.JSONDecoder(strict=False, parse_constant=str).raw_decode


@contextmanager
def json_open(path: Path) -> Iterator[JsonStream]:
    """Opens a file, plain or compressed by gzip."""
    try:
        with regular_open(path) as file:
            is_compressed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            if is_compressed:
                _expansion_check(path, file)
            file.seek(0)
            yield JsonStream(path, gzip.open(file) if is_compressed else file)
    except EOFError:
        raise ReportError(path, "ends early: its gzip stream has no end") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ReportError(path, f"is damaged: {error}") from None
    except OSError as error:
        raise ReportError(path, f"cannot be read: {error.strerror or error}") from None


def _expansion_check(path: Path, file: BinaryIO) -> None:
    """Unpacks the file once, which takes a hundredth of the time that reading its JSON does."""
    left = max(MOST_EXPANSION * os.fstat(file.fileno()).st_size, FREE_BYTES)
    file.seek(0)
    with gzip.open(file) as unpacked:
        while piece := unpacked.read(PIECE_BYTES):
            left -= len(piece)
            if left < 0:
                what = f"expands to more than {MOST_EXPANSION} times its size, which no trace does"
                raise ReportError(path, f"{what}; if it is one, unpack it with gunzip")


class JsonStream:
    def __init__(self, path: Path, file: BinaryIO | gzip.GzipFile) -> None:
        self.path = path
        self.file = io.TextIOWrapper(
            file,  # type: ignore[arg-type]  # to mypy 1.0, GzipFile is no file
            encoding="utf-8",
            errors="replace",
            newline="",
        )
        self.text, self.at = "", 0
        self.dropped = 0  # characters before the text
        self.has_ended = False

    def peek(self) -> str:
        """The next character that is not white space; empty at the end."""
        while True:
            found = NO_SPACE.search(self.text, self.at)
            self.at = found.start() if found else len(self.text)
            if found:
                return found[0]
            if not self._read_more():
                return ""

    def take(self, wanted: str) -> str:
        """Consumes the next character, which must be one of these."""
        found = self.peek()
        if not found or found not in wanted:
            raise self._error(f"{' or '.join(wanted)} is expected")
        self.at += 1
        return found

    def value(self) -> object:
        self.peek()
        while True:
            try:
                value, end = decode(self.text, self.at)
            except json.JSONDecodeError as error:
                if self._read_more():
                    continue
                raise self._error(error.msg) from None
            except RecursionError:
                raise self._refusal("nests a value too deeply") from None
            except ValueError:
                raise self._refusal("holds a number of too many digits") from None
            # a number may continue in the next piece
            if end < len(self.text) or not self._read_more():
                brackets = sum(self.text.count(bracket, self.at, end) for bracket in "[{")
                if brackets > MOST_DEPTH and is_deep(value):
                    raise self._refusal("nests a value too deeply")
                self.at = end
                return value

    def elements(self, is_growing: bool = False) -> Iterator[object]:
        """The values of an array. is_growing: the file may end after a value or a comma, as that of
        a writer that was killed does."""
        for _ in self._separated("[]", is_growing):
            yield self.value()

    def keys(self) -> Iterator[str]:
        """The keys of an object; the caller must read each value before the next key."""
        for _ in self._separated("{}"):
            key = self.value()
            self.take(":")
            yield key if isinstance(key, str) else ""

    def _separated(self, brackets: str, is_growing: bool = False) -> Iterator[None]:
        """At each part between these brackets."""
        self.take(brackets[0])
        if self.peek() == brackets[1]:
            self.at += 1
            return
        separator = ","
        while separator == "," and not (is_growing and self.peek() == ""):
            yield
            separator = "" if is_growing and self.peek() == "" else self.take(f",{brackets[1]}")

    def _read_more(self) -> bool:
        rest = self.text[self.at :]
        if len(rest) > MOST_CHARACTERS:
            raise self._refusal(
                f"holds a value of more than {MOST_CHARACTERS >> 20} MiB, or is not JSON"
            )
        piece = self.file.read(PIECE_CHARACTERS)
        self.dropped += self.at
        self.text, self.at = rest + piece, 0
        self.has_ended = not piece
        return not self.has_ended

    def _refusal(self, what: str) -> ReportError:
        return ReportError(self.path, f"{what}, from character {self.dropped + self.at:,}")

    def _error(self, what: str) -> ReportError:
        how = "ends early or is not JSON" if self.has_ended else "is not JSON"
        return ReportError(self.path, f"{how}: {what} at character {self.dropped + self.at:,}")


def is_deep(value: object) -> bool:
    """Whether a value has more levels than MOST_DEPTH."""
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        holders = (each for each in level if isinstance(each, (dict, list)))
        level = [
            each
            for holder in holders
            for each in (holder.values() if isinstance(holder, dict) else holder)
        ]
    return bool(level)

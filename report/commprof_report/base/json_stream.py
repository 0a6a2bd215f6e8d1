"""Reads a JSON file of any size piece by piece, with at most one value of up to MOST_CHARACTERS in memory.

Truncated files and invalid JSON raise ReportError with the position.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from .errors import ReportError

PIECE_CHARACTERS = 1 << 20
MOST_CHARACTERS = 1 << 26  # of one value; an event has a few hundred
GZIP_MAGIC = b"\x1f\x8b"
SPACE = re.compile(r"[ \t\n\r]*")
decode = json.JSONDecoder(strict=False, parse_constant=str).raw_decode  # NaN becomes a string, so that the output is valid JSON


@contextmanager
def json_open(path: Path) -> Iterator[JsonStream]:
    """Opens a file, plain or compressed by gzip."""
    try:
        with open(path, "rb") as file:
            is_compressed = file.read(2) == GZIP_MAGIC
        opener = gzip.open if is_compressed else open
        with opener(path, "rt", encoding="utf-8", errors="replace", newline="") as file:
            yield JsonStream(path, file)
    except EOFError:
        raise ReportError(path, "ends early: its gzip stream has no end") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ReportError(path, f"is damaged: {error}") from None
    except OSError as error:
        raise ReportError(path, f"cannot be read: {error.strerror or error}") from None


class JsonStream:
    def __init__(self, path: Path, file: TextIO) -> None:
        self.path, self.file = path, file
        self.text, self.at = "", 0
        self.dropped = 0  # characters before the text
        self.has_ended = False

    def peek(self) -> str:
        """The next character that is not white space; empty at the end."""
        while True:
            self.at = SPACE.match(self.text, self.at).end()
            if self.at < len(self.text):
                return self.text[self.at]
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
            except (ValueError, RecursionError) as error:
                if self._read_more():
                    continue
                raise self._error(getattr(error, "msg", "a value is not valid JSON")) from None
            if end < len(self.text) or not self._read_more():  # a number may continue in the next piece
                self.at = end
                return value

    def elements(self) -> Iterator[object]:
        """The values of an array."""
        self.take("[")
        if self.peek() == "]":
            self.at += 1
            return
        separator = ","
        while separator == ",":
            yield self.value()
            separator = self.take(",]")

    def keys(self) -> Iterator[str]:
        """The keys of an object; the caller must read each value before the next key."""
        self.take("{")
        if self.peek() == "}":
            self.at += 1
            return
        separator = ","
        while separator == ",":
            key = self.value()
            self.take(":")
            yield key if isinstance(key, str) else ""
            separator = self.take(",}")

    def _read_more(self) -> bool:
        rest = self.text[self.at :]
        if len(rest) > MOST_CHARACTERS:
            what = f"holds a value of more than {MOST_CHARACTERS >> 20} MiB, or is not JSON"
            raise ReportError(self.path, f"{what}, from character {self.dropped + self.at:,}")
        piece = self.file.read(max(PIECE_CHARACTERS, len(rest)))
        self.dropped += self.at
        self.text, self.at = rest + piece, 0
        self.has_ended = not piece
        return not self.has_ended

    def _error(self, what: str) -> ReportError:
        place = f"at character {self.dropped + self.at:,}"
        if self.has_ended:
            return ReportError(self.path, f"ends early or is not JSON: {what} {place}")
        return ReportError(self.path, f"is not JSON: {what} {place}")

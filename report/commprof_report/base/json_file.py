"""Small JSON files that somebody may have changed: whoever reads one gets the types that it asks
for, or a ValueError that says what is wrong.

json.loads takes more than JSON (NaN), more than a float holds (1e999), and the last of two equal
keys. None of these is what the writer meant.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from .errors import ReportError
from .regular import regular_open

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


def json_parse(data: bytes) -> Any:
    if len(data) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES >> 20} MiB")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_int=_whole, parse_float=_finite,
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
    value = _value(values, key, default)
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"'{key}' is not a text")
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        raise ValueError(f"'{key}' has half a character") from None
    return value


def list_in(values: Any, key: str) -> list:
    value = _value(values, key, ABSENT)
    if not isinstance(value, list):
        raise ValueError(f"'{key}' is not a list")
    return value


def whole_in(values: Any, key: str, least: int, most: int, default: Any = ABSENT) -> int:
    value = _value(values, key, default)
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"'{key}' is not a whole number from {least:,} to {most:,}")
    return value


def number_in(values: Any, key: str, least: float, most: float, default: Any = ABSENT) -> float:
    value = _value(values, key, default)
    if type(value) not in (int, float) or not least <= value <= most:
        raise ValueError(f"'{key}' is not a number from {least:g} to {most:g}")
    return float(value)


def _value(values: Any, key: str, default: Any) -> Any:
    if not isinstance(values, dict):
        raise ValueError(f"there is no object with '{key}'")
    value = values.get(key, default)
    if value is ABSENT:
        raise ValueError(f"it has no '{key}'")
    return value

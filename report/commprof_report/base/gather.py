"""Rows by what they share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def gathered(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key; keys in the order in which they were first seen."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def by(rows: Iterable[Value], key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    return gathered((key(row), row) for row in rows)

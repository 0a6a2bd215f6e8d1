"""Values in general: those that share a key, and those that may be absent."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, TypeVar

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


def present(value: Value | None) -> Value:
    """The value; that it is not None follows from what the caller has checked."""
    assert value is not None
    return value


class Unknown(NamedTuple):
    """Why something is not known. needs: what would let it be known of this run, as far as that can
    be told."""

    why: str
    needs: str = ""

    def __str__(self) -> str:
        return f"unknown: {self.why}"

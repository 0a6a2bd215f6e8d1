"""Values that may be absent in general and are known where they are used."""

from __future__ import annotations

from typing import TypeVar

Value = TypeVar("Value")


def present(value: Value | None) -> Value:
    """The value; that it is not None follows from what the caller has checked."""
    assert value is not None
    return value

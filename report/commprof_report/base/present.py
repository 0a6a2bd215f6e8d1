"""Values that may be absent in general and are known where they are used."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

Value = TypeVar("Value")


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

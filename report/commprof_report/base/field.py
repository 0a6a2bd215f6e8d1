"""Columns of an answer, each said once: its key, its meaning (docs/SCHEMA.md), and for people its
head and its form. A key ends in its unit, which has a form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

from . import Row
from .units import NO_VALUE, bandwidth, count, duration, share as share_text, shortened, volume

FORMS = {
    "ns": duration,
    "share": share_text,
    "bytes": lambda value: volume(value or None),
    "s": bandwidth,
    "mhz": lambda value: NO_VALUE if value is None else f"{value:,.0f}",
}


class Field(NamedTuple):
    """of_row: formats several columns of a row; form: the value, if its unit does not say how.
    Without a head it is for scripts alone; without a meaning it shares that of the field before. A
    number is flush right. of: how a view computes it (summarize.py), if its key does not say
    how."""

    key: str
    meaning: str
    head: str = ""
    form: Callable[[Any], str] | None = None
    is_number: bool = True
    of_row: Callable[[Any], str] | None = None
    of: Any = None
    to_byte: Callable[[Any], str] | None = None  # of_row, exactly

    @property
    def unit(self) -> str:
        return self.key.rpartition("_")[2]

    def show(self, row: Row) -> str:
        if self.of_row:
            return self.of_row(row)
        return (self.form or FORMS.get(self.unit, count))(getattr(row, self.key))

    def exact(self, row: Row) -> str:
        """To the byte, where it is a volume."""
        if self.to_byte:
            return self.to_byte(row)
        shown = self.show(row)
        if self.unit != "bytes" or self.of_row or shown == NO_VALUE:
            return shown
        return count(getattr(row, self.key))


def text(key: str, meaning: str, head: str = "", width: int = 1 << 20) -> Field:
    return Field(key, meaning, head, lambda value: shortened(value or "", width), False)


def number(key: str, meaning: str, head: str = "") -> Field:
    """A name, not a quantity."""
    return Field(key, meaning, head, lambda value: NO_VALUE if value is None else str(value))


def keys(fields: Sequence[Field]) -> list[str]:
    return [field.key for field in fields]


def shown(fields: Sequence[Field], keys: str = "") -> list[Field]:
    """The fields for people; in the order of these keys, if any."""
    by_key = {field.key: field for field in fields if field.head}
    return [by_key[key] for key in keys.split() or by_key]


def telling(fields: Sequence[Field], rows: Sequence[Row], *optional: str) -> list[Field]:
    """Without the fields that have no value, or 0, in all rows. optional: their keys; those of one
    text stand together."""
    empty = [
        each.split()
        for each in optional
        if not any(getattr(row, key) for row in rows for key in each.split())
    ]
    return [field for field in fields if not any(field.key in each for each in empty)]

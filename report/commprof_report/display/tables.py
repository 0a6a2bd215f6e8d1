"""Rows as a table for people, or as JSON or CSV for scripts."""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TextIO

from ..base import Field, Unknown, option, units


# also in the wide forms of East Asia
CALCULATED = ("=", "+", "-", "@", "\t", "\r", "\n", "'", "\uff1d", "\uff0b", "\uff0d", "\uff20")
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?", re.ASCII)


FORMS = (
    option(
        "--json",
        action="store_true",
        group="output",
        is_alone=True,
        help="a list of objects; keys and units in docs/SCHEMA.md",
    ),
    option(
        "--csv",
        action="store_true",
        group="output",
        is_alone=True,
        help="the same keys as a header, then one line per row",
    ),
)
# of a command that ends in write_rows: a program may take the rows instead (api.py)
ROWS = (*FORMS, option(take_rows=None))


def is_for_scripts(arguments: argparse.Namespace) -> bool:
    return arguments.json or arguments.csv or arguments.take_rows is not None


def write_rows(
    arguments: argparse.Namespace, rows: Sequence[object], fields: Sequence[str]
) -> None:
    """Writes the rows to stdout as --json or --csv requests, or hands them to the program that
    asked for them."""
    told = [[_told(getattr(row, field)) for field in fields] for row in rows]
    if arguments.take_rows is not None:
        arguments.take_rows(told, fields)
    elif arguments.json:
        write_json(sys.stdout, (dict(zip(fields, values)) for values in told))
    else:
        write_csv(sys.stdout, fields, told)


def _told(value: object) -> object:
    """Listed values, kinds and reasons are text to scripts."""
    return str(value) if isinstance(value, (Enum, units.Listed, Unknown)) else value


def write_json(file: TextIO, records: Iterable[dict]) -> None:
    """Writes a list of objects, one per line."""
    before = "["
    for record in records:
        file.write(f"{before}\n{json.dumps(record, allow_nan=False)}")
        before = ","
    file.write("[]\n" if before == "[" else "\n]\n")


def write_csv(file: TextIO, fields: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(_cell, fields))
    writer.writerows(map(_cell, row) for row in rows)


def _cell(value: object) -> object:
    """A text that a spreadsheet would calculate begins with an apostrophe; so does one that has one
    already, for whoever takes it away."""
    if not isinstance(value, str):
        return value
    is_plain = (
        value == units.NO_VALUE or NUMBER.fullmatch(value) or not value.startswith(CALCULATED)
    )
    return units.visible(value) if is_plain else f"'{units.visible(value)}"


def text_table(columns: Sequence[Field], rows: Sequence[object], indent: str = "") -> str:
    """A table with aligned columns; one line per row."""
    lines = [[column.head for column in columns]]
    lines += [
        [units.visible(column.show(row)) or units.NO_VALUE for column in columns] for row in rows
    ]
    widths = [max(map(len, cells)) for cells in zip(*lines)]
    return "\n".join(indent + _line(columns, cells, widths) for cells in lines)


def first_rows(columns: Sequence[Field], rows: Sequence[object], most: int, more: str) -> str:
    """A table of so many of the rows; more: what says the rest after its number."""
    left = f"\n... and {len(rows) - most:,} more{more}" if len(rows) > most else ""
    return text_table(columns, rows[:most]) + left


def _line(columns: Sequence[Field], cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell.rjust(width) if column.is_number else cell.ljust(width)
        for column, cell, width in zip(columns, cells, widths)
    )
    return "  ".join(padded).rstrip()

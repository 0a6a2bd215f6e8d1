"""A check's results: rows of a table, on a terminal and in Markdown."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

PASS, FAIL, SKIP = "PASS", "FAIL", "SKIP"


class Row(NamedTuple):
    check: str
    expected: str
    seen: str
    verdict: str  # PASS, FAIL, SKIP
    reason: str = ""

    @property
    def judged(self) -> str:
        return f"{self.verdict}: {self.reason}" if self.reason else self.verdict


def row(check: str, expected: object, seen: object, passed: bool, reason: str = "") -> Row:
    return Row(check, str(expected), str(seen), PASS if passed else FAIL, "" if passed else reason)


def same(check: str, expected: object, seen: object) -> Row:
    return row(check, expected, seen, expected == seen)


def skip(check: str, reason: str) -> Row:
    return Row(check, "", "", SKIP, reason)


def failed(check: str, reason: str) -> Row:
    return Row(check, "", "", FAIL, reason)


def line(one: Row) -> str:
    """For a terminal."""
    text = [f"{one.verdict}  {one.check}  {one.seen}".rstrip()]
    if one.verdict == FAIL and one.expected:
        text.append(f"      expected: {one.expected}")
    if one.reason:
        text.append(textwrap.indent(one.reason, "      "))
    return "\n".join(text)


def counted(rows: list[Row]) -> str:
    return ", ".join(
        f"{sum(one.verdict == verdict for one in rows)} {word}" for verdict, word in WORDS
    )


WORDS = [(PASS, "passed"), (FAIL, "failed"), (SKIP, "skipped")]


def markdown(rows: list[Row], machine: dict[str, str]) -> str:
    """Ready for docs/GPU.md: what machine it was, then a line for each row."""
    head = ", ".join(f"{name} {value}" for name, value in machine.items() if name != "date")
    table = ["| check | expected | seen | verdict |", "|---|---|---|---|"]
    table += [
        "| " + " | ".join(map(cell, (one.check, one.expected, one.seen, one.judged))) + " |"
        for one in rows
    ]
    return (
        f"### {machine.get('date', 'no date')}\n\n{head}\n\n"
        + "\n".join(table)
        + f"\n\n{counted(rows)}\n"
    )


def cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())

"""Are the messages of this run well shaped? Advice, with evidence and the time that it could save at most.

Each rule looks for one thing: messages that could be fused, sizes that are slower than larger ones, jumps between sizes, a rank that
is waited for, polls, missing overlap, a Reduce and a Bcast where an Allreduce would do, waiting messages, barriers. What could
save less than 0.5 % of the time is not said. The bounds may count the same time twice, so they do not add up. What was looked for and
not found is named at the end.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Sequence

from .. import advice, page, tables, units
from ..advice import Advice
from ..digest import Digest, digest
from ..late import Late, late
from ..run import Run
from ..tables import Column
from ..unsampled import unsampled_text
from . import common

WIDTH = 110
MOST_PIECES = 10
MOST_KNEES = 6
COLUMNS = (
    Column("advice", lambda row: row.title, False),
    Column("saves at most", lambda row: saving_text(row), False),
    Column("sure", lambda row: row.certainty, False),
    Column("evidence", lambda row: row.evidence, False),
    Column("what to do", lambda row: row.suggestion, False),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, with_samples=True)
    rows = advice.advice(run, digest(run), late(run.connection))
    if tables.is_for_scripts(arguments):
        tables.write_rows(arguments, rows, Advice._fields)
    else:
        for line in lines(rows, unsampled_text(run.connection)):
            common.print_line(line)


def lines(rows: Sequence[Advice], unsampled: str) -> Iterator[str]:
    pieces = [row for row in rows if row.found]
    yield verdict(pieces)
    for number, row in enumerate(pieces[:MOST_PIECES], 1):
        yield ""
        yield from piece_lines(number, row)
    if len(pieces) > MOST_PIECES:
        yield f"\n... and {units.counted(len(pieces) - MOST_PIECES, 'more piece')}; --json has them all."
    yield ""
    yield from closing_lines(rows, unsampled)


def verdict(pieces: Sequence[Advice]) -> str:
    if not pieces:
        return "Nothing to advise: no rule found what could save 0.5 % of the time."
    first = pieces[0]
    more = f", and {units.counted(len(pieces) - 1, 'more piece')} of advice" if len(pieces) > 1 else ""
    return f"{first.title[0].upper()}{first.title[1:]}{more}."


def piece_lines(number: int, row: Advice) -> Iterator[str]:
    saved = saving_text(row)
    yield f"{number}. {row.title[0].upper()}{row.title[1:]}" + (f": saves at most {saved} ({row.certainty})" if saved else "")
    yield from wrapped(f"{row.evidence}.")
    yield from wrapped(f"-> {row.suggestion}.")


def wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="   ", subsequent_indent="   ", break_on_hyphens=False)


def saving_text(row: Advice) -> str:
    if row.saving_ns_at_most is None:
        return ""
    return f"{units.share(row.saving_share)} of the time, {units.duration(row.saving_ns_at_most)} over all ranks"


def closing_lines(rows: Sequence[Advice], unsampled: str) -> Iterator[str]:
    """What is known of rates, what was not found, and what could not be looked for."""
    knees = [row.title for row in rows if row.rule == "knee"]
    for knee in knees[:MOST_KNEES]:
        yield f"{knee}."
    silent = [row for row in rows if not row.found and row.rule != "knee"]
    absent = [row.title for row in silent if not row.evidence]
    if absent:
        yield from textwrap.wrap(f"Looked for and not found: {'; '.join(absent)}.", WIDTH, break_on_hyphens=False)
    for row in silent:
        if row.evidence:
            yield from textwrap.wrap(f"Not known: {row.title} ({row.evidence}).", WIDTH, break_on_hyphens=False)
    if unsampled:
        yield from textwrap.wrap(f"Not known: the single calls of {unsampled}.", WIDTH, break_on_hyphens=False)


def advise_section(run: Run, answers: Digest, split: Late) -> str:
    rows = advice.advice(run, answers, split)
    pieces = [row for row in rows if row.found]
    sentence = f"{verdict(pieces)} Bounds may count the same time twice. {' '.join(closing_lines(rows, unsampled_text(run.connection)))}"
    return page.section("What could be better", sentence, *([page.table(COLUMNS, pieces[:MOST_PIECES])] if pieces else []))

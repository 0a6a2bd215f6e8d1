"""Common parts of the commands: the run they read, the filters, the form of output."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..base import EXECUTOR, checked, option, present, take_note, units
from ..display import page, pictures, tables
from ..run import MOST_SAMPLES, Run, Selection, run_open, selection, unseen_calls_text


RUN = (
    option(**dict.fromkeys(selection.FILTERS)),  # type: ignore[arg-type]  # of those that take none
    option(
        "run",
        metavar="RUN",
        type=Path,
        nargs="*",
        help="a run folder, a merged database, or one rank's file; several folders of one run; "
        "default: the newest run here",
    ),
    EXECUTOR,
)
HEAD_WIDTH, WIDEST = 16, 1 << 20  # of facts
KEPT = "\N{NO-BREAK SPACE}"
PLOT = option(
    "--plot",
    type=pictures.picture_path,
    metavar="FILE",
    help="draw into FILE: .png, .svg or .pdf (needs matplotlib)",
)
ONLY_RANKS = (
    option(
        "--rank",
        type=selection.rank_spans,
        metavar="LIST",
        group="filters",
        help="these world ranks only: 0,3-5",
    ),
)
SELECTED = (*RUN, *selection.OPTIONS, *tables.ROWS)
DRAWN = (*SELECTED, PLOT)
BY_MEMORY_KIND = (*RUN, *selection.OPTIONS, selection.MEMORY_KIND, *tables.ROWS)
DRAWN_BY_MEMORY_KIND = (*BY_MEMORY_KIND, PLOT)


row_count = checked(  # the value of --top
    lambda word: int(word) if word.isdecimal() and 0 < int(word) < 1_000_000 else None,
    "no number of rows",
)


def open_selected(
    arguments: argparse.Namespace,
    with_histograms: bool = True,
    bins: str = "exact",
    with_samples: bool = False,
    most_samples: int | None = MOST_SAMPLES,
) -> Selection:
    """The run with the filters applied; what there is to say about its files is said."""
    run = open_noted(arguments, with_histograms, with_samples, most_samples)
    return selection.select(run, arguments, bins)


def open_noted(
    arguments: argparse.Namespace,
    with_histograms: bool = True,
    with_samples: bool = False,
    most_samples: int | None = MOST_SAMPLES,
) -> Run:
    run = run_open(arguments.run, with_histograms, with_samples, most_samples)
    print_notes(run.remarks + run.notes)
    return run


def print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        take_note.get()(note)


def is_whole(arguments: argparse.Namespace) -> bool:
    """No filter was given."""
    return not selection.filters(arguments)


def print_line(text: str = "") -> None:
    """Text that may hold names from files."""
    print(units.visible(text))


def answer(
    arguments: argparse.Namespace,
    run: Selection | None,
    rows: Sequence[Any],
    fields: Sequence[Any],
    blocks: Callable[[], Iterable[str]],
    draw: Callable[[], tuple[pictures.Picture | None, str]] | None = None,
    nothing: Callable[[], str] | None = None,
    why_none: Callable[[], str] | None = None,
) -> None:
    """The rows for scripts, or in words: blocks a blank line apart. draw: for --plot, the
    picture, and how much it has; why_none: why there may be none, if it is not `nothing`.
    nothing: said where there are no rows; empty: the blocks say it."""
    nothing = nothing or partial(nothing_text, present(run))
    if draw and run and arguments.plot:
        picture_save(arguments, run, *draw(), (why_none or nothing)())
    if tables.is_for_scripts(arguments):
        tables.write_rows(arguments, rows, [getattr(field, "key", field) for field in fields])
    else:
        said = "" if rows else nothing()
        print(lines_text((said or "\n\n".join(filter(None, blocks()))).split("\n")))


def screen() -> int:
    """The columns of the terminal; WIDEST where the text goes elsewhere."""
    is_known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return max(2 * HEAD_WIDTH, shutil.get_terminal_size().columns) if is_known else WIDEST


def wrapped(text: str, most: int = WIDEST, indent: str = "") -> list[str]:
    """Lines within the terminal, and within `most`. No number is parted from its unit."""
    width = min(most, screen())
    kept = re.sub(r"(?<=\d) (?=%|[mun]?s\b|[KMGT]i?B\b)", KEPT, units.visible(text))
    lines = textwrap.wrap(
        kept,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line.replace(KEPT, " ") for line in lines]


def lines_text(lines: Iterable[str]) -> str:
    """Sentences within the terminal; tables, whose columns are two spaces apart, as they are."""
    fitted, width = list[str](), screen()
    for line in map(units.visible, lines):
        bare = line.lstrip()
        is_whole = len(line) <= width or "  " in bare
        fitted += [line] if is_whole else wrapped(bare, indent=line[: -len(bare)])
    return "\n".join(fitted)


def facts_text(facts: Iterable[tuple[str, str]], width: int = WIDEST) -> str:
    """A line for each fact that has a text, or several where it is wider."""
    lines = []
    for head, text in facts:
        for part in wrapped(text, min(width, screen()) - HEAD_WIDTH):
            lines.append(f"{units.visible(head):<{HEAD_WIDTH}}{part}")
            head = ""
    return "\n".join(lines)


def picture_save(
    arguments: argparse.Namespace,
    run: Run,
    picture: pictures.Picture | None,
    drawn: str,
    why_none: str,
) -> None:
    """--plot. In the corner are the run, its library and what is drawn: so many calls, ranks,
    steps. why_none: why there is no picture."""
    versions = run.connection.execute(
        "SELECT DISTINCT value FROM fact WHERE key = 'mpi_version' ORDER BY value"
    ).fetchall()
    libraries = [units.library_name(version) for (version,) in versions]
    parts = (title_of(run), units.counted(run.world_size, "rank"), *libraries, drawn)
    pictures.save(
        arguments.plot,
        picture,
        units.visible(" · ".join(parts)),
        units.visible(why_none),
        run.mode,
    )


def picture(drawn: pictures.Picture | None, description: str) -> str:
    """In a page; nothing if there is none, or no matplotlib."""
    return page.picture(pictures.svg(drawn), description)


def title_of(run: Run) -> str:
    return run.path.resolve().name


def nothing_text(run: Selection, what: str = "call") -> str:
    text = (
        f"no {what} of this run fits the filters"
        if run.filters
        else f"no {what} was counted in this run"
    )
    return text + but_unseen(unseen_calls_text(run.connection))


def but_unseen(unseen: str) -> str:
    """Suffix for a denial: the part of the job that was not seen."""
    return f" (not seen: {unseen})" if unseen else ""


def part_facts(run: Selection) -> Iterator[tuple[str, str]]:
    """The part of the job on which answers rest, where it is not the whole."""
    if run.filters:
        yield "Based on", f"calls selected by {', '.join(run.filters)}"
    if unseen := unseen_calls_text(run.connection):
        yield "Not seen", unseen

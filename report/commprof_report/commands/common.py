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
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from ..base import EXECUTOR, Field, Row, attempt, checked, option, present, take_note, units
from ..display import pictures, render
from ..run import (
    MOST_SAMPLES,
    Alignment,
    Run,
    Selection,
    run_open,
    selection,
    unseen_calls_text,
)

if TYPE_CHECKING:
    from ..advice.advice import Advice
    from ..late.late_ranks import Late
    from ..roles.world import World
    from ..steps.boundaries import Steps
    from ..steps.steps_summary import StepsRow, StepsSummary
    from ..summary.run_summary import RunSummary

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
PACKAGE = str(__package__).rpartition(".")[0]
HEAD_WIDTH, WIDEST = 16, 1 << 20  # of facts
KEPT = "\N{NO-BREAK SPACE}"
MOST_ON_PAGE = 64  # rows of a table
LONG = 40  # characters of what the page says once
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
SELECTED = (*RUN, *selection.OPTIONS, *render.ROWS)
DRAWN = (*SELECTED, PLOT)
BY_MEMORY_KIND = (*RUN, *selection.OPTIONS, selection.MEMORY_KIND, *render.ROWS)
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


SUMS = partial(open_selected, with_histograms=False)
SAMPLES = partial(SUMS, with_samples=True)
ALL = partial(open_selected, with_samples=True)


def print_notes(notes: Iterable[str]) -> None:
    for note in notes:
        take_note.get()(note)


def print_line(text: str = "") -> None:
    """Text that may hold names from files."""
    print(units.visible(text))


class Facts(NamedTuple):
    """A line for each fact that has a text: its head, and the text."""

    facts: Iterable[tuple[str, str]]
    width: int = WIDEST

    def text(self) -> str:
        return facts_text(self.facts, self.width)

    def html(self) -> str:
        return render.facts_list(self.facts)


class Rows(NamedTuple):
    """A table of the first rows. more: what the screen says behind the number of the others."""

    columns: Sequence[Field]
    rows: Sequence[Any]
    most: int = 1 << 20
    more: str = ""

    def text(self) -> str:
        left = len(self.rows) - self.most
        more = f"\n... and {left:,} more{self.more}" if left > 0 else ""
        return render.text_table(self.columns, self.rows[: self.most]) + more if self.rows else ""

    def html(self) -> str:
        return render.table(self.columns, self.rows, min(self.most, MOST_ON_PAGE))


class Words(NamedTuple):
    """A paragraph of at most so many columns."""

    words: str
    width: int = WIDEST
    indent: str = ""

    def text(self) -> str:
        return "\n".join(wrapped(self.words, self.width, self.indent))

    def html(self) -> str:
        return render.sentence_of(self.words)


class Folded(NamedTuple):
    """Sentences of one kind, which a page unfolds where they are several."""

    head: str
    sentences: Sequence[str]
    width: int = WIDEST

    def words(self) -> Words:
        return Words(f"{self.head}: {'; '.join(self.sentences)}.", self.width)

    def text(self) -> str:
        return self.words().text()

    def html(self) -> str:
        is_one = len(self.sentences) == 1
        return self.words().html() if is_one else render.folded(self.head, self.sentences)


class Hint(str):
    """A line for the screen alone: it names an option."""


def block_text(block: Any) -> str:
    """block: one of the above, a line, or a list of blocks that stand together."""
    if isinstance(block, list):
        return "\n".join(filter(None, map(block_text, block)))
    return units.visible(block) if isinstance(block, str) else block.text()


def block_html(block: Any, said: set[str]) -> str:
    """Without what the page has said above, and without hints to options."""
    if isinstance(block, list):
        return "".join(block_html(each, said) for each in block)
    if isinstance(block, str):
        return block_html(Words("" if isinstance(block, Hint) else block), said)
    if isinstance(block, Words) and (block.words in said or not block.words):
        return ""
    if isinstance(block, Facts):
        block = Facts([*left_out(block.facts, said)])
        said.update(text for _, text in block.facts if len(text) > LONG)
    return block.html()


def left_out(facts: Iterable[tuple[str, str]], said: set[str]) -> Iterator[tuple[str, str]]:
    """The facts without those; the next line of one keeps its head."""
    kept = ""
    for head, text in facts:
        kept = head or kept
        if text and text not in said:
            yield kept, text
            kept = ""


class Answer(NamedTuple):
    """The rows for scripts, and in words: blocks, which a blank line parts. draw: the picture, and
    how much it has. nothing: said where there are no rows; empty: the blocks say it. why_none: why
    there may be no picture, if it is not `nothing`."""

    rows: Sequence[Any]
    fields: Sequence[Any]
    blocks: Callable[[], Iterable[Any]]
    draw: Callable[[], tuple[pictures.Picture | None, str]] | None = None
    nothing: Callable[[], str] | None = None
    why_none: Callable[[], str] | None = None


def show(arguments: argparse.Namespace, run: Selection | None, answer: Answer) -> None:
    """As --json, --csv or --plot ask for."""
    nothing = answer.nothing or partial(nothing_text, present(run))
    if answer.draw and run and arguments.plot:
        picture_save(arguments, run, *answer.draw(), (answer.why_none or nothing)())
    if render.is_for_scripts(arguments):
        keys = [getattr(field, "key", field) for field in answer.fields]
        render.write_rows(arguments, answer.rows, keys)
    else:
        said = "" if answer.rows else nothing()
        blocks = filter(None, map(block_text, [said] if said else answer.blocks()))
        print(lines_text("\n\n".join(blocks).split("\n")))


OF_STEPS = "Steps", "steps.steps_summary:steps_summary", "run alignment"
# each: what it is called where it fails, its function, what it needs, and what it may have
ANALYSES: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "alignment": ("Clocks", "run.alignment:align", "connection", {}),
    "waits": ("Waiting", "late.late_ranks:Late", "run alignment", {}),
    "summary": ("Summary", "summary.run_summary:run_summary", "run", {"late": "waits"}),
    "negotiated": ("Negotiation", "summary.run_summary:negotiated_rows", "connection", {}),
    "steps": (*OF_STEPS, {"late": "waits"}),
    "without_steps": (*OF_STEPS, {"late": "waits", "by": "no_steps"}),
    "boundaries": ("Steps", "steps.steps_summary:steps_find", "run alignment", {}),
    "world": ("Communicators", "roles.world:world_of", "connection", {}),
    "advised": ("Advice", "advice.advice:advice", "run summary waits steps_row world", {}),
}


class Analysed:
    """A run, and each analysis of it, made when it is first asked for. None: it has failed."""

    alignment: Alignment | None
    waits: Late | None
    summary: RunSummary
    negotiated: Sequence[Row] | None
    steps: StepsSummary | None
    without_steps: StepsSummary | None
    boundaries: Steps | None
    no_steps = "none"
    world: World | None
    advised: Sequence[Advice] | None

    def __init__(self, run: Selection) -> None:
        self.run, self.connection = run, run.connection

    def __getattr__(self, name: str) -> Any:
        title, place, needs, more = ANALYSES[name]
        analysis = resolve_name(f"{PACKAGE}.{place}")
        given = (getattr(self, each) for each in needs.split())
        taken = {key: getattr(self, each) for key, each in more.items()}
        found = vars(self)[name] = attempt(title, analysis, *given, **taken)
        return found

    @property
    def has_samples(self) -> bool:
        return bool(self.connection.execute("SELECT 1 FROM sample").fetchone())

    @property
    def steps_or_none(self) -> StepsSummary | None:
        """There are none if their analysis fails."""
        return self.steps or self.without_steps

    @property
    def steps_row(self) -> StepsRow | None:
        return self.steps_or_none and self.steps_or_none.summary

    def named(self, names: Callable[[World], dict[str, str]]) -> dict[str, str]:
        """Names of communicators; none if that fails."""
        return attempt("Communicators", names, self.world) or {}


class View(NamedTuple):
    """A question about a run that a command and its section of the page answer. ask: gives the
    Answer, of the run and the options, and of analyses by their names, without which there is
    none."""

    ask: Callable[..., Optional[Answer]]
    opened: Callable[[argparse.Namespace], Selection]
    needs: Sequence[str] = ()

    def answer(self, known: Analysed, arguments: argparse.Namespace) -> Optional[Answer]:
        needed = [getattr(known, each) for each in self.needs]
        is_known = all(each is not None for each in needed)
        return self.ask(known, arguments, *needed) if is_known else None

    def __call__(self, arguments: argparse.Namespace) -> None:
        known = Analysed(self.opened(arguments))
        if answer := self.answer(known, arguments):
            show(arguments, known.run, answer)


def screen() -> int:
    """The columns of the terminal; WIDEST where the text goes elsewhere."""
    is_known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return max(2 * HEAD_WIDTH, shutil.get_terminal_size().columns) if is_known else WIDEST


def wrapped(text: str, most: int = WIDEST, indent: str = "", first: str = "") -> list[str]:
    """Lines within the terminal, and within `most`. No number is parted from its unit. first: what
    the first one begins with, in place of the indent."""
    kept = re.sub(r"(?<=\d) (?=%|[mun]?s\b|[KMGT]i?B\b)", KEPT, units.visible(text))
    lines = textwrap.wrap(
        kept,
        min(most, screen()),
        initial_indent=first or indent,
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
    return "\n".join(
        line
        for head, text in facts
        for line in wrapped(text, width, " " * HEAD_WIDTH, f"{units.visible(head):<{HEAD_WIDTH}}")
    )


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
    """In a page; nothing if there is none, or no matplotlib, unless a script draws it."""
    data = getattr(drawn, "data", None)
    return (
        render.drawing("steps", data) if data else render.picture(pictures.svg(drawn), description)
    )


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

"""The page of a comparison: what compare says, in its words, with the values of all runs and the
durations of their calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..base import units
from ..compare import sentences
from ..compare.notes import value_text
from ..compare.refusals import binding, layout, one_of
from ..compare.comparison import Comparison, Pair
from ..display import page
from ..display.tables import Column
from ..plots import changes
from .compare import figure_columns, known_figures, row_columns, run_columns

MOST_ROWS = 12
MOST_VALUE = 400
SIDE_COLUMNS = (
    Column("side", lambda side: side.name, False),
    Column("runs", lambda side: units.count(len(side.runs))),
    Column("failed", lambda side: units.count(side.failed)),
    Column("library", sentences.library, False),
    Column("placement", lambda side: one_of({layout(run) for run in side.runs}), False),
    Column(
        "cores that a rank may use", lambda side: one_of({binding(run) for run in side.runs}), False
    ),
    Column(
        "hosts", lambda side: units.shortened(
            ", ".join(sorted({row.host or "unknown" for run in side.runs for row in run.ranks})),
            MOST_VALUE,
        ), False,
    ),
)


def title(answers: Comparison) -> str:
    return (
        f"{' and '.join(pair.verdict.side for pair in answers.tested)} v. {answers.sides[0].name}"
    )


def parts(answers: Comparison) -> list[str]:
    sections = opening, measures_section, rows_section, differences_section, runs_section
    return [section(answers) for section in sections]


def opening(answers: Comparison) -> str:
    """Without what the page shows in other places than the text."""
    pairs = answers.tested
    (_, program), *sides = sentences.sides_facts(answers)
    elsewhere = {"Verdict", "Also different", *["Compared"] * (len(pairs) == 1)}
    facts = [*sentences.refusal_facts(answers), *sides]
    for pair in pairs:
        facts.append(("For a verdict", sentences.way_text(answers, pair)))
        own = sentences.pair_facts(answers, pair, sentences.name_of(pair))
        facts += [fact for fact in own if fact[0] not in elsewhere]
    notes = f"{len(answers.notes)}, at the end of this page" if answers.notes else ""
    headline, findings = f"Verdict: {sentences.finding_text(pairs[0])}", []
    if len(pairs) > 1:
        headline = f"{len(pairs)} verdicts against {answers.sides[0].name}"
        findings = [(pair.verdict.side, sentences.finding_text(pair)) for pair in pairs]
    return page.header(
        headline, [f"{title(answers)}: {program}"], list(cards(answers)),
        [*findings, *facts, ("Notes", notes)],
    )


def cards(answers: Comparison) -> Iterator[tuple[str, str]]:
    for row in [pair.verdict for pair in answers.tested if pair.verdict.change is not None][:3]:
        interval = (
            f"{100 * row.level:.3g} % interval {sentences.interval_text(row.low, row.high)}"
            if row.low is not None else "no interval"
        )
        is_sure = row.verdict in ("less", "more", "same", "unknown")
        name = f"{sentences.NAMES[row.metric][1]} of {row.side} against {row.reference}, {interval}"
        yield units.change(row.change), name + ("" if is_sure else ": an estimate, no verdict")
    runs = [f"{len(side.runs)} of {side.name}" for side in answers.sides]
    yield " + ".join(str(len(side.runs)) for side in answers.sides), f"runs: {', '.join(runs)}"


def tables(
    answers: Comparison, columns: Callable[[Pair], list[Column]],
    rows: Callable[[Pair], Sequence[object]],
) -> Iterator[str]:
    """One for each pair, under its name where there are several."""
    for pair in answers.tested:
        *known, last = columns(pair)
        if len(answers.tested) > 1:
            yield page.sentence_of(sentences.name_of(pair))
        yield page.table([*known, last._replace(head="remark")], rows(pair))


def measures_section(answers: Comparison) -> str:
    rows = [row for pair in answers.tested for row in known_figures(pair)]
    names = dict.fromkeys(sentences.figure_name(row) for row in known_figures(answers.tested[0]))
    return page.section(
        "Measures",
        "Left: a mark for each run, side by side, on a logarithmic scale from the least value to "
        f"the most. Right: the change against {answers.sides[0].name} with its interval, on a "
        "scale that draws large changes closer together. A filled mark is a difference beyond "
        "chance, a hollow one is none or has no verdict; changes within the grey band do not "
        "matter. The mouse names the mark it is on, the arrow keys those of a drawing that has "
        "the focus.",
        *tables(answers, figure_columns, known_figures),
        changes.drawings(answers, {
            name: [row for row in rows if sentences.figure_name(row) == name] for name in names
        }),
    )


def change_columns(pair: Pair) -> list[Column]:
    """Columns of compare; the communicator only where there are several, since the drawings name
    it."""
    *known, last = row_columns(pair)
    is_one = len({row.communicator for row in pair.rows if row.communicator}) < 2
    return [
        *(column for column in known if not (is_one and column.head == "on")),
        Column(
            "per rank",
            lambda row: f"{'-' if row.change_ns < 0 else '+'}{units.duration(abs(row.change_ns))}",
        ),
        last,
    ]


def rows_section(answers: Comparison) -> str:
    """The rows of all pairs are the same."""
    pairs = answers.tested
    by_row = sorted(
        zip(*(pair.rows for pair in pairs)), key=lambda own: -max(abs(row.change_ns) for row in own)
    )
    drawn = {sentences.row_text(own[0]): own for own in by_row[:MOST_ROWS]}
    return page.section(
        "Calls and sizes",
        "Calls by communicator and size, those with the largest change first: per rank is by how "
        "much all calls of a row take longer or shorter on a rank. Rows below 1 % of the time are "
        "added up as other, unless --all-rows.",
        *tables(
            answers, change_columns,
            lambda pair: sorted(pair.rows, key=lambda row: -abs(row.change_ns)),
        ),
        changes.drawings(answers, drawn),
    ) if drawn else ""


def differences_section(answers: Comparison) -> str:
    none = "no setting or software that is known differs."
    return page.section(
        "What differs, and notes",
        "What the sides ran on, and settings and software in which all runs of one side "
        "differ from all of the other.",
        page.table(SIDE_COLUMNS, answers.sides),
        *(
            page.table(difference_columns(pair), pair.differences)
            or page.sentence_of(f"{sentences.name_of(pair)}: {none}")
            for pair in answers.tested
        ),
        page.facts_list(("Note", note) for note in answers.notes),
    )


def difference_columns(pair: Pair) -> list[Column]:
    return [
        Column("setting", lambda row: row.name, False),
        Column(
            pair.verdict.reference, lambda row: value_text(row.first, MOST_VALUE), False
        ),
        Column(pair.verdict.side, lambda row: value_text(row.second, MOST_VALUE), False),
    ]


def runs_section(answers: Comparison) -> str:
    known = [
        column for column in run_columns(answers)
        if any(column.show(row) != units.NO_VALUE for row in answers.runs)
    ]
    return page.folded_section(
        "The runs", "Each run as it entered the comparison.", page.table(known, answers.runs)
    )

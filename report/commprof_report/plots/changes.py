"""Figures and rows of a comparison in the page: the value of each run as a mark, side by side, and
the interval of the change.

The scale of values is logarithmic and each measure's own; that of changes is one for all measures
of a list. Differences that do not matter take the middle of it, and larger ones are drawn closer
together the larger they are (the inverse hyperbolic sine of the logarithm).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import asinh, log

from ..base import units
from ..compare.comparison import Comparison, change_text
from ..compare.judge import Compared
from ..compare.sides import Side
from ..display import page

WIDTH, NAMED, BEGIN, END, CHANGE_BEGIN, CHANGE_END = 760, 112, 136, 420, 466, 744
TOP, HEIGHT, FOOT = 26, 20, 18
# changes, from none outwards
TICKS = (
    0,
    0.01,
    -0.01,
    0.02,
    -0.02,
    0.05,
    -0.05,
    0.1,
    -0.1,
    0.2,
    -0.2,
    0.5,
    -0.5,
    1,
    4,
    -0.8,
    9,
    -0.9,
    99,
    -0.99,
    999,
    -0.999,
)
Place = Callable[[float], float]  # of a change


def drawings(answers: Comparison, measures: Mapping[str, Sequence[Compared]]) -> str:
    """An SVG for each measure, one below the other. measures: a row for each side but the first, by
    the measure's name."""
    place = _scale_of_changes(measures, answers.rules.min_effect)
    drawn = [_drawing(answers, *measure, place) for measure in measures.items()]
    return page.scrolled("".join(drawn))


def _scale_of_changes(measures: Mapping[str, Sequence[Compared]], min_effect: float) -> Place:
    def bent(change: float) -> float:
        return asinh(log(1 + change) / log(1 + min_effect))

    known = [
        value
        for rows in measures.values()
        for row in rows
        for value in (row.change, row.low, row.high)
        if value is not None
    ]
    farthest = max([2 * bent(min_effect), *(abs(bent(value)) for value in known)])
    middle, half = (CHANGE_BEGIN + CHANGE_END) / 2, (CHANGE_END - CHANGE_BEGIN) / 2
    return lambda change: middle + half * bent(change) / farthest


def _drawing(answers: Comparison, name: str, rows: Sequence[Compared], place: Place) -> str:
    samples = {rows[0].reference: rows[0].samples[0], **{row.side: row.samples[1] for row in rows}}
    changes = {row.side: row for row in rows if row.change is not None}
    known = sorted(value for own in samples.values() for value in own if value is not None)
    bottom = TOP + HEIGHT * len(samples)
    said = "; ".join(map(change_text, changes.values()))
    parts = [page.label(0, 14, units.shortened(name, 88), class_="name")]
    if len(changes) == 1:
        parts.append(page.label(CHANGE_END, 14, said, text_anchor="end", class_="name"))
    if changes:
        parts += _scale(place, answers.rules.min_effect, bottom)
    sides = [each for each in enumerate(answers.sides) if each[1].name in samples]
    for line, (style, side) in enumerate(sides):
        y = TOP + HEIGHT * (line + 0.5)
        parts += _values(side, style, samples[side.name], known, y)
        if row := changes.get(side.name):
            is_found = not answers.refused and row.difference is not None
            parts += _change(row, style, is_found, place, y)
    ends = dict(zip(map(units.duration, known[:1] + known[-1:]), ((BEGIN, "start"), (END, "end"))))
    parts += [
        page.label(x, bottom + 13, text, text_anchor=anchor, class_="tick")
        for text, (x, anchor) in ends.items()
    ]
    described = f"{name}: {said}" if said else name
    return page.element(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDTH} {bottom + FOOT}",
        class_="measure",
        role="img",
        aria_label=described,
    )


def _values(
    side: Side, style: int, values: Sequence[float | None], known: Sequence[float], y: float
) -> list[str]:
    """known: the values of all sides, in order."""
    blocks = [f"block {block}, " for block in side.blocks or ()] or [""] * len(side.runs)
    return [
        page.label(NAMED, y + 4, units.shortened(side.name, 15), text_anchor="end"),
        page.rule(BEGIN, y, END, y, "grid"),
        page.mark(style, NAMED + 11, y, "filled"),
        *(
            page.mark(
                style,
                _between(value, known[0], known[-1]),
                y,
                "run",
                f"{side.name}: {units.duration(value)} ({block}{run.path})",
            )
            for value, block, run in zip(values, blocks, side.runs)
            if value is not None
        ),
    ]


def _between(value: float, least: float, most: float) -> float:
    if least == most:
        return (BEGIN + END) / 2
    share = (
        log(value / least) / log(most / least) if least > 0 else (value - least) / (most - least)
    )
    return BEGIN + 6 + share * (END - BEGIN - 12)


def _scale(place: Place, min_effect: float, bottom: float) -> list[str]:
    """The band of changes that do not matter, and as many ticks as can be read."""
    low, high = place(1 / (1 + min_effect) - 1), place(min_effect)
    parts = [
        page.element("rect", x=low, y=TOP, width=high - low, height=bottom - TOP, class_="same")
    ]
    chosen: list[float] = []
    for tick in TICKS:
        x = place(tick)
        near = [other for other in chosen if abs(x - other) < 46]  # of a label
        if CHANGE_BEGIN <= x <= CHANGE_END and not near:
            chosen.append(x)
            parts += [
                page.rule(x, TOP, x, bottom, "grid" if tick else "zero"),
                page.label(x, bottom + 13, _tick_text(tick), text_anchor="middle", class_="tick"),
            ]
    return parts


def _tick_text(change: float) -> str:
    return "same" if not change else f"{100 * change:+.3g} %" if change < 1 else f"x{1 + change:g}"


def _change(row: Compared, style: int, is_found: bool, place: Place, y: float) -> list[str]:
    mark = page.mark(
        style, place(row.change), y, "filled" if is_found else "hollow", change_text(row)
    )
    if row.low is None or row.high is None:
        return [mark]
    kind = f"interval side-{style % page.STYLES}"
    return [page.rule(place(row.low), y, place(row.high), y, kind), mark]

"""The tables of a comparison."""

from __future__ import annotations

from ..base import units
from ..base.field import Field, shown
from ..compare.columns import RUN, Compared, SizeRow, VerdictRow
from ..compare.results import Comparison, Pair
from ..compare.sentences import call_text, figure_name, interval_text, remark
from ..display import tables
from ..display.tables import Column

def comparison_columns(verdict: VerdictRow) -> list[Column]:
    return [
        Column(verdict.reference, lambda row: units.duration(row.first_ns)),
        Column(verdict.side, lambda row: units.duration(row.second_ns)),
        Column("change", lambda row: "~" if row.outcome == "unknown" else units.change(row.change)),
        Column(
            f"{100 * verdict.level:.3g} % interval", lambda row: interval_text(row.low, row.high)
        ),
        Column("", lambda row: remark(row, verdict.min_effect) or " ", False),
    ]


def figure_columns(pair: Pair) -> list[Column]:
    return [Column("Per rank (* verdict)", figure_name, False), *comparison_columns(pair.verdict)]


def known_figures(pair: Pair) -> list[Compared]:
    return [row for row in pair.figures if row.first_ns is not None or row.second_ns is not None]


def figure_table(pair: Pair) -> str:
    return tables.text_table(figure_columns(pair), known_figures(pair))


def row_table(pair: Pair) -> str:
    return tables.text_table(row_columns(pair), pair.rows)


def row_columns(pair: Pair) -> list[Column]:
    is_mixed = len({row.metric for row in pair.rows}) > 1
    part = Column("of change", lambda row: units.share(row.part_of_change))
    *values, last = comparison_columns(pair.verdict)
    return [
        Column("Per call", call_text, False),
        Column("on", lambda row: units.shortened(row.communicator, 32), False),
        Column("bytes", lambda row: units.size(row.bytes)),
        Column("calls", lambda row: units.count(row.count)),
        Column("of time", lambda row: units.share(row.share)),
        *([Column("metric", lambda row: row.metric, False)] if is_mixed else []),
        *values,
        *([part] if any(row.part_of_change is not None for row in pair.rows) else []),
        last,
    ]


def size_columns(rows: list[SizeRow]) -> list[Column]:
    names = rows[0].sides if rows else ()

    def of_side(place: int) -> Column:
        name = names[place]
        return Column(
            name,
            lambda row: units.duration(row.values_ns[place]) + (" *" if row.best == name else ""),
        )

    return [
        Column("call", call_text, False),
        Column("on", lambda row: units.shortened(row.communicator, 32), False),
        Column("bytes", lambda row: units.size(row.bytes)),
        Column("calls", lambda row: units.count(row.count)),
        Column("metric", lambda row: row.metric, False),
        *map(of_side, range(len(names))),
    ]


def run_columns(answers: Comparison) -> list[Field]:
    columns = shown(RUN)
    return columns if any(row.memory_ns is not None for row in answers.runs) else columns[:-2]

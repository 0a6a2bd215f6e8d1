"""The HTML page: one file that needs nothing else. All text from files is escaped here."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Template

from ..base.units import NO_VALUE, visible
from .tables import Column

TEMPLATE = Path(__file__).resolve().parent / "page.html"


def text(value: object) -> str:
    return escape(visible(str(value)).replace(" us", " µs"))


def page(title: str, parts: Iterable[str]) -> str:
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(title=text(title), body="\n".join(parts))


def header(title: str, lines: Sequence[str], cards: Sequence[tuple[str, str]], facts: Sequence[tuple[str, str]]) -> str:
    """The top of the page: the program, the most important figures, and the summary in words."""
    parts = [f"<h1>{text(title)}</h1>"]
    parts += [f'<p class="soft">{text(line)}</p>' for line in lines]
    tiles = "".join(f'<div class="card"><b>{text(value).replace("_", "_<wbr>")}</b><span>{text(name)}</span></div>' for value, name in cards)
    parts.append(f'<div class="cards">{tiles}</div>')
    parts.append(facts_list(facts))
    return f"<header>{''.join(parts)}</header>"


def facts_list(facts: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{text(head)}</dt><dd>{text(fact)}</dd>" for head, fact in facts) + "</dl>"


def warnings(lines: Sequence[str]) -> str:
    if not lines:
        return ""
    return f'<section class="warn"><ul>{"".join(f"<li>{text(line)}</li>" for line in lines)}</ul></section>'


def section(title: str, sentence: str, *parts: str) -> str:
    return f'<section><h2>{text(title)}</h2><p class="soft">{text(sentence)}</p>{"".join(parts)}</section>'


def folded_section(title: str, sentence: str, *parts: str) -> str:
    inside = f'<p class="soft">{text(sentence)}</p>{"".join(parts)}'
    return f"<section><details><summary>{text(title)}</summary>{inside}</details></section>"


def picture(svg: bytes | None, description: str) -> str:
    """As an image, so that nothing inside it can reach the page."""
    if svg is None:
        return ""
    data = base64.b64encode(svg).decode("ascii")
    return f'<img alt="{text(description)}" src="data:image/svg+xml;base64,{data}">'


def table(columns: Sequence[Column], rows: Sequence[object]) -> str:
    head = "".join(f"<th{_class(column)}>{text(column.head)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(_cell(column, row) for column in columns)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(column: Column, row: object) -> str:
    shown = column.show(row)
    return f"<td{_class(column, shown)}>{text(shown or NO_VALUE)}</td>"


def _class(column: Column, shown: str = "") -> str:
    if column.is_number:
        return ' class="number"'
    return ' class="wide"' if len(shown) > 40 else ""

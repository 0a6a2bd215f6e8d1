"""Answers as text, JSON or CSV, and as HTML.

Rows are a table for people, or JSON or CSV for scripts.

The HTML page is one file that needs nothing else, with the drawings in it. All text from files is
escaped here. Its content security policy allows the page's own style and scripts, by their hashes,
and pictures inside it: nothing is requested from anywhere, and no text from a file can run.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Sequence
from enum import Enum
from html import escape
from pathlib import Path
from string import Template
from typing import TextIO

from ..base import Field, Unknown, option, units
from .pictures import variables


ROOM = Path(__file__).resolve().parent
MICROSECONDS = re.compile(r"(?<=\d) us\b")
SECTION = re.compile(r'<section id="([^"]+)"><(?:h2|details><summary)>(.*?)</')
TIMELINE = """
<p><label>Show <select id="timeline-step"></select></label>
<label><input type="checkbox" id="timeline-path" checked> critical path</label>
<label><input type="checkbox" id="timeline-messages" checked> messages</label>
<label><input type="checkbox" id="timeline-gpus" checked> GPUs</label></p>
<p class="said" id="timeline-said" aria-live="polite"></p>
<canvas id="timeline" tabindex="0" role="img" \
aria-label="ranks and time: what each rank did in the run"></canvas>
<ul class="legend" id="timeline-legend"></ul>
<p class="soft" id="timeline-note"></p>
<noscript><p>The timeline needs JavaScript.</p></noscript>
"""
STEPS = """
<p class="said" id="steps-said" aria-live="polite"></p>
<svg id="steps-picture" class="steps" tabindex="0" role="img" \
aria-label="time of the steps, mean over ranks"></svg>
<ul class="legend" id="steps-legend"></ul>
<noscript><p>The picture of the steps needs JavaScript.</p></noscript>
"""
# drawn by a script of this name from data of this name
DRAWINGS = {"timeline": TIMELINE, "steps": STEPS}


def text(value: object) -> str:
    return escape(MICROSECONDS.sub(" µs", units.visible(str(value))))


def page(title: str, parts: Iterable[str]) -> str:
    body = "\n".join(parts)
    drawn = [name for name in DRAWINGS if f'id="{name}-data"' in body]
    names = ["tables", *(["drawings"] if drawn else []), *drawn]
    return _page(title, body, (f"{name}.js" for name in names), "default-src 'none'")


def live_page(title: str, now: str, every_s: float) -> str:
    """Asks its server for `now`, and that alone, as often."""
    body = (
        f'<div id="now" data-every="{every_s:g}">{now}</div><p id="connection" role="status"></p>'
    )
    return _page(title, body, ["live.js"], "default-src 'none'; connect-src 'self'")


def _page(title: str, body: str, script_names: Iterable[str], policy: str) -> str:
    template = (ROOM / "page.html").read_text(encoding="utf-8")
    scripts = [(ROOM / name).read_text(encoding="utf-8") for name in script_names]
    template = template.replace("/*colours*/", variables(body))
    (style,) = re.findall("<style>(.*?)</style>", template, re.S)
    return Template(template).substitute(
        title=text(title),
        policy=f"{policy}; img-src data:; style-src {_hashes([style])}; script-src "
        f"{_hashes(scripts)}; base-uri 'none'; form-action 'none'",
        contents="".join(f'<a href="#{name}">{head}</a>' for name, head in SECTION.findall(body)),
        body=body,
        scripts="".join(f"<script>{script}</script>" for script in scripts),
    )


def _hashes(texts: Iterable[str]) -> str:
    """Hashes of inline texts, as a content security policy lists them."""
    return " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'"
        for one in texts
    )


def header(
    title: str,
    lines: Sequence[str],
    cards: Sequence[tuple[str, str]],
    facts: Sequence[tuple[str, str]],
    answers: Sequence[tuple[str, str]] = (),
) -> str:
    """The top of the page: the program, the most important figures, the answers to the first
    questions, and the summary in words."""
    tiles = "".join(
        f'<div class="card"><b>{text(value).replace("_", "_<wbr>")}</b>'
        f"<span>{text(name)}</span></div>"
        for value, name in cards
    )
    soft = "".join(map(sentence_of, lines))
    shown = f'<div class="cards">{tiles}</div>' if tiles else ""
    known = facts_list(answers, "answers") + facts_list(facts)
    return f"<header><h1>{text(title)}</h1>{soft}{shown}{known}</header>"


def facts_list(facts: Iterable[tuple[str, str]], kind: str = "") -> str:
    """A list of the facts that have a text."""
    items = "".join(f"<dt>{text(head)}</dt><dd>{text(fact)}</dd>" for head, fact in facts if fact)
    kind = f' class="{kind}"' if kind else ""
    return f"<dl{kind}>{items}</dl>" if items else ""


def folded(head: str, lines: Sequence[str], count: str = " ({})") -> str:
    summary = f"{text(head)}{count.format(len(lines))}"
    return f"<details><summary>{summary}</summary>{bullets(lines)}</details>"


def bullets(lines: Iterable[str]) -> str:
    return f'<ul class="soft">{"".join(f"<li>{text(line)}</li>" for line in lines)}</ul>'


def warnings(lines: Sequence[str]) -> str:
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f'<section class="warn"><ul>{items}</ul></section>' if items else ""


def section(title: str, sentence: str, *parts: str, is_folded: bool = False) -> str:
    anchor = re.sub("[^a-z0-9]+", "-", title.lower()).strip("-")
    inside = "".join((sentence_of(sentence) if sentence else "", *parts))
    shown = (
        f"<details><summary>{text(title)}</summary>{inside}</details>"
        if is_folded
        else f"<h2>{text(title)}</h2>{inside}"
    )
    return f'<section id="{anchor}">{shown}</section>'


def sentence_of(words: str) -> str:
    return f'<p class="soft">{text(words)}</p>'


def advised(head: str, evidence: str, suggestion: str) -> str:
    sentences = sentence_of(evidence) + sentence_of(f"\N{RIGHTWARDS ARROW} {suggestion}")
    return f"<p><b>{text(head)}</b></p>{sentences}"


def drawing(name: str, data: dict[str, object]) -> str:
    """A drawing of the format that plots/timeline.py or plots/bars.py gives, for the script of this
    name."""
    packed = json.dumps(data, separators=(",", ":"))
    packed = MICROSECONDS.sub(" µs", packed).replace("<", "\\u003c")
    return f'{DRAWINGS[name]}<script type="application/json" id="{name}-data">{packed}</script>'


def picture(svg: bytes | None, description: str) -> str:
    """As an image, so that nothing inside it can reach the page."""
    data = base64.b64encode(svg or b"").decode("ascii")
    drawn = f'<img alt="{text(description)}" src="data:image/svg+xml;base64,{data}">'
    return f'<div class="scroll" tabindex="0">{drawn}</div>' if svg else ""


def table(
    columns: Sequence[Field],
    rows: Sequence[object],
    most: int = 1 << 20,
    which: str = "are shown",
) -> str:
    """The first rows; which: what is said of them where there are more."""
    if not rows:
        return ""
    head = "".join(f"<th{_class(column)}>{text(column.head)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(_cell_html(column, row) for column in columns)}</tr>" for row in rows[:most]
    )
    left = f"The first {most:,} of {len(rows):,} rows {which}." if len(rows) > most else ""
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{left and sentence_of(left)}"
    )


def _cell_html(column: Field, row: object) -> str:
    shown = column.show(row)
    return f"<td{_class(column, shown)}>{text(shown or units.NO_VALUE)}</td>"


def _class(column: Field, shown: str = "") -> str:
    if column.is_number:
        return ' class="number"'
    return ' class="wide"' if len(shown) > 32 else ""


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


def _line(columns: Sequence[Field], cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (
        cell.rjust(width) if column.is_number else cell.ljust(width)
        for column, cell, width in zip(columns, cells, widths)
    )
    return "  ".join(padded).rstrip()

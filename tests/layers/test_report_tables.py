"""No TEMP table or view is read outside the room that makes it, but those of the run, which
docs/ARCHITECTURE.md lists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import layers

PACKAGE = layers.REPOSITORY / "report/commprof_report"
RUN = "run"
MADE = re.compile(r"\bCREATE TEMP (?:TABLE|VIEW) (?:IF NOT EXISTS )?(\w+)")
READ = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|IN) (?:temp\.)?(\w+)")
WITHIN = re.compile(r"(?:\bWITH(?: RECURSIVE)?|,) (\w+)(?: \([^)]*\))? AS (?:NOT MATERIALIZED )?\(")

Tables = dict[str, set[str]]  # by file


def _sql_of(file: Path) -> str:
    """The SQL in a file, without its comments; of a module all its text between quotes."""
    text = file.read_text()
    if file.suffix == ".py":
        words = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
        text = "\n;\n".join(word for word in words if isinstance(word, str))
    return " ".join(re.sub(r"--.*", "", text).split())


def _texts() -> dict[str, str]:
    files = [*PACKAGE.glob("*/*.py"), *PACKAGE.glob("*/*.sql")]
    return {str(file.relative_to(PACKAGE)): _sql_of(file) for file in sorted(files)}


def _made(texts: Mapping[str, str]) -> Tables:
    return {file: set(MADE.findall(text)) for file, text in texts.items()}


def _read(texts: Mapping[str, str]) -> Tables:
    """Names of common table expressions hide those of tables."""
    return {
        file: set(READ.findall(text)) - set(WITHIN.findall(text)) for file, text in texts.items()
    }


def _room(file: str) -> str:
    return file.partition("/")[0]


def _trespasses(texts: Mapping[str, str]) -> list[str]:
    makers = {table: _room(file) for file, tables in _made(texts).items() for table in tables}
    return [
        f"{file} reads {table} of {makers[table]}"
        for file, tables in _read(texts).items()
        for table in sorted(tables)
        if makers.get(table, RUN) not in (RUN, _room(file))
    ]


def _listed(page: str) -> list[str]:
    section = page.partition("## Tables of the run")[2].partition("\n## ")[0]
    rows = re.findall(r"^- (`\w.*?):", section, re.M)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def _of_run(texts: Mapping[str, str]) -> Iterable[str]:
    return (
        table for file, tables in _made(texts).items() if _room(file) == RUN for table in tables
    )


def test_rooms_read_their_own_tables_and_the_run_s() -> None:
    assert _trespasses(_texts()) == []


def test_each_table_of_the_run_is_listed() -> None:
    assert sorted(_listed(layers.PAGE.read_text())) == sorted(_of_run(_texts()))


def test_a_table_of_another_room_is_found_in_sql_and_in_a_module() -> None:
    texts = {
        "late/own.sql": "CREATE TEMP TABLE IF NOT EXISTS own AS SELECT 1;",
        "late/same_room.sql": "SELECT * FROM own;",
        "steps/other.sql": "SELECT * FROM call JOIN temp.own USING (call);",
        "calls/hidden.sql": "WITH own AS (SELECT 1) SELECT * FROM own;",
        "steps/module.py": "DELETE FROM own",
    }
    assert _trespasses(texts) == [
        "steps/other.sql reads own of late",
        "steps/module.py reads own of late",
    ]

"""Tables as people see them: each head names one column."""

from __future__ import annotations

import csv
import importlib
import inspect
import io
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import planted
import pytest
from commprof_report import commands
from commprof_report.base import Field
from commprof_report.display import render

MODULES = {
    path.stem: importlib.import_module(f"{commands.__name__}.{path.stem}")
    for path in Path(commands.__file__).parent.glob("*.py")
}


def tables_of(module: ModuleType) -> Iterator[tuple[str, list[Field]]]:
    """The module's tuples and lists of columns, and those in its rows and
    dictionaries of tables."""
    todo = [(name, value) for name, value in vars(module).items() if not inspect.ismodule(value)]
    while todo:
        name, value = todo.pop()
        if isinstance(value, dict):
            todo += [(f"{name}[{key!r}]", part) for key, part in value.items()]
        elif (
            isinstance(value, (tuple, list))
            and value
            and all(isinstance(part, Field) for part in value)
        ):
            yield name, [part for part in value if part.head]
        elif isinstance(value, (tuple, list)) and not isinstance(value, Field):
            todo += [(name, part) for part in value]


@pytest.mark.parametrize("command", MODULES)
def test_no_table_of_a_command_has_a_head_twice(command):
    for name, columns in tables_of(MODULES[command]):
        heads = [column.head for column in columns]
        assert len(set(heads)) == len(heads), f"{command}: {name} has heads twice: {heads}"


def test_the_tables_of_commands_are_found():
    assert {"RANK", "HOST", "CALL"} <= {name for name, _ in tables_of(MODULES["late"])}
    assert sum(len(list(tables_of(module))) for module in MODULES.values()) > 20


def read_back(*values: object) -> list[str]:
    file = io.StringIO(newline="")
    render.write_csv(file, ["=head", *map(str, range(1, len(values)))], [values])
    return next(csv.reader(file.getvalue().splitlines()[1:]))


FORMULAS = (
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    '=HYPERLINK("http://x")',
    "-1,0",
    "'=1",
    "\uff1d1",
    "-0x10",
    "-inf",
)


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_in_csv_is_a_formula(text):
    assert read_back("x", text) == ["x", f"'{text}"]


def test_numbers_and_other_texts_stay_as_they_are_in_csv():
    values = (
        -1,
        -1.5,
        None,
        "-",
        "-1",
        "+2",
        "-1.5e-9",
        "a=1",
        "0-3",
        "MPI_Send",
        " x",
        "",
        "~",
        "a,=b",
    )
    assert read_back(*values) == [
        "-1",
        "-1.5",
        "",
        "-",
        "-1",
        "+2",
        "-1.5e-9",
        "a=1",
        "0-3",
        "MPI_Send",
        " x",
        "",
        "~",
        "a,=b",
    ]


TABLE = ["export", "--csv", "--table", "communicator"]


@pytest.mark.parametrize(
    "words", (["communicators", "--csv"], TABLE, ["export", "--csv", "--table", "named_cell"])
)
def test_names_from_programs_are_no_formulas_in_any_csv(report, tmp_path, words):
    ranks = planted.training_run()
    for rank in ranks:
        rank.communicators[-1].name = "=1+1"
    folder = planted.write_databases(tmp_path / "run", ranks)
    answer = report(*words, folder)
    assert answer.status == 0 and "'=1+1" in answer.out and ",=1+1" not in answer.out

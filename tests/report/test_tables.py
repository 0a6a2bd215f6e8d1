"""Tables as people see them: each head names one column."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType

import pytest
from commprof_report.commands import COMMANDS, html
from commprof_report.display.tables import Column

MODULES = {**COMMANDS, "html": html}


def tables_of(module: ModuleType) -> Iterator[tuple[str, list[Column]]]:
    """The module's tuples and lists of columns, and those in its rows and dictionaries of tables."""
    todo = [(name, value) for name, value in vars(module).items() if not inspect.ismodule(value)]
    while todo:
        name, value = todo.pop()
        if isinstance(value, dict):
            todo += [(f"{name}[{key!r}]", part) for key, part in value.items()]
        elif isinstance(value, (tuple, list)) and value and all(isinstance(part, Column) for part in value):
            yield name, list(value)
        elif isinstance(value, (tuple, list)) and not isinstance(value, Column):
            todo += [(name, part) for part in value]


@pytest.mark.parametrize("command", MODULES)
def test_no_table_of_a_command_has_a_head_twice(command):
    for name, columns in tables_of(MODULES[command]):
        heads = [column.head for column in columns]
        assert len(set(heads)) == len(heads), f"{command}: {name} has heads twice: {heads}"


def test_the_tables_of_commands_are_found():
    assert {"RANK_COLUMNS", "HOST_COLUMNS", "CALL_COLUMNS"} <= {name for name, _ in tables_of(COMMANDS["late"])}
    assert sum(len(list(tables_of(module))) for module in MODULES.values()) > 20

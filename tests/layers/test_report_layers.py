"""Every import of the reporter goes the way that the layer list of docs/ARCHITECTURE.md allows, and
no modules use each other in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import layers

TOP = "report/commprof_report/"
PACKAGE = layers.REPOSITORY / TOP


def _modules() -> dict[str, str]:
    """The text of each module in a room, by its unit: report/commprof_report/run/ledger. main.py,
    above all rooms, is in none."""
    files = sorted(PACKAGE.glob("*/**/*.py"))
    return {
        str(file.relative_to(layers.REPOSITORY).with_suffix("")): file.read_text() for file in files
    }


def _imported(unit: str, node: ast.ImportFrom) -> Iterator[str]:
    """Units that an import names: one for `from ..run.ledger import Ledger`, one for each word of
    `from . import common`; of `from ..run import Run` the room's own module, as Run is none."""
    folder = Path(unit).parents[node.level - 1]
    base = folder.joinpath(*(node.module or "").split("."))
    for name in node.names:
        is_module = (layers.REPOSITORY / base / f"{name.name}.py").exists()
        yield str(base / (name.name if is_module else "__init__"))
    yield str(base)


def python_arrows(text_of: dict[str, str]) -> list[layers.Arrow]:
    """From each module to those that it imports, also within functions."""
    arrows = []
    for unit, text in text_of.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.level:
                arrows += [(unit, used) for used in _imported(unit, node) if used in text_of]
    return arrows


def _faults(text_of: dict[str, str]) -> list[str]:
    return layers.faults(
        sorted(text_of), python_arrows(text_of), layers.read(layers.PAGE.read_text(), TOP)
    )


def test_imports_follow_the_layer_list() -> None:
    assert _faults(_modules()) == []


def test_modules_of_the_package_are_imported_relatively() -> None:
    """The arrows are read from relative imports alone."""
    assert [
        unit
        for unit, text in _modules().items()
        if "import commprof_report" in text or "from commprof_report" in text
    ] == []


def _with_import(module: str, line: str) -> list[str]:
    text_of = _modules()
    text_of[TOP + module] += f"\ndef late_import():\n    {line}\n"
    return _faults(text_of)


def test_an_import_of_an_upper_room_is_found() -> None:
    said = [
        f"{TOP}summary/run_summary uses {TOP}fleet/store: {TOP}summary/ may not use {TOP}fleet/"
    ]
    assert _with_import("summary/run_summary", "from ..fleet.store import late") == said
    assert _with_import("summary/run_summary", "from ..fleet import store") == said
    said = [f"{TOP}run/unseen uses {TOP}steps/__init__: {TOP}run/ may not use {TOP}steps/"]
    assert _with_import("run/unseen", "from ..steps import Steps") == said


def test_a_circle_of_modules_within_a_room_is_found() -> None:
    circle = f"a circle: {TOP}late/depends, {TOP}late/reading"
    assert _with_import("late/depends", "from .reading import samples") == [circle]

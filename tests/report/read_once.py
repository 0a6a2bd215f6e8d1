"""Reads a run once for tests, though many commands ask for it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from commprof_report.commands import common, compare, steps
from commprof_report.compare.figures import Figures
from commprof_report.experiment.plan import folder_of
from commprof_report.run import selection


@contextmanager
def read_once() -> Iterator[None]:
    """Inside, commands that read the same of a run with the same filters share it and its analyses,
    as the sections of the page do; the first of them says what there is to say about its files. All
    that is read with samples is read with histograms, too."""
    read: dict[str, common.Analysed] = {}

    def ask(view: common.View, arguments: argparse.Namespace) -> None:
        opened = view.opened
        if opened == common.SAMPLES or opened == steps.opened and not arguments.region:
            opened = common.ALL
        filters = [getattr(arguments, name, None) for name in (*selection.FILTERS, "bins", "plot")]
        key = repr((opened, [*map(state_of, arguments.run)], filters))
        known = read[key] = read.get(key) or common.Analysed(opened(arguments))
        if answer := view.answer(known, arguments):
            common.show(arguments, known.run, answer)

    with mock.patch.object(common.View, "__call__", ask):
        yield


def state_of(run: Path) -> list[tuple]:
    """Changes with the files of a run."""
    files = sorted(run.iterdir()) if run.is_dir() else [run]
    found = [(str(file), os.stat(file)) for file in files if file.exists()]
    return [(name, about.st_ino, about.st_size, about.st_mtime_ns) for name, about in found]


@contextmanager
def figures_once() -> Iterator[None]:
    """Inside, `compare` reads one of several files with the same content, of which there is nothing
    to say, in this process."""
    read: dict[tuple, Figures] = {}
    figures = compare.figures

    def shared(path: Path, skipped: float) -> tuple[Figures, list[str]]:
        if not path.is_file():
            return figures(path, skipped)
        beside = [(file.name, file.read_bytes()) for file in sorted(folder_of(path).glob("*"))]
        key = skipped, path.read_bytes(), *beside
        if key in read:
            return read[key]._replace(path=path), []
        found, notes = figures(path, skipped)
        if not notes:
            read[key] = found
        return found, notes

    with (
        mock.patch.object(compare, "figures", shared),
        mock.patch.object(compare, "side_by_side", map),
    ):
        yield

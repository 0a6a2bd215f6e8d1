"""What commands share: the run they read, the filters, the form of output."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .. import pictures, selection, tables, units
from ..run import Run, run_open


def add_run_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="a run folder, a merged database, or one rank's file")


def add_arguments(parser: argparse.ArgumentParser, draws: bool = False) -> None:
    """RUN, the filters, --json and --csv, and --plot where there is something to draw."""
    add_run_argument(parser)
    selection.add_arguments(parser)
    tables.add_arguments(parser)
    if draws:
        parser.add_argument(
            "--plot", type=pictures.picture_path, metavar="FILE", help="draw into FILE: .png, .svg or .pdf"
        )


def open_selected(arguments: argparse.Namespace, with_histograms: bool = True, bins: str = "exact") -> Run:
    """The run with the filters applied; what there is to say about its files is said."""
    run = open_noted(arguments, with_histograms)
    selection.select(run, arguments, bins)
    return run


def open_noted(arguments: argparse.Namespace, with_histograms: bool = True) -> Run:
    run = run_open(arguments.run, with_histograms)
    for note in run.notes:
        print(f"hvprof-report: {note}", file=sys.stderr)
    return run


def print_line(text: str = "") -> None:
    """Text that may hold names from files."""
    print(units.visible(text))


def print_nothing_chosen() -> None:
    print("no call of this run fits the filters")

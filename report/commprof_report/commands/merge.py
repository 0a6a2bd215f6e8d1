"""The database holds the same tables with nothing left out unless asked, and every command takes it in
place of the run folder. It is written aside and then renamed, so it is complete or absent. Only a
database of commprof's is overwritten, and only if nobody has added tables, views or indexes to it.
Such additions in the run's own databases are ignored.
"""

from __future__ import annotations

import argparse
import sqlite3
from pathlib import Path

from ..base import units
from ..base.aside import renamed_whole
from ..base.errors import ReportError
from ..base.options import option
from ..run import anonymous
from ..run.alignment import align
from ..run.database import database_is_plain, database_write
from ..run.rank_files import file_scan
from ..run.views import views_create
from . import Command, common


def run(arguments: argparse.Namespace) -> None:
    run = common.open_noted(arguments, with_samples=True, most_samples=None)
    output_check(arguments.output)
    if arguments.anonymous:
        anonymous.anonymise(run)
    views_create(run.connection, align(run.connection))
    if arguments.anonymous:
        run.connection.execute("VACUUM")  # what was deleted is still in pages that are free
    try:
        with renamed_whole(arguments.output, run.mode) as aside:
            database_write(run.connection, aside)
    except sqlite3.Error as error:
        raise ReportError(arguments.output, f"cannot be written: {error}") from None
    (ranks,) = run.connection.execute("SELECT count(*) FROM rank").fetchone()
    common.print_line(f"{arguments.output}: {units.counted(ranks, 'rank')} of {run.world_size}")


def output_check(output: Path) -> None:
    """Only a database of ours is overwritten, and only if its owner has added nothing."""
    if output.exists() or output.is_symlink():
        try:
            is_ours = not file_scan(output).is_ledger
        except ReportError:
            is_ours = False
        if not is_ours:
            raise ReportError(
                output, "exists and is not one of commprof's databases; not overwritten"
            )
        if not database_is_plain(output):
            raise ReportError(
                output, "exists, and holds more than commprof wrote into it; not overwritten"
            )


COMMANDS = {"merge": Command(
    __doc__, (
        *common.run_options(nargs="+"),
        option("output", metavar="OUT.db", type=Path, help="the database to write"),
        option("--anonymous", action="store_true", help=anonymous.HELP),
    ), run,
    (
        ("One file to keep", "hvprof-report merge commprof-train.py-1234 train.db"),
        (
            "One file to send, without names of people, machines and files",
            "hvprof-report merge --anonymous commprof-train.py-1234 train.db",
        ),
    ),
    ("export",),
)}

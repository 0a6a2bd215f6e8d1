"""`fleet add STORE RUN...` adds runs to a store, a folder of Parquet files; `--from SPOOL` all
runs below a folder that are new and complete, or have been quiet for --quiet-s. Adding a run
again does nothing. Killed jobs are read from their ledgers. A job has some 20 kB there,
whatever its size: at most 60 rows of calls with histograms, its hosts and settings; no single
calls. The store is made by the first `add`; --hash-users and --keep say what it may hold of
people and machines.

The other questions are asked of all jobs in a store: `top`, whose jobs spend most in a call;
`programs`, which ones would gain most; `libraries`, versions under one program; `sizes`, how
long messages of each size take; `trend`, month by month; `hosts`, which come last in other
people's jobs, too; `changes`, calls of a program that take longer or shorter since a day, and
what has changed then; `job`, one job. `forget STORE USER` removes the jobs of a user; `load`
writes the tables into PostgreSQL; `html` writes a page of all questions. The questions are SQL
files that any engine reads (docs/FLEET.md); the Python package duckdb answers them here."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..base import EXECUTOR, ReportError, UsageError, option, units, written_whole
from ..display import render
from ..fleet.questions import QUESTIONS, answers, engine_open, fields, load, verdict
from ..fleet.store import NAMES, add as add_runs, folders_below, forget, store_create, store_open
from ..run import files_mode
from . import Command, common

MOST_PROBLEMS = 20
NO_JOB = "no job of the store answers this"
NOTHING = {"changes": "no call of a program has changed on a day, beyond chance"}


def run(arguments: argparse.Namespace) -> None:
    OTHERS.get(arguments.question, ask)(arguments)


def add(arguments: argparse.Namespace) -> None:
    folders = [Path(word) for word in arguments.runs]
    if arguments.spool:
        folders += folders_below(arguments.spool)
    elif not folders:
        raise UsageError("fleet add", "takes runs, or --from SPOOL")
    store = store_create(arguments.store, arguments.keep, arguments.hash_users)
    problems: list[ReportError] = []
    quiet_s = arguments.quiet_s if arguments.spool else 0
    added = add_runs(store, folders, arguments.cluster, quiet_s, problems)
    common.print_notes(map(str, problems[:MOST_PROBLEMS]))
    if len(problems) > MOST_PROBLEMS:
        common.print_notes([f"{len(problems) - MOST_PROBLEMS:,} more folders have problems"])
    print(
        f"{units.counted(added['added'], 'job')} added; {added['known']:,} known; "
        f"{added['not complete yet']:,} not complete yet"
    )


def forget_user(arguments: argparse.Namespace) -> None:
    for user in arguments.runs:
        jobs = forget(store_open(arguments.store), user)
        common.print_line(f"{units.counted(jobs, 'job')} of {user} removed")


def load_tables(arguments: argparse.Namespace) -> None:
    name, _, url = arguments.engine.partition("=")
    if name != "postgresql":
        raise UsageError("fleet load", "writes into PostgreSQL: --engine postgresql=URL")
    load(store_open(arguments.store), url)


def html(arguments: argparse.Namespace) -> None:
    """A section for each question, but that of a single job."""
    engine = engine_open(store_open(arguments.store), arguments.engine)
    parts = [render.header(f"Jobs in {arguments.store.resolve().name}", (), (), ())]
    for name, question in QUESTIONS.items():
        if name == "job":
            continue
        rows = answers(engine, name, {"call": arguments.call, "job": ""})
        said = verdict(rows) if name == "hosts" else [question.note.format(call=arguments.call)]
        shown = render.table(fields(name), rows[: arguments.top])
        more = [NOTHING.get(name, NO_JOB) + "."] if not rows else said
        parts.append(render.section(question.title, " ".join(more), shown))
    output = arguments.output or arguments.store / "report.html"
    with written_whole(output, files_mode([arguments.store])) as file:
        file.write(render.page(f"{arguments.store.resolve().name}: all jobs", parts))
    common.print_line(f"{output} written")


def ask(arguments: argparse.Namespace) -> None:
    if arguments.question == "job" and len(arguments.runs) != 1:
        raise UsageError("fleet job", "takes the id of a job, after the store")
    asked = {"call": arguments.call, "job": "".join(arguments.runs[:1])}
    rows = answers(
        engine_open(store_open(arguments.store), arguments.engine), arguments.question, asked
    )
    columns, note = fields(arguments.question), QUESTIONS[arguments.question].note
    parts = (
        *(verdict(rows) if arguments.question == "hosts" else ()),
        common.Rows(columns, rows, arguments.top, " (--top)"),
        *([note.format(call=arguments.call)] if note else []),
    )
    nothing = NOTHING.get(arguments.question, NO_JOB)
    common.show(
        arguments,
        None,
        common.Answer(rows, columns, lambda: [[*parts]], nothing=lambda: nothing),
    )


OTHERS = {"add": add, "forget": forget_user, "load": load_tables, "html": html}
COMMANDS = {
    "fleet": Command(
        __doc__,
        (
            option(
                "question",
                choices=(*OTHERS, *QUESTIONS),
                metavar="QUESTION",
                help=", ".join((*OTHERS, *QUESTIONS)),
            ),
            option("store", metavar="STORE", type=Path, help="the folder of the store"),
            option(
                "runs",
                metavar="RUN",
                nargs="*",
                help="of add: folders of runs; of job: its id; of forget: users",
            ),
            *render.ROWS,
            EXECUTOR,
            option(
                "--top",
                type=common.row_count,
                default=20,
                metavar="N",
                help="so many rows in text (default: 20)",
            ),
            option(
                "--call",
                default="MPI_Allreduce",
                metavar="NAME",
                help="of top, sizes and trend: this call; %% stands for any text (default: "
                "MPI_Allreduce)",
            ),
            option(
                "--engine",
                default="duckdb",
                metavar="ENGINE",
                help="what answers: duckdb (default), spark=MASTER, clickhouse (within this "
                "process), or postgresql=URL, after `load`",
            ),
            option(
                "--output",
                type=Path,
                metavar="FILE",
                help="of html: where to (default: STORE/report.html)",
            ),
            option(
                "--from",
                type=Path,
                dest="spool",
                metavar="SPOOL",
                group="add",
                help="all runs below this folder, each in one folder or several",
            ),
            option(
                "--quiet-s",
                type=float,
                default=3600,
                metavar="SECONDS",
                group="add",
                help="with --from, leave a run that lacks a database until none of its "
                "files has changed for so long: more than copy-s of the jobs (default: 3600)",
            ),
            option(
                "--cluster",
                default="main",
                metavar="NAME",
                group="add",
                help="where the jobs ran (default: main)",
            ),
            option(
                "--keep",
                nargs="+",
                choices=NAMES,
                metavar="NAME",
                group="add",
                help=f"of a new store: of {', '.join(NAMES)} only these (default: all)",
            ),
            option(
                "--hash-users",
                action="store_true",
                group="add",
                help="of a new store: users are salted hashes; the salt is in STORE/store.json",
            ),
        ),
        run,
        (
            (
                "All that is new in a spool, from cron",
                "hvprof-report fleet add STORE --from /scratch/commprof",
            ),
            ("Who spends most time in Allreduce", "hvprof-report fleet top STORE"),
            ("The sizes of a whole centre", "hvprof-report fleet sizes STORE --call MPI_%"),
        ),
        ("summary", "compare"),
    )
}

"""Without --output the tables go to standard output: JSON as one list of objects, each of which
names its table first; CSV one table at a time (--table). Nothing is left out, so the filters of
other commands do not apply. Further tables have names and one time axis: named_cell, sizes,
percentiles, calls, collectives; in CSV and JSON where --table names them.

With --format sqlite it writes all ranks into one database: the same tables with nothing left out
unless asked, which every command takes in place of the run folder, and DuckDB and pandas read. It
is written aside and then renamed, so it is complete or absent. Only a database of commprof's is
overwritten, and only if nobody has added tables, views or indexes to it. Such additions in the
run's own databases are ignored.

With --format prometheus it writes counters of calls, bytes and time, how long each rank waited and
made others wait, and which call each rank is in and for how long, of a live or a finished run, in
the text format that a node exporter's text-file collector takes. The file is written aside and
renamed, so a collector never reads half of it. A run of many ranks and communicators has many time
series. Waiting is read from the sampled calls, so it takes as long as `hvprof-report late`.

With --format perfetto it writes a timeline of the sampled calls (COMMPROF_SAMPLES): each rank is a
process, each thread a track, on one time axis. In a collective that synchronizes, a slice says how
long it waited, and for which rank. Nonblocking collectives are shown from start to completion,
steps and regions on tracks of their own, kernels and copies on a track per stream of the GPU;
counters show the bytes given to MPI and how many ranks are inside it. A rank that hangs or was
killed ends in the call that it was in. https://ui.perfetto.dev and chrome://tracing open the file.
For a large run it holds a million calls, the same ones of all ranks; --from and --to cut out a part
with all of its calls.

--with-trace adds traces of PyTorch's profiler to the timeline, on the same time axis: below each
rank, its operators, kernels and record_function ranges, as processes "rank 0, PyTorch: CPU", "rank
0, PyTorch: GPU 0" and so on. Within a host the two agree to about a microsecond; between hosts the
timeline uses the alignment of all reports. A wall clock that was set while the job ran is named,
with how far. Events before the start of the run are left out, because Perfetto shows nothing before
time 0. The profiler has to be Kineto's, as in every PyTorch wheel.

A timeline of Horovod (HOROVOD_TIMELINE, hvd.start_timeline) becomes a process below rank 0, which
writes it, "rank 0, Horovod", with a track for each tensor: its negotiation and its operation, which
fused tensors have in common. Rank 0 hears which rank is ready when, but Horovod writes it only for
requests that are not in its cache: with HOROVOD_CACHE_CAPACITY=0 for all of them. The timeline of a
job that was killed ends in the middle; it is shown up to there.

A trace of PyTorch belongs to the rank with its process id, on its host if it names one. If several
ranks have that process id, or none has it, the rank in torch.distributed decides (distributedInfo).
The command writes nothing if a trace says neither, if the run does not have its rank, if the rank
did not run at that time, or if the trace is damaged. Traces are read event by event, within 256 MB
of memory, whatever the size of the file. What no trace has is refused: a single value of more than
2 MiB or 64 levels, more than 20,000 threads (of Horovod: tensors that are negotiated or reduced at
once), a .json.gz that expands to more than 100 times its size (traces expand 5 to 30 times; unpack
one that is an exception).
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections import namedtuple
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from sqlite3 import Connection, Cursor
from typing import TextIO

from ..base import (
    ReportError,
    UsageError,
    checked,
    option,
    print_note,
    renamed_whole,
    units,
    written_whole,
)
from ..display import render
from ..exporters import perfetto, prometheus
from ..exporters.traces import OfRank, trace_files, traces_open
from ..run import (
    align,
    anonymous,
    database_is_plain,
    database_write,
    file_scan,
    files_mode,
    Run,
    VIEWS,
    views_create,
)
from . import Command, common

MOST_CALLS = 1_000_000  # of a whole run in a timeline; more are slow to look at
TABLES = (
    "rank",
    "fact",
    "thread",
    "call",
    "communicator",
    "recent_collective",
    "cell",
    "bucket",
    "bucket_bound",
    "peer",
    "sample",
    "signature",
    "sample_message",
    "sample_start",
    "sample_epoch",
    "sample_window",
    "step",
    "region",
    "region_span",
    "cpu_time",
    "negotiation",
    "negotiated_place",
    "negotiated_step",
    "gpu_device",
    "gpu_reading",
    "gpu_busy",
    "gpu_stream",
    "gpu_kernel",
    "gpu_activity",
    "gpu_bucket",
    "gpu_tracing",
    "nccl_algorithm",
    "gpu_sample",
    "gpu_sample_window",
)


seconds_ns = checked(
    lambda word: round(float(word) * 1e9) if 0 <= float(word) < 1e9 else None,
    "no time since the run's start",
)


def run(arguments: argparse.Namespace) -> None:
    form = FORMATS[arguments.format or ("csv" if arguments.csv else "json")]
    cuts = (arguments.from_ns, arguments.to_ns) != (None, None)
    for is_wrong, why in (
        (arguments.table and form.without_table, f"{form.without_table}: leave --table out"),
        (cuts and not form.is_timeline, "--from and --to cut a timeline: --format perfetto"),
        (
            arguments.with_trace and not form.is_timeline,
            "--with-trace adds to a timeline: --format perfetto",
        ),
        (
            arguments.anonymous and form is not FORMATS["sqlite"],
            "--anonymous makes a database: --format sqlite",
        ),
    ):
        if is_wrong:
            raise UsageError("export", why)
    form.write(arguments)


def write_tables(ending: str, arguments: argparse.Namespace) -> None:
    """A file a table, in a folder; without one all JSON together, or one table as CSV."""
    wanted = arguments.table or TABLES
    if ending == "csv" and not arguments.output and len(wanted) > 1:
        raise UsageError(
            "export", "CSV holds one table: choose --table, or --output for a folder of files"
        )
    run = opened(arguments, wanted)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        for table in wanted:
            with written_whole(arguments.output / f"{table}.{ending}", run.mode) as file:
                if ending == "csv":
                    render.write_csv(file, *fields_and_rows(run.connection, table))
                else:
                    render.write_json(file, records(run.connection, table))
    elif ending == "csv":
        render.write_csv(sys.stdout, *fields_and_rows(run.connection, *wanted))
    else:
        each = ((table, records(run.connection, table)) for table in wanted)
        render.write_json(
            sys.stdout, ({"table": table, **record} for table, rows in each for record in rows)
        )


def write_sqlite(arguments: argparse.Namespace) -> None:
    """Complete or absent."""
    *runs, output = [*arguments.run, *filter(None, [arguments.output])] or [None]
    if not runs and not arguments.output:
        raise UsageError("export", "a database is a file: --output, or the last of the names")
    arguments.run = runs
    run = common.open_selected(arguments, with_samples=True, most_samples=None)
    output_check(output)
    if arguments.anonymous:
        anonymous.anonymise(run)
    views_create(run.connection, align(run.connection).lines())
    if arguments.anonymous:
        run.connection.execute("VACUUM")  # what was deleted is still in pages that are free
    try:
        with renamed_whole(output, run.mode) as aside:
            database_write(run.connection, aside)
    except sqlite3.Error as error:
        raise ReportError(output, f"cannot be written: {error}") from None
    (ranks,) = run.connection.execute("SELECT count(*) FROM rank").fetchone()
    common.print_line(f"{output}: {units.counted(ranks, 'rank')} of {run.world_size}")


def output_check(output: Path) -> None:
    """Only a database of ours is overwritten, and only if its owner has added nothing."""
    if not output.exists() and not output.is_symlink():
        return
    is_ours = False
    with suppress(ReportError):
        is_ours = not file_scan(output).is_ledger
    if not is_ours:
        raise ReportError(output, "exists and is not one of commprof's databases; not overwritten")
    if not database_is_plain(output):
        raise ReportError(
            output, "exists, and holds more than commprof wrote into it; not overwritten"
        )


def write_prometheus(arguments: argparse.Namespace) -> None:
    known = common.Analysed(common.ALL(arguments))
    with output_open(arguments.output, known.run.mode) as file:
        file.writelines(f"{line}\n" for line in prometheus.text(known.run, known.waits))


def write_perfetto(arguments: argparse.Namespace) -> None:
    cut = perfetto.Cut(arguments.from_ns, arguments.to_ns)
    if cut.from_ns is not None and cut.to_ns is not None and cut.from_ns >= cut.to_ns:
        raise UsageError("export", "--from is not before --to")
    files = dict(found for word in arguments.with_trace for found in trace_files(word))
    most_samples = MOST_CALLS if cut == perfetto.Cut() else None
    run = common.open_selected(
        arguments, with_histograms=False, with_samples=True, most_samples=most_samples
    )
    traces = list(traces_open(files, run))
    for note in notes(run, traces):
        print_note(note)
    with output_open(arguments.output, files_mode([*run.paths, *files])) as file:
        file.writelines(perfetto.text(run, cut, traces))


# its writer; why it takes no --table; whether it takes --from, --to and --with-trace
Format = namedtuple("Format", "write without_table is_timeline", defaults=["", False])


FORMATS = {
    "json": Format(partial(write_tables, "json")),
    "csv": Format(partial(write_tables, "csv")),
    "sqlite": Format(write_sqlite, "a database holds all tables"),
    "prometheus": Format(write_prometheus, "Prometheus takes sums, not tables"),
    "perfetto": Format(write_perfetto, "a timeline takes calls, not tables", is_timeline=True),
}


def opened(arguments: argparse.Namespace, wanted: Collection[str]) -> Run:
    """The run, with views if some are wanted."""
    run = common.open_selected(arguments, with_samples=True, most_samples=None)
    if {*wanted} & {*VIEWS}:
        views_create(run.connection, align(run.connection).lines())
    return run


def notes(run: Run, traces: list[OfRank]) -> Iterator[str]:
    """The calls and activities that a timeline does not show, and how far the events of traces may
    be out of place."""
    calls, activities = run.connection.execute(
        "SELECT (SELECT count(*) FROM sample), (SELECT count(*) FROM gpu_sample)"
    ).fetchone()
    if not calls + activities:
        why = "no single calls were sampled (COMMPROF_SAMPLES)"
        yield f"{run.path}: {why}, so the timeline is empty"
    elif run.thinning and run.thinning.is_needed:
        what = "calls and activities of GPUs" if activities else "calls"
        yield (
            f"{run.path}: the timeline shows {calls + activities:,} {what}, those in "
            f"{units.share(run.thinning.share)} of the time; with --from and --to a part with all "
            "of them"
        )
    for found, process in traces:
        if process.was_set:
            yield (
                f"{found.path}: the wall clock of rank {process.rank} was set by "
                f"{units.duration(abs(process.stepped_ns))} during the run; its events may be out "
                "of place by as much"
            )


def output_open(output: Path | None, mode: int) -> AbstractContextManager[TextIO]:
    return written_whole(output, mode) if output else nullcontext(sys.stdout)


def fields_and_rows(connection: Connection, table: str) -> tuple[list[str], Cursor]:
    cursor = connection.execute(f"SELECT * FROM main.{table}")  # a name from TABLES or VIEWS
    return [column[0] for column in cursor.description], cursor


def records(connection: Connection, table: str) -> Iterator[dict]:
    fields, rows = fields_and_rows(connection, table)
    return (dict(zip(fields, row)) for row in rows)


COMMANDS = {
    "export": Command(
        __doc__,
        (
            *common.RUN,
            option("--format", choices=tuple(FORMATS), help="what to write (default: json)"),
            *render.FORMS,
            option(
                "--table",
                choices=(*TABLES, *VIEWS),
                metavar="TABLE",
                action="append",
                help=f"this table only, or one of {', '.join(VIEWS)}; may be repeated",
            ),
            option(
                "--output",
                "-o",
                type=Path,
                metavar="PATH",
                help="a folder, one file a table; for sqlite, Prometheus and Perfetto a file",
            ),
            option("--anonymous", action="store_true", help=f"of sqlite: {anonymous.HELP}"),
            option(
                "--with-trace",
                nargs="+",
                action="extend",
                default=[],
                metavar="FILE",
                help="into a timeline, traces of PyTorch's profiler and timelines of Horovod: "
                ".json, .json.gz, a folder of them, or RANK=FILE where a file does not say its "
                "rank; it takes all words up to the next option, so RUN is given before it",
            ),
            option(
                "--from",
                type=seconds_ns,
                metavar="SECONDS",
                dest="from_ns",
                help="of a timeline: what ends after this; counted from the earliest start of a "
                "rank",
            ),
            option(
                "--to",
                type=seconds_ns,
                metavar="SECONDS",
                dest="to_ns",
                help="of a timeline: what begins before this",
            ),
        ),
        run,
        (
            ("Everything as files", "hvprof-report export --format csv --output tables RUN"),
            (
                "One file to keep",
                "hvprof-report export --format sqlite --output train.db commprof-train.py-1234",
            ),
            (
                "One file to send, without names of people, machines and files",
                "hvprof-report export --format sqlite --anonymous --output train.db RUN",
            ),
            ("One table into a pipe", "hvprof-report export --csv --table cell RUN"),
            (
                "All counters with names, to be stacked with those of other runs",
                "hvprof-report export --csv --table named_cell RUN",
            ),
            (
                "A timeline of the second minute",
                "hvprof-report export --format perfetto --from 60 --to 120 --output trace.json RUN",
            ),
            (
                "PyTorch's traces and ours in one timeline",
                "hvprof-report export RUN --format perfetto --output both.json --with-trace "
                "traces/*.json",
            ),
            (
                "Horovod's timeline and ours",
                "hvprof-report export RUN --format perfetto --output both.json --with-trace "
                "horovod.json",
            ),
            (
                "A running job for a node exporter, twice a minute",
                "while sleep 30; do\n    hvprof-report export --format prometheus --output "
                "/var/lib/node_exporter/commprof.prom RUN\ndone",
            ),
        ),
        ("top",),
    )
}

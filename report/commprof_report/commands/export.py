"""All tables of the run as JSON or CSV, its sums for Prometheus, or its timeline for Perfetto.

With --output, one file a table in that folder. Without, to stdout: JSON as one list of objects, each naming its table
first; CSV one table at a time (--table). Nothing is left out, so the filters of other commands do not apply.

With --format prometheus, counters, histograms and what each rank is in, of a live or a finished run, in the text format
that a node exporter's text-file collector takes; --output is the file, which is replaced as a whole.

With --format perfetto, the single calls that the ranks have kept, on one time axis, as a trace that https://ui.perfetto.dev and
chrome://tracing open; --from and --to cut a part out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from sqlite3 import Connection

from .. import prometheus, tables, trace, units
from ..errors import UsageError
from ..run import Run
from . import common

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
    "sample_window",
    "step",
    "region",
    "region_span",
    "gpu_device",
    "gpu_busy",
    "gpu_stream",
    "gpu_kernel",
    "gpu_activity",
    "gpu_bucket",
    "gpu_tracing",
    "gpu_sample",
    "gpu_sample_window",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_run_argument(parser)
    parser.add_argument("--format", choices=("json", "csv", "prometheus", "perfetto"), help="what to write (default: json)")
    tables.add_arguments(parser)
    parser.add_argument("--table", choices=TABLES, action="append", help="this table only; may be repeated")
    parser.add_argument("--output", type=Path, metavar="PATH", help="a folder, one file a table; for Prometheus and Perfetto a file")
    parser.add_argument("--from", type=seconds, metavar="SECONDS", dest="from_ns", help="of a timeline: what ends after this")
    parser.add_argument("--to", type=seconds, metavar="SECONDS", dest="to_ns", help="of a timeline: what begins before this")


def seconds(word: str) -> int:
    """Nanoseconds."""
    value = float(word)
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{word} is no time since the run's start")
    return round(value * 1e9)


def run(arguments: argparse.Namespace) -> None:
    form = arguments.format or ("csv" if arguments.csv else "json")
    if form in ("prometheus", "perfetto"):
        (write_prometheus if form == "prometheus" else write_perfetto)(arguments)
        return
    if (arguments.from_ns, arguments.to_ns) != (None, None):
        raise UsageError("export", "--from and --to cut a timeline: --format perfetto")
    wanted = arguments.table or list(TABLES)
    if form == "csv" and not arguments.output and len(wanted) > 1:
        raise UsageError("export", "CSV holds one table: choose --table, or --output for a folder of files")
    connection = common.open_noted(arguments, with_samples=True, most_samples=None).connection
    if arguments.output:
        write_folder(connection, wanted, form, arguments.output)
    elif form == "json":
        tables.write_json(sys.stdout, (record for table in wanted for record in records(connection, table, named=True)))
    else:
        tables.write_csv(sys.stdout, *fields_and_rows(connection, wanted[0]))


def write_prometheus(arguments: argparse.Namespace) -> None:
    if arguments.table:
        raise UsageError("export", "Prometheus takes sums, not tables: leave --table out")
    lines_write((f"{line}\n" for line in prometheus.text(common.open_whole(arguments))), arguments.output)


def write_perfetto(arguments: argparse.Namespace) -> None:
    if arguments.table:
        raise UsageError("export", "a timeline takes calls, not tables: leave --table out")
    cut = trace.Cut(arguments.from_ns, arguments.to_ns)
    if None not in cut and cut.from_ns >= cut.to_ns:
        raise UsageError("export", "--from is not before --to")
    most_samples = MOST_CALLS if cut == trace.Cut() else None
    run = common.open_whole(arguments, with_histograms=False, with_samples=True, most_samples=most_samples)
    kept_note(run)
    lines_write(trace.text(run, cut), arguments.output)


def kept_note(run: Run) -> None:
    """What a timeline does not show."""
    calls, activities = run.connection.execute("SELECT (SELECT count(*) FROM sample), (SELECT count(*) FROM gpu_sample)").fetchone()
    shown = calls + activities
    if not shown:
        note = "no single calls were kept (COMMPROF_SAMPLES), so the timeline is empty"
    elif run.thinning and run.thinning.is_needed:
        what = "calls and activities of GPUs" if activities else "calls"
        found = f"{shown:,} of the {run.thinning.found:,} {what} that were kept"
        note = f"the timeline shows {found}; with --from and --to a part with all of them"
    else:
        return
    print(f"hvprof-report: {units.visible(str(run.path))}: {note}", file=sys.stderr)


def lines_write(lines: Iterable[str], output: Path | None) -> None:
    if output:
        with common.written_whole(output) as file:
            file.writelines(lines)
    else:
        sys.stdout.writelines(lines)


def write_folder(connection: Connection, wanted: list[str], form: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for table in wanted:
        with common.written_whole(folder / f"{table}.{form}") as file:
            if form == "json":
                tables.write_json(file, records(connection, table, named=False))
            else:
                tables.write_csv(file, *fields_and_rows(connection, table))


def fields_and_rows(connection: Connection, table: str) -> tuple[list[str], Iterator[tuple]]:
    cursor = connection.execute(f"SELECT * FROM main.{table}")  # a name from TABLES
    return [column[0] for column in cursor.description], cursor


def records(connection: Connection, table: str, named: bool) -> Iterator[dict]:
    fields, rows = fields_and_rows(connection, table)
    for row in rows:
        yield {**({"table": table} if named else {}), **dict(zip(fields, row))}

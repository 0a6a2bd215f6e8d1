"""hvprof-report: answers questions about a profiled MPI run."""

from __future__ import annotations

import argparse
import gc
import os
import re
import signal
import sys
from collections.abc import Iterable
from typing import NoReturn

from . import __version__
from .base import (
    EXPECTED,
    FAULTS,
    ReportError,
    UsageError,
    as_report,
    attempt,
    executor_open,
    options_add,
    units,
)
from .commands import ALIASES, QUESTIONS, SEPARATOR, command_of, help_of

PROGRAM = "hvprof-report"
EXIT_READ, EXIT_NOTHING_READ, EXIT_USAGE, EXIT_FAULT = 0, 1, 2, 3
RUN = """RUN is a run folder, a merged database, or the database or ledger of one rank. Several
folders are read as one run, where --output of commprof-run(1) gave each host or rank a folder of
its own (%h, %r); folders of two runs are refused. Without RUN the newest run in the working
directory is read, and named on standard error. A folder that holds folders of runs is not read; its
runs are listed. Without a command, summary.

A ledger is the file of a rank that still runs, was killed, or had no SQLite; it is read like a
database, also while the job runs. A rank that is missing, a file that is damaged or of another
version, and a second run in the same folder are each named in one line on standard error; what can
be read is read. Of several runs in a folder the newest is shown."""
EXIT_STATUS = {
    EXIT_READ: "What could be read was read; what is missing or damaged is named on standard "
    "error.",
    EXIT_NOTHING_READ: "Nothing could be read, or the output could not be written.",
    EXIT_USAGE: "Wrong options.",
    EXIT_FAULT: "An analysis failed by a fault of hvprof-report, which "
    "standard error names; the rest was printed.",
}


class Help(argparse.HelpFormatter):
    """Fills paragraphs and the items of lists to the terminal's width and keeps them apart."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        items = (re.split(r"\n(?=- )", part) for part in text.strip().split("\n\n"))
        return "\n\n".join("\n".join(fill(item, width, indent) for item in part) for part in items)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(
            self.prog.partition(" ")[2] or "options", f"{message} (see {self.prog} --help)"
        )


def parser_build(names: Iterable[str] = tuple(QUESTIONS)) -> Parser:
    """These commands have options; their modules are imported. Only without any are the others
    there, for help to list them."""
    parser = Parser(
        prog=PROGRAM,
        description=__doc__,
        epilog=(
            RUN
            + "\n\nExit status: "
            + " ".join(f"{status}: {meaning}" for status, meaning in EXIT_STATUS.items())
        ),
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    known = [name for name in QUESTIONS if name in names]
    for name in () if known else QUESTIONS:
        subparsers.add_parser(name, help=QUESTIONS[name])
    for name in known:
        subparser = subparsers.add_parser(
            name,
            help=QUESTIONS[name],
            description=help_of(name),
            formatter_class=Help,
            allow_abbrev=False,
        )
        options_add(subparser, command_of(name).options)
        subparser.set_defaults(
            run_command=command_of(name).run, command_name=name, command_parser=subparser
        )
    return parser


def with_default_command(words: list[str]) -> list[str]:
    """`hvprof-report RUN` is `hvprof-report summary RUN`. The `--` between sides would be taken for
    the end of options."""
    words = [*ALIASES.get("".join(words[:1]), words[:1]), *words[1:]]
    if words and (words[0] in QUESTIONS or words[0] in ("-h", "--help", "--version")):
        end = "--" if words[0] in ("compare", "html", "replay") else None
        return [SEPARATOR if word == end else word for word in words]
    if words and re.fullmatch("[a-z]+", words[0]) and not os.path.lexists(words[0]):
        import difflib  # not at the top: it is slow to import

        near = [name for name in QUESTIONS if name.startswith(words[0])]
        near = near or difflib.get_close_matches(words[0], QUESTIONS, 1)
        way = f"did you mean {near[0]}?" if near else f"the commands are {', '.join(QUESTIONS)}"
        raise UsageError(words[0], f"neither a command nor a run; {way}")
    return ["summary", *words]


def complain(error: ReportError) -> None:
    for line in (f"{PROGRAM}: {error}", *(f"  {detail}" for detail in error.details)):
        print(units.visible(line), file=sys.stderr)


def drop_output() -> None:
    """Discards the rest of the buffer, which cannot be written; Python would try again at exit, and
    complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tune() -> int:
    """commprof-tune: a command as a program of its own."""
    words = sys.argv[1:]
    return main(words if words == ["--version"] else ["tune", *words])


def main(words: list[str] | None = None) -> int:
    """`words`: the arguments; those of the process if none are given."""
    for stream in (sys.stdout, sys.stderr):
        # both are text files
        stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined, union-attr]
    # objects; an analysis makes millions that are needed to its end
    gc.set_threshold(100_000)
    # numpy's threads would take memory for nothing
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        words = with_default_command(sys.argv[1:] if words is None else words)
        arguments, unknown = parser_build(tuple(words[:1])).parse_known_args(words)
        if unknown:  # or behind an option
            arguments = arguments.command_parser.parse_intermixed_args(words[1:])
        FAULTS.clear()
        status = None
        with executor_open(getattr(arguments, "executor", None)) as answers:
            if answers:
                status = attempt(arguments.command_name, arguments.run_command, arguments)
        sys.stdout.flush()
        return EXIT_FAULT if FAULTS else status or EXIT_READ
    except UsageError as error:
        complain(error)
        return EXIT_USAGE
    except BrokenPipeError:  # whoever read our output has seen enough
        drop_output()
        return EXIT_READ
    except EXPECTED as error:
        if isinstance(error, OSError) and not error.filename:
            drop_output()
        complain(as_report(error))
        if any(word.startswith("--fail-if") for word in words or ()):
            return EXIT_FAULT  # no answer, which is not that a side is slower
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return EXIT_NOTHING_READ

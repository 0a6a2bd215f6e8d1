"""hvprof-report: answers questions about a profiled MPI run."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import signal
import sqlite3
import sys

from . import __version__, units
from .commands import COMMANDS
from .errors import ReportError, UsageError

PROGRAM = "hvprof-report"
EXIT_READ, EXIT_NOTHING_READ, EXIT_USAGE = 0, 1, 2
EPILOG = """RUN is a run folder, a merged database, or the database or ledger of one rank; several are read as one run, where
--output gave each host or rank a folder. Without a command, summary; without RUN, the newest run in the working directory.

Exit status: 0 read (what is missing or damaged is named on stderr), 1 nothing could be read or written,
2 wrong options."""


class Help(argparse.HelpFormatter):
    """Fills paragraphs to the terminal's width and keeps them apart."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(super(Help, self)._fill_text(part, width, indent) for part in text.strip().split("\n\n"))


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> None:
        raise UsageError(self.prog.partition(" ")[2] or "options", f"{message} (see {self.prog} --help)")


def parser_build() -> Parser:
    parser = Parser(
        prog=PROGRAM,
        description=__doc__,
        epilog=EPILOG,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        first_line = command.__doc__.partition("\n")[0]
        subparser = subparsers.add_parser(
            name,
            help=first_line,
            description=command.__doc__,
            formatter_class=Help,
            allow_abbrev=False,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run_command=command.run)
    return parser


def with_default_command(words: list[str]) -> list[str]:
    """`hvprof-report RUN` is `hvprof-report summary RUN`."""
    if words and (words[0] in COMMANDS or words[0] in ("-h", "--help", "--version")):
        return words
    if words and re.fullmatch("[a-z]+", words[0]) and not os.path.lexists(words[0]):
        raise UsageError(words[0], f"neither a command nor a run; {suggestion(words[0])}")
    return ["summary", *words]


def suggestion(word: str) -> str:
    """The nearest command, where one is near."""
    near = [name for name in COMMANDS if name.startswith(word)] or difflib.get_close_matches(word, COMMANDS, 1)
    return f"did you mean {near[0]}?" if near else f"the commands are {', '.join(COMMANDS)}"


def complain(error: ReportError) -> None:
    for line in (f"{PROGRAM}: {error}", *(f"  {detail}" for detail in error.details)):
        print(units.visible(line), file=sys.stderr)


def drop_output() -> None:
    """What is still in the buffer can not be written; Python would try again at exit, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(words: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")
    try:
        arguments = parser_build().parse_args(with_default_command(words))
        arguments.run_command(arguments)
        sys.stdout.flush()
        return EXIT_READ
    except UsageError as error:
        complain(error)
        return EXIT_USAGE
    except ReportError as error:
        complain(error)
    except BrokenPipeError:  # whoever read our output has seen enough
        drop_output()
        return EXIT_READ
    except OSError as error:
        drop_output()
        complain(ReportError(error.filename or "output", error.strerror or str(error)))
    except sqlite3.Error as error:
        complain(ReportError("the files of this run", f"do not fit together: {error}"))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return EXIT_NOTHING_READ

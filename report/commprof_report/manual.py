"""The manual pages of hvprof-report, and the completion of words in bash and zsh, written from the
parsers. Completion also has what commprof-run and commprof-replay print for --help; in zsh the
function of bash does it, as bashcompinit lets it.

python3 -m commprof_report.manual FOLDER hvprof-report.1 hvprof-report-sizes.1
python3 -m commprof_report.manual bash commprof-run commprof-replay
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import cleandoc
from itertools import chain
from pathlib import Path
from typing import Dict, Optional, Tuple

from . import experiment_main
from .base import units
from .commands import QUESTIONS, command_of
from .main import EXIT_STATUS, PROGRAM, RUN, parser_build

DATE = "November 22, 2026"
MANUAL = "docs/SCHEMA.md"
EXAMPLES = (
    (
        "Profile a job, look at it, and write a page",
        f"mpirun -n 4 commprof-run python3 train.py\n{PROGRAM} RUN\n{PROGRAM} html RUN",
    ),
    ("The message sizes of an earlier run", f"{PROGRAM} sizes commprof-train.py-1234"),
)
FILES = (
    ("rank-<n>.db", "The database of a rank; src/output/schema.sql defines it."),
    (
        "rank-<n>.ledger",
        "The same before it became a database: of a rank that still runs, was killed, or had no "
        "SQLite.",
    ),
    (
        "node-<run>-<host>-<boot>.tar",
        "The databases of a node's ranks, with COMMPROF_OUTPUT_PER=node.",
    ),
)
BASH = """\
# completion of {programs}
_commprof_words() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} \
program=${{COMP_WORDS[0]##*/}} command="" words=""
    [ "$COMP_CWORD" -eq 1 ] || command=${{COMP_WORDS[1]}}
    [[ " {alone} " != *" $program "* ]] || command=""
    COMPREPLY=()
    case "$program $command $before" in
{values}
        *)
            case "$program $command" in
{options}
            esac
            [[ $word == -* || $COMP_CWORD -eq 1 ]] || words=""
            ;;
    esac
    [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o bashdefault -o default -F _commprof_words {programs}
"""
SHELLS = {
    "bash": BASH,
    "zsh": "#compdef {programs}\nautoload -U +X bashcompinit && bashcompinit\n"
    + BASH
    + "_bash_complete -o bashdefault -o default -F _commprof_words\n",
}

# the words that may follow, and the choices of the value of each; None: it takes none
Words = Dict[str, Optional[Tuple[str, ...]]]


def page(name: str) -> list[str]:
    """The lines of a page in mdoc: hvprof-report.1, or that of a command."""
    command = name.removeprefix(PROGRAM).removesuffix(".1").lstrip("-")
    return _command_page(command) if command else _program_page()


def _program_page() -> list[str]:
    commands = {f"{PROGRAM}-{command}": question for command, question in QUESTIONS.items()}
    return [
        *_head(PROGRAM, "answer questions about a profiled MPI run"),
        ".Nm",
        ".Op Ar command",
        ".Op Ar options",
        ".Op Ar run ...",
        ".Sh DESCRIPTION",
        ".Nm",
        *_text(
            "reads what the ranks of an MPI job under commprof-run(1) have recorded, and answers "
            "questions about the run."
        ),
        *_paragraphs(RUN),
        ".Pp",
        "The commands are as follows:",
        *_listed(
            "-tag -width communicators",
            (
                (f"Cm {name.partition('report-')[2]}", [*_text(question), "See", f".Xr {name} 1 ."])
                for name, question in commands.items()
            ),
        ),
        ".Sh FILES",
        *_listed("-tag -width Ds", ((f"Pa {file}", _text(holds)) for file, holds in FILES)),
        *_foot(EXAMPLES, ["commprof-run", *commands]),
    ]


def _command_page(command: str) -> list[str]:
    title, own = QUESTIONS[command], command_of(command)
    parser = _subparsers(parser_build([command]))[command]
    helps = ((each, parser._get_formatter()._expand_help(each)) for each in _options(parser))
    return [
        *_head(f"{PROGRAM}-{command}", title[0].lower() + title[1:].rstrip(".")),
        f".Nm {PROGRAM}",
        f".Cm {command}",
        *_synopsis(parser),
        ".Sh DESCRIPTION",
        *_paragraphs(cleandoc(own.text or "")),
        ".Pp",
        "The options are as follows:",
        *_listed(
            "-tag -width Ds",
            (
                (_spelled(action), _text(f"{units.capital(text.removesuffix('.'))}."))
                for action, text in helps
            ),
        ),
        *_foot(own.examples, [PROGRAM, *(f"{PROGRAM}-{other}" for other in own.see_also)]),
    ]


def _listed(kind: str, items: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """items: head and lines of each."""
    lines = ([f".It {head}".rstrip(), *lines] for head, lines in items)
    return [f".Bl {kind}", *chain.from_iterable(lines), ".El"]


def _head(name: str, title: str) -> list[str]:
    return [
        f".Dd {DATE}",
        f".Dt {name.upper()} 1",
        ".Os",
        ".Sh NAME",
        f".Nm {name}",
        f".Nd {title}",
        ".Sh SYNOPSIS",
    ]


def _foot(examples: Sequence[tuple[str, str]], also: Sequence[str]) -> list[str]:
    shown = (
        [
            *([".Pp"] if number else []),
            f"{title}:",
            ".Bd -literal -offset indent",
            *(_escaped(f"$ {line}") for line in commands.splitlines()),
            ".Ed",
        ]
        for number, (title, commands) in enumerate(examples)
    )
    return [
        ".Sh EXIT STATUS",
        *_listed(
            "-tag -width Ds -compact",
            ((str(status), _text(meaning)) for status, meaning in EXIT_STATUS.items()),
        ),
        ".Sh EXAMPLES",
        *chain.from_iterable(shown),
        ".Sh SEE ALSO",
        *(f".Xr {name} 1{'' if name == sorted(also)[-1] else ' ,'}" for name in sorted(also)),
        ".Pp",
        "The meaning and unit of every key:",
        f".Pa {MANUAL} .",
    ]


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs, and lists of lines that begin with a hyphen."""
    for number, part in enumerate(re.split(r"\n\n+", text.strip())):
        if part.startswith("- "):
            items = part[2:].split("\n- ")
            yield from _listed("-bullet -compact", (("", _text(item)) for item in items))
        else:
            yield from (*([".Pp"] if number else []), *_text(part))


def _text(text: str) -> list[str]:
    """A line for each sentence, as mdoc likes it."""
    return [_escaped(line) for line in re.split(r"(?<=[.:;!?]) (?=[A-Z(])", " ".join(text.split()))]


def _escaped(line: str) -> str:
    line = line.replace("\\", "\\e")
    return "\\&" + line if line[:1] in (".", "'") else line


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Operands first."""
    actions = [action for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    return sorted(actions, key=lambda action: bool(action.option_strings))


def _synopsis(parser: argparse.ArgumentParser) -> Iterator[str]:
    alternatives = {
        id(one): group._group_actions
        for group in parser._mutually_exclusive_groups
        for one in group._group_actions
    }
    operands = [action for action in _options(parser) if not action.option_strings]
    for action in _options(parser)[len(operands) :]:
        group = alternatives.get(id(action), [action])
        if action is group[0]:
            yield ".Op " + " | ".join(_spelled(one, 1) for one in group)
    for action in operands:
        more = " ..." if action.nargs in ("*", "+") else ""
        yield f"{'.Op Ar' if action.nargs in ('*', '?') else '.Ar'} {action.metavar}{more}"


def _spelled(action: argparse.Action, most: int = 9) -> str:
    """Fl -bytes Ar LOW:HIGH"""
    value = _value(action)
    flags = [
        f"Fl {option[1:]}{value}"
        for option in sorted(action.option_strings, key=len, reverse=most == 1)[:most]
    ]
    return " , ".join(flags) or f"Ar {action.metavar}"


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    more = " ..." if action.nargs == "+" else ""
    return (
        " Cm " + " | ".join(action.choices)
        if action.choices and not action.metavar
        else f" Ar {action.metavar}{more}"
    )


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return next(
        action.choices
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    )


def words_of_parser(program: str, parser: argparse.ArgumentParser) -> dict[str, Words]:
    """Behind the program, and behind each of its commands."""
    commands = _subparsers(parser)
    return {
        f"{program} {command}": {
            name: tuple(map(str, action.choices or ()))
            if action.option_strings and action.nargs != 0
            else None
            for action in own._actions
            for name in action.option_strings or action.choices or ()
        }
        for command, own in {"": parser, **commands}.items()
    }


def words_of_program(path: str) -> Words:
    """From the lines `  --memory SIZE   COMMPROF_MEMORY   [64M]` of its help."""
    text = subprocess.run([path, "--help"], stdout=subprocess.PIPE, check=True, text=True).stdout
    words: Words = {}
    for name, value in re.findall(r"^  (--\S+)(?: (\S+))?(?:   .*)?$", text, re.MULTILINE):
        if name.endswith(","):  # --help, --version
            words |= dict.fromkeys((name[:-1], value))
        else:
            words[name] = tuple(value.split("|")) if "|" in value else () if value else None
            words |= {f"--no-{name[2:]}": None} if value == "on|off" else {}
    return words


def script(shell: str, table: Mapping[str, Words]) -> str:
    values = [
        f'        "{key} {name}") words="{" ".join(choices)}" ;;'
        for key, words in table.items()
        for name, choices in words.items()
        if choices is not None
    ]
    options = [
        f'                "{key}") words="{" ".join(words)}" ;;' for key, words in table.items()
    ]
    commands = Counter(key.partition(" ")[0] for key in table)
    alone = (program for program, number in commands.items() if number == 1)
    return SHELLS[shell].format(
        programs=" ".join(commands),
        alone=" ".join(alone),
        values="\n".join(values),
        options="\n".join(options),
    )


if __name__ == "__main__":
    if sys.argv[1] in SHELLS:
        reports = words_of_parser(PROGRAM, parser_build())
        known = {
            **{f"{Path(path).name} ": words_of_program(path) for path in sys.argv[2:]},
            **reports,
            "commprof-tune ": reports[f"{PROGRAM} tune"],
            **words_of_parser(experiment_main.PROGRAM, experiment_main.parser_build()),
        }
        sys.stdout.write(script(sys.argv[1], known))
    else:
        for name in sys.argv[2:]:
            (Path(sys.argv[1]) / name).write_text("\n".join([*page(name), ""]), encoding="utf-8")

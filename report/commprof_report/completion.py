"""The completion of words in bash and zsh, written from the parsers and from what commprof-run
--help prints.

commprof-run --help | python3 -m commprof_report.completion bash commprof-run --help | python3 -m
commprof_report.completion zsh
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from . import experiment_main, main, manual

RUN = "commprof-run"
HELP_WIDTH = 100
BASH = """\
# bash completion of {programs}
_commprof() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} \
program=${{COMP_WORDS[0]##*/}} command="" words=""
    [ "$COMP_CWORD" -eq 1 ] || command=${{COMP_WORDS[1]}}
    [ "$program" != {run} ] || command=""
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
    [ -z "$words" ] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
complete -o bashdefault -o default -F _commprof {programs}
"""
ZSH = """\
#compdef {programs}
# zsh completion of {programs}
_commprof_options() {{
    case $1 in
{options}
        (*) _files ;;
    esac
}}
_commprof_commands() {{
    local -a commands
    case $1 in
{commands}
    esac
    _describe command commands
    _files
}}
if [[ ${{words[1]:t}} == {run} ]]; then
    _commprof_options {run}
elif (( CURRENT == 2 )); then
    _commprof_commands ${{words[1]:t}}
else
    local key="${{words[1]:t}} ${{words[2]}}"
    shift words
    (( CURRENT-- ))
    _commprof_options $key
fi
"""


class Option(NamedTuple):
    name: str
    value: str  # what stands for its value in help; "": it takes none
    choices: tuple[str, ...]
    help: str


class Words(NamedTuple):
    """Completions after a program's name, or after a program's name and a command."""

    program: str
    command: str
    help: str
    options: list[Option]

    @property
    def key(self) -> str:
        return f"{self.program} {self.command}".strip()


def words_of_parser(program: str, parser: argparse.ArgumentParser) -> Iterator[Words]:
    summaries = {
        each.dest: each.help or "" for action in parser._actions
        for each in getattr(action, "_choices_actions", ())
    }
    for command, own in {"": parser, **manual._subparsers(parser)}.items():
        options = [
            _option(own, name, action) for action in own._actions for name in action.option_strings
        ]
        yield Words(program, command, summaries.get(command, ""), options)


def _option(parser: argparse.ArgumentParser, name: str, action: argparse.Action) -> Option:
    choices = tuple(map(str, action.choices or ()))
    value = "" if action.nargs == 0 else str(action.metavar or action.dest)
    return Option(name, value, choices, manual._help(parser, action))


def words_of_run(text: str) -> Words:
    """From the lines `  --memory SIZE   COMMPROF_MEMORY   [64M]`, and the indented
    ones below each."""
    options = []
    for match in re.finditer(
        r"^  (--\S+)(?: (\S+))?(?:   .*)?\n((?: {8}.*\n)*)", text, re.MULTILINE
    ):
        name, value, below = match[1].rstrip(","), match[2] or "", " ".join(match[3].split())
        is_flag = value == "on|off"
        is_two = match[1].endswith(",")  # --help, --version
        options.append(
            Option(name, "" if is_two else value, ("on", "off") if is_flag else (), below)
        )
        options += [Option(f"--no-{name[2:]}", "", (), f"As {name} off.")] if is_flag else []
        options += [Option(value, "", (), "")] if is_two else []
    return Words(RUN, "", "", options)


def all_words(run_help: str) -> list[Words]:
    report, experiment = main.parser_build(), experiment_main.parser_build()
    return [
        words_of_run(run_help), *words_of_parser(main.PROGRAM, report),
        *words_of_parser(experiment_main.PROGRAM, experiment),
    ]


def bash(table: list[Words]) -> str:
    values, options = [], []
    for words in table:
        key = f"{words.program} {words.command}"
        values += [
            f'        "{key} {option.name}") words="{" ".join(option.choices)}" ;;'
            for option in words.options if option.value
        ]
        names = [*_commands(table, words), *(option.name for option in words.options)]
        options.append(f'                "{key}") words="{" ".join(names)}" ;;')
    return BASH.format(
        programs=" ".join(_programs(table)), run=RUN, values="\n".join(values),
        options="\n".join(options),
    )


def _programs(table: list[Words]) -> list[str]:
    return list(dict.fromkeys(words.program for words in table))


def _commands(table: list[Words], words: Words) -> list[str]:
    """Commands that may follow; none after a command."""
    return (
        [] if words.command
        else [each.command for each in table if each.program == words.program and each.command]
    )


def zsh(table: list[Words]) -> str:
    options = []
    for words in table:
        specs = " ".join(_quoted(_spec(option)) for option in words.options)
        rest = "'*::program:_normal'" if words.program == RUN else "'*:run:_files'"
        options.append(f"        ({_quoted(words.key)}) _arguments -S {specs} {rest} ;;")
    programs = _programs(table)
    commands = [
        f"        ({program}) commands=({' '.join(_described(table, program))}) ;;"
        for program in programs if program != RUN
    ]
    return ZSH.format(
        programs=" ".join(programs), run=RUN, options="\n".join(options),
        commands="\n".join(commands),
    )


def _described(table: list[Words], program: str) -> Iterator[str]:
    for words in table:
        if words.program == program and words.command:
            yield _quoted(f"{words.command}:{words.help}")


def _spec(option: Option) -> str:
    """--by=[this table only]:TABLE:(rank host)"""
    text = option.help if len(option.help) <= HELP_WIDTH else f"{option.help[: HELP_WIDTH - 3]}..."
    said = re.sub(r"([\[\]:])", r"\\\1", text)
    if not option.value:
        return f"{option.name}[{said}]"
    choices = f"({' '.join(option.choices)})" if option.choices else "_files"
    value = re.sub(r"([\[\]:])", r"\\\1", option.value)
    return f"{option.name}=[{said}]:{value}:{choices}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


if __name__ == "__main__":
    sys.stdout.write({"bash": bash, "zsh": zsh}[sys.argv[1]](all_words(sys.stdin.read())))

"""The completion of words in bash and zsh, written from the parsers and from what commprof-run
--help prints. In zsh the function of bash does it, as bashcompinit lets it.

commprof-run --help | python3 -m commprof_report.completion bash
commprof-run --help | python3 -m commprof_report.completion zsh
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from typing import Dict, Optional, Tuple

from . import experiment_main, main, manual

RUN = "commprof-run"
BASH = """\
# completion of {programs}
_commprof_words() {{
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
    [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o bashdefault -o default -F _commprof_words {programs}
"""
SHELLS = {
    "bash": BASH,
    "zsh": "#compdef {programs}\nautoload -U +X bashcompinit && bashcompinit\n" + BASH
    + "_bash_complete -o bashdefault -o default -F _commprof_words\n",
}

# the words that may follow, and the choices of the value of each; None: it takes none
Words = Dict[str, Optional[Tuple[str, ...]]]


def words_of_parser(program: str, parser: argparse.ArgumentParser) -> dict[str, Words]:
    """Behind the program, and behind each of its commands."""
    commands = manual._subparsers(parser)
    options: dict[str, Words] = {
        f"{program} {command}": {
            name: None if action.nargs == 0 else tuple(map(str, action.choices or ()))
            for action in own._actions for name in action.option_strings
        }
        for command, own in {"": parser, **commands}.items()
    }
    options[f"{program} "].update(dict.fromkeys(commands))
    return options


def words_of_run(text: str) -> Words:
    """From the lines `  --memory SIZE   COMMPROF_MEMORY   [64M]`."""
    words: Words = {}
    for name, value in re.findall(r"^  (--\S+)(?: (\S+))?(?:   .*)?$", text, re.MULTILINE):
        if name.endswith(","):  # --help, --version
            words |= dict.fromkeys((name[:-1], value))
        elif value == "on|off":
            words |= {name: ("on", "off"), f"--no-{name[2:]}": None}
        else:
            words[name] = () if value else None
    return words


def script(shell: str, table: Mapping[str, Words]) -> str:
    values = [
        f'        "{key} {name}") words="{" ".join(choices)}" ;;'
        for key, words in table.items() for name, choices in words.items() if choices is not None
    ]
    options = [
        f'                "{key}") words="{" ".join(words)}" ;;' for key, words in table.items()
    ]
    programs = dict.fromkeys(key.partition(" ")[0] for key in table)
    return SHELLS[shell].format(
        programs=" ".join(programs), run=RUN, values="\n".join(values), options="\n".join(options)
    )


if __name__ == "__main__":
    known = {
        f"{RUN} ": words_of_run(sys.stdin.read()),
        **words_of_parser(main.PROGRAM, main.parser_build()),
        **words_of_parser(experiment_main.PROGRAM, experiment_main.parser_build()),
    }
    sys.stdout.write(script(sys.argv[1], known))

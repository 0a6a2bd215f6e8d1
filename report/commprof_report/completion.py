"""The completion of words in bash and zsh, written from the parsers and from what commprof-run
and commprof-replay print for --help. In zsh the function of bash does it, as bashcompinit lets it.

python3 -m commprof_report.completion bash commprof-run commprof-replay
python3 -m commprof_report.completion zsh commprof-run commprof-replay
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Dict, Optional, Tuple

from . import experiment_main, main, manual

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
        for key, words in table.items() for name, choices in words.items() if choices is not None
    ]
    options = [
        f'                "{key}") words="{" ".join(words)}" ;;' for key, words in table.items()
    ]
    commands = Counter(key.partition(" ")[0] for key in table)
    alone = (program for program, number in commands.items() if number == 1)
    return SHELLS[shell].format(
        programs=" ".join(commands), alone=" ".join(alone), values="\n".join(values),
        options="\n".join(options),
    )


if __name__ == "__main__":
    known = {
        **{f"{Path(path).name} ": words_of_program(path) for path in sys.argv[2:]},
        **words_of_parser(main.PROGRAM, main.parser_build()),
        **words_of_parser(experiment_main.PROGRAM, experiment_main.parser_build()),
    }
    sys.stdout.write(script(sys.argv[1], known))

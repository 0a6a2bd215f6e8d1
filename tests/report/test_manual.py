"""The manual pages say of each command what its parser says. run-all.sh asks mandoc about them."""

from __future__ import annotations

import shlex

import pytest
from commprof_report import manual
from commprof_report.commands import QUESTIONS, command_of
from commprof_report.main import PROGRAM, parser_build

COMMANDS = {name: command_of(name) for name in QUESTIONS}
EXAMPLES = [
    (command, words) for command, module in COMMANDS.items() for _, words in module.examples
] + list(manual.EXAMPLES)


def reports_in(commands: str) -> list[list[str]]:
    """The calls of hvprof-report in an example, up to a pipe."""
    lines = [line.strip().partition(" | ")[0] for line in commands.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith(PROGRAM)]


@pytest.mark.parametrize(("command", "commands"), EXAMPLES)
def test_examples_are_commands_that_are_understood(command, commands):
    for words in reports_in(commands):
        if words[0] in COMMANDS:
            parser_build().parse_args(words)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_a_page_with_all_its_options(command):
    page = "\n".join(manual.page(f"{PROGRAM}-{command}.1"))
    options = [
        action
        for action in manual._subparsers(parser_build())[command]._actions
        if "--help" not in action.option_strings
    ]
    for action in options:
        for option in action.option_strings:
            assert f"Fl {option[1:]}" in page
    assert {f".Xr {PROGRAM}-{other} 1" for other in COMMANDS[command].see_also} <= {
        line.rstrip(" ,") for line in page.splitlines()
    }
    assert set(COMMANDS[command].see_also) <= COMMANDS.keys()


def test_a_line_of_text_is_never_taken_for_a_macro():
    assert manual._escaped(".svg") == "\\&.svg"
    assert manual._escaped("'x'") == "\\&'x'"
    assert manual._escaped("a\\b") == "a\\eb"

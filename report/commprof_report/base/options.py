"""The options and operands of a command as rows of a table, in argparse's words."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, NamedTuple


class Option(NamedTuple):
    """Without names: values of options that a command does not take."""

    names: tuple[str, ...]
    settings: dict[str, Any]
    group: str = ""  # its title in help
    is_alone: bool = False  # no other of its group beside it


def option(*names: str, group: str = "", is_alone: bool = False, **settings: Any) -> Option:
    return Option(names, settings, group, is_alone)


def options_add(parser: argparse.ArgumentParser, options: Iterable[Option]) -> None:
    groups: dict[str, argparse._ActionsContainer] = {"": parser}
    for each in options:
        if not each.names:
            parser.set_defaults(**each.settings)
            continue
        if each.group not in groups:
            group = parser.add_argument_group(each.group)
            groups[each.group] = group.add_mutually_exclusive_group() if each.is_alone else group
        groups[each.group].add_argument(*each.names, **each.settings)

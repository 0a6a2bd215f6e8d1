"""The answers of hvprof-report as rows for programs in Python: a method for each command that gives
rows (docs/PYTHON.md)."""

from __future__ import annotations

import argparse
import inspect
import warnings
from collections import namedtuple
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Callable, NamedTuple

from . import manual
from .base import FAULTS, ReportError, take_note
from .commands import ALIASES, QUESTIONS, command_of, help_of
from .main import parser_build


class Rows(list):
    """Named tuples with the keys that --json and --csv print, which docs/SCHEMA.md defines.
    `fields`: these keys, also if there is no row."""

    def __init__(self, rows: Iterable[Sequence[object]], fields: Sequence[str], name: str) -> None:
        row_type = namedtuple(name, fields)  # type: ignore[misc]  # named after the command
        super().__init__(map(row_type._make, rows))
        self.fields = tuple(fields)

    def to_frame(self) -> object:
        """A pandas.DataFrame. Raises ImportError where pandas is not installed; nothing else here
        needs it."""
        import pandas

        return pandas.DataFrame.from_records(self, columns=self.fields)


class Run(NamedTuple):
    """A run. Each method asks what the command of its name asks, with its options as keywords, and
    returns Rows. It reads the files each time, as the command does. Messages of the command about
    missing or damaged files are warnings; an error is a ReportError."""

    paths: tuple[Path, ...]


def run_open(*paths: object) -> Run:
    found = [Path(str(path)) for path in paths]
    for path in found:
        if not path.exists():
            raise ReportError(path, "no such file or folder")
    return Run(tuple(found))


def _words(parser: argparse.ArgumentParser, name: str, options: dict[str, object]) -> Iterator[str]:
    """The keywords as the command's options."""
    actions = {action.dest: action for action in _options(parser)}
    for key, value in options.items():
        if key not in actions:
            raise TypeError(f"{name}() has no option {key!r}; it has {', '.join(actions)}")
        option = actions[key].option_strings[0]
        if actions[key].nargs == 0:
            yield from [option] if value else []
        elif value is not None:
            yield from (
                f"{option}={each}"
                for each in (value if isinstance(value, (list, tuple)) else [value])
            )


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [
        action
        for action in parser._actions
        if action.dest not in ("help", "json", "csv", "run", "executor")
    ]


def _method(
    name: str, of: str, parser: argparse.ArgumentParser, words: Sequence[str]
) -> Callable[..., Rows]:
    """of, words: the command and options that an earlier name stands for."""

    def ask(self: Run, **options: object) -> Rows:
        answers: list[Rows] = []
        arguments = parser.parse_args([*words, *_words(parser, name, options)])
        arguments.run = list(self.paths)
        arguments.take_rows = lambda rows, fields: answers.append(
            Rows(rows, fields, f"{name.capitalize()}Row")
        )
        FAULTS.clear()
        token = take_note.set(lambda note: warnings.warn(note, stacklevel=2))
        try:
            command_of(of).run(arguments)
        finally:
            take_note.reset(token)
        return answers[0]

    helps = (
        f"    {action.dest}: {parser._get_formatter()._expand_help(action)}"
        for action in _options(parser)
    )
    keywords = [
        inspect.Parameter(action.dest, inspect.Parameter.KEYWORD_ONLY, default=action.default)
        for action in _options(parser)
    ]
    ask.__name__, ask.__qualname__ = name, f"Run.{name}"
    ask.__doc__ = "\n".join([help_of(of), "Options:", *helps])
    # inspect and help() take it from there
    ask.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY), *keywords]
    )
    return ask


_parsers = manual._subparsers(parser_build())
for _name, (_of, *_words_before) in {**{name: (name,) for name in QUESTIONS}, **ALIASES}.items():
    if "take_rows" in _parsers[_of]._defaults and any(
        action.dest == "run" for action in _parsers[_of]._actions
    ):
        setattr(Run, _name, _method(_name, _of, _parsers[_of], _words_before))

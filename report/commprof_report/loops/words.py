"""A nest of loops in words: 100 x (24 message calls, Allreduce of 8 B); every 10: Gather of
1.00 KB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from ..base import units
from .choice import Level
from .repeats import Loops

MOST_PARTS = 5  # of a body, in words


class Word(NamedTuple):
    """A token in words."""

    call: str
    bytes: int | None  # None: not told
    is_message: bool


def nest_text(level: Level, words: Mapping[int, Word]) -> str:
    """The body of the loop, and what each loop around it has besides."""
    loops, loop = level.loops, level.loop
    said = [f"({_text(loops, loops.bodies[loop], words)})"]
    for outer in reversed(level.outer):
        rest = [
            symbol for symbol in loops.bodies[outer]
            if symbol >= 0 or loop not in {
                loops.loop_of(symbol), *loops.inner(loops.loop_of(symbol)),
            }
        ]
        often = round(loops.iterations(loop) / loops.iterations(outer))
        said.append(f"every {often:,}: {_text(loops, rest, words)}")
    return "; ".join(said)


def _text(loops: Loops, symbols: Sequence[int], words: Mapping[int, Word]) -> str:
    parts: list[str] = []

    def is_message(symbol: int) -> bool:
        tokens = [symbol] if symbol >= 0 else loops.alphabet(loops.loop_of(symbol))
        return all(words[token].is_message for token in tokens)

    for is_of_messages, own in groupby(symbols, is_message):
        if is_of_messages:
            number = sum(_calls(loops, symbol) for symbol in own)
            parts.append(f"{units.mean_count(number)} message call{'s' * (number != 1)}")
        else:
            parts += [_symbol_text(loops, symbol, words) for symbol in own]
    if len(parts) > MOST_PARTS:
        parts = [*parts[: MOST_PARTS - 1], f"{len(parts) - MOST_PARTS + 1} more"]
    return ", ".join(parts)


def _symbol_text(loops: Loops, symbol: int, words: Mapping[int, Word]) -> str:
    if symbol >= 0:
        word = words[symbol]
        return f"{word.call} of {units.size(word.bytes)}" if word.bytes else word.call
    often, body = _often(loops, symbol), loops.bodies[loops.loop_of(symbol)]
    text = _text(loops, body, words)
    if often <= 1:
        return text
    return f"{units.mean_count(often)} {text if len(body) == 1 else f'x ({text})'}"


def _calls(loops: Loops, symbol: int) -> float:
    """How many calls it is, on average."""
    if symbol >= 0:
        return 1.0
    body = loops.bodies[loops.loop_of(symbol)]
    return _often(loops, symbol) * sum(_calls(loops, each) for each in body)


def _often(loops: Loops, symbol: int) -> float:
    loop, iterations = loops.uses[-1 - symbol]
    return iterations or loops.in_a_row(loop)

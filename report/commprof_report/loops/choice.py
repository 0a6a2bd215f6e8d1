"""Which loops may be the step: the outermost of those that take most of the time, and each loop
inside it that does nearly all of its work.

Nothing in the calls distinguishes 60 steps of 12 layers from 60 epochs of 12 steps: both are
levels, and stepping.py asks for evidence. A loop around another that only writes output, such as a
checkpoint every 100 steps, is no level.

A loop may be taken to begin with any element of its body: it begins with the one with which the
first iteration does. Pauses do not decide this, as busy cores make them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from typing import NamedTuple

from ..base import threshold, units, whole
from ..base.columns import Columns, Flags, Ints, np
from .repeats import Loops, find_again, find_loops

FEWEST_STEPS = whole("loops.steps")
OFTEN = whole("loops.often")
MOST_OF_IT, REST, INNER = threshold("loops.time"), threshold("loops.rest"), threshold("loops.inner")
SEVERAL, ALL = 1.1, 0.9  # times: less is once, but for exceptions
TWICE = 2  # in a row: these are parts of a step, as nobody evaluates after every second one


class Kind(IntEnum):
    """The part of a call in a step."""

    DATA = 0  # a bulk collective in which all wait for all
    ROOTED = 1  # collectives with a root, barriers, files: checkpoints consist of these
    SMALL = 2  # other collectives
    MESSAGE = 3  # messages, and what completes them
    START = 4  # the start of a message that another call completes


@dataclass(frozen=True)
class Line(Columns):
    """The calls of a thread in order."""

    token: Ints
    stretch: Ints  # equal while no call is missing in between
    kind: Ints
    # time up to the end of the call in which the thread was in it or came to it
    upto_ns: Ints


class Level(NamedTuple):
    """A loop that may be the step. outer: the loops around it, outermost first."""

    loops: Loops
    loop: int
    outer: tuple[int, ...]
    time_ns: float

    @property
    def iterations(self) -> int:
        return self.loops.iterations(self.loop)


def levels(line: Line) -> list[Level]:
    """The outermost first; empty: nothing repeats. Loops with fixed numbers of iterations have an
    order that occurs; those with free numbers are shorter in words, and are all there is where the
    numbers vary. A number that varies in turns is a longer loop in the first reading: both are
    levels then."""
    exact, free = (
        _levels(line, find_loops(line.token, line.stretch, is_exact)) for is_exact in (True, False)
    )
    if not exact or not free:
        return exact or free
    often, often_free = exact[0].iterations, free[0].iterations
    if exact[0].time_ns < ALL * free[0].time_ns or often > SEVERAL * often_free:
        return free
    if often_free > SEVERAL * often:
        return [*exact, *(one for one in free if one.iterations > SEVERAL * exact[-1].iterations)]
    return free if len(exact) == len(free) else exact


def _levels(line: Line, loops: Loops) -> list[Level]:
    spent_ns = np.diff(line.upto_ns, prepend=line.upto_ns[:1])
    inside = {
        loop: loops.inside(loop) for loop in range(len(loops.bodies))
        if loops.iterations(loop) >= FEWEST_STEPS
    }
    times = {loop: float(spent_ns[flags].sum()) for loop, flags in inside.items()}
    if not times:
        return []
    least = MOST_OF_IT * max(times.values())
    likely = {loop for loop, time_ns in times.items() if time_ns >= least}
    outermost = likely - set().union(*(loops.inner(loop) for loop in likely))
    loop: int | None = max(outermost, key=times.__getitem__)
    found: list[Level] = []
    around: tuple[int, ...] = ()
    while loop is not None:
        inner = [
            one for one in inside
            if one in loops.inner(loop)
            and _has_the_work(line, loops, one, inside[loop], inside[one])
        ]
        own, next_loop = loop, max(inner, key=times.__getitem__) if inner else None
        if next_loop is None or not _is_output(line, inside[own], inside[next_loop], spent_ns):
            found.append(Level(loops, own, around, times[own]))
        around, loop = (*around, own), next_loop
    return found


def _has_the_work(line: Line, loops: Loops, loop: int, outer: Flags, inner: Flags) -> bool:
    """Whether the inner loop makes nearly all bulk collectives of the outer one, or else calls. Of
    messages alone, it must exchange some, several times: no bursts of starts, no spins."""
    if loops.in_a_row(loop) <= SEVERAL * TWICE:
        return False
    data = line.kind == Kind.DATA
    own, kinds = outer & inner, line.kind[outer & inner]
    if (kinds >= Kind.MESSAGE).all():
        is_exchange = len(loops.alphabet(loop)) > 1 and (kinds == Kind.MESSAGE).any()
        return is_exchange and loops.in_a_row(loop) >= OFTEN and not (data & outer).any()
    counted = data if (data & outer).any() else np.ones(len(data), bool)
    return bool((own & counted).sum() > INNER * (outer & counted).sum())


def _is_output(line: Line, outer: Flags, inner: Flags, spent_ns: Ints) -> bool:
    """Whether the outer loop adds only collectives with a root, barriers and files, in little
    time."""
    rest = outer & ~inner
    is_short = spent_ns[rest].sum() < REST * spent_ns[outer].sum()
    return bool((line.kind[rest] == Kind.ROOTED).all() and is_short)


@dataclass(frozen=True)
class Spans(Columns):
    """Iterations: calls[first:end] of the line."""

    first: Ints
    end: Ints


def cut(level: Level) -> Spans:
    """The loop is sought again in the sequence of its own calls, so that others do not interrupt
    it. An iteration begins with the call with which the first one does."""
    tokens = level.loops.tokens
    place = np.flatnonzero(np.isin(tokens, [*level.loops.alphabet(level.loop)]))
    runs = find_again(level.loops, level.loop, place).runs[level.loop]
    size, place = len(level.loops.bodies[level.loop]), np.append(place, len(tokens))
    if not runs:  # among its own calls alone the loop repeats otherwise
        return Spans(place[:0], place[:0])
    edges = [run.starts[(run.before - runs[0].before) % size :: size] for run in runs]
    first = np.concatenate([place[each[:-1]] for each in edges])
    end = np.concatenate([place[each[1:] - 1] + 1 for each in edges])
    spans = Spans(first, end).take(np.argsort(first, kind="stable"))
    return spans.take(spans.first >= np.append(0, np.maximum.accumulate(spans.end)[:-1]))


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

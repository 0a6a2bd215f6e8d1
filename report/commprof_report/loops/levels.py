"""Loops of loops in a sequence: what repeats directly, innermost first.

    a a b a a a b c a a b a b c   ->   A b A b c A b A b c   ->   B c B c   ->   C
                                       A = a                      B = A b        C = B c

A loop is a body that follows itself: a tandem repeat, as ScalaTrace's regular section descriptors.
The shortest bodies are sought first, so those of longer ones hold loops. In an exact search, a loop
inside another has the same number of iterations each time: forward and backward pass of equal
layers stay apart. Otherwise the number is free, halos of three and of four messages are the same
loop, and a body that stands alone is a loop of one iteration. No loop spans a hole in the samples.

Levels are the loops that may be the step: the outermost of those that take most of the time, and
each loop inside it that does nearly all of its work. Nothing in the calls distinguishes 60
steps of 12 layers from 60 epochs of 12 steps: both are levels, and stepping.py asks for evidence. A
loop around another that only writes output, such as a checkpoint every 100 steps, is no level.

A loop may be taken to begin with any element of its body: it begins with the one with which the
first iteration does. Pauses do not decide this, as busy cores make them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from ..base import Columns, Flags, Ints, covered, np, threshold, whole

LONGEST_BODY = whole("loops.body")

Symbol = int  # a token, from 0 on; below 0: -1 - its place among the uses of loops
Body = tuple[Symbol, ...]


@dataclass(frozen=True)
class Run:
    """Iterations of a loop that follow each other directly. The elements of a body are tokens and
    loops; some of an iteration that is not whole may precede and follow."""

    starts: Ints  # place of each element in the sequence, and of the end of the last
    before: int  # elements before the first whole iteration
    iterations: int
    size: int  # of the body

    @property
    def edges(self) -> Ints:
        """The begin of each iteration, and the end of the last one."""
        return self.starts[self.before :: self.size][: self.iterations + 1]


@dataclass
class Loops:
    """`tokens`, and what was found in them."""

    tokens: Ints
    stretch: Ints  # equal while nothing is missing in between
    is_exact: bool = False
    bodies: list[Body] = field(default_factory=list)
    # a loop as a part of a body, and its iterations there; 0: any number
    uses: list[tuple[int, int]] = field(default_factory=list)
    runs: list[list[Run]] = field(default_factory=list)  # by loop, in order

    def iterations(self, loop: int) -> int:
        return sum(run.iterations for run in self.runs[loop])

    def inside(self, loop: int) -> Flags:
        """Which tokens are in iterations of the loop?"""
        begins, ends = (
            np.concatenate([run.edges[part] for run in self.runs[loop]])
            for part in (slice(None, -1), slice(1, None))
        )
        return covered(begins, ends, len(self.tokens))

    def alphabet(self, loop: int) -> frozenset[int]:
        """All tokens in the body, also in the loops in it."""
        bodies = (self.bodies[one] for one in {loop, *self.inner(loop)})
        return frozenset(symbol for body in bodies for symbol in body if symbol >= 0)

    def symbol(self, loop: int, iterations: int) -> Symbol:
        use = loop, iterations if self.is_exact else 0
        if use not in self.uses:
            self.uses.append(use)
        return -1 - self.uses.index(use)

    def inner(self, loop: int) -> set[int]:
        """All loops inside the loop."""
        direct = {self.uses[-1 - symbol][0] for symbol in self.bodies[loop] if symbol < 0}
        return direct.union(*(self.inner(one) for one in direct))


def find_loops(tokens: Ints, stretch: Ints | None = None, is_exact: bool = False) -> Loops:
    """tokens: equal for equal calls. stretch: equal while nothing is missing in between."""
    stretches = np.zeros(len(tokens), np.int64) if stretch is None else stretch
    found = Loops(tokens, stretches, is_exact)
    symbols, starts = tokens.astype(np.int64), np.arange(len(tokens) + 1)
    size = 1
    while size <= min(len(symbols) // 2, LONGEST_BODY):
        merged = _merged(found, symbols, starts, size)
        if merged:
            symbols, starts = _replaced(found, symbols, starts, size, merged)
        size = 1 if merged else size + 1
    return found


def find_again(known: Loops, loop: int, place: Ints) -> Loops:
    """The loop and those inside it in a part of the sequence, in which others do not interrupt
    it."""
    found = Loops(
        known.tokens[place],
        known.stretch[place],
        known.is_exact,
        known.bodies,
        known.uses,
        [[] for _ in known.runs],
    )
    symbols, starts = found.tokens.astype(np.int64), np.arange(len(place) + 1)
    for one in sorted({*known.inner(loop), loop}):
        size = len(known.bodies[one])
        merged = _merged(found, symbols, starts, size, one, one == loop)
        symbols, starts = _replaced(found, symbols, starts, size, merged)
    return found


Merged = tuple[int, int, int]  # place of the first element, iterations, loop


def _merged(
    found: Loops,
    symbols: Ints,
    starts: Ints,
    size: int,
    only: int | None = None,
    is_outermost: bool = False,
) -> list[Merged]:
    """Elements that become loops with bodies of this size, in order. only: this one loop."""
    stretch = found.stretch[starts[:-1]]
    same = (symbols[:-size] == symbols[size:]) & (stretch[:-size] == stretch[size:])
    edges = np.flatnonzero(np.diff(np.concatenate([[0], same.view(np.int8), [0]])))
    begins, ends = edges[::2], edges[1::2]
    is_long = ends - begins >= size
    merged: list[Merged] = []
    taken = 0
    for begin, end in zip(begins[is_long].tolist(), (ends[is_long] + size).tolist()):
        begin = max(begin, taken)
        if end - begin < 2 * size:
            continue
        loop, before = _loop_of(found, tuple(symbols[begin : begin + size].tolist()), only)
        if loop < 0:
            continue
        iterations = (end - begin - before) // size
        found.runs[loop].append(Run(starts[begin : end + 1], before, iterations, size))
        merged.append((begin + before, iterations, loop))
        taken = begin + before + iterations * size
    if is_outermost or not found.is_exact:
        loops = dict.fromkeys(loop for *_, loop in merged)
        for loop in loops if only is None else [only]:
            merged += _alone(found, symbols, starts, merged, loop)
    return sorted(merged)


def _loop_of(found: Loops, body: Body, only: int | None) -> tuple[int, int]:
    """The loop with this body, which may begin elsewhere in it: and how many elements precede the
    place where the known body begins. -1: it is another than the only one."""
    twice = np.array(body * 2, np.int64).tobytes()
    for loop, known in enumerate(found.bodies):
        if len(known) == len(body) and only in (None, loop):
            wanted, at = np.array(known, np.int64).tobytes(), -1
            while (at := twice.find(wanted, at + 1)) >= 0:
                if at % 8 == 0:
                    return loop, at // 8
    if only is not None:
        return -1, 0
    found.bodies.append(body)
    found.runs.append([])
    return len(found.bodies) - 1, 0


def _alone(
    found: Loops, symbols: Ints, starts: Ints, merged: Sequence[Merged], loop: int
) -> list[Merged]:
    """Places at which the body of the loop stands alone."""
    body = found.bodies[loop]
    size = len(body)
    free = np.ones(len(symbols), bool)
    for first, iterations, of in merged:
        free[first : first + iterations * len(found.bodies[of])] = False
    fits = np.ones(max(0, len(symbols) - size + 1), bool)
    stretch = found.stretch[starts[:-1]]
    for place, symbol in enumerate(body):
        own = slice(place, place + len(fits))
        fits &= (symbols[own] == symbol) & free[own] & (stretch[own] == stretch[: len(fits)])
    alone, taken = [], 0
    for first in np.flatnonzero(fits).tolist():
        if first >= taken:
            found.runs[loop].append(Run(starts[first : first + size + 1], 0, 1, size))
            alone.append((first, 1, loop))
            taken = first + size
    return alone


def _replaced(
    found: Loops, symbols: Ints, starts: Ints, size: int, merged: Sequence[Merged]
) -> tuple[Ints, Ints]:
    """The sequence with loops in place of their iterations."""
    first, iterations, _ = np.array(merged, np.int64).reshape(-1, 3).T
    symbols = symbols.copy()
    symbols[first] = [found.symbol(one, number) for _, number, one in merged]
    is_kept = ~covered(first + 1, first + iterations * size, len(symbols))
    return symbols[is_kept], starts[np.append(is_kept, True)]


FEWEST_STEPS = whole("loops.steps")
OFTEN = whole("loops.often")
MOST_OF_IT, REST, INNER = threshold("loops.time"), threshold("loops.rest"), threshold("loops.inner")
SEVERAL, ALL = 1.1, 0.9  # times: less is once, but for exceptions; of the calls
TWICE = 2  # in a row: these are parts of a step, as nobody evaluates after every second one


class Kind(IntEnum):
    """The part of a call in a step."""

    DATA = 0  # a bulk collective in which all wait for all
    BARRIER = 1  # it moves nothing
    ROOTED = 2  # collectives with a root, files: checkpoints consist of these, and of barriers
    SMALL = 3  # other collectives
    MESSAGE = 4  # messages, and what completes them
    START = 5  # the start of a message that another call completes


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
    calls: int  # that are in it

    @property
    def iterations(self) -> int:
        return self.loops.iterations(self.loop)


def levels(line: Line) -> list[Level]:
    """The outermost first; empty: nothing repeats. Loops with fixed numbers of iterations have an
    order that occurs; those with free numbers are shorter in words, and are all there is where the
    numbers vary, or where the first or last turn differs from the others. A number that varies in
    turns is a longer loop in the first reading: both are levels then."""
    exact, free = (
        _levels(line, find_loops(line.token, line.stretch, is_exact)) for is_exact in (True, False)
    )
    if not exact or not free:
        return exact or free
    often, often_free = exact[0].iterations, free[0].iterations
    if (
        exact[0].calls < ALL * free[0].calls
        or often > SEVERAL * often_free
        or often < often_free <= SEVERAL * often
    ):
        return free
    if often_free > SEVERAL * often:
        return [*exact, *(one for one in free if one.iterations > SEVERAL * exact[-1].iterations)]
    return exact


def _levels(line: Line, loops: Loops) -> list[Level]:
    spent_ns = np.diff(line.upto_ns, prepend=line.upto_ns[:1])
    inside = {
        loop: loops.inside(loop)
        for loop in range(len(loops.bodies))
        if loops.iterations(loop) >= FEWEST_STEPS
    }
    times = {
        loop: float(spent_ns[flags].sum())
        for loop, flags in inside.items()
        if (line.kind[flags] != Kind.BARRIER).any()
    }
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
            one
            for one in times
            if one in loops.inner(loop)
            and _has_the_work(line, loops, one, inside[loop], inside[one])
        ]
        own, next_loop = loop, max(inner, key=times.__getitem__) if inner else None
        if next_loop is None or not _is_output(line, inside[own], inside[next_loop], spent_ns):
            found.append(Level(loops, own, around, int(inside[own].sum())))
        around, loop = (*around, own), next_loop
    return found


def _has_the_work(line: Line, loops: Loops, loop: int, outer: Flags, inner: Flags) -> bool:
    """Whether the inner loop makes nearly all bulk collectives of the outer one, or else calls. Of
    messages alone, it must exchange some, several times: no bursts of starts, no spins."""
    in_a_row = loops.iterations(loop) / max(1, len(loops.runs[loop]))
    if in_a_row <= SEVERAL * TWICE:
        return False
    data = line.kind == Kind.DATA
    own, kinds = outer & inner, line.kind[outer & inner]
    if (kinds >= Kind.MESSAGE).all():
        is_exchange = len(loops.alphabet(loop)) > 1 and (kinds == Kind.MESSAGE).any()
        return is_exchange and in_a_row >= OFTEN and not (data & outer).any()
    counted = data if (data & outer).any() else np.ones(len(data), bool)
    return bool((own & counted).sum() > INNER * (outer & counted).sum())


def _is_output(line: Line, outer: Flags, inner: Flags, spent_ns: Ints) -> bool:
    """Whether the outer loop adds only collectives with a root, barriers and files, in little
    time."""
    rest = outer & ~inner
    is_short = spent_ns[rest].sum() < REST * spent_ns[outer].sum()
    return bool(np.isin(line.kind[rest], [Kind.BARRIER, Kind.ROOTED]).all() and is_short)


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

"""Loops of loops in a sequence: what repeats directly, innermost first.

    a a b a a a b c a a b a b c   ->   A b A b c A b A b c   ->   B c B c   ->   C
                                       A = a                      B = A b        C = B c

A loop is a body that follows itself: a tandem repeat, as ScalaTrace's regular section descriptors.
The shortest bodies are sought first, so those of longer ones hold loops. In an exact search, a loop
inside another has the same number of iterations each time: forward and backward pass of equal
layers stay apart. Otherwise the number is free, halos of three and of four messages are the same
loop, and a body that stands alone is a loop of one iteration. No loop spans a hole in the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..base.columns import Flags, Ints, covered, np
from ..base import whole

LONGEST_BODY = whole("loops.body")

Symbol = int  # a token, from 0 on; below 0: -1 - its place among the uses of loops
Body = tuple[Symbol, ...]


@dataclass(frozen=True)
class Run:
    """Iterations of a loop that follow each other directly. The elements of a body are tokens and
    loops; some of an iteration that is not whole may precede and follow."""

    loop: int
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
    symbols: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # the outermost
    starts: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # of these, and the end

    def iterations(self, loop: int) -> int:
        return sum(run.iterations for run in self.runs[loop])

    def edges(self, loop: int) -> tuple[Ints, Ints]:
        """Begins and ends of the iterations of a loop."""
        edges = [run.edges for run in self.runs[loop]]
        return (
            np.concatenate([own[:-1] for own in edges]), np.concatenate([own[1:] for own in edges])
        )

    def inside(self, loop: int) -> Flags:
        """Which tokens are in iterations of the loop?"""
        return covered(*self.edges(loop), len(self.tokens))

    def alphabet(self, loop: int) -> frozenset[int]:
        """All tokens in the body, also in the loops in it."""
        own: set[int] = set()
        for symbol in self.bodies[loop]:
            own |= {symbol} if symbol >= 0 else self.alphabet(self.loop_of(symbol))
        return frozenset(own)

    def loop_of(self, symbol: Symbol) -> int:
        return self.uses[-1 - symbol][0]

    def in_a_row(self, loop: int) -> float:
        return self.iterations(loop) / max(1, len(self.runs[loop]))

    def symbol(self, loop: int, iterations: int) -> Symbol:
        use = loop, iterations if self.is_exact else 0
        if use not in self.uses:
            self.uses.append(use)
        return -1 - self.uses.index(use)

    def inner(self, loop: int) -> set[int]:
        """All loops inside the loop."""
        direct = {self.loop_of(symbol) for symbol in self.bodies[loop] if symbol < 0}
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
    found.symbols, found.starts = symbols, starts
    return found


def find_again(known: Loops, loop: int, place: Ints) -> Loops:
    """The loop and those inside it in a part of the sequence, in which others do not interrupt
    it."""
    found = Loops(
        known.tokens[place], known.stretch[place], known.is_exact, known.bodies, known.uses,
        [[] for _ in known.runs],
    )
    symbols, starts = found.tokens.astype(np.int64), np.arange(len(place) + 1)
    for one in sorted({*known.inner(loop), loop}):
        size = len(known.bodies[one])
        is_long = len(symbols) >= size
        merged = _merged(found, symbols, starts, size, one, one == loop) if is_long else []
        if merged:
            symbols, starts = _replaced(found, symbols, starts, size, merged)
    found.symbols, found.starts = symbols, starts
    return found


Merged = tuple[int, int, int]  # place of the first element, iterations, loop


def _merged(
    found: Loops, symbols: Ints, starts: Ints, size: int, only: int | None = None,
    is_outermost: bool = False,
) -> list[Merged]:
    """Elements that become loops with bodies of this size, in order. only: this one loop."""
    stretch = found.stretch[starts[:-1]]
    same = (symbols[:-size] == symbols[size:]) & (stretch[:-size] == stretch[size:])
    edges = np.flatnonzero(np.diff(np.concatenate([[0], same.view(np.int8), [0]])))
    begins, ends = edges[::2], edges[1::2]
    is_long = ends - begins >= size
    merged: list[Merged] = []
    loops: dict[int, None] = {}
    taken = 0
    for begin, end in zip(begins[is_long].tolist(), (ends[is_long] + size).tolist()):
        begin = max(begin, taken)
        if end - begin < 2 * size:
            continue
        loop, before = _loop_of(found, tuple(symbols[begin : begin + size].tolist()), only)
        if loop < 0:
            continue
        iterations = (end - begin - before) // size
        found.runs[loop].append(Run(loop, starts[begin : end + 1], before, iterations, size))
        merged.append((begin + before, iterations, loop))
        loops[loop] = None
        taken = begin + before + iterations * size
    if is_outermost or not found.is_exact:
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
            found.runs[loop].append(Run(loop, starts[first : first + size + 1], 0, 1, size))
            alone.append((first, 1, loop))
            taken = first + size
    return alone


def _replaced(
    found: Loops, symbols: Ints, starts: Ints, size: int, merged: Sequence[Merged]
) -> tuple[Ints, Ints]:
    """The sequence with loops in place of their iterations."""
    first, iterations, _ = np.array(merged, np.int64).T
    symbols = symbols.copy()
    symbols[first] = [found.symbol(one, number) for _, number, one in merged]
    is_kept = ~covered(first + 1, first + iterations * size, len(symbols))
    return symbols[is_kept], starts[np.append(is_kept, True)]

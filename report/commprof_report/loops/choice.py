"""Which loops may be the step: the outermost of those that take most of the time, and each loop
inside it that does nearly all of its work.

Nothing in the calls distinguishes 60 steps of 12 layers from 60 epochs of 12 steps: both are
levels, and stepping.py asks for evidence. A loop around another that only writes output, such as a
checkpoint every 100 steps, is no level.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ..base.columns import Columns, Flags, Ints, np
from ..base.thresholds import threshold, whole
from .repeats import Loops, find_loops

FEWEST_STEPS = whole("loops.steps")
OFTEN = whole("loops.often")
MOST_OF_IT, REST, INNER = threshold("loops.time"), threshold("loops.rest"), threshold("loops.inner")
SEVERAL, ALL = 1.1, 0.9  # times: less is once, but for exceptions


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
    numbers vary."""
    exact, free = (
        _levels(line, find_loops(line.token, line.stretch, is_exact)) for is_exact in (True, False)
    )
    if not exact or not free:
        return exact or free
    is_as_long = exact[0].time_ns >= ALL * free[0].time_ns
    is_as_far_out = exact[0].iterations <= SEVERAL * free[0].iterations
    is_same = (
        len(exact) == len(free) and free[0].iterations <= SEVERAL * exact[0].iterations
    )
    return exact if is_as_long and is_as_far_out and not is_same else free


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
    if loops.in_a_row(loop) < SEVERAL:
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

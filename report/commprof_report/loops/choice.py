"""Which loop is the step.

The outermost of the loops that take most of the time, as long as the rest of its body is a part of
each step. Otherwise the loop inside it is: 25 steps and a checkpoint are no step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from ..base.arrays import np
from ..base.columns import Columns, Flags, Ints
from ..base.thresholds import threshold, whole
from .repeats import Loops, find_loops

FEWEST_STEPS = whole("loops.steps")
OFTEN = whole("loops.often")
MOST_OF_IT, REST = threshold("loops.time"), threshold("loops.rest")
SEVERAL = 1.1  # times: less is once, but for exceptions


class Kind(IntEnum):
    """The part of a call in a step."""

    DATA = 0  # a bulk collective in which all wait for all
    ROOTED = 1  # collectives with a root, barriers, files: checkpoints consist of these
    SMALL = 2  # other collectives
    MESSAGE = 3  # messages, and what completes them


@dataclass(frozen=True)
class Line(Columns):
    """The calls of a thread in order."""

    token: Ints
    stretch: Ints  # equal while no call is missing in between
    kind: Ints
    # time up to the end of the call in which the thread was in it or came to it
    upto_ns: Ints


@dataclass(frozen=True)
class Refused:
    """A loop around the step, or inside it, that is not the step."""

    loop: int
    iterations: int
    is_outer: bool
    is_close: bool  # only times decided


@dataclass(frozen=True)
class Choice:
    loops: Loops
    loop: int
    refused: list[Refused]

    def inside(self) -> Iterator[Choice]:
        """The loops inside it that take much of the time, outermost first: what interrupts most of
        its iterations may hide the step."""
        inner = [
            loop for loop in self.loops.inner(self.loop)
            if self.loops.iterations(loop) >= FEWEST_STEPS and _repeats(self.loops, loop)
            and len(self.loops.bodies[loop]) > 1
        ]
        for loop in sorted(inner, key=lambda loop: (-len(self.loops.inner(loop)), loop)):
            outer = Refused(self.loop, self.loops.iterations(self.loop), True, True)
            yield Choice(self.loops, loop, [outer])


def choose(line: Line) -> Choice | None:
    """None: nothing repeats."""
    loops = find_loops(line.token, line.stretch)
    spent_ns = np.diff(line.upto_ns, prepend=line.upto_ns[:1])
    inside = {
        loop: loops.inside(loop) for loop in range(len(loops.bodies))
        if loops.iterations(loop) >= FEWEST_STEPS
    }
    times = {loop: float(spent_ns[flags].sum()) for loop, flags in inside.items()}
    if not times:
        return None
    least = MOST_OF_IT * max(times.values())
    likely = {loop for loop, time_ns in times.items() if time_ns >= least}
    outermost = likely - set().union(*(loops.inner(loop) for loop in likely))
    loop = max(outermost, key=times.__getitem__)
    refused: list[Refused] = []
    while True:
        others = [one for one in inside if one in loops.inner(loop) and _repeats(loops, one)]
        if not others:
            break
        one = max(others, key=lambda one: (not _is_below(loops, loop, one), times[one]))
        extra_ns = _pauses_before(loops, one, spent_ns)
        is_part, is_close = _is_part(
            line, spent_ns, inside[loop], inside[one], extra_ns, _is_below(loops, loop, one)
        )
        outer, inner = (Refused(each, loops.iterations(each), each == loop, is_close)
                        for each in (loop, one))
        refused.append(inner if is_part else outer)
        if is_part:
            break
        loop = one
    return Choice(loops, loop, refused)


def _repeats(loops: Loops, loop: int) -> bool:
    return loops.iterations(loop) >= SEVERAL * len(loops.runs[loop])


def _is_part(
    line: Line, spent_ns: Ints, outer: Flags, inner: Flags, extra_ns: float, is_below: bool
) -> tuple[bool, bool]:
    """Whether what the outer loop has besides the inner one is a part of each step, and whether
    only times say so. extra_ns: of the pauses before the inner loop. is_below: the inner loop looks
    like a part of a step: a few equal buckets are, if the pauses come before the first of them."""
    rest, own = outer & ~inner, outer & inner
    if (line.kind[rest] == Kind.DATA).any():
        return True, False
    if (line.kind[own] == Kind.DATA).any():
        return is_below and extra_ns >= REST * float(spent_ns[outer].sum()), False
    if (line.kind[own] != Kind.ROOTED).any():
        rest &= line.kind != Kind.ROOTED
        if not rest.any():
            return False, False
    share = (float(spent_ns[rest].sum()) + extra_ns) / max(1.0, float(spent_ns[outer].sum()))
    return share >= REST or is_below, True


def _is_below(loops: Loops, outer: int, inner: int) -> bool:
    """Whether the inner loop has few iterations in a row, or occurs at several places of the outer
    one's body: the fields, directions and reductions of a step."""
    in_a_row = loops.iterations(inner) / len(loops.runs[inner])
    return in_a_row < OFTEN or loops.places(outer, inner) > 1


def _pauses_before(loops: Loops, loop: int, spent_ns: Ints) -> float:
    """By how much the first iterations of the loop in a row begin later than the others do."""
    first = np.array([run.edges[0] for run in loops.runs[loop]], np.int64)
    others = np.concatenate([run.edges[1:-1] for run in loops.runs[loop]])
    usual_ns = np.median(spent_ns[others]) if len(others) else 0
    return float(np.maximum(0, spent_ns[first] - usual_ns).sum())

"""The time that a GPU spent in each combination of states, from intervals that may overlap; all
overlap figures are sums of these times.

    computing      ======   =====            one time for each of the 16 combinations; they add up
    communicating     =========      ==      over windows, devices and ranks, and their sum is the
                                             analysed time

The library computes the same sums for the whole run (src/gpu/overlap.c); here they are computed for
each step from single activities.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Iterator, Sequence

COMPUTING, COMMUNICATING, COPYING, IN_MPI = 1, 2, 4, 8
STATES = 16
ON_DEVICE = COMPUTING | COMMUNICATING | COPYING

Interval = tuple[int, int, int]  # begin, end, one state or several


# Times of one or several devices, as defined in docs/SCHEMA.md, Words.
Busy = namedtuple(
    "Busy",
    "traced_ns computing_ns communicating_ns copying_ns in_mpi_ns exposed_ns strictly_exposed_ns "
    "hidden_ns only_copying_ns idle_ns starved_ns exposed_mpi_ns",
)


def busy(state_ns: Sequence[int]) -> Busy:
    """Computes them from the time in each combination of states."""

    def time_in(states: int, not_in: int = 0) -> int:
        return sum(
            ns for state, ns in enumerate(state_ns)
            if state & states == states and not state & not_in
        )

    return Busy(
        traced_ns=sum(state_ns),
        computing_ns=time_in(COMPUTING),
        communicating_ns=time_in(COMMUNICATING),
        copying_ns=time_in(COPYING),
        in_mpi_ns=time_in(IN_MPI),
        exposed_ns=time_in(COMMUNICATING, COMPUTING),
        strictly_exposed_ns=time_in(COMMUNICATING, COMPUTING | COPYING),
        hidden_ns=time_in(COMMUNICATING | COMPUTING),
        only_copying_ns=time_in(COPYING, COMPUTING | COMMUNICATING),
        idle_ns=time_in(0, ON_DEVICE),
        starved_ns=time_in(IN_MPI, ON_DEVICE),
        exposed_mpi_ns=time_in(IN_MPI, COMPUTING),
    )


def added(states: Iterable[Sequence[int]]) -> list[int]:
    """The sums over several devices or spans."""
    return [sum(column) for column in zip([0] * STATES, *states)]


def pieces(intervals: Iterable[Interval]) -> Iterator[Interval]:
    """Divides overlapping intervals into consecutive pieces, each with all its states."""
    edges: list[tuple[int, int, int]] = []
    for begin_ns, end_ns, state in intervals:
        if begin_ns < end_ns:
            edges += ((begin_ns, 1, state), (end_ns, -1, state))
    edges.sort()
    running = [0] * STATES
    states, since_ns = 0, 0
    for at_ns, change, state in edges:
        if states and since_ns < at_ns:
            yield since_ns, at_ns, states
        running[state] += change
        states = sum(bit for bit in (COMPUTING, COMMUNICATING, COPYING, IN_MPI) if running[bit])
        since_ns = at_ns


def time_by_states(
    intervals: Iterable[Interval], spans: Iterable[tuple[int, int]]
) -> Iterator[list[int]]:
    """For each span the time in each combination of states. Each interval has one state; spans are
    disjoint and in order."""
    found = list(pieces(intervals))
    place = 0
    for begin_ns, end_ns in spans:
        state_ns = [0] * STATES
        while place < len(found) and found[place][1] <= begin_ns:
            place += 1
        at = place
        while at < len(found) and found[at][0] < end_ns:
            piece_begin_ns, piece_end_ns, states = found[at]
            state_ns[states] += min(piece_end_ns, end_ns) - max(piece_begin_ns, begin_ns)
            at += 1
        state_ns[0] = end_ns - begin_ns - sum(state_ns)
        yield state_ns


def joined(spans: Iterable[tuple[int, int]], gap_ns: int = 0) -> list[tuple[int, int]]:
    """The spans in order; those that overlap, or are not further apart than the gap, are joined."""
    found: list[tuple[int, int]] = []
    for begin_ns, end_ns in sorted(span for span in spans if span[0] < span[1]):
        if found and begin_ns <= found[-1][1] + gap_ns:
            found[-1] = found[-1][0], max(found[-1][1], end_ns)
        else:
            found.append((begin_ns, end_ns))
    return found


def common(
    left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The intersection of two lists of spans, each a result of joined()."""
    found = []
    place = other = 0
    while place < len(left) and other < len(right):
        begin_ns, end_ns = (
            max(left[place][0], right[other][0]), min(left[place][1], right[other][1]),
        )
        if begin_ns < end_ns:
            found.append((begin_ns, end_ns))
        if left[place][1] < right[other][1]:
            place += 1
        else:
            other += 1
    return found

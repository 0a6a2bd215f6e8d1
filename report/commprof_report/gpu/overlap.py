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
from collections.abc import Iterable, Sequence
from typing import List, Tuple

from ..base.columns import Columns, np

COMPUTING, COMMUNICATING, COPYING, IN_MPI = 1, 2, 4, 8
KINDS = (COMPUTING, COMMUNICATING, COPYING, IN_MPI)
SPAN = 0  # among these: a span that is analysed
STATES = 16
ON_DEVICE = COMPUTING | COMMUNICATING | COPYING

Spans = List[Tuple[int, int]]

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


def time_by_states(active: Columns, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """For each span the time in each combination of states. active: intervals of one state each.
    Spans are disjoint and in order."""
    active = active.take(active.start_ns < active.end_ns)
    begins, ends = np.array(spans, np.int64).reshape(-1, 2).T
    edges_ns = np.concatenate([active.start_ns, active.end_ns, begins, ends])
    order = np.argsort(edges_ns, kind="stable")
    of = np.concatenate([active.state, active.state, np.full(2 * len(begins), SPAN)])[order]
    change = np.repeat([1, -1] * 2, np.repeat([len(active), len(begins)], 2))[order]
    running = {kind: np.cumsum(np.where(of == kind, change, 0)) > 0 for kind in (SPAN, *KINDS)}
    states = np.sum([kind * running[kind] for kind in KINDS], axis=0)
    span = np.cumsum((of == SPAN) & (change > 0)) - 1
    lasted_ns = np.diff(edges_ns[order], append=edges_ns.max(initial=0))
    found = np.zeros((len(begins), STATES), np.int64)
    inside = running[SPAN]
    np.add.at(found, (span[inside], states[inside]), lasted_ns[inside])
    return found


def joined(spans: Iterable[tuple[int, int]]) -> Spans:
    """The spans in order; those that overlap or touch are joined."""
    found: Spans = []
    for begin_ns, end_ns in sorted(span for span in spans if span[0] < span[1]):
        if found and begin_ns <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end_ns)
        else:
            found.append((begin_ns, end_ns))
    return found


def common(left: Spans, right: Spans) -> Spans:
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

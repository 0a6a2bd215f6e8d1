"""The critical path of a step: which rank, doing what, made the step as long as it was.

It is followed back from the end of the rank whose step ends last. Where a rank waited, the path goes on at the rank that it waited for, at
the time at which that rank arrived. What remains are the parts of the ranks' timelines that no other rank held up.

    rank 0  |=== outside ===|- waits for 1 -|=transfer=|        path: rank 1 outside MPI, then transfer on rank 0
    rank 1  |======== outside =============>|transfer|
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..late.late_ranks import Late
from ..late.timelines import FILES, OUTSIDE, TRANSFER, UNSEEN, UNSPLIT, WAITING, Timeline
from .boundaries import AlignedNs, Steps
from .step_costs import StepRow

STATES = {OUTSIDE: "outside", TRANSFER: "transfer", FILES: "files", WAITING: "waiting", UNSPLIT: "not split"}
KNOWN = 0.5  # share of a path that must be split


class PathRow(NamedTuple):
    """Part of a step's critical path. call: empty outside MPI."""

    step: int
    rank: int
    state: str
    call: str
    time_ns: int
    share: float


class Span(NamedTuple):
    """A part of the path, on the run's time axis."""

    rank: int
    begin_ns: int
    end_ns: int
    state: int
    call: str

    @property
    def time_ns(self) -> int:
        return self.end_ns - self.begin_ns


def critical_paths(steps: Steps, rows: Sequence[StepRow], aligned_ns: AlignedNs, late: Late) -> list[PathRow]:
    """Of the complete steps after the warm-up, the longest parts first; nothing of a step whose path was not seen, or was not split."""
    wanted = {row.step for row in rows if row.is_complete and not row.is_warm_up and row.ranks > 1}
    begins: dict[int, dict[int, int]] = {}
    ends: dict[int, dict[int, int]] = {}
    for rank, of_rank in steps.by_rank().items():
        for step in of_rank:
            if step.step in wanted:
                begins.setdefault(step.step, {})[rank] = aligned_ns(rank, step.begin_ns)
                ends.setdefault(step.step, {})[rank] = aligned_ns(rank, step.end_ns)
    return [row for step in sorted(ends) for row in _rows(step, list(spans(late.timelines, begins[step], ends[step])))]


def _rows(step: int, found: Sequence[Span]) -> Iterator[PathRow]:
    whole_ns = sum(span.time_ns for span in found)
    unknown_ns = sum(span.time_ns for span in found if span.state in (WAITING, UNSPLIT))
    if not whole_ns or any(span.state == UNSEEN for span in found) or unknown_ns > (1 - KNOWN) * whole_ns:
        return
    parts: Counter = Counter()
    for span in found:
        parts[span.rank, span.state, span.call] += span.time_ns
    for (rank, state, call), time_ns in sorted(parts.items(), key=lambda part: (-part[1], part[0])):
        yield PathRow(step, rank, STATES[state], call, time_ns, time_ns / whole_ns)


def spans(lines: dict[int, Timeline], begins: dict[int, int], ends: dict[int, int]) -> Iterator[Span]:
    """The path's parts, the latest first. Times are on the run's axis; a path ends where the step of the rank begins that it has led to."""
    rank = max(ends, key=lambda one: (ends[one], -one))
    time_ns, left = ends[rank], set()
    while rank is not None:
        left.add((rank, time_ns))
        follows = None
        for piece in lines[rank].back_from(time_ns):
            begin_ns = max(piece.begin_ns, begins[rank])
            if piece.end_ns <= begins[rank]:
                break
            is_held_up = piece.state == WAITING and piece.waits_for in begins and (piece.waits_for, piece.end_ns) not in left
            if is_held_up:
                follows, time_ns = piece.waits_for, piece.end_ns
                break
            yield Span(rank, begin_ns, piece.end_ns, piece.state, piece.call if piece.state != OUTSIDE else "")
        rank = follows

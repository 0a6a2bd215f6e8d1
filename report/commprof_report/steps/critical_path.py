"""The critical path of a step: which rank, doing what, made the step as long as it was.

It is followed back from the end of the rank whose step ends last. Where a rank waited, the path
goes on at the rank that it waited for, at the time at which that rank arrived. The rest are the
parts of the ranks' timelines that no other rank held up.

    rank 0  |=== outside ===|- waits for 1 -|=transfer=|      path: rank 1 outside MPI, then
    rank 1  |======== outside =============>|transfer|              transfer on rank 0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..base.field import Field
from ..base import Row, row_type, threshold
from ..base.units import visible
from ..late.late_ranks import Late
from ..late.timelines import FILES, OUTSIDE, TRANSFER, UNSEEN, UNSPLIT, WAITING, Timeline
from ..run.alignment import Alignment
from .boundaries import Steps
from .step_costs import StepRow

STATES = {
    OUTSIDE: "outside", TRANSFER: "transfer", FILES: "files", WAITING: "waiting",
    UNSPLIT: "not split",
}


def doing_text(state: str, call: str, outside: str = "outside MPI") -> str:
    if state == "outside":
        return outside
    remark = {"waiting": " (waiting, for whom is not known)", "not split": " (not split)"}.get(
        state, ""
    )
    return f"in {visible(call)}{remark}"


PATH = (
    Field(
        "step", "a part of the critical path of this step, on this rank; the longest first", "step"
    ),
    Field("rank", "", "rank"),
    Field(
        "state",
        "`outside` (MPI; `call` is empty), `transfer`, `files`, `not split`, `waiting` (for whom "
        "is not known)",
        "doing", is_number=False, of_row=lambda row: doing_text(row.state, row.call),
    ),
    Field("call", ""),
    Field("time_ns", "sum over the path; over the whole path of the step", "time"),
    Field("share", "", "of path"),
)
PathRow = row_type("PathRow", PATH)


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


def critical_paths(
    steps: Steps, rows: Sequence[StepRow], alignment: Alignment, late: Late
) -> list[Row]:
    """Paths of the complete steps after the warm-up, the longest parts first; nothing of a step
    whose path was not seen, or was not split."""
    wanted = {row.step for row in rows if row.is_complete and not row.is_warm_up and row.ranks > 1}
    times = steps.aligned(alignment, wanted)
    return [
        row for step in sorted(times)
        for row in _rows(step, critical_path(late.timelines, times[step]))
    ]


def _rows(step: int, found: Sequence[Span]) -> Iterator[Row]:
    whole_ns = sum(span.time_ns for span in found)
    parts: Counter = Counter()
    for span in found:
        parts[span.rank, span.state, span.call] += span.time_ns
    for (rank, state, call), time_ns in sorted(parts.items(), key=lambda part: (-part[1], part[0])):
        yield PathRow(step, rank, STATES[state], call, time_ns, time_ns / whole_ns)


def critical_path(lines: dict[int, Timeline], times: Mapping[int, tuple[int, int]]) -> list[Span]:
    """Path of a step, by the times at which it begins and ends on each rank: its parts, the latest
    first. Empty if it was not seen, or not split."""
    found = list(_spans(lines, times))
    return found if is_known(found) else []


def is_known(path: Sequence[Span]) -> bool:
    whole_ns = sum(span.time_ns for span in path)
    known_ns = sum(span.time_ns for span in path if span.state not in (WAITING, UNSPLIT))
    is_seen = all(span.state != UNSEEN for span in path)
    return is_seen and known_ns >= threshold("steps.path") * whole_ns > 0


def _spans(lines: dict[int, Timeline], times: Mapping[int, tuple[int, int]]) -> Iterator[Span]:
    """A path ends where the step of the rank begins that it has led to."""
    rank: int | None = max(times, key=lambda one: (times[one][1], -one))
    time_ns, left = max(end_ns for _, end_ns in times.values()), set()
    while rank is not None:
        left.add((rank, time_ns))
        follows, step_begin_ns = None, times[rank][0]
        for piece in lines[rank].back_from(time_ns):
            begin_ns = max(piece.begin_ns, step_begin_ns)
            if piece.end_ns <= step_begin_ns:
                break
            is_held_up = (
                piece.state == WAITING and piece.waits_for in times
                and (piece.waits_for, piece.end_ns) not in left
            )
            if is_held_up:
                follows, time_ns = piece.waits_for, piece.end_ns
                break
            yield Span(
                rank, begin_ns, piece.end_ns, piece.state,
                piece.call if piece.state != OUTSIDE else "",
            )
        rank = follows

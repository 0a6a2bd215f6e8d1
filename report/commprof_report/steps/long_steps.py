"""Why a step is longer than usual: calls that others do not have, or more time outside MPI or in a
call; and the rank that the others wait for. And whether steps became slower over the run: Kendall's
test on the medians of parts of it.

The steps are divided, in order of time, into up to 16 parts with the same number of steps, three or
more. A run has less than 1 % probability of showing a trend if all orders of their medians are
equally probable.

The critical path of a step: which rank, doing what, made the step as long as it was.

It is followed back from the end of the rank whose step ends last. Where a rank waited, the path
goes on at the rank that it waited for, at the time at which that rank arrived. The rest are the
parts of the ranks' timelines that no other rank held up.

    rank 0  |=== outside ===|- waits for 1 -|=transfer=|      path: rank 1 outside MPI, then
    rank 1  |======== outside =============>|transfer|              transfer on rank 0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import NamedTuple

from ..base import (
    Columns,
    Field,
    Ints,
    Row,
    TextInts,
    Texts,
    by_rank,
    chance,
    gathered,
    grouped,
    np,
    numbered,
    row_type,
    threshold,
    units,
    whole,
)
from ..late.late_ranks import Late
from ..late.timelines import FILES, OUTSIDE, TRANSFER, UNSEEN, UNSPLIT, WAITING, Timeline
from ..late.verdict import spans
from ..run.alignment import Alignment
from .boundaries import Boundaries, Steps, means_of_steps

COMMON = threshold("steps.foreign")
EXPLAINS = threshold("steps.explains")


def explained(
    rows: Boundaries, outside_ns: Ints, calls: Columns, is_driven: bool, texts: Texts
) -> dict[int, str]:
    """For each outlier which calls only it has, and which calls took longer than usual on which
    ranks. outside_ns: of each row, time outside MPI, or between its calls. calls: by row and name,
    total_ns on all threads, or on the driving one and on the device."""
    outliers = np.unique(rows.step[rows.is_outlier]).tolist()
    if not outliers:
        return {}
    is_usual = ~rows.is_outlier & ~rows.is_warm_up
    usual, usual_outside_ns = rows.take(is_usual), np.zeros(len(rows))
    usual_ns = median(means_of_steps(usual).tolist() or [0.0])
    for rank, own in by_rank(usual.world_rank):
        usual_outside_ns[rows.world_rank == rank] = np.median(outside_ns[is_usual][own])
    more_outside_ns, rank = outside_ns - usual_outside_ns, rows.world_rank[calls.row]
    steps = np.maximum(1, np.bincount(usual.world_rank, minlength=rows.world_rank.max() + 1))[rank]
    kind = numbered(rank, calls.name)
    more_ns = calls.total_ns - np.bincount(kind, calls.total_ns * is_usual[calls.row])[kind] / steps
    foreign = foreign_calls(rows.step[calls.row], calls.name, len(np.unique(rows.step)))
    said = {}
    for step in outliers:
        is_own = rows.step == step
        is_in = is_own[calls.row]
        names = [texts.texts[call] for call in calls.name[is_in].tolist()]
        only_here = sorted({texts.texts[call] for call in foreign} & {*names})
        longer = gathered(zip(names, more_ns[is_in].tolist()))
        excess_ns = float(rows.step_ns[is_own].mean()) - usual_ns
        said[step] = why_longer(
            excess_ns, only_here, more_outside_ns[is_own].tolist(), longer, is_driven
        )
    return said


def foreign_calls(step: Ints, call: TextInts, steps: int) -> set[int]:
    """The calls that few of the steps have."""
    order, groups = grouped(call, step)
    met, count = np.unique(call[order[groups.first]], return_counts=True)
    return {*met[count < COMMON * steps].tolist()}


def why_longer(
    excess_ns: float,
    foreign: list[str],
    more: Sequence[float],
    longer: Mapping[str, Sequence[float]],
    is_driven: bool,
) -> str:
    """more: how much longer each rank was outside MPI; longer: in each call. No rank is named: whom
    the others wait for, the test of late says (slowest.py)."""
    said = [f"{' and '.join(foreign)} in it"] if foreign else []
    least_ns = max(EXPLAINS * excess_ns, 1)
    call = max(longer, key=lambda call: sum(longer[call]), default="")
    most_ns = max(longer.get(call, [0]))
    if is_driven and max(more) >= least_ns:
        said.append(_on_ranks("more outside MPI", more, least_ns))
    elif most_ns > 0:
        said.append(_on_ranks(f"more in {call}", longer[call], EXPLAINS * most_ns))
    outside = (
        "no rank spent half of the excess outside MPI"
        if is_driven
        else "what the thread that drives the steps did is not known"
    )
    return "; ".join(said) or f"{outside}, and no call took longer on average"


def with_blame(why: str, rank: int | None, lead_ns: float | None, excess_ns: float) -> str:
    """rank: the slowest one of the step; it explains the step if the others wait for it for half of
    the excess."""
    if rank is None or lead_ns is None or lead_ns < EXPLAINS * excess_ns:
        return why
    return f"{why}; the others wait {units.duration(lead_ns)} because of rank {rank}"


def _on_ranks(what: str, more: Sequence[float], least_ns: float) -> str:
    """12 ms more in MPI_Allreduce on 3 of 4 ranks: a mean over these."""
    some = [ns for ns in more if ns >= least_ns]
    where = "" if len(some) == len(more) else f" on {len(some):,} of {len(more):,} ranks"
    return f"{units.duration(fmean(some))} {what}{where}"


FEWEST_STEPS = whole("steps.trend-steps")
MOST_PARTS, FEWEST_OF_A_PART = whole("steps.trend-parts"), whole("steps.trend-part")
TREND_LEVEL, NOTABLE = threshold("steps.trend-level"), threshold("steps.trend-notable")


Trend = row_type("Trend", "trend trend_p first_tenth_ns last_tenth_ns".split())  # columns.py


def trend(step_ns: Sequence[float]) -> Row:
    """Trend of the durations of steps in order of time."""
    if len(step_ns) < FEWEST_STEPS:
        return Trend("unknown", None, None, None)
    medians = [median(step_ns[begin:end]) for begin, end in parts(len(step_ns))]
    score = chance.score(medians)
    tenth = len(step_ns) // 10
    first_ns, last_ns = median(step_ns[:tenth]), median(step_ns[-tenth:])
    change_ns, p = last_ns - first_ns, chance.chance(len(medians), abs(score))
    is_notable = change_ns * score > 0 and abs(change_ns) >= NOTABLE * median(step_ns)
    seen = ("slower" if score > 0 else "faster") if p < TREND_LEVEL and is_notable else "none"
    return Trend(seen, p, first_ns, last_ns)


def parts(steps: int) -> list[tuple[int, int]]:
    return spans(steps, min(MOST_PARTS, steps // FEWEST_OF_A_PART))


STATES = {
    OUTSIDE: "outside",
    TRANSFER: "transfer",
    FILES: "files",
    WAITING: "waiting",
    UNSPLIT: "not split",
}


def doing_text(state: str, call: str, outside: str = "outside MPI") -> str:
    if state == "outside":
        return outside
    remark = {"waiting": " (waiting, for whom is not known)", "not split": " (not split)"}.get(
        state, ""
    )
    return f"in {units.visible(call)}{remark}"


PATH = (
    Field(
        "step", "a part of the critical path of this step, on this rank; the longest first", "step"
    ),
    Field("rank", "", "rank"),
    Field(
        "state",
        "`outside` (MPI; `call` is empty), `transfer`, `files`, `not split`, `waiting` (for whom "
        "is not known)",
        "doing",
        is_number=False,
        of_row=lambda row: doing_text(row.state, row.call),
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
    steps: Steps, rows: Sequence[Row], alignment: Alignment, late: Late
) -> list[Row]:
    """Paths of the complete steps after the warm-up, the longest parts first; nothing of a step
    whose path was not seen, or was not split."""
    wanted = {row.step for row in rows if row.is_complete and not row.is_warm_up and row.ranks > 1}
    times = steps.aligned(alignment, wanted)
    return [
        row
        for step in sorted(times)
        for row in _rows(step, critical_path(late.judge.found.lines, times[step]))
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
                piece.state == WAITING
                and piece.waits_for in times
                and (piece.waits_for, piece.end_ns) not in left
            )
            if is_held_up:
                follows, time_ns = piece.waits_for, piece.end_ns
                break
            yield Span(
                rank,
                begin_ns,
                piece.end_ns,
                piece.state,
                piece.call if piece.state != OUTSIDE else "",
            )
        rank = follows

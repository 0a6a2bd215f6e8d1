"""The whole run of the ranks and their GPUs, to be drawn: in each bin of time the share of
each state, and in windows each call by itself.

    bins     |....:....:....:....:....:....:....:....|   the whole run
    windows     |=|     |==|              |==|           single calls, operations in flight,
                                                         messages

One window is the whole run if its calls have room in the page. Otherwise windows are the median
step, the longest ones and as many others, spread over the run, as there is room for; without steps,
parts of equally many calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple

from ..base import (
    Columns,
    Connection,
    Ints,
    NONE,
    Texts,
    by_rank,
    found_in,
    grouped,
    joined,
    np,
    query,
    units,
)
from ..gpu.overlap import Spans, activities, busy, known_spans, spans_joined, time_by_states
from ..late import (
    ABSENT,
    COUNT,
    Late,
    NOBODY,
    OUTSIDE,
    Timeline,
    UNSEEN,
    WaitSplit,
    timeline,
)
from ..run.alignment import Alignment
from .boundaries import Steps, overlapping
from .long_steps import Path, critical_path, is_whole
from .lines import SampledCalls
from .step_costs import StepRow, labels_of
from .steps_summary import StepsSummary

ESTIMATE = "waiting estimated from durations"
LONGEST = 7  # steps that are drawn before the others
# of the pieces of all windows together; half as many of each: operations in flight, and messages
LEAST_BOUND, MOST_PER_RANK, LARGEST_BOUND = 22_000, 120, 60_000
RANK_PIECES = 4  # as large as a rank's part of a step itself is in the page
MARGIN = 0.05  # share of a step, shown before and after it
WINDOWS = 8  # of a run without steps
MOST_BINS, MOST_CELLS = 640, 250_000  # bins of a rank or GPU; of all together
FEWEST_BINS = 16
MOST_MARKS = 4_000  # steps whose begin is marked
# classes of time, after the states of a timeline
GPU_COMPUTING, GPU_EXPOSED, GPU_COPYING = range(COUNT, COUNT + 3)
CLASSES = COUNT + 3
PARTS = 20  # shares are in whole parts of a bin


class RankView(NamedTuple):
    """cells: a row for each bin, how many PARTS of it were of each class: a state of a timeline, or
    what a GPU did. gpus: the cells of each, by its number."""

    rank: int
    begin_ns: int
    end_ns: int
    cells: np.ndarray
    gpus: dict[int, np.ndarray]


class StepView(NamedTuple):
    """times: begin and end on each rank."""

    row: StepRow
    notable: str
    begin_ns: int
    end_ns: int
    times: Mapping[int, tuple[int, int]]
    path: Path


class View(NamedTuple):
    """Times are on the run's axis, from its begin. Pieces and operations have a call and a detail,
    its size and communicator, as far as they are known, by their numbers in texts."""

    end_ns: int
    windows: Spans
    ranks: list[RankView]
    steps: list[StepView]
    marks: list[tuple[int, int, int]]  # of all steps, or of each n-th: number, begin and end
    pieces: Columns  # of the timelines in windows, inside MPI or not sampled; waits_for: a rank
    in_flight: Columns  # nonblocking and persistent operations
    messages: Columns  # of which both sides are known
    texts: Texts
    ranks_left_out: int
    left_out: dict[str, int]  # by what is: those shorter than so many ns; 0: none

    @property
    def is_whole(self) -> bool:
        """All sampled calls are in it."""
        return self.windows.tolist() == [[0, self.end_ns]] and not self.left_out["calls"]


def run_view(
    connection: Connection,
    found: StepsSummary,
    alignment: Alignment,
    late: Late,
    wanted: range | None = None,
) -> View | None:
    """None where no call was sampled. wanted: only these steps, as many as there is room for."""
    every = list(query.rows(connection, "steps/run_view_ranks"))
    rows = every[: MOST_CELLS // FEWEST_BINS]
    split = late.split.of_all
    known = known_spans(connection)
    if not rows or not (len(split.called.calls) or known):
        return None
    begins, ends = (
        {row.rank: alignment.aligned_ns(row.rank, time_ns) for row, time_ns in zip(rows, times)}
        for times in ([0] * len(rows), [row.wall_ns for row in rows])
    )
    end_ns = max(1, *ends.values())
    negotiated = _negotiated(found.sampled, alignment)
    lines = {
        row.rank: _line(
            late, row.rank, begins[row.rank], ends[row.rank], end_ns, negotiated.get(row.rank)
        )
        for row in rows
    }
    most = min(LARGEST_BOUND, max(LEAST_BOUND, MOST_PER_RANK * len(rows)))
    steps, windows = _windows(found, alignment, late, lines, end_ns, most, wanted)
    pieces, calls_ns = _longest(_pieces(lines), windows, most)
    in_flight, in_flight_ns = _longest(_operations(found.sampled, alignment), windows, most // 2)
    messages, messages_ns = _longest(_messages(split, alignment), windows, most // 2)
    bins = MOST_CELLS // (len(rows) + sum(map(len, known.values())))
    bins = min(MOST_BINS, max(FEWEST_BINS, bins))
    edges = np.linspace(0, end_ns, bins + 1).astype(np.int64)
    lanes = _gpu_lanes(connection, alignment, known, edges)
    no_gpu = ((0, 0), (0, CLASSES - COUNT))
    ranks = [
        RankView(
            rank,
            begins[rank],
            ends[rank],
            in_parts(np.pad(np.diff(line.spent(line.place(edges), edges), axis=0), no_gpu), edges),
            lanes.get(rank, {}),
        )
        for rank, line in lines.items()
    ]
    return View(
        end_ns,
        windows,
        ranks,
        steps,
        _marks(found.steps, alignment),
        _cut(_detailed(connection, _called(pieces, late), split.texts), windows),
        _detailed(connection, in_flight, split.texts),
        messages,
        split.texts,
        len(every) - len(rows),
        {"calls": calls_ns, "operations in flight": in_flight_ns, "messages": messages_ns},
    )


def _negotiated(sampled: SampledCalls, alignment: Alignment) -> dict[int, tuple[Ints, Ints]]:
    """By rank when its calls for negotiation begin and end."""
    calls = sampled.calls.take(sampled.is_control == 1)
    begin_ns = alignment.aligned(calls.world_rank, calls.start_ns)
    end_ns = begin_ns + calls.end_ns - calls.start_ns
    return {rank: (begin_ns[own], end_ns[own]) for rank, own in by_rank(calls.world_rank)}


def _line(
    late: Late,
    rank: int,
    begin_ns: int,
    end_ns: int,
    last_ns: int,
    negotiated: tuple[Ints, Ints] | None,
) -> Timeline:
    """The timeline of a rank, which is ABSENT before its begin and from its end to the run's. After
    its last call it is not seen as long as it may have made a call that is not sampled."""
    line: Timeline = late.lines[rank]
    line = line.with_negotiation(*negotiated) if negotiated else line
    gaps = late.split.of_all.called.gaps
    gap_ns = int(gaps[rank][1].max(initial=0)) if rank in gaps else 0
    return timeline(
        np.concatenate([[begin_ns], line.points[1:], [min(gap_ns, end_ns), end_ns, last_ns]]),
        np.concatenate([[ABSENT], line.states, [UNSEEN, OUTSIDE, ABSENT]]),
        np.concatenate([[NONE], line.calls, [NONE] * 3]),
        np.concatenate([[NOBODY], line.waits, [NOBODY] * 3]),
        line.texts,
    )


def in_parts(spent: np.ndarray, edges: Ints) -> np.ndarray:
    """How many PARTS of the time of each bin were of each class; they add up to PARTS."""
    width_ns = np.maximum(np.diff(edges), 1)[:, None]
    exact = PARTS * spent / width_ns
    found = np.floor(exact).astype(np.int64)
    place = np.argsort(np.argsort(found - exact, axis=1, kind="stable"), axis=1)
    return found + (place < PARTS - found.sum(axis=1, keepdims=True))


def _gpu_lanes(
    connection: Connection,
    alignment: Alignment,
    known: Mapping[int, Mapping[int, Spans]],
    edges: Ints,
) -> dict[int, dict[int, np.ndarray]]:
    """By rank and number the cells of devices with known activity. known: when all activities of a
    rank's devices were sampled, in its own time."""
    if not known:
        return {}
    numbers = connection.execute(
        "SELECT world_rank, device, number FROM gpu_device ORDER BY world_rank, number"
    )
    active = activities(connection)
    begin_ns, end_ns = (
        alignment.aligned(active.world_rank, times) for times in (active.start_ns, active.end_ns)
    )
    active = active.changed(start_ns=begin_ns, end_ns=end_ns)
    of_ranks = dict(by_rank(active.world_rank))
    lanes: dict[int, dict[int, np.ndarray]] = {}
    for rank, device, number in numbers:
        spans = known.get(rank, {}).get(device)
        if spans is not None and len(spans):
            ranks, own = np.full(len(spans), rank), active.take(of_ranks.get(rank, slice(0)))
            begins_ns, ends_ns = (alignment.aligned(ranks, times) for times in spans.T)
            cells = _gpu_cells(begins_ns, ends_ns, own.take(own.device == device), edges)
            lanes.setdefault(rank, {})[number] = cells
    return lanes


def _gpu_cells(begins_ns: Ints, ends_ns: Ints, active: Columns, edges: Ints) -> np.ndarray:
    """When all activities are known."""
    _, place, *known = overlapping(begins_ns, ends_ns, edges[:-1], edges[1:])
    found = np.zeros((len(edges) - 1, CLASSES), np.int64)
    times = busy([*time_by_states(active, np.stack(known, axis=1)).T])
    for state, state_ns in (
        (GPU_COMPUTING, times.computing_ns),
        (GPU_EXPOSED, times.exposed_ns),
        (GPU_COPYING, times.only_copying_ns),
        (OUTSIDE, times.idle_ns),
    ):
        np.add.at(found[:, state], place, state_ns)
    found[:, UNSEEN] = np.diff(edges) - found.sum(axis=1)
    return in_parts(found, edges)


def _windows(
    found: StepsSummary,
    alignment: Alignment,
    late: Late,
    lines: Mapping[int, Timeline],
    end_ns: int,
    most: int,
    wanted: range | None,
) -> tuple[list[StepView], Spans]:
    """The steps that are drawn: the wanted ones, or the median, the longest and others, as far as
    there is room. And the windows, in order of time."""
    whole = [row for row in found.costs.steps if is_whole(row) and found.costs.is_driven]
    times = found.steps.aligned(alignment, {row.step for row in whole})
    spans = {step: _span(of_step, end_ns) for step, of_step in times.items()}
    pieces = sum(line.pieces_between(0, end_ns) for line in lines.values())
    has_room = not wanted and pieces + RANK_PIECES * len(lines) * len(whole) <= most
    by_time = sorted(whole, key=lambda row: row.step_ns)
    first = [*by_time[(len(whole) - 1) // 2 :][:1], *by_time[: -1 - LONGEST : -1]]
    chosen = [*dict.fromkeys([*first, *spread(whole)])]
    if wanted:
        chosen = [row for row in whole if row.step in wanted]
    if not has_room:
        sizes = accumulate(_pieces_of(times[row.step], spans[row.step], lines) for row in chosen)
        fitting = takewhile(lambda one: one[0] is chosen[0] or one[1] <= most, zip(chosen, sizes))
        chosen = [row for row, _ in fitting]
    notable = dict(zip([row.step for row in first[1::-1]], ("the longest", "the median")))
    steps = [
        StepView(
            row,
            notable.get(row.step, ""),
            *spans[row.step],
            times[row.step],
            critical_path(late.lines, times[row.step]),
        )
        for row in sorted(chosen)
    ]
    if has_room:
        return steps, spans_joined([(0, end_ns)])
    if whole or wanted:
        return steps, spans_joined(spans[row.step] for row in chosen)
    middles, part = (np.arange(WINDOWS) + 0.5) / WINDOWS, most / pieces / WINDOWS / 2
    edges = np.quantile(late.split.of_all.called.start_ns, [middles - part, middles + part])
    return [], spans_joined(edges.T)


def spread(rows: Sequence[StepRow]) -> list[StepRow]:
    """In an order in which the first n, for any n, are spread over the run about evenly."""
    return [
        row for _, row in sorted((f"{place:064b}"[::-1], row) for place, row in enumerate(rows))
    ]


def _pieces_of(
    times: Mapping[int, tuple[int, int]], span: tuple[int, int], lines: Mapping[int, Timeline]
) -> int:
    return sum(RANK_PIECES + lines[rank].pieces_between(*span) for rank in times if rank in lines)


def _span(times: Mapping[int, tuple[int, int]], last_ns: int) -> tuple[int, int]:
    """Time that is drawn of a step."""
    begin_ns, end_ns = (
        min(begin_ns for begin_ns, _ in times.values()),
        max(end_ns for _, end_ns in times.values()),
    )
    margin_ns = round(MARGIN * (end_ns - begin_ns))
    return max(0, begin_ns - margin_ns), min(last_ns, end_ns + margin_ns)


def _pieces(lines: Mapping[int, Timeline]) -> Columns:
    """The pieces inside MPI, or not sampled."""
    parts = [
        Columns(
            world_rank=np.full(len(line.states), rank),
            begin_ns=line.points[:-1],
            end_ns=line.points[1:],
            state=line.states,
            call=line.calls,
            waits_for=line.waits,
        )
        for rank, line in lines.items()
    ]
    every = joined(Columns, parts)
    return every.take(~np.isin(every.state, (OUTSIDE, ABSENT)))


def _called(pieces: Columns, late: Late) -> Columns:
    """With the sizes and communicators of their calls. No arrival ended a wait that is an
    estimate."""
    called, waits = late.split.of_all.called, late.sums.waits
    place = np.full(len(pieces), -1)
    for rank, own in by_rank(pieces.world_rank):
        first, end = np.searchsorted(called.calls.world_rank, (rank, rank + 1))
        before = np.searchsorted(called.start_ns[first:end], pieces.begin_ns[own], "right") - 1
        place[own] = np.where(pieces.call[own] == NONE, -1, first + before)
    start_ns, own_bytes, communicator = (
        np.append(column, NONE)[place]
        for column in (called.start_ns, called.calls.bytes, called.calls.communicator)
    )
    estimates = waits.take(waits.is_estimate)
    known = estimates.world_rank, estimates.start_ns
    is_estimate = found_in((pieces.world_rank, start_ns), known) >= 0
    return pieces.changed(
        bytes=own_bytes,
        communicator=communicator,
        is_estimate=is_estimate,
        waits_for=np.where(is_estimate, NOBODY, pieces.waits_for),
    )


def _detailed(connection: Connection, rows: Columns, texts: Texts) -> Columns:
    """With the size of each call and its communicator, as far as they are known, as its detail."""
    label = labels_of(connection, texts, rows.world_rank, rows.communicator)
    details = [
        ", ".join(
            [
                *([units.size(size)] if size != NONE else []),
                *([texts.texts[name]] if name != texts.number(units.NO_VALUE) else []),
                *[ESTIMATE] * is_estimate,
            ]
        )
        for size, name, is_estimate in zip(
            rows.bytes.tolist(), label.tolist(), rows.is_estimate.tolist()
        )
    ]
    return rows.changed(detail=texts.all(details))


def _operations(sampled: SampledCalls, alignment: Alignment) -> Columns:
    """Nonblocking and persistent operations, from their start to their completion."""
    parts = []
    for rows in (sampled.calls, sampled.messages, sampled.starts):
        rows = rows.take(rows.completed_ns > rows.end_ns)
        begin_ns, end_ns = (
            alignment.aligned(rows.world_rank, own) for own in (rows.start_ns, rows.completed_ns)
        )
        parts.append(
            Columns(
                world_rank=rows.world_rank,
                begin_ns=begin_ns,
                end_ns=end_ns,
                call=rows.call,
                communicator=rows.communicator,
                bytes=rows.bytes,
                is_estimate=np.zeros(len(rows), bool),
            )
        )
    found = joined(Columns, parts)
    return found.take(
        sampled.known.which(found.call, sampled.texts, lambda call: call.library == "mpi")
    )


def _messages(split: WaitSplit, alignment: Alignment) -> Columns:
    """The messages of which both sides are known, from the posting of the send to the completion
    of the receive."""
    rows, texts = split.later, split.texts
    probes = {text for text in texts.texts if "probe" in text.lower()}
    rows = rows.take(
        rows.is_known
        & (rows.sequence == NONE)
        & (rows.gone_ns != NONE)
        & (rows.wait_state == texts.number("late sender"))
        & ~texts.among(rows.call, probes)
    )
    end_ns = alignment.aligned(rows.world_rank, rows.gone_ns)
    return Columns(
        sender=rows.last_rank, receiver=rows.world_rank, begin_ns=rows.peer_ns, end_ns=end_ns
    )


def _longest(rows: Columns, windows: Spans, most: int) -> tuple[Columns, int]:
    """The longest ones that are in windows, in order of time; and how long these are, if there are
    others."""
    rows = rows.take(np.unique(overlapping(rows.begin_ns, rows.end_ns, *windows.T)[0]))
    spent_ns, least_ns = rows.end_ns - rows.begin_ns, 0
    if len(rows) > most:
        least_ns = int(np.sort(spent_ns)[-most])
        rows = rows.take(np.sort(np.argsort(spent_ns, kind="stable")[-most:]))
    return rows.take(np.argsort(rows.begin_ns, kind="stable")), least_ns


def _cut(rows: Columns, windows: Spans) -> Columns:
    """In windows; what reaches into several is in each of them."""
    own, _, begin_ns, end_ns = overlapping(rows.begin_ns, rows.end_ns, *windows.T)
    return rows.take(own).changed(begin_ns=begin_ns, end_ns=end_ns)


def _marks(steps: Steps, alignment: Alignment) -> list[tuple[int, int, int]]:
    rows = steps.rows
    order, groups = grouped(rows.step)
    begin_ns = groups.min(alignment.aligned(rows.world_rank, rows.begin_ns)[order])
    end_ns = groups.max(alignment.aligned(rows.world_rank, rows.end_ns)[order])
    numbers = rows.step[order[groups.first]].tolist()
    found = list(zip(numbers, begin_ns.tolist(), end_ns.tolist()))
    return found[:: len(found) // MOST_MARKS + 1]

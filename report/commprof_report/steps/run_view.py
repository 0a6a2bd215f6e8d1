"""The whole run of the ranks and their GPUs, to be drawn: in each bin of time the share of
each state, and in windows each call by itself.

    bins     |....:....:....:....:....:....:....:....|   the whole run
    windows     |=|     |==|              |==|           single calls, operations in flight,
                                                         messages, activity of GPUs

One window is the whole run if its calls have room in the page. Otherwise windows are the median
step, the longest ones and as many others, spread over the run, as there is room for; without steps,
parts of equally many calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query, units
from ..base.columns import NONE, Columns, Ints, TextInts, by_rank, grouped, joined, np
from ..base.values import gathered
from ..gpu.overlap import Spans, activities, busy, common, known_spans, spans_joined, time_by_states
from ..late.late_ranks import Late
from ..late.timelines import COUNT, NOBODY, OUTSIDE, UNSEEN, WAITING, Piece, Timeline
from ..late.wait_split import WaitSplit
from ..run.alignment import Alignment
from .boundaries import Steps
from .critical_path import Span, critical_path
from .lines import SampledCalls
from .step_costs import StepRow
from .steps_summary import StepsSummary

SQL = query.beside(__file__)

ESTIMATE = "waiting estimated from durations"
LONGEST = 7  # steps that come before the others
# of the pieces of all windows together; half as many of each: operations in flight, messages, and
# pieces of GPUs
LEAST_BOUND, MOST_PER_RANK, LARGEST_BOUND = 22_000, 120, 60_000
RANK_PIECES = 4  # as large as a rank's part of a step itself is in the page
MARGIN = 0.05  # share of a step, shown before and after it
WINDOWS = 8  # of a run without steps
# a view of too many pieces leaves out those shorter than this part of it, or than twice that, and
# so on
FINEST = 4_000
MOST_BINS, MOST_CELLS = 640, 250_000  # bins of a rank or GPU; of all together
FEWEST_BINS = 16
MOST_MARKS = 4_000  # steps whose begin is marked
# classes of time, after the states of a timeline. ABSENT: the rank has not begun, or has ended
ABSENT, GPU_COMPUTING, GPU_EXPOSED, GPU_COPYING = range(COUNT, COUNT + 4)
CLASSES = COUNT + 4
PARTS = 20  # shares are in whole parts of a bin


class Shown(NamedTuple):
    """A piece of a rank's timeline, inside MPI or not sampled. detail: the call's size and
    communicator, as far as they are known."""

    piece: Piece
    detail: str


@dataclass(frozen=True)
class Operations(Columns):
    """Nonblocking and persistent operations, from their start to their completion."""

    world_rank: Ints
    begin_ns: Ints
    end_ns: Ints
    call: TextInts
    communicator: Ints
    bytes: Ints


@dataclass(frozen=True)
class Messages(Columns):
    """Messages of which both sides are known, from the posting of the send to the completion of the
    receive."""

    sender: Ints
    receiver: Ints
    begin_ns: Ints
    end_ns: Ints


class InFlight(NamedTuple):
    begin_ns: int
    end_ns: int
    call: str
    detail: str


class GpuLane(NamedTuple):
    number: int
    cells: np.ndarray


class RankView(NamedTuple):
    """cells: a row for each bin, how many PARTS of it were of each class: a state of a timeline,
    ABSENT, or what a GPU did."""

    rank: int
    begin_ns: int
    end_ns: int
    cells: np.ndarray
    pieces: list[Shown]
    in_flight: list[InFlight]
    gpus: list[GpuLane]


class StepView(NamedTuple):
    """times: begin and end on each rank."""

    row: StepRow
    notable: str
    begin_ns: int
    end_ns: int
    times: Mapping[int, tuple[int, int]]
    path: list[Span]


class View(NamedTuple):
    """Times are on the run's axis, from its begin. *_ns of what is left out: 0 if nothing is."""

    end_ns: int
    windows: Spans
    ranks: list[RankView]
    steps: list[StepView]
    marks: list[tuple[int, int, int]]  # of all steps, or of each n-th: number, begin and end
    messages: Messages
    ranks_left_out: int
    left_out_ns: int
    in_flight_left_out_ns: int
    messages_left_out_ns: int

    @property
    def is_whole(self) -> bool:
        """All sampled calls are in it."""
        return self.windows == [(0, self.end_ns)] and not self.left_out_ns


def run_view(
    connection: Connection, found: StepsSummary, alignment: Alignment, late: Late,
    wanted: range | None = None,
) -> View | None:
    """None where no call was sampled. wanted: only these steps, as many as there is room for."""
    every = list(SQL.rows(connection, "run_view_ranks"))
    rows = every[: MOST_CELLS // FEWEST_BINS]
    split = late.stages.split.of_all
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
        row.rank: Line(late, row.rank, ends[row.rank], negotiated.get(row.rank)) for row in rows
    }
    most = min(LARGEST_BOUND, max(LEAST_BOUND, MOST_PER_RANK * len(rows)))
    steps, windows = _windows(found, alignment, late, lines, end_ns, most, wanted)
    details = Details(connection, found.sampled, alignment, late)
    pieces, left_out_ns = _pieces(lines, windows, details, most)
    in_flight, in_flight_ns = _longest(
        _operations(found.sampled, alignment), windows, most // 2
    )
    messages, messages_ns = _longest(_messages(split, alignment), windows, most // 2)
    bins = _bins(len(rows) + sum(map(len, known.values())))
    edges = np.linspace(0, end_ns, bins + 1).astype(np.int64)
    lanes = _gpu_lanes(connection, alignment, known, edges)
    ranks = [
        RankView(
            rank, begins[rank], ends[rank], line.cells(edges, begins[rank]), pieces[rank],
            details.in_flight(rank, in_flight), lanes.get(rank, []),
        )
        for rank, line in lines.items()
    ]
    return View(
        end_ns, windows, ranks, steps, _marks(found.steps, alignment), messages,
        len(every) - len(rows), left_out_ns, in_flight_ns, messages_ns,
    )


def _negotiated(sampled: SampledCalls, alignment: Alignment) -> dict[int, tuple[Ints, Ints]]:
    """By rank when its calls for negotiation begin and end."""
    calls = sampled.calls.take(sampled.is_control == 1)
    begin_ns = alignment.aligned(calls.world_rank, calls.start_ns)
    end_ns = begin_ns + calls.end_ns - calls.start_ns
    return {rank: (begin_ns[own], end_ns[own]) for rank, own in by_rank(calls.world_rank)}


class Line:
    """The timeline of a rank to the rank's end."""

    def __init__(
        self, late: Late, rank: int, end_ns: int, negotiated: tuple[Ints, Ints] | None
    ) -> None:
        line = late.timelines[rank]
        self.line: Timeline = line.with_negotiation(*negotiated) if negotiated else line
        self.end_ns = end_ns
        nothing = np.array([], np.int64), np.array([], np.int64)
        _, gap_ends = late.stages.split.of_all.called.gaps.get(rank, nothing)
        # until then the rank may have made a call that is not sampled
        self.unseen_ns = max(self._left_ns, min(int(gap_ends.max(initial=0)), end_ns))

    @property
    def _left_ns(self) -> int:
        return int(self.line.points[-1])

    def count(self, begin_ns: int, end_ns: int) -> int:
        return self.line.pieces_between(begin_ns, end_ns) + (self.unseen_ns > self._left_ns)

    def cells(self, edges: Ints, begin_ns: int) -> np.ndarray:
        spent = np.zeros((len(edges) - 1, CLASSES), np.int64)
        spent[:, :COUNT] = np.diff(self.line.spent(edges), axis=0)
        for state, since_ns, until_ns in (
            (UNSEEN, self._left_ns, self.unseen_ns),
            (ABSENT, 0, begin_ns), (ABSENT, self.end_ns, int(edges[-1])),
        ):
            moved_ns = np.diff(np.clip(edges, since_ns, max(since_ns, until_ns)))
            moved_ns = np.minimum(moved_ns, spent[:, OUTSIDE])
            spent[:, state] += moved_ns
            spent[:, OUTSIDE] -= moved_ns
        return in_parts(spent, edges)

    def pieces(self, begin_ns: int, end_ns: int) -> Iterator[tuple[int, Piece]]:
        """All but the time outside MPI; with the begin of their call. The transfer that follows a
        wait belongs to the same call."""
        line = self.line
        first = max(0, int(np.searchsorted(line.points, begin_ns, "right")) - 1)
        last = int(np.searchsorted(line.points, end_ns))
        called_ns = NONE
        for place in range(first - (first > 0), min(last, len(line.states))):
            since_ns, until_ns = line.points[place : place + 2].tolist()
            state = int(line.states[place])
            is_same_call = place and line.states[place - 1] == WAITING and called_ns != NONE
            called_ns = called_ns if is_same_call else since_ns
            if state != OUTSIDE and place >= first:
                yield called_ns, Piece(
                    max(since_ns, begin_ns), min(until_ns, end_ns), state,
                    line.texts.text(line.calls[place]) or "", int(line.waits[place]),
                )
        since_ns, until_ns = max(begin_ns, self._left_ns), min(end_ns, self.unseen_ns)
        if since_ns < until_ns:
            yield NONE, Piece(since_ns, until_ns, UNSEEN, "", NOBODY)


def in_parts(spent: np.ndarray, edges: Ints) -> np.ndarray:
    """How many PARTS of the time of each bin were of each class; they add up to PARTS."""
    width_ns = np.maximum(np.diff(edges), 1)[:, None]
    exact = PARTS * spent / width_ns
    found = np.floor(exact).astype(np.int64)
    order = np.argsort(found - exact, axis=1, kind="stable")
    missing = PARTS - found.sum(axis=1, keepdims=True)
    np.put_along_axis(
        found, order,
        np.take_along_axis(found, order, axis=1) + (np.arange(spent.shape[1]) < missing), axis=1,
    )
    return found


def _gpu_lanes(
    connection: Connection, alignment: Alignment, known: Mapping[int, Mapping[int, Spans]],
    edges: Ints,
) -> dict[int, list[GpuLane]]:
    """By rank its devices with known activity. known: when all activities of a rank's devices were
    sampled, in its own time."""
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
    of_ranks, lanes = dict(by_rank(active.world_rank)), []
    for rank, device, number in numbers:
        spans = [
            (alignment.aligned_ns(rank, begin_ns), alignment.aligned_ns(rank, end_ns))
            for begin_ns, end_ns in known.get(rank, {}).get(device, ())
        ]
        if spans:
            own = active.take(of_ranks.get(rank, slice(0)))
            cells = _gpu_cells(spans, own.take(own.device == device), edges)
            lanes.append((rank, GpuLane(number, cells)))
    return gathered(lanes)


def _gpu_cells(known: Spans, active: Columns, edges: Ints) -> np.ndarray:
    spans = common(known, [*zip(edges[:-1].tolist(), edges[1:].tolist())])
    found = np.zeros((len(edges) - 1, CLASSES), np.int64)
    times = busy([*time_by_states(active, spans).T])
    place = np.searchsorted(edges, [begin_ns for begin_ns, _ in spans], "right") - 1
    for state, state_ns in (
        (GPU_COMPUTING, times.computing_ns), (GPU_EXPOSED, times.exposed_ns),
        (GPU_COPYING, times.only_copying_ns), (OUTSIDE, times.idle_ns),
    ):
        np.add.at(found[:, state], place, state_ns)
    found[:, UNSEEN] = np.diff(edges) - found.sum(axis=1)
    return in_parts(found, edges)


def _bins(rows: int) -> int:
    return min(MOST_BINS, max(FEWEST_BINS, MOST_CELLS // max(1, rows)))


def is_whole(row: StepRow) -> bool:
    """Whether it is known what its ranks did, and it is not of the warm-up."""
    return bool(row.is_complete and not row.is_warm_up and row.ranks > 1)


def _windows(
    found: StepsSummary, alignment: Alignment, late: Late, lines: Mapping[int, Line], end_ns: int,
    most: int, wanted: range | None,
) -> tuple[list[StepView], Spans]:
    """The steps that are drawn, the median one first, then the longest ones, then the others; or
    the wanted ones in order. And the windows, in order of time."""
    whole = [row for row in found.costs.steps if is_whole(row) and found.costs.is_driven]
    times = found.steps.aligned(alignment, {row.step for row in whole})
    spans = {step: _span(of_step, end_ns) for step, of_step in times.items()}
    pieces = sum(line.count(0, end_ns) for line in lines.values())
    has_room = not wanted and pieces + RANK_PIECES * len(lines) * len(whole) <= most
    by_time = sorted(whole, key=lambda row: row.step_ns)
    median = by_time[(len(whole) - 1) // 2] if whole else None
    first = [median, *(row for row in reversed(by_time) if row is not median)][: 1 + LONGEST]
    others = [row for row in spread(whole) if row not in first]
    if wanted:
        first, others = [row for row in whole if row.step in wanted], []
    chosen = [row for row in [*first, *others] if row]
    if not has_room:
        fitting = _fitting(chosen, times, spans, lines, most)
        chosen = list(fitting)
    chosen[len(first) :] = sorted(chosen[len(first) :], key=lambda row: row.step)
    notable = {by_time[-1].step: "the longest", median.step: "the median"} if median else {}
    steps = [
        StepView(
            row, notable.get(row.step, ""), *spans[row.step], times[row.step],
            critical_path(late.timelines, times[row.step]),
        )
        for row in chosen
    ]
    if has_room:
        return steps, [(0, end_ns)]
    if whole or wanted:
        return steps, spans_joined(spans[row.step] for row in chosen)
    middles, part = (np.arange(WINDOWS) + 0.5) / WINDOWS, most / pieces / WINDOWS / 2
    edges = np.quantile(late.stages.split.of_all.called.start_ns, [middles - part, middles + part])
    return [], spans_joined(zip(*edges.astype(np.int64).tolist()))


def spread(rows: Sequence[StepRow]) -> list[StepRow]:
    """In an order in which the first n, for any n, are spread over the run about evenly."""
    return [
        row for _, row in sorted((f"{place:064b}"[::-1], row) for place, row in enumerate(rows))
    ]


def _fitting(
    rows: Sequence[StepRow], times: Mapping[int, Mapping[int, tuple[int, int]]],
    spans: Mapping[int, tuple[int, int]], lines: Mapping[int, Line], most_pieces: int,
) -> Iterator[StepRow]:
    """The first one always."""
    pieces = 0
    for row in rows:
        pieces += sum(
            RANK_PIECES + lines[rank].count(*spans[row.step]) for rank in times[row.step]
            if rank in lines
        )
        if row is not rows[0] and pieces > most_pieces:
            return
        yield row


def _span(times: Mapping[int, tuple[int, int]], last_ns: int) -> tuple[int, int]:
    """Time that is drawn of a step."""
    begin_ns, end_ns = (
        min(begin_ns for begin_ns, _ in times.values()),
        max(end_ns for _, end_ns in times.values()),
    )
    margin_ns = round(MARGIN * (end_ns - begin_ns))
    return max(0, begin_ns - margin_ns), min(last_ns, end_ns + margin_ns)


class Details:
    """Sizes and communicators of calls, in words."""

    def __init__(
        self, connection: Connection, sampled: SampledCalls, alignment: Alignment, late: Late
    ) -> None:
        self.sampled, self.late, self.alignment = sampled, late, alignment
        labels = SQL.run(connection, "step_labels")
        self.labels = {(rank, number): label for rank, number, label in labels}

    def text(self, rank: int, communicator: int, own_bytes: int) -> str:
        size = "" if own_bytes == NONE else units.size(own_bytes)
        label = self.labels.get((rank, communicator), units.NO_VALUE)
        return ", ".join(filter(None, (size, "" if label == units.NO_VALUE else label)))

    def of_calls(self, windows: Spans) -> dict[tuple[int, int], str]:
        """By rank and begin of the calls of main threads in the windows."""
        calls = self.sampled.calls
        start_ns = self.alignment.aligned(calls.world_rank, calls.start_ns)
        end_ns = start_ns + calls.end_ns - calls.start_ns
        rows = np.flatnonzero(in_spans(start_ns, end_ns, windows))
        rows = rows[self.sampled.on_main(rows)]
        columns = (calls.world_rank[rows], start_ns[rows], calls.communicator[rows])
        texts = {
            (rank, at_ns): self.text(rank, communicator, own_bytes)
            for rank, at_ns, communicator, own_bytes in zip(
                *(column.tolist() for column in columns), calls.bytes[rows].tolist()
            )
        }
        for call in self.late.stages.sums.waits.estimated():
            if call in texts:
                texts[call] = ", ".join(filter(None, (texts[call], ESTIMATE)))
        return texts

    def in_flight(self, rank: int, rows: Operations) -> list[InFlight]:
        own = rows.take(rows.world_rank == rank)
        names = (self.sampled.texts.text(call) or "" for call in own.call.tolist())
        columns = (own.begin_ns, own.end_ns, own.communicator, own.bytes)
        return [
            InFlight(begin_ns, end_ns, name, self.text(rank, communicator, own_bytes))
            for name, begin_ns, end_ns, communicator, own_bytes in zip(
                names, *(column.tolist() for column in columns)
            )
        ]


def _pieces(
    lines: Mapping[int, Line], windows: Spans, details: Details, most: int
) -> tuple[dict[int, list[Shown]], int]:
    """By rank; and how long those are at least that are not left out."""
    texts = details.of_calls(windows)
    found = {
        rank: [
            shown for window in windows for call_ns, piece in line.pieces(*window)
            for shown in [_shown(piece, texts.get((rank, call_ns), ""))]
        ]
        for rank, line in lines.items()
    }
    left_out_ns = 0
    while sum(map(len, found.values())) > most:
        shortest_ns = min(end_ns - begin_ns for begin_ns, end_ns in windows)
        left_out_ns = 2 * left_out_ns or shortest_ns // FINEST + 1
        found = {
            rank: [
                shown for shown in own if shown.piece.end_ns - shown.piece.begin_ns >= left_out_ns
            ]
            for rank, own in found.items()
        }
    return found, left_out_ns


def _shown(piece: Piece, detail: str) -> Shown:
    """No arrival ended a wait that is an estimate."""
    return Shown(
        piece._replace(waits_for=NOBODY) if detail.endswith(ESTIMATE) else piece, detail
    )


def _operations(sampled: SampledCalls, alignment: Alignment) -> Operations:
    parts = []
    for rows in (sampled.calls, sampled.messages, sampled.starts):
        rows = rows.take(rows.completed_ns > rows.end_ns)
        begin_ns, end_ns = (
            alignment.aligned(rows.world_rank, own) for own in (rows.start_ns, rows.completed_ns)
        )
        parts.append(
            Operations(
                rows.world_rank, begin_ns, end_ns, rows.call, rows.communicator, rows.bytes
            )
        )
    found = joined(Operations, parts)
    return found.take(
        sampled.known.which(found.call, sampled.texts, lambda call: call.library == "mpi")
    )


def _messages(split: WaitSplit, alignment: Alignment) -> Messages:
    rows, texts = split.later, split.texts
    probes = {text for text in texts.texts if "probe" in text.lower()}
    rows = rows.take(
        rows.is_known & (rows.sequence == NONE) & (rows.gone_ns != NONE)
        & (rows.wait_state == texts.number("late sender")) & ~texts.among(rows.call, probes)
    )
    end_ns = alignment.aligned(rows.world_rank, rows.gone_ns)
    return Messages(rows.last_rank, rows.world_rank, rows.peer_ns, end_ns)


def _longest(rows, windows: Spans, most: int):
    """The longest ones that are in windows, in order of time; and how long these are, if there are
    others."""
    rows = rows.take(in_spans(rows.begin_ns, rows.end_ns, windows))
    spent_ns, least_ns = rows.end_ns - rows.begin_ns, 0
    if len(rows) > most:
        least_ns = int(np.sort(spent_ns)[-most])
        rows = rows.take(np.sort(np.argsort(spent_ns, kind="stable")[-most:]))
    return rows.take(np.argsort(rows.begin_ns, kind="stable")), least_ns


def in_spans(begin_ns: Ints, end_ns: Ints, spans: Spans) -> np.ndarray:
    """Whether a time overlaps any of the spans, which are disjoint and in order."""
    begins, ends = np.array(spans, np.int64).reshape(-1, 2).T
    last = np.searchsorted(begins, end_ns) - 1  # that begins before it ends
    return (last >= 0) & (np.append(ends, 0)[last] > begin_ns)


def _marks(steps: Steps, alignment: Alignment) -> list[tuple[int, int, int]]:
    rows = steps.rows
    order, groups = grouped(rows.step)
    begin_ns = groups.min(alignment.aligned(rows.world_rank, rows.begin_ns)[order])
    end_ns = groups.max(alignment.aligned(rows.world_rank, rows.end_ns)[order])
    columns = (rows.step[order[groups.first]], begin_ns, end_ns)
    found = list(zip(*(column.tolist() for column in columns)))
    return found[:: len(found) // MOST_MARKS + 1]

"""Activity of each rank in steps of a run, to be drawn, with their critical paths: the median step,
the longest ones, and as many others, spread over the run, as there is room for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, takewhile
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query, units
from ..base.arrays import np
from ..base.columns import NONE
from ..gpu.sampled import Spans, known_spans
from ..late.late_ranks import Late
from ..late.timelines import NOBODY, OUTSIDE, WAITING, Piece
from ..run.alignment import Alignment, storable
from .boundaries import Steps
from .critical_path import Span, critical_path
from .gpu_views import GpuView, OnGpu, gpu_views, on_gpus
from .sampled_calls import SampledCalls
from .stages import Stages
from .step_costs import StepRow

SQL = query.beside(__file__)

ESTIMATE = "waiting estimated from durations"
LONGEST = 7  # steps that come before the others
MOST_WITH_GPUS = 8
# of the pieces of all views together; half as many of GPUs
LEAST_BOUND, MOST_PER_RANK, LARGEST_BOUND = 22_000, 120, 60_000
RANK_PIECES = 4  # as large as a rank's row itself is in the page
MARGIN = 0.05  # share of a step, shown before and after it
# a view of too many pieces leaves out those shorter than this part of it, or than twice that, and
# so on
FINEST = 4_000


class Shown(NamedTuple):
    """A piece of a rank's timeline, inside MPI or not sampled. detail: the call's size and
    communicator, as far as they are known."""

    piece: Piece
    detail: str


class RankView(NamedTuple):
    rank: int
    begin_ns: int  # of its step
    end_ns: int
    pieces: list[Shown]
    gpus: list[GpuView]


class View(NamedTuple):
    """A step of all ranks; times are on the run's axis. left_out_ns: shorter pieces than this are
    left out; 0: none. gpu_gap_ns: so are shorter gaps in what a GPU did."""

    step: StepRow
    notable: str
    begin_ns: int
    end_ns: int
    left_out_ns: int
    gpu_gap_ns: int
    ranks: list[RankView]
    path: list[Span]


def step_views(
    connection: Connection, found: Stages, alignment: Alignment, late: Late,
    wanted: range | None = None,
) -> list[View]:
    """The median step first, then the longest ones, then the others; or the wanted ones in order,
    as many as there is room for. None where less than a step of two ranks was seen whole."""
    steps, whole = found.steps, [row for row in found.costs.steps if is_whole(row)]
    if not whole:
        return []
    times = steps.aligned(alignment, {row.step for row in whole})
    spans = {step: _span(of_step) for step, of_step in times.items()}
    by_time = sorted(whole, key=lambda row: row.step_ns)
    median = by_time[(len(whole) - 1) // 2]
    first = [median, *(row for row in reversed(by_time) if row is not median)][: 1 + LONGEST]
    others = [row for row in spread(whole) if row not in first]
    if wanted:
        first, others = [row for row in whole if row.step in wanted], []
    most_pieces = min(LARGEST_BOUND, max(LEAST_BOUND, MOST_PER_RANK * len(times[median.step])))
    known = known_spans(connection)
    most_views = MOST_WITH_GPUS if known else None
    chosen = list(islice(_fitting([*first, *others], times, spans, late, most_pieces), most_views))
    if not chosen:
        return []
    drawn = _windows(steps, {row.step: spans[row.step] for row in chosen}, alignment)
    details = _details(connection, found.sampled, drawn, alignment, late)
    gpus = on_gpus(connection, alignment, drawn, known)
    chosen[len(first) :] = sorted(chosen[len(first) :], key=lambda row: row.step)
    notable = {by_time[-1].step: "the longest", median.step: "the median"}
    views = [
        _view(
            row, notable.get(row.step, ""), times[row.step], spans[row.step], late, details,
            most_pieces,
        )
        for row in chosen
    ]
    return [_with_gpus(view, gpus, most_pieces // 2 // len(views)) for view in views]


def is_whole(row: StepRow) -> bool:
    """Whether it is known what its ranks did, and it is not of the warm-up."""
    return bool(row.is_complete and not row.is_warm_up and row.ranks > 1)


def spread(rows: Sequence[StepRow]) -> list[StepRow]:
    """In an order in which the first n, for any n, are spread over the run about evenly."""
    return [
        row for _, row in sorted((f"{place:064b}"[::-1], row) for place, row in enumerate(rows))
    ]


def _fitting(
    rows: Sequence[StepRow], times: Mapping[int, Mapping[int, tuple[int, int]]],
    spans: Mapping[int, tuple[int, int]], late: Late, most_pieces: int,
) -> Iterator[StepRow]:
    """The first one always."""
    pieces = 0
    for row in rows:
        pieces += sum(
            RANK_PIECES + late.timelines[rank].pieces_between(*spans[row.step])
            for rank in times[row.step]
        )
        if row is not rows[0] and pieces > most_pieces:
            return
        yield row


def _span(times: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    """Time that is drawn of a step."""
    first_ns, last_ns = (
        min(begin_ns for begin_ns, _ in times.values()),
        max(end_ns for _, end_ns in times.values()),
    )
    margin_ns = round(MARGIN * (last_ns - first_ns))
    return first_ns - margin_ns, last_ns + margin_ns


def _windows(
    steps: Steps, spans: Mapping[int, tuple[int, int]], alignment: Alignment
) -> dict[int, Spans]:
    """The windows in each rank's own time. Clocks drift little in a step."""
    rows = steps.rows.take(np.isin(steps.rows.step, [*spans]))
    begins, ends = (
        times - alignment.aligned(rows.world_rank, times) for times in (rows.begin_ns, rows.end_ns)
    )
    drawn: dict[int, Spans] = {}
    for step, rank, begin_ns, end_ns in zip(
        rows.step.tolist(), rows.world_rank.tolist(), begins.tolist(), ends.tolist()
    ):
        span = storable(spans[step][0] + begin_ns), storable(spans[step][1] + end_ns)
        drawn.setdefault(rank, []).append(span)
    return drawn


def _details(
    connection: Connection, sampled: SampledCalls, drawn: Mapping[int, Spans], alignment: Alignment,
    late: Late,
) -> dict[tuple[int, int], str]:
    """By rank and begin of the call on the run's axis: size and communicator of the calls of main
    threads that begin in a part that is drawn."""
    labels = {(rank, number): label for rank, number, label in SQL.run(connection, "step_labels")}
    calls, texts = sampled.calls, {}
    for rank, spans in drawn.items():
        first, last = np.searchsorted(calls.world_rank, (rank, rank + 1))
        for span in spans:
            edges = first + np.searchsorted(calls.start_ns[first:last], span + np.array((0, 1)))
            rows = np.arange(*edges)
            own = calls.take(rows[sampled.on_main(rows)])
            start_ns = alignment.aligned(own.world_rank, own.start_ns).tolist()
            for at_ns, number, own_bytes in zip(
                start_ns, own.communicator.tolist(), own.bytes.tolist()
            ):
                size = "" if own_bytes == NONE else units.size(own_bytes)
                label = labels.get((rank, number), units.NO_VALUE)
                known = (size, "" if label == units.NO_VALUE else label)
                texts[rank, at_ns] = ", ".join(filter(None, known))
    for call in late.stages.sums.chosen.estimated():
        if call in texts:
            texts[call] = ", ".join(filter(None, (texts[call], ESTIMATE)))
    return texts


def _view(
    row: StepRow, notable: str, times: Mapping[int, tuple[int, int]], span: tuple[int, int],
    late: Late, details: Mapping[tuple[int, int], str], most_pieces: int,
) -> View:
    begin_ns, end_ns = span
    ranks = []
    for rank in sorted(times):
        pieces = takewhile(
            lambda piece: piece.end_ns > begin_ns, late.timelines[rank].back_from(end_ns)
        )
        ranks.append(
            RankView(
                rank, *times[rank], list(_shown(rank, reversed(list(pieces)), begin_ns, details)),
                [],
            )
        )
    left_out_ns = 0
    while sum(len(one.pieces) for one in ranks) > most_pieces:
        left_out_ns = 2 * left_out_ns or (end_ns - begin_ns) // FINEST + 1
        ranks = [one._replace(pieces=_coarse(one.pieces, left_out_ns)) for one in ranks]
    return View(
        row, notable, begin_ns, end_ns, left_out_ns, 0, ranks, critical_path(late.timelines, times)
    )


def _with_gpus(view: View, gpus: list[OnGpu], most_pieces: int) -> View:
    found, gap_ns = gpu_views(gpus, view.begin_ns, view.end_ns, most_pieces)
    ranks = [rank._replace(gpus=found.get(rank.rank, [])) for rank in view.ranks]
    return view._replace(ranks=ranks, gpu_gap_ns=gap_ns if found else 0)


def _shown(
    rank: int, pieces: Iterator[Piece], since_ns: int, details: Mapping[tuple[int, int], str]
) -> Iterator[Shown]:
    """All but the time outside MPI. The transfer that follows a wait belongs to the same call."""
    is_same_call, detail = False, ""
    for piece in pieces:
        detail = detail if is_same_call else details.get((rank, piece.begin_ns), "")
        is_same_call = piece.state == WAITING
        if piece.state != OUTSIDE:
            # no arrival ended it
            waits_for = NOBODY if detail.endswith(ESTIMATE) else piece.waits_for
            yield Shown(
                piece._replace(begin_ns=max(piece.begin_ns, since_ns), waits_for=waits_for), detail
            )


def _coarse(pieces: Sequence[Shown], shortest_ns: int) -> list[Shown]:
    return [shown for shown in pieces if shown.piece.end_ns - shown.piece.begin_ns >= shortest_ns]

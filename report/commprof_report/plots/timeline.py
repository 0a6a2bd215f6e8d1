"""Timelines of some steps, as data for the page's own drawing
(display/timeline.js): ranks x time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..base import units
from ..display.colours import COMMUNICATING, COMPUTING, COPYING, of_call, variable
from ..late.timelines import FILES, OUTSIDE, STATES, TRANSFER, UNSEEN, UNSPLIT, WAITING
from ..steps.gpu_views import GpuView
from ..steps.step_views import RankView, View

NAMES = {
    OUTSIDE: "outside MPI", TRANSFER: "transfer", FILES: "in files", WAITING: "waiting",
    UNSPLIT: "in MPI, not split", UNSEEN: "not sampled",
}
GPU_STATES = ["computing", "communicating", "copying"]  # bits of overlap.py
GPU_COLOURS = [variable(colour) for colour in (COMPUTING, COMMUNICATING, COPYING)]


def data(views: Sequence[View], hosts: Mapping[int, str]) -> dict[str, object]:
    """hosts: by rank. colours: of the names, if they are calls. All times in nanoseconds. A view's
    are since its begin, but those of a piece: [since the end of the piece before, duration, state,
    call, rank that was waited for or -1, detail], one after the other; of a GPU: [since that,
    duration, states], a bit each. A rank's host is a place in `hosts`."""
    numbers = _Numbers()
    named = sorted(set(hosts.values()))
    of_rank = {rank: named.index(host) for rank, host in hosts.items()}
    shown = [_view(view, numbers, of_rank) for view in views]
    return {
        "states": [NAMES[state] for state in STATES],
        "gpuStates": GPU_STATES,
        "gpuColours": GPU_COLOURS,
        "names": numbers.names,
        "colours": [variable(of_call(name)) for name in numbers.names],
        "hosts": [*map(units.visible, named)],
        "views": shown,
    }


class _Numbers:
    """Numbers of texts that occur often."""

    def __init__(self) -> None:
        self.numbers = {"": 0}

    def of(self, name: str) -> int:
        return self.numbers.setdefault(units.visible(name), len(self.numbers))

    @property
    def names(self) -> list[str]:
        return list(self.numbers)


def _view(view: View, numbers: _Numbers, hosts: Mapping[int, int]) -> dict[str, object]:
    which = f", {view.notable}" if view.notable else ""
    return {
        "step": view.step.step,
        "title": f"step {view.step.step:,}{which}: {units.duration(view.step.step_ns)}",
        "note": "; ".join(_left_out(view)),
        "span": view.end_ns - view.begin_ns,
        "ranks": [_rank(view, rank, numbers) | {"host": hosts[rank.rank]} for rank in view.ranks],
        "path": [
            [span.rank, span.begin_ns - view.begin_ns, span.end_ns - view.begin_ns]
            for span in view.path
        ],
    }


def _left_out(view: View) -> Iterator[str]:
    if view.left_out_ns:
        yield f"pieces shorter than {units.duration(view.left_out_ns)} are left out"
    if view.gpu_gap_ns:
        yield f"pauses of GPUs shorter than {units.duration(view.gpu_gap_ns)} are left out"


def _rank(view: View, rank: RankView, numbers: _Numbers) -> dict[str, object]:
    begin_ns, end_ns = (time_ns - view.begin_ns for time_ns in (rank.begin_ns, rank.end_ns))
    gpus = [{"number": gpu.number, "pieces": list(_gpu_pieces(view, gpu))} for gpu in rank.gpus]
    return {
        "rank": rank.rank,
        "begin": begin_ns,
        "end": end_ns,
        "pieces": list(_pieces(view, rank, numbers)),
        "gpus": gpus,
    }


def _pieces(view: View, rank: RankView, numbers: _Numbers) -> Iterator[int]:
    before_ns = view.begin_ns
    for (begin_ns, end_ns, state, call, waits_for), detail in rank.pieces:
        yield from (
            begin_ns - before_ns, end_ns - begin_ns, state, numbers.of(call), waits_for,
            numbers.of(detail),
        )
        before_ns = end_ns


def _gpu_pieces(view: View, gpu: GpuView) -> Iterator[int]:
    before_ns = view.begin_ns
    for begin_ns, end_ns, states in gpu.pieces:
        yield from (begin_ns - before_ns, end_ns - begin_ns, states)
        before_ns = end_ns

"""The timeline of a run, as data for the page's own drawing (display/timeline.js): ranks x time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from ..base import np, units
from ..display import pictures
from ..late.wait_split import (
    ABSENT,
    FILES,
    NEGOTIATING,
    OUTSIDE,
    TRANSFER,
    UNSEEN,
    UNSPLIT,
    WAITING,
)
from ..steps.run_view import (
    CLASSES,
    GPU_COMPUTING,
    GPU_COPYING,
    GPU_EXPOSED,
    PARTS,
    RankView,
    View,
)

LOOKS = {  # of each class of time: name and colour
    OUTSIDE: ("outside MPI", pictures.OUTSIDE),
    TRANSFER: ("transfer", pictures.TRANSFER),
    FILES: ("in files", pictures.FILES),
    WAITING: ("waiting", pictures.WAITING),
    UNSPLIT: ("in MPI, not split", pictures.UNSPLIT),
    UNSEEN: ("not sampled", pictures.NEUTRAL),
    NEGOTIATING: ("negotiation", pictures.IN_MPI),
    ABSENT: ("not running", pictures.PAPER),
    GPU_COMPUTING: ("computing", pictures.COMPUTING),
    GPU_EXPOSED: ("communicating", pictures.COMMUNICATING),
    GPU_COPYING: ("copying", pictures.COPYING),
}
# characters that need no escape in JSON or HTML
DIGITS = "".join(char for char in map(chr, range(35, 127)) if char not in "<\\&")


def data(view: View, hosts: Mapping[int, str]) -> dict[str, object]:
    """hosts: by rank. All times in nanoseconds since the run's begin, but those of a piece: [since
    the end of the piece before, duration, state, call, rank that was waited for or -1, detail], one
    after the other; of an operation in flight
    [since the begin of the one before, duration, call, detail]. Calls and details are places in
    `names`; `colours` are those of the names, if they are calls. `cells`: of each bin a number of
    `width` digits, a place in `palette`: how many `parts` of the bin were of each class. A rank's
    host is a place in `hosts`; `messages`: sender, receiver, begin, duration."""
    numbers: dict[str, int] = defaultdict(lambda: len(numbers))
    numbers[""] = 0
    named = sorted(set(hosts.values()))
    of_rank = {rank: named.index(host) for rank, host in hosts.items()}
    cells = _Cells(view)
    ranks = [
        _rank(rank, numbers, cells) | {"host": of_rank.get(rank.rank, 0)} for rank in view.ranks
    ]
    found = view.messages
    columns = (found.sender, found.receiver, found.begin_ns, found.end_ns - found.begin_ns)
    return {
        "span": view.end_ns,
        "classes": [name for name, _ in LOOKS.values()],
        "classColours": [pictures.variable(colour) for _, colour in LOOKS.values()],
        "parts": PARTS,
        "digits": DIGITS,
        "width": cells.width,
        "palette": cells.palette,
        "names": [*map(units.visible, numbers)],
        "colours": [pictures.variable(pictures.of_call(name)) for name in numbers],
        "hosts": [*map(units.visible, named)],
        "windows": view.windows,
        "ranks": ranks,
        "steps": [
            {
                "step": step.row.step,
                "title": f"step {step.row.step:,}{step.notable and f', {step.notable}'}: "
                f"{units.duration(step.row.step_ns)}",
                "begin": step.begin_ns,
                "end": step.end_ns,
                "times": [[rank, *times] for rank, times in sorted(step.times.items())],
                "path": [[span.rank, span.begin_ns, span.end_ns] for span in step.path],
            }
            for step in view.steps
        ],
        "marks": view.marks,
        "messages": np.stack(columns, axis=1).ravel().tolist(),
        "note": "; ".join(_left_out(view)),
    }


class _Cells:
    """All bins as places in a palette, the commonest ones first. palette: the classes that occur in
    a bin, each with its parts: [class, parts, class, parts]."""

    def __init__(self, view: View) -> None:
        rows: list = [lane for rank in view.ranks for lane in (rank, *rank.gpus)]
        places = (PARTS + 1) ** np.arange(CLASSES, dtype=np.int64)
        keys = np.stack([lane.cells @ places for lane in rows])
        known, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        rank_of = np.empty(len(order), np.int64)
        rank_of[order] = np.arange(len(order))
        self.places = dict(zip(map(id, rows), rank_of[place].reshape(keys.shape)))
        self.palette = [
            [number for each, parts in enumerate(entry) if parts for number in (each, parts)]
            for entry in (known[order, None] // places % (PARTS + 1)).tolist()
        ]
        self.width = 1
        while len(DIGITS) ** self.width < len(order):
            self.width += 1

    def text(self, lane: object) -> str:
        digits = np.array(list(DIGITS))
        powers = len(DIGITS) ** np.arange(self.width)
        return "".join(digits[self.places[id(lane)][:, None] // powers % len(DIGITS)].ravel())


def _left_out(view: View) -> Iterator[str]:
    if view.ranks_left_out:
        yield f"{units.are(view.ranks_left_out, 'more rank')} left out"
    for what, shortest_ns in (
        ("calls", view.left_out_ns),
        ("operations in flight", view.in_flight_left_out_ns),
        ("messages", view.messages_left_out_ns),
    ):
        if shortest_ns:
            yield f"{what} shorter than {units.duration(shortest_ns)} are left out"


def _rank(rank: RankView, numbers: Mapping[str, int], cells: _Cells) -> dict[str, object]:
    pieces, in_flight, before_ns = [], [], 0
    for (begin_ns, end_ns, state, call, waits_for), detail in rank.pieces:
        times = begin_ns - before_ns, end_ns - begin_ns
        pieces += [*times, state, numbers[call], waits_for, numbers[detail]]
        before_ns = end_ns
    before_ns = 0
    for begin_ns, end_ns, call, detail in rank.in_flight:
        times = begin_ns - before_ns, end_ns - begin_ns
        in_flight += [*times, numbers[call], numbers[detail]]
        before_ns = begin_ns
    return {
        "rank": rank.rank,
        "begin": rank.begin_ns,
        "end": rank.end_ns,
        "cells": cells.text(rank),
        "pieces": pieces,
        "inFlight": in_flight,
        "gpus": [{"number": gpu.number, "cells": cells.text(gpu)} for gpu in rank.gpus],
    }

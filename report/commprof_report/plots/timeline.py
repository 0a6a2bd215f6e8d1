"""The timeline of a run, as data for the page's own drawing (display/timeline.js): ranks x time.

It is a kind of its own beside the pictures of bars.py: it goes from the whole run to single calls,
of which it draws tens of thousands, as far as they are in sight. So it is pixels on a canvas, and
no picture in a file could take its place. The page's bars of steps (display/steps.js) are of the
kind of bars.py, and have its data; there they are drawn again because they follow the width of the
page, and a reader chooses the timeline's step by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from ..base import NONE, Columns, by_rank, np, units
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
    on_hosts = sorted(set(hosts.values()))
    of_rank = {rank: on_hosts.index(host) for rank, host in hosts.items()}
    texts = [rows for own in (view.pieces, view.in_flight) for rows in (own.call, own.detail)]
    used = np.unique(np.concatenate([[NONE], *texts]))
    names = [view.texts.text(number) or "" for number in used.tolist()]
    pieces, in_flight = (
        rows.changed(
            call=np.searchsorted(used, rows.call), detail=np.searchsorted(used, rows.detail)
        )
        for rows in (view.pieces, view.in_flight)
    )
    pieces_of = _packed(pieces, "end_ns", "state call waits_for detail")
    in_flight_of = _packed(in_flight, "begin_ns", "call detail")
    lanes = [cells for rank in view.ranks for cells in (rank.cells, *rank.gpus.values())]
    palette, width, cells = _in_palette(lanes)
    found = view.messages
    columns = (found.sender, found.receiver, found.begin_ns, found.end_ns - found.begin_ns)
    return {
        "span": view.end_ns,
        "classes": [name for name, _ in LOOKS.values()],
        "classColours": [pictures.variable(colour) for _, colour in LOOKS.values()],
        "parts": PARTS,
        "digits": DIGITS,
        "width": width,
        "palette": palette,
        "names": [*map(units.visible, names)],
        "colours": [pictures.variable(pictures.of_call(name)) for name in names],
        "hosts": [*map(units.visible, on_hosts)],
        "windows": view.windows.tolist(),
        "ranks": [
            {
                "rank": rank.rank,
                "begin": rank.begin_ns,
                "end": rank.end_ns,
                "cells": next(cells),
                "pieces": pieces_of.get(rank.rank, []),
                "inFlight": in_flight_of.get(rank.rank, []),
                "gpus": [{"number": number, "cells": next(cells)} for number in rank.gpus],
                "host": of_rank.get(rank.rank, 0),
            }
            for rank in view.ranks
        ],
        "steps": [
            {
                "step": step.row.step,
                "title": f"step {step.row.step:,}{step.notable and f', {step.notable}'}: "
                f"{units.duration(step.row.step_ns)}",
                "begin": step.begin_ns,
                "end": step.end_ns,
                "times": [[rank, *times] for rank, times in sorted(step.times.items())],
                "path": [[rank, piece.begin_ns, piece.end_ns] for rank, piece in step.path],
            }
            for step in view.steps
        ],
        "marks": view.marks,
        "messages": np.stack(columns, axis=1).ravel().tolist(),
        "note": "; ".join(
            [f"{units.are(view.ranks_left_out, 'more rank')} left out"] * bool(view.ranks_left_out)
            + [
                f"{what} shorter than {units.duration(least_ns)} are left out"
                for what, least_ns in view.left_out.items()
                if least_ns
            ]
        ),
    }


def _packed(rows: Columns, edge: str, names: str) -> dict[int, list[int]]:
    """By rank; the numbers of a row are the time since this edge of the one before, the duration,
    and the columns with these names."""
    found = {}
    for rank, at in by_rank(rows.world_rank):
        own = rows.take(at)
        since_ns = own.begin_ns - np.append(0, getattr(own, edge)[:-1])
        columns = (getattr(own, name) for name in names.split())
        numbers = np.stack([since_ns, own.end_ns - own.begin_ns, *columns], axis=1)
        found[rank] = numbers.ravel().tolist()
    return found


def _in_palette(lanes: Sequence[np.ndarray]) -> tuple[list[list[int]], int, Iterator[str]]:
    """The palette of all bins, the commonest ones first: the classes that occur in a bin, each with
    its parts: [class, parts, class, parts]. The digits of a place in it, and of each lane the
    places of its bins."""
    places = (PARTS + 1) ** np.arange(CLASSES, dtype=np.int64)
    keys = np.stack([cells @ places for cells in lanes])
    known, entry, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    palette = [
        [number for each, parts in enumerate(entry) if parts for number in (each, parts)]
        for entry in (known[order, None] // places % (PARTS + 1)).tolist()
    ]
    width = next(width for width in count(1) if len(DIGITS) ** width >= len(order))
    place = np.argsort(order)[entry].reshape(*keys.shape, 1)
    digits = np.array(list(DIGITS))[place // len(DIGITS) ** np.arange(width) % len(DIGITS)]
    return palette, width, ("".join(lane.ravel()) for lane in digits)

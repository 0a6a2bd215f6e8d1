"""Horovod's timeline (HOROVOD_TIMELINE, hvd.start_timeline): reads the description in a file, and
its events.

Horovod's rank 0 writes it: a list of events in which each tensor is a process. Times are
microseconds since the start that the first event has. The list has no end if the job was killed.
A tensor has slices one after the other: NEGOTIATE_ALLREDUCE, from the first rank that is ready to
the last one, then ALLREDUCE, with activities such as MPI_ALLREDUCE inside. Within a negotiation an
event whose name is a rank says when rank 0 heard that this rank is ready. Horovod leaves these
events out if all ranks find their request in its cache (HOROVOD_CACHE_CAPACITY): usually from the
second negotiation of a tensor on.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..base.errors import ReportError
from ..base.json_stream import JsonStream, json_open
from .pytorch_trace import Trace, counts_from_1970, is_time

START = "start_time_since_epoch_in_micros"
NEGOTIATE = "NEGOTIATE_"
CYCLE_START = "CYCLE_START"
OPERATION_DETAILS = ("dtype", "shape")
MOST_OF_NAME = 200  # characters of a tensor or an activity
MOST_TENSOR = 1 << 31  # largest number of a tensor
MOST_OPEN = 20_000  # tensors with a slice that has not ended
MOST_LEVELS = 8  # of slices in each other; Horovod has two


class Event(NamedTuple):
    """phase: 'N' names a tensor, 'B' begins a slice, 'E' ends it, 'R': a rank is ready,
    'C': Horovod's thread begins a cycle. name: of the tensor, of the slice, the rank's number."""

    phase: str
    tensor: int
    name: str
    time_us: int
    details: dict[str, str]


def timeline_scan(path: Path, stream: JsonStream) -> Trace:
    """Reads the file completely once."""
    trace = Trace(path)
    trace.is_horovod, trace.rank = True, 0
    levels: dict[int, int] = {}  # open slices by tensor
    for event in _events(trace, stream):
        if event.phase != "N":
            first_us = event.time_us if trace.first_us is None else trace.first_us
            trace.first_us = min(first_us, event.time_us)
            trace.last_us = max(trace.last_us or 0, event.time_us)
        if event.phase in "BE":
            level = levels.pop(event.tensor, 0) + (1 if event.phase == "B" else -1)
            if level > 0:
                levels[event.tensor] = level
            if level > MOST_LEVELS or len(levels) > MOST_OPEN:
                what = f"has {MOST_OPEN:,} tensors or {MOST_LEVELS} slices of a tensor open at once"
                raise ReportError(path, f"{what}, which no timeline of Horovod has")
    if trace.first_us is None:
        raise ReportError(path, "holds no event of Horovod")
    return trace


def timeline_events(path: Path) -> Iterator[Event]:
    with json_open(path) as stream:
        yield from _events(Trace(path), stream)


def _events(trace: Trace, stream: JsonStream) -> Iterator[Event]:
    """Sets the trace's base first."""
    elements = stream.elements(is_growing=True)
    trace.base_ns = 1_000 * _start_us(next(elements, None))
    if not counts_from_1970(trace.base_ns):
        what = "is a list of events without absolute times"
        writers = "PyTorch without Kineto, or Horovod before 0.20.1"
        place = "so it has no place on the time axis"
        raise ReportError(trace.path, f"{what} (written by {writers}), {place}")
    for element in elements:
        event = _event(element) if isinstance(element, dict) else None
        if event:
            yield event
    if stream.peek():
        raise ReportError(trace.path, "continues after its end")


def _start_us(element: object) -> int:
    """Since 1970; 0: this is not the first event of a timeline."""
    details = element.get("args") if isinstance(element, dict) else None
    start_us: object = details.get(START) if isinstance(details, dict) else None
    return int(start_us) if is_time(start_us) else 0


def _event(element: dict) -> Event | None:
    phase, tensor = element.get("ph"), element.get("pid")
    time_us: object = element.get("ts")
    name, details = _text(element.get("name")), element.get("args")
    details = details if isinstance(details, dict) else {}
    if phase == "i" and name == CYCLE_START and is_time(time_us):
        return Event("C", 0, name, int(time_us), {})
    if type(tensor) is not int or not 0 <= tensor < MOST_TENSOR:
        return None
    if phase == "M" and name == "process_name":
        return Event("N", tensor, _text(details.get("name")), 0, {})
    if not is_time(time_us):
        return None
    if phase in ("B", "E"):
        known = {key: _text(details[key]) for key in OPERATION_DETAILS if key in details}
        return Event(phase, tensor, name, int(time_us), known)
    is_rank = phase == "X" and name.isascii() and name.isdigit() and len(name) < 10
    return Event("R", tensor, name, int(time_us), {}) if is_rank else None


def _text(value: object) -> str:
    return value[:MOST_OF_NAME] if isinstance(value, str) else ""

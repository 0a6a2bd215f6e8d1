"""Traces of PyTorch's profiler (Kineto): reads the description in a file, and its events.

Event times are microseconds since `baseTimeNanoseconds`, or since 1970 in older files without that
key, on the host's wall clock. `distributedInfo` has the rank in torch.distributed, the process with
the label CPU has the process id, `host_name` (in newer files) the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import ReportError
from ..base.json_stream import JsonStream, json_open
from ..base.thresholds import whole

if TYPE_CHECKING:
    from typing_extensions import TypeGuard

EARLIEST_UNIX_NS = whole("exporters.earliest")
MOST_US = 1 << 53  # largest time in a file: 285 years
EVENTS = "traceEvents"
MOST_THREADS = 20_000  # of a file
MOST_OF_NAME = 200  # characters that tell one process or thread from another


class Trace:
    """The description of a file, after it was read completely once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.base_ns = 0
        self.rank: int | None = None  # of torch.distributed
        self.is_horovod = False
        self.host = ""
        self.pids: set[int] = set()  # of processes with the label CPU
        self.first_us: float | None = None
        self.last_us: float | None = None
        # by process and thread, as they are numbered
        self.threads: set[tuple[object, object]] = set()

    def unix_ns(self, time_us: float) -> int:
        return self.base_ns + round(time_us * 1_000)


def counts_from_1970(unix_ns: int) -> bool:
    return unix_ns >= EARLIEST_UNIX_NS


def trace_scan(path: Path, stream: JsonStream) -> Trace:
    trace = Trace(path)
    for key in stream.keys():
        _key_scan(trace, stream, key)
    if stream.peek():
        raise ReportError(path, "continues after its end")
    if trace.first_us is None:
        raise ReportError(path, "holds no event of PyTorch's profiler")
    if not counts_from_1970(trace.unix_ns(trace.first_us)):
        raise ReportError(
            path,
            "has times that do not count from 1970 (it has no baseTimeNanoseconds), so it has no "
            "place on the time axis",
        )
    return trace


def _key_scan(trace: Trace, stream: JsonStream, key: str) -> None:
    if key == EVENTS:
        for event in stream.elements():
            if isinstance(event, dict):
                _event_scan(trace, event)
        return
    value = stream.value()
    if key == "baseTimeNanoseconds" and is_number(value):
        trace.base_ns = int(value)
    elif key == "host_name" and isinstance(value, str):
        trace.host = value
    elif (
        key == "distributedInfo" and isinstance(value, dict) and isinstance(value.get("rank"), int)
    ):
        trace.rank = value["rank"]


def _event_scan(trace: Trace, event: dict) -> None:
    phase, time_us, pid = event.get("ph"), event.get("ts"), event.get("pid")
    if phase == "X" and is_time(time_us) and is_time(event.get("dur")) and time_us:
        trace.first_us = time_us if trace.first_us is None else min(trace.first_us, time_us)
        trace.last_us = max(trace.last_us or 0, time_us + event["dur"])
    elif (
        phase == "M" and event.get("name") == "process_labels"
        and event.get("args") == {"labels": "CPU"} and isinstance(pid, int)
    ):
        trace.pids.add(pid)
    trace.threads.add((place(pid), place(event.get("tid"))))
    if len(trace.threads) > MOST_THREADS:
        raise ReportError(trace.path, f"has more than {MOST_THREADS:,} threads, which no trace has")


def events_of(path: Path) -> Iterator[dict]:
    with json_open(path) as stream:
        for key in stream.keys():
            if key == EVENTS:
                yield from (event for event in stream.elements() if isinstance(event, dict))
            else:
                stream.value()


def place(value: object) -> object:
    """The number of a process or thread as a key. As a dictionary key, True equals 1."""
    return value if type(value) is int else str(value)[:MOST_OF_NAME]


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1 << 63


def is_time(value: object) -> TypeGuard[float]:
    """Whether it is a time in microseconds. Kineto writes 0 for times before its base."""
    return is_number(value) and value <= MOST_US


def id_number(value: object) -> int | None:
    """The number of a flow's id. Perfetto reads an id that is a string as hexadecimal."""
    try:
        number = int(value, 16) if isinstance(value, str) else value
    except ValueError:
        return None
    return int(number) if is_number(number) else None

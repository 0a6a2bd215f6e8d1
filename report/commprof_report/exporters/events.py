"""Chrome's trace event format: events as text, and the names of processes and threads.

Events of PyTorch's traces come on the run's time axis, in separate processes, threads and flows.

Numbers of different files collide: device 0 is a process in each rank's trace, and the flows of
every file count from 1. Perfetto reads -1 as 0, and assigns numbers to text ids itself. So
processes and flows get new numbers; threads keep the kernel's thread ids, which our threads' names
have too.

Horovod's timelines come on the same axis, as two processes of the rank that wrote them:

    operations  what Horovod does, fused tensors as one slice; its cycles
    tensors     a track for each: its negotiation, the ranks as they become ready, its operation

Horovod writes the slices of an operation once for each tensor of it. Those of the first tensor
begin before the call of MPI and end after it: they stand for the operation.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Callable

from ..base import units
from ..run import MOST_NS
from .traces import (
    CYCLE_START,
    Event,
    NEGOTIATE,
    OfRank,
    id_number,
    is_time,
    place,
)

PLACES_OF_RANK = 1_000  # in the list of processes: a rank's own, then those of other profilers


def event_text(phase: str, process: int, thread: int, **values: object) -> str:
    return json.dumps({"ph": phase, "pid": process, "tid": thread, **_shown(values)})


def _shown(values: dict) -> dict:
    """Without control characters."""
    return {
        key: units.visible(value)
        if isinstance(value, str)
        else _shown(value)
        if isinstance(value, dict)
        else value
        for key, value in values.items()
    }


def named(process: int, thread: int, name: str, place: int) -> Iterator[str]:
    """Name and place of a thread; thread 0: of the process."""
    what = "thread" if thread else "process"
    yield event_text("M", process, thread, name=f"{what}_name", args={"name": name})
    yield event_text("M", process, thread, name=f"{what}_sort_index", args={"sort_index": place})


def us(ns: int) -> float:
    """Microseconds. Perfetto multiplies them in floating point and cuts: a fourth decimal keeps the
    nanosecond."""
    shown = ns / 1_000
    return shown if int(shown * 1_000) == ns else round(shown + (0.0002 if ns > 0 else -0.0002), 4)


FIRST_THREAD = 4_000_000_000  # for threads whose number Perfetto does not accept (1 to 2^32 - 1)
IDS = ("id", "bind_id")  # and id2, which has an id for each scope
ID_BITS = 48  # of an id in its file; those above are the number of the file


class Beside:
    def __init__(
        self,
        first_process: int,
        aligned_ns: Callable[[int, int], int],
        overlaps: Callable[[int, int], bool],
    ) -> None:
        self.first_process, self.aligned_ns, self.overlaps = first_process, aligned_ns, overlaps
        self.processes: dict[tuple[int, object], int] = {}  # by rank and its number there
        self.threads: dict[tuple[int, object], int] = {}  # by process and its number there
        self.counts: Counter[int] = Counter()  # processes by rank
        self.file = 0

    def events(self, traces: Sequence[OfRank]) -> Iterator[str]:
        for self.file, of_rank in enumerate(traces):
            for event in of_rank.trace.events():
                yield from self._event(of_rank, event)

    def _event(self, of_rank: OfRank, event: dict) -> Iterator[str]:
        is_wanted = (
            _metadata_change(of_rank, event)
            if event.get("ph") == "M"
            else self._lay(of_rank, event)
        )
        if not is_wanted:
            return
        yield from self._number(of_rank.process.rank, event)
        self._ids_change(event)
        try:
            yield json.dumps(event, allow_nan=False)
        except ValueError:  # 1e999 is valid JSON, but readers reject infinity
            return

    def _lay(self, of_rank: OfRank, event: dict) -> bool:
        """Converts the event's times to the axis. False: it is outside the axis or the selected
        part. Perfetto has no times before 0."""
        time_us, span_us = event.get("ts"), event.get("dur", 0)
        if not time_us or not is_time(time_us) or not is_time(span_us):
            return False
        rank, began_unix_ns = of_rank.process.rank, of_rank.process.start_unix_ns
        own_ns = of_rank.trace.unix_ns(time_us) - began_unix_ns
        start_ns, end_ns = (
            self.aligned_ns(rank, own_ns),
            self.aligned_ns(rank, own_ns + round(span_us * 1_000)),
        )
        if (
            end_ns < 0
            or (start_ns < 0 and "dur" not in event)
            or end_ns > MOST_NS
            or not self.overlaps(start_ns, end_ns)
        ):
            return False
        start_ns = max(start_ns, 0)
        event["ts"] = start_ns / 1_000
        if "dur" in event:
            event["dur"] = (end_ns - start_ns) / 1_000
        return True

    def _number(self, rank: int, event: dict) -> Iterator[str]:
        """Replaces the numbers of its process and thread; yields events that name these at their
        first use."""
        theirs = place(event.get("pid"))
        if (rank, theirs) not in self.processes:
            self.counts[rank] += 1
            number = self.processes[rank, theirs] = self.first_process + len(self.processes)
            below = min(self.counts[rank], PLACES_OF_RANK - 1)
            name = _title(rank, theirs if isinstance(theirs, str) else "")
            yield from named(number, 0, name, PLACES_OF_RANK * rank + below)
        process = event["pid"] = self.processes[rank, theirs]
        thread = place(event.get("tid", 1))
        if isinstance(thread, int) and 0 < thread < FIRST_THREAD:
            return
        if (process, thread) not in self.threads:
            self.threads[process, thread] = FIRST_THREAD + len(self.threads)
            if isinstance(thread, str):
                yield event_text(
                    "M",
                    process,
                    self.threads[process, thread],
                    name="thread_name",
                    args={"name": thread or "PyTorch"},
                )
        event["tid"] = self.threads[process, thread]

    def _ids_change(self, event: dict) -> None:
        for key in IDS:
            if key in event:
                event[key] = self._id(event[key])
        if isinstance(event.get("id2"), dict):
            event["id2"] = {scope: self._id(value) for scope, value in event["id2"].items()}

    def _id(self, theirs: object) -> object:
        number = id_number(theirs)
        if number is None:
            return f"{self.file}/{theirs}"
        ours = (self.file << ID_BITS) + number % (1 << ID_BITS)
        return hex(ours) if isinstance(theirs, str) else ours


def _metadata_change(of_rank: OfRank, event: dict) -> bool:
    """Names a process by its label (CPU, GPU 0), which Perfetto does not show. Its position is
    assigned by us."""
    event.pop("ts", None)
    kind, arguments = event.get("name"), event.get("args")
    if kind not in ("process_name", "process_labels"):
        return kind != "process_sort_index"
    name = (
        arguments.get("name" if kind == "process_name" else "labels")
        if isinstance(arguments, dict)
        else None
    )
    if not isinstance(name, str) or not name:
        return False
    event.update(name="process_name", tid=1, args={"name": _title(of_rank.process.rank, name)})
    return True


def _title(rank: int, detail: str) -> str:
    return f"rank {rank}, PyTorch{': ' if detail else ''}{detail}"


OPERATIONS = "operations"  # also the name of its tracks
OTHERS = "other tensors"
PROCESSES = 2  # of a rank
MOST_TRACKS = 1_000  # names of tensors with tracks of their own
MOST_KNOWN = 100_000  # tensors whose names are remembered
MOST_LISTED = 20  # of the tensors of an operation
UNNAMED = re.compile(r"(.*\.noname)\.\d+", re.DOTALL)  # a new tensor in each call

AlignedNs = Callable[[int, int], int]
Overlaps = Callable[[int, int], bool]


@dataclass
class Slice:
    """It may change until it ends."""

    begin_ns: int
    name: str
    details: dict


class Track:
    """A thread whose slices begin and end in order. A slice is written when it ends: only then is
    it known whether it reaches into the selected part. names: written before the first event."""

    def __init__(self, process: Process, name: str) -> None:
        self.process, self.name, self.number = process, name, len(process.tracks) + 1
        self.names = named(process.number, self.number, name, self.number)
        self.open: list[Slice] = []
        self.last_ns = 0

    def begin(self, time_ns: int, name: str, details: dict) -> Slice:
        self.last_ns = max(time_ns, self.last_ns)
        self.open.append(Slice(self.last_ns, name, details))
        return self.open[-1]

    def end(self, time_ns: int, details: dict) -> Iterator[str]:
        """Perfetto has no times before 0."""
        ended, self.last_ns = self.open.pop(), max(time_ns, self.last_ns)
        if time_ns >= 0:
            span_us = us(self.last_ns - ended.begin_ns)
            ended.details.update(details)
            yield from self.written("X", ended, self.last_ns, dur=span_us, args=ended.details)
        if not self.open:
            self.process.idle[self.name].append(self)

    def mark(self, time_ns: int, name: str) -> Iterator[str]:
        if time_ns >= 0:
            yield from self.written("i", Slice(time_ns, name, {}), time_ns, s="t")

    def written(self, phase: str, slice_: Slice, end_ns: int, **values: object) -> Iterator[str]:
        if self.process.overlaps(slice_.begin_ns, end_ns):
            yield from chain(self.process.names, self.names)
            yield event_text(
                phase,
                self.process.number,
                self.number,
                name=slice_.name,
                ts=us(slice_.begin_ns),
                **values,
            )


class Process:
    """Tracks by name: several of one name where slices overlap."""

    def __init__(self, number: int, name: str, place: int, overlaps: Overlaps) -> None:
        self.number, self.overlaps = number, overlaps
        self.names = named(number, 0, name, place)
        self.tracks: list[Track] = []
        self.idle: dict[str, list[Track]] = {}  # without open slices, by name

    def take(self, name: str) -> Track:
        name = name if name in self.idle or len(self.idle) < MOST_TRACKS else OTHERS
        idle = self.idle.setdefault(name, [])
        if not idle:
            self.tracks.append(Track(self, name))
        return idle.pop() if idle else self.tracks[-1]

    def unfinished(self) -> Iterator[str]:
        """Perfetto says of slices without an end that they did not finish."""
        for track in self.tracks:
            for each in track.open:
                yield from track.written("B", each, MOST_NS, args=each.details)
            if track.open:
                self.idle[track.name].append(track)
            track.open.clear()


def horovod_events(
    timelines: Sequence[OfRank], beside: Beside, aligned_ns: AlignedNs, overlaps: Overlaps
) -> Iterator[str]:
    """In processes after those that are beside."""
    by_rank: dict[int, Timelines] = {}
    for of_rank in timelines:
        rank = of_rank.process.rank
        if rank not in by_rank:
            first = beside.first_process + len(beside.processes) + PROCESSES * len(by_rank)
            by_rank[rank] = Timelines(rank, first, aligned_ns, overlaps)
        yield from by_rank[rank].events(of_rank)


class Timelines:
    """The timelines of one rank: a job that starts and stops them writes several."""

    def __init__(self, rank: int, first_process: int, aligned_ns: AlignedNs, overlaps: Overlaps):
        self.rank, self.aligned_ns = rank, aligned_ns
        last = PLACES_OF_RANK * (rank + 1)
        names = ((OPERATIONS, last - 2), ("tensors", last - 1))
        self.operations, self.tensors = (
            Process(first_process + at, f"rank {rank}, Horovod: {name}", place, overlaps)
            for at, (name, place) in enumerate(names)
        )
        self.cycles = self.operations.take("cycles")

    def events(self, of_rank: OfRank) -> Iterator[str]:
        self.names: dict[int, str] = {}  # by tensor
        # of tensors with an open slice: their own; of the first tensor of an operation, its track
        self.tracks: dict[int, list[Track]] = {}
        self.operation: Slice | None = None  # whose tensors are being listed
        for each in of_rank.trace.events():
            own_ns = of_rank.trace.unix_ns(each.time_us) - of_rank.process.start_unix_ns
            time_ns = self.aligned_ns(self.rank, own_ns)
            if time_ns <= MOST_NS:
                yield from self._written(each, time_ns)
        yield from self.operations.unfinished()
        yield from self.tensors.unfinished()

    def _written(self, event: Event, time_ns: int) -> Iterator[str]:
        tensor, tracks = event.tensor, self.tracks.get(event.tensor, [])
        if event.phase == "N":
            if tensor in self.names or len(self.names) < MOST_KNOWN:
                unnamed = UNNAMED.fullmatch(event.name)
                self.names[tensor] = unnamed[1] if unnamed else event.name
        elif event.phase == "C":
            yield from self.cycles.mark(time_ns, CYCLE_START)
        elif event.phase == "R":
            for track in tracks[:1]:
                yield from track.mark(time_ns, f"rank {int(event.name)} is ready")
        elif event.phase == "B":
            self._begin(event, time_ns)
        elif event.phase == "E" and tracks:
            self.operation = None
            for track, details in zip(tracks, (event.details, {})):
                yield from track.end(time_ns, details)
            if not tracks[0].open:
                del self.tracks[tensor]

    def _begin(self, event: Event, time_ns: int) -> None:
        tracks = self.tracks.setdefault(event.tensor, [])
        for track in tracks:
            self.operation = None
            track.begin(time_ns, event.name, {})
        if not tracks:
            name = self.names.get(event.tensor, OTHERS)
            tracks.append(self.tensors.take(name))
            tracks[0].begin(time_ns, event.name, {})
            if not event.name.startswith(NEGOTIATE):
                tracks += self._led(event, name, time_ns)

    def _led(self, event: Event, name: str, time_ns: int) -> Iterator[Track]:
        """Horovod begins an operation for one of its tensors after the other."""
        if self.operation and self.operation.details["operation"] == event.name:
            listed = self.operation.details
            listed["tensors"] += 1
            if len(listed["names"]) < MOST_LISTED:
                listed["names"].append(name)
            self.operation.name = f"{event.name} of {units.counted(listed['tensors'], 'tensor')}"
            return
        track = self.operations.take(OPERATIONS)
        details = {"operation": event.name, "tensors": 1, "names": [name]}
        self.operation = track.begin(time_ns, f"{event.name} of {name}", details)
        yield track

"""Adds Horovod's timelines to ours, on the run's time axis, as two processes of the rank that wrote
them:

    operations  what Horovod does, fused tensors as one slice; its cycles; how many tensors wait
    tensors     a track for each: its negotiation, the ranks as they become ready, its operation

Horovod writes the slices of an operation once for each tensor of it. Those of the first tensor
begin before the call of MPI and end after it: they stand for the operation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Callable

from ..base import units
from ..run.alignment import MOST_NS
from .horovod_timeline import CYCLE_START, NEGOTIATE, Event, timeline_events
from .pytorch_events import PLACES_OF_RANK
from .trace_files import OfRank

OPERATIONS = "operations"  # also the name of its tracks
WAITING = "tensors waiting for a rank"
OTHERS = "other tensors"
PROCESSES = 2  # of a rank
MOST_TRACKS = 1_000  # names of tensors with tracks of their own
MOST_KNOWN = 100_000  # tensors whose names are remembered
MOST_LISTED = 20  # of the tensors of an operation
UNNAMED = re.compile(r"(.*\.noname)\.\d+", re.DOTALL)  # a new tensor in each call

AlignedNs = Callable[[int, int], int]
Overlaps = Callable[[int, int], bool]


class Process:
    """Named when its first event is written."""

    def __init__(self, number: int, name: str, place: int) -> None:
        self.number, self.name, self.place = number, name, place
        self.threads = 0
        self.is_named = False

    def names(self) -> Iterator[str]:
        if not self.is_named:
            self.is_named = True
            yield self.metadata("process_name", 1, {"name": self.name})
            yield self.metadata("process_sort_index", 1, {"sort_index": self.place})

    def metadata(self, name: str, thread: int, details: dict) -> str:
        return _event("M", self.number, thread, name=name, args=details)


@dataclass
class Slice:
    begin_ns: int
    name: str
    details: dict


class Track:
    """A thread whose slices begin and end in order. A slice is written when it, or one inside it,
    ends: only then is it known whether it reaches into the selected part."""

    def __init__(self, process: Process, name: str, overlaps: Overlaps) -> None:
        process.threads += 1
        self.process, self.number, self.name = process, process.threads, name
        self.overlaps = overlaps
        self.open: list[Slice] = []
        self.written = 0  # of the open slices
        self.last_ns = 0
        self.is_named = False

    def begin(self, time_ns: int, name: str, details: dict) -> Slice:
        """The slice's name and details may change until it is written."""
        self.last_ns = max(time_ns, self.last_ns)
        self.open.append(Slice(self.last_ns, name, details))
        return self.open[-1]

    def end(self, time_ns: int, details: dict) -> Iterator[str]:
        """Perfetto has no times before 0."""
        self.last_ns = max(time_ns, self.last_ns)
        if time_ns >= 0 and self.overlaps(self.open[-1].begin_ns, self.last_ns):
            yield from self._begins(self.open)
            yield from self._written("E", self.last_ns, args=details)
        self.open.pop()
        self.written = min(self.written, len(self.open))

    def unfinished(self) -> Iterator[str]:
        """Perfetto says of slices without an end that they did not finish."""
        shown = [each for each in self.open if self.overlaps(each.begin_ns, MOST_NS)]
        yield from self._begins(shown)
        self.open.clear()
        self.written = 0

    def mark(self, time_ns: int, name: str) -> Iterator[str]:
        if 0 <= time_ns and self.overlaps(time_ns, time_ns):
            yield from self._written("i", time_ns, name=name, s="t")

    def _begins(self, slices: Sequence[Slice]) -> Iterator[str]:
        for each in slices[self.written :]:
            yield from self._written("B", each.begin_ns, name=each.name, args=each.details)
        self.written = max(self.written, len(slices))

    def _written(self, phase: str, time_ns: int, **values: object) -> Iterator[str]:
        yield from self.process.names()
        if not self.is_named:
            self.is_named = True
            place = {"sort_index": self.number}
            yield self.process.metadata("thread_name", self.number, {"name": self.name})
            yield self.process.metadata("thread_sort_index", self.number, place)
        yield _event(phase, self.process.number, self.number, ts=time_ns / 1_000, **values)


def _event(phase: str, process: int, thread: int, **values: object) -> str:
    return json.dumps({"ph": phase, "pid": process, "tid": thread, **values})


class Tracks:
    """Tracks of a process, by name: several of one name where slices overlap."""

    def __init__(self, process: Process, overlaps: Overlaps) -> None:
        self.process, self.overlaps = process, overlaps
        self.all: list[Track] = []
        self.idle: dict[str, list[Track]] = {}  # without open slices, by name

    def take(self, name: str) -> Track:
        if name not in self.idle and len(self.idle) >= MOST_TRACKS:
            name = OTHERS
        idle = self.idle.setdefault(name, [])
        if idle:
            return idle.pop()
        self.all.append(Track(self.process, name, self.overlaps))
        return self.all[-1]

    def give_back(self, track: Track) -> None:
        self.idle[track.name].append(track)

    def unfinished(self) -> Iterator[str]:
        for track in self.all:
            if track.open:
                yield from track.unfinished()
                self.give_back(track)


def horovod_events(
    timelines: Sequence[OfRank], first_process: int, aligned_ns: AlignedNs, overlaps: Overlaps
) -> Iterator[str]:
    by_rank: dict[int, RankTracks] = {}
    for of_rank in timelines:
        rank = of_rank.process.rank
        if rank not in by_rank:
            first = first_process + PROCESSES * len(by_rank)
            by_rank[rank] = RankTracks(rank, first, aligned_ns, overlaps)
        yield from by_rank[rank].events(of_rank)


class RankTracks:
    """The timelines of one rank: a job that starts and stops them writes several."""

    def __init__(self, rank: int, first_process: int, aligned_ns: AlignedNs, overlaps: Overlaps):
        self.rank, self.aligned_ns, self.overlaps = rank, aligned_ns, overlaps
        last = PLACES_OF_RANK * (rank + 1)
        names = ((OPERATIONS, last - 2), ("tensors", last - 1))
        self.operations, self.tensors = (
            Tracks(Process(first_process + at, f"rank {rank}, Horovod: {name}", place), overlaps)
            for at, (name, place) in enumerate(names)
        )
        self.cycles = self.operations.take("cycles")

    def events(self, of_rank: OfRank) -> Iterator[str]:
        timeline = Timeline(self)
        for event in timeline_events(of_rank.trace.path):
            own_ns = of_rank.trace.unix_ns(event.time_us) - of_rank.process.start_unix_ns
            time_ns = self.aligned_ns(self.rank, own_ns)
            if time_ns <= MOST_NS:
                yield from timeline.events(event, time_ns)
        yield from timeline.counter(MOST_NS)
        yield from self.operations.unfinished()
        yield from self.tensors.unfinished()


class Timeline:
    """One file."""

    def __init__(self, tracks: RankTracks) -> None:
        self.tracks = tracks
        self.names: dict[int, str] = {}  # by tensor
        self.own: dict[int, Track] = {}  # of tensors with an open slice
        self.leading: dict[int, Track] = {}  # of the first tensors of open operations
        self.operation: Slice | None = None  # whose tensors are being listed
        self.waiting: set[int] = set()  # tensors that are negotiated
        self.counted_ns: int | None = None  # when their number last changed

    def events(self, event: Event, time_ns: int) -> Iterator[str]:
        tensor = event.tensor
        if event.phase == "N":
            if tensor in self.names or len(self.names) < MOST_KNOWN:
                unnamed = UNNAMED.fullmatch(event.name)
                self.names[tensor] = unnamed[1] if unnamed else event.name
        elif event.phase == "C":
            yield from self.tracks.cycles.mark(time_ns, CYCLE_START)
        elif event.phase == "R" and tensor in self.own:
            yield from self.own[tensor].mark(time_ns, f"rank {int(event.name)} is ready")
        elif event.phase == "B" and tensor in self.own:
            self._begin(event, time_ns)
        elif event.phase == "B":
            self.own[tensor] = self.tracks.tensors.take(self.names.get(tensor, OTHERS))
            if event.name.startswith(NEGOTIATE):
                yield from self.counter(time_ns)
                self.waiting.add(tensor)
            else:
                self._lead(event, time_ns)
            self.own[tensor].begin(time_ns, event.name, {})
        elif event.phase == "E" and tensor in self.own:
            yield from self._end(event, time_ns)

    def counter(self, time_ns: int) -> Iterator[str]:
        """The number of waiting tensors up to this time, at which it changes."""
        since_ns, self.counted_ns = self.counted_ns, time_ns
        if since_ns is None or not 0 <= since_ns < time_ns:
            return
        if not self.tracks.overlaps(since_ns, time_ns):
            return
        process = self.tracks.operations.process
        yield from process.names()
        value = {"value": len(self.waiting)}
        yield _event("C", process.number, 1, name=WAITING, ts=since_ns / 1_000, args=value)

    def _lead(self, event: Event, time_ns: int) -> None:
        """Horovod begins an operation for one of its tensors after the other."""
        name = self.names.get(event.tensor, OTHERS)
        if self.operation and self.operation.details["operation"] == event.name:
            listed = self.operation.details
            listed["tensors"] += 1
            if len(listed["names"]) < MOST_LISTED:
                listed["names"].append(name)
            self.operation.name = f"{event.name} of {units.counted(listed['tensors'], 'tensor')}"
            return
        track = self.leading[event.tensor] = self.tracks.operations.take(OPERATIONS)
        details = {"operation": event.name, "tensors": 1, "names": [name]}
        self.operation = track.begin(time_ns, f"{event.name} of {name}", details)

    def _begin(self, event: Event, time_ns: int) -> None:
        self.operation = None
        self.own[event.tensor].begin(time_ns, event.name, {})
        if event.tensor in self.leading:
            self.leading[event.tensor].begin(time_ns, event.name, {})

    def _end(self, event: Event, time_ns: int) -> Iterator[str]:
        self.operation = None
        tensor, track = event.tensor, self.own[event.tensor]
        yield from track.end(time_ns, event.details)
        if not track.open:
            self.tracks.tensors.give_back(self.own.pop(tensor))
        if tensor in self.waiting:
            yield from self.counter(time_ns)
            self.waiting.remove(tensor)
        if tensor in self.leading:
            yield from self.leading[tensor].end(time_ns, {})
            if not self.leading[tensor].open:
                self.tracks.operations.give_back(self.leading.pop(tensor))

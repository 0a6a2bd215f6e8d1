"""Chrome's trace event format: events as text, and the names of processes and threads.

Events of PyTorch's traces come on the run's time axis, in separate processes, threads and flows.

Numbers of different files collide: device 0 is a process in each rank's trace, and the flows of
every file count from 1. Perfetto reads -1 as 0, and assigns numbers to text ids itself. So
processes and flows get new numbers; threads keep the kernel's thread ids, which our threads' names
have too.

Horovod's timelines come on the same axis, as a process of the rank that wrote them, with a track
for each tensor: its negotiation, the ranks as they become ready, its operation, which fused tensors
have in common.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Callable, NamedTuple

from ..base import units
from ..run import MOST_NS
from .traces import (
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
        for key in ("id", "bind_id"):
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


OTHERS = "other tensors"
MOST_TRACKS = 1_000  # names of tensors with tracks of their own
UNNAMED = re.compile(r"(.*\.noname)\.\d+", re.DOTALL)  # a new tensor in each call


class Tensor(NamedTuple):
    """A tensor with open slices: its name, the number of its track, their begins and names."""

    name: str
    track: int
    slices: list[tuple[int, str]]


class Timelines:
    """The timelines of one rank: a job that starts and stops them writes several. Where slices of
    one name overlap it has several tracks. A slice is written when it ends: only then is it known
    whether it reaches into the selected part."""

    def __init__(
        self,
        rank: int,
        number: int,
        aligned_ns: Callable[[int, int], int],
        overlaps: Callable[[int, int], bool],
    ) -> None:
        self.rank, self.number, self.aligned_ns, self.overlaps = rank, number, aligned_ns, overlaps
        self.tracks: dict[str, list[int]] = {}  # those without open slices, by name
        self.titles = {0: f"rank {rank}, Horovod"}  # by number of the track; 0: of the process
        self.told: set[int] = set()  # whose titles are written

    def events(self, of_rank: OfRank) -> Iterator[str]:
        names: dict[int, str] = {}  # by tensor
        tensors: dict[int, Tensor] = {}
        for event in of_rank.trace.events():
            own_ns = of_rank.trace.unix_ns(event.time_us) - of_rank.process.start_unix_ns
            time_ns, own = self.aligned_ns(self.rank, own_ns), tensors.get(event.tensor)
            if time_ns > MOST_NS:
                continue
            if event.phase == "N" and len(names) < 100_000:
                names[event.tensor] = UNNAMED.sub(r"\1", event.name)
            elif event.phase == "B":
                own = own or self._taken(names.get(event.tensor, OTHERS))
                tensors[event.tensor] = own
                own.slices.append((time_ns, event.name))
            elif own and event.phase == "R":
                name = f"rank {int(event.name)} is ready"
                yield from self._written("i", own.track, time_ns, time_ns, name, s="t")
            elif own and event.phase == "E":
                begin_ns, name = own.slices.pop()
                what = {"dur": us(max(0, time_ns - begin_ns)), "args": event.details}
                yield from self._written("X", own.track, begin_ns, time_ns, name, **what)
                if not own.slices:
                    self.tracks[own.name].append(tensors.pop(event.tensor).track)
        for own in tensors.values():  # Perfetto says of these slices that they did not finish
            for begin_ns, name in own.slices:
                yield from self._written("B", own.track, begin_ns, MOST_NS, name)
            self.tracks[own.name].append(own.track)

    def _taken(self, name: str) -> Tensor:
        name = name if name in self.tracks or len(self.tracks) < MOST_TRACKS else OTHERS
        idle = self.tracks.setdefault(name, [])
        track = idle.pop() if idle else len(self.titles)
        self.titles[track] = name
        return Tensor(name, track, [])

    def _written(
        self, phase: str, track: int, begin_ns: int, end_ns: int, name: str, **values: object
    ) -> Iterator[str]:
        """Perfetto has no times before 0."""
        if end_ns < 0 or not self.overlaps(begin_ns, end_ns):
            return
        for each in sorted({0, track} - self.told):
            below = each or PLACES_OF_RANK * (self.rank + 1) - 1
            yield from named(self.number, each, self.titles[each], below)
        self.told |= {0, track}
        yield event_text(phase, self.number, track, name=name, ts=us(begin_ns), **values)


def horovod_events(
    timelines: Sequence[OfRank],
    beside: Beside,
    aligned_ns: Callable[[int, int], int],
    overlaps: Callable[[int, int], bool],
) -> Iterator[str]:
    """In processes after those that are beside."""
    by_rank: dict[int, Timelines] = {}
    for of_rank in timelines:
        rank, number = of_rank.process.rank, beside.first_process + len(beside.processes)
        if rank not in by_rank:
            by_rank[rank] = Timelines(rank, number + len(by_rank), aligned_ns, overlaps)
        yield from by_rank[rank].events(of_rank)

"""A run as a timeline in Chrome's trace event format, for https://ui.perfetto.dev.

    process  a rank          thread  one of its threads, its regions, its steps, a stream of its GPU
    slice    a call          in it   waiting for the rank that arrived last; on a stream a kernel,
                                     a copy, a memset
    async    a nonblocking operation, from its start to its completion

All times are on one axis (alignment.py) that begins at the earliest start of a rank, in
microseconds that Perfetto reads to the nanosecond. Slices of a track are nested or disjoint;
overlaps in damaged files are cut.

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
from collections import Counter, namedtuple
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from sqlite3 import Connection
from typing import Any, Callable, NamedTuple

from ..base import NONE, Row, query, units
from ..gpu import gpu_activity
from ..gpu.overlap import OTHER_STREAM, device_groups
from ..late import (
    ALL,
    WaitSplit,
    known,
    wait_split,
)
from ..run import MOST_NS, Alignment, Selection, align, unsampled_text
from ..steps.boundaries import Steps
from ..steps.steps_summary import steps_find
from .traces import OfRank, id_number, is_time, place


# Tracks of one kind, by their numbers. first: thread id; never 0, which Perfetto takes for the
# process id. place: where it stands, and by how much (apart) the next one stands below.
Track = namedtuple("Track", "first title place apart", defaults=[0])


GPUS = 4_000_000
TRACKS = {
    "calls": Track(1, "{}", 2, 3),
    "regions": Track(1_000_000, "regions of thread {}", 1, 3),
    "sampled": Track(2_000_000, "all sampled: thread {}", 3, 3),
    "steps": Track(3_000_000, "steps", 0),
    "gpu": Track(GPUS, "{}", GPUS, 2),
    "gpu sampled": Track(5_000_000, "all sampled: {}", GPUS + 1, 2),
    "gpu traced": Track(6_000_000, "GPU traced", GPUS),
}


SpanRow = namedtuple("SpanRow", "rank track thread name begin_ns end_ns")
Wait = namedtuple("Wait", "wait_ns last_rank is_estimate")
NO_WAIT = Wait(0, None, False)


Slice = namedtuple("Slice", "start_ns end_ns name arguments row wait", defaults=[{}, None, NO_WAIT])


class Cut(NamedTuple):
    """The selected part of the time axis; None: no bound."""

    from_ns: int | None = None
    to_ns: int | None = None

    def overlaps(self, start_ns: int, end_ns: int) -> bool:
        return (self.from_ns is None or end_ns >= self.from_ns) and (
            self.to_ns is None or start_ns <= self.to_ns
        )


def text(run: Selection, cut: Cut, traces: Sequence[OfRank] = ()) -> Iterator[str]:
    """The text of the file in pieces, including the files of --with-trace; the run must have been
    opened with samples."""
    alignment = align(run.connection)
    waits = waits_of(run.connection, wait_split(run, alignment, known(run.connection)))
    trace = Trace(run, alignment, cut, steps_find(run, alignment), waits)
    of_pytorch, of_horovod = (
        [of_rank for of_rank in traces if of_rank.trace.is_horovod == is_horovod]
        for is_horovod in (False, True)
    )
    about = trace.about() | {
        whose: f"{len(own)}, of {units.rank_names({each.process.rank for each in own})}"
        for whose, own in (("PyTorch's traces", of_pytorch), ("Horovod's timelines", of_horovod))
        if own
    }
    yield '{"displayTimeUnit": "ms",\n"otherData": ' + json.dumps(about) + ',\n"traceEvents": [\n'
    separator = ""
    beside = Beside(run.world_size + 1, alignment.aligned_ns, cut.overlaps)
    for event in chain(
        trace.events(),
        beside.events(of_pytorch),
        horovod_events(of_horovod, beside, alignment.aligned_ns, cut.overlaps),
    ):
        yield f"{separator}{event}"
        separator = ",\n"
    yield "\n]}\n"


def waits_of(connection: Connection, split: WaitSplit) -> dict[tuple, Wait]:
    """How long each call waited, and for whom: of NCCL's operations by rank, communicator and
    sequence, of others by rank and begin on the run's axis."""
    of_nccl = {
        identity
        for (identity,) in connection.execute(
            "SELECT identity FROM run_communicator WHERE library = 'nccl'"
        )
    }
    found: dict[tuple, Wait] = {}
    names = "world_rank start_ns wait_ns last_rank is_estimate identity sequence completion"
    columns = (getattr(split.waits, name).tolist() for name in names.split())
    for rank, start_ns, wait_ns, last, is_estimate, number, sequence, completion in zip(*columns):
        identity = split.texts.text(number)
        is_nccl = identity in of_nccl
        key = (rank, identity, sequence) if is_nccl else (rank, start_ns)
        if wait_ns > found.get(key, NO_WAIT).wait_ns and (completion == NONE or not is_nccl):
            found[key] = Wait(wait_ns, None if last == NONE else last, is_estimate)
    return found


class Trace:
    def __init__(
        self,
        run: Selection,
        alignment: Alignment,
        cut: Cut,
        steps: Steps,
        waits: dict[tuple, Wait],
    ) -> None:
        self.run, self.connection = run, run.connection
        self.aligned_ns: Callable[[int, int], int] = alignment.aligned_ns
        self.error_ns = alignment.most_error_ns
        self.cut, self.steps, self.waits = cut, steps, waits
        self.ranks = list(query.rows(self.connection, "exporters/trace_ranks"))
        self.threads = list(query.rows(self.connection, "exporters/trace_threads"))
        shared = {  # by rank and its number for a device
            (own.rank, own.number): f" (shared with {units.rank_names(others)})"
            for group in device_groups(gpu_activity.device_facts(self.connection))
            for own in group
            if (others := sorted({one.rank for one in group} - {own.rank}))
        }
        self.streams = {
            (row.rank, row.stream): (
                f"{'GPU' if row.device is None else f'GPU {row.device}'}"
                f"{shared.get((row.rank, row.device), '')}, "
                f"{'other streams' if row.stream == OTHER_STREAM else f'stream {row.number}'}"
            )
            for row in query.rows(self.connection, "exporters/trace_streams")
        }
        self.last_ns: dict[tuple[int, int], int] = {}  # of the calls of a thread of MPI
        self.operations = 0

    def about(self) -> dict[str, object]:
        """Facts about the timeline for its reader (`otherData`)."""
        (sampled,) = query.rows(self.connection, "exporters/trace_sampled")
        unsampled = unsampled_text(self.run.connection)
        return {
            "run": units.visible(self.run.run_id),
            "ranks": f"{len(self.ranks)} of {self.run.world_size}",
            "time axis": "seconds since the earliest start of a rank",
            "clock error": "unknown"
            if self.error_ns is None
            else f"at most {self.error_ns / 1e3:.3f} us",
            "calls sampled": sampled.samples,
            "GPU activities sampled": sampled.activities,
            "collectives sampled": _share(sampled.collective_share),
            **({"communicators without samples": unsampled} if unsampled else {}),
            "time in which all other calls are sampled": _share(sampled.window_share),
            "thinned by the reporter": "yes"
            if self.run.thinning and self.run.thinning.is_needed
            else "no",
        }

    def events(self) -> Iterator[str]:
        yield from self._names()
        yield from self._tracks(chain(self._spans(), self._activities()))
        rows = query.rows(self.connection, "exporters/trace_calls")
        for (rank, thread), calls in groupby(rows, key=attrgetter("rank", "thread")):
            yield from self._thread(rank, thread, calls)
        yield from self._unfinished()

    def _names(self) -> Iterator[str]:
        for row in self.ranks:
            host = f", {row.host}" if row.host else ""
            yield from named(row.rank, 0, f"rank {row.rank}{host}", PLACES_OF_RANK * row.rank)
            yield event_text("M", row.rank, 0, name="process_labels", args={"labels": row.state})
        for row in self.threads:
            name = f"{row.name or 'thread'} ({'main, ' if row.is_main else ''}{row.tid})"
            yield from _named(row.rank, "calls", row.thread, name)

    def _shown(self, slices: Iterable[Slice]) -> Iterator[Slice]:
        """The slices of a track, as far as the selected part has them."""
        return (
            slice_ for slice_ in nested(slices) if self.cut.overlaps(slice_.start_ns, slice_.end_ns)
        )

    def _aligned(self, rank: int, start_ns: int, end_ns: int, *rest: Any) -> Slice:
        return Slice(self.aligned_ns(rank, start_ns), self.aligned_ns(rank, end_ns), *rest)

    def _tracks(self, rows: Iterable[tuple[int, str, int, Slice]]) -> Iterator[str]:
        """rows: rank, kind and number of a track, in their order."""
        for (rank, kind, number), of_track in groupby(rows, key=itemgetter(0, 1, 2)):
            stream = self.streams.get((rank, number), f"stream {number}")
            yield from _named(rank, kind, number, stream if kind.startswith("gpu") else number)
            for slice_ in self._shown(row[3] for row in of_track):
                yield _slice(rank, TRACKS[kind].first + number, slice_)

    def _spans(self) -> Iterator[tuple[int, str, int, Slice]]:
        rows = self.steps.rows
        spans = zip(rows.begin_ns.tolist(), rows.end_ns.tolist())
        steps = (
            SpanRow(rank, "steps", 0, f"step {step}", *span)
            for rank, step, span in zip(rows.world_rank.tolist(), rows.step.tolist(), spans)
        )
        for row in chain(query.ask(self.connection, "exporters/trace_spans", SpanRow), steps):
            yield *row[:3], self._aligned(row.rank, row.begin_ns, row.end_ns, row.name)

    def _activities(self) -> Iterator[tuple[int, str, int, Slice]]:
        mangled = [
            name for (name,) in self.connection.execute("SELECT DISTINCT name FROM gpu_kernel")
        ]
        full = {**{name: name for name in mangled}, **gpu_activity.demangled(mangled)}
        short = {name: gpu_activity.shortened(full[name]) for name in mangled}
        for row in query.rows(self.connection, "exporters/trace_activities"):
            name = (
                f"{row.kind} {row.copy}".rstrip()
                if row.kind != "kernel"
                else (short.get(row.kernel) or gpu_activity.OTHERS)
            )
            details = {
                "kernel": full.get(row.kernel) if row.kind == "kernel" else "",
                "communicator": row.communicator,
                "bytes": row.bytes,
                "launched by": "graph" if row.is_graph else "",
            }
            known = {key: value for key, value in details.items() if value}
            slice_ = self._aligned(row.rank, row.start_ns, row.end_ns, name, known)
            yield row.rank, "gpu", row.stream, slice_

    def _call(self, row: Row) -> Slice:
        slice_ = self._aligned(row.rank, row.start_ns, row.end_ns, row.call, _details(row), row)
        is_nccl = row.library == "nccl"
        place = (row.identity, row.sequence) if is_nccl else (slice_.start_ns,)
        wait = self.waits.get((row.rank, *place), NO_WAIT)
        if is_nccl and wait.wait_ns:
            slice_.arguments["waited on the device"] = units.duration(wait.wait_ns) + (
                "" if wait.last_rank is None else f" for rank {wait.last_rank}"
            )
        return slice_._replace(wait=wait)

    def _thread(self, rank: int, thread: int, rows: Iterable[Row]) -> Iterator[str]:
        track = TRACKS["calls"].first + thread
        for slice_ in self._shown(map(self._call, rows)):
            row, wait, start_ns = slice_.row, slice_.wait, slice_.start_ns
            yield _slice(rank, track, slice_)
            # its call only enqueues an operation; the wait on the device is among the details
            if row.library == "nccl":
                continue
            self.last_ns[rank, thread] = slice_.end_ns
            if wait.wait_ns:
                end_ns = min(start_ns + wait.wait_ns, slice_.end_ns)
                whom = "others" if wait.last_rank is None else f"rank {wait.last_rank}"
                details = (
                    {"estimate": "from durations: the clock error is too large"}
                    if wait.is_estimate
                    else {}
                )
                yield _slice(rank, track, Slice(start_ns, end_ns, f"waiting for {whom}", details))
            if row.completed_ns is not None:
                done_ns = self.aligned_ns(rank, max(row.completed_ns, row.start_ns))
                yield from self._operation(rank, track, slice_, done_ns)

    def _operation(self, rank: int, track: int, slice_: Slice, done_ns: int) -> Iterator[str]:
        self.operations += 1
        what = {"name": slice_.name, "cat": "nonblocking", "id": hex(self.operations)}
        begin, end = us(slice_.start_ns), us(done_ns)
        yield event_text("b", rank, track, ts=begin, args=slice_.arguments, **what)
        yield event_text("e", rank, track, ts=end, **what)

    def _unfinished(self) -> Iterator[str]:
        """Slices of the calls that threads were inside when their rank ended or was read."""
        for row in (row for row in self.threads if row.unfinished):
            rank = row.rank
            slice_ = self._aligned(
                rank,
                row.since_ns,
                max(row.last_ns, row.since_ns),
                f"{row.unfinished} (not finished)",
                _details(row),
            )
            before_ns = self.last_ns.get((rank, row.thread), self.aligned_ns(rank, 0))
            start_ns = min(max(slice_.start_ns, before_ns), slice_.end_ns)
            if self.cut.overlaps(start_ns, slice_.end_ns):
                track = TRACKS["calls"].first + row.thread
                yield _slice(rank, track, slice_._replace(start_ns=start_ns))


def nested(slices: Iterable[Slice]) -> Iterator[Slice]:
    """The slices in the order of their begin; one that would end after its enclosing slice ends
    with it."""
    ends: list[int] = []
    for slice_ in slices:
        while ends and ends[-1] <= slice_.start_ns:
            ends.pop()
        end_ns = max(slice_.end_ns, slice_.start_ns)
        end_ns = min(end_ns, ends[-1]) if ends else end_ns
        ends.append(end_ns)
        yield slice_._replace(end_ns=end_ns)


def _details(row: Row) -> dict[str, object]:
    known = {
        key: getattr(row, key, None)
        for key in (  # of a call, as far as they are known
            "communicator",
            "sequence",
            "bytes",
            "peer",
            "root",
            "request_call",
            "region",
            "datatype",
            "op",
        )
    }
    known["peer"] = {-1: "outside the job", -2: "any"}.get(row.peer, row.peer)
    return {key: value for key, value in known.items() if value is not None}


def _named(rank: int, kind: str, number: int, who: object) -> Iterator[str]:
    track = TRACKS[kind]
    place = track.place + track.apart * number
    return named(rank, track.first + number, track.title.format(who), place)


def _share(share: float | None) -> str:
    return "none" if share is None else "all" if share >= ALL else f"{100 * share:.1f} %"


def _slice(rank: int, track: int, slice_: Slice) -> str:
    times = {"ts": us(slice_.start_ns), "dur": us(slice_.end_ns - slice_.start_ns)}
    return event_text("X", rank, track, name=slice_.name, **times, args=slice_.arguments)


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

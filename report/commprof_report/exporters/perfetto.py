"""A run as a timeline in Chrome's trace event format, for https://ui.perfetto.dev.

    process  a rank          thread  one of its threads, its regions, its steps, a stream of its GPU
    slice    a call          in it   waiting for the rank that arrived last; on a stream a kernel,
                                     a copy, a memset
    flow     from the call of the rank that arrived last to the wait that it ended, if both are
             known and shown
    async    a nonblocking operation, from its start to its completion
    counter  of a rank: bytes per second passed to MPI, what its GPUs' sensors said;
             of the run: ranks inside MPI, ranks waiting, bytes in flight

All times are on one axis (alignment.py) that begins at the earliest start of a rank, in
microseconds that Perfetto reads to the nanosecond. Slices of a track are nested or disjoint;
overlaps in damaged files are cut.
"""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import accumulate, chain, groupby
from operator import attrgetter
from sqlite3 import Connection
from typing import Callable, NamedTuple, TypeVar

from ..base import query, units
from ..base.columns import NONE
from ..base.query import Row
from ..gpu import gpu_activity, kernel_names
from ..gpu.sampled import OTHER_STREAM
from ..gpu.sensors import readers
from ..gpu.sharing import groups
from ..late.known import known
from ..late.sentences import ALL
from ..late.wait_split import WaitSplit, wait_split
from ..run.alignment import Alignment, align
from ..run.selection import Selection
from ..run.unsampled import unsampled_text
from ..steps.boundaries import Steps
from ..steps.stages import steps_find
from .horovod_events import horovod_events
from .pytorch_events import PLACES_OF_RANK, Beside
from .trace_files import OfRank

SQL = query.beside(__file__)

FIRST_OF_TRACK = {  # thread ids; never 0, which Perfetto takes for the process id
    **{"calls": 1, "regions": 1_000_000, "sampled": 2_000_000, "steps": 3_000_000},
    **{"gpu": 4_000_000, "gpu sampled": 5_000_000, "gpu traced": 6_000_000},
}
MOST_BINS = 1_000
LEAST_BIN_NS = 1_000
NO_CALLS = (None, ())
LEVELS = {
    "SM clock, MHz": "clock_mhz", "memory in use, bytes": "memory_used_bytes",
    "throttled": "is_throttled",
}
RATES = {
    "NVLink sent, bytes/s": "nvlink_sent_bytes",
    "NVLink received, bytes/s": "nvlink_received_bytes", "PCIe sent, bytes/s": "pcie_sent_bytes",
    "PCIe received, bytes/s": "pcie_received_bytes",
}
PEERS = {-1: "outside the job", -2: "any"}


SpanRow = namedtuple("SpanRow", "rank track thread name begin_ns end_ns")


class Slice(NamedTuple):
    start_ns: int
    end_ns: int
    name: str
    arguments: dict[str, object]


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
    _waits_take(run.connection, wait_split(run, alignment, known(run.connection)))
    trace = Trace(run, alignment, cut, steps_find(run, alignment))
    about = json.dumps(trace.about() | about_traces(traces))
    yield '{"displayTimeUnit": "ms",\n"otherData": ' + about + ',\n"traceEvents": [\n'
    separator = ""
    for event in chain(trace.events(), events_beside(run, alignment, cut, traces)):
        yield f"{separator}{event}"
        separator = ",\n"
    yield "\n]}\n"


def _waits_take(connection: Connection, split: WaitSplit) -> None:
    """How long each call waited, and for whom, into the TEMP TABLEs that trace_calls.sql reads."""
    SQL.run(connection, "trace_split")
    waits, texts = split.waits, split.texts
    columns = (
        waits.world_rank, waits.start_ns, waits.wait_ns, waits.last_rank, waits.is_estimate,
        waits.identity, waits.sequence,
    )
    rows = zip(*(column.tolist() for column in columns), (waits.completion == NONE).tolist())
    found = (
        (
            rank, start_ns, wait_ns, None if last == NONE else last, is_estimate,
            texts.texts[identity], sequence, is_blocking,
        )
        for rank, start_ns, wait_ns, last, is_estimate, identity, sequence, is_blocking in rows
    )
    connection.executemany("INSERT INTO trace_split VALUES (?, ?, ?, ?, ?, ?, ?, ?)", found)
    SQL.run(connection, "trace_waits")


def about_traces(traces: Sequence[OfRank]) -> dict[str, object]:
    of_pytorch, of_horovod = split(traces)
    named = (("PyTorch's traces", of_pytorch), ("Horovod's timelines", of_horovod))
    return {
        whose: f"{len(own)}, of {units.rank_names(sorted({each.process.rank for each in own}))}"
        for whose, own in named if own
    }


def events_beside(
    run: Selection, alignment: Alignment, cut: Cut, traces: Sequence[OfRank]
) -> Iterator[str]:
    """The events of the files of --with-trace, in processes with numbers of their own."""
    of_pytorch, of_horovod = split(traces)
    beside = Beside(run.world_size + 1, alignment.aligned_ns, cut.overlaps)
    yield from beside.events(of_pytorch)
    first_process = beside.first_process + len(beside.processes)
    yield from horovod_events(of_horovod, first_process, alignment.aligned_ns, cut.overlaps)


def split(traces: Sequence[OfRank]) -> tuple[list[OfRank], list[OfRank]]:
    """PyTorch's, and Horovod's."""
    of_horovod = [of_rank for of_rank in traces if of_rank.trace.is_horovod]
    return [of_rank for of_rank in traces if not of_rank.trace.is_horovod], of_horovod


class Trace:
    def __init__(self, run: Selection, alignment: Alignment, cut: Cut, steps: Steps) -> None:
        self.run, self.connection = run, run.connection
        self.aligned_ns: Callable[[int, int], int] = alignment.aligned_ns
        self.cut, self.steps = cut, steps
        self.ranks = list(SQL.rows(self.connection, "trace_ranks"))
        self.threads = list(SQL.rows(self.connection, "trace_threads"))
        streams = list(SQL.rows(self.connection, "trace_streams"))
        shared = _shared_with(self.connection)
        self.streams = {
            (row.rank, row.stream): _stream_title(row, shared.get((row.rank, row.device), ""))
            for row in streams
        }
        self.operations = self.flows = 0

    def about(self) -> dict[str, object]:
        """Facts about the timeline for its reader (`otherData`)."""
        (sampled,) = SQL.rows(self.connection, "trace_sampled")
        unsampled = unsampled_text(self.run)
        errors = [row.error_ns for row in self.ranks if row.error_ns is not None]
        return {
            "run": units.visible(self.run.run_id),
            "ranks": f"{len(self.ranks)} of {self.run.world_size}",
            "time axis": "seconds since the earliest start of a rank",
            "clock error": "unknown" if len(errors) < len(self.ranks)
            else f"at most {max(errors) / 1e3:.3f} us",
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
        yield from self._spans()
        yield from self._streams()
        yield from self._sensors()
        bins = self._bins()
        inside, waiting, flying = (Bins(*bins) for _ in range(3))
        rows = SQL.rows(self.connection, "trace_calls")
        of_ranks = groupby(rows, key=attrgetter("rank"))
        rank_of_calls, calls = next(of_ranks, NO_CALLS)
        for rank in (row.rank for row in self.ranks):
            handed, own, waits = Bins(*bins), Inside(), Inside()
            if rank == rank_of_calls:
                for thread, of_thread in groupby(calls, key=attrgetter("thread")):
                    yield from self._thread(rank, thread, of_thread, handed, own, waits, flying)
                rank_of_calls, calls = next(of_ranks, NO_CALLS)
            yield from self._unfinished(rank, own)
            yield from _counter(rank, "bytes/s passed to MPI", handed.values(1e9 / handed.width_ns))
            for sums, found in ((inside, own), (waiting, waits)):
                for start_ns, end_ns in found.spans():
                    sums.add(start_ns, end_ns, end_ns - start_ns)
        for name, counted in (
            ("ranks inside MPI", inside),
            ("ranks waiting", waiting),
            ("bytes in flight, nonblocking collectives", flying),
        ):
            yield from _counter(self.run.world_size, name, counted.values(1 / counted.width_ns))

    def _names(self) -> Iterator[str]:
        for row in self.ranks:
            host = f", {row.host}" if row.host else ""
            yield _metadata("process_name", row.rank, 0, {"name": f"rank {row.rank}{host}"})
            yield _metadata("process_labels", row.rank, 0, {"labels": row.state})
            yield _metadata(
                "process_sort_index", row.rank, 0, {"sort_index": PLACES_OF_RANK * row.rank}
            )
        yield _metadata("process_name", self.run.world_size, 0, {"name": "all ranks"})
        yield _metadata("process_sort_index", self.run.world_size, 0, {"sort_index": -1})
        for thread in self.threads:
            name = f"{thread.name or 'thread'} ({'main, ' if thread.is_main else ''}{thread.tid})"
            yield from self._thread_name(
                thread.rank, _calls_track(thread.thread), name, 2 + 3 * thread.thread
            )

    def _thread_name(self, rank: int, track: int, name: str, place: int) -> Iterator[str]:
        yield _metadata("thread_name", rank, track, {"name": name})
        yield _metadata("thread_sort_index", rank, track, {"sort_index": place})

    def _unfinished(self, rank: int, own: Inside) -> Iterator[str]:
        """Slices of the calls that the rank's threads were inside when it ended or was read."""
        for row in self.threads:
            if row.rank != rank or not row.unfinished:
                continue
            end_ns = self.aligned_ns(rank, max(row.last_ns, row.since_ns))
            start_ns = min(
                max(
                    self.aligned_ns(rank, row.since_ns),
                    own.last_ns.get(row.thread, self.aligned_ns(rank, 0)),
                ),
                end_ns,
            )
            details = {
                "communicator": row.communicator, "bytes": row.bytes, "peer": _peer(row.peer),
                "request_call": row.request_call,
            }
            known: dict[str, object] = {
                key: value for key, value in details.items() if value is not None
            }
            if self.cut.overlaps(start_ns, end_ns):
                yield _slice(
                    rank, _calls_track(row.thread),
                    Slice(start_ns, end_ns, f"{row.unfinished} (not finished)", known),
                )
                if not row.unfinished.startswith("nccl"):
                    own.add(row.thread, start_ns, end_ns)

    def _spans(self) -> Iterator[str]:
        steps = (
            SpanRow(rank, "steps", 0, f"step {step.step}", step.begin_ns, step.end_ns)
            for rank, of_rank in self.steps.by_rank().items() for step in of_rank
        )
        rows = merge(SQL.ask(self.connection, "trace_spans", SpanRow), steps, key=_place)
        for (rank, track, thread), of_track in groupby(
            rows, key=attrgetter("rank", "track", "thread")
        ):
            number = FIRST_OF_TRACK[track] + thread
            yield from self._thread_name(rank, number, *self._title(rank, track, thread))
            slices = (
                Slice(
                    self.aligned_ns(rank, row.begin_ns), self.aligned_ns(rank, row.end_ns),
                    row.name, {},
                )
                for row in of_track
            )
            for slice_ in nested(slices):
                if self.cut.overlaps(slice_.start_ns, slice_.end_ns):
                    yield _slice(rank, number, slice_)

    def _streams(self) -> Iterator[str]:
        for (rank, stream), title in self.streams.items():
            yield from self._thread_name(
                rank, FIRST_OF_TRACK["gpu"] + stream, title, FIRST_OF_TRACK["gpu"] + 2 * stream
            )
        names = self._kernel_names()
        rows = SQL.rows(self.connection, "trace_activities")
        for (rank, stream), of_stream in groupby(rows, key=attrgetter("rank", "stream")):
            for slice_ in nested(self._activity(row, names) for row in of_stream):
                if self.cut.overlaps(slice_.start_ns, slice_.end_ns):
                    yield _slice(rank, FIRST_OF_TRACK["gpu"] + stream, slice_)

    def _sensors(self) -> Iterator[str]:
        """Counters of the devices, each by the rank whose readings are taken."""
        rows = SQL.rows(self.connection, "trace_readings")
        by_device = {
            key: list(of_device)
            for key, of_device in groupby(rows, key=attrgetter("rank", "device"))
        }
        facts = gpu_activity.device_facts(self.connection)
        for _, own in readers(facts, {key: len(of_device) for key, of_device in by_device.items()}):
            shown = [row for row in by_device[own.rank, own.device] if self._shows(row)]
            shown = shown[:: len(shown) // MOST_BINS + 1]
            times = [self.aligned_ns(own.rank, row.at_ns) for row in shown]
            for name, key in LEVELS.items():
                levels = (
                    (at_ns, value) for at_ns, row in zip(times, shown)
                    if (value := getattr(row, key)) is not None
                )
                yield from _counter(own.rank, f"GPU {own.number} {name}", changes(levels))
            for name, key in RATES.items():
                counted = [(at_ns, getattr(row, key)) for at_ns, row in zip(times, shown)]
                yield from _counter(own.rank, f"GPU {own.number} {name}", changes(rates(counted)))

    def _shows(self, row: Row) -> bool:
        at_ns = self.aligned_ns(row.rank, row.at_ns)
        return self.cut.overlaps(at_ns, at_ns)

    def _kernel_names(self) -> dict[str, tuple[str, str]]:
        """Short and full names."""
        mangled = [
            name for (name,) in self.connection.execute("SELECT DISTINCT name FROM gpu_kernel")
        ]
        demangled = kernel_names.demangled(mangled)
        return {
            name: (kernel_names.shortened(demangled.get(name, name)), demangled.get(name, name))
            for name in mangled
        }

    def _activity(self, row: Row, names: dict[str, tuple[str, str]]) -> Slice:
        short, kernel = (
            names.get(row.kernel, ("", "")) if row.kind == "kernel"
            else (f"{row.kind} {row.copy}".rstrip(), "")
        )
        details = {
            "kernel": kernel, "communicator": row.communicator, "bytes": row.bytes,
            "launched by": "graph" if row.is_graph else "",
        }
        known: dict[str, object] = {key: value for key, value in details.items() if value}
        return Slice(
            self.aligned_ns(row.rank, row.start_ns), self.aligned_ns(row.rank, row.end_ns),
            short or gpu_activity.OTHERS, known,
        )

    def _title(self, rank: int, track: str, number: int) -> tuple[str, int]:
        """A track's name and its position."""
        if track == "gpu traced":
            return "GPU traced", FIRST_OF_TRACK["gpu"]
        if track == "gpu sampled":
            stream = self.streams.get((rank, number), f"stream {number}")
            return f"all sampled: {stream}", FIRST_OF_TRACK["gpu"] + 2 * number + 1
        return _title(track, number)

    def _thread(
        self, rank: int, thread: int, rows: Iterable[Row], handed: Bins, own: Inside,
        waits: Inside, flying: Bins,
    ) -> Iterator[str]:
        for slice_, row in nested_with(self._calls(rank, rows)):
            if not self.cut.overlaps(slice_.start_ns, slice_.end_ns):
                continue
            yield _slice(rank, _calls_track(thread), slice_)
            # its call only enqueues an operation; the wait on the device is among the details
            if row.library == "nccl":
                continue
            own.add(thread, slice_.start_ns, slice_.end_ns)
            handed.add(slice_.start_ns, slice_.end_ns, row.volume_bytes or 0)
            if row.wait_ns:
                wait = _waiting(slice_, row)
                waits.add(thread, wait.start_ns, wait.end_ns)
                yield _slice(rank, _calls_track(thread), wait)
                yield from self._arrival(rank, thread, wait.end_ns, row)
            if row.completed_ns is not None:
                yield from self._operation(rank, row)
            if row.completed_ns is not None and row.sequence is not None:
                done_ns = max(self.aligned_ns(rank, row.completed_ns), slice_.start_ns)
                flying.add(
                    slice_.start_ns, done_ns, (row.volume_bytes or 0) * (done_ns - slice_.start_ns)
                )

    def _arrival(self, rank: int, thread: int, time_ns: int, row: Row) -> Iterator[str]:
        """A flow from the call that the rank that arrived last has just begun, if it is shown:
        Perfetto binds flows to slices."""
        if (
            row.last_thread is None or row.last_rank == rank
            or not self.cut.overlaps(time_ns, time_ns)
        ):
            return
        self.flows += 1
        what = f'"name": "arrival", "cat": "waiting", "id": "{self.flows:#x}"'
        yield (
            f'{{"ph": "s", {what}, "pid": {row.last_rank}, "tid": '
            f'{_calls_track(row.last_thread)}, "ts": {_us(time_ns)}}}'
        )
        yield (
            f'{{"ph": "f", "bp": "e", {what}, "pid": {rank}, "tid": {_calls_track(thread)}, '
            f'"ts": {_us(time_ns)}}}'
        )

    def _calls(self, rank: int, rows: Iterable[Row]) -> Iterator[tuple[Slice, Row]]:
        for row in rows:
            start_ns, end_ns = (
                self.aligned_ns(rank, row.start_ns), self.aligned_ns(rank, row.end_ns),
            )
            yield Slice(start_ns, end_ns, row.call, _details(row)), row

    def _operation(self, rank: int, row: Row) -> Iterator[str]:
        self.operations += 1
        start_ns, end_ns = (
            self.aligned_ns(rank, row.start_ns),
            self.aligned_ns(rank, max(row.completed_ns or 0, row.start_ns)),
        )
        where = (
            f'"cat": "nonblocking", "id": "{self.operations:#x}", "pid": {rank}, "tid": '
            f"{_calls_track(row.thread)}"
        )
        name = json.dumps(units.visible(row.call))
        yield (
            f'{{"ph": "b", "name": {name}, {where}, "ts": {_us(start_ns)}, "args": '
            f"{_arguments(_details(row))}}}"
        )
        yield f'{{"ph": "e", "name": {name}, {where}, "ts": {_us(end_ns)}}}'

    def _bins(self) -> tuple[int, int]:
        """Begin and width of the counters' bins."""
        begins = [self.aligned_ns(row.rank, 0) for row in self.ranks]
        ends = [self.aligned_ns(row.rank, row.wall_ns) for row in self.ranks]
        begin_ns = min(begins) if self.cut.from_ns is None else max(min(begins), self.cut.from_ns)
        end_ns = max(ends) if self.cut.to_ns is None else min(max(ends), self.cut.to_ns)
        return begin_ns, bin_width(max(end_ns - begin_ns, 1))


def bin_width(span_ns: int) -> int:
    """The least width, 1, 2 or 5 times a power of ten, for which a thousand bins are enough."""
    width_ns = LEAST_BIN_NS
    factors = (2, 2.5, 2)
    place = 0
    while width_ns * MOST_BINS < span_ns:
        width_ns = int(width_ns * factors[place % 3])
        place += 1
    return width_ns


class Bins:
    """Sums of amounts per bin of time, each amount spread evenly over its span."""

    def __init__(self, begin_ns: int, width_ns: int) -> None:
        self.begin_ns, self.width_ns = begin_ns, width_ns
        self.edges = [0.0] * (MOST_BINS + 1)  # amounts in the bins in which a span begins or ends
        self.rises = [0.0] * (MOST_BINS + 2)  # for whole bins: the difference to the previous bin

    def add(self, start_ns: int, end_ns: int, amount: float) -> None:
        low = (start_ns - self.begin_ns) / self.width_ns
        high = (end_ns - self.begin_ns) / self.width_ns
        if not amount or high < 0 or low > MOST_BINS:
            return
        per_bin = amount / max(high - low, 1e-9)
        low, high = max(low, 0.0), min(high, float(MOST_BINS))
        first, last = int(low), int(high)
        if first == last:
            self.edges[first] += per_bin * (high - low) if high > low else amount
            return
        self.edges[first] += per_bin * (first + 1 - low)
        self.edges[last] += per_bin * (high - last)
        self.rises[first + 1] += per_bin
        self.rises[last] -= per_bin

    def values(self, factor: float) -> Iterator[tuple[int, float]]:
        """The times at which the value changes, with the new value; none if nothing was added."""
        before = None if any(self.edges) or any(self.rises) else 0.0
        for place, (edge, whole) in enumerate(zip(self.edges, accumulate(self.rises))):
            value = round(max(edge + whole, 0.0) * factor, 3)
            if value != before:
                yield self.begin_ns + place * self.width_ns, value
            before = value


def changes(values: Iterable[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    before = None
    for at_ns, value in values:
        if value != before:
            yield at_ns, value
        before = value


def rates(counted: Sequence[tuple[int, int | None]]) -> Iterator[tuple[int, float]]:
    """From each reading of a counter the bytes a second until the next; 0 after the last, and where
    they are not known. None if there were never any."""
    known = [count for _, count in counted if count is not None]
    if not known or max(known) == min(known):
        return
    for (at_ns, count), (next_ns, after) in zip(counted, counted[1:]):
        if count is not None and after is not None and after >= count and next_ns > at_ns:
            yield at_ns, round((after - count) * 1e9 / (next_ns - at_ns), 3)
        else:
            yield at_ns, 0.0
    yield counted[-1][0], 0.0


class Inside:
    """When any thread of a rank was inside MPI, or waited."""

    def __init__(self) -> None:
        self.found: list[tuple[int, int]] = []
        self.last_ns: dict[int, int] = {}  # by thread

    def add(self, thread: int, start_ns: int, end_ns: int) -> None:
        self.found.append((start_ns, end_ns))
        self.last_ns[thread] = end_ns

    def spans(self) -> Iterator[tuple[int, int]]:
        until_ns: int | None = None
        for start_ns, end_ns in sorted(self.found):
            start_ns = start_ns if until_ns is None else max(start_ns, until_ns)
            if end_ns > start_ns:
                yield start_ns, end_ns
                until_ns = end_ns


def nested(slices: Iterable[Slice]) -> Iterator[Slice]:
    return (slice_ for slice_, _ in nested_with((slice_, None) for slice_ in slices))


With = TypeVar("With")


def nested_with(slices: Iterable[tuple[Slice, With]]) -> Iterator[tuple[Slice, With]]:
    """The slices in the order of their begin; one that would end after its enclosing slice ends
    with it."""
    ends: list[int] = []
    for slice_, row in slices:
        while ends and ends[-1] <= slice_.start_ns:
            ends.pop()
        end_ns = max(slice_.end_ns, slice_.start_ns)
        end_ns = min(end_ns, ends[-1]) if ends else end_ns
        ends.append(end_ns)
        yield slice_._replace(end_ns=end_ns), row


def _waiting(call: Slice, row: Row) -> Slice:
    """The slice from the rank's arrival to that of the last rank."""
    whom = "others" if row.last_rank is None else f"rank {row.last_rank}"
    arguments: dict[str, object] = (
        {"estimate": "from durations: the clock error is too large"} if row.is_estimate else {}
    )
    return Slice(
        call.start_ns, min(call.start_ns + (row.wait_ns or 0), call.end_ns), f"waiting for {whom}",
        arguments,
    )


def _peer(rank: int | None) -> int | str | None:
    return None if rank is None else PEERS.get(rank, rank)


def _details(row: Row) -> dict[str, object]:
    """The known arguments of a call."""
    details = {
        "communicator": row.communicator,
        "sequence": row.sequence,
        "bytes": row.bytes,
        "peer": _peer(row.peer),
        "root": row.root,
        "request_call": row.request_call,
        "region": row.region,
        "datatype": row.datatype,
        "op": row.op,
    }
    if row.library == "nccl" and row.wait_ns:
        details["waited on the device"] = units.duration(row.wait_ns) + (
            "" if row.last_rank is None else f" for rank {row.last_rank}"
        )
    return {key: value for key, value in details.items() if value is not None}


def _calls_track(thread: int) -> int:
    return FIRST_OF_TRACK["calls"] + thread


def _title(track: str, thread: int) -> tuple[str, int]:
    """A track's name and its position."""
    if track == "steps":
        return "steps", 0
    return (
        (f"regions of thread {thread}", 1 + 3 * thread) if track == "regions"
        else (f"all sampled: thread {thread}", 3 + 3 * thread)
    )


def _stream_title(row: Row, shared: str) -> str:
    device = "GPU" if row.device is None else f"GPU {row.device}"
    return (
        f"{device}{shared}, "
        f"{'other streams' if row.stream == OTHER_STREAM else f'stream {row.number}'}"
    )


def _shared_with(connection: Connection) -> dict[tuple[int, int | None], str]:
    """By rank and its number for a device: " (shared with rank 1)"."""
    return {
        (own.rank, own.number): f" (shared with {units.rank_names(others)})"
        for group in groups(gpu_activity.device_facts(connection)) for own in group
        if (others := sorted({one.rank for one in group} - {own.rank}))
    }


def _share(share: float | None) -> str:
    return "none" if share is None else "all" if share >= ALL else f"{100 * share:.1f} %"


def _place(row: SpanRow) -> tuple[int, str, int, int, int]:
    return row.rank, row.track, row.thread, row.begin_ns, -row.end_ns


def _metadata(name: str, rank: int, track: int, arguments: dict[str, object]) -> str:
    return (
        f'{{"ph": "M", "name": "{name}", "pid": {rank}, "tid": {track}, "args": '
        f"{_arguments(arguments)}}}"
    )


def _slice(rank: int, track: int, slice_: Slice) -> str:
    name, span_ns = json.dumps(units.visible(slice_.name)), slice_.end_ns - slice_.start_ns
    times = f'"ts": {_us(slice_.start_ns)}, "dur": {_us(span_ns)}'
    return (
        f'{{"ph": "X", "name": {name}, "pid": {rank}, "tid": {track}, {times}, "args": '
        f"{_arguments(slice_.arguments)}}}"
    )


def _counter(rank: int, name: str, values: Iterable[tuple[int, float]]) -> Iterator[str]:
    for at_ns, value in values:
        yield (
            f'{{"ph": "C", "name": "{name}", "pid": {rank}, "tid": 0, "ts": {_us(at_ns)}, '
            f'"args": {{"value": {value!r}}}}}'
        )


def _arguments(arguments: dict[str, object]) -> str:
    known = {
        key: units.visible(value) if isinstance(value, str) else value
        for key, value in arguments.items()
    }
    return json.dumps(known)


def _us(ns: int) -> str:
    """Microseconds with three decimals. Perfetto multiplies them in floating point and cuts: a
    fourth decimal keeps the nanosecond."""
    whole, rest = divmod(abs(ns), 1_000)
    shown = f"{whole}.{rest:03d}"
    return f"{'-' if ns < 0 else ''}{shown}{'' if int(float(shown) * 1_000) == abs(ns) else 2}"

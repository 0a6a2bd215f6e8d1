"""The files of --with-trace: reads the description in each, its events, and finds the rank of
the run that wrote it.

In traces of PyTorch's profiler (Kineto) event times are microseconds since `baseTimeNanoseconds`,
or since 1970 in older files without that key, on the host's wall clock. `distributedInfo` has the
rank in torch.distributed, the process with the label CPU has the process id, `host_name` (in newer
files) the host.

Horovod's rank 0 writes a timeline (HOROVOD_TIMELINE, hvd.start_timeline): a list of events in which
each tensor is a process. Times are microseconds since the start that the first event has. The list
has no end if the job was killed. A tensor has slices one after the other: NEGOTIATE_ALLREDUCE, from
the first rank that is ready to the last one, then ALLREDUCE, with activities such as MPI_ALLREDUCE
inside. Within a negotiation an event whose name is a rank says when rank 0 heard that this rank is
ready. Horovod leaves these events out if all ranks find their request in its cache
(HOROVOD_CACHE_CAPACITY): usually from the second negotiation of a tensor on.
"""

from __future__ import annotations

import re
from collections import Counter, namedtuple
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base import JsonStream, ReportError, json_open, present, query, units, watched, whole
from ..run import Selection


class Process(namedtuple("Process", "rank pid host start_unix_ns end_unix_ns stepped_ns state")):
    """trace_ranks.sql"""

    @property
    def was_set(self) -> bool:
        """Whether its wall clock was, during the run."""
        return abs(self.stepped_ns) >= whole("exporters.clock-step")


# A trace, and the process of the run that wrote it.
OfRank = namedtuple("OfRank", "trace process")


def traces_open(files: dict[Path, int | None], run: Selection) -> Iterator[OfRank]:
    """Yields each trace with its rank. Raises ReportError for the first file that is not a trace of
    this run."""
    processes = query.ask(run.connection, "exporters/trace_ranks", Process)
    for path, rank in watched(files.items(), "reading", len(files)):
        trace = _scan(path)
        yield OfRank(trace, _process_of(trace, rank, processes, run.world_size))


def _scan(path: Path) -> Trace:
    """Reads a file of either profiler completely once: its first character shows which one wrote
    it."""
    with json_open(path) as stream:
        is_horovod = stream.peek() == "["
        trace = (timeline_scan if is_horovod else trace_scan)(path, stream)
        if stream.peek():
            raise ReportError(path, "continues after its end")
    if trace.first_us is None:
        whose = "Horovod" if is_horovod else "PyTorch's profiler"
        raise ReportError(path, f"holds no event of {whose}")
    if not counts_from_1970(trace.unix_ns(trace.first_us)):
        raise ReportError(
            path,
            "has times that do not count from 1970 (it has no baseTimeNanoseconds), so it has no "
            "place on the time axis",
        )
    return trace


def trace_files(word: str) -> list[tuple[Path, int | None]]:
    """The files of FILE, FOLDER or RANK=FILE, with the rank that the user specified."""
    match = re.fullmatch(r"(\d{1,9})=(.+)", word, re.DOTALL)
    rank, path = (int(match[1]), Path(match[2])) if match else (None, Path(word))
    if not path.is_dir():
        return [(path, rank)]
    found = sorted(file for file in path.iterdir() if file.name.endswith((".json", ".json.gz")))
    if not found:
        raise ReportError(
            path, "holds no trace (*.json, *.json.gz); a RUN is given before --with-trace"
        )
    return [(file, rank) for file in found]


def _process_of(
    trace: Trace, rank: int | None, processes: Sequence[Process], world_size: int
) -> Process:
    found = (
        _process_by_rank(trace, rank, processes, world_size)
        if rank is not None
        else _process_guess(trace, processes, world_size)
    )
    first_ns = trace.unix_ns(present(trace.first_us))
    last_ns = trace.unix_ns(present(trace.last_us))
    if last_ns < found.start_unix_ns or first_ns > found.end_unix_ns:
        theirs, ours = (
            f"{units.timestamp(low)} to {units.timestamp(high)}"
            for low, high in ((first_ns, last_ns), found[3:5])
        )
        raise ReportError(
            trace.path, f"is of another run: it has {theirs}, rank {found.rank} ran {ours}"
        )
    return found


def _process_by_rank(
    trace: Trace, rank: int, processes: Sequence[Process], world_size: int
) -> Process:
    for process in processes:
        if process.rank == rank:
            return process
    what = (
        f"the run has {units.counted(world_size, 'rank')}"
        if rank >= world_size
        else "the run has no file of that rank"
    )
    raise ReportError(trace.path, f"is of rank {rank}; {what}")


def _process_guess(trace: Trace, processes: Sequence[Process], world_size: int) -> Process:
    """The process with this id on this host. The rank of torch.distributed is used only if this is
    ambiguous: its ranks may be numbered differently, and other runs have the same ones."""
    same = [
        process
        for process in processes
        if process.pid in trace.pids and _may_be(trace.host, process.host)
    ]
    on_host = [
        process
        for process in same
        if process.host and trace.path.name.startswith(f"{process.host}_{process.pid}.")
    ]
    for candidates in (same, on_host, [process for process in same if process.rank == trace.rank]):
        if len(candidates) == 1:
            return candidates[0]
    if trace.rank is not None:
        return _process_by_rank(trace, trace.rank, processes, world_size)
    pids = " or ".join(map(str, sorted(trace.pids))) or "unknown"
    raise ReportError(
        trace.path,
        f"does not say its rank (process {pids}): give it as RANK={units.visible(str(trace.path))}",
    )


def _may_be(name: str, host: str | None) -> bool:
    """Whether two host names may be the same host; each may have a domain or not, and one may be
    unknown."""
    return not name or not host or name.partition(".")[0] == host.partition(".")[0]


if TYPE_CHECKING:
    from typing_extensions import TypeGuard

EVENTS, FACTS = "traceEvents", ("baseTimeNanoseconds", "host_name", "distributedInfo")
MOST_THREADS = 20_000  # of a file
MOST_OF_NAME = 200  # characters that tell one process or thread from another


class Trace:
    """The description of a file, after it was read completely once."""

    def __init__(self, path: Path, rank: int | None = None, is_horovod: bool = False) -> None:
        self.path = path
        self.base_ns = 0
        self.rank = rank  # of torch.distributed
        self.is_horovod = is_horovod
        self.host = ""
        self.pids: set[int] = set()  # of processes with the label CPU
        self.first_us: float | None = None
        self.last_us: float | None = None

    def unix_ns(self, time_us: float) -> int:
        return self.base_ns + round(time_us * 1_000)

    def add(self, begin_us: float, span_us: float = 0) -> None:
        self.first_us = begin_us if self.first_us is None else min(self.first_us, begin_us)
        self.last_us = max(self.last_us or 0, begin_us + span_us)

    def events(self) -> Iterator[Any]:
        """PyTorch's as they are in the file, Horovod's as Events."""
        with json_open(self.path) as stream:
            yield from _events(self, stream) if self.is_horovod else _elements(stream, {})


def counts_from_1970(unix_ns: int) -> bool:
    return unix_ns >= whole("exporters.earliest")


def trace_scan(path: Path, stream: JsonStream) -> Trace:
    trace, facts = Trace(path), dict.fromkeys(FACTS)
    threads: set[tuple[object, object]] = set()  # by process and thread, as they are numbered
    for event in _elements(stream, facts):
        phase, time_us, pid = event.get("ph"), event.get("ts"), event.get("pid")
        if phase == "X" and is_time(time_us) and is_time(event.get("dur")) and time_us:
            trace.add(time_us, event["dur"])
        elif (
            phase == "M"
            and event.get("name") == "process_labels"
            and event.get("args") == {"labels": "CPU"}
            and isinstance(pid, int)
        ):
            trace.pids.add(pid)
        threads.add((place(pid), place(event.get("tid"))))
        if len(threads) > MOST_THREADS:
            raise ReportError(path, f"has more than {MOST_THREADS:,} threads, which no trace has")
    base_ns, host, of_torch = facts.values()
    trace.base_ns = int(base_ns) if is_number(base_ns) else 0
    trace.host = host if isinstance(host, str) else ""
    rank = of_torch.get("rank") if isinstance(of_torch, dict) else None
    trace.rank = rank if isinstance(rank, int) else None
    return trace


def _elements(stream: JsonStream, facts: dict[str, Any]) -> Iterator[dict]:
    """The events. Sets the facts that are asked for."""
    for key in stream.keys():
        if key == EVENTS:
            yield from (event for event in stream.elements() if isinstance(event, dict))
        elif (value := stream.value()) is not None and key in facts:
            facts[key] = value


def place(value: object) -> object:
    """The number of a process or thread as a key. As a dictionary key, True equals 1."""
    return value if type(value) is int else str(value)[:MOST_OF_NAME]


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1 << 63


def is_time(value: object) -> TypeGuard[float]:
    """Whether it is a time in microseconds, of 285 years at most. Kineto writes 0 for times
    before its base."""
    return is_number(value) and value <= 1 << 53


def id_number(value: object) -> int | None:
    """The number of a flow's id. Perfetto reads an id that is a string as hexadecimal."""
    try:
        number = int(value, 16) if isinstance(value, str) else value
    except ValueError:
        return None
    return int(number) if is_number(number) else None


START = "start_time_since_epoch_in_micros"
MOST_OPEN = 20_000  # tensors with a slice that has not ended
MOST_LEVELS = 8  # of slices in each other; Horovod has two


# phase: 'N' names a tensor, 'B' begins a slice, 'E' ends it, 'R': a rank is ready. name: of the
# tensor, of the slice, the rank's number. details: texts by name.
Event = namedtuple("Event", "phase tensor name time_us details")


def timeline_scan(path: Path, stream: JsonStream) -> Trace:
    trace = Trace(path, 0, True)
    levels: Counter[int] = Counter()  # open slices by tensor
    for event in _events(trace, stream):
        if event.phase != "N":
            trace.add(event.time_us)
        if event.phase in "BE":
            levels[event.tensor] += 1 if event.phase == "B" else -1
            level = levels[event.tensor]
            if level <= 0:
                del levels[event.tensor]
            if level > MOST_LEVELS or len(levels) > MOST_OPEN:
                what = f"has {MOST_OPEN:,} tensors or {MOST_LEVELS} slices of a tensor open at once"
                raise ReportError(path, f"{what}, which no timeline of Horovod has")
    return trace


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
    if type(tensor) is not int or not 0 <= tensor < 1 << 31:
        return None
    if phase == "M" and name == "process_name":
        return Event("N", tensor, _text(details.get("name")), 0, {})
    if not is_time(time_us):
        return None
    if phase in ("B", "E"):
        known = {key: _text(details[key]) for key in ("dtype", "shape") if key in details}
        return Event(phase, tensor, name, int(time_us), known)
    is_rank = phase == "X" and name.isascii() and name.isdigit() and len(name) < 10
    return Event("R", tensor, name, int(time_us), {}) if is_rank else None


def _text(value: object) -> str:
    return value[:MOST_OF_NAME] if isinstance(value, str) else ""

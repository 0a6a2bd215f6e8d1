"""Traces of PyTorch's profiler (Kineto): reads the description in a file, and finds the rank of the run that wrote it.

Event times are microseconds since `baseTimeNanoseconds`, or since 1970 in older files without that key, on the host's wall clock.
`distributedInfo` has the rank in torch.distributed, the process with the label CPU has the process id, `host_name` (in newer files) the host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..base import query, units
from ..base.errors import ReportError
from ..base.json_stream import JsonStream, json_open
from ..base.progress import Progress
from ..run.selection import Selection

SQL = query.beside(__file__)
OF_RANK = re.compile(r"(\d{1,9})=(.+)", re.DOTALL)
SUFFIXES = (".json", ".json.gz")
EARLIEST_UNIX_NS = 10**18  # 2001: earlier times are not counted from 1970
MOST_US = 1 << 53  # largest time in a file: 285 years
STEP_NS = 100_000  # a wall clock set by at least this much is reported
EVENTS = "traceEvents"
MOST_THREADS = 20_000  # of a file
MOST_OF_NAME = 200  # characters that tell one process or thread from another
IDS = ("id", "bind_id")  # and id2, which has an id for each scope


class Process(NamedTuple):
    """trace_processes.sql"""

    rank: int
    pid: int
    host: str | None
    start_unix_ns: int
    end_unix_ns: int
    stepped_ns: int


class Trace:
    """The description of a file, after it was read completely once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.base_ns = 0
        self.rank: int | None = None  # of torch.distributed
        self.host = ""
        self.pids: set[int] = set()  # of processes with the label CPU
        self.first_us: float | None = None
        self.last_us: float | None = None
        self.largest_id = 0
        self.threads: set[tuple[object, object]] = set()  # by process and thread, as they are numbered

    def unix_ns(self, time_us: float) -> int:
        return self.base_ns + round(time_us * 1_000)


class OfRank(NamedTuple):
    trace: Trace
    process: Process


def trace_files(words: Sequence[str]) -> dict[Path, int | None]:
    """The files of each FILE, FOLDER or RANK=FILE, with the rank that the user specified."""
    return dict(found for word in words for found in _files(word))


def traces_open(files: dict[Path, int | None], run: Selection) -> Iterator[OfRank]:
    """Yields each trace with its rank. Raises ReportError for the first file that is not a trace of this run."""
    processes = SQL.ask(run.connection, "trace_processes", Process)
    with Progress("reading", len(files)) as progress:
        for path, rank in files.items():
            trace = trace_scan(path)
            trace.threads.clear()
            yield OfRank(trace, _process_of(trace, rank, processes, run.world_size))
            progress.step()


def _files(word: str) -> list[tuple[Path, int | None]]:
    match = OF_RANK.fullmatch(word)
    rank, path = (int(match[1]), Path(match[2])) if match else (None, Path(word))
    if not path.is_dir():
        return [(path, rank)]
    found = sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES))
    if not found:
        raise ReportError(path, "holds no trace (*.json, *.json.gz); a RUN is given before --with-trace")
    return [(file, rank) for file in found]


def trace_scan(path: Path) -> Trace:
    trace = Trace(path)
    with json_open(path) as stream:
        if stream.peek() == "[":
            what = "is a list of events without absolute times (written by PyTorch without Kineto)"
            raise ReportError(path, f"{what}, so it has no place on the time axis")
        for key in stream.keys():
            _key_scan(trace, stream, key)
        if stream.peek():
            raise ReportError(path, "continues after its end")
    if trace.first_us is None:
        raise ReportError(path, "holds no event of PyTorch's profiler")
    if trace.unix_ns(trace.first_us) < EARLIEST_UNIX_NS:
        raise ReportError(path, "has times that do not count from 1970 (it has no baseTimeNanoseconds), so it has no place on the time axis")
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
    elif key == "distributedInfo" and isinstance(value, dict) and isinstance(value.get("rank"), int):
        trace.rank = value["rank"]


def _event_scan(trace: Trace, event: dict) -> None:
    phase, time_us, pid = event.get("ph"), event.get("ts"), event.get("pid")
    if phase == "X" and is_time(time_us) and is_time(event.get("dur")) and time_us:
        trace.first_us = time_us if trace.first_us is None else min(trace.first_us, time_us)
        trace.last_us = max(trace.last_us or 0, time_us + event["dur"])
    elif phase == "M" and event.get("name") == "process_labels" and event.get("args") == {"labels": "CPU"} and isinstance(pid, int):
        trace.pids.add(pid)
    trace.threads.add((place(pid), place(event.get("tid"))))
    if len(trace.threads) > MOST_THREADS:
        raise ReportError(trace.path, f"has more than {MOST_THREADS:,} threads, which no trace has")
    trace.largest_id = max(trace.largest_id, 0, *(id_number(value) or 0 for value in _ids_of(event)))


def _ids_of(event: dict) -> list[object]:
    scoped = event.get("id2")
    return [*(event[key] for key in IDS if key in event), *(scoped.values() if isinstance(scoped, dict) else ())]


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


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1 << 63


def is_time(value: object) -> bool:
    """Whether it is a time in microseconds. Kineto writes 0 for times before its base."""
    return is_number(value) and value <= MOST_US


def id_number(value: object) -> int | None:
    """The number of a flow's id. Perfetto reads an id that is a string as hexadecimal."""
    try:
        number = int(value, 16) if isinstance(value, str) else value
    except ValueError:
        return None
    return int(number) if is_number(number) else None


def _process_of(trace: Trace, rank: int | None, processes: Sequence[Process], world_size: int) -> Process:
    found = _process_by_rank(trace, rank, processes, world_size) if rank is not None else _process_guess(trace, processes, world_size)
    first_ns, last_ns = trace.unix_ns(trace.first_us), trace.unix_ns(trace.last_us)
    if last_ns < found.start_unix_ns or first_ns > found.end_unix_ns:
        theirs, ours = (f"{units.timestamp(low)} to {units.timestamp(high)}" for low, high in ((first_ns, last_ns), found[3:5]))
        raise ReportError(trace.path, f"is of another run: it has {theirs}, rank {found.rank} ran {ours}")
    return found


def _process_by_rank(trace: Trace, rank: int, processes: Sequence[Process], world_size: int) -> Process:
    for process in processes:
        if process.rank == rank:
            return process
    what = f"the run has {units.counted(world_size, 'rank')}" if rank >= world_size else "the run has no file of that rank"
    raise ReportError(trace.path, f"is of rank {rank}; {what}")


def _process_guess(trace: Trace, processes: Sequence[Process], world_size: int) -> Process:
    """The process with this id on this host. The rank of torch.distributed is used only if this is ambiguous: its ranks may be numbered
    differently, and other runs have the same ones."""
    same = [process for process in processes if process.pid in trace.pids and _may_be(trace.host, process.host)]
    on_host = [process for process in same if process.host and trace.path.name.startswith(f"{process.host}_{process.pid}.")]
    for candidates in (same, on_host, [process for process in same if process.rank == trace.rank]):
        if len(candidates) == 1:
            return candidates[0]
    if trace.rank is not None:
        return _process_by_rank(trace, trace.rank, processes, world_size)
    pids = " or ".join(map(str, sorted(trace.pids))) or "unknown"
    raise ReportError(trace.path, f"does not say its rank (process {pids}): give it as RANK={units.visible(str(trace.path))}")


def _may_be(name: str, host: str | None) -> bool:
    """Whether two host names may be the same host; each may have a domain or not, and one may be unknown."""
    return not name or not host or name.partition(".")[0] == host.partition(".")[0]

"""The files of --with-trace: finds the rank of the run that wrote each."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..base import query, units
from ..base.errors import ReportError
from ..base.json_stream import json_open
from ..base.present import present
from ..base.progress import Progress
from ..base.thresholds import whole
from ..run.selection import Selection
from .horovod_timeline import timeline_scan
from .pytorch_trace import Trace, trace_scan

SQL = query.beside(__file__)
OF_RANK = re.compile(r"(\d{1,9})=(.+)", re.DOTALL)
SUFFIXES = (".json", ".json.gz")
STEP_NS = whole("exporters.clock-step")


class Process(
    namedtuple("Process", "rank pid host start_unix_ns end_unix_ns stepped_ns state")
):
    """trace_ranks.sql"""

    @property
    def was_set(self) -> bool:
        """Whether its wall clock was, during the run."""
        return abs(self.stepped_ns) >= STEP_NS


class OfRank(NamedTuple):
    trace: Trace
    process: Process


def trace_files(words: Sequence[str]) -> dict[Path, int | None]:
    """The files of each FILE, FOLDER or RANK=FILE, with the rank that the user specified."""
    return dict(found for word in words for found in _files(word))


def traces_open(files: dict[Path, int | None], run: Selection) -> Iterator[OfRank]:
    """Yields each trace with its rank. Raises ReportError for the first file that is not a trace of
    this run."""
    processes = SQL.ask(run.connection, "trace_ranks", Process)
    with Progress("reading", len(files)) as progress:
        for path, rank in files.items():
            trace = _scan(path)
            trace.threads.clear()
            yield OfRank(trace, _process_of(trace, rank, processes, run.world_size))
            progress.step()


def _scan(path: Path) -> Trace:
    """Reads a file of either profiler: its first character shows which one wrote it."""
    with json_open(path) as stream:
        scan = timeline_scan if stream.peek() == "[" else trace_scan
        return scan(path, stream)


def _files(word: str) -> list[tuple[Path, int | None]]:
    match = OF_RANK.fullmatch(word)
    rank, path = (int(match[1]), Path(match[2])) if match else (None, Path(word))
    if not path.is_dir():
        return [(path, rank)]
    found = sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES))
    if not found:
        raise ReportError(
            path, "holds no trace (*.json, *.json.gz); a RUN is given before --with-trace"
        )
    return [(file, rank) for file in found]


def _process_of(
    trace: Trace, rank: int | None, processes: Sequence[Process], world_size: int
) -> Process:
    found = (
        _process_by_rank(trace, rank, processes, world_size) if rank is not None
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
        f"the run has {units.counted(world_size, 'rank')}" if rank >= world_size
        else "the run has no file of that rank"
    )
    raise ReportError(trace.path, f"is of rank {rank}; {what}")


def _process_guess(trace: Trace, processes: Sequence[Process], world_size: int) -> Process:
    """The process with this id on this host. The rank of torch.distributed is used only if this is
    ambiguous: its ranks may be numbered differently, and other runs have the same ones."""
    same = [
        process for process in processes
        if process.pid in trace.pids and _may_be(trace.host, process.host)
    ]
    on_host = [
        process for process in same
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

"""Adds events of PyTorch's traces to the timeline: on the run's time axis, in separate processes,
threads and flows.

Numbers of different files collide: device 0 is a process in each rank's trace, and the flows of
every file count from 1. Perfetto reads -1 as 0, and assigns numbers to text ids itself. So
processes and flows get new numbers; threads keep the kernel's thread ids, which our threads' names
have too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Callable

from ..run.alignment import MOST_NS
from .events import PLACES_OF_RANK, event_text, process_named
from .pytorch_trace import events_of, id_number, is_time, place
from .trace_files import OfRank

FIRST_THREAD = 4_000_000_000  # for threads whose number Perfetto does not accept (1 to 2^32 - 1)
IDS = ("id", "bind_id")  # and id2, which has an id for each scope
ID_BITS = 48  # of an id in its file; those above are the number of the file


class Beside:
    def __init__(
        self, first_process: int, aligned_ns: Callable[[int, int], int],
        overlaps: Callable[[int, int], bool],
    ) -> None:
        self.first_process, self.aligned_ns, self.overlaps = first_process, aligned_ns, overlaps
        self.processes: dict[tuple[int, object], int] = {}  # by rank and its number there
        self.threads: dict[tuple[int, object], int] = {}  # by process and its number there
        self.counts: Counter[int] = Counter()  # processes by rank
        self.file = 0

    def events(self, traces: Sequence[OfRank]) -> Iterator[str]:
        for self.file, of_rank in enumerate(traces):
            for event in events_of(of_rank.trace.path):
                yield from self._event(of_rank, event)

    def _event(self, of_rank: OfRank, event: dict) -> Iterator[str]:
        is_wanted = (
            _metadata_change(of_rank, event) if event.get("ph") == "M"
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
            self.aligned_ns(rank, own_ns), self.aligned_ns(rank, own_ns + round(span_us * 1_000)),
        )
        if (
            end_ns < 0 or (start_ns < 0 and "dur" not in event) or end_ns > MOST_NS
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
            yield from process_named(number, name, PLACES_OF_RANK * rank + below)
        process = event["pid"] = self.processes[rank, theirs]
        thread = place(event.get("tid", 1))
        if isinstance(thread, int) and 0 < thread < FIRST_THREAD:
            return
        if (process, thread) not in self.threads:
            self.threads[process, thread] = FIRST_THREAD + len(self.threads)
            if isinstance(thread, str):
                yield event_text(
                    "M", process, self.threads[process, thread], name="thread_name",
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
        arguments.get("name" if kind == "process_name" else "labels") if isinstance(arguments, dict)
        else None
    )
    if not isinstance(name, str) or not name:
        return False
    event.update(name="process_name", tid=1, args={"name": _title(of_rank.process.rank, name)})
    return True


def _title(rank: int, detail: str) -> str:
    return f"rank {rank}, PyTorch{': ' if detail else ''}{detail}"

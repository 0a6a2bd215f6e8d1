"""Timelines: what each rank did at every time, on its main thread, or, where that makes no MPI call, on the thread with the most time in MPI.
All statements about the time of steps and the causes of waiting are differences of sums over a timeline.

    call                 Allreduce                       Isend               Bcast (not split)
    state     outside  | waiting | transfer | outside  | transfer | outside | unsplit | ...
    point     0        1         2          3          4          5         6         7

Calls of NCCL are outside MPI. A nonblocking call that starts an operation cannot wait: all of it is transfer.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter, sub
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..run.alignment import Alignment, storable
from ..run.holes import holes

SQL = query.beside(__file__)

OUTSIDE, TRANSFER, FILES, WAITING, UNSPLIT, UNSEEN = STATES = range(6)
COUNT = len(STATES)
DIRECT = (OUTSIDE, TRANSFER, FILES)  # states in which the rank itself is the cause of being late
NOBODY = -1


class TimelineCall(NamedTuple):
    """A call of the thread whose timeline it is; timeline_calls.sql."""

    world_rank: int
    start_ns: int
    end_ns: int
    call: str
    state: int  # unless it was split


class Piece(NamedTuple):
    """A part of a timeline in one state. waits_for: the rank whose arrival ended it, of a wait."""

    begin_ns: int
    end_ns: int
    state: int
    call: str
    waits_for: int


class Timeline:
    """One rank's, on the run's time axis. `sums`: for each point, the time in each state up to it."""

    def __init__(self, names: list[str]) -> None:
        self.points, self.spent_ns = array("q", [0]), [0] * len(STATES)
        self.sums = array("q", self.spent_ns)
        self.states, self.calls, self.waits = array("b"), array("h"), array("i")
        self.names = names  # of calls, by their number; 0: no call

    def add(self, end_ns: int, state: int, call: int = 0, waits_for: int = NOBODY) -> None:
        """Goes on in this state until end_ns."""
        spent_ns = end_ns - self.points[-1]
        if spent_ns > 0:
            self.spent_ns[state] += spent_ns
            self.sums.extend(self.spent_ns)
            self.points.append(end_ns)
            self.states.append(state)
            self.calls.append(call)
            self.waits.append(waits_for)

    def spent(self, until_ns: int) -> list[int]:
        """The time in each state since the begin of the axis; they add up to it."""
        place = max(0, bisect_right(self.points, until_ns) - 1)
        spent = self.sums[place * COUNT : place * COUNT + COUNT].tolist()
        spent[self.states[place] if place < len(self.states) else OUTSIDE] += until_ns - self.points[place]
        return spent

    def between(self, since_ns: int, until_ns: int) -> list[int]:
        return list(map(sub, self.spent(until_ns), self.spent(since_ns)))

    def state_at(self, time_ns: int) -> int:
        place = bisect_right(self.points, time_ns) - 1
        return self.states[place] if 0 <= place < len(self.states) else OUTSIDE

    def pieces_between(self, since_ns: int, until_ns: int) -> int:
        """The number of pieces in which the rank is not outside MPI."""
        states = self.states[max(0, bisect_right(self.points, since_ns) - 1) : bisect_left(self.points, until_ns)]
        return len(states) - states.count(OUTSIDE)

    def back_from(self, time_ns: int) -> Iterator[Piece]:
        """The pieces before a time, the latest first, which ends there."""
        place = bisect_left(self.points, time_ns) - 1
        if place >= len(self.states):
            yield Piece(self.points[-1], time_ns, OUTSIDE, "", NOBODY)
            place = len(self.states) - 1
        for place in range(place, -1, -1):
            end_ns = min(time_ns, self.points[place + 1])
            yield Piece(self.points[place], end_ns, self.states[place], self.names[self.calls[place]], self.waits[place])


class Gaps:
    """Intervals without samples, sorted by begin, which are filled into a timeline between its calls. What a rank did between a call and such
    an interval is not known either: perhaps it was in a call that returned later."""

    def __init__(self, intervals: Sequence[tuple[int, int]]) -> None:
        self.intervals = intervals
        self.place = 0

    def fill(self, line: Timeline, until_ns: int) -> None:
        while self.place < len(self.intervals) and self.intervals[self.place][0] < until_ns:
            _, end_ns = self.intervals[self.place]
            line.add(min(end_ns, until_ns), UNSEEN)
            if end_ns > until_ns:
                return
            self.place += 1
        line.add(until_ns, OUTSIDE)


def timelines(connection: Connection, alignment: Alignment) -> dict[int, Timeline]:
    """By rank. Needs the TEMP TABLE late_call."""
    missing, numbers, names = holes(connection), {}, [""]
    split = {rank: {row[1]: row[2:] for row in rows} for rank, rows in groupby(SQL.run(connection, "timeline_waits"), key=itemgetter(0))}
    threads = dict(SQL.run(connection, "timeline_threads"))
    lines = {rank: Timeline(names) for (rank,) in connection.execute("SELECT world_rank FROM rank")}
    for rank, calls in groupby(map(TimelineCall._make, SQL.run(connection, "timeline_calls", threads=json.dumps(threads))), key=itemgetter(0)):
        line, waits = lines[rank], split.pop(rank, {})
        own = [hole for hole in missing.get(rank, ()) if hole.thread == threads[rank]]
        gaps = Gaps([(alignment.aligned_ns(rank, hole.begin_ns), alignment.aligned_ns(rank, hole.end_ns)) for hole in own])
        for _, began_ns, ended_ns, call, state in calls:
            if call not in numbers:
                numbers[call] = len(names)
                names.append(call)
            start_ns = storable(alignment.aligned_ns(rank, began_ns))
            gaps.fill(line, start_ns)
            if start_ns in waits:
                wait_ns, last_rank = waits[start_ns]
                line.add(start_ns + wait_ns, WAITING, numbers[call], NOBODY if last_rank is None else last_rank)
                state = TRANSFER
            line.add(start_ns + ended_ns - began_ns, state, numbers[call])
    return lines

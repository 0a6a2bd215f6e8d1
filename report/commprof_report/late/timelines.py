"""Timelines: what each rank did at every time, on its main thread, or, where that makes no MPI
call, on the thread with the most time in MPI. All statements about the time of steps and the causes
of waiting are differences of sums over a timeline.

    call                 Allreduce                       Isend               Bcast (not split)
    state     outside  | waiting | transfer | outside  | transfer | outside | unsplit | ...
    point     0        1         2          3          4          5         6         7

Calls of NCCL are outside MPI. A nonblocking call that starts an operation cannot wait: all of it is
transfer. The analysis of waiting does not tell negotiation apart (NEGOTIATING), nor that a rank has
not begun or has ended (ABSENT); drawings do.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import cached_property
from sqlite3 import Connection
from typing import Dict

from ..base import NONE, Ints, TextInts, Texts, by_rank, found_in, joined, np
from ..run.alignment import Alignment
from ..run.unseen import holes_aligned
from ..run.sampled import Calls
from .depends import Waits
from .reading import Known, are_setting_up, followed, is_on, polls

OUTSIDE, TRANSFER, FILES, WAITING, UNSPLIT, UNSEEN, NEGOTIATING, ABSENT = STATES = range(8)
COUNT = len(STATES)
DIRECT = (OUTSIDE, TRANSFER, FILES)  # states in which the rank itself is the cause of being late
NOBODY = -1


# A part of a timeline in one state. waits_for: the rank whose arrival ended it, of a wait.
Piece = namedtuple("Piece", "begin_ns end_ns state call waits_for")


class Timeline(namedtuple("Timeline", "points states calls waits sums texts")):
    """One rank's, on the run's time axis: it is in `states[i]` from points[i] to points[i + 1],
    outside MPI after that; and in which of `calls`, in which it `waits` for a rank. sums: at each
    point, the time in each state up to it."""

    @cached_property
    def states_from(self) -> Ints:
        """From each point on."""
        return np.append(self.states, OUTSIDE)

    def with_negotiation(self, begins_ns: Ints, ends_ns: Ints) -> Timeline:
        """The calls from these begins to these ends, in order, are negotiation."""
        points = self.points[:-1]
        place = np.searchsorted(begins_ns, points, "right") - 1
        is_own = (place >= 0) & (points < np.append(ends_ns, NONE)[place])
        is_own &= self.states != OUTSIDE
        states = np.where(is_own, NEGOTIATING, self.states)
        return self._replace(states=states, sums=_sums(self.points, states))

    def spent(self, until_ns: Ints) -> np.ndarray:
        """The time in each state since the begin of the axis; they add up to it. A row for each
        time."""
        place = np.maximum(0, self.points.searchsorted(until_ns, "right") - 1)
        spent = self.sums[place]
        spent[np.arange(len(place)), self.states_from[place]] += until_ns - self.points[place]
        return spent

    def spent_between(self, since_ns: Ints, until_ns: Ints) -> np.ndarray:
        spent = self.spent(np.concatenate([since_ns, until_ns]))
        return spent[len(since_ns) :] - spent[: len(since_ns)]

    def states_at(self, times_ns: Ints) -> Ints:
        place = self.points.searchsorted(times_ns, "right") - 1
        return self.states_from[np.where(place < 0, len(self.states), place)]

    def last_inside(self, times_ns: Ints) -> Ints:
        """The times themselves at which it is not outside MPI, else the end of its last call."""
        place = np.maximum(0, np.searchsorted(self.points, times_ns, "right") - 1)
        is_outside = self.states_from[place] == OUTSIDE
        return np.where(is_outside, self.points[place], times_ns)

    def pieces_between(self, since_ns: int, until_ns: int) -> int:
        """The number of pieces in which the rank is not outside MPI."""
        since = int(np.searchsorted(self.points, since_ns, "right"))
        until = int(np.searchsorted(self.points, until_ns))
        return int((self.states[max(0, since - 1) : until] != OUTSIDE).sum())

    def back_from(self, time_ns: int) -> Iterator[Piece]:
        """The pieces before a time, the latest first, which ends there."""
        place = int(np.searchsorted(self.points, time_ns)) - 1
        if place >= len(self.states):
            yield Piece(int(self.points[-1]), time_ns, OUTSIDE, "", NOBODY)
            place = len(self.states) - 1
        for place in range(place, -1, -1):
            times = int(self.points[place]), min(time_ns, int(self.points[place + 1]))
            yield Piece(
                *times,
                int(self.states[place]),
                self.texts.text(self.calls[place]) or "",
                int(self.waits[place]),
            )


class Lines(Dict[int, Timeline]):
    """The timelines of ranks."""

    def spent_between(self, world_ranks: Ints, since_ns: Ints, until_ns: Ints) -> np.ndarray:
        """For each row the time in each state (a row for each, a column for each state)."""
        found = np.empty((len(world_ranks), COUNT), np.int64)
        return self._filled(found, Timeline.spent_between, world_ranks, since_ns, until_ns)

    def states_at(self, world_ranks: Ints, times_ns: Ints) -> Ints:
        return self._filled(np.empty_like(times_ns), Timeline.states_at, world_ranks, times_ns)

    def last_inside(self, world_ranks: Ints, times_ns: Ints) -> Ints:
        return self._filled(np.empty_like(times_ns), Timeline.last_inside, world_ranks, times_ns)

    def _filled(
        self, found: Ints, ask: Callable[..., Ints], world_ranks: Ints, *times_ns: Ints
    ) -> Ints:
        for rank, own in by_rank(world_ranks):
            found[own] = ask(self[rank], *(times[own] for times in times_ns))
        return found


# `calls` of each rank's thread that is its timeline (threads: by rank), in order of time; start_ns:
# on the run's axis; states: of those that are not split. of_threads: of all threads, likewise,
# without those that set up (set_up). gaps: by rank begins and ends of times without samples.
Called = namedtuple("Called", "of_threads set_up threads calls start_ns states gaps ranks")


def called(
    connection: Connection, alignment: Alignment, samples: Calls, known: Known, texts: Texts
) -> Called:
    samples = joined(Calls, [samples, polls(samples)])
    samples = samples.take(np.lexsort((samples.end_ns, samples.start_ns, samples.world_rank)))
    every = samples.take(~known.which(samples.call, texts, lambda call: call.library == "nccl"))
    threads = followed(connection, every)
    calls = every.take(is_on(every, threads))
    is_set_up = are_setting_up(every, known, texts)
    rank, begins, ends = holes_aligned(connection, alignment, threads)
    return Called(
        every.take(~is_set_up),
        every.take(is_set_up),
        threads,
        calls,
        alignment.aligned(calls.world_rank, calls.start_ns),
        _states(calls.call, known, texts),
        {number: (begins[own], ends[own]) for number, own in by_rank(rank)},
        [rank for (rank,) in connection.execute("SELECT world_rank FROM rank")],
    )


def timelines(called: Called, waits: Waits, texts: Texts) -> Lines:
    """waits: of MPI's calls; of a call that has several the last one counts.

    Four pieces for each call: what the rank did before it, as far as that is not known and as far
    as it is, then waiting and the rest. A rank's activity between a call and a time without samples
    is not known either: perhaps it was in a call that returned later."""
    calls, start_ns, states = called.calls, called.start_ns, called.states
    place = found_in((calls.world_rank, start_ns), (waits.world_rank[::-1], waits.start_ns[::-1]))
    is_split, split = place >= 0, np.where(place >= 0, len(waits) - 1 - place, -1)
    wait_ns = np.where(is_split, np.append(waits.wait_ns, 0)[split], 0)
    last_rank = np.where(is_split, np.append(waits.last_rank, NONE)[split], NONE)
    nothing, nobody, outside = (np.full(len(calls), value) for value in (NONE, NOBODY, OUTSIDE))
    ends_ns = _in_turn(
        np.minimum(_unseen_until(called), start_ns),
        start_ns,
        start_ns + wait_ns,
        start_ns + calls.end_ns - calls.start_ns,
    )
    columns = (
        _in_turn(
            outside + UNSEEN,
            outside,
            outside + WAITING,
            np.where(is_split & (states != FILES), TRANSFER, states),
        ),
        _in_turn(nothing, nothing, calls.call, calls.call),
        _in_turn(nobody, nobody, np.where(last_rank == NONE, NOBODY, last_rank), nobody),
    )
    lines = Lines()
    for rank in called.ranks:
        own = slice(*(4 * np.searchsorted(calls.world_rank, (rank, rank + 1))))
        line_states, line_calls, line_waits = (column[own] for column in columns)
        lines[rank] = timeline(ends_ns[own], line_states, line_calls, line_waits, texts)
    return lines


def timeline(ends_ns: Ints, states: Ints, calls: TextInts, waits: Ints, texts: Texts) -> Timeline:
    """It goes on in each state until that end, one after the other; not at all if that is
    before."""
    upto_ns = np.maximum.accumulate(np.append(0, ends_ns))
    is_long = upto_ns[1:] > upto_ns[:-1]
    points, states = np.append(0, upto_ns[1:][is_long]), states[is_long]
    return Timeline(points, states, calls[is_long], waits[is_long], _sums(points, states), texts)


def _sums(points: Ints, states: Ints) -> np.ndarray:
    sums = np.zeros((len(points), COUNT), np.int64)
    sums[np.arange(1, len(points)), states] = np.diff(points)
    return sums.cumsum(axis=0, out=sums)


def _unseen_until(called: Called) -> Ints:
    """The end of the last time without samples that begins before each call, or NONE."""
    found = np.full(len(called.calls), NONE)
    for rank, (begins, ends) in called.gaps.items():
        own = slice(*np.searchsorted(called.calls.world_rank, (rank, rank + 1)))
        gap = np.searchsorted(begins, called.start_ns[own]) - 1
        found[own] = np.where(gap >= 0, np.append(ends, NONE)[gap], NONE)
    return found


def _states(calls: TextInts, known: Known, texts: Texts) -> Ints:
    """The state of each call, unless it was split."""
    found = np.full(len(calls), UNSPLIT)
    found[known.which(calls, texts, lambda call: call.only_starts)] = TRANSFER
    found[known.which(calls, texts, lambda call: call.family == "io")] = FILES
    return found


def _in_turn(*parts: np.ndarray) -> np.ndarray:
    """The first of each part, the second of each, and so on."""
    return np.stack(parts, axis=1).ravel()

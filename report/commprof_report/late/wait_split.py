"""The wait split: which rank arrived last in each sampled collective and message, and how long the
others waited for it.

This is the only analysis of waiting: every statement about waiting and late ranks is derived from
it.

    sampled collectives --> whom each rank depends on (depends.py) --+
    sampled messages    --> both sides, by number (messages.py) -----+--> Operations
    epochs of windows   --> both sides, by number (messages.py) -----+        |
    sampled calls       --> in which of them does a rank wait for each operation?
                                                                              |
    Waits  <-- waiting for progress  <--------------- waiting and transfer <-+

If the clock error may exceed half the median duration of such a call (reading.py), arrival times
are not used. Then the rank with the shortest blocking call is assumed to have arrived last, and the
excess of the other calls over it is waiting.

A rank waits for a blocking collective in that call; for a nonblocking or persistent collective or
message in the call that completes it (Wait, Test): from the entry of that call until the last rank
has started the collective, or the other side has posted the message. A call may complete several
operations: requests of collectives and messages, both messages of a Sendrecv. The operation that is
ready last decides when it can return. A call of which any operation's arrival is not known is not
split.

Waiting for progress: what is left of a call after the last rank has begun may be a wait, too.

Most MPI libraries move a message, or the parts of a collective, only while the ranks are inside
MPI. A rank that has begun its part and computes holds up the others until it comes back; so does
one that has not come yet to a collective in which the others depend on it without knowing, such as
the inner ranks of a Bcast's tree.

    rank 0  | Iallreduce | Wait   waits for progress of rank 1        | moves data |
    rank 1  | Iallreduce |====== outside MPI ========================>| Wait       |

Of what a call takes after the last arrival, the least of all ranks and all such calls of this size
(on this communicator) moves data. The excess over it is a wait for that partner of the operation
which was outside MPI for longest meanwhile, as far as it was, if

- it came back into MPI before the call returned, and its own part was not complete before, and
- it was outside for three quarters of the excess or more.

The rest is not known, and stays with transfer.

Timelines say what each rank did at every time, on its main thread, or, where that makes no MPI
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
from collections.abc import Iterator, Sequence
from sqlite3 import Connection
from typing import Dict

from ..base import (
    Columns,
    Flags,
    Groups,
    Ints,
    NONE,
    TextInts,
    Texts,
    by_rank,
    found_in,
    grouped,
    joined,
    np,
    pairs,
    query,
    read,
    threshold,
)
from ..run import Alignment, Calls, Selection, cells_of, holes_aligned
from ..run.sampled import sampled
from .depends import (
    ALL,
    Collectives,
    LOWER,
    NEIGHBORS,
    Operations,
    Sources,
    Waits,
    of_alike,
    operations_of,
    sources,
    whole,
)
from .messages import epoch_operations, messages
from .reading import (
    Clocks,
    Known,
    are_setting_up,
    followed,
    is_on,
    median_durations,
    message_sides,
    polls,
    region_names,
    sampled_collectives,
    samples,
)


# The split of a run's collectives and messages, whatever the user chose: Waits, Called, Texts.
# collectives: those that were sampled; sure: those of which the arrivals are known; later:
# Operations completed by other calls: nonblocking ones, messages, epochs; completed: what each row
# of waits was, or completed; error_ns: the largest clock error among the collectives split by
# arrival times; left: how many operations that the user chose were not split (judgement.py).
WaitSplit = namedtuple(
    "WaitSplit", "waits called texts collectives sure later completed error_ns left"
)


def wait_split(run: Selection, alignment: Alignment, known: Known) -> WaitSplit:
    """The run must have been opened with samples."""
    connection, texts = run.connection, sampled(run.connection).texts
    rows = sampled_collectives(connection, texts)
    epochs = read(Columns, query.run(connection, "late/sampled_epochs"), texts)
    sides, edges = message_sides(connection, known, texts), sources(connection, texts)
    clocks = Clocks(connection, alignment, lambda: median_durations(rows, sides, epochs))
    collectives, is_sure = _judge(rows.take(whole(rows)), alignment, clocks, edges, texts)
    sure = collectives.take(is_sure)
    of_collectives = operations_of(sure, edges, texts)
    of_messages, left = messages(connection, alignment, clocks, sides, texts)
    of_epochs, is_unsure = epoch_operations(connection, alignment, clocks, epochs, known, texts)
    blocking = sure.take(sure.is_blocking)
    completed = of_collectives.take(~sure.is_blocking & (of_collectives.gone_ns != NONE))
    later = joined(Operations, [completed, of_messages, of_epochs])
    inside = samples(connection, known, texts)
    completing = _completing(connection, alignment, inside, known, texts)
    place = found_in((later.world_rank, later.gone_ns), (completing.world_rank, completing.end_ns))
    operations = joined(Operations, [of_collectives.take(sure.is_blocking), later])
    no_polls = dict.fromkeys(
        ("completion", "polled_since_ns", "polled_ns"), np.full(len(blocking), NONE)
    )
    calls = joined(Calls, [blocking.changed(**no_polls), completing])
    in_call = np.append(np.arange(len(blocking)), np.where(place < 0, NONE, place + len(blocking)))
    waits, completed_in = split(operations, in_call, calls)

    def chosen(rows: Columns) -> Flags:
        return cells_of(connection).are_left(texts, call=rows.call, identity=rows.identity)

    first = Groups(collectives.identity, collectives.sequence).first
    unsure = collectives.take(first[~is_sure[first]]), of_epochs.take(is_unsure)
    unseen = later.take((place < 0) & (chosen(later) | ~later.is_known))
    left["unsure"] += sum(int(chosen(rows).sum()) for rows in unsure)
    left["uncompleted"] += len(grouped(unseen.world_rank, unseen.gone_ns)[1])
    own_calls = called(connection, alignment, inside, known, texts)
    may_be_held_up = known.which(
        completed_in.call,
        texts,
        lambda call: not call.is_blocking or (call.is_rooted and call.kind != NEIGHBORS),
    )
    held_up = completed_in.take(may_be_held_up)
    if len(held_up):
        lines = timelines(own_calls, waits.take(slice(0)), texts)
        parts = _parts(collectives, alignment, texts)
        waits = waiting_for_progress(waits, held_up, parts, lines, texts)
    return WaitSplit(
        waits, own_calls, texts, rows, sure, later, completed_in, clocks.error_ns, left
    )


def _completing(
    connection: Connection, alignment: Alignment, rows: Calls, known: Known, texts: Texts
) -> Calls:
    """The sampled calls that complete requests, or send, receive or find a message and return when
    that is done. completion: NONE for the latter. region: its name. begun_ns: start_ns on the run's
    axis."""
    rows = rows.take(known.which(rows.call, texts, lambda call: call.is_completing))
    rows = rows.take(np.lexsort((rows.end_ns, rows.world_rank)))
    is_completion = known.which(rows.call, texts, lambda call: call.family == "completion")
    return rows.changed(
        completion=np.where(is_completion, rows.call, NONE),
        region=region_names(connection, rows.world_rank, rows.region, texts),
        begun_ns=alignment.aligned(rows.world_rank, rows.start_ns),
    )


def split(operations: Operations, in_call: Ints, calls: Calls) -> tuple[Waits, Operations]:
    """The split of the calls in which ranks wait for these operations, then of unsuccessful polls
    before them; and the operations of these calls, with the row of the wait, and the peer of a
    message. in_call: the row of each operation's call; NONE: it is not known."""
    order, groups = grouped(in_call)
    operations, call = operations.take(order), in_call[order][groups.first]
    is_split = (call != NONE) & (groups.sum((~operations.is_known).astype(np.int64)) == 0)
    # the operation that was ready last, the first of several
    ready = groups.first_most(operations.last_ns)
    waits = _waits(
        operations.take(ready[is_split]), calls.take(call[is_split]), groups.counts[is_split]
    )
    wait = groups.spread(np.where(is_split, np.cumsum(is_split) - 1, -1))
    return waits, operations.changed(wait=wait, peer=_peers(operations)).take(wait >= 0)


def _peers(operations: Operations) -> Ints:
    """The other rank of a message; NONE: of a collective."""
    return np.where(operations.sequence == NONE, operations.last_rank, NONE)


def _waits(ready: Operations, calls: Calls, operations: Ints) -> Waits:
    """ready: of each call the operation that decided when it could return; operations: how many it
    completed. It is not known when each unsuccessful poll was made: as much of them is waiting as
    of the time from the first one to the call passes before the last rank arrives."""
    row = np.append(np.arange(len(calls)), np.flatnonzero(calls.polled_ns > 0))
    is_polled = np.arange(len(row)) >= len(calls)
    is_message = ready.sequence == NONE
    sequence = np.where(is_message, -np.cumsum(is_message), ready.sequence)[row]
    ready, calls = ready.take(row), calls.take(row)
    duration_ns, before_ns = calls.end_ns - calls.start_ns, calls.start_ns - calls.polled_since_ns
    start_ns = np.where(is_polled, calls.begun_ns - before_ns, calls.begun_ns)
    span_ns = np.where(is_polled, before_ns, duration_ns)
    spent_ns = np.where(is_polled, calls.polled_ns, duration_ns)
    part = spent_ns / np.maximum(1, span_ns)
    wait_ns = (np.clip(ready.last_ns - start_ns, 0, span_ns) * part).astype(np.int64)
    return Waits(
        identity=ready.identity,
        sequence=sequence,
        world_rank=ready.world_rank,
        call=ready.call,
        bytes=ready.bytes,
        region=calls.region,
        start_ns=start_ns,
        end_ns=start_ns + spent_ns,
        wait_ns=wait_ns,
        transfer_ns=spent_ns - wait_ns,
        last_rank=np.where(wait_ns > 0, ready.last_rank, NONE),
        is_last=ready.is_last,
        is_estimate=ready.is_estimate,
        completion=calls.completion,
        wait_state=np.where(wait_ns > 0, ready.wait_state, NONE),
        peer=_peers(ready),
        peer_ns=ready.peer_ns,
        operations=operations[row],
        is_polled=is_polled,
    )


def _parts(rows: Collectives, alignment: Alignment, texts: Texts) -> Collectives:
    """The ranks of collectives in which not all depend on all, or that are not blocking. gone_ns:
    when its part was complete, on the run's axis; NONE: not known."""
    rows = rows.take(~rows.is_blocking | (rows.kind != texts.number(ALL)))
    gone_ns = np.where(rows.is_blocking, rows.end_ns, rows.completed_ns)
    aligned_ns = alignment.aligned(rows.world_rank, gone_ns)
    return rows.changed(gone_ns=np.where(gone_ns == NONE, NONE, aligned_ns))


def _judge(
    rows: Collectives, alignment: Alignment, clocks: Clocks, edges: Sources, texts: Texts
) -> tuple[Collectives, Flags]:
    """The rows with begun_ns and is_estimate: only durations can split the collective; and whether
    it can be split at all."""
    groups = Groups(rows.identity, rows.sequence)
    first = rows.take(groups.first)
    is_estimate = ~clocks.are_sure(first.identity, first.call, clocks.among(rows, groups))
    is_all, is_lower, of_neighbors = (
        first.kind == texts.number(kind) for kind in (ALL, LOWER, NEIGHBORS)
    )
    needs_times = ~is_all | ~first.is_blocking
    has_sources = found_in((rows.identity, rows.world_rank), edges.known) >= 0
    # not if the root was not read, or if ranks named different roots
    has_whom = (
        is_all
        | is_lower
        | np.where(
            of_neighbors,
            groups.min(has_sources.astype(np.int64)) == 1,
            groups.sum(rows.is_root.astype(np.int64)) == 1,
        )
    )
    judged = rows.changed(
        begun_ns=alignment.aligned(rows.world_rank, rows.start_ns),
        is_estimate=groups.spread(is_estimate),
    )
    return judged, groups.spread(has_whom & ~(needs_times & is_estimate))


NO_PROGRESS, LATE_PARTNER = ("no progress", "late partner")
MOST_PARTNERS = 4  # of a collective


def waiting_for_progress(
    waits: Waits, operations: Columns, parts: Collectives, lines: Lines, texts: Texts
) -> Waits:
    """The waits with those for progress. parts: the ranks of collectives in which not all depend on
    all, or that are not blocking; gone_ns: their part was complete. lines: of the calls, whatever
    was split of them."""
    excess_ns = _excess_ns(waits)
    operations = operations.take(excess_ns[operations.wait] > 0)
    held = joined(
        Columns,
        [_messages(waits, operations), _collectives(waits, operations, parts, lines)],
    )
    held = held.take(held.partner != waits.world_rank[held.wait])
    outside_ns = _outside_ns(lines, held.partner, _arrived_ns(waits)[held.wait], held.until_ns)
    held = held.changed(held_ns=np.minimum(outside_ns, excess_ns[held.wait]))
    return _with(waits, _longest(waits, held, excess_ns), texts)


def _arrived_ns(waits: Waits) -> Ints:
    return waits.start_ns + waits.wait_ns


def _excess_ns(waits: Waits) -> Ints:
    """How much longer each transfer is than the least of such calls."""
    is_unsure = waits.is_estimate | waits.is_polled
    keys = waits.call, waits.identity, waits.bytes, waits.completion, is_unsure
    least_ns = of_alike(Groups.min, waits.transfer_ns, *keys)
    return np.where(is_unsure, 0, waits.transfer_ns - least_ns)


def _messages(waits: Waits, operations: Columns) -> Columns:
    """Partners that may have held up a call: until its return, or the end of the partner's part,
    whichever is earlier. wait: row of Waits; begun_ns: of the partner's part."""
    own = operations.take(operations.peer != NONE)
    end_ns = waits.end_ns[own.wait]
    until_ns = np.where(own.peer_gone_ns == NONE, end_ns, np.minimum(own.peer_gone_ns, end_ns))
    return Columns(
        wait=own.wait, partner=own.peer, begun_ns=np.full(len(own), NONE), until_ns=until_ns
    )


def _collectives(waits: Waits, operations: Columns, parts: Collectives, lines: Lines) -> Columns:
    """Only those partners of each that were outside MPI for longest while others were in it."""
    own = operations.take(operations.peer == NONE)
    order, groups = grouped(own.identity, own.sequence)
    own = own.take(order)
    since_ns = groups.min(_arrived_ns(waits)[own.wait])
    last_ns = groups.max(waits.end_ns[own.wait])
    first = own.take(groups.first)
    group = found_in((parts.identity, parts.sequence), (first.identity, first.sequence))
    parts, group = parts.take(group >= 0), group[group >= 0]
    gone_ns = np.where(parts.gone_ns == NONE, last_ns[group], parts.gone_ns)
    parts_until_ns = np.minimum(gone_ns, last_ns[group])
    outside_ns = _outside_ns(lines, parts.world_rank, since_ns[group], parts_until_ns)
    order = np.lexsort((-outside_ns, group))
    place = np.arange(len(group)) - np.searchsorted(group[order], group[order])
    chosen = order[(place < MOST_PARTNERS) & (outside_ns[order] > 0)]
    parts, group, until_ns = parts.take(chosen), group[chosen], parts_until_ns[chosen]
    row, entry = pairs(groups.of_row, group)
    wait = own.wait[row]
    return Columns(
        wait=wait,
        partner=parts.world_rank[entry],
        begun_ns=parts.begun_ns[entry],
        until_ns=np.minimum(until_ns[entry], waits.end_ns[wait]),
    )


def _outside_ns(lines: Lines, ranks: Ints, since_ns: Ints, until_ns: Ints) -> Ints:
    """How long each rank was outside MPI, up to its last call that began before until_ns."""
    back_ns = np.maximum(since_ns, lines.last_inside(ranks, until_ns))
    return lines.spent_between(ranks, since_ns, back_ns)[:, OUTSIDE]


def _longest(waits: Waits, held: Columns, excess_ns: Ints) -> Columns:
    """The one of several partners that held a call up for longest. A wait for another rank before
    must not be the longer one: a call waits for one rank."""
    held = held.take(np.lexsort((-held.held_ns, held.wait)))
    held = held.take(Groups(held.wait).first)
    is_same = waits.last_rank[held.wait] == held.partner
    is_longer = is_same | (held.held_ns >= waits.wait_ns[held.wait])
    return held.take(
        is_longer & (held.held_ns > 0) & is_explained(held.held_ns, excess_ns[held.wait])
    )


def is_explained(held_ns: Ints, excess_ns: Ints) -> Flags:
    return held_ns >= threshold("late.progress") * excess_ns


def _with(waits: Waits, found: Columns, texts: Texts) -> Waits:
    before, is_message = waits.take(found.wait), waits.peer[found.wait] != NONE
    has_begun = (found.begun_ns == NONE) | (found.begun_ns <= _arrived_ns(before))
    state = np.where(has_begun, texts.number(NO_PROGRESS), texts.number(LATE_PARTNER))
    columns = {
        "wait_ns": before.wait_ns + found.held_ns,
        "transfer_ns": before.transfer_ns - found.held_ns,
        "last_rank": found.partner,
        "wait_state": np.where(found.held_ns >= before.wait_ns, state, before.wait_state),
        "peer": np.where(is_message, found.partner, NONE),
        "peer_ns": np.where(is_message, _arrived_ns(before) + found.held_ns, NONE),
    }
    for name, values in columns.items():
        columns[name] = getattr(waits, name).copy()
        columns[name][found.wait] = values
    return waits.changed(**columns)


OUTSIDE, TRANSFER, FILES, WAITING, UNSPLIT, UNSEEN, NEGOTIATING, ABSENT = STATES = range(8)
COUNT = len(STATES)
DIRECT = (OUTSIDE, TRANSFER, FILES)  # states in which the rank itself is the cause of being late
NOBODY = -1


# A part of a timeline in one state. waits_for: the rank whose arrival ended it, of a wait.
Piece = namedtuple("Piece", "begin_ns end_ns state call waits_for")


class Timeline(namedtuple("Timeline", "points states_from calls waits sums texts")):
    """One rank's, on the run's time axis: it is in `states[i]` from points[i] to points[i + 1],
    outside MPI after that; and in which of `calls`, in which it `waits` for a rank. sums: at each
    point, the time in each state up to it."""

    @property
    def states(self) -> Ints:
        return self.states_from[:-1]

    def with_negotiation(self, begins_ns: Ints, ends_ns: Ints) -> Timeline:
        """The calls from these begins to these ends, in order, are negotiation."""
        points = self.points[:-1]
        place = np.searchsorted(begins_ns, points, "right") - 1
        is_own = (place >= 0) & (points < np.append(ends_ns, NONE)[place])
        is_own &= self.states != OUTSIDE
        states = np.where(is_own, NEGOTIATING, self.states)
        return timeline(self.points[1:], states, self.calls, self.waits, self.texts)

    def place(self, times_ns: Ints) -> Ints:
        """The point that each time is at or after; the first if it is before all."""
        return np.maximum(0, self.points.searchsorted(times_ns, "right") - 1)

    def spent(self, place: Ints, until_ns: Ints) -> np.ndarray:
        """The time in each state since the begin of the axis; they add up to it. A row for each
        time; place: of each."""
        spent = self.sums[place]
        spent[np.arange(len(place)), self.states_from[place]] += until_ns - self.points[place]
        return spent

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
    """The timelines of ranks: parts of `whole`, each from its point first[rank] on."""

    def __init__(
        self,
        ranks: Sequence[int],
        begins: Ints,
        ends_ns: Ints,
        states: Ints,
        calls: TextInts,
        waits: Ints,
        texts: Texts,
    ) -> None:
        """begins: where in the columns each rank has its own. It goes on in each state until that
        end, one after the other; not at all if that is before."""
        since_ns, upto_ns = np.zeros((2, len(ends_ns)), np.int64)
        for begin, end in zip(begins, [*begins[1:], len(ends_ns)]):
            np.maximum.accumulate(np.maximum(0, ends_ns[begin:end]), out=upto_ns[begin:end])
            since_ns[begin + 1 : end] = upto_ns[begin:end][:-1]
        is_long = upto_ns > since_ns
        states, calls, waits = states[is_long], calls[is_long], waits[is_long]
        first = np.append(0, np.cumsum(is_long))[begins]
        points = np.insert(upto_ns[is_long], first, 0)
        states_from = np.insert(states, [*first[1:], len(states)], OUTSIDE)
        sums = np.zeros((len(points), COUNT), np.int64)
        later = np.delete(np.arange(len(points)), first + np.arange(len(first)))
        sums[later, states] = points[later] - points[later - 1]
        self.whole = Timeline(points, states_from, calls, waits, sums, texts)
        self.first: dict[int, int] = {}
        for place, (rank, begin, end) in enumerate(zip(ranks, first, [*first[1:], len(states)])):
            own, pieces = slice(begin + place, end + place + 1), slice(begin, end)
            sums[own].cumsum(axis=0, out=sums[own])
            columns = points[own], states_from[own], calls[pieces], waits[pieces], sums[own]
            self[rank], self.first[rank] = Timeline(*columns, texts), own.start

    def spent_between(self, world_ranks: Ints, since_ns: Ints, until_ns: Ints) -> np.ndarray:
        """For each row the time in each state (a row for each, a column for each state)."""
        times_ns = np.concatenate([since_ns, until_ns])
        place = self._place(np.concatenate([world_ranks, world_ranks]), times_ns)
        spent = self.whole.spent(place, times_ns)
        return spent[len(since_ns) :] - spent[: len(since_ns)]

    def last_inside(self, world_ranks: Ints, times_ns: Ints) -> Ints:
        """The times themselves at which a rank is not outside MPI, else the end of its last
        call."""
        place = self._place(world_ranks, times_ns)
        is_outside = self.whole.states_from[place] == OUTSIDE
        return np.where(is_outside, self.whole.points[place], times_ns)

    def _place(self, world_ranks: Ints, times_ns: Ints) -> Ints:
        found = np.empty_like(times_ns)
        for rank, own in by_rank(world_ranks):
            found[own] = self.first[rank] + self[rank].place(times_ns[own])
        return found


# `calls` of each rank's thread that is its timeline (threads: by rank), in order of time; start_ns:
# on the run's axis; states: of those that are not split. every: of all threads, likewise;
# is_set_up: which of them set up. gaps: by rank begins and ends of times without samples.
Called = namedtuple("Called", "every is_set_up threads calls start_ns states gaps ranks")


def called(
    connection: Connection, alignment: Alignment, samples: Calls, known: Known, texts: Texts
) -> Called:
    samples = joined(Calls, [samples, polls(samples)])
    samples = samples.take(np.lexsort((samples.end_ns, samples.start_ns, samples.world_rank)))
    every = samples.take(~known.which(samples.call, texts, lambda call: call.library == "nccl"))
    threads = followed(connection, every)
    calls = every.take(is_on(every, threads))
    rank, begins, ends = holes_aligned(connection, alignment, threads)
    return Called(
        every,
        are_setting_up(every, known, texts),
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
        ).astype(np.int8),
        _in_turn(nothing, nothing, calls.call, calls.call),
        _in_turn(nobody, nobody, np.where(last_rank == NONE, NOBODY, last_rank), nobody),
    )
    begins = 4 * np.searchsorted(calls.world_rank, called.ranks)
    return Lines(called.ranks, begins, ends_ns, *columns, texts)


def timeline(ends_ns: Ints, states: Ints, calls: TextInts, waits: Ints, texts: Texts) -> Timeline:
    """One rank's, with pieces as those of Lines."""
    return Lines([0], np.zeros(1, np.int64), ends_ns, states, calls, waits, texts)[0]


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

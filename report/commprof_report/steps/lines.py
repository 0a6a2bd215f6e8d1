"""The calls of a thread as a sequence of tokens, in which loops are sought.

A token is the call, the communicator, the size of a collective if it occurs again, and how far the
peer of a message is from the own rank: equal programs make equal sequences on all ranks. Sizes of
messages change with the data, and where ranks have sizes of their own they are not compared.
Requests that are polled, or completed in any order, are no part of a sequence. SampledCalls is what
all stages of steps read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ..base import (
    Columns,
    Connection,
    Flags,
    Ints,
    NONE,
    TextInts,
    Texts,
    by_rank,
    found_in,
    np,
    numbered,
    query,
    read,
    threshold,
    units,
    whole,
)
from ..late.reading import CallInfo, Known, known, told
from ..loops.levels import Kind, Line
from ..run.sampled import Calls, Communicators, FurtherMessages, Starts, sampled

SOUGHT = ("collective", "neighborhood", "point-to-point", "completion", "rma", "io")
ANY_ORDER = ("Waitany", "Waitsome", "Test", "Testall", "Testany", "Testsome", "get_status")
FEWEST_OF_A_SIZE = whole("loops.steps")
FEWEST_CALLS = whole("loops.calls")
MOSTLY_TIMED = threshold("steps.timed")
BROADCASTS = ("bcast", "broadcast")
REDUCTIONS = ("reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "reducescatter")


@dataclass(frozen=True)
class OwnCalls(Columns):
    """The calls of a thread in order; sequence, identity: of collectives, else NONE."""

    call: TextInts
    function: Ints  # equal for the same call on the same communicator
    sized: Ints  # a token; of messages with the size, if it occurs again
    token: Ints  # the same without sizes of messages
    kind: Ints
    is_bulk: Flags
    bytes: Ints
    identity: TextInts
    sequence: Ints
    stretch: Ints  # equal while no call is missing in between
    start_ns: Ints
    end_ns: Ints  # of a bulk collective: when it was complete

    def line(self, token: Ints) -> Line:
        upto_ns = np.maximum.accumulate(self.end_ns) if len(self) else self.end_ns
        return Line(token, self.stretch, self.kind, upto_ns)


def about_calls(sampled: SampledCalls) -> Columns:
    """Facts that all lines need, by number of the call's name."""

    def is_sought(info: CallInfo) -> bool:
        is_ordered = not info.call.endswith(ANY_ORDER) and "get_status" not in info.call
        return info.family in SOUGHT and info.form != "persistent" and is_ordered

    texts = sampled.texts
    names = np.arange(len(texts.texts))
    which = sampled.known.which
    return Columns(
        is_sought=which(names, texts, is_sought),
        is_collective=which(
            names, texts, lambda info: info.family in ("collective", "neighborhood")
        ),
        has_own_size=which(names, texts, lambda info: info.bandwidth == "own-size"),
        is_rooted=which(names, texts, lambda info: info.family == "io" or info.is_rooted),
        is_barrier=np.array(["barrier" in name.lower() for name in texts.texts], bool),
        is_reduction=np.array([is_reduction(name) for name in texts.texts], bool),
        is_broadcast=np.array([units.operation(name) in BROADCASTS for name in texts.texts], bool),
        is_completing=which(names, texts, lambda info: info.family == "completion"),
        # of a message that another call completes
        is_start=which(
            names, texts, lambda info: info.family == "point-to-point" and info.only_starts
        ),
    )


def is_reduction(call: str) -> bool:
    return units.operation(call) in REDUCTIONS


def collectives(sampled: SampledCalls, known: Communicators) -> Columns:
    """The sampled collectives of communicators of several ranks. row: of the call. is_after_gap:
    the one before it on the communicator was not sampled. size: of the communicator. done_ns: when
    it was complete, or its call returned if that is later. Times are on the device if nine in ten
    of the communicator's operations have such times: with intermittent tracing, steps would seem
    long and short."""
    calls = sampled.calls
    rows = np.flatnonzero((calls.sequence != NONE) & (calls.communicator > 1))
    known = known.take((known.size > 1) | known.is_inter)
    place = known.row(calls.take(rows))
    rows, place = rows[place >= 0], place[place >= 0]
    identity = known.identity[place]
    start_ns, end_ns, done_ns = calls.start_ns[rows], calls.end_ns[rows], calls.completed_ns[rows]
    is_timed = calls.device_end_ns[rows] != NONE
    is_on_device = mostly_timed(identity, is_timed, known.is_nccl[place])
    start_ns = np.where(is_timed & is_on_device, calls.device_start_ns[rows], start_ns)
    done_ns = np.where(is_timed, np.where(is_on_device, calls.device_end_ns[rows], NONE), done_ns)
    rank, sequence = calls.world_rank[rows], calls.sequence[rows]
    before = found_in((rank, identity, sequence - 1), (rank, identity, sequence))
    return Columns(
        row=rows,
        world_rank=rank,
        identity=identity,
        sequence=sequence,
        is_after_gap=(before < 0) & (sequence > 1),
        size=known.size[place],
        start_ns=start_ns,
        done_ns=np.maximum(end_ns, done_ns),
    )


def mostly_timed(identity: TextInts, is_timed: Flags, is_nccl: Flags) -> Flags:
    count = np.bincount(identity)[identity]
    timed = np.bincount(identity, is_timed)[identity]
    return is_nccl & (timed >= MOSTLY_TIMED * count)


@lru_cache(maxsize=4)
def _tokens(*columns: bytes) -> tuple[Ints, Ints, Ints]:
    """function, sized and token of OwnCalls, from the numbers of calls and communicators, bytes of
    collectives (else 0), how far the peer is, and bytes of messages (else 0). Most ranks of a job
    run the same program, and have the same tokens."""
    call, communicator, collective_bytes, towards, message_bytes = (
        np.frombuffer(column, np.int64) for column in columns
    )
    function = numbered(call, communicator)
    similar = by_first_use(function, repeated(function, collective_bytes))
    token = by_first_use(similar, towards)
    return function, by_first_use(token, repeated(token, message_bytes)), token


def own_calls(
    sampled: SampledCalls,
    about: Columns,
    found: Columns,
    rows: Ints,
    ranks: int,
) -> OwnCalls:
    """rows: the calls of one thread, in order; found: the collectives of its rank."""
    calls = sampled.calls.take(rows)
    place = found_in((rows,), (found.row,))
    is_collective = place >= 0
    is_control = sampled.is_control[rows]
    is_unknown = (calls.bytes == NONE) & (is_control == NONE)
    is_bulk = is_collective & (sampled.is_large[rows] | is_unknown)
    at = np.maximum(place, 0)
    identity = np.where(is_collective, np.append(found.identity, NONE)[at], NONE)
    start_ns = np.where(is_collective, np.append(found.start_ns, 0)[at], calls.start_ns)
    done_ns = np.where(is_collective & is_bulk, np.append(found.done_ns, 0)[at], calls.end_ns)
    has_size = is_collective & ~about.has_own_size[calls.call] & (calls.bytes != NONE)
    own_bytes = np.where(has_size, calls.bytes, 0)
    towards = np.where(calls.peer == NONE, NONE, (calls.peer - calls.world_rank) % max(1, ranks))
    is_message = ~is_collective & ~about.is_completing[calls.call] & (calls.bytes != NONE)
    columns = (
        calls.call,
        calls.communicator,
        own_bytes,
        np.where(is_collective, 0, towards),
        np.where(is_message, calls.bytes, 0),
    )
    function, sized, token = _tokens(*(column.tobytes() for column in columns))
    kind = np.where(about.is_start[calls.call], Kind.START, Kind.MESSAGE)
    kind[is_collective] = Kind.SMALL
    kind[is_bulk] = Kind.DATA
    kind[about.is_rooted[calls.call]] = Kind.ROOTED
    kind[about.is_barrier[calls.call]] = Kind.BARRIER
    return OwnCalls(
        calls.call,
        function,
        sized,
        token,
        kind,
        is_bulk,
        np.where(is_message, calls.bytes, own_bytes),
        identity,
        np.where(is_collective, np.append(found.sequence, 0)[at], NONE),
        _stretches(sampled, calls.world_rank, calls.thread, calls.end_ns, found, place),
        start_ns,
        done_ns,
    )


def repeated(function: Ints, own_bytes: Ints) -> Ints:
    """The size; of sizes that occur too rarely to repeat, each call has its own number."""
    kind = numbered(function, own_bytes)
    is_rare = np.bincount(kind, minlength=1)[kind] < FEWEST_OF_A_SIZE
    return np.where(is_rare, -1 - np.arange(len(kind)), own_bytes)


def by_first_use(*keys: Ints) -> Ints:
    """Numbers of the keys in the order in which they first occur: the same on ranks that make the
    same calls on other communicators."""
    number = numbered(*keys)
    _, first = np.unique(number, return_index=True)
    return np.argsort(np.argsort(first))[number]


def _stretches(
    sampled: SampledCalls, rank: Ints, thread: Ints, end_ns: Ints, found: Columns, place: Ints
) -> Ints:
    """0: nothing is missing before."""
    if not len(rank):
        return rank
    windows = sampled.windows
    own = windows.take(slice(*np.searchsorted(windows.world_rank, (rank[0], rank[0] + 1))))
    begins_ns = own.begin_ns[own.thread == thread[0]]
    window = np.maximum(np.searchsorted(begins_ns, end_ns, "right") - 1, 0)
    return window + np.cumsum(np.append(found.is_after_gap, False)[place])


def threads_of(sampled: SampledCalls, about: Columns) -> Iterator[tuple[int, Ints]]:
    """Each rank, and the rows of the calls of the thread that makes its steps: the main one if it
    makes calls enough, else the one that makes most; if a thread negotiates, that one. With the
    collectives of others on its communicators: their order is that of the program."""
    calls = sampled.calls
    rows = np.flatnonzero(about.is_sought[calls.call])
    for rank, at in by_rank(calls.world_rank[rows]):
        own = rows[at]
        threads, count = np.unique(calls.thread[own], return_counts=True)
        some = np.array([own[calls.thread[own] == thread][0] for thread in threads])
        is_main = sampled.of_threads.is_main[some] & (count >= FEWEST_CALLS)
        is_negotiating = sampled.of_threads.is_negotiating[some] & (count >= FEWEST_CALLS)
        weight = count + len(own) * is_main + 2 * len(own) * is_negotiating
        is_own = calls.thread[own] == threads[weight.argmax()]
        is_ordered = about.is_collective[calls.call[own]] & (calls.communicator[own] > 1)
        used = np.unique(calls.communicator[own[is_own & is_ordered]])
        is_shared = is_ordered & np.isin(calls.communicator[own], used)
        if not is_negotiating.any():
            is_own |= is_shared
        yield rank, own[is_own]


@dataclass(frozen=True)
class SampledCalls:
    calls: Calls  # by rank, in order of time
    messages: FurtherMessages
    starts: Starts
    threads: Columns
    windows: Columns
    texts: Texts
    known: Known
    is_control: Ints  # of each call, by what it is; NONE: its thread does not negotiate
    is_large: Flags  # it is bulk, if it is a collective: else by its size

    @cached_property
    def of_threads(self) -> Columns:
        """Whether the thread of each call is the main one, as is one that is not known, and whether
        it negotiates."""
        calls, threads = self.calls, self.threads
        place = found_in((calls.world_rank, calls.thread), (threads.world_rank, threads.thread))
        return Columns(
            is_main=np.append(threads.is_main, True)[place],
            is_negotiating=np.append(threads.is_negotiating, False)[place],
        )


def sampled_calls(connection: Connection, about: Known | None = None) -> SampledCalls:
    """about: where the caller has it."""
    texts, calls, messages, starts = sampled(connection)
    calls = calls.take(np.lexsort((calls.end_ns, calls.start_ns, calls.world_rank)))
    is_control, is_large = told(connection, calls, texts)
    threads = read(Columns, query.run(connection, "steps/threads"), texts)
    windows = read(Columns, query.run(connection, "steps/windows"), texts)
    return SampledCalls(
        calls,
        messages,
        starts,
        threads,
        windows,
        texts,
        about or known(connection),
        is_control,
        is_large,
    )

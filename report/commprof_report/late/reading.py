"""The sampled calls of a run (run/sampled.py) as the analysis of waiting needs them, with known
facts on calls and communicators; which of them make each rank's timeline; and whether the clocks of
ranks are accurate enough to split them by arrival times.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..base import (
    Columns,
    Connection,
    Flags,
    Floats,
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
    query,
    read,
    sums as grouped_by,
    threshold,
    whole,
)
from ..calls.views import is_poll
from ..run import (
    Alignment,
    Calls,
    Error,
    FurtherMessages,
    Use,
    cells_of,
    communicators,
    cpu_times,
    run_communicators,
    synchronizing,
    traffic_classify,
    use_of,
)
from ..run.sampled import sampled
from .depends import Collectives, before, of_alike

RECEIVES = ("MPI_Recv", "MPI_Irecv", "MPI_Mrecv", "MPI_Imrecv")
PERSISTENT_LOG2 = 40  # the starts of persistent collectives have sequences beyond all others
FIRST_PERSISTENT = 1 << PERSISTENT_LOG2


def _only(calls: Calls, names: str) -> Calls:
    return Calls(**{name: getattr(calls, name) for name in names.split()})


def sampled_collectives(connection: Connection, texts: Texts) -> Collectives:
    """The samples of synchronizing collectives. Collectives with fewer ranks than were read of
    their communicator are among them. An NCCL collective lasts from the start of its kernel to its
    end, on the device; without device times it is left out."""
    _, calls, _, starts = sampled(connection)
    known, kinds = communicators(connection, texts), synchronizing(connection, texts)
    known = known.take((known.communicator > 1) & ~known.is_inter & (known.size > 1))
    groups = Groups(known.identity)
    # a number on a communicator, or on a window or file
    number = np.where(calls.sequence == NONE, calls.object_sequence, calls.sequence)
    calls = _only(
        calls.changed(sequence=number, member=known.row(calls)),
        "member world_rank call sequence bytes root region start_ns end_ns completed_ns is_shared "
        "device_start_ns device_end_ns",
    )
    calls = calls.take((number != NONE) & (calls.member >= 0))
    is_nccl = known.is_nccl[calls.member]
    is_persistent = np.append(kinds.is_persistent, False)[kinds.row(calls.call)]
    starts = starts.changed(
        sequence=(starts.operation << PERSISTENT_LOG2) | starts.number,
        member=known.row(starts),
        region=np.zeros(len(starts), np.int64),
    )
    rows = joined(
        Columns,
        [
            calls.take(~is_nccl & ~is_persistent),
            starts.take(starts.member >= 0),
            _on_device(calls.take(is_nccl), texts),
        ],
    )
    rows = rows.changed(kind=kinds.row(rows.call))
    rows = rows.take(rows.kind >= 0)
    order = np.lexsort((known.comm_rank[rows.member], rows.sequence, groups.of_row[rows.member]))
    rows = rows.take(order)
    member, kind = rows.member, rows.kind
    return Collectives(
        identity=known.identity[member],
        sequence=rows.sequence,
        members=groups.counts[groups.of_row[member]],
        world_rank=rows.world_rank,
        call=rows.call,
        kind=kinds.kind[kind],
        wait_state=kinds.wait_state[kind],
        is_blocking=kinds.is_blocking[kind],
        bytes=rows.bytes,
        is_root=known.comm_rank[member] == rows.root,
        region=region_names(connection, rows.world_rank, rows.region, texts),
        start_ns=rows.start_ns,
        end_ns=rows.end_ns,
        completed_ns=rows.completed_ns,
        is_nccl=known.is_nccl[member],
    )


def _on_device(calls: Calls, texts: Texts) -> Calls:
    """With the times on the device. One row for the operations of a kernel, with the lowest
    sequence."""
    calls = calls.take((calls.device_start_ns != NONE) & (calls.device_end_ns != NONE))
    order, groups = grouped(
        calls.member,
        calls.device_start_ns,
        calls.device_end_ns,
        np.where(calls.is_shared, 0, calls.sequence),
    )
    first = order[groups.first_most(-calls.sequence[order])]
    has_bytes = calls.bytes[order] != NONE
    message_bytes = np.where(
        groups.sum(has_bytes.astype(np.int64)) > 0,
        groups.sum(np.where(has_bytes, calls.bytes[order], 0)),
        NONE,
    )
    calls = calls.take(first)
    return calls.changed(
        call=np.where(calls.is_shared, texts.number("ncclGroup"), calls.call),
        bytes=message_bytes,
        root=np.where(calls.is_shared, NONE, calls.root),
        start_ns=calls.device_start_ns,
        end_ns=calls.device_end_ns,
        completed_ns=np.full(len(calls), NONE),
    )


def message_sides(connection: Connection, known: Known, texts: Texts) -> Columns:
    """Both sides of each sampled message, and the probes that found it, channel by channel
    (communicator, sender, receiver, tag), in the order of posting. Times are the rank's own.
    identity: NONE, if it is not known; gone_ns: return of the call that completed it; NONE: not
    seen; is_buffered: the call cannot wait for the receiver."""
    owned, messages = communicators(connection, texts), _messages(connection, known, texts)
    is_blocking = known.which(messages.call, texts, lambda call: call.form == "blocking")
    probes = sampled(connection).calls
    is_probe = known.which(probes.call, texts, lambda call: call.family == "probe")
    probes = probes.take(is_probe & (probes.number != NONE))
    yes, no = np.ones(len(probes), bool), np.zeros(len(messages), bool)
    sides = joined(
        FurtherMessages,
        [
            messages.changed(
                is_received=messages.direction == texts.number("received"),
                is_probe=no,
                gone_ns=np.where(is_blocking, messages.end_ns, messages.completed_ns),
            ),
            probes.changed(is_received=yes, is_probe=yes, gone_ns=probes.end_ns),
        ],
    )
    identity = np.append(owned.identity, NONE)[owned.row(sides)]
    sides = sides.changed(
        identity=identity,
        sender=np.where(sides.is_received, sides.peer, sides.world_rank),
        receiver=np.where(sides.is_received, sides.world_rank, sides.peer),
        is_buffered=known.which(sides.call, texts, lambda call: "bsend" in call.call.lower()),
    )
    place = np.append(texts.order(), NONE)[np.maximum(identity, -1)]
    return sides.take(np.lexsort((sides.start_ns, sides.tag, sides.receiver, sides.sender, place)))


def _messages(connection: Connection, known: Known, texts: Texts) -> FurtherMessages:
    """All messages of sampled calls, view `message`."""
    _, calls, further, _ = sampled(connection)
    is_message = known.which(
        calls.call,
        texts,
        lambda call: (
            (call.library, call.family, call.bandwidth) == ("mpi", "point-to-point", "one-way")
            and call.form != "persistent"
        ),
    )
    calls = calls.take((calls.peer != NONE) & is_message)
    received, sent = texts.number("received"), texts.number("sent")
    own = calls.changed(direction=np.where(texts.among(calls.call, RECEIVES), received, sent))
    further = further.take(
        (further.peer != NONE) & known.which(further.call, texts, lambda call: True)
    )
    return joined(FurtherMessages, [own, further])


def median_durations(rows: Collectives, sides: Columns, epochs: Columns) -> Medians:
    """Medians of collectives (each with the mean of its ranks: of two ranks that wait for each
    other in turn, half of the durations are transfer alone), messages (with the mean of it and the
    one that the same call sent or received the other way), probes and epochs. Of nonblocking and
    persistent ones from start to completion."""
    parts = [
        (
            rows.identity,
            rows.call,
            _mean_ns(
                rows.start_ns,
                np.where(rows.is_blocking, rows.end_ns, rows.completed_ns),
                rows.identity,
                rows.sequence,
            ),
        ),
        (
            sides.identity,
            sides.call,
            _mean_ns(
                sides.start_ns,
                sides.gone_ns,
                sides.identity,
                sides.call,
                np.minimum(sides.sender, sides.receiver),
                np.maximum(sides.sender, sides.receiver),
                sides.tag,
                sides.number,
            ),
        ),
        (epochs.identity, epochs.call, epochs.end_ns - epochs.start_ns),
    ]
    identity, call, duration_ns = (np.concatenate(column) for column in zip(*parts))
    order = np.lexsort((duration_ns, call, identity))
    order = order[((identity != NONE) & (duration_ns != NONE))[order]]
    groups = Groups(identity[order], call[order])
    middle = order[groups.first + (groups.counts + 1) // 2 - 1]
    return {(int(identity[row]), int(call[row])): int(duration_ns[row]) for row in middle.tolist()}


def _mean_ns(start_ns: Ints, gone_ns: Ints, *keys: Ints) -> Ints:
    """For each row the mean duration of those with the same keys; NONE: its end is not known."""
    lasts_ns, keys = gone_ns - start_ns, (*keys, gone_ns == NONE)
    mean_ns = of_alike(lambda groups, ns: groups.sum(ns) // groups.counts, lasts_ns, *keys)
    return np.where(gone_ns == NONE, NONE, mean_ns)


def samples(connection: Connection, known: Known, texts: Texts) -> Calls:
    """Without MPI_Init and the like; by rank, in order of time. Where a rank sleeps between its
    unsuccessful polls, or makes one after the other, all of the time since its call before counts
    as theirs."""
    calls = _only(
        sampled(connection).calls,
        "world_rank thread call communicator bytes region start_ns end_ns polled_since_ns "
        "polled_ns",
    )
    calls = calls.take(~known.which(calls.call, texts, lambda call: call.family == "setup"))
    calls = calls.take(np.lexsort((calls.end_ns, calls.start_ns, calls.world_rank)))
    # a rank that polls for several goes on with the others when one succeeds
    before_ns = np.append(calls.end_ns, NONE)[before(calls.world_rank, calls.thread)]
    since_ns = np.minimum(np.maximum(before_ns, calls.polled_since_ns), calls.start_ns)
    between_ns = np.where(
        calls.polled_ns == NONE, 0, np.maximum(0, calls.start_ns - since_ns - calls.polled_ns)
    )
    used, is_idle = cpu_times(connection), np.zeros(len(calls), bool)
    poll_ns = _poll_means_ns(connection)
    for rank, own in by_rank(calls.world_rank):
        if rank in poll_ns:
            polled_ns = np.maximum(0, calls.polled_ns[own])
            is_idle[own] = is_spinning(between_ns[own], polled_ns, poll_ns[rank])
        if rank in used and is_asleep(use_of([used[rank]]), int(between_ns[own].sum())):
            is_idle[own] = True
    is_idle &= between_ns > 0
    return calls.changed(
        polled_since_ns=np.where(is_idle, since_ns, calls.polled_since_ns),
        polled_ns=np.where(is_idle, calls.start_ns - since_ns, calls.polled_ns),
    )


def _poll_means_ns(connection: Connection) -> dict[int, float]:
    """By rank the mean time of an unsuccessful poll, of the function that takes longest."""
    polls = grouped_by(cells_of(connection).whole, ["world_rank", "call"], is_poll)
    longest_ns = Groups(polls.of).max(polls.sum("total_ns") / polls.sum("count"))
    return dict(zip(np.unique(polls.of).tolist(), longest_ns.tolist()))


def are_setting_up(calls: Calls, known: Known, texts: Texts) -> Flags:
    """The calls that create communicators before a rank's first call of another kind: set-up, as
    MPI_Init is. calls: by rank, in order of time."""
    is_creating = known.which(calls.call, texts, lambda call: call.family == "communicator")
    ranks = Groups(calls.world_rank)
    return ranks.place() < ranks.spread(ranks.first_at(~is_creating) - ranks.first)


def is_asleep(use: Use, between_ns: int) -> bool:
    """Whether a rank surely sleeps for most of the time between its polls in which it does not wait
    for a core, even if it is blocked in all other time outside MPI."""
    ready_ns = use.ready_bounds_ns[1]
    asleep_ns = min(use.outside_ns, between_ns) - ready_ns
    core_ns = ready_ns * (1 - use.wait_rate)
    return asleep_ns >= threshold("late.reason") * (asleep_ns + core_ns) > 0


def is_spinning(between_ns: Ints, polled_ns: Ints, poll_ns: float) -> Flags:
    """Whether a rank does nothing between polls but make the next one. poll_ns: the mean of those
    of its calls that take longest to poll, so there are no fewer polls than that makes of
    polled_ns."""
    return between_ns * poll_ns <= threshold("late.spin") * polled_ns


def polls(rows: Calls) -> Calls:
    """The unsuccessful polls before each call, as if they followed one another."""
    rows = rows.take(rows.polled_ns != NONE)
    return rows.changed(start_ns=rows.polled_since_ns, end_ns=rows.polled_since_ns + rows.polled_ns)


def told(connection: Connection, calls: Calls, texts: Texts) -> tuple[Ints, Flags]:
    """Which of the calls are control, by what they are (NONE: their thread does not negotiate), and
    which are bulk, if they are collectives: of others their size tells it."""
    traffic_classify(connection)
    rows = read(Columns, query.run(connection, "late/told"), texts)
    own = np.flatnonzero(np.isin(calls.thread, rows.thread))  # few threads negotiate
    keys = (
        (each.world_rank, each.thread, each.call, each.bytes, each.signature)
        for each in (calls.take(own), rows)
    )
    is_control = np.full(len(calls), NONE)
    is_control[own] = np.append(rows.is_control, NONE)[found_in(*keys)]
    limits = dict(connection.execute("SELECT call, threshold_bytes FROM control_size"))
    least = whole("calls.control-bytes")
    limit = np.array([limits.get(call, least) for call in texts.texts], np.int64)
    is_large = np.where(is_control == NONE, calls.bytes > limit[calls.call], is_control == 0)
    return is_control, is_large


def region_names(connection: Connection, world_rank: Ints, region: Ints, texts: Texts) -> TextInts:
    regions = read(Columns, query.run(connection, "late/region_names"), texts)
    place = found_in((world_rank, region), (regions.world_rank, regions.region))
    return np.append(regions.name, texts.number(""))[place]


def followed(connection: Connection, rows: Calls) -> dict[int, int]:
    """By rank the thread whose calls are its timeline: the main one; where that calls no MPI, the
    one with the most time in MPI. rows: calls of MPI."""
    order, groups = grouped(rows.world_rank, rows.thread)
    first = order[groups.first]
    rank, thread = rows.world_rank[first], rows.thread[first]
    inside_ns = groups.sum((rows.end_ns - rows.start_ns)[order])
    others = read(
        Columns,
        connection.execute("SELECT world_rank, thread FROM thread WHERE NOT is_main"),
        Texts(),
    )
    is_main = found_in((rank, thread), (others.world_rank, others.thread)) < 0
    best = np.lexsort((thread, -inside_ns, ~is_main, rank))[::-1]
    return dict(zip(rank[best].tolist(), thread[best].tolist()))  # the last one of a rank counts


def is_on(rows: Calls, threads: Mapping[int, int]) -> Flags:
    """Which of the calls are on these threads, by rank?"""
    chosen = np.array([*threads.items()], np.int64).reshape(-1, 2).T
    return found_in((rows.world_rank, rows.thread), tuple(chosen)) >= 0


class CallInfo(
    namedtuple("CallInfo", "call library family form waits_for kind is_blocking bandwidth")
):
    """call_infos.sql. kind: whom ranks wait for in it (collectives.KINDS); None: not for each
    other."""

    @property
    def is_completing(self) -> bool:
        """It completes requests, or sends, receives or finds a message or waits for the partners of
        an epoch, and returns when that is done."""
        is_message = (
            self.family == "point-to-point"
            and self.form == "blocking"
            and self.bandwidth == "one-way"
        )
        is_of_epoch = self.waits_for in ("targets", "origins")  # post, start, complete, wait
        return self.family in ("completion", "probe") or is_message or is_of_epoch

    @property
    def only_starts(self) -> bool:
        """It cannot wait."""
        return (
            self.form != "blocking"
            or self.call == "MPI_Win_post"
            or (self.family == "point-to-point" and self.bandwidth == "silent")
        )

    @property
    def is_rooted(self) -> bool:
        """Not all wait for all."""
        return self.kind not in (None, "all")


class Known(NamedTuple):
    calls: dict[str, CallInfo]
    communicators: dict[str, query.Row]  # by identity
    hosts: dict[int, str | None]  # of all ranks, in order

    def which(self, calls: TextInts, texts: Texts, is_wanted: Callable[[CallInfo], bool]) -> Flags:
        return texts.among(calls, {name for name, info in self.calls.items() if is_wanted(info)})


def known(connection: Connection) -> Known:
    calls = {row.call: row for row in query.ask(connection, "late/call_infos", CallInfo)}
    hosts = dict(query.run(connection, "late/hosts").fetchall())
    return Known(calls, run_communicators(connection), hosts)


Medians = dict[tuple[int, int], int]  # durations by numbers of communicator and call


Errors = namedtuple(
    "Errors", "timestamp_ns distance_ns"
)  # as Error, of each pair or group of ranks


class Clocks:
    def __init__(
        self, connection: Connection, alignment: Alignment, durations: Callable[[], Medians]
    ) -> None:
        self.alignment = alignment
        # by communicator or pair of ranks, and second
        self.errors: dict[tuple[Hashable, int], Error] = {}
        self.error_ns = 0.0  # the largest one of those by which calls were split
        self.device_ns: dict[int, float] = dict(query.run(connection, "late/device_clocks"))
        has_nccl = connection.execute(
            "SELECT 1 FROM communicator WHERE library = 'nccl'"
        ).fetchone()
        is_one_clock = len(alignment.clocks) <= 1 and not any(
            clock.violation_ns for clock in alignment.clocks.values()
        )
        # empty: one clock, without errors
        self.medians = {} if is_one_clock and not has_nccl else durations()

    def near(
        self, keys: Iterable[Hashable], members: Iterable[Sequence[int]], times_ns: Ints
    ) -> Errors:
        """Errors of these ranks' times, each near a time of the first of them. keys: stand for the
        ranks."""
        found = []
        for key, ranks, time_ns in zip(keys, members, times_ns.tolist() if self.medians else ()):
            at = key, time_ns >> 30  # 2^30 ns are about one second
            if at not in self.errors:
                self.errors[at] = self.alignment.error(list(ranks), time_ns)
            found.append(self.errors[at])
        return Errors(*np.array(found or np.zeros((len(times_ns), 2)), float).reshape(-1, 2).T)

    def between(self, ranks: Ints, peers: Ints, start_ns: Ints) -> Errors:
        """Errors of pairs of ranks near these times of `ranks`."""
        pairs = [
            (rank, peer if peer in self.alignment.clock_of else rank)  # not all are read
            for rank, peer in zip(ranks.tolist(), peers.tolist())
        ]
        return self.near(pairs, pairs, start_ns)

    def among(self, rows: Collectives, groups: Groups) -> Errors:
        """Errors of the ranks of each collective."""
        bounds = zip(groups.first.tolist(), (groups.first + groups.counts).tolist())
        members = (rows.world_rank[first:end].tolist() for first, end in bounds)
        error = self.near(
            rows.identity[groups.first].tolist(), members, rows.start_ns[groups.first]
        )
        device_ns = np.zeros(len(rows))
        device_ns[rows.is_nccl] = [
            self.device_ns.get(rank, math.inf) for rank in rows.world_rank[rows.is_nccl].tolist()
        ]
        device_ns = groups.max(device_ns)
        return Errors(error.timestamp_ns + device_ns, error.distance_ns + 2 * device_ns)

    def are_sure(self, identity: TextInts, call: TextInts, error: Errors) -> Flags:
        """Whether clocks with these errors tell who was first in such calls."""
        if not self.medians:
            return np.ones(len(identity), bool)
        keys = zip(identity.tolist(), call.tolist())
        is_sure = is_resolved(error, np.array([self.medians.get(key, 0) for key in keys], float))
        self.error_ns = max(self.error_ns, error.distance_ns[is_sure].max(initial=0.0))
        return is_sure


def is_resolved(error: Error | Errors, median_ns: float | Floats) -> Any:
    """True if the error is small against the median duration. A host that is late by the same
    amount in all calls looks like a host whose clock is off, and causes an error of half the
    wait."""
    return error.timestamp_ns <= threshold("late.clock-error") * median_ns

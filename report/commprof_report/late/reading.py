"""The sampled calls of a run (run/sampled.py) as the analysis of waiting needs them."""

from __future__ import annotations

from dataclasses import dataclass
from sqlite3 import Connection

from ..base.arrays import np
from ..base.columns import NONE, Columns, Groups, Ints, TextInts, Texts, grouped, joined
from ..run.sampled import (
    Calls, Communicators, FurtherMessages, Starts, communicators, sampled, synchronizing,
)
from .collectives import Collectives
from .known import CallInfo, Known
from .samples import region_names

NCCL_GROUP = "ncclGroup"  # operations that share kernels count as one
RECEIVES = ("MPI_Recv", "MPI_Irecv", "MPI_Mrecv", "MPI_Imrecv")
PERSISTENT_LOG2 = 40  # the starts of persistent collectives have sequences beyond all others


@dataclass(frozen=True)
class Arrived(Columns):
    """The ranks' calls of collectives; times as in Collectives."""

    member: Ints  # row of Communicators
    world_rank: Ints
    sequence: Ints
    call: TextInts
    bytes: Ints
    root: Ints  # its rank in the communicator; NONE: none
    region: Ints  # the rank's number for it
    start_ns: Ints
    end_ns: Ints
    completed_ns: Ints


def sampled_collectives(connection: Connection, texts: Texts) -> Collectives:
    """The samples of synchronizing collectives. Collectives with fewer ranks than were read of
    their communicator are among them. An NCCL collective lasts from the start of its kernel to its
    end, on the device; without device times it is left out."""
    _, calls, _, starts = sampled(connection).in_texts(texts)
    known, kinds = communicators(connection, texts), synchronizing(connection, texts)
    known = known.take((known.communicator > 1) & ~known.is_inter & (known.size > 1))
    groups = Groups(known.identity)
    calls = calls.changed(sequence=_sequence(calls))
    calls = calls.take(calls.sequence != NONE)
    member, kind = known.row(calls), kinds.row(calls.call)
    is_nccl = np.append(known.is_nccl, False)[member]
    is_mpi = (member >= 0) & ~is_nccl & ~np.append(kinds.is_persistent, False)[kind]
    rows = joined(
        Arrived,
        [
            _called(calls.take(is_mpi), member[is_mpi]),
            _started(starts, known),
            _on_device(calls.take(is_nccl), member[is_nccl], texts),
        ],
    )
    kind = kinds.row(rows.call)
    rows, kind = rows.take(kind >= 0), kind[kind >= 0]
    order = np.lexsort(
        (known.comm_rank[rows.member], rows.sequence, groups.of_row[rows.member])
    )
    rows, kind = rows.take(order), kind[order]
    member = rows.member
    return Collectives(
        known.identity[member],
        rows.sequence,
        groups.counts[groups.of_row[member]],
        rows.world_rank,
        rows.call,
        kinds.kind[kind],
        kinds.wait_state[kind],
        kinds.is_blocking[kind],
        rows.bytes,
        known.comm_rank[member] == rows.root,
        region_names(connection, rows.world_rank, rows.region, texts),
        rows.start_ns,
        rows.end_ns,
        rows.completed_ns,
        known.is_nccl[member],
    )


def _sequence(calls: Calls) -> Ints:
    """The number of a collective, on a communicator or on a window or file; NONE: another call."""
    return np.where(calls.sequence == NONE, calls.object_sequence, calls.sequence)


def _called(calls: Calls, member: Ints) -> Arrived:
    return Arrived(
        member, calls.world_rank, calls.sequence, calls.call, calls.bytes, calls.root,
        calls.region, calls.start_ns, calls.end_ns, calls.completed_ns,
    )


def _started(starts: Starts, known: Communicators) -> Arrived:
    member = known.row(starts)
    starts, member = starts.take(member >= 0), member[member >= 0]
    sequence = (starts.operation << PERSISTENT_LOG2) | starts.number
    return Arrived(
        member, starts.world_rank, sequence, starts.call, starts.bytes, starts.root,
        np.zeros(len(starts), np.int64), starts.start_ns, starts.end_ns, starts.completed_ns,
    )


def _on_device(calls: Calls, member: Ints, texts: Texts) -> Arrived:
    """One row for the operations of a kernel, with the lowest sequence."""
    is_timed = (calls.device_start_ns != NONE) & (calls.device_end_ns != NONE)
    calls, member = calls.take(is_timed), member[is_timed]
    is_shared = calls.is_shared == 1
    order, groups = grouped(
        member, calls.device_start_ns, calls.device_end_ns, np.where(is_shared, 0, calls.sequence)
    )
    first = order[groups.first_most(-calls.sequence[order])]
    has_bytes = calls.bytes[order] != NONE
    message_bytes = np.where(
        groups.sum(has_bytes.astype(np.int64)) > 0,
        groups.sum(np.where(has_bytes, calls.bytes[order], 0)), NONE,
    )
    calls, is_shared = calls.take(first), is_shared[first]
    return Arrived(
        member[first],
        calls.world_rank,
        calls.sequence,
        np.where(is_shared, texts.number(NCCL_GROUP), calls.call),
        message_bytes,
        np.where(is_shared, NONE, calls.root),
        calls.region,
        calls.device_start_ns,
        calls.device_end_ns,
        np.full(len(calls), NONE),
    )


@dataclass(frozen=True)
class MessageSides(Columns):
    """Both sides of each sampled message, and the probes that found it, channel by channel
    (communicator, sender, receiver, tag), in the order of posting. Times are the rank's own."""

    identity: TextInts  # NONE: not known
    sender: Ints
    receiver: Ints
    tag: Ints
    start_ns: Ints
    end_ns: Ints
    is_received: Ints
    gone_ns: Ints  # return of the call that completed it; NONE: not seen
    number: Ints
    call: TextInts
    bytes: Ints
    is_buffered: Ints  # the call cannot wait for the receiver
    is_probe: Ints


def message_sides(connection: Connection, known: Known, texts: Texts) -> MessageSides:
    owned = communicators(connection, texts)
    messages = _messages(connection, known, texts)
    own = owned.row(messages)
    is_received = messages.direction == texts.number("received")
    is_blocking = known.which(messages.call, texts, lambda call: call.form == "blocking")
    buffered = {name for name in known.calls if "bsend" in name.lower()}
    sides = MessageSides(
        np.append(owned.identity, NONE)[own],
        np.where(is_received, messages.peer, messages.world_rank),
        np.where(is_received, messages.world_rank, messages.peer),
        messages.tag,
        messages.start_ns,
        messages.end_ns,
        is_received.astype(np.int64),
        np.where(is_blocking, messages.end_ns, messages.completed_ns),
        messages.number,
        messages.call,
        messages.bytes,
        texts.among(messages.call, buffered).astype(np.int64),
        np.zeros(len(messages), np.int64),
    )
    calls = sampled(connection).in_texts(texts).calls
    own = owned.row(calls)
    is_found = (calls.number != NONE) & (own >= 0) & known.which(
        calls.call, texts, lambda call: call.family == "probe"
    )
    calls, own = calls.take(is_found), own[is_found]
    ones, zeros = np.ones(len(calls), np.int64), np.zeros(len(calls), np.int64)
    probes = MessageSides(
        owned.identity[own], calls.peer, calls.world_rank, calls.tag, calls.start_ns, calls.end_ns,
        ones, calls.end_ns, calls.number, calls.call, calls.bytes, zeros, ones,
    )
    found = joined(MessageSides, [sides, probes])
    place = np.append(texts.order(), NONE)[np.maximum(found.identity, -1)]
    return found.take(
        np.lexsort((found.start_ns, found.tag, found.receiver, found.sender, place))
    )


def _messages(connection: Connection, known: Known, texts: Texts) -> FurtherMessages:
    """All messages of sampled calls, view `message`."""
    _, calls, further, _ = sampled(connection).in_texts(texts)
    calls = calls.take((calls.peer != NONE) & known.which(calls.call, texts, _is_message))
    received, sent = texts.number("received"), texts.number("sent")
    own = calls.changed(direction=np.where(texts.among(calls.call, RECEIVES), received, sent))
    further = further.take(
        (further.peer != NONE) & known.which(further.call, texts, lambda call: True)
    )
    return joined(FurtherMessages, [own, further])


def _is_message(call: CallInfo) -> bool:
    return (
        call.library == "mpi" and call.family == "point-to-point"
        and call.bandwidth == "one-way" and call.form != "persistent"
    )


def _mean_of_ranks(calls: Calls, owned: Communicators, duration_ns: Ints) -> Ints:
    """For each call the mean of its collective: of two ranks that wait for each other in turn, half
    of the durations are transfer alone."""
    identity = np.append(owned.identity, NONE)[owned.row(calls)]
    order, groups = grouped(identity, calls.call, calls.sequence, duration_ns == NONE)
    mean_ns = np.empty_like(duration_ns)
    mean_ns[order] = groups.spread(groups.sum(duration_ns[order] // groups.spread(groups.counts)))
    return np.where(duration_ns == NONE, NONE, mean_ns)


def _mean_of_both_ways(
    messages: FurtherMessages, owned: Communicators, duration_ns: Ints
) -> Ints:
    """For each message the mean with the one that the same call has sent or received the other way:
    of two ranks that exchange messages, and wait for each other in turn, half hardly wait."""
    identity = np.append(owned.identity, NONE)[owned.row(messages)]
    order, groups = grouped(
        identity, messages.call, np.minimum(messages.world_rank, messages.peer),
        np.maximum(messages.world_rank, messages.peer), messages.tag, messages.number,
    )
    mean_ns = np.empty_like(duration_ns)
    mean_ns[order] = groups.spread(groups.sum(duration_ns[order]) // groups.counts)
    return mean_ns


def median_durations(connection: Connection, known: Known) -> dict[tuple[str, str], int]:
    """By communicator and call, of its sampled collectives (each with the mean of its ranks),
    messages (likewise with the one in return), probes and epochs; of nonblocking and persistent
    ones from start to completion; for NCCL on the device."""
    texts = Texts()
    _, calls, _, starts = sampled(connection).in_texts(texts)
    owned, kinds = communicators(connection, texts), synchronizing(connection, texts)
    messages = _messages(connection, known, texts)
    others = calls.take(
        known.which(calls.call, texts, lambda call: call.is_of_epoch) | (
            (calls.number != NONE)
            & known.which(calls.call, texts, lambda call: call.family == "probe")
        )
    )
    kind = kinds.row(calls.call)
    calls = calls.take(
        (_sequence(calls) != NONE) & (kind >= 0) & ~np.append(kinds.is_persistent, True)[kind]
    )
    is_nccl = np.append(owned.is_nccl, False)[owned.row(calls)]
    ends_ns = np.where(calls.completed_ns == NONE, calls.end_ns, calls.completed_ns)
    is_timed = (calls.device_start_ns != NONE) & (calls.device_end_ns != NONE)
    device_ns = np.where(is_timed, calls.device_end_ns - calls.device_start_ns, NONE)
    parts: list[tuple[Calls | Starts | FurtherMessages, TextInts, Ints]] = [
        (
            calls, np.where(calls.is_shared == 1, texts.number(NCCL_GROUP), calls.call),
            _mean_of_ranks(calls, owned, np.where(is_nccl, device_ns, ends_ns - calls.start_ns)),
        ),
        (
            starts, starts.call,
            np.where(starts.completed_ns == NONE, NONE, starts.completed_ns - starts.start_ns),
        ),
        (
            messages, messages.call,
            _mean_of_both_ways(
                messages, owned,
                np.where(messages.completed_ns == NONE, messages.end_ns, messages.completed_ns)
                - messages.start_ns,
            ),
        ),
        (others, others.call, others.end_ns - others.start_ns),
    ]
    identity = np.concatenate(
        [np.append(owned.identity, NONE)[owned.row(rows)] for rows, *_ in parts]
    )
    call, duration_ns = (
        np.concatenate([part[place] for part in parts]) for place in (1, 2)
    )
    is_known = (identity != NONE) & (duration_ns != NONE)
    identity, call, duration_ns = identity[is_known], call[is_known], duration_ns[is_known]
    order = np.lexsort((duration_ns, call, identity))
    groups = Groups(identity[order], call[order])
    middle = order[groups.first + (groups.counts + 1) // 2 - 1]
    return {
        (texts.texts[identity[row]], texts.texts[call[row]]): int(duration_ns[row])
        for row in middle.tolist()
    }

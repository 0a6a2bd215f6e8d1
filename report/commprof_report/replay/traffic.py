"""The traffic of a run that a replay makes again: which time of it, the sampled calls one after the
other, the messages that they received, the communicators and datatypes.
"""

from __future__ import annotations

import re
from collections import defaultdict, namedtuple
from collections.abc import Hashable, Iterator, Sequence
from itertools import count
from sqlite3 import Connection
from typing import Any

from ..base import NONE, Columns, Texts, np, row_type
from ..base.units import Members
from ..base.summarize import values_of
from ..run.alignment import Alignment
from ..run.unseen import holes_aligned, without_holes
from ..run.sampled import sampled
from .kit import SELF, WORLD, Comm, Record, Type

SILENT = ("setup", "communicator")  # families that a replay needs no more
RECEIVES = ("MPI_Recv", "MPI_Irecv")
MOST_UNDERWAY = 64  # messages between two ranks at the begin of the window


TEXTS = ("call", "direction")  # columns
Row = Any  # of a table of the samples, with its columns; its numbers are None where there is none


def rows_in(table: Columns, texts: Texts) -> Iterator[Row]:
    columns = {
        name: values_of(column, texts if name in TEXTS else None)
        for name, column in vars(table).items()
    }
    return map(row_type(type(table).__name__, columns)._make, zip(*columns.values()))


def rows_with(table: Columns, texts: Texts, name: str, *wanted: str) -> Iterator[Row]:
    """The rows whose column has one of these texts."""
    return rows_in(table.take(texts.among(getattr(table, name), wanted)), texts)


def place_of(row: Row) -> tuple[int, int, int]:
    """Rank, thread and begin."""
    return row.world_rank, row.thread, row.start_ns


def rows_of(
    connection: Connection,
    alignment: Alignment,
    numbers: dict[tuple[int, int], int],
    since_ns: int,
    until_ns: int,
) -> Iterator[Row]:
    """The calls of MPI in the window, each thread's in their order. comm: the communicator in the
    kit; None: none that can be made. peer: world rank; None: MPI_PROC_NULL, or no message.
    polled_since_ns: begin of the first poll before it that found nothing; polled_ns: inside all of
    them."""
    samples = sampled(connection)
    calls, texts = samples.calls, samples.texts
    silent = {
        name
        for name, family, library in connection.execute("SELECT name, family, library FROM call")
        if family in SILENT or library != "mpi"
    }
    start_ns = alignment.aligned(calls.world_rank, calls.start_ns)
    end_ns = alignment.aligned(calls.world_rank, calls.end_ns)
    is_own = (start_ns >= since_ns) & (end_ns <= until_ns) & ~texts.among(calls.call, silent)
    calls = calls.take(np.flatnonzero(is_own))
    calls = calls.take(np.lexsort((calls.start_ns, calls.thread, calls.world_rank)))

    places = zip(calls.world_rank.tolist(), calls.communicator.tolist())
    comm = np.array([numbers.get(place, NONE) for place in places], np.int64)
    return rows_in(calls.changed(comm=comm, bytes=np.maximum(calls.bytes, 0)), texts)


def received_of(connection: Connection) -> dict[tuple[int, int, int], Row]:
    """By place, the messages that exchanges received."""
    samples = sampled(connection)
    received = rows_with(samples.messages, samples.texts, "direction", "received")
    return {place_of(row): row for row in received if row.peer is not None and row.peer >= 0}


def with_senders(rows: Sequence[Row], alignment: Alignment) -> list[Row]:
    """Gives receives that were posted without a tag those of their senders. Messages between two
    ranks do not overtake each other, so the n-th of these receives has the n-th message that no
    other receive has."""
    numbered = {received_by(row) for row in rows if row.call in RECEIVES}
    sent: dict[Hashable, list[Row]] = defaultdict(list)
    received: dict[Hashable, list[int]] = defaultdict(list)
    for at in sorted(range(len(rows)), key=lambda at: (rows[at].world_rank, rows[at].start_ns)):
        row = rows[at]
        if row.call in RECEIVES:
            if row.number is None and row.peer is not None:
                received[row.comm, row.peer, row.world_rank].append(at)
        elif "send" in row.call.lower() and row.number and sent_by(row) not in numbered:
            sent[row.comm, row.world_rank, row.peer].append(row)
    found = list(rows)
    for key, places in received.items():
        receives = [rows[at] for at in places]
        skipped, sends = _in_order(receives, sent[key], alignment)
        for at, send in zip(places[skipped:], sends):
            found[at] = rows[at]._replace(tag=send.tag, number=send.number)
    return found


def sent_by(row: Row) -> Hashable:
    """The message that a call sends: the same for the call that receives it."""
    return row.comm, row.world_rank, row.peer, row.tag, row.number


def received_by(row: Row) -> Hashable:
    """The message that a call receives or finds."""
    return row.comm, row.peer, row.world_rank, row.tag, row.number


def _in_order(
    receives: Sequence[Row], sends: Sequence[Row], alignment: Alignment
) -> tuple[int, Sequence[Row]]:
    """How many receives have messages from before the window, and the sends of the others: with the
    fewest skipped on either side so that sizes fit and none is complete before it is sent."""

    def is_one(receive: Row, send: Row) -> bool:
        fits = receive.bytes == send.bytes or (
            receive.call == "MPI_Irecv" and receive.bytes > send.bytes  # as it was posted
        )
        done_ns = alignment.aligned_ns(receive.world_rank, receive.completed_ns or receive.end_ns)
        return fits and done_ns >= alignment.aligned_ns(send.world_rank, send.start_ns)

    for skipped in range(MOST_UNDERWAY + 1):
        for own, other in ((skipped, 0), (0, skipped)):
            if all(map(is_one, receives[own:], sends[other:])):
                return own, sends[other:]
    return 0, []


COUNTS = re.compile(r"counts\.[0-9]{1,5}( [0-9]{1,18})+")
BYTES = Type("MPI_BYTE", 1, 1, 1)
DUPLICATES = ("MPI_Comm_dup", "MPI_Comm_dup_with_info", "MPI_Comm_idup")


Described = namedtuple("Described", "parent constructor ordinal ranks")  # a communicator


# Arguments of a call. counts: those that it has for each rank; buffer_at, received_at: where its
# buffer is, and the one that it receives in; both as far as they were recorded.
Signature = namedtuple("Signature", "type count op is_in_place counts buffer_at received_at")
NOTHING = Signature(0, 0, None, False, (), None, None)


def communicators(
    connection: Connection, world_size: int
) -> tuple[list[Comm], dict[tuple[int, int], int]]:
    """The communicators that can be made: by a duplicate or a split of their parents, which come
    first. And by rank and its number for a communicator, the number in the kit."""
    everybody = tuple(range(world_size))
    comms = [Comm(WORLD, 0, "world", everybody), Comm(SELF, 0, "self", ())]
    place: dict[str, int] = {}
    described: dict[str, Described] = {}
    numbers: dict[tuple[int, int], int] = {}
    rows = connection.execute(
        "SELECT world_rank, communicator, identity, parent_identity, name, constructor, ordinal,"
        " members, is_inter, size FROM communicator WHERE library = 'mpi'"
        " ORDER BY world_rank, communicator"
    ).fetchall()
    for rank, number, identity, parent, name, constructor, ordinal, members, *others in rows:
        is_inter, size = others
        listed = Members(members)
        ranks = tuple(listed.below(world_size))
        if is_inter or not listed.is_whole or len(ranks) != size:
            continue
        if not constructor and name == "MPI_COMM_SELF":
            numbers[rank, number] = SELF
        elif not constructor and ranks == everybody:
            place[identity] = WORLD
        else:
            described[identity] = Described(parent or "", constructor, ordinal, ranks)

    left = sorted(identity for identity in described if identity not in place)
    while ready := [
        identity
        for identity in left
        for parent in [described[identity].parent]
        if parent in place or parent not in described
    ]:
        rounds: dict[tuple, list[str]] = defaultdict(list)
        for identity in ready:
            parent, constructor, ordinal, ranks = described[identity]
            of = place.get(parent, WORLD)
            fits = set(ranks) <= set(comms[of].members)
            how = "dup" if constructor in DUPLICATES and ranks == comms[of].members else "split"
            rounds[of if fits else WORLD, how, constructor, ordinal].append(identity)
        for (of, how, *_), identities in sorted(rounds.items()):
            for apart in _apart(identities, described):
                round_ = len(comms)
                for identity in apart:
                    place[identity] = len(comms)
                    comms.append(Comm(of, round_, how, described[identity].ranks))
        left = [identity for identity in left if identity not in place]
    for rank, number, identity, *_ in rows:
        if identity in place:
            numbers[rank, number] = place[identity]
    return comms, numbers


def _apart(identities: list[str], described: dict[str, Described]) -> list[list[str]]:
    """Communicators that one split can make: no rank is in two of them."""
    found: dict[int, list[str]] = defaultdict(list)
    taken: dict[int, set[int]] = defaultdict(set)
    for identity in identities:
        ranks = set(described[identity].ranks)
        split = next(split for split in count() if not ranks & taken[split])
        found[split].append(identity)
        taken[split] |= ranks
    return list(found.values())


def types_of(connection: Connection) -> tuple[list[Type], dict[tuple[int, int], Signature]]:
    """The datatypes, and what the numbers of each rank's signatures stand for. With a datatype for
    each count, as in MPI_Alltoallw, counts are recorded in bytes."""
    counts = {
        (rank, key): tuple(map(int, value.split()))
        for rank, key, value in connection.execute(
            "SELECT world_rank, key, value FROM fact WHERE key GLOB 'counts.*'"
        )
        if COUNTS.fullmatch(f"{key} {value}")
    }
    types: dict[Type, int] = {}
    found = {}
    for rank, number, *type_, elements, op, in_place, buffer, received in connection.execute(
        "SELECT world_rank, signature, datatype, type_bytes, extent,"
        " coalesce(nullif(blocks, 0), 1), count, op, is_in_place, buffer_at, received_at"
        " FROM signature WHERE (count IS NULL) = (type_bytes IS NULL)"
        " AND (count IS NOT NULL OR counts_hash IS NOT NULL)"
    ):
        number_of_type = types.setdefault(BYTES if elements is None else Type(*type_), len(types))
        found[rank, number] = Signature(
            number_of_type,
            elements or 0,
            op or None,
            bool(in_place),
            counts.get((rank, f"counts.{number}"), ()),
            buffer,
            received,
        )
    return list(types), found


# The record of a rank; times are since its start. is_cut: by the end of the job.
RankRecord = namedtuple("RankRecord", "world_rank begin_ns end_ns asked_ns is_full is_cut reset_ns")


def recorded(connection: Connection, alignment: Alignment) -> tuple[Record | None, tuple[int, int]]:
    """The time that the records of all ranks have in common, on the run's axis. Each begins when
    the rank's own MPI_Init has returned: without START none lacks a call of before, and none of
    after if the job ended."""
    records = [
        RankRecord(*row)
        for row in connection.execute(
            "SELECT world_rank, record_begin_ns, record_end_ns, record_asked_ns, record_is_full,"
            " record_end_ns >= rank_wall.wall_ns, coalesce(reset_unix_ns - start_unix_ns, 0)"
            " FROM rank JOIN rank_wall USING (world_rank) WHERE record_begin_ns IS NOT NULL"
        )
    ]
    if not records:
        return None, (0, 0)
    (ranks,) = connection.execute("SELECT count(*) FROM rank").fetchone()
    (at_once,) = connection.execute(
        "SELECT count(*) FROM fact WHERE key = 'settings.COMMPROF_RECORD' AND value NOT GLOB '*@*'"
    ).fetchone()
    has_all = at_once == ranks and all(of.reset_ns <= of.begin_ns for of in records)
    since_ns = (min if has_all else max)(
        alignment.aligned_ns(of.world_rank, max(of.begin_ns, of.reset_ns)) for of in records
    )
    until_ns = (min, max)[all(of.is_cut for of in records)](
        alignment.aligned_ns(of.world_rank, of.end_ns) for of in records
    )
    ns = max(0, until_ns - since_ns) if len(records) == ranks else 0
    asked_ns = max(of.asked_ns for of in records)
    return Record(ns, asked_ns, _why_short(records, ranks)), (since_ns, until_ns)


def _why_short(records: list[RankRecord], ranks: int) -> str | None:
    """Why ranks have less than they were asked to record."""
    full = sum(of.is_full for of in records)
    reasons = {
        f"only {len(records)} of {ranks} ranks were asked to": len(records) < ranks,
        f"no more room on {full} of {ranks} ranks (COMMPROF_MEMORY)": full,
        "the job ended before": any(of.is_cut for of in records),
        "MPI_Pcontrol(2) has discarded the rest": any(of.reset_ns > of.begin_ns for of in records),
    }
    return next((why for why, is_so in reasons.items() if is_so), None)


def window(connection: Connection, alignment: Alignment) -> tuple[int, int]:
    """The longest time, on the run's axis, without a hole in the samples of any thread."""
    walls = connection.execute("SELECT world_rank, coalesce(wall_ns, 0) FROM rank_wall").fetchall()
    begin_ns = min((alignment.aligned_ns(rank, 0) for rank, _ in walls), default=0)
    end_ns = max((alignment.aligned_ns(rank, wall_ns) for rank, wall_ns in walls), default=0)
    _, *unseen = holes_aligned(connection, alignment)
    windows = np.clip(without_holes(*unseen), begin_ns, max(begin_ns, end_ns))
    longest = np.diff(windows, axis=1).argmax()
    return int(windows[longest, 0]), int(windows[longest, 1])

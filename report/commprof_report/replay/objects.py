"""The communicators and datatypes of a run that a replay makes again."""

from __future__ import annotations

import re
from collections import defaultdict, namedtuple
from sqlite3 import Connection

from ..base.members import Members
from .kit import SELF, WORLD, Comm, Type

COUNTS = re.compile(r"counts\.[0-9]{1,5}( [0-9]{1,18})+")
BYTES = Type("MPI_BYTE", 1, 1, 1)
DUPLICATES = ("MPI_Comm_dup", "MPI_Comm_dup_with_info", "MPI_Comm_idup")


Described = namedtuple("Described", "parent constructor ordinal ranks")  # a communicator


Signature = namedtuple("Signature", "type count op is_in_place")


NOTHING = Signature(0, 0, None, False)


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

    def is_above(identity: str) -> bool:
        parent = described[identity].parent
        return parent in place or parent not in described

    left = sorted(identity for identity in described if identity not in place)
    while ready := [identity for identity in left if is_above(identity)]:
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
    found: list[tuple[list[str], set[int]]] = []
    for identity in identities:
        ranks = set(described[identity].ranks)
        for names, taken in found:
            if not ranks & taken:
                names.append(identity)
                taken |= ranks
                break
        else:
            found.append(([identity], ranks))
    return [names for names, _ in found]


def types_of(connection: Connection) -> tuple[list[Type], dict[tuple[int, int], Signature]]:
    """The datatypes, and what the numbers of each rank's signatures stand for. With a datatype for
    each count, as in MPI_Alltoallw, counts are recorded in bytes."""
    types: dict[Type, int] = {}
    found = {}
    for rank, number, name, size, extent, blocks, count, op, in_place in connection.execute(
        "SELECT world_rank, signature, datatype, type_bytes, extent, blocks, count, op, is_in_place"
        " FROM signature WHERE (count IS NULL) = (type_bytes IS NULL)"
        " AND (count IS NOT NULL OR counts_hash IS NOT NULL)"
    ):
        type_ = BYTES if size is None else Type(name, size, extent, blocks or 1)
        number_of_type = types.setdefault(type_, len(types))
        found[rank, number] = Signature(number_of_type, count or 0, op or None, bool(in_place))
    return list(types), found


def counts_of(connection: Connection) -> dict[tuple[int, int], tuple[int, ...]]:
    """By rank and signature, the vectors of counts that a job which was to be recorded has."""
    rows = connection.execute("SELECT world_rank, key, value FROM fact WHERE key GLOB 'counts.*'")
    return {
        (rank, int(key.removeprefix("counts."))): tuple(map(int, value.split()))
        for rank, key, value in rows
        if COUNTS.fullmatch(f"{key} {value}")
    }


def buffers_of(connection: Connection) -> dict[tuple[int, int], tuple[int | None, int | None]]:
    """By rank and signature, where a recorded call's buffer is, and the one that it receives in."""
    rows = connection.execute(
        "SELECT world_rank, signature, buffer_at, received_at FROM signature"
        " WHERE buffer_at IS NOT NULL OR received_at IS NOT NULL"
    )
    return {(rank, number): (buffer, received) for rank, number, buffer, received in rows}

"""The facts that roles and pipelines are inferred from: a run's communicators, their members and
their use, and the graph of its messages. Filters do not apply."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Collection, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.gather import gathered
from ..base.members import Members
from ..base.thresholds import whole
from ..base.query import Row
from .message_graph import Graph, MessageRow, MessageTime, graph

SQL = query.beside(__file__)

CONTROL_BYTES = whole("roles.control-bytes")


UseRow = namedtuple("UseRow", "identity call family bytes count message_bytes")


# A communicator of the run.
DescribedRow = namedtuple(
    "DescribedRow", "identity label parent_identity constructor size is_inter members"
)


class Group(NamedTuple):
    """A communicator whose purpose is inferred."""

    described: Row
    ranks: frozenset[int]
    use: list[Row]

    def message_bytes(self, *families: str) -> int:
        return sum(row.message_bytes for row in self.use if not families or row.family in families)

    @property
    def collectives(self) -> list[Row]:
        """The collectives that carry more than control messages."""
        return [row for row in self.use if row.family == "collective" and row.bytes > CONTROL_BYTES]

    @property
    def collectives_per_rank(self) -> float:
        return sum(row.count for row in self.collectives) / max(1, self.described.size)


# how a communicator's sampled bulk collectives follow each other; turns.sql has their meaning
TurnsRow = namedtuple("TurnsRow", "identity turns sends repeats")


class World(NamedTuple):
    """The run to which the communicators belong."""

    size: int
    ranks: frozenset[int]  # whose files were read
    groups: list[Group]
    # ways of creating communicators that put every rank into exactly one
    partitions: frozenset[tuple]
    # the groups of each rank that are smaller than the world and make collectives
    busy: dict[int, list[Group]]
    graph: Graph
    sent_bytes: dict[tuple[int, int], int]  # by sender and receiver
    message_bytes: int
    passed_sizes: frozenset[int]  # of point-to-point messages larger than control messages
    passed_per_rank: float  # number of such messages
    turns: dict[str, Row]  # by identity; without those that have no samples
    roots: list[Row]


def world_of(connection: Connection) -> World:
    use = gathered((row.identity, row) for row in SQL.ask(connection, "communicator_use", UseRow))
    (size,) = connection.execute("SELECT max(world_size) FROM rank").fetchone()
    read = frozenset(rank for (rank,) in connection.execute("SELECT world_rank FROM rank"))
    described = SQL.ask(connection, "run_communicators", DescribedRow)
    groups = [Group(row, members_of(row, size), use.get(row.identity, [])) for row in described]
    messages = SQL.ask(connection, "messages", MessageRow)
    passed = [row for rows in use.values() for row in rows if is_passed(row)]
    busy = busy_of(groups, size)
    pattern = graph(messages)
    if pattern.chains:
        pattern = graph(messages, SQL.ask(connection, "message_times", MessageTime))
    turns = SQL.ask(connection, "turns", TurnsRow, control_bytes=CONTROL_BYTES) if busy else []
    return World(
        size,
        read,
        groups,
        partitions_of(groups, read),
        busy,
        pattern,
        {(row.sender, row.receiver): row.bytes for row in messages},
        sum(row.message_bytes for rows in use.values() for row in rows),
        frozenset(row.bytes for row in passed),
        sum(row.count for row in passed) / max(1, len(read)),
        {row.identity: row for row in turns},
        list(SQL.rows(connection, "roots")),
    )


def members_of(row: Row, world_size: int) -> frozenset[int]:
    """The world ranks of the members; empty if not all of them are known."""
    members = Members(row.members)
    return (
        frozenset(members.below(world_size)) if members.is_whole and not row.is_inter
        else frozenset()
    )


def is_passed(row: Row) -> bool:
    return row.family == "point-to-point" and row.bytes > CONTROL_BYTES and "ecv" not in row.call


def ways(group: Group) -> list[tuple]:
    """How it was created, alone and with its pattern of ranks or its calls: one parent is often
    split in several ways."""
    made = (group.described.constructor, group.described.parent_identity)
    calls = frozenset(row.call for row in group.use if row.family != "communicator")
    return [made, (*made, shape(group.ranks)), (*made, calls)]


def partitions_of(groups: Sequence[Group], read: frozenset[int]) -> frozenset[tuple]:
    alike: dict[tuple, set[frozenset[int]]] = {}
    for group in groups:
        for way in ways(group) if group.ranks else []:
            alike.setdefault(way, set()).add(group.ranks)
    return frozenset(way for way, parts in alike.items() if covers_once(parts, read))


def busy_of(groups: Sequence[Group], world_size: int) -> dict[int, list[Group]]:
    return gathered(
        (rank, group) for group in groups
        if 1 < len(group.ranks) < world_size and group.collectives for rank in group.ranks
    )


def shape(ranks: frozenset[int]) -> tuple[int, ...]:
    ordered = sorted(ranks)
    return tuple(rank - ordered[0] for rank in ordered)


def covers_once(parts: Collection[frozenset[int]], read: frozenset[int]) -> bool:
    """Whether every rank that was read is in exactly one of them."""
    everyone = frozenset().union(*parts)
    return len(parts) > 1 and sum(map(len, parts)) == len(everyone) and read <= everyone

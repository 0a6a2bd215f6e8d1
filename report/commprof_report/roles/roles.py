"""Infers the purpose of each communicator from its members and its traffic. docs/SCHEMA.md has the
rules.

The rules use the whole run, whatever the filters; `unclear` if none applies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ..base import query
from ..base.members import Members
from ..calls.peers import PeerRow
from . import message_graph
from .communicators import CommunicatorRow, communicator_rows

SQL = query.beside(__file__)

ALONE, UNUSED, WORLD, CONTROL, IO = "each rank alone", "not used", "world", "control only", "I/O"
PIPELINE, REPLICA, TENSOR, UNCLEAR = (
    "pipeline neighbours", "replica group", "tensor-parallel group", "unclear",
)
CONTROL_BYTES = 1024  # the largest message of a communicator that carries control messages only
CONTROL_SHARE = 0.01  # of the run's bytes: at most this share is control
HALF = 0.5
OFTEN = 2  # times as many collectives as on the other groups of a rank
EXCHANGES = (
    "allgather", "allgatherv", "reduce_scatter", "reduce_scatter_block", "reducescatter",
    "alltoall", "alltoallv", "alltoallw",
)


class UseRow(NamedTuple):
    identity: str
    call: str
    family: str
    bytes: int
    count: int
    message_bytes: int


class DescribedRow(NamedTuple):
    """A communicator of the run."""

    identity: str
    label: str
    parent_identity: str | None
    constructor: str
    size: int
    is_inter: int
    members: str


class Group(NamedTuple):
    """A communicator whose purpose is inferred."""

    described: DescribedRow
    ranks: frozenset[int]
    use: list[UseRow]

    def message_bytes(self, *families: str) -> int:
        return sum(row.message_bytes for row in self.use if not families or row.family in families)

    @property
    def collectives(self) -> list[UseRow]:
        """The collectives that carry more than control messages."""
        return [row for row in self.use if row.family == "collective" and row.bytes > CONTROL_BYTES]

    @property
    def collectives_per_rank(self) -> float:
        return sum(row.count for row in self.collectives) / max(1, self.described.size)


class World(NamedTuple):
    """The run to which the communicators belong."""

    size: int
    ranks: frozenset[int]  # whose files were read
    groups: list[Group]
    # ways of creating communicators that put every rank into exactly one
    partitions: frozenset[tuple]
    # the groups of each rank that are smaller than the world and make collectives
    busy: dict[int, list[Group]]
    graph: message_graph.Graph
    message_bytes: int
    passed_sizes: frozenset[int]  # of point-to-point messages larger than control messages
    passed_per_rank: float  # number of such messages


def roles(connection: Connection) -> dict[str, str]:
    """The role of each communicator, by identity."""
    world = look(connection)
    return {group.described.identity: role(group, world) for group in world.groups}


class Kin(NamedTuple):
    """A communicator and its family: communicators of one size that partition the ranks, or all
    have the same purpose."""

    family: tuple
    role: str
    purpose: str  # the role, or empty if it says nothing that the label does not
    constructor: str


def kin(connection: Connection) -> dict[str, Kin]:
    """The family and role of each communicator, by identity."""
    world = look(connection)
    return {group.described.identity: _kin(group, world) for group in world.groups}


def family_name(known: Kin | None, communicators: int, label: str) -> str:
    """MPI_COMM_WORLD; Comm_split {0,2} (replica group); 8 tensor-parallel groups."""
    purpose = known.purpose if known else ""
    if communicators == 1:
        return f"{label} ({purpose})" if purpose else label
    if purpose.endswith("group"):
        return f"{communicators} {purpose}s"
    return (
        f"{communicators} communicators "
        f"({purpose or (known.constructor if known else '') or 'of one kind'})"
    )


def families(connection: Connection) -> dict[str, str]:
    """Names of the communicators' families, by identity; further families of a name are
    numbered."""
    world = look(connection)
    members: dict[tuple, list[tuple[DescribedRow, Kin]]] = {}
    for group in world.groups:
        own = _kin(group, world)
        members.setdefault(own.family, []).append((group.described, own))
    alike: Counter[str] = Counter()
    names: dict[str, str] = {}
    for of_family in members.values():
        described, own = of_family[0]
        given = {name_given(each) for each, _ in of_family}
        name = family_name(own, len(of_family), described.label)
        if len(of_family) > 1 and len(given) == 1 and "" not in given:
            name = f"{len(of_family)} communicators named {given.pop()}"
        alike[name] += 1
        names |= dict.fromkeys(
            (each.identity for each, _ in of_family),
            name if alike[name] == 1 else f"{name}, {alike[name]}",
        )
    return names


def family_labels(connection: Connection) -> dict[str, str]:
    """As families, by label."""
    names = families(connection)
    labels = connection.execute("SELECT identity, label FROM run_communicator")
    return {label: names[identity] for identity, label in labels if identity in names}


def name_given(described: DescribedRow) -> str:
    """By the program: a label begins with it, or else with the constructor."""
    name = described.label.partition(" {")[0]
    return "" if name == described.constructor.replace("MPI_", "") else name


def _kin(group: Group, world: World) -> Kin:
    described, purpose = group.described, role(group, world)
    special = "" if purpose in (UNCLEAR, UNUSED) or purpose.startswith(WORLD) else purpose
    way = next((way for way in ways(group) if way in world.partitions), None)
    return Kin(
        (way or special or described.identity, described.size), purpose, special,
        described.constructor,
    )


def fill(connection: Connection) -> None:
    """Fills the table communicator_role, once per run."""
    SQL.run(connection, "communicator_role")
    if not connection.execute("SELECT EXISTS (SELECT 1 FROM communicator_role)").fetchone()[0]:
        connection.executemany(
            "INSERT INTO communicator_role VALUES (?, ?)", roles(connection).items()
        )


def communicators(connection: Connection) -> list[CommunicatorRow]:
    fill(connection)
    return communicator_rows(connection)


def look(connection: Connection) -> World:
    use: dict[str, list[UseRow]] = {}
    for row in SQL.ask(connection, "communicator_use", UseRow):
        use.setdefault(row.identity, []).append(row)
    (size,) = connection.execute("SELECT max(world_size) FROM rank").fetchone()
    read = frozenset(rank for (rank,) in connection.execute("SELECT world_rank FROM rank"))
    described = SQL.ask(connection, "run_communicators", DescribedRow)
    groups = [Group(row, members_of(row, size), use.get(row.identity, [])) for row in described]
    passed = [row for rows in use.values() for row in rows if is_passed(row)]
    return World(
        size,
        read,
        groups,
        partitions_of(groups, read),
        busy_of(groups, size),
        message_graph.graph(SQL.ask(connection, "messages", PeerRow)),
        sum(row.message_bytes for rows in use.values() for row in rows),
        frozenset(row.bytes for row in passed),
        sum(row.count for row in passed) / max(1, len(read)),
    )


def members_of(row: DescribedRow, world_size: int) -> frozenset[int]:
    """The world ranks of the members; empty if not all of them are known."""
    members = Members(row.members)
    return (
        frozenset(members.below(world_size)) if members.is_whole and not row.is_inter
        else frozenset()
    )


def is_passed(row: UseRow) -> bool:
    return row.family == "point-to-point" and row.bytes > CONTROL_BYTES and "ecv" not in row.call


def role(group: Group, world: World) -> str:
    if group.described.size == 1 and not group.described.is_inter:
        return ALONE
    if all(row.family in ("communicator", "setup") for row in group.use):
        return UNUSED
    if not group.ranks:
        return UNCLEAR
    if is_control(group, world):
        return CONTROL
    is_world = len(group.ranks) == world.size
    return ", ".join(([WORLD] if is_world else []) + purposes(group, world, is_world)) or UNCLEAR


def is_control(group: Group, world: World) -> bool:
    is_small = all(row.bytes <= CONTROL_BYTES for row in group.use)
    return is_small and group.message_bytes() <= CONTROL_SHARE * world.message_bytes


def purposes(group: Group, world: World, is_world: bool) -> list[str]:
    """The purpose that follows from the kind of calls that carry at least half of its bytes."""
    whole = group.message_bytes()
    if not whole:
        return []
    if group.message_bytes("io") >= HALF * whole:
        return [IO]
    if group.message_bytes("point-to-point") >= HALF * whole:
        return [PIPELINE] if is_in_chains(group.ranks, world) else []
    if is_world or not is_partition(group, world):
        return []
    return [parallel(group, world)]


def is_in_chains(ranks: frozenset[int], world: World) -> bool:
    """Whether all its ranks are stages of pipelines."""
    stages = {rank for chain in world.graph.chains for rank in chain.ranks}
    return ranks <= stages


def is_partition(group: Group, world: World) -> bool:
    """Whether it and others created in the same way contain every rank exactly once."""
    return not world.partitions.isdisjoint(ways(group))


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
    found: dict[int, list[Group]] = {}
    for group in groups:
        if 1 < len(group.ranks) < world_size and group.collectives:
            for rank in group.ranks:
                found.setdefault(rank, []).append(group)
    return found


def shape(ranks: frozenset[int]) -> tuple[int, ...]:
    ordered = sorted(ranks)
    return tuple(rank - ordered[0] for rank in ordered)


def covers_once(parts: Collection[frozenset[int]], read: frozenset[int]) -> bool:
    """Whether every rank that was read is in exactly one of them."""
    everyone = frozenset().union(*parts)
    return len(parts) > 1 and sum(map(len, parts)) == len(everyone) and read <= everyone


def parallel(group: Group, world: World) -> str:
    """Replica or tensor-parallel group: replicas sum gradients occasionally, tensor-parallel ranks
    exchange activations all the time."""
    rows = group.collectives
    summed = sum(row.message_bytes for row in rows if plain(row.call) in ("allreduce", "reduce"))
    exchanged = sum(row.message_bytes for row in rows if plain(row.call) in EXCHANGES)
    if summed + exchanged < HALF * group.message_bytes():
        return UNCLEAR
    if world.passed_sizes:
        return among_passers(group, world, summed, exchanged)
    return among_rivals(group, world, summed, exchanged)


def among_passers(group: Group, world: World, summed: int, exchanged: int) -> str:
    """In a pipeline: collectives that are as frequent as the messages between stages and have the
    same sizes work on activations."""
    of_passed_size = sum(
        row.message_bytes for row in group.collectives if row.bytes in world.passed_sizes
    )
    is_often = group.collectives_per_rank >= world.passed_per_rank
    if is_often and (exchanged > summed or of_passed_size >= HALF * (summed + exchanged)):
        return TENSOR
    return REPLICA if summed > exchanged else UNCLEAR


def among_rivals(group: Group, world: World, summed: int, exchanged: int) -> str:
    """Without a pipeline: if a rank is in two groups, the one with far more collectives is the
    tensor-parallel one."""
    own = group.collectives_per_rank
    others = [rival.collectives_per_rank for rival in rivals(group, world)]
    if any(len(other.ranks) == world.size and other.collectives for other in world.groups):
        return UNCLEAR
    if others and own >= OFTEN * max(others):
        return TENSOR
    is_rarest = all(OFTEN * own <= other for other in others)
    return REPLICA if summed > exchanged and is_rarest else UNCLEAR


def rivals(group: Group, world: World) -> list[Group]:
    """Other groups of its ranks that make collectives."""
    found = {
        other.described.identity: other for rank in group.ranks
        for other in world.busy.get(rank, [])
    }
    return [other for other in found.values() if other.ranks != group.ranks]


def plain(call: str) -> str:
    """The operation of a call; MPI_Iallreduce, MPI_Allreduce_init, ncclAllReduce: allreduce."""
    name = call.replace("MPI_", "", 1).replace("nccl", "", 1)
    name = name[1:] if name[:1] == "I" and name[1:2].islower() else name
    return (name[:-5] if name.endswith("_init") else name).lower()

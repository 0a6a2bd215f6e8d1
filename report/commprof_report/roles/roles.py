"""Communicators, their calls, and the purpose of each, which is inferred; and a run's pipelines:
their stages, the messages between these, and which stage the others wait for.

docs/METHODS.md has the rules. They use the whole run, whatever the filters; `unclear` if none
applies.
"""

from __future__ import annotations

import re
from collections import Counter, namedtuple
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean

from ..base import (
    AS_EVERYWHERE,
    Connection,
    Field,
    Groups,
    Row,
    gathered,
    members_shown,
    np,
    operation,
    query,
    row_type,
    shortened,
    sums,
    text,
    threshold,
)
from ..calls.views import COMMUNICATOR_USE, is_mpi_call, is_working
from ..late import (
    COVERED,
    Late,
)
from ..run import cells_of, view_rows
from .world import CONTROL_BYTES, FEWEST, Chain, Group, World, ways

ALONE, UNUSED, WORLD, CONTROL, IO = "each rank alone", "not used", "world", "control only", "I/O"
PIPELINE, REPLICA, TENSOR, UNCLEAR = (
    "pipeline neighbours",
    "replica group",
    "tensor-parallel group",
    "unclear",
)
EXCHANGE, SERVED = "exchange with neighbours", "master or server with workers"
HALF = threshold("roles.purpose")
OFTEN = threshold("roles.often")
ONCE = threshold("roles.once")
EXCHANGES = (
    "allgather",
    "allgatherv",
    "reduce_scatter",
    "reduce_scatter_block",
    "reducescatter",
)
# what a root gives to all others, and what it gets from them
GIVEN, GOT = ("bcast", "scatter", "scatterv"), ("gather", "gatherv", "reduce")
# in names that programs give to communicators
WORDS = {
    REPLICA: {"data", "dp", "ddp", "replica", "replicas"},
    TENSOR: {"tensor", "tp"},
    PIPELINE: {"pipeline", "pp"},
}


def roles(world: World) -> dict[str, str]:
    """The role of each communicator, by identity."""
    return {group.described.identity: role(group, world) for group in world.groups}


# A communicator and its family: communicators of one size that partition the ranks, or all have the
# same purpose. purpose: the role, or empty if it says nothing that the label does not.
Kin = namedtuple("Kin", "family role purpose constructor")


def kin(world: World) -> dict[str, Kin]:
    """The family and role of each communicator, by identity."""
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


def families(world: World) -> dict[str, str]:
    """Names of the communicators' families, by identity; further families of a name are
    numbered."""
    kin = ((_kin(group, world), group.described) for group in world.groups)
    members = gathered((own.family, (described, own)) for own, described in kin)
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


def family_labels(world: World) -> dict[str, str]:
    """As families, by label."""
    names = families(world)
    return {group.described.label: names[group.described.identity] for group in world.groups}


def name_given(described: Row) -> str:
    """By the program: a label begins with it, or else with the constructor."""
    name = described.label.partition(" {")[0]
    return "" if name == described.constructor.replace("MPI_", "") else name


def _kin(group: Group, world: World) -> Kin:
    described, purpose = group.described, role(group, world)
    special = "" if purpose in (UNCLEAR, UNUSED) or purpose.startswith(WORLD) else purpose
    way = next((way for way in ways(group) if way in world.partitions), None)
    return Kin(
        (way or special or described.identity, described.size),
        purpose,
        special,
        described.constructor,
    )


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
    most_bytes = threshold("roles.control-share") * world.message_bytes
    return is_small and group.message_bytes() <= most_bytes


def purposes(group: Group, world: World, is_world: bool) -> list[str]:
    """The purpose that follows from the kind of calls that carry at least half of its bytes."""
    whole = group.message_bytes()
    if not whole:
        return []
    if group.message_bytes("io") >= HALF * whole:
        return [IO]
    if group.message_bytes("point-to-point") >= HALF * whole:
        return messages_purpose(group.ranks, world)
    if is_served(group, world):
        return [SERVED]
    # it and others that are created in the same way must contain every rank exactly once
    if is_world or world.partitions.isdisjoint(ways(group)):
        return []
    return [parallel(group, world)]


def messages_purpose(ranks: frozenset[int], world: World) -> list[str]:
    """The pattern of messages in which all these ranks take part."""
    found = world.graph
    patterns: dict[str, Sequence[Sequence[int]]] = {
        PIPELINE: [chain.ranks for chain in found.chains],
        EXCHANGE: found.exchanges,
        SERVED: [[*star.servers, *star.others] for star in found.stars if star.has_workers],
    }
    return [
        purpose
        for purpose, lines in patterns.items()
        if ranks <= {rank for line in lines for rank in line}
    ]


def is_served(group: Group, world: World) -> bool:
    """Whether one rank gives to all others and gets from them, again and again, and little else
    is moved: the root of all its collectives that have one."""
    rooted = sum(row.message_bytes for row in group.use if operation(row.call) in (*GIVEN, *GOT))
    rows = [row for row in world.roots if row.identity == group.described.identity]
    if rooted < HALF * group.message_bytes() or len({row.root for row in rows}) != 1:
        return False
    return group.described.size > 2 and all(
        sum(row.calls / row.ranks for row in rows if operation(row.call) in calls) >= FEWEST
        for calls in (GIVEN, GOT)
    )


def parallel(group: Group, world: World) -> str:
    """Replica or tensor-parallel group, by its name, or by where its collectives are: tensor-
    parallel ranks exchange activations of few sizes layer after layer, replicas sum each gradient
    once, at the end of a step."""
    rows = group.collectives
    summed = sum(
        row.message_bytes for row in rows if operation(row.call) in ("allreduce", "reduce")
    )
    exchanged = sum(row.message_bytes for row in rows if operation(row.call) in EXCHANGES)
    if summed + exchanged < HALF * group.message_bytes():
        return UNCLEAR
    if named := purpose_named(group):
        return named
    found = among_passers if world.passed_sizes else alone_or_among_rivals
    return found(group, world, summed, exchanged)


def purpose_named(group: Group) -> str | None:
    """The purpose that its name states; None: no purpose, or several."""
    words = set(re.findall("[a-z]+", name_given(group.described).lower()))
    stated = [purpose for purpose, known in WORDS.items() if known & words]
    return stated[0] if len(stated) == 1 and stated[0] != PIPELINE else None


def among_passers(group: Group, world: World, summed: int, exchanged: int) -> str:
    """In a pipeline: collectives that are as frequent as the messages between stages and have the
    same sizes work on activations; those of a step's end are far rarer than messages."""
    of_passed_size = sum(
        row.message_bytes for row in group.collectives if row.bytes in world.passed_sizes
    )
    turns = world.turns.get(group.described.identity)
    per_rank = sum(row.count for row in group.collectives) / max(1, group.described.size)
    times, passed = (turns.turns, turns.sends) if turns else (per_rank, world.passed_per_rank)
    if times >= passed and (exchanged > summed or of_passed_size >= HALF * (summed + exchanged)):
        return TENSOR
    if passed >= OFTEN * times:
        return REPLICA if summed > exchanged else UNCLEAR
    found = among_rivals(group, world, summed, exchanged)
    return UNCLEAR if found == REPLICA and times >= passed else found


def alone_or_among_rivals(group: Group, world: World, summed: int, exchanged: int) -> str:
    if any(len(other.ranks) == world.size and other.collectives for other in world.groups):
        return UNCLEAR
    if rivals(group, world):
        return among_rivals(group, world, summed, exchanged)
    return REPLICA if summed > exchanged else UNCLEAR


def among_rivals(group: Group, world: World, summed: int, exchanged: int) -> str:
    """If a rank is in two groups: sizes that occur again and again in a turn are those of
    activations, if in the other group's turns most occur once, as gradients do."""
    known = [world.turns.get(each.described.identity) for each in [group, *rivals(group, world)]]
    repeats = [turns.repeats for turns in known if turns]
    if len(known) == 1 or len(repeats) < len(known):
        return UNCLEAR
    own, *others = repeats
    if max(others) < ONCE and own >= OFTEN * max(others):
        return TENSOR
    is_once = own < ONCE and max(others) >= OFTEN * own
    return REPLICA if is_once and summed > exchanged else UNCLEAR


def rivals(group: Group, world: World) -> list[Group]:
    """Other groups of its ranks that make collectives."""
    found = {
        other.described.identity: other
        for rank in group.ranks
        for other in world.busy.get(rank, [])
    }
    return [other for other in found.values() if other.ranks != group.ranks]


COMMUNICATOR = (
    text("communicator", AS_EVERYWHERE, "communicator", 32),
    text("identity", "", "identity"),
    Field(
        "size",
        "as in `communicator`, on the lowest rank (if possible with a name)",
        "size",
    ),
    Field("remote_size", ""),
    Field(
        "members", "", "world ranks", lambda members: shortened(members_shown(members), 24), False
    ),
    Field("ranks", "ranks whose files mention it"),
    Field(
        "name",
        "as in `communicator`, on the lowest rank (if possible with a name)",
    ),
    Field("constructor", "", "made by", lambda call: call.replace("MPI_", ""), False),
    text("parent", "label of the communicator that it was created from", "from", 20),
    Field(
        "ordinal",
        "as in `communicator`, on the lowest rank (if possible with a name)",
    ),
    Field("is_inter", ""),
    Field("is_freed", ""),
    Field("count", AS_EVERYWHERE, "calls"),
    Field("volume_bytes", "", "volume"),
    Field("total_ns", "", "time"),
    text(
        "top_call",
        "the call with the most time on it (NCCL: on the device)",
        "most time in",
    ),
    text("role", "its purpose; null: the row stands for several", "role"),
    Field(
        "library",
        AS_EVERYWHERE,
    ),
    Field("device_ns", "", "on device"),
)
CommunicatorRow = row_type("CommunicatorRow", COMMUNICATOR)


def communicator_rows(connection: Connection, roles: Mapping[str, str]) -> list[Row]:
    """roles: by identity."""
    nothing = {"count": 0, "volume_bytes": 0, "total_ns": 0, "top_call": None, "device_ns": None}
    used = {row.identity: row for row in view_rows(connection, COMMUNICATOR_USE)}
    rows = [
        CommunicatorRow(
            **row._asdict(),
            role=roles.get(row.identity),
            **{
                name: getattr(used.get(row.identity), name, value)
                for name, value in nothing.items()
            },
        )
        for row in query.rows(connection, "roles/communicators")
        if cells_of(connection).has("identity", row.identity)
    ]
    return sorted(
        rows,
        key=lambda row: (
            -max(row.total_ns, row.device_ns or 0),
            -(row.size or -1),
            row.communicator,
        ),
    )


NOTABLE = threshold("roles.slow-stage")


class Stage(
    namedtuple(
        "Stage",
        "rank counted_ns inside_ns outside_ns has_nccl wait_ns split_ns",
        defaults=(0, 0),
    )
):
    """A stage's rank, and its times: inside MPI on all threads, without set-up; outside MPI, set-up
    included in MPI, on the thread that spends most time inside; waiting, and how much of that
    inside was split. NCCL's messages wait on the device."""

    @property
    def bubble(self) -> float:
        return self.wait_ns / self.counted_ns


STAGE = (
    Field("pipeline", "number of the pipeline, from 1"),
    Field(
        "replicas",
        "pipelines that share a `replica group` ([roles](METHODS.md#roles)) with it, "
        "itself included",
    ),
    Field("stage", "number of the stage in it, from 0; number of its stages"),
    Field("stages", ""),
    Field("rank", "the rank that is this stage"),
    Field("previous_rank", "its neighbours"),
    Field("next_rank", ""),
    Field("replica_communicator", "label of its replica group"),
    Field(
        "wait_ns",
        "waiting ([late](#late)); null: `coverage` is below half, its file was not read, "
        "or its NCCL messages wait on the device",
    ),
    Field("bubble_share", "wait_ns / counted_ns"),
    Field(
        "outside_share",
        "time outside MPI (and set-up) of the thread that spends most inside, over counted_ns",
    ),
    Field(
        "coverage",
        "wait and transfer over the time inside MPI (all threads, without set-up) of the "
        "pipeline's ranks",
    ),
    Field("forward_bytes", "sent to the next and to the previous stage"),
    Field("backward_bytes", ""),
    Field("is_waited_for", "1: the stage that the others wait for"),
    Field("is_direction_known", "0: as many bytes go in either direction"),
    Field("has_nccl", "1: the rank's messages include NCCL's; null: its file was not read"),
)
StageRow = row_type("StageRow", STAGE)


# Rows of their stages, and the graph in which they were found.
Pipelines = namedtuple("Pipelines", "rows graph")


def stage_times(connection: Connection) -> list[Stage]:
    """Without their waiting."""
    cells = cells_of(connection).whole
    threads = sums(cells, ["world_rank", "thread"], is_mpi_call)
    ranks, rank = Groups(threads.of), np.unique(threads.of).tolist()
    inside_ns = ranks.sum(threads.sum("total_ns", is_working))
    inside = dict(zip(rank, zip(inside_ns.tolist(), ranks.max(threads.sum("total_ns")).tolist())))
    nccl = connection.execute("SELECT DISTINCT world_rank FROM peer WHERE communicator > 0")
    has_nccl = {rank for (rank,) in nccl}
    return [
        Stage(rank, counted_ns, own_ns, max(counted_ns - most_ns, 0), int(rank in has_nccl))
        for rank, counted_ns in sorted(cells.counted.items())
        for own_ns, most_ns in [inside.get(rank, (0, 0))]
    ]


def pipelines(world: World, times: Iterable[Stage], late: Late) -> Pipelines:
    """All pipelines, with the stages of each from first to last."""
    replicas = [group for group in world.groups if role(group, world) == REPLICA]
    split = {row.rank: (row.wait_ns, row.wait_ns + row.transfer_ns) for row in late.ranks}
    of_ranks = {row.rank: Stage(*row[:5], *split.get(row.rank, (0, 0))) for row in times}
    waited_for = ranks_waited_for(world.graph.chains, of_ranks, late)
    rows: list[Row] = []
    for number, chain in enumerate(world.graph.chains, 1):
        alike = 1 + sum(
            linked(chain, other, replicas) for other in world.graph.chains if other is not chain
        )
        rows += stages_of(
            number,
            alike,
            chain,
            replicas,
            of_ranks,
            world.sent_bytes,
            waited_for,
        )
    return Pipelines(rows, world.graph)


def ranks_waited_for(
    chains: Sequence[Chain], of_ranks: Mapping[int, Stage], late: Late
) -> Collection[int]:
    """The ranks that late names, of the run or of single calls; or those of a stage that the same
    test names, if it is slow in all replicas: they may be more than late may name."""
    if late.is_known and late.run.late_ranks is not None:
        return late.run.late_ranks
    stages = {rank: str(place) for each in chains for place, rank in enumerate(each.ranks)}
    named, slow = late.named_among(stages) if chains else (), set()
    for each in chains:
        slow |= keeping_waiting([of_ranks[rank] for rank in each.ranks if rank in of_ranks], named)
    if named and slow.issuperset(named):
        return named
    return {rank for each in late.blame.calls for rank in each.named.ranks}


def linked(chain: Chain, other: Chain, replicas: Sequence[Group]) -> bool:
    """Whether some replica group has ranks of both."""
    return any(
        group.ranks.intersection(chain.ranks) and group.ranks.intersection(other.ranks)
        for group in replicas
    )


def stages_of(
    number: int,
    alike: int,
    chain: Chain,
    replicas: Sequence[Group],
    of_ranks: dict[int, Stage],
    sent: dict[tuple, int],
    waited_for: Collection[int],
) -> list[Row]:
    ranks = chain.ranks
    known = [
        of_ranks[rank]
        for rank in ranks
        if rank in of_ranks and of_ranks[rank].counted_ns and not of_ranks[rank].has_nccl
    ]
    # the part of their time inside MPI that was split
    inside_ns = sum(stage.inside_ns for stage in known)
    coverage = min(1.0, sum(stage.split_ns for stage in known) / inside_ns) if inside_ns else 1.0
    waited_for = keeping_waiting(known, waited_for) if coverage >= COVERED else set()
    rows = []
    for stage, (before, rank, after) in enumerate(zip((None, *ranks), ranks, (*ranks[1:], None))):
        own = of_ranks.get(rank)
        label = next((group.described.label for group in replicas if rank in group.ranks), None)
        shown = own if own in known else None
        rows.append(
            StageRow(
                pipeline=number,
                replicas=alike,
                stage=stage,
                stages=len(ranks),
                rank=rank,
                previous_rank=before,
                next_rank=after,
                replica_communicator=label,
                wait_ns=shown.wait_ns if shown and coverage >= COVERED else None,
                bubble_share=shown.bubble if shown and coverage >= COVERED else None,
                outside_share=shown.outside_ns / shown.counted_ns if shown else None,
                coverage=coverage,
                forward_bytes=sent.get((rank, after), 0),
                backward_bytes=sent.get((rank, before), 0),
                is_waited_for=int(len(known) == len(ranks) and rank in waited_for),
                is_direction_known=int(chain.is_direction_known),
                has_nccl=own and own.has_nccl,
            )
        )
    return rows


def keeping_waiting(stages: Sequence[Stage], named: Collection[int]) -> set[int]:
    """The named ranks among a pipeline's for which its other stages wait notably more than these
    themselves."""
    return {
        own.rank
        for own in stages
        if own.rank in named
        and len(stages) > 1
        and fmean(other.bubble for other in stages if other is not own) - own.bubble >= NOTABLE
    }

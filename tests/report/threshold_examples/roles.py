"""Purposes of communicators, and pipelines."""

from __future__ import annotations

from types import SimpleNamespace

from commprof_report.base import Row
from commprof_report.roles.world import (
    USES,
    Group,
    MessageRow,
    MessageTime,
    Turns,
    World,
    busy_of,
    graph,
    partitions_of,
)
from commprof_report.roles.roles import Stage, keeping_waiting, role

WHOLE = 1_000_000


def group(ranks: set[int], *use: Row) -> Group:
    made = {"label": "", "parent_identity": None, "constructor": "", "is_inter": 0, "members": ""}
    described = SimpleNamespace(identity=str(ranks), size=len(ranks), **made)
    return Group(described, frozenset(ranks), list(use))


def use(call: str, family: str, size: int, count: int = 1) -> Row:
    return USES.row("", call, family, size, count, size * count)


def role_of(*groups: Group, message_bytes: int = WHOLE, repeats: tuple[float, ...] = ()) -> str:
    """The role of the first of these groups of a job of four ranks."""
    ranks = frozenset(range(4))
    identities = (each.described.identity for each in groups)
    turns = {name: Turns(1, 0, times) for name, times in zip(identities, repeats)}
    known = (list(groups), partitions_of(groups, ranks), busy_of(groups, len(ranks)), graph([]))
    rest = ({}, message_bytes, frozenset(), 0.0, turns, [])
    return role(groups[0], World(len(ranks), ranks, *known, *rest))


def allreduces(size: int, count: int = 1) -> Row:
    return use("MPI_Allreduce", "collective", size, count)


def with_io(share: float) -> str:
    written = use("MPI_File_write", "io", round(share * WHOLE))
    return role_of(group({0, 1}, written, allreduces(WHOLE - written.bytes)))


def repeating(own: float, others: float) -> str:
    """Four groups split the job in two ways."""
    groups = [group(ranks, allreduces(2_000)) for ranks in ({0, 1}, {2, 3}, {0, 2}, {1, 3})]
    return role_of(*groups, repeats=(own, own, others, others))


def passed_on(share: float) -> str:
    """The middle one of three ranks passes on so many of the messages."""
    times = [MessageTime(1, 0, 0, 0)] * round(100 * share) + [MessageTime(1, 2, 1, 0)] * 100
    rows = [MessageRow(0, 1, 100, WHOLE), MessageRow(1, 2, 100, WHOLE)]
    return "pipeline" if graph(rows, times).chains else "no pipeline"


def link(volume_bytes: int, messages: int = 100) -> str:
    """Between ranks 2 and 3, beside one between 0 and 1."""
    found = graph([MessageRow(0, 1, 100, WHOLE), MessageRow(2, 3, messages, volume_bytes)])
    return "no link" if found.pairs == 1 else "link"


def direction(difference: float) -> str:
    forward = round(WHOLE * (1 + difference) / 2)
    (chain,) = graph([MessageRow(0, 1, 8, forward), MessageRow(1, 0, 8, WHOLE - forward)]).chains
    return "forward" if chain.is_direction_known else "either way"


def lead(share: float) -> str:
    """A stage that waits for nothing, before one that waits for this share of the time."""
    stages = [
        Stage(rank, WHOLE, 0, 0, 0, wait_ns, wait_ns)
        for rank, wait_ns in ((0, 0), (1, round(share * WHOLE)))
    ]
    return "slow stage" if keeping_waiting(stages, {0}) else "no slow stage"


EXAMPLES = {
    "roles.control-bytes": lambda size: role_of(group({0, 1}, allreduces(size))),
    "roles.control-share": lambda share: role_of(
        group({0, 1}, allreduces(1_000)), message_bytes=round(1_000 / share)
    ),
    "roles.purpose": with_io,
    "roles.often": lambda times: repeating(times, 1),
    "roles.once": lambda times: repeating(10, times),
    "roles.passed-on": passed_on,
    "roles.bulk": lambda share: link(round(share * WHOLE)),
    "roles.messages": lambda messages: link(WHOLE, messages),
    "roles.direction": direction,
    "roles.slow-stage": lead,
}

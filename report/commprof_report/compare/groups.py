"""Communicators that stand for the same thing in several runs, and in several parts of one run.

A communicator is described by how it was created: call, parent, size, pattern of its ranks, how
many alike were created before it. That is also what its identity is computed from, so equal
identities have equal descriptions. Parts of one split, such as 64 tensor-parallel groups of 8
ranks, share a description and are compared together: each alone would be too small a part of the
run to be shown.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from sqlite3 import Connection

from ..base import query
from ..base.gather import gathered
from ..base.members import Members, members_text

SQL = query.beside(__file__)


# The description of a communicator. created: constructor, ordinal and the parent's description; of
# predefined ones the name. shape: its world ranks, less the first, as text; empty if they are not
# known.
Group = namedtuple("Group", "library created size shape is_inter")
NO_GROUP = Group("mpi", (), 0, "", 0)  # of calls without a communicator


def groups_of(connection: Connection, world_size: int) -> tuple[dict[str, Group], dict[Group, str]]:
    """The group of each identity, and the label of each group."""
    asked = list(SQL.rows(connection, "communicators_of_run"))
    rows = {row.identity: row for row in asked}
    groups = {identity: _described(row, rows, world_size) for identity, row in rows.items()}
    members = gathered((group, rows[identity]) for identity, group in groups.items())
    return groups, {group: _label(alike) for group, alike in members.items()}


def renamed(groups: Sequence[Group], known: Sequence[Group]) -> dict[Group, Group]:
    """Groups of a run that another run does not have, mapped to those of the other run with the
    same ranks, in order: the same communicators, created in another way."""
    left = [group for group in known if group not in set(groups)]
    found = {}
    for group in groups:
        if group not in set(known):
            same = next((other for other in left if _ranks(other) == _ranks(group)), None)
            if same is not None:
                left.remove(same)
                found[group] = same
    return found


def _ranks(group: Group) -> tuple:
    return group.library, group.size, group.shape, group.is_inter


def _described(row: query.Row, rows: dict[str, query.Row], world_size: int) -> Group:
    parent = rows.get(row.parent_identity or "")
    created: tuple = (
        (row.constructor, row.ordinal, _described(parent, rows, world_size))
        if parent and row.constructor else (row.name,)
    )
    members = Members(row.members)
    ranks = list(members.below(world_size)) if members.is_whole else []
    return Group(
        row.library, created, row.size, members_text([rank - ranks[0] for rank in ranks]),
        row.is_inter,
    )


def _label(alike: Sequence[query.Row]) -> str:
    """MPI_COMM_WORLD; Comm_split {0-1} and 3 alike."""
    first = alike[0].label
    return first if len(alike) == 1 else f"{first} and {len(alike) - 1} alike"

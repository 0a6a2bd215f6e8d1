"""Patterns of communication by real ranks (programs/patterns.c): what communicators are for, and
who serves whom."""

from __future__ import annotations

import pytest

from . import reporter

pytestmark = [pytest.mark.slow, pytest.mark.one_mpi]

GROUPS = ("replica group", "tensor-parallel group")
SERVED = "world, master or server with workers"


@pytest.mark.parametrize(
    ("pattern", "ranks", "width", "names", "roles"),
    [
        ("tensors", 4, 2, "nameless", GROUPS),
        ("tensors", 8, 2, "nameless", GROUPS),
        ("tensors", 8, 4, "nameless", GROUPS),
        ("overlapped", 4, 2, "nameless", GROUPS),
        ("bucket", 4, 2, "nameless", GROUPS),
        ("sequence", 4, 2, "nameless", GROUPS),
        ("three", 8, 2, "nameless", GROUPS),
        ("equal", 4, 2, "nameless", ("unclear", "unclear")),
        ("equal", 4, 2, "named", GROUPS),
        ("experts", 4, 2, "nameless", ("replica group", "unclear")),
    ],
)
def test_replicas_and_tensor_parallel_groups_are_not_swapped(
    profile, pattern, ranks, width, names, roles
):
    run = profile("patterns", ranks, pattern, str(width), names)
    found = {
        (is_tensor_parallel(row["members"]), row["role"])
        for row in reporter.rows("communicators", run.folder)
        if row["constructor"] == "MPI_Comm_split"
    }
    assert found == set(zip((False, True), roles))


def is_tensor_parallel(members: str) -> bool:
    """0-1, not 0,2 or 0-6:2: its ranks are next to each other."""
    return "-" in members and not {",", ":"} & {*members}


@pytest.mark.parametrize(
    ("pattern", "ranks", "width", "role"),
    [
        ("master", 3, 1, SERVED),
        ("master", 4, 1, SERVED),
        ("server", 4, 1, SERVED),
        ("server", 6, 2, SERVED),
        ("scatter_gather", 4, 1, SERVED),
        ("bcast_reduce", 4, 1, SERVED),
        ("collect", 4, 1, "world"),
        ("line", 2, 1, "world, exchange with neighbours"),
        ("line", 4, 1, "world, exchange with neighbours"),
        ("shifted_line", 4, 1, "world, exchange with neighbours"),
        ("ordered_line", 3, 1, "world, exchange with neighbours"),
        ("ordered_line", 4, 1, "world, exchange with neighbours"),
        ("gpipe", 2, 1, "world, pipeline neighbours"),
        ("gpipe", 3, 1, "world, pipeline neighbours"),
        ("1f1b", 4, 1, "world, pipeline neighbours"),
    ],
)
def test_messages_show_who_serves_exchanges_or_passes_on(profile, pattern, ranks, width, role):
    run = profile("patterns", ranks, pattern, str(width), "nameless")
    roles = {row["communicator"]: row["role"] for row in reporter.rows("communicators", run.folder)}
    assert roles["MPI_COMM_WORLD"] == role
    has_stages = bool(reporter.rows("pipeline", run.folder))
    assert has_stages == role.endswith("pipeline neighbours")

"""Roles of communicators: each on a planted run that has it, and `unclear` where the signs are
missing."""

from __future__ import annotations

import parallel
import planted
import pytest
from parallel import REPLICA, TENSOR
from planted import Cell


@pytest.fixture
def roles_of(report, tmp_path):
    def ask(ranks):
        folder = planted.write_databases(tmp_path / "run", ranks)
        return {
            row["communicator"]: row["role"]
            for row in report("communicators", folder, "--json").rows
        }

    return ask


def data_parallel_run() -> list[planted.Rank]:
    """Four ranks without point-to-point messages, each in one of two groups."""
    ranks = [planted.Rank(rank, 4) for rank in range(4)]
    for rank, own in enumerate(ranks):
        group = [rank % 2, rank % 2 + 2]
        own.communicators = [parallel.world(rank, 4), parallel.split(REPLICA, rank, group, 1)]
    return ranks


def test_tensor_parallel_groups_sum_what_is_passed_on_and_often(roles_of):
    found = roles_of(parallel.tensor_run())
    assert found.pop("MPI_COMM_WORLD") == "world, pipeline neighbours"
    assert {label for label, role in found.items() if role == "tensor-parallel group"} == {
        f"Comm_split {{{rank},{rank + 1}}}" for rank in (0, 2, 4, 6)
    }
    assert {label for label, role in found.items() if role == "replica group"} == {
        f"Comm_split {{{rank},{rank + 4}}}" for rank in range(4)
    }


TENSORS = tuple((REPLICA, 20_000 + 2_800 * number) for number in range(16))
ACTIVATIONS = ((TENSOR, 65_536),) * 8


def two_groups(*calls: tuple[int, int]) -> list[planted.Rank]:
    """Ranks {0,2} and {1,3} sum gradients, {0,1} and {2,3} activations: these calls in each
    step."""
    ranks = data_parallel_run()
    for rank in ranks:
        first = rank.world_rank - rank.world_rank % 2
        rank.communicators.append(parallel.split(TENSOR, rank.world_rank, [first, first + 1], 3))
        rank.samples = parallel.step_samples(*calls)
        rank.windows = [planted.Window(0, rank.wall_ns)]
        rank.cells = [
            Cell("MPI_Allreduce", size, [2_000] * 10 * calls.count((number, size)), number)
            for number, size in sorted(set(calls))
        ]
    return ranks


def of_replicas_and_tensor(found: dict[str, str]) -> tuple[str, str]:
    """By the members of the communicators."""
    by_members = {label.split()[-1]: role for label, role in found.items()}
    assert by_members["{0,1}"] == by_members["{2,3}"]
    assert by_members["{0,2}"] == by_members["{1,3}"]
    return by_members["{0,2}"], by_members["{0,1}"]


def test_all_to_all_is_no_sign_of_tensor_parallel_groups(roles_of):
    """Ranks send tokens to experts, or transpose."""
    ranks = two_groups(*ACTIVATIONS, *TENSORS)
    for rank in ranks:
        for call in [*rank.samples, *rank.cells]:
            if call.communicator == TENSOR:
                call.call = "MPI_Alltoallv"
    assert of_replicas_and_tensor(roles_of(ranks)) == ("replica group", "unclear")


def served_run(given: str, got: str) -> list[planted.Rank]:
    ranks = data_parallel_run()
    for rank in ranks:
        rank.cells = [Cell(call, 100_000, [5_000] * 10) for call in (given, got)]
        rank.samples = []
        for number, call in enumerate([given, got] * 10):
            what = {"sequence": number + 1, "root": 0, "bytes": 100_000}
            at = 10_000 * number
            rank.samples.append(planted.Sample(call, at, at + 5_000, **what))
        rank.windows = [planted.Window(0, rank.wall_ns)]
    return ranks


@pytest.mark.parametrize(
    ("calls", "role"),
    [
        (("MPI_Scatter", "MPI_Gather"), "world, master or server with workers"),
        (("MPI_Ibcast", "MPI_Reduce"), "world, master or server with workers"),
        (("MPI_Gather", "MPI_Gatherv"), "world"),  # gives nothing
        (("MPI_Bcast", "MPI_Allreduce"), "world"),
    ],
)
def test_a_root_that_gives_and_gets_serves_the_others(roles_of, calls, role):
    assert roles_of(served_run(*calls))["MPI_COMM_WORLD"] == role


def test_each_rank_alone_and_what_is_never_used(roles_of):
    found = roles_of(planted.training_run())
    assert (found["MPI_COMM_SELF"], found["MPI_COMM_WORLD"]) == ("each rank alone", "world")

"""Roles of communicators: each on a planted run that has it, and `unclear` where the signs are
missing."""

from __future__ import annotations

import parallel
import planted
import pytest
from commprof_report.roles.roles import plain
from parallel import CONTROL, FILES, GRADIENT_BYTES, REPLICA, TENSOR
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


def data_parallel_run(
    *cells: Cell, members=lambda rank: [rank, (rank + 2) % 4]
) -> list[planted.Rank]:
    """Four ranks without point-to-point messages, each in one of two groups."""
    groups = [sorted(members(rank)) for rank in range(4)]
    known = [
        [parallel.world(rank, 4), parallel.split(REPLICA, rank, groups[rank], 1)]
        for rank in range(4)
    ]
    return [
        planted.Rank(rank, 4, communicators=known[rank], cells=list(cells)) for rank in range(4)
    ]


def test_pipelines_and_their_replicas(roles_of):
    found = roles_of(parallel.pipeline_run(2, 2))
    assert found == {
        "MPI_COMM_WORLD": "not used",
        "Comm_split {0,1}": "pipeline neighbours",
        "Comm_split {2,3}": "pipeline neighbours",
        "Comm_split {0,2}": "replica group",
        "Comm_split {1,3}": "replica group",
    }


def test_tensor_parallel_groups_sum_what_is_passed_on_and_often(roles_of):
    found = roles_of(parallel.tensor_run())
    assert found.pop("MPI_COMM_WORLD") == "world, pipeline neighbours"
    assert {label for label, role in found.items() if role == "tensor-parallel group"} == {
        f"Comm_split {{{rank},{rank + 1}}}" for rank in (0, 2, 4, 6)
    }
    assert {label for label, role in found.items() if role == "replica group"} == {
        f"Comm_split {{{rank},{rank + 4}}}" for rank in range(4)
    }


def test_without_pipeline_the_busier_of_two_groups_is_tensor_parallel(roles_of):
    ranks = data_parallel_run(Cell("MPI_Allreduce", GRADIENT_BYTES, [1_000_000] * 10, REPLICA))
    for rank in ranks:
        pair = [rank.world_rank - rank.world_rank % 2, rank.world_rank - rank.world_rank % 2 + 1]
        rank.communicators.append(parallel.split(TENSOR, rank.world_rank, pair, 3))
        rank.cells.append(Cell("MPI_Allreduce", 64 << 10, [50_000] * 200, TENSOR))
    found = roles_of(ranks)
    assert (found["Comm_split {0,2}"], found["Comm_split {0,1}"]) == (
        "replica group", "tensor-parallel group",
    )


def test_gradients_on_groups_that_have_every_rank_once_make_replicas(roles_of):
    found = roles_of(
        data_parallel_run(Cell("MPI_Iallreduce", GRADIENT_BYTES, [1_000] * 10, REPLICA))
    )
    assert (found["Comm_split {0,2}"], found["Comm_split {1,3}"]) == (
        "replica group", "replica group",
    )


def test_a_group_beside_ranks_without_one_is_unclear(roles_of):
    ranks = data_parallel_run(Cell("MPI_Allreduce", GRADIENT_BYTES, [1_000_000] * 10, REPLICA))
    ranks[1].cells, ranks[3].cells = [], []
    ranks[1].communicators.pop()
    ranks[3].communicators.pop()
    assert roles_of(ranks)["Comm_split {0,2}"] == "unclear"


@pytest.mark.parametrize(
    "groups",
    [
        [[0, 2], [1, 2], [2, 3]],  # rank 2 is in three
        [[0, 2], [1, 3], [4, 6]],  # ranks 5 and 7 are in none
    ],
)
def test_groups_that_do_not_part_the_world_are_unclear(roles_of, groups):
    ranks = parallel.pipeline_run(2, 1 + max(map(max, groups)) // 2)
    for rank in ranks:
        del rank.communicators[2:], rank.cells[2:]
        for number, group in enumerate(groups):
            if rank.world_rank in group:
                rank.communicators.append(
                    parallel.split(REPLICA + 10 + number, rank.world_rank, group, 20 + number)
                )
                rank.cells.append(
                    Cell("MPI_Allreduce", GRADIENT_BYTES, [5_000_000] * 10, REPLICA + 10 + number)
                )
    assert roles_of(ranks)["Comm_split {0,2}"] == "unclear"


def test_groups_beside_gradients_on_the_world_are_unclear(roles_of):
    """Sums in two levels, or something else: it cannot be told."""
    cells = [
        Cell("MPI_Allreduce", GRADIENT_BYTES, [1_000_000] * 10, number)
        for number in (REPLICA, planted.WORLD)
    ]
    found = roles_of(data_parallel_run(*cells))
    assert (found["Comm_split {0,2}"], found["MPI_COMM_WORLD"]) == ("unclear", "world")


def test_small_messages_beside_bulk_are_control(roles_of):
    ranks = data_parallel_run(Cell("MPI_Allreduce", GRADIENT_BYTES, [1_000_000] * 10, REPLICA))
    for rank in ranks:
        everyone = parallel.split(CONTROL, rank.world_rank, [0, 1, 2, 3], 4)
        rank.communicators.append(everyone)
        rank.cells.append(Cell("MPI_Allreduce", 24, [10_000] * 1_000, CONTROL))
    assert roles_of(ranks)["Comm_split {0,1,2,3}"] == "control only"


def test_small_messages_where_nothing_else_is_sent_are_the_work_itself(roles_of):
    found = roles_of(data_parallel_run(Cell("MPI_Allreduce", 24, [10_000] * 1_000, planted.WORLD)))
    assert found["MPI_COMM_WORLD"] == "world"


def test_files_are_read_on_a_communicator_for_io(roles_of):
    ranks = data_parallel_run(Cell("MPI_Allreduce", GRADIENT_BYTES, [1_000_000] * 10, REPLICA))
    for rank in ranks:
        rank.communicators.append(parallel.split(FILES, rank.world_rank, [0, 1, 2, 3], 4))
        rank.cells.append(Cell("MPI_File_read_all", 1 << 20, [1_000_000], FILES))
    assert roles_of(ranks)["Comm_split {0,1,2,3}"] == "world, I/O"


def test_each_rank_alone_and_what_is_never_used(roles_of):
    found = roles_of(planted.training_run())
    assert (found["MPI_COMM_SELF"], found["MPI_COMM_WORLD"]) == ("each rank alone", "world")


def test_point_to_point_that_is_no_line_is_unclear(roles_of):
    """A ring on one half of the world."""
    ranks = parallel.pipeline_run(4, 2)
    for rank in ranks:
        first = rank.world_rank - rank.world_rank % 4
        after = first + (rank.world_rank + 1) % 4
        rank.peers = [("MPI_Send", "sent", after, 100, 6_553_600, 1_000_000)]
    assert roles_of(ranks)["Comm_split {0,1,2,3}"] == "unclear"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("MPI_Allreduce", "allreduce"),
        ("MPI_Iallreduce", "allreduce"),
        ("MPI_Allreduce_init", "allreduce"),
        ("MPI_Ialltoallv", "alltoallv"),
        ("MPI_Reduce_scatter_block_init", "reduce_scatter_block"),
    ],
)
def test_forms_of_a_collective_are_one(call, name):
    assert plain(call) == name

"""Roles of communicators: each on a planted run that has it, and `unclear` where the signs are
missing."""

from __future__ import annotations

import parallel
import planted
import pytest
from commprof_report.base.units import operation
from parallel import CONTROL, GRADIENT_BYTES, REPLICA, TENSOR
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


TENSORS = tuple((REPLICA, 20_000 + 2_800 * number) for number in range(16))
EQUAL = ((REPLICA, 20_000),) * 16
ACTIVATIONS = ((TENSOR, 65_536),) * 8


def two_groups(*calls: tuple[int, int], names=("", "")) -> list[planted.Rank]:
    """Ranks {0,2} and {1,3} sum gradients, {0,1} and {2,3} activations: these calls in each
    step."""
    ranks = data_parallel_run()
    for rank in ranks:
        first = rank.world_rank - rank.world_rank % 2
        rank.communicators.append(parallel.split(TENSOR, rank.world_rank, [first, first + 1], 3))
        for communicator, name in zip(rank.communicators[1:], names):
            communicator.name = name
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


@pytest.mark.parametrize(
    ("calls", "is_known"),
    [
        ((*ACTIVATIONS, *TENSORS), True),  # no buckets: more gradients than activations
        ((*ACTIVATIONS, TENSORS[0]), True),  # one bucket
        ((*ACTIVATIONS[:4], TENSORS[0], *ACTIVATIONS[:1], TENSORS[1]), True),  # while it computes
        ((*ACTIVATIONS, *EQUAL), False),  # gradients repeat a size, too
        ((*ACTIVATIONS[:1], *TENSORS), False),  # neither repeats one
    ],
)
def test_sizes_that_repeat_within_a_turn_are_those_of_activations(roles_of, calls, is_known):
    expected = ("replica group", "tensor-parallel group") if is_known else ("unclear",) * 2
    assert of_replicas_and_tensor(roles_of(two_groups(*calls))) == expected


def test_groups_without_sampled_calls_are_unclear(roles_of):
    ranks = two_groups(*ACTIVATIONS, *TENSORS)
    for rank in ranks:
        rank.samples, rank.windows = [], []
    assert of_replicas_and_tensor(roles_of(ranks)) == ("unclear", "unclear")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("data parallel", "tensor parallel"), ("replica group", "tensor-parallel group")),
        (("dp_group", "TP-0"), ("replica group", "tensor-parallel group")),
        (("tensor and data", "database"), ("unclear", "unclear")),
        (("pipeline", "stage"), ("unclear", "unclear")),
    ],
)
def test_a_name_states_the_purpose(roles_of, names, expected):
    found = roles_of(two_groups(*ACTIVATIONS, *EQUAL, names=names))
    assert of_replicas_and_tensor(found) == expected


def test_all_to_all_is_no_sign_of_tensor_parallel_groups(roles_of):
    """Ranks send tokens to experts, or transpose."""
    ranks = two_groups(*ACTIVATIONS, *TENSORS)
    for rank in ranks:
        for call in [*rank.samples, *rank.cells]:
            if call.communicator == TENSOR:
                call.call = "MPI_Alltoallv"
    assert of_replicas_and_tensor(roles_of(ranks)) == ("replica group", "unclear")


def test_sums_with_each_message_are_no_gradients_though_others_repeat(roles_of):
    """Activations of another size than messages, one sum for each; and equal gradients."""
    ranks = parallel.pipeline_run(2, 2)
    for rank in ranks:
        rank.samples = [sample for sample in rank.samples if sample.call == "MPI_Send"]
        last_ns = rank.samples[-1].end_ns
        members = [0, 3] if rank.world_rank in (0, 3) else [1, 2]
        rank.communicators.append(parallel.split(TENSOR, rank.world_rank, members, 3))
        rank.cells.append(Cell("MPI_Allreduce", GRADIENT_BYTES, [1_000] * 4, TENSOR))
        rank.samples += [
            planted.Sample(
                "MPI_Allreduce",
                sample.end_ns,
                sample.end_ns + 1_000,
                REPLICA,
                number,
                bytes=GRADIENT_BYTES,
            )
            for number, sample in enumerate(list(rank.samples), 1)
        ] + [
            planted.Sample(
                "MPI_Allreduce",
                last_ns + number * 10_000,
                last_ns + number * 10_000 + 1_000,
                TENSOR,
                number,
                bytes=GRADIENT_BYTES,
            )
            for number in range(1, 5)
        ]
    assert roles_of(ranks)["Comm_split {0,2}"] == "unclear"


def served_run(given: str, got: str, calls: int = 10, root=lambda number: 0) -> list[planted.Rank]:
    ranks = data_parallel_run()
    for rank in ranks:
        rank.cells = [Cell(call, 100_000, [5_000] * calls) for call in (given, got)]
        rank.samples = [
            planted.Sample(
                call,
                10_000 * number,
                10_000 * number + 5_000,
                planted.WORLD,
                number + 1,
                root=root(number),
                bytes=100_000,
            )
            for number, call in enumerate([given, got] * calls)
        ]
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


@pytest.mark.parametrize("size", [3, 4])
def test_messages_of_all_with_one_make_it_a_server(roles_of, size):
    ranks = [
        planted.Rank(
            rank,
            size,
            communicators=[parallel.world(rank, size)],
            cells=[Cell("MPI_Send", 4_000, [1_000] * 20)],
        )
        for rank in range(size)
    ]
    ranks[0].peers = [("MPI_Send", "sent", peer, 20, 80_000, 20_000) for peer in range(1, size)]
    for rank in ranks[1:]:
        rank.peers = [("MPI_Send", "sent", 0, 20, 80_000, 20_000)]
    assert roles_of(ranks)["MPI_COMM_WORLD"] == "world, master or server with workers"


def test_gradients_on_groups_that_have_every_rank_once_make_replicas(roles_of):
    found = roles_of(
        data_parallel_run(Cell("MPI_Iallreduce", GRADIENT_BYTES, [1_000] * 10, REPLICA))
    )
    assert (found["Comm_split {0,2}"], found["Comm_split {1,3}"]) == (
        "replica group",
        "replica group",
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


def test_small_messages_beside_bulk_are_control(roles_of):
    ranks = data_parallel_run(Cell("MPI_Allreduce", GRADIENT_BYTES, [1_000_000] * 10, REPLICA))
    for rank in ranks:
        everyone = parallel.split(CONTROL, rank.world_rank, [0, 1, 2, 3], 4)
        rank.communicators.append(everyone)
        rank.cells.append(Cell("MPI_Allreduce", 24, [10_000] * 1_000, CONTROL))
    assert roles_of(ranks)["Comm_split {0,1,2,3}"] == "control only"


def test_each_rank_alone_and_what_is_never_used(roles_of):
    found = roles_of(planted.training_run())
    assert (found["MPI_COMM_SELF"], found["MPI_COMM_WORLD"]) == ("each rank alone", "world")


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
    assert operation(call) == name

"""Communicators: what is known of each (programs/communicators.calls), and that all ranks agree on
which is which (programs/creation_order.calls)."""

import re

import pytest

RANKS = range(4)

# The call that makes it: the world ranks in it, for ranks 0 to 3 in their turn (None: this rank is
# not in it).
MEMBERS = {
    "MPI_Comm_dup_with_info": [[0, 1, 2, 3]] * 4,
    "MPI_Comm_idup": [[0, 1, 2, 3]] * 4,
    "MPI_Comm_create": [[0, 2], None, [0, 2], None],
    "MPI_Comm_create_group": [None, [1, 3], None, [1, 3]],
    "even": [[2, 0], None, [2, 0], None],
    "odd": [None, [3, 1], None, [3, 1]],
    "MPI_Comm_split_type": [[0, 1, 2, 3]] * 4,
    "MPI_Cart_sub": [[0, 1], [0, 1], [2, 3], [2, 3]],
    "MPI_Graph_create": [[0, 1, 2, 3]] * 4,
    "MPI_Dist_graph_create": [[0, 1, 2, 3]] * 4,
    "MPI_Dist_graph_create_adjacent": [[0, 1, 2, 3]] * 4,
    "MPI_Intercomm_merge": [[0, 2, 1, 3]] * 4,
    "gradients": [[0, 1, 2, 3]] * 4,
    "MPI_COMM_WORLD": [[0, 1, 2, 3]] * 4,
    "MPI_COMM_SELF": [[0], [1], [2], [3]],
}


@pytest.fixture
def run(profile):
    return profile("communicators", 4)


def test_a_communicator_knows_its_members_its_size_and_this_process_s_rank(run):
    """In world ranks, and as ranges in the database."""
    found = {name: [run.communicators(rank, name) for rank in RANKS] for name in MEMBERS}
    assert {
        name: [each[0].world_ranks if each else None for each in by_rank]
        for name, by_rank in found.items()
    } == MEMBERS
    for by_rank in found.values():
        for rank, communicators in enumerate(by_rank):
            for each in communicators:
                assert (each.size, each.is_inter, each.remote_size) == (len(each.world_ranks), 0, 0)
                assert each.world_ranks[each.comm_rank] == rank
    written = {"MPI_COMM_WORLD": "0-3", "MPI_Comm_create": "0,2", "MPI_COMM_SELF": "0"}
    assert {name: run.communicator(0, name).members for name in written} == written


def test_three_members_or_more_with_a_stride_are_written_as_one_range(profile):
    run = profile("strided_members", 5)
    assert run.communicator(0, "even").members == "0-4:2"
    assert run.communicator(1, "odd").members == "1,3"
    assert run.communicator(0, "backwards").members == "4,3,2,1,0"


def test_the_first_three_make_a_cartesian_line_and_rank_3_has_none(run):
    sizes = [
        sorted(each.size for each in run.communicators(rank, "MPI_Cart_create")) for rank in RANKS
    ]
    assert sizes == [[3, 4], [3, 4], [3, 4], [4]]


def test_an_inter_communicator_knows_both_its_sides(run):
    bridges = [run.communicator(rank, "MPI_Intercomm_create") for rank in RANKS]
    assert {(each.is_inter, each.size, each.remote_size) for each in bridges} == {(1, 2, 2)}
    assert [bridge.comm_rank for bridge in bridges] == [0, 0, 1, 1]
    assert len({bridge.identity for bridge in bridges}) == 1


def test_name_constructor_parent_and_end_are_known(run):
    gradients, world = run.communicator(0, "gradients"), run.communicator(0, "MPI_COMM_WORLD")
    assert (gradients.name, gradients.constructor) == ("gradients", "MPI_Comm_dup")
    assert gradients.parent_identity == world.identity
    with_info = run.communicator(0, "MPI_Comm_dup_with_info")
    assert (with_info.name, with_info.is_freed, world.is_freed) == ("", 0, 0)
    assert [each.is_freed for each in run.communicators(0, "MPI_Comm_dup")] == [1, 1]
    grids = {each.identity for each in run.communicators(2, "MPI_Cart_create")}
    assert run.communicator(2, "MPI_Cart_sub").parent_identity in grids
    barriers = {cell.communicator: cell.count for cell in run.cells(0, "MPI_Barrier")}
    assert {
        barriers[name] for name in ("MPI_COMM_WORLD", "MPI_COMM_SELF", "gradients", "even")
    } == {1}


def test_messages_between_groups_go_to_world_ranks_of_the_other_group(run):
    exchanged = "SELECT direction, peer FROM peer WHERE call = 'MPI_Sendrecv' ORDER BY direction"
    assert run.query(0, exchanged) == [("received", 1), ("sent", 1)]
    assert run.query(3, exchanged) == [("received", 2), ("sent", 2)]


def test_an_idup_with_info_of_mpi_4_is_known_like_any_other(run, mpi):
    mpi.require("MPI_Comm_idup_with_info")
    made = [run.communicator(rank, "MPI_Comm_idup_with_info") for rank in RANKS]
    assert [each.world_ranks for each in made] == [[0, 1, 2, 3]] * 4
    assert len({each.identity for each in made}) == 1


# The n-th kind of communicator in programs/creation_order.calls is where n integers are reduced;
# and the ranks in it.
KINDS = {
    1: [0, 1],
    2: [0, 2],
    3: [1, 3],
    4: [2, 3],
    **{kind: [0, 1, 2, 3] for kind in range(5, 15)},
}

IDENTITY_OF_KIND = """
    SELECT identity FROM cell JOIN communicator USING (world_rank, communicator)
    WHERE call = 'MPI_Allreduce' AND bytes = 4 * :kind"""


def test_all_ranks_agree_on_identities_which_differ_between_communicators(profile):
    run = profile("creation_order", 4)
    kinds = set()
    for kind, ranks in KINDS.items():
        identities = {tuple(run.query(rank, IDENTITY_OF_KIND, kind=kind)) for rank in ranks}
        assert len(identities) == 1 and len([*identities][0]) == 1, kind
        kinds |= identities
    assert len(kinds) == len(KINDS)
    for rank in RANKS:
        own = [identity for (identity,) in run.query(rank, "SELECT identity FROM communicator")]
        assert len(set(own)) == len(own)
        assert all(re.fullmatch("[0-9a-f]{16}", identity) for identity in own)

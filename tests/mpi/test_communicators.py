"""Communicators: what is known of each (programs/communicators.calls), and that all ranks agree on
which is which (programs/creation_order.calls)."""

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

CALLS = {
    "MPI_Comm_dup": [2, 2, 2, 2],
    "MPI_Comm_dup_with_info": [1, 1, 1, 1],
    "MPI_Comm_idup": [1, 1, 1, 1],
    "MPI_Comm_create": [1, 1, 1, 1],
    "MPI_Comm_create_group": [0, 1, 0, 1],
    "MPI_Comm_split": [3, 3, 3, 3],
    "MPI_Comm_split_type": [1, 1, 1, 1],
    "MPI_Cart_create": [2, 2, 2, 2],
    "MPI_Cart_sub": [1, 1, 1, 1],
    "MPI_Graph_create": [1, 1, 1, 1],
    "MPI_Dist_graph_create": [1, 1, 1, 1],
    "MPI_Dist_graph_create_adjacent": [1, 1, 1, 1],
    "MPI_Intercomm_create": [1, 1, 1, 1],
    "MPI_Intercomm_merge": [1, 1, 1, 1],
    "MPI_Comm_set_name": [2, 2, 2, 2],
    "MPI_Comm_free": [14, 14, 14, 12],
    "MPI_Comm_disconnect": [1, 1, 1, 1],
    "MPI_Barrier": [18, 18, 18, 16],
}


def test_every_call_is_counted(profile):
    run = profile("communicators", 4)
    assert {call: run.counts(call) for call in CALLS} == CALLS


def test_a_communicator_knows_its_members_in_world_ranks(profile):
    run = profile("communicators", 4)
    found = {name: [run.communicators(rank, name) for rank in RANKS] for name in MEMBERS}
    assert {
        name: [each[0].world_ranks if each else None for each in by_rank]
        for name, by_rank in found.items()
    } == MEMBERS


def test_a_communicator_knows_its_size_and_this_process_s_rank(profile):
    run = profile("communicators", 4)
    for rank in RANKS:
        for communicator in (each for name in MEMBERS for each in run.communicators(rank, name)):
            assert communicator.size == len(communicator.world_ranks)
            assert communicator.world_ranks[communicator.comm_rank] == rank
            assert (communicator.is_inter, communicator.remote_size) == (0, 0)


def test_members_are_written_as_ranges(profile):
    run = profile("communicators", 4)
    assert run.communicator(0, "MPI_COMM_WORLD").members == "0-3"
    assert run.communicator(0, "MPI_Comm_create").members == "0,2"
    assert run.communicator(3, "MPI_COMM_SELF").members == "3"


def test_three_members_or_more_with_a_stride_are_written_as_one_range(profile):
    run = profile("strided_members", 5)
    assert run.communicator(0, "even").members == "0-4:2"
    assert run.communicator(1, "odd").members == "1,3"
    assert run.communicator(0, "backwards").members == "4,3,2,1,0"


def test_the_first_three_make_a_cartesian_line_and_rank_3_has_none(profile):
    run = profile("communicators", 4)
    sizes = [
        sorted(each.size for each in run.communicators(rank, "MPI_Cart_create")) for rank in RANKS
    ]
    assert sizes == [[3, 4], [3, 4], [3, 4], [4]]


def test_an_inter_communicator_knows_both_its_sides(profile):
    run = profile("communicators", 4)
    bridges = [run.communicator(rank, "MPI_Intercomm_create") for rank in RANKS]
    assert [(bridge.is_inter, bridge.size, bridge.remote_size) for bridge in bridges] == [
        (1, 2, 2)
    ] * 4
    assert [bridge.comm_rank for bridge in bridges] == [0, 0, 1, 1]
    assert len({bridge.identity for bridge in bridges}) == 1


def test_a_name_given_by_the_job_is_kept_beside_what_made_it(profile):
    run = profile("communicators", 4)
    gradients = run.communicator(0, "gradients")
    assert (gradients.name, gradients.constructor) == ("gradients", "MPI_Comm_dup")
    assert run.communicator(0, "MPI_Comm_dup_with_info").name == ""


def test_a_duplicate_knows_its_parent(profile):
    run = profile("communicators", 4)
    world = run.communicator(2, "MPI_COMM_WORLD")
    assert run.communicator(2, "gradients").parent_identity == world.identity
    assert run.communicator(2, "MPI_Cart_sub").parent_identity in {
        each.identity for each in run.communicators(2, "MPI_Cart_create")
    }


def test_freed_and_disconnected_communicators_are_marked_and_others_are_not(profile):
    run = profile("communicators", 4)
    assert [each.is_freed for each in run.communicators(0, "MPI_Comm_dup")] == [1, 1]
    assert run.communicator(0, "MPI_Comm_dup_with_info").is_freed == 0
    assert run.communicator(0, "MPI_COMM_WORLD").is_freed == 0


def test_calls_are_counted_on_the_communicator_they_are_made_on(profile):
    run = profile("communicators", 4)
    barriers = {cell.communicator: cell.count for cell in run.cells(0, "MPI_Barrier")}
    assert barriers["MPI_COMM_WORLD"] == 1
    assert barriers["MPI_COMM_SELF"] == 1
    assert barriers["gradients"] == 1
    assert barriers["even"] == 1


def test_messages_between_groups_go_to_world_ranks_of_the_other_group(profile):
    run = profile("communicators", 4)
    exchanged = "SELECT direction, peer FROM peer WHERE call = 'MPI_Sendrecv' ORDER BY direction"
    assert run.query(0, exchanged) == [("received", 1), ("sent", 1)]
    assert run.query(3, exchanged) == [("received", 2), ("sent", 2)]


def test_an_idup_with_info_of_mpi_4_is_known_like_any_other(profile, mpi):
    mpi.require("MPI_Comm_idup_with_info")
    run = profile("communicators", 4)
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


def test_all_ranks_of_a_communicator_agree_on_its_identity(profile):
    run = profile("creation_order", 4)
    for kind, ranks in KINDS.items():
        identities = [run.query(rank, IDENTITY_OF_KIND, kind=kind) for rank in ranks]
        assert identities == [identities[0]] * len(ranks), kind
        assert len(identities[0]) == 1, kind


def test_communicators_that_differ_have_different_identities(profile):
    run = profile("creation_order", 4)
    by_rank = [run.query(rank, "SELECT identity FROM communicator") for rank in RANKS]
    assert [len(set(identities)) for identities in by_rank] == [
        len(identities) for identities in by_rank
    ]
    kinds = {run.query(KINDS[kind][0], IDENTITY_OF_KIND, kind=kind)[0] for kind in KINDS}
    assert len(kinds) == len(KINDS)


def test_identities_are_sixteen_hexadecimal_digits(profile):
    run = profile("creation_order", 4)
    odd_ones = (
        "SELECT identity FROM communicator WHERE length(identity) <> 16 OR identity GLOB "
        "'*[^0-9a-f]*'"
    )
    assert run.query(0, odd_ones) == []

"""Sizes that counting in an int gets wrong, and sizes that are nothing."""

import pytest

GIBIBYTE = 1 << 30


def test_messages_above_2_gib_are_counted_in_full(profile):
    run = profile("huge_messages", 2)
    assert run.sizes("MPI_Bcast") == [{3 * GIBIBYTE: (1, 3 * GIBIBYTE)}] * 2
    assert run.sizes("MPI_Allreduce") == [{2400000000: (1, 2400000000)}] * 2
    assert run.sizes("MPI_Gather") == [{3 * GIBIBYTE: (1, 3 * GIBIBYTE)}] * 2
    assert run.sizes("MPI_Allgatherv") == [{3 * GIBIBYTE: (1, 3 * GIBIBYTE)}] * 2
    assert run.sizes("MPI_Send_init") == [{3 * GIBIBYTE: (1, 0)}] * 2


def test_a_receive_posted_above_2_gib_completes_with_the_few_bytes_that_came(profile):
    run = profile("huge_messages", 2)
    assert run.sizes("MPI_Irecv") == [{3 * GIBIBYTE: (1, 0)}] * 2
    assert run.sizes("MPI_Irecv", "completion") == [{4: (1, 0)}] * 2


def test_counts_that_no_int_holds_are_counted_where_mpi_takes_them(profile, mpi):
    run = profile("huge_counts_large", 1)
    # refused: no bytes
    taken = {3000000000: (1, 3000000000)} if mpi.has("MPI_Bcast_c") else {0: (1, 0)}
    assert run.sizes("MPI_Bcast") == [{5: (1, 5), **taken}]
    assert run.sizes("MPI_Allgatherv") == [taken]


def test_counts_that_no_int_holds_are_refused_where_mpi_has_no_large_counts(profile, mpi):
    run = profile("huge_counts_large", 1)
    refusal = 0 if mpi.has("MPI_Bcast_c") else 2  # MPI_ERR_COUNT
    expected = f"Bcast {refusal}\nBcast of 5 0\nAllgatherv {refusal}\nSend_init {refusal}\n"
    assert run.outcome.stdout == expected


@pytest.mark.slow
def test_more_sizes_than_there_is_room_for_are_folded_and_none_is_lost(profile):
    run = profile("many_sizes", 2, env={"COMMPROF_MEMORY": "4M"})
    assert run.counts("MPI_Send") == [20000, 0]
    assert run.counts("MPI_Recv") == [0, 20000]
    sent = sum(cell.volume_bytes for cell in run.cells(0, "MPI_Send"))
    assert sent == sum(range(20000))
    assert run.rank_row(0)["folded_cells"] > 0
    assert run.rank_row(0)["dropped_calls"] == 0


def test_folded_cells_say_so_and_hold_only_sizes_of_their_power_of_two(profile):
    run = profile("many_sizes", 2, env={"COMMPROF_MEMORY": "4M"})
    folded = run.query(
        0, "SELECT bytes, count, volume_bytes FROM cell WHERE call = 'MPI_Send' AND is_folded"
    )
    assert folded
    for bytes, count, volume_bytes in folded:
        assert bytes & (bytes - 1) == 0
        assert count * bytes / 2 <= volume_bytes <= count * bytes

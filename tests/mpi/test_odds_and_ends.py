"""Calls that stand alone: programs/odds_and_ends.c."""


def test_a_status_that_is_asked_for_in_vain_is_a_poll(profile):
    run = profile("odds_and_ends", 2)
    assert run.counts("MPI_Request_get_status") == [1, 1]
    assert [polls >= 1 for polls in run.counts("MPI_Request_get_status", "poll")] == [True, True]


def test_a_request_that_was_only_asked_about_completes_in_the_wait(profile):
    run = profile("odds_and_ends", 2)
    assert run.sizes("MPI_Irecv", "completion") == [{4: (1, 0)}] * 2


def test_ports_and_hints_are_counted(profile):
    run = profile("odds_and_ends", 2)
    assert run.counts("MPI_Open_port") == [1, 1]
    assert run.counts("MPI_Comm_set_info") == [1, 1]


def test_the_queries_and_buffers_of_mpi_4_1_are_counted(profile, mpi):
    mpi.require("MPI_Request_get_status_all")
    run = profile("odds_and_ends", 2)
    for call in ("all", "any", "some"):
        assert (
            sum(
                run.counts(f"MPI_Request_get_status_{call}")
                + run.counts(f"MPI_Request_get_status_{call}", "poll")
            )
            == 2
        )
    for call in (
        "Comm_attach_buffer",
        "Comm_flush_buffer",
        "Comm_detach_buffer",
        "Buffer_attach",
        "Buffer_flush",
        "Buffer_detach",
    ):
        assert run.counts(f"MPI_{call}") == [1, 1], call
    for call in ("Comm_iflush_buffer", "Buffer_iflush"):
        assert run.counts(f"MPI_{call}") == [1, 1], call
        assert run.counts(f"MPI_{call}", "completion") == [1, 1], call

"""A program that looks for functions which its MPI may lack (programs/probing.c). Our library
exports all of them, so they seem to be there: they work, or say MPI_ERR_OTHER, and the program goes
on."""

import pytest


def test_a_function_that_the_library_lacks_fails_without_harm(profile, plain, mpi):
    run = profile("probing", 2)
    without = plain("probing", 2)
    assert run.outcome.exit_status == without.exit_status == 0
    if not mpi.has("MPI_Session_init"):
        # lines of two ranks may run together
        assert without.stdout.count("there are no sessions") == 2
        assert run.outcome.stdout.count("a session: no such thing") == 2
    else:
        assert (
            run.outcome.stdout.count("a session: opened")
            == without.stdout.count("a session: opened")
            == 2
        )
    assert run.files() == ["rank-0.db", "rank-1.db"]


def test_what_was_found_is_counted_under_one_name_with_what_was_known(profile):
    assert profile("probing", 2).sizes("MPI_Allreduce") == [{4: (6, 24)}] * 2


def test_a_job_that_only_opens_a_session_is_recorded_where_there_are_sessions(profile, plain, mpi):
    run = profile("probing", 2, "session")
    assert plain("probing", 2, "session").exit_status == 0
    if not mpi.has("MPI_Session_init"):
        assert not run.folder.exists()
        pytest.skip(f"{mpi.name} has no sessions: the program was told so")
    assert run.outcome.stdout == plain("probing", 2, "session").stdout
    assert run.calls(0) == {"MPI_Session_init", "MPI_Session_finalize"}
    assert (run.rank_row(1)["world_rank"], run.rank_row(1)["world_size"]) == (1, 2)

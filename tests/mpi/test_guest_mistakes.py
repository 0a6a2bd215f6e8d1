"""NULL where MPI wants a place, and frees that MPI refuses (programs/null_pointers.calls): the job
hears of its mistake from MPI, as without the profiler, and what was there before goes on being
counted as what it is."""


def test_null_pointers_are_mpi_s_to_complain_about(profile, plain):
    run = profile("null_pointers", 1)
    assert run.outcome.stdout == plain("null_pointers", 1).stdout
    assert run.outcome.stdout.count("class") >= 23


def test_a_communicator_that_was_not_freed_after_all_is_still_the_same(profile):
    run = profile("null_pointers", 1)
    barriers = {cell.communicator: cell.count for cell in run.cells(0, "MPI_Barrier")}
    assert barriers == {"MPI_COMM_WORLD": 1, "kept": 2}
    assert run.communicator(0, "kept").is_freed == 1
    assert run.communicator(0, "MPI_COMM_WORLD").is_freed == 0

"""The job's arrays are its own (programs/guarded_statuses.c): MPI writes there what it writes
without the profiler, and nobody else."""


def test_the_same_bytes_of_the_same_statuses_are_written(profile, plain):
    run = profile("guarded_statuses", 1)
    assert run.outcome.stdout == plain("guarded_statuses", 1).stdout
    lines = run.outcome.stdout.splitlines()
    assert len(lines) == 14 + 22 + 5 + 5
    # and where MPI leaves MPI_ERROR alone it is not there
    assert sum("error 0" in line for line in lines) > 0
    assert sum("count 1" in line and "error" not in line for line in lines) > 5


def test_completions_with_all_kinds_of_arrays_are_counted_exactly(profile):
    run = profile("guarded_statuses", 1)
    # ten rounds of four receives in complete_all, two in complete_one, and the two that were tested
    # read-only
    assert run.sizes("MPI_Irecv", "completion") == [{4: (10 * 4 + 2 * 4 + 2, 0)}]
    assert run.sizes("MPI_Recv_init", "completion") == [{4: (4, 0)}]
    assert run.sizes("MPI_Isend", "completion") == [{4: (4, 16)}]
    polls = {cell.call: cell.count for cell in run.cells(0, measure="poll")}
    assert polls == {
        "MPI_Iprobe": 2,
        "MPI_Test": 1,
        "MPI_Testall": 1,
        "MPI_Testany": 1,
        "MPI_Testsome": 1,
    }
    assert run.rank_row(0)["untracked_requests"] == 0

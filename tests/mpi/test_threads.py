"""Four threads on each of two ranks call at once (programs/threads.c): 500 messages and 200
reductions each."""


def test_calls_of_all_threads_add_up(profile):
    run = profile("threads", 2)
    assert run.sizes("MPI_Send") == [
        {4: (500, 2000), 8: (500, 4000), 12: (500, 6000), 16: (500, 8000)},
        {},
    ]
    assert run.sizes("MPI_Allreduce") == [{32: (800, 25600)}] * 2


def test_receives_of_all_threads_complete(profile):
    run = profile("threads", 2)
    assert run.sizes("MPI_Irecv") == [{}, {32: (2000, 0)}]
    assert run.sizes("MPI_Irecv", "completion") == [
        {},
        {4: (500, 0), 8: (500, 0), 12: (500, 0), 16: (500, 0)},
    ]
    assert run.counts("MPI_Wait") == [0, 2000]


def test_each_duplicate_has_the_reductions_of_its_thread(profile):
    run = profile("threads", 2)
    by_communicator = (
        "SELECT SUM(count) FROM cell WHERE call = 'MPI_Allreduce' GROUP BY communicator"
    )
    assert run.query(0, by_communicator) == [(200,), (200,), (200,), (200,)]


def test_no_cell_belongs_to_the_main_thread_but_what_it_called(profile):
    run = profile("threads", 2)
    by_main = (
        "SELECT DISTINCT call FROM cell JOIN thread USING (world_rank, thread) WHERE "
        "is_main "
        "ORDER BY call"
    )
    assert run.query(1, by_main) == [
        ("MPI_Comm_dup",),
        ("MPI_Comm_free",),
        ("MPI_Finalize",),
        ("MPI_Init_thread",),
    ]


def test_no_thread_spends_more_time_in_mpi_than_the_job_lasted(profile):
    run = profile("threads", 2)
    busiest = (
        "SELECT MAX(busy) FROM (SELECT SUM(total_ns) AS busy FROM cell WHERE measure <> "
        "'completion' GROUP BY thread)"
    )
    assert run.query(0, busiest)[0][0] <= run.rank_row(0)["wall_ns"]

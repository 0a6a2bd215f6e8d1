"""The single calls that real ranks keep: in a short run all of them, and the same as were
counted."""

import pytest

COUNTED = "SELECT call, sum(count) FROM cell WHERE measure = 'call' GROUP BY call ORDER BY call"
KEPT = "SELECT call, count(*) FROM sample GROUP BY call ORDER BY call"
MISNUMBERED = """
    SELECT communicator, sequence, recent_collective.call, sample.call
    FROM recent_collective LEFT JOIN sample USING (world_rank, communicator, sequence)
    WHERE sample.call IS NOT recent_collective.call"""
COVERED = (
    "SELECT DISTINCT begin_ns, end_ns = wall_ns FROM sample_window JOIN rank USING (world_rank)"
)
TORN = "SELECT * FROM sample WHERE completed_ns < end_ns OR end_ns > (SELECT wall_ns FROM rank)"
PROGRAMS = (
    ("collectives", 4),
    ("collectives_nonblocking", 4),
    ("point_to_point", 2),
    ("completion", 2),
)


def for_all_ranks(run, sql):
    return [run.query(rank, sql) for rank in range(run.ranks)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program[0])
def test_a_short_run_samples_every_call_with_its_number_and_times(profile, program):
    """Numbers are those that collectives were announced with; times follow each other; the windows
    cover the run."""
    run = profile(*program)
    assert for_all_ranks(run, KEPT) == for_all_ranks(run, COUNTED)
    assert for_all_ranks(run, MISNUMBERED) == [[]] * run.ranks
    assert for_all_ranks(run, TORN) == [[]] * run.ranks
    assert for_all_ranks(run, COVERED) == [[(0, 1)]] * run.ranks


def test_nonblocking_collectives_were_seen_to_complete(profile):
    run = profile("overlap", 2)
    completed = (
        "SELECT call, count(*), count(completed_ns) FROM sample WHERE call LIKE 'MPI_I%' "
        "AND sequence > 0 GROUP BY call"
    )
    assert for_all_ranks(run, completed) == [[("MPI_Iallreduce", 21, 21), ("MPI_Ibcast", 1, 1)]] * 2


KEPT_OF_WORLD = """
    SELECT sequence FROM sample JOIN communicator USING (communicator)
    WHERE name = 'MPI_COMM_WORLD' ORDER BY sequence"""
OUTSIDE = """
    SELECT sequence FROM sample WHERE NOT EXISTS
        (SELECT * FROM sample_window AS w WHERE w.thread = sample.thread
            AND sample.end_ns BETWEEN w.begin_ns AND w.end_ns)"""
INCOMPLETE = """
    SELECT w.begin_ns, count(*), max(sequence) - min(sequence) + 1 AS span
    FROM sample_window AS w JOIN sample ON sample.thread = w.thread
        AND sample.end_ns BETWEEN w.begin_ns AND w.end_ns
        JOIN communicator USING (communicator)
    WHERE name = 'MPI_COMM_WORLD' AND sequence > 0 GROUP BY w.thread, w.begin_ns
        HAVING count(*) <> span"""


@pytest.mark.slow
def test_many_calls_within_a_second_are_all_kept(profile):
    run = profile("filling_logs", 2)
    assert run.query(1, KEPT) == run.query(1, COUNTED)
    assert run.query(1, COVERED) == [(0, 1)]


def test_a_full_log_has_all_calls_of_the_windows_that_it_covers(profile):
    run = profile("filling_logs", 2, env={"COMMPROF_SAMPLES": "1M"})
    kept = [len(rows) for rows in for_all_ranks(run, KEPT_OF_WORLD)]
    # 272 pages of 64 samples; none at all if a busy machine let the rank run in other windows alone
    assert max(kept) < 17_408, kept
    assert for_all_ranks(run, OUTSIDE) == for_all_ranks(run, INCOMPLETE) == [[], []]


def test_a_job_may_keep_none(profile):
    run = profile("collectives", 4, env={"COMMPROF_SAMPLES": "0"})
    for table in ("sample", "sample_window"):
        assert for_all_ranks(run, f"SELECT * FROM {table}") == [[]] * 4

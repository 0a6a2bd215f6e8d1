"""The single calls that real ranks keep: in a short run all of them, and the same as were counted."""

import pytest

COUNTED = "SELECT call, sum(count) FROM cell WHERE measure = 'call' GROUP BY call ORDER BY call"
KEPT = "SELECT call, count(*) FROM sample GROUP BY call ORDER BY call"
MISNUMBERED = """
    SELECT communicator, sequence, recent_collective.call, sample.call
    FROM recent_collective LEFT JOIN sample USING (world_rank, communicator, sequence)
    WHERE sample.call IS NOT recent_collective.call"""
TORN = "SELECT * FROM sample WHERE completed_ns < end_ns OR end_ns > (SELECT wall_ns FROM rank)"
PROGRAMS = (("collectives", 4), ("collectives_nonblocking", 4), ("point_to_point", 2), ("completion", 2))


@pytest.fixture(params=PROGRAMS, ids=lambda program: program[0])
def run(request, profile):
    return profile(*request.param)


def for_all_ranks(run, sql):
    return [run.query(rank, sql) for rank in range(run.ranks)]


def test_every_call_that_was_counted_was_sampled(run):
    assert for_all_ranks(run, KEPT) == for_all_ranks(run, COUNTED)


def test_collectives_have_the_numbers_that_they_were_announced_with(run):
    assert for_all_ranks(run, MISNUMBERED) == [[]] * run.ranks


def test_times_follow_each_other(run):
    assert for_all_ranks(run, TORN) == [[]] * run.ranks


def test_the_windows_cover_the_run(run):
    windows = for_all_ranks(run, "SELECT DISTINCT begin_ns, end_ns = wall_ns FROM sample_window JOIN rank USING (world_rank)")
    assert windows == [[(0, 1)]] * run.ranks


def test_nonblocking_collectives_were_seen_to_complete(profile):
    run = profile("overlap", 2)
    completed = "SELECT call, count(*), count(completed_ns) FROM sample WHERE call LIKE 'MPI_I%' AND sequence > 0 GROUP BY call"
    assert for_all_ranks(run, completed) == [[("MPI_Iallreduce", 21, 21), ("MPI_Ibcast", 1, 1)]] * 2


LEVEL = "SELECT sample_level FROM communicator WHERE name = 'MPI_COMM_WORLD'"
KEPT_OF_WORLD = "SELECT sequence FROM sample JOIN communicator USING (communicator) WHERE name = 'MPI_COMM_WORLD' ORDER BY sequence"


def test_ranks_whose_logs_fill_at_different_times_have_the_same_calls_in_common(profile):
    run = profile("filling_logs", 2, env={"COMMPROF_SAMPLES": "256K"})
    levels = [level for [(level,)] in for_all_ranks(run, LEVEL)]
    kept = [[sequence for (sequence,) in rows] for rows in for_all_ranks(run, KEPT_OF_WORLD)]
    assert levels[0] > levels[1] > 0
    assert kept == [[sequence for sequence in range(1, 20_001) if ((sequence - 1) // 1024 + 1) % 2**level == 0] for level in levels]
    assert set(kept[0]) < set(kept[1])


KEPT_BY_COMMUNICATOR = """
    SELECT identity, group_concat(sequence) FROM
        (SELECT identity, sequence FROM sample JOIN communicator USING (communicator) WHERE sequence > 0 ORDER BY identity, sequence)
    GROUP BY identity"""


def test_a_communicator_that_comes_after_many_others_has_samples_on_all_ranks(profile):
    run = profile("busy_communicators", 2)
    second_block = [(sequence,) for sequence in range(1_025, 1_301)]  # 100 of the first were Comm_dup
    assert [rows[-276:] for rows in for_all_ranks(run, KEPT_OF_WORLD)] == [second_block] * 2
    of_all = for_all_ranks(run, KEPT_BY_COMMUNICATOR)
    assert len(set(of_all[0]) & set(of_all[1])) >= 60


def test_a_job_may_keep_none(profile):
    run = profile("collectives", 4, env={"COMMPROF_SAMPLES": "0"})
    assert [run.query(rank, f"SELECT * FROM {table}") for rank in range(4) for table in ("sample", "sample_window")] == [[]] * 8

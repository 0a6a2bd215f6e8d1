"""Truths of every database, whatever the job did."""

import re
import sys

import pytest

from .libraries import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests" / "report"))
from known_calls import CALLS

pytestmark = pytest.mark.slow

SCHEMA_VERSION = int(
    re.search(r"user_version = (\d+)", (REPOSITORY / "src/output/schema.sql").read_text())[1]
)
RUNS = {
    "point_to_point": 2, "nonblocking": 2, "persistent": 2, "completion": 2, "collectives": 4,
    "collectives_nonblocking_large": 4, "communicators": 4, "creation_order": 4, "threads": 2,
    "many_requests": 2, "equal_handles": 2, "many_calls": 2, "overlap": 2,
}


@pytest.fixture(params=RUNS)
def run(profile, request):
    return profile(request.param, RUNS[request.param])


def for_all_ranks(run, sql):
    return [row for rank in range(run.ranks) for row in run.query(rank, sql)]


def test_the_database_is_sound_and_of_this_schema(run):
    assert for_all_ranks(run, "PRAGMA integrity_check") == [("ok",)] * run.ranks
    assert for_all_ranks(run, "PRAGMA application_id") == [(1668116582,)] * run.ranks
    assert for_all_ranks(run, "PRAGMA user_version") == [(SCHEMA_VERSION,)] * run.ranks


def test_a_cell_s_histogram_holds_all_its_calls(run):
    unlike = """SELECT call, cell.count, SUM(bucket.count) AS in_buckets
                FROM cell LEFT JOIN bucket USING (cell)
                GROUP BY cell HAVING in_buckets IS NOT cell.count"""
    assert for_all_ranks(run, unlike) == []


def test_minimum_and_maximum_lie_in_the_first_and_last_bucket_in_use(run):
    unlike = """SELECT call, min_ns, max_ns, MIN(low_ns), MAX(high_ns)
                FROM cell JOIN bucket USING (cell) JOIN bucket_bound USING (bucket) GROUP BY cell
                HAVING min_ns < MIN(low_ns) OR min_ns >= MIN(high_ns) OR max_ns < MAX(low_ns)
                    OR max_ns >= MAX(high_ns)"""
    assert for_all_ranks(run, unlike) == []


def test_the_total_lies_between_count_times_minimum_and_count_times_maximum(run):
    unlike = (
        "SELECT * FROM cell WHERE min_ns > max_ns OR total_ns NOT BETWEEN count * min_ns AND "
        "count * max_ns"
    )
    assert for_all_ranks(run, unlike) == []


def test_nothing_takes_longer_than_the_whole_run(run):
    assert (
        for_all_ranks(
            run,
            "SELECT call, max_ns, wall_ns FROM cell JOIN rank USING (world_rank) WHERE max_ns > "
            "wall_ns",
        )
        == []
    )


def test_no_cell_is_empty_and_only_completions_are_blocked(run):
    unlike = """SELECT * FROM cell WHERE count < 1 OR blocked_ns < 0 OR blocked_ns > total_ns
                OR (measure <> 'completion' AND blocked_ns <> 0)"""
    assert for_all_ranks(run, unlike) == []


def test_cells_name_calls_threads_and_communicators_that_exist(run):
    assert (
        for_all_ranks(run, "SELECT call FROM cell WHERE call NOT IN (SELECT name FROM call)") == []
    )
    assert (
        for_all_ranks(
            run, "SELECT thread FROM cell WHERE thread NOT IN (SELECT thread FROM thread)"
        )
        == []
    )
    homeless = """SELECT call, communicator FROM cell
                  WHERE communicator <> 0 AND communicator NOT IN (SELECT communicator
                      FROM communicator)"""
    assert for_all_ranks(run, homeless) == []


def test_calls_are_described_as_their_tables_say(run):
    described = set(
        for_all_ranks(run, "SELECT name, family, library, form, bandwidth, waits_for FROM call")
    )
    assert described and described <= set(CALLS.values())


def test_nothing_was_dropped_or_folded(run):
    lost = "SELECT dropped_calls, untracked_requests, folded_cells, folded_communicators FROM rank"
    assert for_all_ranks(run, lost) == [(0, 0, 0, 0)] * run.ranks


def test_all_ranks_belong_to_one_run(run):
    assert len(set(for_all_ranks(run, "SELECT run_id FROM rank"))) == 1


def test_everything_is_on_the_host_where_there_is_no_gpu(run):
    assert set(for_all_ranks(run, "SELECT DISTINCT memory_kind FROM cell")) == {("host",)}

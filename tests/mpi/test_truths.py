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
    "point_to_point": 2,
    "nonblocking": 2,
    "persistent": 2,
    "completion": 2,
    "collectives": 4,
    "collectives_nonblocking_large": 4,
    "communicators": 4,
    "creation_order": 4,
    "threads": 2,
    "many_requests": 2,
    "equal_handles": 2,
    "many_calls": 2,
    "overlap": 2,
}


# Rows that contradict them.
UNTRUE = {
    "a cell's histogram holds all its calls": """
        SELECT call, cell.count, SUM(bucket.count) AS in_buckets
        FROM cell LEFT JOIN bucket USING (cell) GROUP BY cell
        HAVING in_buckets IS NOT cell.count""",
    "minimum and maximum lie in the first and last bucket in use": """
        SELECT call, min_ns, max_ns, MIN(low_ns), MAX(high_ns)
        FROM cell JOIN bucket USING (cell) JOIN bucket_bound USING (bucket) GROUP BY cell
        HAVING min_ns < MIN(low_ns) OR min_ns >= MIN(high_ns) OR max_ns < MAX(low_ns)
            OR max_ns >= MAX(high_ns)""",
    "the total lies between count times minimum and count times maximum": """
        SELECT * FROM cell WHERE min_ns > max_ns
            OR total_ns NOT BETWEEN count * min_ns AND count * max_ns""",
    "nothing takes longer than the whole run": """
        SELECT call, max_ns, wall_ns FROM cell JOIN rank USING (world_rank)
        WHERE max_ns > wall_ns""",
    "no cell is empty, and only completions are blocked": """
        SELECT * FROM cell WHERE count < 1 OR blocked_ns < 0 OR blocked_ns > total_ns
            OR (measure <> 'completion' AND blocked_ns <> 0)""",
    "cells name calls that exist": """
        SELECT call FROM cell WHERE call NOT IN (SELECT name FROM call)""",
    "cells name threads that exist": """
        SELECT thread FROM cell WHERE thread NOT IN (SELECT thread FROM thread)""",
    "cells name communicators that exist": """
        SELECT call, communicator FROM cell WHERE communicator <> 0
            AND communicator NOT IN (SELECT communicator FROM communicator)""",
    "nothing was dropped or folded": """
        SELECT dropped_calls, untracked_requests, folded_cells, folded_communicators FROM rank
        WHERE dropped_calls OR untracked_requests OR folded_cells OR folded_communicators""",
    "everything is on the host where there is no GPU": """
        SELECT call, memory_kind FROM cell WHERE memory_kind <> 'host'""",
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
    assert len(set(for_all_ranks(run, "SELECT run_id FROM rank"))) == 1


def test_no_row_contradicts_what_is_always_true(run):
    found = {truth: for_all_ranks(run, sql) for truth, sql in UNTRUE.items()}
    assert found == dict.fromkeys(UNTRUE, [])


def test_calls_are_described_as_their_tables_say(run):
    described = set(
        for_all_ranks(run, "SELECT name, family, library, form, bandwidth, waits_for FROM call")
    )
    assert described and described <= set(CALLS.values())

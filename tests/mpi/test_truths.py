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
RUNS = dict.fromkeys(
    "point_to_point nonblocking persistent completion threads many_requests equal_handles "
    "many_calls overlap".split(),
    2,
) | dict.fromkeys(
    "collectives collectives_nonblocking_large communicators creation_order".split(), 4
)


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


def test_the_database_is_sound_of_this_schema_and_contradicts_nothing_that_is_always_true(run):
    for pragma, value in (
        ("integrity_check", "ok"),
        ("application_id", 1668116582),
        ("user_version", SCHEMA_VERSION),
    ):
        assert for_all_ranks(run, f"PRAGMA {pragma}") == [(value,)] * run.ranks
    assert len(set(for_all_ranks(run, "SELECT run_id FROM rank"))) == 1
    found = {truth: for_all_ranks(run, sql) for truth, sql in UNTRUE.items()}
    assert found == dict.fromkeys(UNTRUE, [])
    described = "SELECT name, family, library, form, bandwidth, waits_for FROM call"
    assert set() < set(for_all_ranks(run, described)) <= set(CALLS.values())

"""Jobs of a year, of ten billion calls, of a hundred thousand ranks; clocks that jump. Nothing runs
over, nothing is refused."""

from __future__ import annotations


import planted
import pytest
from planted import SECOND, START_UNIX_NS, Cell, Rank

YEAR_NS = 366 * 86_400 * SECOND
NEAR_NS = 4 << 60  # half of what a 64-bit integer holds: three of these run over
COMMANDS = "summary; calls; sizes; sizes --per-rank --bins hvprof; latency; communicators; ranks; "
COMMANDS += "ranks --per-rank; peers; stuck"


def run_of(folder, change: str):
    """The planted run of four ranks, with something done to each of its databases."""
    planted.write_databases(folder, planted.training_run())
    for path in folder.glob("*.db"):
        planted.execute(path, change)
    return folder


@pytest.fixture(scope="module")
def enormous(tmp_path_factory):
    """Each number is as large as a file may have it, on each of four ranks."""
    return run_of(
        tmp_path_factory.mktemp("enormous"),
        f"UPDATE cell SET count = {NEAR_NS}, volume_bytes = {NEAR_NS}, total_ns = {NEAR_NS}, "
        f"max_ns = {NEAR_NS}, blocked_ns = 7;"
        f"UPDATE bucket SET count = {NEAR_NS};"
        f"UPDATE peer SET count = {NEAR_NS}, bytes = {NEAR_NS}, time_ns = {NEAR_NS};"
        f"UPDATE rank SET wall_ns = {NEAR_NS}, counted_ns = {NEAR_NS}, dropped_calls = {NEAR_NS}, "
        f"cost_init_ns = {NEAR_NS}",
    )


@pytest.mark.parametrize("words", COMMANDS.split("; "))
def test_sums_beyond_64_bits_are_answered(report, enormous, words):
    answer = report(*words.split(), enormous, "--json")
    assert (answer.status, answer.err) == (0, "")
    assert answer.rows


def test_a_sum_is_exact_as_long_as_64_bits_hold_it_and_a_float_beyond(report, enormous):
    by_call = {row["call"]: row for row in report("calls", enormous, "--json").rows}
    assert by_call["MPI_Bcast"]["blocked_ns"] is None
    assert by_call["MPI_Iallreduce"]["blocked_ns"] == 28
    count = by_call["MPI_Bcast"]["count"]
    assert count == float(4 * NEAR_NS) and isinstance(count, float)
    assert f"~{4 * NEAR_NS:,}" in report("calls", enormous).out
    one = {row["call"]: row for row in report("calls", enormous, "--rank", "0", "--json").rows}
    assert one["MPI_Bcast"]["count"] == NEAR_NS and isinstance(one["MPI_Bcast"]["count"], int)


@pytest.mark.parametrize("write", (planted.write_databases, planted.write_ledgers))
def test_a_year_of_ten_billion_calls_is_read(report, tmp_path, write):
    calls = 10**10
    cells = [Cell("MPI_Allreduce", 4 << 20, [YEAR_NS // calls], times=calls)]
    run = write(tmp_path, [Rank(0, 1, wall_ns=YEAR_NS, cells=cells)])
    answer = report("calls", run, "--json")
    assert answer.err == ""
    row = answer.rows[0]
    assert (row["count"], row["total_ns"]) == (calls, YEAR_NS // calls * calls)
    assert row["volume_bytes"] == calls * (4 << 20)
    assert report("ranks", tmp_path, "--per-rank", "--json").rows[0]["wall_ns"] == YEAR_NS


@pytest.mark.parametrize("write", (planted.write_databases, planted.write_ledgers))
def test_ranks_of_a_run_stay_together_when_the_wall_clock_is_set_back(report, tmp_path, write):
    ranks = planted.training_run()
    for rank in ranks:
        rank.start_unix_ns += rank.world_rank * SECOND // 10
        rank.end_unix_ns = START_UNIX_NS - 3_600 * SECOND
    answer = report("summary", write(tmp_path, ranks), "--json")
    assert (answer.err, answer.rows[0]["ranks_read"]) == ("", 4)
    assert answer.rows[0]["wall_ns"] == 10 * SECOND


def test_a_process_that_was_suspended_has_a_long_call_and_nothing_else(report, tmp_path):
    """Time passes on the clock of its calls while it is stopped."""
    day_ns = 86_400 * SECOND
    cells = [Cell("MPI_Barrier", 0, [1_000] * 99 + [29 * day_ns])]
    planted.write_ledgers(tmp_path, [Rank(0, 1, wall_ns=30 * day_ns, cells=cells)])
    (row,) = report("calls", tmp_path, "--json").rows
    assert 1_000 <= row["p50_ns"] <= row["p99_ns"] <= 1_024
    assert row["max_ns"] == 29 * day_ns
    (rank,) = report("ranks", tmp_path, "--per-rank", "--json").rows
    assert rank["mpi_share"] == pytest.approx(29 / 30)

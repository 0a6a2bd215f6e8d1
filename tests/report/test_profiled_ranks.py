"""A run of which COMMPROF_RANKS chose some ranks: every report says so, and nobody is called
missing who was not to be profiled."""

from __future__ import annotations

import json
from pathlib import Path

from cases import of
import planted
import pytest


@pytest.fixture
def chosen(tmp_path):
    """The planted run of four ranks, with this setting and the files of these ranks."""

    def write(setting: str, *ranks: int) -> Path:
        run = planted.training_run()
        for rank in run:
            rank.facts["settings.COMMPROF_RANKS"] = setting
        return planted.write_databases(tmp_path / "run", [run[rank] for rank in ranks])

    return write


@pytest.mark.parametrize(
    ("setting", "ranks"),
    [("0-3:2", (0, 2)), ("one-per-node", (0, 3)), ("1,3-3", (1, 3)), ("0-2,2-900", (0, 1, 2, 3))],
)
def test_ranks_that_were_not_chosen_are_not_missing(report, chosen, setting, ranks):
    answer = report("summary", chosen(setting, *ranks))
    assert answer.err == ""
    assert f"{len(ranks)} of 4 ranks (chosen: {setting})" in answer.out or (
        len(ranks) == 4 and f"4 ranks (chosen: {setting})" in answer.out
    )


def test_a_chosen_rank_without_a_file_is_missing(report, chosen):
    run = chosen("0-3:2", 0)
    planted.write_databases(run, [planted.training_run()[1]])
    answer = report("summary", run, "--json")
    assert "rank 2 of 4 is missing" in answer.err
    (row,) = answer.rows
    assert of(row, "ranks_read missing_ranks profiled_ranks") == (2, 1, "0-3:2")


def test_late_says_that_it_is_of_a_part(report, chosen):
    run = chosen("0-3:2", 0, 2)
    part = (
        "Part            2 of 4 ranks were chosen to be profiled (0-3:2): late ranks may be "
        "among the others"
    )
    assert part in report("late", run).out
    assert "Not read" not in report("late", run).out


def test_stuck_accuses_no_rank_that_was_not_chosen(report, chosen):
    answer = report("stuck", chosen("0-3:2", 0, 2), "--json")
    assert "left no file" not in json.dumps(answer.rows)
    assert {row["rank"] for row in answer.rows if row["kind"] == "position"} <= {0, 2}


@pytest.mark.parametrize("setting", ["", "rubbish", "3-", "0-16777215:0", "9" * 20, "0-999999999"])
def test_a_setting_that_says_nothing_chooses_all(report, chosen, setting):
    answer = report("summary", chosen(setting, 0, 2), "--json")
    assert "ranks 1,3 of 4 are missing" in answer.err

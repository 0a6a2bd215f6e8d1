"""Each line of the table of thresholds from both sides: an example in which what is compared is
just below the threshold, and one in which it is just above."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from commprof_report.base.thresholds import TABLE, Threshold
from threshold_examples import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
NEAR = 0.02  # of the value


def sides(each: Threshold) -> tuple[float, float]:
    step = 1 if isinstance(each.value, int) else NEAR * each.value
    return each.value - step, each.value + step


@pytest.mark.parametrize("each", TABLE, ids=lambda each: each.name)
def test_what_is_said_changes_at_the_threshold(each):
    example = EXAMPLES[each.name]
    assert tuple(map(example, sides(each))) == (each.below, each.above)


def test_each_line_has_its_own_name_and_two_outcomes():
    assert len({each.name for each in TABLE}) == len(TABLE)
    assert EXAMPLES.keys() == {each.name for each in TABLE}
    assert [each.name for each in TABLE if each.below == each.above] == []


def test_the_documents_have_the_table():
    """docs/thresholds.py prints it."""
    rows = csv.reader((ROOT / "docs" / "thresholds.csv").read_text().splitlines())
    assert list(rows) == [list(map(str, row)) for row in (Threshold._fields, *sorted(TABLE))]

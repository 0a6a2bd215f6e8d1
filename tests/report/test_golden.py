"""Each command says with --json what it said when the golden values were taken."""

from __future__ import annotations

import golden


def test_every_command_says_what_it_said():
    assert list(golden.changed()) == [], "`make golden TAKE=1` takes what is meant"


def test_a_change_is_shown_by_its_place():
    rows = [{"call": "MPI_Bcast", "count": 3}, {"call": "MPI_Send"}]
    other = [{"call": "MPI_Bcast", "count": 4, "bytes": 8}]
    assert list(golden.differences(rows, other)) == [
        ": 2 -> 1 rows",
        " 0 count: 3 -> 4",
        ' 0 bytes: "nothing" -> 8',
    ]

"""Tables as people see them: each head names one column."""

from __future__ import annotations

import csv
import io

import planted
import pytest
from commprof_report.display import render


def read_back(*values: object) -> list[str]:
    file = io.StringIO(newline="")
    render.write_csv(file, ["=head", *map(str, range(1, len(values)))], [values])
    return next(csv.reader(file.getvalue().splitlines()[1:]))


FORMULAS = (
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    '=HYPERLINK("http://x")',
    "-1,0",
    "'=1",
    "\uff1d1",
    "-0x10",
    "-inf",
)


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_in_csv_is_a_formula(text):
    assert read_back("x", text) == ["x", f"'{text}"]


def test_numbers_and_other_texts_stay_as_they_are_in_csv():
    values = [-1, -1.5, "", "-", "-1", "+2", "-1.5e-9", "a=1", "0-3", "MPI_Send", " x", "~", "a,=b"]
    assert read_back(None, *values) == ["", *map(str, values)]


TABLE = ["export", "--csv", "--table", "communicator"]


@pytest.mark.parametrize(
    "words", (["communicators", "--csv"], TABLE, ["export", "--csv", "--table", "named_cell"])
)
def test_names_from_programs_are_no_formulas_in_any_csv(report, tmp_path, words):
    ranks = planted.training_run()
    for rank in ranks:
        rank.communicators[-1].name = "=1+1"
    folder = planted.write_databases(tmp_path / "run", ranks)
    answer = report(*words, folder)
    assert answer.status == 0 and "'=1+1" in answer.out and ",=1+1" not in answer.out

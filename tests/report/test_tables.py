"""Tables as people see them: each head names one column."""

from __future__ import annotations

import csv
import io

import planted
import pytest
from commprof_report.base import units
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


# Numbers as people read them.

S = 10**9
SIZES = (
    0,
    1_000,
    1_024,
    1_536,
    4 << 20,
    3 << 30,
    1_152 << 10,
    78_000,
    4_200_000,
    98 * 1024.0,
    98.5,
)
TEXTS = {
    # three digits and a fitting unit
    units.duration: (
        (None, 0, 999, 1_000, 12_345, 999_950, 123_456_789, 59 * S, 119 * S, 150 * S, 7_199 * S)
        + (11_520 * S, 187_000 * S),
        "-; 0 ns; 999 ns; 1.00 us; 12.3 us; 1.00 ms; 123 ms; 59.0 s; 119 s; 2.50 min; 120 min; "
        "3 h 12 min; 2 d 4 h",
    ),
    # binary where that is exact
    units.size: (
        SIZES,
        "0 B; 1,000 B; 1 KiB; 1,536 B; 4 MiB; 3 GiB; 1.18 MB; 78.0 KB; 4.20 MB; 98 KiB; 98 B",
    ),
    # in percent unless it is a factor
    units.change: (
        (None, 0.0, -0.062, 0.0996, 0.99, 1.0, -0.94, -0.9979),
        "-; +0.0 %; -6.2 %; +10 %; +99 %; x2; -94 %; x0.0021",
    ),
    units.share: (
        (0, 0.00001, 0.005, 0.345, -0.024, -0.00001),
        "0.00 %; < 0.01 %; 0.50 %; 34.5 %; -2.4 %; > -0.01 %",
    ),
}


@pytest.mark.parametrize("text_of", TEXTS)
def test_a_number_is_written_as_people_read_it(text_of):
    values, texts = TEXTS[text_of]
    assert [text_of(value) for value in values] == texts.split("; ")


def test_a_range_of_sizes_reads_above_and_up_to():
    ranges = ((8, 8), (513, 1_024), ((64 << 20) + 1, None), (100, 200))
    texts = ["8 B", "512 B - 1 KiB", "above 64 MiB", "100 B - 200 B"]
    assert [units.size_range(*each) for each in ranges] == texts

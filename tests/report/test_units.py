"""Numbers as people read them."""

from __future__ import annotations

import pytest
from commprof_report.base import units


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


def test_a_sum_of_hours_is_in_hours():
    terms = [(10_800 * S, "waiting"), (1_800 * S, "transfer")]
    assert units.sum_text(terms) == "3.50 h = 3.00 waiting + 0.50 transfer"


def test_a_range_of_sizes_reads_above_and_up_to():
    ranges = ((8, 8), (513, 1_024), ((64 << 20) + 1, None), (100, 200))
    texts = ["8 B", "512 B - 1 KiB", "above 64 MiB", "100 B - 200 B"]
    assert [units.size_range(*each) for each in ranges] == texts


@pytest.mark.parametrize(
    "said, name",
    [
        (
            "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May "
            "26, 2022",
            "Open MPI 4.1.4",
        ),
        ("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022", "MPICH 4.0.2"),
        ("Intel(R) MPI Library 2021.19 for Linux* OS\n", "Intel MPI 2021.19"),
        ("MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Release date :\t", "MVAPICH2 2.3.7"),
        (
            "MPI VERSION    : CRAY MPICH version 8.1.23.11 (ANL base 3.4a2)\nMPI BUILD INFO :",
            "CRAY MPICH 8.1.23.11 (ANL base 3.4a2)",
        ),
        ("", ""),
    ],
)
def test_a_library_has_a_short_name_and_keeps_it(said, name):
    assert units.library_name(said) == units.library_name(name) == name


def test_ranks_are_listed_in_spans():
    assert units.rank_list([5, 0, 1, 2]) == "0-2,5"


def test_control_characters_are_spelled_out():
    assert units.visible("a\x1b[2J\u202eb\n") == "a\\x1b[2J\\u202eb\\x0a"

"""Numbers as people read them."""

from __future__ import annotations

import pytest
from commprof_report.base import units


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "-"),
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 us"),
        (12_345, "12.3 us"),
        (999_950, "1.00 ms"),
        (123_456_789, "123 ms"),
        (59 * 10**9, "59.0 s"),
        (119 * 10**9, "119 s"),
        (150 * 10**9, "2.50 min"),
        (7_199 * 10**9, "120 min"),
        (11_520 * 10**9, "3 h 12 min"),
        (187_000 * 10**9, "2 d 4 h"),
    ],
)
def test_a_duration_has_three_digits_and_a_fitting_unit(ns, text):
    assert units.duration(ns) == text


def test_a_sum_of_hours_is_in_hours():
    terms = [(10_800 * 10**9, "waiting"), (1_800 * 10**9, "transfer")]
    assert units.sum_text(terms) == "3.50 h = 3.00 waiting + 0.50 transfer"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1_000, "1,000 B"),
        (1_024, "1 KiB"),
        (1_536, "1,536 B"),
        (4 << 20, "4 MiB"),
        (3 << 30, "3 GiB"),
        (1_152 << 10, "1.18 MB"),
        (78_000, "78.0 KB"),
        (4_200_000, "4.20 MB"),
        (98.0 * 1_024, "98 KiB"),
        (98.5, "98 B"),
    ],
)
def test_a_size_is_binary_where_that_is_exact(size, text):
    assert units.size(size) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (8, 8, "8 B"),
        (513, 1_024, "512 B - 1 KiB"),
        ((64 << 20) + 1, None, "above 64 MiB"),
        (100, 200, "100 B - 200 B"),
    ],
)
def test_a_range_of_sizes_reads_above_and_up_to(low, high, text):
    assert units.size_range(low, high) == text


@pytest.mark.parametrize(
    "part, text",
    [
        (None, "-"),
        (0.0, "+0.0 %"),
        (-0.062, "-6.2 %"),
        (0.0996, "+10 %"),
        (0.99, "+99 %"),
        (1.0, "x2"),
        (-0.94, "-94 %"),
        (-0.9979, "x0.0021"),
    ],
)
def test_a_change_is_in_percent_unless_it_is_a_factor(part, text):
    assert units.change(part) == text


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


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (0, "0.00 %"),
        (0.00001, "< 0.01 %"),
        (0.005, "0.50 %"),
        (0.345, "34.5 %"),
        (-0.024, "-2.4 %"),
        (-0.00001, "> -0.01 %"),
    ],
)
def test_a_share_is_in_percent(part, text):
    assert units.share(part) == text


def test_control_characters_are_spelled_out():
    assert units.visible("a\x1b[2J\u202eb\n") == "a\\x1b[2J\\u202eb\\x0a"

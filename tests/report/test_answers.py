"""Exact numbers of every command on the planted run."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("total", "total_ns"),
        ("count", "count"),
        ("volume", "volume_bytes"),
        ("bytes", "bytes"),
        ("mean", "mean_ns"),
    ],
)
def test_sizes_can_be_sorted_and_cut(report, run_folder, order, key):
    values = [row[key] for row in report("sizes", run_folder, "--json").rows]
    shown = [
        row[key]
        for row in report("sizes", run_folder, "--json", "--sort", order, "--top", "3").rows
    ]
    assert values != sorted(values, reverse=True) and shown == sorted(values, reverse=True)[:3]

"""Exact numbers of every command on the planted run."""

from __future__ import annotations


import planted
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


def test_what_is_counted_but_not_told_apart_is_no_loss(report, tmp_path):
    rank = planted.training_rank(0)
    rank.world_size, rank.folded_communicators, rank.folded_cells = 1, 2, 1
    folder = planted.write_databases(tmp_path, [rank])
    assert (
        "\nSeen            all calls\nLess detail     1 cell merged into cells of several sizes "
        "or communicators, 2 communicators counted as one; all their calls are counted\n"
    ) in report("summary", folder).out

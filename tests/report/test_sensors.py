"""Readings of GPUs' counters and sensors, and how many multiprocessors communication occupied."""

from __future__ import annotations

from pathlib import Path

import planted
from cases import of
from planted import SECOND, Device, Rank, Reading
from test_gpu import gpu_rank


DEVICE = Device(busy={"C": 6 * SECOND, "K": 4 * SECOND}, uuid="GPU-a")


def reading(second: int, limits: str = "", mhz: int = 1_980) -> Reading:
    return Reading(second * SECOND, clock_mhz=mhz, limits=limits)


def sensors_of(report, folder: Path, ranks: list[Rank]) -> dict:
    (row,) = report("gpu", planted.write_databases(folder, ranks), "--json", "--by", "sensor").rows
    return row


def test_an_idle_device_s_clock_does_not_count(report, tmp_path):
    readings = [reading(1, "i", 345), reading(2, "", 1_900), reading(3, "p", 1_700)]
    row = sensors_of(report, tmp_path, [gpu_rank(devices=[DEVICE], readings=readings)])
    assert of(row, "clock_mean_mhz clock_least_mhz") == (1_800, 1_700)
    assert of(row, "throttled_share power_share heat_share") == (1 / 3, 1 / 3, 0)


def test_a_device_that_ranks_share_counts_once(report, tmp_path):
    readings = [reading(second) for second in range(1, 8)]
    ranks = [
        gpu_rank(rank, 2, devices=[DEVICE], readings=readings[: 6 + rank]) for rank in range(2)
    ]
    assert of(sensors_of(report, tmp_path, ranks), "rank ranks readings") == (1, "0-1", 7)

"""Readings of GPUs' counters and sensors, and how many multiprocessors communication occupied."""

from __future__ import annotations

import planted
import pytest
from cases import of
from planted import SECOND, Device, Reading
from test_gpu import gpu_rank


@pytest.fixture
def gpu(report, tmp_path):
    """gpu(ranks, *words): the answer of `gpu` about these ranks."""

    def answer(ranks, *words: str, write=planted.write_databases):
        folder = write(tmp_path / f"run-{len(list(tmp_path.iterdir()))}", ranks)
        return report("gpu", folder, *words)

    return answer


@pytest.fixture
def rows(gpu):
    return lambda ranks, *words, **how: gpu(ranks, "--json", *words, **how).rows


def device(uuid: str = "GPU-a", **fields) -> Device:
    usual = {
        "busy": {"C": 6 * SECOND, "K": 4 * SECOND},
        "uuid": uuid,
        "memory_bytes": 80_000_000_000,
    }
    return Device(**{**usual, **fields})


def reading(second: float, limits: str = "", mhz: int = 1_980, links=(None,) * 4) -> Reading:
    return Reading(int(second * SECOND), 1, mhz, 61_000_000_000, links, limits)


HOT = [
    reading(second, "ph" if second > 6 else "", 1_200 if second > 6 else 1_980)
    for second in range(1, 9)
]


def test_an_idle_device_s_clock_does_not_count(rows):
    ranks = [
        gpu_rank(
            devices=[device()],
            readings=[reading(1, "i", 345), reading(2, "", 1_900), reading(3, "p", 1_700)],
        )
    ]
    (row,) = rows(ranks, "--by", "sensor")
    assert (row["clock_mean_mhz"], row["clock_least_mhz"]) == (1_800, 1_700)
    assert of(row, "throttled_share power_share heat_share") == (1 / 3, 1 / 3, 0)


def test_a_device_that_ranks_share_counts_once(rows):
    ranks = [gpu_rank(rank, 2, devices=[device()], readings=HOT[: 6 + rank]) for rank in range(2)]
    (row,) = rows(ranks, "--by", "sensor")
    assert of(row, "rank ranks readings") == (1, "0-1", 7)

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


def on_sms(text: str) -> str:
    (line,) = (line[16:] for line in text.splitlines() if line.startswith("  on SMs "))
    return line


HEALTHY = [reading(second) for second in range(1, 9)]
HOT = [
    reading(second, "ph" if second > 6 else "", 1_200 if second > 6 else 1_980)
    for second in range(1, 9)
]


@pytest.mark.parametrize("write", (planted.write_databases, planted.write_ledgers))
def test_a_clock_that_is_lowered_is_shown_with_its_reason(rows, write):
    ranks = [
        gpu_rank(rank, 2, devices=[device(f"GPU-{rank}")], readings=HOT if rank else HEALTHY)
        for rank in range(2)
    ]
    keys = "throttled_share power_share heat_share clock_mean_mhz clock_least_mhz".split()
    assert [[row[key] for key in keys] for row in rows(ranks, "--by", "sensor", write=write)] == [
        [0, 0, 0, 1_980, 1_980],
        [0.25, 0.25, 0.25, 1_785, 1_200],
    ]


def test_what_is_not_known_is_null(rows):
    ranks = [
        gpu_rank(
            devices=[device(memory_bytes=None)],
            readings=[Reading(second * SECOND, clock_mhz=900) for second in (1, 2)],
        )
    ]
    (row,) = rows(ranks, "--by", "sensor")
    known = {
        "rank",
        "device",
        "readings",
        "span_ns",
        "clock_mean_mhz",
        "clock_least_mhz",
        "limit_readings",
        "ranks",
        "host",
        "name",
        "uuid",
    }
    assert {key for key, value in row.items() if value is not None} == known
    assert of(row, "readings limit_readings span_ns") == (2, 0, SECOND)


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


def test_rates_are_between_two_readings_except_where_a_counter_begins_anew(rows):
    """10, then 30 GB in 1 and 2 s; then the counter is set to 0; then 5 GB in 1 s."""
    sent = ((1, 0), (2, 10), (4, 40), (5, 0), (6, 5))
    readings = [reading(second, links=(gb * 10**9, None, 7, 7)) for second, gb in sent]
    ranks = [gpu_rank(devices=[device()], readings=readings)]
    (row,) = rows(ranks, "--by", "sensor")
    assert row["nvlink_sent_bytes_per_s"] == 45e9 / 4
    assert row["nvlink_sent_most_bytes_per_s"] == 15e9
    assert (row["nvlink_received_bytes_per_s"], row["pcie_sent_bytes_per_s"]) == (None, 0)


def test_a_device_that_ranks_share_counts_once(rows):
    ranks = [gpu_rank(rank, 2, devices=[device()], readings=HOT[: 6 + rank]) for rank in range(2)]
    (row,) = rows(ranks, "--by", "sensor")
    assert of(row, "rank ranks readings") == (1, "0-1", 7)


def test_multiprocessors_of_communication_are_weighted_by_time(gpu, rows):
    """16 SMs for 3 s, and 32 for 1 s on another rank."""
    few, many = (
        device("a", sms=132, communication=(3, 48, 16)),
        device("b", sms=132, communication=(1, 32, 32)),
    )
    ranks = [gpu_rank(0, 2, devices=[few]), gpu_rank(1, 2, devices=[many])]
    (run,) = rows(ranks, "--by", "run")
    assert of(run, "sms communication_sms communication_most_sms") == (132, 20, 32)
    assert [row["communication_sms"] for row in rows(ranks)] == [16, 32]
    assert on_sms(gpu(ranks).out).startswith(
        "its kernels' blocks occupy at most 20.0 of 132 SMs on average, those of one kernel 32"
    )

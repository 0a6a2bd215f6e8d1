"""Copies of programs/sensors.py, and what NVML's counters say of them."""

from __future__ import annotations

from collections.abc import Iterator

from jobs import Jobs
from table import Row, row, skip

READ = (
    "clock_mhz",
    "memory_used_bytes",
    "is_power_limited",
    "nvlink_sent_bytes",
    "pcie_received_bytes",
)
MOST_MHZ, PROTOCOL = 4_000, 1.5  # PCIe counts headers, too


def nvml(jobs: Jobs) -> Iterator[Row]:
    job = jobs.run("sensors", limit_s=25)
    job.must("NVML")
    ((readings,),) = job.query("SELECT COUNT(*) FROM gpu_reading")
    yield row("readings", "20 or more in 5 s", readings, readings >= 20)
    for name in READ:
        ((known,),) = job.query(f"SELECT COUNT({name}) FROM gpu_reading")
        expected = (
            "any: some devices have none" if "bytes" in name and "memory" not in name else "known"
        )
        yield row(
            name,
            expected,
            f"known in {known} of {readings}",
            known == readings > 0 or expected != "known",
        )
    ((least, most),) = job.query("SELECT MIN(clock_mhz), MAX(clock_mhz) FROM gpu_reading")
    yield row(
        "clock",
        f"above 0 and below {MOST_MHZ} MHz",
        (least, most),
        0 < (least or 0) <= (most or 0) < MOST_MHZ,
    )
    ((used, whole),) = job.query(
        "SELECT MAX(memory_used_bytes), MAX(memory_bytes) FROM gpu_reading JOIN gpu_device USING "
        "(world_rank, device)"
    )
    allocated = job.truth["allocated_bytes"]
    yield row(
        "memory in use",
        f"{allocated} B or more, at most all",
        (used, whole),
        allocated <= (used or 0) <= (whole or 0),
    )
    ((received,),) = job.query(
        "SELECT MAX(pcie_received_bytes) - MIN(pcie_received_bytes) FROM gpu_reading"
    )
    copied = job.truth["copied_bytes"]
    check = "bytes over PCIe against those copied to the device"
    if received is None or jobs.is_double:
        yield skip(
            check,
            "the double copies nothing"
            if jobs.is_double
            else "the device does not count them in 64 bits",
        )
    else:
        yield row(
            check,
            f"{copied} or little more",
            received,
            copied * 0.9 <= received <= PROTOCOL * copied,
        )
    ((sms,),) = job.query("SELECT sms FROM gpu_device")
    yield row("multiprocessors", "some", sms, (sms or 0) > 0)

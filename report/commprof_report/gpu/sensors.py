"""Readings of GPUs' counters and sensors: clock and what lowers it, memory in use, bytes over
NVLink and PCIe.

Each rank reads the devices that it uses. The readings of a device that several ranks share are
those of one of them: the one with the most.
"""

from __future__ import annotations

from sqlite3 import Connection

from ..base import Field, Row, query, row_type, text, units
from . import gpu_activity
from .overlap import device_groups

SQL = query.beside(__file__)


READ = (
    Field(
        "rank",
        "the rank with most readings of the device; CUDA's ordinal",
        "rank",
        of_row=lambda row: row.ranks,
    ),
    Field(
        "device",
        "",
        "GPU",
        is_number=False,
        of_row=lambda row: f"{row.device} {units.shortened(row.name, 28)}",
    ),
    Field(
        "readings",
        "its readings (table `gpu_reading`); time from the first to the last",
        "readings",
    ),
    Field("span_ns", ""),
    Field(
        "clock_mean_mhz",
        "of the SMs' clock, over readings in which the device was not known to be idle",
        "MHz",
    ),
    Field("clock_least_mhz", "", "least"),
    Field("limit_readings", "readings in which it is known whether the clock was lowered"),
    Field(
        "throttled_share",
        "shares of these with the clock lowered: for any reason, the power limit, heat, "
        "by the hardware otherwise",
        "throttled",
    ),
    Field("power_share", "", "power"),
    Field("heat_share", "", "heat"),
    Field("hardware_share", "", "hardware"),
    Field("memory_most_bytes", "the most of its memory that was in use in a reading", "memory"),
    Field(
        "nvlink_sent_bytes_per_s",
        "sum of the differences between readings over their time, without decreases; with"
        " `most` the largest difference over its time",
        "NVLink out",
    ),
    Field("nvlink_sent_most_bytes_per_s", ""),
    Field("nvlink_received_bytes_per_s", "", "NVLink in"),
    Field("nvlink_received_most_bytes_per_s", ""),
    Field("pcie_sent_bytes_per_s", "", "PCIe out"),
    Field("pcie_sent_most_bytes_per_s", ""),
    Field("pcie_received_bytes_per_s", "", "PCIe in"),
    Field("pcie_received_most_bytes_per_s", ""),
)
SENSOR = (
    *READ,
    Field("ranks", "as in `--by device`"),
    text("host", "", "host", 20),
    Field("name", ""),
    Field("uuid", ""),
    Field("memory_bytes", ""),
)
ReadRow = row_type("ReadRow", READ)  # sensors.sql; device: the rank's slot
GpuSensorRow = row_type("GpuSensorRow", SENSOR)  # device: CUDA's number


def sensors(connection: Connection) -> list[Row]:
    """A row for each device that the selected ranks read."""
    rows = {(row.rank, row.device): row for row in SQL.ask(connection, "sensors", ReadRow)}
    if not rows:
        return []
    found = []
    for group in device_groups(gpu_activity.device_facts(connection)):
        # the readings of the rank with most, of those that share the device
        known = [own for own in group if (own.rank, own.device) in rows]
        if known:
            own = max(known, key=lambda one: rows[one.rank, one.device].readings)
            row = rows[own.rank, own.device]._replace(device=own.number)
            ranks = units.rank_list({one.rank for one in group})
            found.append(GpuSensorRow(*row, ranks, own.host, own.name, own.uuid, own.memory_bytes))
    return sorted(found, key=lambda row: (row.rank, row.device))

"""Readings of GPUs' counters and sensors: clock and what lowers it, memory in use, bytes over
NVLink and PCIe.

Each rank reads the devices that it uses. The readings of a device that several ranks share are
those of one of them: the one with the most.
"""

from __future__ import annotations

from collections.abc import Iterable
from sqlite3 import Connection
from typing import TYPE_CHECKING, NamedTuple

from ..base import query
from ..base.units import rank_list
from . import gpu_activity
from .sharing import DeviceFacts, groups

SQL = query.beside(__file__)


class ReadRow(NamedTuple):
    """sensors.sql; null: not known. Shares are of limit_readings."""

    rank: int
    device: int  # the rank's slot
    readings: int
    span_ns: int
    clock_mean_mhz: float | None
    clock_least_mhz: int | None
    limit_readings: int
    throttled_share: float | None
    power_share: float | None
    heat_share: float | None
    hardware_share: float | None
    memory_most_bytes: int | None
    nvlink_sent_bytes_per_s: float | None
    nvlink_sent_most_bytes_per_s: float | None
    nvlink_received_bytes_per_s: float | None
    nvlink_received_most_bytes_per_s: float | None
    pcie_sent_bytes_per_s: float | None
    pcie_sent_most_bytes_per_s: float | None
    pcie_received_bytes_per_s: float | None
    pcie_received_most_bytes_per_s: float | None


class ReadDevice(NamedTuple):
    """Which device it is."""

    ranks: str
    host: str | None
    name: str
    uuid: str
    memory_bytes: int | None


if TYPE_CHECKING:

    class GpuSensorRow(ReadRow, ReadDevice): ...  # type: ignore[misc]  # two tuples: row_of
else:
    GpuSensorRow = query.row_of("GpuSensorRow", ReadRow, ReadDevice)  # device: CUDA's number


def sensors(connection: Connection) -> list[GpuSensorRow]:
    """A row for each device that the selected ranks read."""
    rows = {(row.rank, row.device): row for row in SQL.ask(connection, "sensors", ReadRow)}
    if not rows:
        return []
    readings = {key: row.readings for key, row in rows.items()}
    found = []
    for group, own in readers(gpu_activity.device_facts(connection), readings):
        row = rows[own.rank, own.device]._replace(device=own.number)
        ranks = rank_list({one.rank for one in group})
        device = ReadDevice(ranks, own.host, own.name, own.uuid, own.memory_bytes)
        found.append(query.joined(GpuSensorRow, row, device))
    return sorted(found, key=lambda row: (row.rank, row.device))


def readers(
    facts: Iterable[DeviceFacts], readings: dict[tuple[int, int], int]
) -> list[tuple[list[DeviceFacts], DeviceFacts]]:
    """For each device with readings: the ranks on it, and the one whose readings are taken.
    `readings`: their number by rank and slot."""
    found = []
    for group in groups(facts):
        own = max(group, key=lambda one: readings.get((one.rank, one.device), 0))
        if (own.rank, own.device) in readings:
            found.append((group, own))
    return found

"""The GPU side of a ledger as rows of the schema: all tables except those of single activities
(ledger_samples.py)."""

from __future__ import annotations

from typing import Any

from ..base.arrays import np
from ..base.columns import Columns
from .ledger import Ledger, Sums, sums_of
from .ledger_format import (
    BYTES_UNKNOWN, COMMUNICATING, COMPUTING, COPYING, IN_MPI, KERNELS, PART_STEPS, READING_HARDWARE,
    READING_HEAT, READING_IDLE, READING_KNOWN, READING_POWER, number,
)
from .ledger_samples import COPIES, KINDS
from .rows import MOST, NAMES, Kind, Rows, numbers_of, plausible, text, unless

AMOUNTS_OF_DEVICE = (
    "kernels", "copies", "sets", "communication_ns", "communication_sm_ns", "memory_bytes",
)
ACTIVITY_OF_DEVICE = (
    "first_ns", "last_ns", *AMOUNTS_OF_DEVICE[:-1], "communication_most_sms", "state_ns",
)
ACTIVITY_KEY = ("stream", "kind", "kernel", "copy", "flags", "bytes")
ACTIVITY_FLAGS = sum(number(f"ACTIVITY_{flag}") for flag in ("GRAPH", "PAGEABLE", "MANAGED"))
LIMITS = {
    "is_idle": READING_IDLE, "is_power_limited": READING_POWER, "is_heat_limited": READING_HEAT,
    "is_hardware_limited": READING_HARDWARE,
}
CLOCK_ERROR_UNKNOWN = (1 << 32) - 1
ACTIVITY_SUMS = numbers_of("gpu_activity", but=ACTIVITY_KEY)


def gpu_rows(ledger: Ledger, rows: Rows, with_histograms: bool) -> dict[str, list[Any]]:
    """Rows by table; activities are numbered from 1."""
    devices, activities = _devices(ledger), _activities_sum(ledger)
    numbers = np.arange(1, len(activities.entries) + 1)
    return {
        "gpu_device": rows.rows("gpu_device", devices),
        "gpu_busy": _busy_rows(rows.world_rank, devices),
        "gpu_kernel": [
            (rows.world_rank, kernel.kernel, text(name), int(kernel.is_communication != 0))
            for kernel, name in ledger.texts[KERNELS]
        ],
        "gpu_activity": rows.rows(
            "gpu_activity", activities.entries, activity=numbers, count=activities.calls
        ),
        "gpu_bucket": bucket_rows(activities) if with_histograms else [],
        **{table: rows.of_kind(table, kind) for table, kind in GPU_KINDS.items()},
    }


def bucket_rows(sums: Sums) -> list[tuple]:
    found = sums.buckets
    return list(zip((found.entry + 1).tolist(), found.bucket.tolist(), found.calls.tolist()))


def gpu_facts(ledger: Ledger, is_alive: bool) -> dict[str, str]:
    """How long the activities were that came too late; of how long before the end records may be
    missing. Records of a process that lives are still to come."""
    header = ledger.header
    found = {"gpu.late_ns": header.gpu_late_ns}
    if not is_alive:
        found["gpu.uncollected_ns"] = header.gpu_uncollected_ns
    return {key: str(min(ns, MOST)) for key, ns in found.items() if ns}


def _devices(ledger: Ledger) -> np.ndarray:
    """The GPUs; without their activity if that is from before the last reset."""
    devices = ledger.entries("DEVICES", "device")
    if not ledger.gpu_counts():
        for field in ACTIVITY_OF_DEVICE:
            devices[field] = 0
        return devices
    states = devices["state_ns"]
    is_sound = plausible(devices, AMOUNTS_OF_DEVICE)
    return ledger.sound(devices, is_sound & (states.sum(1, dtype=float) < MOST), "GPUs")


def _busy_rows(rank: int, devices: np.ndarray) -> list[Any]:
    return [
        (
            rank, device,
            *(int(state & bit != 0) for bit in (COMPUTING, COMMUNICATING, COPYING, IN_MPI)), ns,
        )
        for device, times in zip(devices["device"].tolist(), devices["state_ns"].tolist())
        for state, ns in enumerate(times) if ns
    ]


def _activities_sum(ledger: Ledger) -> Sums:
    """The activities that count, added up by key."""
    entries = ledger.entries("ACTIVITIES")
    entries = entries[(entries["live"] == 1) & ledger.gpu_counts()]
    entries["flags"] &= ACTIVITY_FLAGS
    place, bucket = np.nonzero(entries["buckets"])
    buckets = Columns(entry=place, bucket=bucket, calls=entries["buckets"][place, bucket])
    is_known = (0 < entries["kind"]) & (entries["kind"] < len(KINDS))
    is_known &= entries["copy"] < len(COPIES)
    keys = [entries[field] for field in ACTIVITY_KEY]
    return sums_of(
        ledger, entries, buckets, is_known, "sums of GPU activities", keys, ACTIVITY_SUMS
    )


def _traced_ns(rows: Rows, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """When tracing began and ended; it goes on until now where it has not ended."""
    begin_ns, end_ns = (rows.since_ns(found[field]) for field in ("begin_ns", "end_ns"))
    return begin_ns, np.where(found["end_ns"] == 0, np.maximum(rows.last_ns, begin_ns), end_ns)


def _tracing_columns(rows: Rows, found: np.ndarray) -> dict[str, Any]:
    begin_ns, end_ns = _traced_ns(rows, found)
    error_ns = found["clock_error_ns"]
    return {
        "begin_ns": np.maximum(begin_ns, rows.reset_ns), "end_ns": end_ns,
        "clock_error_ns": unless(error_ns == CLOCK_ERROR_UNKNOWN, error_ns),
    }


# by table; the time before a reset does not count, and of tracing the best part of the run does
GPU_KINDS = {
    "gpu_stream": Kind("STREAMS", key="stream"),
    "gpu_tracing": Kind(
        "TRACINGS", "times of tracing",
        are_sound=lambda rows, found: (
            np.less_equal(*_traced_ns(rows, found)) & (found["ended"] < len(NAMES["tracing_end"]))
            & (found["records"] <= MOST) & (found["part"] <= PART_STEPS)
        ),
        counts=lambda rows, found: (_traced_ns(rows, found)[1] >= rows.reset_ns)
        & (found["part"] == found["part"].max(initial=0)),
        computed=_tracing_columns,
    ),
    "gpu_reading": Kind(
        "READINGS", "readings of sensors",
        are_there=lambda rows, found: found["live"] == 1,
        are_sound=lambda rows, found: np.all(
            [
                found["at_ns"] >= rows.start_ns, rows.since_ns(found["at_ns"]) <= rows.last_ns,
                *(
                    (found[field] < MOST) | (found[field] == BYTES_UNKNOWN)
                    for field in found.dtype.names or () if field.endswith("_bytes")
                ),
            ], axis=0,
        ),
        counts=lambda rows, found: rows.since_ns(found["at_ns"]) >= rows.reset_ns,
        computed=lambda rows, found: {
            name: unless(found["limits"] & READING_KNOWN == 0, found["limits"] // bit & 1)
            for name, bit in LIMITS.items()
        },
    ),
}

"""The GPU side of a ledger as rows of the schema: all tables except those of single activities
(ledger_samples.py)."""

from __future__ import annotations

from typing import Any

from ..base.arrays import np
from .ledger import KERNELS, Buckets, Ledger, Sums, sums_of
from .ledger_format import number
from .ledger_samples import COPIES, KINDS, Clock
from .rows import BYTES_UNKNOWN, MOST, NAMES, Rows, numbers_of, text, unless

BEST_PART = number("PART_STEPS")
BUSY = [number(state) for state in ("COMPUTING", "COMMUNICATING", "COPYING", "IN_MPI")]
AMOUNTS_OF_DEVICE = (
    "kernels", "copies", "sets", "communication_ns", "communication_sm_ns", "memory_bytes",
)
ACTIVITY_OF_DEVICE = (
    "first_ns", "last_ns", *AMOUNTS_OF_DEVICE[:-1], "communication_most_sms", "state_ns",
)
ACTIVITY_KEY = ("stream", "kind", "kernel", "copy", "flags", "bytes")
ACTIVITY_FLAGS = sum(number(f"ACTIVITY_{flag}") for flag in ("GRAPH", "PAGEABLE", "MANAGED"))
LIMITS_KNOWN = number("READING_KNOWN")
LIMITS = {
    "is_idle": number("READING_IDLE"),
    "is_power_limited": number("READING_POWER"),
    "is_heat_limited": number("READING_HEAT"),
    "is_hardware_limited": number("READING_HARDWARE"),
}
CLOCK_ERROR_UNKNOWN = (1 << 32) - 1
ACTIVITY_SUMS = numbers_of("gpu_activity", but=ACTIVITY_KEY)


def gpu_rows(
    ledger: Ledger, rows: Rows, clock: Clock, last_ns: int, with_histograms: bool
) -> dict[str, list[Any]]:
    """Rows by table; activities are numbered from 1."""
    rank, devices, activities = rows.world_rank, _devices(ledger), _activities_sum(ledger)
    numbers = np.arange(1, len(activities.entries) + 1)
    return {
        "gpu_device": rows.rows("gpu_device", devices),
        "gpu_busy": _busy_rows(rank, devices),
        "gpu_stream": rows.rows("gpu_stream", ledger.entries("STREAMS", "stream")),
        "gpu_kernel": [
            (rank, kernel.kernel, text(name), int(kernel.is_communication != 0))
            for kernel, name in ledger.texts[KERNELS]
        ],
        "gpu_activity": rows.rows(
            "gpu_activity", activities.entries, activity=numbers, count=activities.calls
        ),
        "gpu_bucket": bucket_rows(activities) if with_histograms else [],
        "gpu_tracing": _tracing_rows(ledger, rows, clock, last_ns),
        "gpu_reading": _reading_rows(ledger, rows, clock, last_ns),
    }


def bucket_rows(sums: Sums) -> list[tuple]:
    entry, bucket, calls = sums.buckets
    return list(zip((entry + 1).tolist(), bucket.tolist(), calls.tolist()))


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
    is_sound = np.all([devices[field] < MOST for field in AMOUNTS_OF_DEVICE], axis=0)
    return ledger.sound(devices, is_sound & (states.sum(1, dtype=float) < MOST), "GPUs")


def _busy_rows(rank: int, devices: np.ndarray) -> list[Any]:
    return [
        (rank, device, *(int(state & bit != 0) for bit in BUSY), ns)
        for device, times in zip(devices["device"].tolist(), devices["state_ns"].tolist())
        for state, ns in enumerate(times) if ns
    ]


def _activities_sum(ledger: Ledger) -> Sums:
    """The activities that count, added up by key."""
    entries = ledger.entries("ACTIVITIES")
    entries = entries[(entries["live"] == 1) & ledger.gpu_counts()]
    entries["flags"] &= ACTIVITY_FLAGS
    place, bucket = np.nonzero(entries["buckets"])
    buckets = Buckets(place, bucket, entries["buckets"][place, bucket])
    is_known = (0 < entries["kind"]) & (entries["kind"] < len(KINDS))
    is_known &= entries["copy"] < len(COPIES)
    keys = [entries[field] for field in ACTIVITY_KEY]
    return sums_of(
        ledger, entries, buckets, is_known, "sums of GPU activities", keys, ACTIVITY_SUMS
    )


def _tracing_rows(ledger: Ledger, rows: Rows, clock: Clock, last_ns: int) -> list[Any]:
    """Tracing windows of the best part of the run that was traced; the time before a reset does not
    count."""
    tracings = ledger.entries("TRACINGS")
    begin_ns, end_ns = (rows.since_ns(tracings[field]) for field in ("begin_ns", "end_ns"))
    end_ns = np.where(tracings["end_ns"] == 0, np.maximum(last_ns, begin_ns), end_ns)
    part = tracings["part"]
    is_sound = (begin_ns <= end_ns) & (tracings["ended"] < len(NAMES["tracing_end"]))
    is_sound &= (tracings["records"] <= MOST) & (part <= BEST_PART)
    ledger.damage_note(len(tracings) - int(is_sound.sum()), "times of tracing")
    reset_ns = clock.reset_ns(ledger.header)
    best = part[part <= BEST_PART].max(initial=0)
    counts = is_sound & (end_ns >= reset_ns) & (part == best)
    error_ns = tracings["clock_error_ns"][counts]
    return rows.rows(
        "gpu_tracing", tracings[counts], begin_ns=np.maximum(begin_ns, reset_ns)[counts],
        end_ns=end_ns[counts], clock_error_ns=unless(error_ns == CLOCK_ERROR_UNKNOWN, error_ns),
    )


def _reading_rows(ledger: Ledger, rows: Rows, clock: Clock, last_ns: int) -> list[Any]:
    """Readings of sensors; those from before a reset do not count."""
    entries = ledger.entries("READINGS")
    entries = entries[entries["live"] == 1]
    is_sound = np.all(
        [
            (entries[field] < MOST) | (entries[field] == BYTES_UNKNOWN)
            for field in entries.dtype.names if field.endswith("_bytes")
        ], axis=0,
    )
    at_ns = rows.since_ns(entries["at_ns"])
    is_sound &= (entries["at_ns"] >= ledger.header.start_ns) & (at_ns <= last_ns)
    ledger.damage_note(len(entries) - int(is_sound.sum()), "readings of sensors")
    entries = entries[is_sound & (at_ns >= clock.reset_ns(ledger.header))]
    is_unknown = entries["limits"] & LIMITS_KNOWN == 0
    limits = {
        name: unless(is_unknown, entries["limits"] // bit & 1) for name, bit in LIMITS.items()
    }
    return rows.rows("gpu_reading", entries, **limits)

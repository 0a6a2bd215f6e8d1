"""The GPU side of a ledger as rows of the schema: all tables except those of single activities
(ledger_samples.py)."""

from __future__ import annotations

from typing import Any

from .ledger import BUCKETS, STATES, ActivityKey, CellSum, Ledger, sums_of
from .ledger_format import number
from .ledger_samples import COPIES, KINDS, Clock, rows_of
from .rows import BYTES_UNKNOWN, MOST, NAMES, Rows, believed, numbers_of

TRACING_ENDED = NAMES["tracing_end"]
BEST_PART = number("PART_STEPS")
COMPUTING, COMMUNICATING, COPYING, IN_MPI = (
    number(state) for state in ("COMPUTING", "COMMUNICATING", "COPYING", "IN_MPI")
)
GRAPH, PAGEABLE, MANAGED = (number(f"ACTIVITY_{flag}") for flag in ("GRAPH", "PAGEABLE", "MANAGED"))
LIMITS_KNOWN = number("READING_KNOWN")
LIMITS = {
    "is_idle": number("READING_IDLE"),
    "is_power_limited": number("READING_POWER"),
    "is_heat_limited": number("READING_HEAT"),
    "is_hardware_limited": number("READING_HARDWARE"),
}
CLOCK_ERROR_UNKNOWN = (1 << 32) - 1
ACTIVITY_SUMS = numbers_of("gpu_activity", but=ActivityKey._fields)


def gpu_rows(
    ledger: Ledger, clock: Clock, last_ns: int, with_histograms: bool
) -> dict[str, list[Any]]:
    """Rows by table; activities are numbered from 1."""
    rank, rows = ledger.header.world_rank, rows_of(ledger, clock)
    devices = (
        _sound_devices(ledger) if ledger.gpu_counts()
        else [_device_alone(device) for device in ledger.devices.values()]
    )
    activities = (
        list(enumerate(sorted(_activities_sum(ledger).items()), 1)) if ledger.gpu_counts() else []
    )
    return {
        "gpu_device": [rows.row("gpu_device", device) for device in devices],
        "gpu_busy": [row for device in devices for row in _busy_rows(rank, device)],
        "gpu_stream": [rows.row("gpu_stream", entry) for entry in ledger.streams.values()],
        "gpu_kernel": [(rank, kernel, *about) for kernel, about in ledger.kernels.items()],
        "gpu_activity": [
            rows.row(
                "gpu_activity", activity, activity=number, **key._asdict(), count=activity.count
            )
            for number, (key, activity) in activities
        ],
        "gpu_bucket": [
            (number, bucket, count) for number, (_, activity) in activities
            for bucket, count in sorted(activity.buckets.items()) if with_histograms
        ],
        "gpu_tracing": _tracing_rows(ledger, rows, clock, last_ns),
        "gpu_reading": _reading_rows(ledger, rows, clock, last_ns),
    }


def gpu_facts(ledger: Ledger, is_alive: bool) -> dict[str, str]:
    """How long the activities were that came too late; of how long before the end records may be
    missing. Records of a process that lives are still to come."""
    header = ledger.header
    found = {"gpu.late_ns": header.gpu_late_ns}
    if not is_alive:
        found["gpu.uncollected_ns"] = header.gpu_uncollected_ns
    return {key: str(min(ns, MOST)) for key, ns in found.items() if ns}


def _sound_devices(ledger: Ledger) -> list:
    sound = [
        device for device in ledger.devices.values()
        if max(*_amounts(device), sum(STATES.unpack(device.state_ns))) < MOST
    ]
    damage_note(ledger, len(ledger.devices) - len(sound), "GPUs")
    return sound


def _amounts(device) -> tuple[int, ...]:
    communication = device.communication_ns, device.communication_sm_ns
    return device.kernels, device.copies, device.sets, *communication, device.memory_bytes


def _device_alone(device):
    """The device's description, without its activity."""
    activity = ("first_ns", "last_ns", "kernels", "copies", "sets")
    communication = ("communication_ns", "communication_sm_ns", "communication_most_sms")
    return device._replace(
        **dict.fromkeys((*activity, *communication), 0), state_ns=bytes(len(device.state_ns))
    )


def damage_note(ledger: Ledger, damaged: int, what: str) -> None:
    if damaged:
        ledger.damage.append(f"{damaged} of its {what} are damaged and left out")


def _busy_rows(rank: int, device) -> list[Any]:
    bits = (COMPUTING, COMMUNICATING, COPYING, IN_MPI)
    times = enumerate(STATES.unpack(device.state_ns))
    return [
        (rank, device.device, *(int(state & bit != 0) for bit in bits), ns) for state, ns in times
        if ns
    ]


def _activities_sum(ledger: Ledger) -> dict[ActivityKey, CellSum]:
    """The activities that count, added up by key."""
    sums: dict[ActivityKey, CellSum] = {}
    damaged = 0
    for entry in ledger.activities:
        buckets = BUCKETS.unpack(entry.buckets)
        if entry.live != 1 or not any(buckets):
            continue
        if _activity_is_sound(entry, buckets):
            sums.setdefault(_activity_key(entry), CellSum(ACTIVITY_SUMS)).add(entry, buckets)
        else:
            damaged += 1
    damage_note(ledger, damaged, "sums of GPU activities")
    return sums


def _activity_is_sound(entry, buckets: tuple[int, ...]) -> bool:
    return (
        max(entry.bytes, sum(buckets), *sums_of(entry, ACTIVITY_SUMS)) < MOST
        and entry.min_ns <= entry.max_ns and 0 < entry.kind < len(KINDS)
        and entry.copy < len(COPIES)
    )


def _activity_key(entry) -> ActivityKey:
    graph, pageable, managed = (
        int(entry.flags & flag != 0) for flag in (GRAPH, PAGEABLE, MANAGED)
    )
    return ActivityKey(
        entry.stream, KINDS[entry.kind], entry.kernel, COPIES[entry.copy], graph, pageable,
        managed, entry.bytes,
    )


def _tracing_rows(ledger: Ledger, rows: Rows, clock: Clock, last_ns: int) -> list[Any]:
    """Tracing windows of the best part of the run that was traced; the time before a reset does not
    count."""
    header, found = ledger.header, []
    reset_ns = clock.since_start_ns(header.reset_ticks) if header.reset_ticks else 0
    damaged = 0
    best = max(
        (tracing.part for tracing in ledger.tracings if tracing.part <= BEST_PART), default=0
    )
    for tracing in ledger.tracings:
        begin_ns = believed(tracing.begin_ns - header.start_ns)
        end_ns = (
            believed(tracing.end_ns - header.start_ns) if tracing.end_ns else max(last_ns, begin_ns)
        )
        clock_error_ns = (
            None if tracing.clock_error_ns == CLOCK_ERROR_UNKNOWN else tracing.clock_error_ns
        )
        if (
            end_ns < begin_ns or tracing.ended >= len(TRACING_ENDED) or tracing.records > MOST
            or tracing.part > BEST_PART
        ):
            damaged += 1
        elif end_ns >= reset_ns and tracing.part == best:
            times = {"begin_ns": max(begin_ns, reset_ns), "end_ns": end_ns}
            found.append(rows.row("gpu_tracing", tracing, **times, clock_error_ns=clock_error_ns))
    damage_note(ledger, damaged, "times of tracing")
    return found


def _reading_rows(ledger: Ledger, rows: Rows, clock: Clock, last_ns: int) -> list[Any]:
    """Readings of sensors; those from before a reset do not count."""
    reset_ns = clock.since_start_ns(ledger.header.reset_ticks) if ledger.header.reset_ticks else 0
    live = [entry for entry in ledger.readings if entry.live == 1]
    sound = {
        (entry.device, entry.at_ns): entry for entry in live
        if 0 <= entry.at_ns - ledger.header.start_ns <= last_ns and _counters_are_sound(entry)
    }
    damage_note(ledger, len(live) - len(sound), "readings of sensors")
    return [
        rows.row("gpu_reading", entry, **_limits(entry.limits))
        for (_, at_ns), entry in sorted(sound.items()) if at_ns - ledger.header.start_ns >= reset_ns
    ]


def _counters_are_sound(entry) -> bool:
    links = (
        entry.nvlink_sent_bytes, entry.nvlink_received_bytes, entry.pcie_sent_bytes,
        entry.pcie_received_bytes,
    )
    return all(
        counter < MOST or counter == BYTES_UNKNOWN for counter in (*links, entry.memory_used_bytes)
    )


def _limits(limits: int) -> dict[str, int | None]:
    return {
        name: int(limits & bit != 0) if limits & LIMITS_KNOWN else None
        for name, bit in LIMITS.items()
    }

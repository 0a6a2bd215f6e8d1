"""The GPU side of a ledger as rows of the schema: all tables except those of single activities (ledger_samples.py)."""

from __future__ import annotations

from .ledger import BUCKETS, MOST, STATES, ActivityKey, CellSum, Ledger, text
from .ledger_format import number
from .ledger_samples import ACTIVITY_KINDS, COPIES, Clock, believed

GPU_STATES = ("none", "dormant", "tracing", "paused", "yielded", "refused", "stopped")
TRACING_ENDED = ("goes on", "duty", "yielded", "off", "stopped", "lost")
COMPUTING, COMMUNICATING, COPYING, IN_MPI = (number(state) for state in ("COMPUTING", "COMMUNICATING", "COPYING", "IN_MPI"))
GRAPH, PAGEABLE, MANAGED = (number(f"ACTIVITY_{flag}") for flag in ("GRAPH", "PAGEABLE", "MANAGED"))
CLOCK_ERROR_UNKNOWN = (1 << 32) - 1


def gpu_rows(ledger: Ledger, clock: Clock, last_ns: int, with_histograms: bool) -> dict[str, list[tuple]]:
    """Rows by table; activities are numbered from 1."""
    rank = ledger.header.world_rank
    devices = _sound_devices(ledger) if ledger.gpu_counts() else [_device_alone(device) for device in ledger.devices.values()]
    activities = list(enumerate(sorted(_activities_sum(ledger).items()), 1)) if ledger.gpu_counts() else []
    return {
        "gpu_device": [_device_row(ledger, device) for device in devices],
        "gpu_busy": [row for device in devices for row in _busy_rows(rank, device)],
        "gpu_stream": [(rank, entry.stream, entry.device, entry.context, entry.number) for entry in ledger.streams.values()],
        "gpu_kernel": [(rank, kernel, *about) for kernel, about in ledger.kernels.items()],
        "gpu_activity": [_activity_row(number, rank, key, activity) for number, (key, activity) in activities],
        "gpu_bucket": [
            (number, bucket, count)
            for number, (_, activity) in activities
            for bucket, count in sorted(activity.buckets.items())
            if with_histograms
        ],
        "gpu_tracing": _tracing_rows(ledger, clock, last_ns),
    }


def rank_columns(header) -> tuple:
    """The GPU columns of table rank."""
    counts = (header.gpu_records, header.gpu_dropped_records, header.gpu_implausible_records, header.gpu_late_records)
    losses = (header.gpu_unkept_records, header.gpu_lost_intervals, header.gpu_unmatched_operations)
    rest = (header.gpu_memory_kind_queries, header.gpu_memory_kind_changes, header.cost_gpu_begin_ns, header.cost_gpu_end_ns)
    state = GPU_STATES[header.gpu_state] if header.gpu_state < len(GPU_STATES) else GPU_STATES[0]
    return (state, *(min(amount, MOST) for amount in (*counts, *losses, *rest)))


def _sound_devices(ledger: Ledger) -> list:
    sound = [
        device
        for device in ledger.devices.values()
        if max(device.kernels, device.copies, device.sets, sum(STATES.unpack(device.state_ns))) < MOST
    ]
    _damage_note(ledger, len(ledger.devices) - len(sound), "GPUs")
    return sound


def _device_alone(device):
    """The device's description, without its activity."""
    return device._replace(first_ns=0, last_ns=0, kernels=0, copies=0, sets=0, state_ns=bytes(len(device.state_ns)))


def _damage_note(ledger: Ledger, damaged: int, what: str) -> None:
    if damaged:
        ledger.damage.append(f"{damaged} of its {what} are damaged and left out")


def _device_row(ledger: Ledger, device) -> tuple:
    about = (device.device, device.number, text(device.name), text(device.uuid))
    times = (believed(moment_ns - ledger.header.start_ns) if moment_ns else None for moment_ns in (device.first_ns, device.last_ns))
    return (ledger.header.world_rank, *about, *times, device.kernels, device.copies, device.sets)


def _busy_rows(rank: int, device) -> list[tuple]:
    bits = (COMPUTING, COMMUNICATING, COPYING, IN_MPI)
    times = enumerate(STATES.unpack(device.state_ns))
    return [(rank, device.device, *(int(state & bit != 0) for bit in bits), ns) for state, ns in times if ns]


def _activities_sum(ledger: Ledger) -> dict[ActivityKey, CellSum]:
    """The activities that count, added up by key."""
    sums: dict[ActivityKey, CellSum] = {}
    damaged = 0
    for entry in ledger.activities:
        buckets = BUCKETS.unpack(entry.buckets)
        if entry.live != 1 or not any(buckets):
            continue
        if _activity_is_sound(entry, buckets):
            sums.setdefault(_activity_key(entry), CellSum()).add(entry, buckets)
        else:
            damaged += 1
    _damage_note(ledger, damaged, "sums of GPU activities")
    return sums


def _activity_is_sound(entry, buckets: tuple[int, ...]) -> bool:
    amounts = (entry.bytes, entry.total_ns, entry.max_ns, entry.volume_bytes, sum(buckets))
    return max(amounts) < MOST and entry.min_ns <= entry.max_ns and entry.kind in ACTIVITY_KINDS and entry.copy < len(COPIES)


def _activity_key(entry) -> ActivityKey:
    flags = (int(entry.flags & flag != 0) for flag in (GRAPH, PAGEABLE, MANAGED))
    return ActivityKey(entry.stream, ACTIVITY_KINDS[entry.kind], entry.kernel, COPIES[entry.copy], *flags, entry.bytes)


def _activity_row(number: int, rank: int, key: ActivityKey, activity: CellSum) -> tuple:
    return (number, rank, *key, activity.count, activity.volume_bytes, activity.total_ns, activity.min_ns, activity.max_ns)


def _tracing_rows(ledger: Ledger, clock: Clock, last_ns: int) -> list[tuple]:
    """Tracing windows; the time before a reset does not count."""
    header, rows = ledger.header, []
    reset_ns = clock.since_start_ns(header.reset_ticks) if header.reset_ticks else 0
    damaged = 0
    for tracing in ledger.tracings:
        begin_ns = believed(tracing.begin_ns - header.start_ns)
        end_ns = believed(tracing.end_ns - header.start_ns) if tracing.end_ns else max(last_ns, begin_ns)
        clock_error_ns = None if tracing.clock_error_ns == CLOCK_ERROR_UNKNOWN else tracing.clock_error_ns
        if end_ns < begin_ns or tracing.ended >= len(TRACING_ENDED) or tracing.records > MOST:
            damaged += 1
        elif end_ns >= reset_ns:
            times = (max(begin_ns, reset_ns), end_ns)
            rows.append((header.world_rank, *times, TRACING_ENDED[tracing.ended], clock_error_ns, tracing.records))
    _damage_note(ledger, damaged, "times of tracing")
    return rows

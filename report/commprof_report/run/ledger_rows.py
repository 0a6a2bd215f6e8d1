"""A ledger as rows of the schema's tables."""

from __future__ import annotations

import time
from typing import Any

from ..base import Columns, np, units
from .ledger import (
    DIRECTIONS,
    HEADER,
    LIBRARIES,
    MEASURES,
    MOST_RANKS,
    Ledger,
    Sums,
    added_up,
    cells_sum,
    memory_kind_name,
    memory_kinds_are_known,
    sums_of,
)
from .ledger_format import (
    BYTES_UNKNOWN,
    CELL_FOLDED,
    COMMUNICATING,
    COMMUNICATOR_NCCL,
    COMPUTING,
    COPYING,
    DOING_INSIDE_BIT,
    DOING_REQUEST_CALL_BIT,
    DOING_SLOT_BIT,
    IN_MPI,
    KERNELS,
    Kind,
    MOST,
    NAMES,
    NO_RANK,
    NO_TAG,
    PART_STEPS,
    PEER_SLOT_BIT,
    READING_HARDWARE,
    READING_HEAT,
    READING_IDLE,
    READING_KNOWN,
    READING_POWER,
    RECENT_COLLECTIVES,
    RUNNING,
    Rows,
    SIGNATURE_COMMUTATIVE,
    SIGNATURE_COUNTS,
    STATUS_PLACES,
    WINDOW_NS_LOG2,
    WORDS_MOST,
    WORD_PLACES,
    believed,
    hexadecimal,
    layout,
    number,
    numbers_of,
    plausible,
    process_state,
    text,
    unless,
)
from .ledger_samples import CALL_MASK, COPIES, KINDS as ACTIVITIES, Clock, clock_of, sample_rows

MOST_SIGNATURES = (1 << 16) - 1
AMOUNTS_OF_DEVICE = (
    "kernels",
    "copies",
    "sets",
    "communication_ns",
    "communication_sm_ns",
    "memory_bytes",
)
ACTIVITY_OF_DEVICE = (
    "first_ns",
    "last_ns",
    *AMOUNTS_OF_DEVICE[:-1],
    "communication_most_sms",
    "state_ns",
)
ACTIVITY_KEY = ("stream", "kind", "kernel", "copy", "flags", "bytes")
ACTIVITY_FLAGS = sum(number(f"ACTIVITY_{flag}") for flag in ("GRAPH", "PAGEABLE", "MANAGED"))
LIMITS = {
    "is_idle": READING_IDLE,
    "is_power_limited": READING_POWER,
    "is_heat_limited": READING_HEAT,
    "is_hardware_limited": READING_HARDWARE,
}
CLOCK_ERROR_UNKNOWN = (1 << 32) - 1
ACTIVITY_SUMS = numbers_of("gpu_activity", but=ACTIVITY_KEY)


def ledger_rows(ledger: Ledger, with_histograms: bool) -> dict[str, list[Any]]:
    """Rows by table; cells and activities are numbered from 1."""
    clock = clock_of(ledger)
    last_ns, facts_of_life = life_of(ledger, clock)
    rows = Rows(ledger, clock, last_ns)
    facts = {**ledger.facts, **usage_facts(ledger), **facts_of_life}
    # how long the activities were that came too late; of how long before the end records may be
    # missing: those of a process that lives are still to come
    is_alive = facts_of_life.get("process_state") == RUNNING
    gpu_ns = {
        "gpu.late_ns": ledger.header.gpu_late_ns,
        "gpu.uncollected_ns": 0 if is_alive else ledger.header.gpu_uncollected_ns,
    }
    facts |= {key: str(min(ns, MOST)) for key, ns in gpu_ns.items() if ns}
    samples = sample_rows(ledger, rows, has_ended(ledger))
    cells, threads = cells_sum(ledger)
    devices, activities = _devices(ledger), _activities_sum(ledger)
    cell_rows = _cell_rows(rows, cells, threads)
    calls = {name: (name, *about) for name, *about in ledger.calls.values()}
    unknown = {row.call for row in (*cell_rows, *samples["sample"])} - calls.keys()
    calls.update(
        {
            call: (call, "unknown", LIBRARIES[0], "blocking", "unrated", "nobody")
            for call in sorted(unknown)
        }
    )
    return {
        "rank": [_rank_row(rows)],
        "fact": [(rows.world_rank, key, value) for key, value in facts.items()],
        "call": list(calls.values()),
        "cell": cell_rows,
        "bucket": bucket_rows(cells) if with_histograms else [],
        "peer": _peer_rows(rows),
        "recent_collective": _recent_rows(rows),
        "negotiated_place": _place_rows(rows),
        **{table: rows.of_kind(table, kind) for table, kind in KINDS.items()},
        "gpu_device": rows.rows("gpu_device", devices),
        "gpu_busy": [
            (
                rows.world_rank,
                device,
                *(int(state & bit != 0) for bit in (COMPUTING, COMMUNICATING, COPYING, IN_MPI)),
                ns,
            )
            for device, times in zip(devices["device"].tolist(), devices["state_ns"].tolist())
            for state, ns in enumerate(times)
            if ns
        ],
        "gpu_kernel": [
            (rows.world_rank, kernel.kernel, text(name), int(kernel.is_communication != 0))
            for kernel, name in ledger.texts[KERNELS]
        ],
        "gpu_activity": rows.rows(
            "gpu_activity",
            activities.entries,
            activity=np.arange(1, len(activities.entries) + 1),
            count=activities.calls,
        ),
        "gpu_bucket": bucket_rows(activities) if with_histograms else [],
        **samples,
    }


def bucket_rows(sums: Sums) -> list[tuple]:
    found = sums.buckets
    return list(zip((found.entry + 1).tolist(), found.bucket.tolist(), found.calls.tolist()))


def _cell_rows(rows: Rows, cells: Sums, threads: np.ndarray) -> list[Any]:
    found = cells.entries
    return rows.rows(
        "cell",
        found,
        cell=np.arange(1, len(found) + 1),
        thread=threads[cells.first],
        call=[*map(rows.ledger.call_name, found["call"].tolist())],
        measure=[MEASURES[value & 15] for value in found["measure_and_flags"].tolist()],
        memory_kind=[*map(memory_kind_name, found["memory_kind"].tolist())],
        is_folded=found["measure_and_flags"] >> 4 & CELL_FOLDED,
        count=cells.calls,
    )


def _peer_rows(rows: Rows) -> list[Any]:
    """The peers with calls, with equal keys added up over all threads."""
    peers = rows.ledger.entries("PEERS", threads=rows.ledger.threads_that_count())
    fields = numbers_of("peer", but=("peer",))
    is_sound = plausible(peers, fields)
    is_sound &= peers["direction"] % (1 << PEER_SLOT_BIT) < len(DIRECTIONS)
    is_sound &= (peers["peer"] >= -1) & (peers["peer"] < MOST_RANKS)
    peers = rows.ledger.sound(peers, is_sound, "peers")
    peers = peers[peers["count"] > 0]
    peers, *_ = added_up(peers, [peers[key] for key in ("call", "direction", "peer")], fields)
    communicator, direction = np.divmod(peers["direction"], 1 << PEER_SLOT_BIT)
    return rows.rows(
        "peer",
        peers,
        call=[*map(rows.ledger.call_name, peers["call"].tolist())],
        direction=[DIRECTIONS[value] for value in direction.tolist()],
        communicator=communicator,
    )


def _place_rows(rows: Rows) -> list[Any]:
    entries = rows.ledger.entries("PLACES")
    entries = entries[entries["epoch"] == rows.header.epoch]
    entries = rows.ledger.sound(entries, entries["word"] < WORDS_MOST, "words of negotiations")
    agreed = entries["agreed"]
    place = entries["word"][:, None] * WORD_PLACES + np.arange(WORD_PLACES)
    chosen = (agreed > 0) & (agreed < MOST) & (place >= STATUS_PLACES)
    return rows.rows(
        "negotiated_place",
        entries[np.nonzero(chosen)[0]],
        place=place[chosen],
        agreed=agreed[chosen],
    )


def _signature_columns(rows: Rows, found: np.ndarray) -> dict[str, Any]:
    has_no_type, has_no_op = (found[field].astype("S1") == b"" for field in ("datatype", "op"))
    return {
        "type_bytes": unless(has_no_type, found["type_bytes"]),
        "extent": unless(has_no_type, found["extent"]),
        "is_commutative": unless(has_no_op, found["flags"] // SIGNATURE_COMMUTATIVE & 1),
        "counts_hash": unless(
            found["flags"] & SIGNATURE_COUNTS == 0, hexadecimal(found["counts_hash"])
        ),
        "memory_kind": [*map(memory_kind_name, found["memory_kind"].tolist())],
    }


def _thread_columns(rows: Rows, found: np.ndarray) -> dict[str, Any]:
    call, communicator, request_call = (
        found["doing"] >> bit & CALL_MASK for bit in (0, DOING_SLOT_BIT, DOING_REQUEST_CALL_BIT)
    )
    is_idle = call == 0
    return {
        "doing_call": rows.call_names(call),
        "doing_communicator": communicator,
        "doing_is_inside": found["doing"] >> DOING_INSIDE_BIT & 1,
        "doing_since_ns": since_ns(rows.clock, found),
        "doing_bytes": unless(
            is_idle | (found["bytes"] == BYTES_UNKNOWN), np.minimum(found["bytes"], MOST)
        ),
        "doing_peer": unless(is_idle | (found["peer"] == NO_RANK), found["peer"]),
        "doing_tag": unless(is_idle | (found["tag"] == NO_TAG), found["tag"]),
        "doing_request_call": rows.call_names(request_call),
    }


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


def _activities_sum(ledger: Ledger) -> Sums:
    """The activities that count, added up by key."""
    entries = ledger.entries("ACTIVITIES")
    entries = entries[(entries["live"] == 1) & ledger.gpu_counts()]
    entries["flags"] &= ACTIVITY_FLAGS
    place, bucket = np.nonzero(entries["buckets"])
    buckets = Columns(entry=place, bucket=bucket, calls=entries["buckets"][place, bucket])
    is_known = (0 < entries["kind"]) & (entries["kind"] < len(ACTIVITIES))
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
        "begin_ns": np.maximum(begin_ns, rows.reset_ns),
        "end_ns": end_ns,
        "clock_error_ns": unless(error_ns == CLOCK_ERROR_UNKNOWN, error_ns),
    }


TIMES = ("handed_after_ticks", "handed_ticks", "agreed_ticks", "done_ticks")  # of a step
# by table; the time before a reset does not count, and of tracing the best part of the run does; a
# rank that hangs is read on after its last call
KINDS = {
    "communicator": Kind(
        "COMMUNICATORS",
        key="communicator",
        computed=lambda rows, found: {
            "identity": hexadecimal(found["identity"]),
            "parent_identity": unless(
                found["parent_identity"] == 0, hexadecimal(found["parent_identity"])
            ),
            "library": [LIBRARIES[int(flags & COMMUNICATOR_NCCL != 0)] for flags in found["flags"]],
        },
    ),
    "region": Kind("REGIONS"),
    "thread": Kind("THREADS", key="thread", computed=_thread_columns),
    "cpu_time": Kind(
        "CPU_TIMES",
        "readings of CPU times",
        are_there=lambda rows, found: found["live"] == 1,
        are_sound=lambda rows, found: (
            plausible(found, ["core_ns"])
            & (plausible(found, ["waiting_ns"]) | (found["waiting_ns"] == BYTES_UNKNOWN))
            & (found["at_ns"] >= rows.start_ns)
            & (rows.since_ns(found["at_ns"]) < MOST)
        ),
        counts=lambda rows, found: rows.since_ns(found["at_ns"]) >= rows.reset_ns,
    ),
    "negotiation": Kind(
        "NEGOTIATIONS",
        "negotiations",
        are_there=lambda rows, found: (
            (found["epoch"] == rows.header.epoch) & (found["rounds"] + found["disbelieved"] > 0)
        ),
        are_sound=lambda rows, found: (
            (found["words_most"] <= WORDS_MOST)
            & plausible(
                found, [field for field in found.dtype.names or () if found[field].dtype == "<u8"]
            )
        ),
        computed=lambda rows, found: {
            "ahead_since_ns": unless(
                found["ahead_since_ticks"] == 0, rows.clock.times_ns(found["ahead_since_ticks"])
            )
        },
    ),
    "negotiated_step": Kind(
        "NEGOTIATED_STEPS",
        "steps of negotiations",
        are_there=lambda rows, found: (
            (found["live"] == 1) & (found["begin_ticks"] >= rows.header.reset_ticks)
        ),
        are_sound=lambda rows, found: np.all(
            [
                found["step"] > 0,
                found["tensors"] > 0,
                found["done_ticks"] < MOST,
                *(found[earlier] <= found[later] for earlier, later in zip(TIMES, TIMES[1:])),
            ],
            axis=0,
        ),
    ),
    "nccl_algorithm": Kind(
        "ALGORITHMS",
        "algorithms of NCCL",
        are_there=lambda rows, found: (found["epoch"] == rows.header.epoch) & (found["count"] > 0),
        are_sound=lambda rows, found: plausible(found, ["count", "bytes"]),
    ),
    "signature": Kind(
        "SIGNATURES",
        "signatures",
        key="signature",
        are_sound=lambda rows, found: (
            plausible(found, ["count", "type_bytes", "blocks", "buffer_at", "received_at"])
            & (found["extent"] < MOST)
            & (found["extent"] > -MOST)
            & (found["signature"] > 0)
            & (found["signature"] <= MOST_SIGNATURES)
            & memory_kinds_are_known(found["memory_kind"])
        ),
        computed=_signature_columns,
    ),
    "gpu_stream": Kind("STREAMS", key="stream"),
    "gpu_tracing": Kind(
        "TRACINGS",
        "times of tracing",
        are_sound=lambda rows, found: (
            np.less_equal(*_traced_ns(rows, found))
            & (found["ended"] < len(NAMES["tracing_end"]))
            & (found["records"] <= MOST)
            & (found["part"] <= PART_STEPS)
        ),
        counts=lambda rows, found: (
            (_traced_ns(rows, found)[1] >= rows.reset_ns)
            & (found["part"] == found["part"].max(initial=0))
        ),
        computed=_tracing_columns,
    ),
    "gpu_reading": Kind(
        "READINGS",
        "readings of sensors",
        are_there=lambda rows, found: found["live"] == 1,
        are_sound=lambda rows, found: np.all(
            [
                found["at_ns"] >= rows.start_ns,
                rows.since_ns(found["at_ns"]) <= rows.last_ns,
                *(
                    (found[field] < MOST) | (found[field] == BYTES_UNKNOWN)
                    for field in found.dtype.names or ()
                    if field.endswith("_bytes")
                ),
            ],
            axis=0,
        ),
        counts=lambda rows, found: rows.since_ns(found["at_ns"]) >= rows.reset_ns,
        computed=lambda rows, found: {
            name: unless(found["limits"] & READING_KNOWN == 0, found["limits"] // bit & 1)
            for name, bit in LIMITS.items()
        },
    ),
}


def usage_facts(ledger: Ledger) -> dict[str, str]:
    """The readings of the process's use of its host as facts; a reading that was never taken has
    none."""
    facts: dict[str, Any] = {}
    for reading in ("begin", "last"):
        usage = layout("usage").make(getattr(ledger.header, f"usage_{reading}"))
        numbers = {
            key: value
            for key, value in usage._asdict().items()
            if key not in ("affinity", "core", "numa_node")
            and not (key in ("throttled_ns", "stolen_ns") and value == BYTES_UNKNOWN)
        }
        if usage.since_start_ns <= 0 or max(numbers.values()) >= MOST:
            continue
        if usage.core >= 0:
            numbers.update(core=usage.core, numa_node=usage.numa_node)
        cores = [
            64 * place + bit
            for place, word in enumerate(map(int, usage.affinity))
            for bit in range(64)
            if word >> bit & 1
        ]
        if cores:
            numbers["affinity"] = units.rank_list(cores)
        facts |= {f"{reading}.{key}": str(value) for key, value in numbers.items()}
    return facts


def life_of(ledger: Ledger, clock: Clock) -> tuple[int, dict[str, str]]:
    """Until when a rank is known to have lived, since its start: its end; now, if the process
    lives; else the latest of its threads' last actions and the last change of its file. And facts
    about that."""
    header = ledger.header
    copied = {"ledger_copied_unix_ns": str(header.copied_unix_ns)} if header.copied_unix_ns else {}
    if has_ended(ledger):
        return believed(header.end_ns - header.start_ns), copied
    state = process_state(header.pid, ledger.facts)
    written_ns = (header.copied_unix_ns or ledger.modified_unix_ns) - header.start_unix_ns
    if state == RUNNING and not header.copied_unix_ns:
        written_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - header.start_ns
    acted_ns = since_ns(clock, ledger.entries("THREADS"))
    last_ns = max(believed(written_ns), int(acted_ns.max(initial=0)))
    return last_ns, {
        **copied,
        "process_state": state,
        "last_sign_unix_ns": str(header.start_unix_ns + last_ns),
        "ledger_modified_unix_ns": str(ledger.modified_unix_ns),
    }


def has_ended(ledger: Ledger) -> bool:
    return ledger.header.ended != 0 and ledger.header.end_ns >= ledger.header.start_ns


def since_ns(clock: Clock, threads: np.ndarray) -> np.ndarray:
    """When the threads entered their calls or returned from them, since the rank's start."""
    return np.where(threads["doing"] == 0, 0, clock.times_ns(threads["since_ticks"]))


def _rank_row(rows: Rows) -> tuple:
    ledger, header, last_ns = rows.ledger, rows.header, rows.last_ns
    counting_ns = (
        last_ns + header.start_ns - header.counting_since_ns if header.counting_since_ns else 0
    )
    begin_ns, end_ns = (
        believed((window << WINDOW_NS_LOG2) - header.start_unix_ns)
        for window in (header.record_first, header.record_last + 1)
    )
    record_ns = (begin_ns, max(begin_ns, min(end_ns, last_ns)))
    (row,) = rows.rows(
        "rank",
        np.array([tuple(header)], HEADER.dtype),
        run_id=ledger.facts.get("run_id", ""),
        end_unix_ns=header.end_unix_ns or None if has_ended(ledger) else None,  # 0: a snapshot
        wall_ns=last_ns if has_ended(ledger) else None,
        counted_ns=min(believed(header.counted_ns) + believed(counting_ns), MOST),
        **dict(
            zip(
                ("record_begin_ns", "record_end_ns"),
                record_ns if header.record_first else (None, None),
            )
        ),
    )
    return row


def _recent_rows(rows: Rows) -> list[Any]:
    """The recent collectives of communicators except the oldest, whose slot may already be in use
    by a collective that is not announced yet."""
    found = rows.ledger.entries("COMMUNICATORS", "communicator")
    recent = [
        (place, sequence)
        for place, begun in enumerate(found["collectives"].tolist())
        for newest in [min(begun, MOST)]
        for sequence in range(max(1, newest - RECENT_COLLECTIVES + 2), newest + 1)
    ]
    place, sequence = np.array(recent, np.int64).reshape(-1, 2).T
    return rows.rows(
        "recent_collective",
        found["recent"][place, (sequence - 1) % RECENT_COLLECTIVES],
        communicator=found["communicator"][place],
        sequence=sequence,
    )

"""A ledger as rows of the schema's tables."""

from __future__ import annotations

import time
from typing import Any

from ..base import units
from ..base.arrays import np
from . import process
from .ledger import (
    CELL_FOLDED, COMMUNICATOR_NCCL, DIRECTIONS, DOING_INSIDE_BIT, DOING_REQUEST_CALL_BIT,
    DOING_SLOT_BIT, HEADER, LIBRARIES, MEASURES, NO_RANK, NO_TAG, PEER_SLOT_BIT,
    RECENT_COLLECTIVES, SIGNATURE_COMMUTATIVE, SIGNATURE_COUNTS, WINDOW_NS_LOG2, Ledger, Sums,
    cells_sum, memory_kind_name, memory_kinds_are_known, peers_sum,
)
from .ledger_format import layout, number
from .ledger_gpu import bucket_rows, gpu_facts, gpu_rows
from .ledger_samples import CALL_MASK, Clock, clock_of, sample_rows
from .rows import BYTES_UNKNOWN, MOST, Rows, believed, hexadecimal, unless

MOST_SIGNATURES = (1 << 16) - 1
STATUS_PLACES, WORDS_MOST, WORD_PLACES = (
    number(name) for name in ("STATUS_PLACES", "WORDS_MOST", "WORD_PLACES")
)


def ledger_rows(ledger: Ledger, with_histograms: bool) -> dict[str, list[Any]]:
    """Rows by table; cells and activities are numbered from 1."""
    rank = ledger.header.world_rank
    clock = clock_of(ledger)
    life = life_of(ledger, clock)
    rows = Rows(ledger.header, ledger.call_name, clock.since_start_ns)
    is_alive = life.facts.get("process_state") == process.RUNNING
    facts = {**ledger.facts, **usage_facts(ledger), **gpu_facts(ledger, is_alive), **life.facts}
    samples = sample_rows(ledger, rows, clock, life.last_ns, has_ended(ledger))
    cells, threads = cells_sum(ledger)
    cell_rows = _cell_rows(ledger, rows, cells, threads)
    calls = {name: (name, *about) for name, *about in ledger.calls.values()}
    unknown = {row.call for row in (*cell_rows, *samples["sample"])} - calls.keys()
    calls.update(
        {
            call: (call, "unknown", LIBRARIES[0], "blocking", "unrated", "nobody")
            for call in sorted(unknown)
        }
    )
    return {
        "rank": [_rank_row(ledger, rows, life)],
        "fact": [(rank, key, value) for key, value in facts.items()],
        "thread": _thread_rows(ledger, rows, clock),
        "cpu_time": _cpu_time_rows(ledger, rows, clock),
        "negotiation": _negotiation_rows(ledger, rows, clock),
        "negotiated_place": _place_rows(ledger, rows),
        "negotiated_step": _negotiated_step_rows(ledger, rows),
        "call": list(calls.values()),
        **_communicator_rows(ledger, rows),
        "cell": cell_rows,
        "bucket": bucket_rows(cells) if with_histograms else [],
        "peer": _peer_rows(ledger, rows),
        "region": rows.rows("region", ledger.entries("REGIONS")),
        "signature": _signature_rows(ledger, rows),
        "nccl_algorithm": _algorithm_rows(ledger, rows),
        **gpu_rows(ledger, rows, clock, life.last_ns, with_histograms),
        **samples,
    }


def _cell_rows(ledger: Ledger, rows: Rows, cells: Sums, threads: np.ndarray) -> list[Any]:
    found = cells.entries
    measure, is_folded = found["measure_and_flags"] & 15, found["measure_and_flags"] >> 4
    return rows.rows(
        "cell",
        found,
        cell=np.arange(1, len(found) + 1),
        thread=threads[cells.first],
        call=[ledger.call_name(call) for call in found["call"].tolist()],
        measure=[MEASURES[value] for value in measure.tolist()],
        memory_kind=[memory_kind_name(pair) for pair in found["memory_kind"].tolist()],
        is_folded=is_folded & CELL_FOLDED,
        count=cells.calls,
    )


def _peer_rows(ledger: Ledger, rows: Rows) -> list[Any]:
    peers = peers_sum(ledger)
    communicator, direction = np.divmod(peers["direction"], 1 << PEER_SLOT_BIT)
    return rows.rows(
        "peer", peers, call=[ledger.call_name(call) for call in peers["call"].tolist()],
        direction=[DIRECTIONS[value] for value in direction.tolist()], communicator=communicator,
    )


def _cpu_time_rows(ledger: Ledger, rows: Rows, clock: Clock) -> list[Any]:
    """Readings from before a reset do not count. A rank that hangs is read on after its last
    call."""
    entries = ledger.entries("CPU_TIMES")
    entries = entries[entries["live"] == 1]
    waiting_ns = entries["waiting_ns"]
    is_sound = (entries["core_ns"] < MOST) & (
        (waiting_ns < MOST) | (waiting_ns == BYTES_UNKNOWN)
    )
    at_ns = rows.since_ns(entries["at_ns"])
    is_sound &= (entries["at_ns"] >= ledger.header.start_ns) & (at_ns < MOST)
    ledger.damage_note(len(entries) - int(is_sound.sum()), "readings of CPU times")
    counts = is_sound & (at_ns >= clock.reset_ns(ledger.header))
    return rows.rows("cpu_time", entries[counts])


def _of_epoch(ledger: Ledger, kind: str) -> np.ndarray:
    """The entries of this kind since the last reset."""
    entries = ledger.entries(kind)
    return entries[entries["epoch"] == ledger.header.epoch]


def _negotiation_rows(ledger: Ledger, rows: Rows, clock: Clock) -> list[Any]:
    entries = _of_epoch(ledger, "NEGOTIATIONS")
    entries = entries[entries["rounds"] + entries["disbelieved"] > 0]
    numbers = [entries[field] for field in entries.dtype.names if entries[field].dtype == "<u8"]
    is_sound = (np.max(numbers, axis=0) < MOST) & (entries["words_most"] <= WORDS_MOST)
    entries = ledger.sound(entries, is_sound, "negotiations")
    ahead_since = entries["ahead_since_ticks"]
    ahead_since_ns = unless(ahead_since == 0, clock.times_ns(ahead_since))
    return rows.rows("negotiation", entries, ahead_since_ns=ahead_since_ns)


def _place_rows(ledger: Ledger, rows: Rows) -> list[Any]:
    entries = _of_epoch(ledger, "PLACES")
    entries = ledger.sound(entries, entries["word"] < WORDS_MOST, "words of negotiations")
    agreed = entries["agreed"]
    place = entries["word"][:, None] * WORD_PLACES + np.arange(WORD_PLACES)
    chosen = (agreed > 0) & (agreed < MOST) & (place >= STATUS_PLACES)
    return rows.rows(
        "negotiated_place", entries[np.nonzero(chosen)[0]], place=place[chosen],
        agreed=agreed[chosen],
    )


def _negotiated_step_rows(ledger: Ledger, rows: Rows) -> list[Any]:
    entries = ledger.entries("NEGOTIATED_STEPS")
    counted = (entries["live"] == 1) & (entries["begin_ticks"] >= ledger.header.reset_ticks)
    entries = entries[counted]
    is_sound = (entries["step"] > 0) & (entries["tensors"] > 0) & (entries["done_ticks"] < MOST)
    times = ("handed_after_ticks", "handed_ticks", "agreed_ticks", "done_ticks")
    for earlier, later in zip(times, times[1:]):
        is_sound &= entries[earlier] <= entries[later]
    entries = ledger.sound(entries, is_sound, "steps of negotiations")
    return rows.rows("negotiated_step", entries)


def _algorithm_rows(ledger: Ledger, rows: Rows) -> list[Any]:
    entries = _of_epoch(ledger, "ALGORITHMS")
    entries = entries[entries["count"] > 0]
    is_sound = np.maximum(entries["count"], entries["bytes"]) < MOST
    entries = ledger.sound(entries, is_sound, "algorithms of NCCL")
    return rows.rows("nccl_algorithm", entries)


def _signature_rows(ledger: Ledger, rows: Rows) -> list[Any]:
    entries = ledger.entries("SIGNATURES", "signature")
    amounts = ("count", "type_bytes", "blocks", "buffer_at", "received_at")
    is_sound = np.all([entries[field] < MOST for field in amounts], axis=0)
    is_sound &= (entries["extent"] < MOST) & (entries["extent"] > -MOST)
    is_sound &= (entries["signature"] > 0) & (entries["signature"] <= MOST_SIGNATURES)
    is_sound &= memory_kinds_are_known(entries["memory_kind"])
    entries = ledger.sound(entries, is_sound, "signatures")
    flags = entries["flags"]
    has_no_type, has_no_op = (entries[field].astype("S1") == b"" for field in ("datatype", "op"))
    return rows.rows(
        "signature",
        entries,
        type_bytes=unless(has_no_type, entries["type_bytes"]),
        extent=unless(has_no_type, entries["extent"]),
        is_commutative=unless(has_no_op, flags // SIGNATURE_COMMUTATIVE & 1),
        counts_hash=unless(flags & SIGNATURE_COUNTS == 0, hexadecimal(entries["counts_hash"])),
        memory_kind=[memory_kind_name(pair) for pair in entries["memory_kind"].tolist()],
    )


def usage_facts(ledger: Ledger) -> dict[str, str]:
    """The readings of the process's use of its host as facts; a reading that was never taken has
    none."""
    readings = {
        "begin": layout("usage").unpack(ledger.header.usage_begin),
        "last": layout("usage").unpack(ledger.header.usage_last),
    }
    return {
        f"{reading}.{key}": value for reading, usage in readings.items()
        for key, value in _reading_facts(usage).items()
    }


def _reading_facts(usage) -> dict[str, str]:
    numbers = {
        key: value for key, value in usage._asdict().items()
        if key not in ("affinity", "core", "numa_node")
    }
    for key in ("throttled_ns", "stolen_ns"):
        if numbers[key] == BYTES_UNKNOWN:
            del numbers[key]
    if usage.since_start_ns <= 0 or max(numbers.values()) >= MOST:
        return {}
    place = {"core": usage.core, "numa_node": usage.numa_node} if usage.core >= 0 else {}
    cores = [
        core for core in range(8 * len(usage.affinity)) if usage.affinity[core // 8] >> core % 8 & 1
    ]
    affinity = {"affinity": units.rank_list(cores)} if cores else {}
    return {**{key: str(value) for key, value in {**numbers, **place}.items()}, **affinity}


class Life:
    """Until when a rank is known to have lived: its end, now, or its last sign of life."""

    def __init__(self, last_ns: int, facts: dict[str, str]) -> None:
        self.last_ns = last_ns  # since its start
        self.facts = facts


def life_of(ledger: Ledger, clock: Clock) -> Life:
    header = ledger.header
    copied = {"ledger_copied_unix_ns": str(header.copied_unix_ns)} if header.copied_unix_ns else {}
    if has_ended(ledger):
        return Life(believed(header.end_ns - header.start_ns), copied)
    state = process.process_state(header.pid, ledger.facts)
    last_ns = _last_sign_ns(ledger, clock, state)
    found = {
        "process_state": state,
        "last_sign_unix_ns": str(header.start_unix_ns + last_ns),
        "ledger_modified_unix_ns": str(ledger.modified_unix_ns),
    }
    return Life(last_ns, {**copied, **found})


def has_ended(ledger: Ledger) -> bool:
    return ledger.header.ended != 0 and ledger.header.end_ns >= ledger.header.start_ns


def _last_sign_ns(ledger: Ledger, clock: Clock, state: str) -> int:
    """Now, if the process lives; else the latest of its threads' last actions and the last change
    of its file."""
    header = ledger.header
    if header.copied_unix_ns:
        written_ns = header.copied_unix_ns - header.start_unix_ns
    elif state == process.RUNNING:
        written_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - header.start_ns
    else:
        written_ns = ledger.modified_unix_ns - header.start_unix_ns
    return max(believed(written_ns), *since_ns(clock, ledger.entries("THREADS")).tolist(), 0)


def since_ns(clock: Clock, threads: np.ndarray) -> np.ndarray:
    """When the threads entered their calls or returned from them, since the rank's start."""
    return np.where(threads["doing"] == 0, 0, clock.times_ns(threads["since_ticks"]))


def _rank_row(ledger: Ledger, rows: Rows, life: Life) -> tuple:
    header = ledger.header
    counting_ns = (
        life.last_ns + header.start_ns - header.counting_since_ns if header.counting_since_ns else 0
    )
    (row,) = rows.rows(
        "rank",
        HEADER.array(HEADER.codec.pack(*header)),
        run_id=ledger.facts.get("run_id", ""),
        end_unix_ns=header.end_unix_ns if has_ended(ledger) else None,
        wall_ns=life.last_ns if has_ended(ledger) else None,
        counted_ns=min(believed(header.counted_ns) + believed(counting_ns), MOST),
        **_record(header, life),
    )
    return row


def _record(header, life: Life) -> dict[str, int | None]:
    """The columns of table `rank` about the record."""
    if not header.record_first:
        return {"record_begin_ns": None, "record_end_ns": None}
    begin_ns, end_ns = (
        believed((window << WINDOW_NS_LOG2) - header.start_unix_ns)
        for window in (header.record_first, header.record_last + 1)
    )
    return {
        "record_begin_ns": begin_ns,
        "record_end_ns": max(begin_ns, min(end_ns, life.last_ns)),
    }


def _thread_rows(ledger: Ledger, rows: Rows, clock: Clock) -> list[Any]:
    threads = ledger.entries("THREADS", "thread")
    call, communicator, request_call = (
        threads["doing"] >> bit & CALL_MASK for bit in (0, DOING_SLOT_BIT, DOING_REQUEST_CALL_BIT)
    )
    is_idle = call == 0
    return rows.rows(
        "thread",
        threads,
        doing_call=rows.call_names(call),
        doing_communicator=communicator,
        doing_is_inside=threads["doing"] >> DOING_INSIDE_BIT & 1,
        doing_since_ns=since_ns(clock, threads),
        doing_bytes=unless(
            is_idle | (threads["bytes"] == BYTES_UNKNOWN), np.minimum(threads["bytes"], MOST)
        ),
        doing_peer=unless(is_idle | (threads["peer"] == NO_RANK), threads["peer"]),
        doing_tag=unless(is_idle | (threads["tag"] == NO_TAG), threads["tag"]),
        doing_request_call=rows.call_names(request_call),
    )


def _communicator_rows(ledger: Ledger, rows: Rows) -> dict[str, list[Any]]:
    """Communicators, and their recent collectives except the oldest, whose slot may already be in
    use by a collective that is not announced yet."""
    found = ledger.entries("COMMUNICATORS", "communicator")
    parent = hexadecimal(found["parent_identity"])
    recent = [
        (place, sequence) for place, begun in enumerate(found["collectives"].tolist())
        for newest in [min(begun, MOST)]
        for sequence in range(max(1, newest - RECENT_COLLECTIVES + 2), newest + 1)
    ]
    place, sequence = np.array(recent, np.int64).reshape(-1, 2).T
    return {
        "communicator": rows.rows(
            "communicator", found, identity=hexadecimal(found["identity"]),
            parent_identity=unless(found["parent_identity"] == 0, parent),
            library=[LIBRARIES[int(flags & COMMUNICATOR_NCCL != 0)] for flags in found["flags"]],
        ),
        "recent_collective": rows.rows(
            "recent_collective", found["recent"][place, (sequence - 1) % RECENT_COLLECTIVES],
            communicator=found["communicator"][place], sequence=sequence,
        ),
    }

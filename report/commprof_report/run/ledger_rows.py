"""A ledger as rows of the schema's tables."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Any

from ..base import units
from . import process
from .ledger import (
    COLLECTIVE, COMMUNICATOR_NCCL, DOING_REQUEST_CALL_BIT, DOING_INSIDE_BIT, DOING_SLOT_BIT,
    LIBRARIES, NEGOTIATION, NO_TAG, RECENT_COLLECTIVES, SIGNATURE_COMMUTATIVE, SIGNATURE_COUNTS,
    USAGE,
    WINDOW_NS_LOG2, Ledger, cells_sum, memory_kind_is_known, memory_kind_name, peers_sum,
)
from .ledger_format import number
from .ledger_gpu import damage_note, gpu_facts, gpu_rows
from .ledger_samples import CALL_MASK, Clock, clock_of, rows_of, sample_rows
from .rows import BYTES_UNKNOWN, MOST, Rows, believed, known_bytes, known_rank

MOST_SIGNATURES = (1 << 16) - 1
STATUS_PLACES, WORDS_MOST, WORD_PLACES = (
    number(name) for name in ("STATUS_PLACES", "WORDS_MOST", "WORD_PLACES")
)
COUNTS = struct.Struct(f"<{WORD_PLACES}Q")
NEGOTIATION_NUMBERS = list(NEGOTIATION.offsets).index("thread")


def ledger_rows(ledger: Ledger, with_histograms: bool) -> dict[str, list[Any]]:
    """Rows by table; cells and activities are numbered from 1."""
    rank = ledger.header.world_rank
    cells = sorted(cells_sum(ledger).items())
    calls = {name: (name, *about) for name, *about in ledger.calls.values()}
    clock = clock_of(ledger)
    life, rows = life_of(ledger, clock), rows_of(ledger, clock)
    is_alive = life.facts.get("process_state") == process.RUNNING
    facts = {**ledger.facts, **usage_facts(ledger), **gpu_facts(ledger, is_alive), **life.facts}
    samples = sample_rows(ledger, clock, life.last_ns, has_ended(ledger))
    named = {key.call for key, _ in cells} | {row.call for row in samples["sample"]}
    calls.update(
        {
            call: (call, "unknown", LIBRARIES[0], "blocking", "unrated", "nobody")
            for call in sorted(named - calls.keys())
        }
    )
    return {
        "rank": [_rank_row(ledger, rows, life)],
        "fact": [(rank, key, value) for key, value in facts.items()],
        "thread": [_thread_row(ledger, rows, clock, entry) for entry in ledger.threads.values()],
        "cpu_time": _cpu_time_rows(ledger, rows, clock),
        "negotiation": _negotiation_rows(ledger, rows, clock),
        "negotiated_place": _place_rows(ledger, rows),
        "negotiated_step": _negotiated_step_rows(ledger, rows),
        "call": list(calls.values()),
        "communicator": [_communicator_row(rows, entry) for entry in ledger.communicators.values()],
        "recent_collective": [
            row for entry in ledger.communicators.values() for row in _recent_rows(rows, entry)
        ],
        "cell": [
            rows.row("cell", cell, cell=number, **key._asdict(), count=cell.count)
            for number, (key, cell) in enumerate(cells, 1)
        ],
        "bucket": [
            (number, bucket, count) for number, (_, cell) in enumerate(cells, 1)
            for bucket, count in sorted(cell.buckets.items()) if with_histograms
        ],
        "peer": [(rank, *key, *amounts) for key, amounts in peers_sum(ledger).items()],
        "region": [(rank, region, name) for region, name in ledger.regions.items()],
        "signature": _signature_rows(ledger, rows),
        "nccl_algorithm": _algorithm_rows(ledger, rows),
        **gpu_rows(ledger, clock, life.last_ns, with_histograms),
        **samples,
    }


def _cpu_time_rows(ledger: Ledger, rows: Rows, clock: Clock) -> list[Any]:
    """Readings from before a reset do not count. A rank that hangs is read on after its last
    call."""
    reset_ns = clock.since_start_ns(ledger.header.reset_ticks) if ledger.header.reset_ticks else 0
    live = [entry for entry in ledger.cpu_times if entry.live == 1]
    sound = {
        (entry.thread, entry.at_ns): entry for entry in live
        if 0 <= entry.at_ns - ledger.header.start_ns < MOST and entry.core_ns < MOST
        and (entry.waiting_ns < MOST or entry.waiting_ns == BYTES_UNKNOWN)
    }
    damage_note(ledger, len(live) - len(sound), "readings of CPU times")
    return [
        rows.row("cpu_time", entry) for (_, at_ns), entry in sorted(sound.items())
        if at_ns - ledger.header.start_ns >= reset_ns
    ]


def _negotiation_rows(ledger: Ledger, rows: Rows, clock: Clock) -> list[Any]:
    counted = [
        entry for entry in ledger.negotiations
        if entry.epoch == ledger.header.epoch and entry.rounds + entry.disbelieved
    ]
    sound = {
        (entry.thread, entry.communicator): entry for entry in counted
        if max(entry[:NEGOTIATION_NUMBERS]) < MOST and entry.words_most <= WORDS_MOST
    }
    damage_note(ledger, len(counted) - len(sound), "negotiations")
    return [
        rows.row(
            "negotiation", entry,
            ahead_since_ns=clock.since_start_ns(entry.ahead_since_ticks)
            if entry.ahead_since_ticks else None,
        )
        for entry in sound.values()
    ]


def _place_rows(ledger: Ledger, rows: Rows) -> list[Any]:
    counted = [entry for entry in ledger.places if entry.epoch == ledger.header.epoch]
    sound = {
        (entry.thread, entry.communicator, entry.word): (entry, COUNTS.unpack(entry.agreed))
        for entry in counted if entry.word < WORDS_MOST
    }
    damage_note(ledger, len(counted) - len(sound), "words of negotiations")
    return [
        rows.row("negotiated_place", entry, place=entry.word * WORD_PLACES + index, agreed=agreed)
        for entry, counts in sound.values() for index, agreed in enumerate(counts)
        if 0 < agreed < MOST and entry.word * WORD_PLACES + index >= STATUS_PLACES
    ]


def _negotiated_step_rows(ledger: Ledger, rows: Rows) -> list[Any]:
    counted = [
        entry for entry in ledger.negotiated_steps
        if entry.live == 1 and entry.begin_ticks >= ledger.header.reset_ticks
    ]
    sound = {
        (entry.thread, entry.communicator, entry.step): entry for entry in counted
        if entry.step and entry.tensors and entry.handed_after_ticks <= entry.handed_ticks
        <= entry.agreed_ticks <= entry.done_ticks < MOST
    }
    damage_note(ledger, len(counted) - len(sound), "steps of negotiations")
    return [rows.row("negotiated_step", entry) for entry in sound.values()]


def _algorithm_rows(ledger: Ledger, rows: Rows) -> list[Any]:
    counted = [
        entry for entry in ledger.algorithms if entry.count and entry.epoch == ledger.header.epoch
    ]
    sound = [entry for entry in counted if max(entry.count, entry.bytes) < MOST]
    damage_note(ledger, len(counted) - len(sound), "algorithms of NCCL")
    return [rows.row("nccl_algorithm", entry) for entry in sound]


def _signature_rows(ledger: Ledger, rows: Rows) -> list[Any]:
    sound = [entry for entry in ledger.signatures.values() if _signature_is_sound(entry)]
    damage_note(ledger, len(ledger.signatures) - len(sound), "signatures")
    return [
        rows.row(
            "signature",
            entry,
            type_bytes=entry.type_bytes if entry.datatype[0] else None,
            extent=entry.extent if entry.datatype[0] else None,
            is_commutative=int(entry.flags & SIGNATURE_COMMUTATIVE != 0) if entry.op[0] else None,
            counts_hash=f"{entry.counts_hash:016x}" if entry.flags & SIGNATURE_COUNTS else None,
            memory_kind=memory_kind_name(entry.memory_kind),
            buffer_at=entry.buffer_at or None,
            received_at=entry.received_at or None,
        )
        for entry in sound
    ]


def _signature_is_sound(entry) -> bool:
    amounts = (
        entry.count, entry.type_bytes, entry.blocks, abs(entry.extent), entry.buffer_at,
        entry.received_at,
    )
    return (
        0 < entry.signature <= MOST_SIGNATURES and max(amounts) < MOST
        and memory_kind_is_known(entry.memory_kind)
    )


def usage_facts(ledger: Ledger) -> dict[str, str]:
    """The readings of the process's use of its host as facts; a reading that was never taken has
    none."""
    readings = {
        "begin": USAGE.unpack(ledger.header.usage_begin),
        "last": USAGE.unpack(ledger.header.usage_last),
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
    return max(
        believed(written_ns), *(since_ns(clock, thread) for thread in ledger.threads.values()), 0
    )


def since_ns(clock: Clock, thread) -> int:
    """When a thread entered its call or returned from it, since the rank's start."""
    return clock.since_start_ns(thread.since_ticks) if thread.doing else 0


def _rank_row(ledger: Ledger, rows: Rows, life: Life) -> tuple:
    header = ledger.header
    counting_ns = (
        life.last_ns + header.start_ns - header.counting_since_ns if header.counting_since_ns else 0
    )
    return rows.row(
        "rank",
        header,
        run_id=ledger.facts.get("run_id", ""),
        end_unix_ns=header.end_unix_ns if has_ended(ledger) else None,
        wall_ns=life.last_ns if has_ended(ledger) else None,
        counted_ns=min(believed(header.counted_ns) + believed(counting_ns), MOST),
        **_record(header, life),
    )


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


def _thread_row(ledger: Ledger, rows: Rows, clock: Clock, entry) -> tuple:
    call, communicator, request_call = (
        entry.doing >> bit & CALL_MASK for bit in (0, DOING_SLOT_BIT, DOING_REQUEST_CALL_BIT)
    )
    return rows.row(
        "thread",
        entry,
        doing_call=ledger.call_name(call) if call else "",
        doing_communicator=communicator,
        doing_is_inside=entry.doing >> DOING_INSIDE_BIT & 1,
        doing_since_ns=since_ns(clock, entry),
        doing_bytes=known_bytes(entry.bytes) if call else None,
        doing_peer=known_rank(entry.peer) if call else None,
        doing_tag=entry.tag if call and entry.tag != NO_TAG else None,
        doing_request_call=ledger.call_name(request_call) if request_call else "",
    )


def _communicator_row(rows: Rows, entry) -> tuple:
    return rows.row(
        "communicator", entry, identity=f"{entry.identity:016x}",
        parent_identity=f"{entry.parent_identity:016x}" if entry.parent_identity else None,
        library=LIBRARIES[int(bool(entry.flags & COMMUNICATOR_NCCL))],
    )


def _recent_rows(rows: Rows, entry) -> Iterator[tuple]:
    """The recent collectives except the oldest, whose slot may already be in use by a collective
    that is not announced yet."""
    entries = COLLECTIVE.unpack_all(entry.recent)
    newest = min(entry.collectives, MOST)
    for sequence in range(max(1, newest - RECENT_COLLECTIVES + 2), newest + 1):
        known = entries[(sequence - 1) % RECENT_COLLECTIVES]
        yield rows.row(
            "recent_collective", known, communicator=entry.communicator, sequence=sequence
        )

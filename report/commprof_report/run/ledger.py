"""A rank's ledger: its entries, and the sums of its cells and peers. src/ledger/ledger_format.h
declares the layout.

A ledger is untrusted input: it may be truncated, overwritten, or still be written to. Plausible
entries are read; the others are left out and reported once. While its process lives, this happens
concurrently:

    writer  folds_begun += 1  cells fold  folds_ended += 1     doing's details change  doing changes
    reader  header            chunks      header again         threads                 threads again

So cells are read again if the two headers differ in the counters of folds, resets or sample levels.
A thread's details are used if its `doing` is the same before and after; a page of samples if its
owner is the same, and a sample if it is itself the same. Pages are read before the levels that
select them, because levels only grow. A chunk is announced only after it is complete, so growth of
the ledger does no harm.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from ..base import units
from ..base.errors import ReportError, version_check
from ..base.regular import regular_open
from . import process
from .ledger_format import FORMAT, layout, number
from .rows import MOST, NAMES, numbers_of, text
from .stub import Stub, not_here, stub_read

MAGIC = b"commprof-ledger\n"
VERSION = number("VERSION")
HEADER_BYTES = number("HEADER_BYTES")
CHUNK_BYTES = number("CHUNK_BYTES")
MOST_CHUNKS = number("MOST_CHUNKS")
MOST_RANKS = 1 << 24
RECENT_COLLECTIVES = number("RECENT_COLLECTIVES")
PAGE_SAMPLES = number("PAGE_SAMPLES")
WINDOW_NS_LOG2 = number("WINDOW_NS_LOG2")
NO_RANK, NO_TAG = number("NO_RANK"), number("NO_TAG")
PEER_OUTSIDE, PEER_ANY = number("PEER_OUTSIDE"), number("PEER_ANY")
BYTES_UNKNOWN = number("BYTES_UNKNOWN")
DOING_BYTES = 8
DOING_SLOT_BIT, DOING_INSIDE_BIT, DOING_REQUEST_CALL_BIT = (
    number(f"DOING_{part}_BIT") for part in ("SLOT", "INSIDE", "REQUEST_CALL")
)
TRIES = 8  # to read a ledger that is being written to in a consistent state
FIRST_PAUSE_S = 0.0005  # doubled after each try; a fold takes microseconds

MEASURES, MEMORY_KINDS, DIRECTIONS = NAMES["measure"], NAMES["memory_kind"], NAMES["direction"]
MEMORY_KIND_TO_BIT = number("MEMORY_KIND_TO_BIT")
PEER_SLOT_BIT = number("PEER_SLOT_BIT")
LIBRARIES = ("mpi", "nccl")
CELL_FOLDED = number("CELL_FOLDED")
COMMUNICATOR_INTER, COMMUNICATOR_FREED, COMMUNICATOR_NCCL = (
    number(f"COMMUNICATOR_{flag}") for flag in ("INTER", "FREED", "NCCL")
)
SIGNATURE_COMMUTATIVE, SIGNATURE_COUNTS = (
    number("SIGNATURE_COMMUTATIVE"), number("SIGNATURE_COUNTS"),
)
OF_THREAD, OF_STREAM, OF_STEPS = (number(f"OF_{owner}") for owner in ("THREAD", "STREAM", "STEPS"))
OWNER_NUMBER_BIT = 8
PAGE_IDENTITY_BYTES = 16  # owner and first

HEADER, USAGE, CHUNK, FACT, COLLECTIVE, SAMPLE = (
    layout(name) for name in ("header", "usage", "chunk", "fact", "collective", "sample")
)
CALL, COMMUNICATOR, CELL, PEER, THREAD = (
    layout(name) for name in ("call", "communicator", "cell", "peer", "thread")
)
PAGE, REGION, KERNEL, ACTIVITY, ACTIVITY_SAMPLE = (
    layout(name) for name in ("page", "region", "kernel", "activity", "activity_sample")
)
STREAM, DEVICE, TRACING, ALGORITHM, SIGNATURE = (
    layout(name) for name in ("stream", "device", "tracing", "algorithm", "signature")
)
READING, CPU_TIME = layout("reading"), layout("cpu_time")
NEGOTIATION, PLACES_OF_WORD, NEGOTIATED_STEP = (
    layout("negotiation"), layout("places"), layout("negotiated_step"),
)
HISTOGRAM_BUCKETS = FORMAT.numbers["HISTOGRAM_BUCKETS"]
BUCKETS = struct.Struct(f"<{HISTOGRAM_BUCKETS}Q")
BLOCK = struct.Struct(f"<{FORMAT.numbers['HISTOGRAM_SUB_BUCKETS']}Q")
BLOCKS = struct.Struct(f"<{FORMAT.numbers['HISTOGRAM_BLOCKS']}i")
NO_COUNTS = (0,) * FORMAT.numbers["HISTOGRAM_SUB_BUCKETS"]
# where bucket 0 is among the counts of all blocks
FIRST_BUCKET = FORMAT.numbers["HISTOGRAM_SUB_BUCKETS"] - 1
STATES = struct.Struct(f"<{number('BUSY_STATES')}Q")
CALLS, FACTS, COMMUNICATORS, CELLS, PEERS = (
    number(kind) for kind in ("CALLS", "FACTS", "COMMUNICATORS", "CELLS", "PEERS")
)
THREADS, SAMPLES, REGIONS, KERNELS, ACTIVITIES = (
    number(kind) for kind in ("THREADS", "SAMPLES", "REGIONS", "KERNELS", "ACTIVITIES")
)
STREAMS, DEVICES, TRACINGS, ALGORITHMS, SIGNATURES = (
    number(kind) for kind in ("STREAMS", "DEVICES", "TRACINGS", "ALGORITHMS", "SIGNATURES")
)
READINGS, CPU_TIMES = number("READINGS"), number("CPU_TIMES")
NEGOTIATIONS, PLACES, NEGOTIATED_STEPS = (
    number("NEGOTIATIONS"), number("PLACES"), number("NEGOTIATED_STEPS"),
)
ENTRIES = {
    CALLS: CALL, COMMUNICATORS: COMMUNICATOR, CELLS: CELL, PEERS: PEER, THREADS: THREAD,
    SAMPLES: PAGE, REGIONS: REGION,
}
ENTRIES.update(
    {
        ACTIVITIES: ACTIVITY, STREAMS: STREAM, DEVICES: DEVICE, TRACINGS: TRACING,
        ALGORITHMS: ALGORITHM, SIGNATURES: SIGNATURE,
    }
)
ENTRIES.update(
    {
        READINGS: READING, CPU_TIMES: CPU_TIME, NEGOTIATIONS: NEGOTIATION, PLACES: PLACES_OF_WORD,
        NEGOTIATED_STEPS: NEGOTIATED_STEP,
    }
)
ALL_KINDS = frozenset((*ENTRIES, FACTS, KERNELS))


class CellKey(NamedTuple):
    """The key of a cell; the columns of the schema's UNIQUE constraint."""

    thread: int
    call: str
    communicator: int
    bytes: int
    measure: str
    memory_kind: str
    region: int
    is_folded: int


class ActivityKey(NamedTuple):
    """The key of a GPU activity; columns of the schema."""

    stream: int
    kind: str
    kernel: int
    copy: str
    is_graph: int
    is_pageable: int
    is_managed: int
    bytes: int


ADDED = {"min_ns": min, "max_ns": max}  # all other fields are added
CELL_SUMS = numbers_of("cell", but=CellKey._fields)


class CellSum:
    """The sums over all calls (activities) with one key: an attribute for each of `fields`."""

    def __init__(self, fields: list[str]) -> None:
        self.fields = fields
        self.buckets: dict[int, int] = {}

    def add(self, cell, buckets: tuple[int, ...]) -> None:
        for field in self.fields:
            amount = getattr(cell, field)
            setattr(
                self, field, ADDED.get(field, int.__add__)(getattr(self, field), amount)
                if self.buckets else amount,
            )
        for bucket, count in enumerate(buckets):
            if count:
                self.buckets[bucket] = self.buckets.get(bucket, 0) + count

    @property
    def count(self) -> int:
        return sum(self.buckets.values())


class Ledger:
    """The entries of a ledger file, by kind. `damage` describes what was left out."""

    def __init__(self, path: Path, header) -> None:
        self.path = path
        self.header = header
        self.read_unix_ns = header.copied_unix_ns or time.time_ns()
        self.modified_unix_ns = 0
        self.facts: dict[str, str] = {}
        self.calls: dict[int, tuple[str, ...]] = {}
        self.communicators: dict[int, Any] = {}
        self.threads: dict[int, Any] = {}
        # by thread, in the thread's own order: (place in the file, cell)
        self.cells: dict[int, list] = {}
        # by number: thread, what follows the header
        self.cell_chunks: dict[int, tuple[int, bytes]] = {}
        self.peers: dict[int, list] = {}  # by thread
        self.pages: list[Any] = []  # of samples
        self.regions: dict[int, str] = {}
        self.kernels: dict[int, tuple[str, int]] = {}  # name, is_communication
        self.activities: list[Any] = []
        self.streams: dict[int, Any] = {}
        self.devices: dict[int, Any] = {}
        self.tracings: list[Any] = []
        self.readings: list[Any] = []
        self.cpu_times: list[Any] = []
        # of negotiations: counters, how often places were agreed on, steps
        self.negotiations: list[Any] = []
        self.places: list[Any] = []
        self.negotiated_steps: list[Any] = []
        self.algorithms: list = []
        self.signatures: dict[int, Any] = {}
        self.damage: list[str] = []

    def call_name(self, call: int) -> str:
        return self.calls.get(call, (f"call {call}",))[0]

    def call_is_nccl(self, call: int) -> bool:
        return call in self.calls and self.calls[call][2] == "nccl"

    def counts(self, thread: int) -> bool:
        """Whether a thread's cells and peers count; false if they are from before
        the last reset."""
        return thread not in self.threads or self.threads[thread].epoch == self.header.epoch

    def gpu_counts(self) -> bool:
        """The same for GPU activities and devices."""
        return self.header.gpu_epoch == self.header.epoch


def ledger_read(path: Path, with_samples: bool = True) -> Ledger:
    """Reads a whole ledger file; for a copy, the original if it is on this machine. Raises
    ReportError if its header is not valid."""
    wanted = ALL_KINDS if with_samples else ALL_KINDS - {SAMPLES, SIGNATURES}
    found = ledger_read_facts(path)
    try:
        return _read_at_rest(original_find(found) or found.path, wanted)
    except FileNotFoundError:  # the original was removed in the meantime
        return _read_at_rest(ledger_read_facts(path).path, wanted)


def ledger_read_facts(path: Path) -> Ledger:
    """Reads only header and provenance, to find out which run a ledger belongs to. For a stub,
    those of the ledger that it names."""
    with regular_open(path) as file:
        stub = stub_read(file)
        return _stub_follow(path, stub) if stub else _facts_read(path, file)


def _facts_read(path: Path, file: BinaryIO) -> Ledger:
    return _read(path, file, wanted=frozenset({FACTS}))


def _stub_follow(path: Path, stub: Stub) -> Ledger:
    """The ledger that this stub names; another file may be there."""
    try:
        with regular_open(stub.ledger) as file:
            ledger = _facts_read(stub.ledger, file)
    except (FileNotFoundError, NotADirectoryError):
        raise not_here(path, stub) from None
    except ReportError as error:
        raise ReportError(path, f"names the ledger {stub.ledger}, which {error.what}") from None
    except OSError as error:
        raise ReportError(
            path, f"names the ledger {stub.ledger}, which cannot be read: {error.strerror}"
        ) from None
    if (ledger.header.pid, ledger.facts.get("boot_id")) != (stub.pid, stub.facts["boot_id"]):
        raise not_here(path, stub)
    return ledger


def original_find(copy: Ledger) -> Path | None:
    """The ledger from which a copy was made, if it is on this machine and is still the same one."""
    original = Path(copy.facts.get("ledger_file", ""))
    if not copy.header.copied_unix_ns or not original.is_absolute():
        return None
    try:
        with regular_open(original) as file:
            found = _facts_read(original, file)
    except (ReportError, OSError, ValueError):
        return None
    same = ("pid", "start_unix_ns", "world_rank", "world_size")
    is_same = not found.header.copied_unix_ns and all(
        getattr(found.header, key) == getattr(copy.header, key) for key in same
    )
    is_of_its_boot = process.is_of_this_node(copy.facts) or found.facts.get(
        "boot_id"
    ) == copy.facts.get("boot_id")
    return original if is_same and is_of_its_boot else None


def _read_at_rest(path: Path, wanted: frozenset[int]) -> Ledger:
    """Reads again while cells are folded or reset, or masks of samples get bits. A fold interrupted
    by a kill does no harm. A fold in progress in a live process is never accepted, since nothing
    shows when it ends; if it is unknown whether the process lives, it is accepted if two readings
    are equal."""
    with regular_open(path) as file:
        seen = None
        for attempt in range(TRIES):
            ledger = _read(path, file, wanted)
            moving, moved = _moving(ledger.header), _moving(_header_read(path, file))
            state = process.process_state(ledger.header.pid, ledger.facts)
            is_closed = moving.folds_begun == moving.folds_ended or state == process.KILLED
            if moving == moved and (is_closed or (moving == seen and state == process.UNKNOWN)):
                break
            seen = moved
            time.sleep(FIRST_PAUSE_S * 2**attempt)
        else:
            ledger.damage.append(
                "changed each time it was read: its sums may be slightly inconsistent"
            )
    return ledger


class Moving(NamedTuple):
    folds_begun: int
    folds_ended: int
    epoch: int
    window_mask: int
    step_mask: int
    device_mask: int
    record_last: int


def _moving(header) -> Moving:
    return Moving(*(getattr(header, field) for field in Moving._fields))


def _read(path: Path, file: BinaryIO, wanted: frozenset[int]) -> Ledger:
    ledger = Ledger(path, _header_read(path, file))
    for chunk, at, data in _chunks(ledger, file, wanted):
        _chunk_take(ledger, chunk, at, data)
    ledger.modified_unix_ns = os.fstat(file.fileno()).st_mtime_ns
    return ledger


def _header_read(path: Path, file: BinaryIO):
    data = os.pread(file.fileno(), HEADER_BYTES, 0)
    if len(data) < HEADER_BYTES:
        raise ReportError(path, f"is cut short: {len(data)} bytes, less than a ledger's header")
    header = HEADER.unpack(data)
    if not any(data):
        raise ReportError(path, "is empty: MPI_Init did not finish")
    if header.magic != MAGIC:
        raise ReportError(path, "is not a commprof ledger")
    version_check(path, "ledger", header.version, VERSION, VERSION)
    _header_check(path, header)
    return header


def _header_check(path: Path, header) -> None:
    ours = (VERSION, HEADER_BYTES, CHUNK_BYTES, CHUNK.bytes, CELL.bytes, HISTOGRAM_BUCKETS)
    theirs = header[1:7]
    if theirs != ours:
        raise ReportError(
            path, f"is damaged: version and sizes in its header are {theirs}, not {ours}"
        )
    if not 0 < header.world_size <= MOST_RANKS or not 0 <= header.world_rank < header.world_size:
        raise ReportError(
            path,
            f"names no rank (rank {header.world_rank} of {header.world_size}): MPI_Init did not "
            "finish",
        )


def _chunks(ledger: Ledger, file: BinaryIO, wanted: frozenset[int]) -> Iterator[tuple]:
    """The existing chunks, those of samples first, each with the place and the bytes of its used
    entries; of one of cells, all its bytes."""
    there = max(0, os.fstat(file.fileno()).st_size - HEADER_BYTES) // CHUNK_BYTES
    claimed = ledger.header.chunk_count
    if claimed > there:
        ledger.damage.append(f"is cut short: {there} of {claimed} chunks are there")
    found, damaged = [], []
    for index in range(min(claimed, there, MOST_CHUNKS)):
        at = HEADER_BYTES + index * CHUNK_BYTES
        chunk = CHUNK.unpack(os.pread(file.fileno(), CHUNK.bytes, at).ljust(CHUNK.bytes, b"\0"))
        if not _chunk_is_sound(chunk):
            damaged.append(index)
        elif chunk.kind in wanted:
            found.append((chunk, at + CHUNK.bytes))
    if damaged:
        ledger.damage.append(
            f"chunk {units.shortened(units.rank_list(damaged), 40)} is damaged and left out"
        )
    for chunk, at in sorted(found, key=lambda place: place[0].kind != SAMPLES):
        yield chunk, at, _entries_read(chunk, file, at)


def _chunk_is_sound(chunk) -> bool:
    is_known = chunk.kind in ALL_KINDS and chunk.entry_bytes == _entry_bytes(chunk)
    return is_known and chunk.used * chunk.entry_bytes <= CHUNK_BYTES - CHUNK.bytes


def _entry_bytes(chunk) -> int:
    return ENTRIES[chunk.kind].bytes if chunk.kind in ENTRIES else 1


def _entries_read(chunk, file: BinaryIO, at: int) -> bytes:
    if chunk.kind == CELLS:
        return os.pread(file.fileno(), CHUNK_BYTES - CHUNK.bytes, at)
    data = os.pread(file.fileno(), chunk.used * chunk.entry_bytes, at)
    if chunk.kind == THREADS:
        data = _threads_settled(data, file, at)
    elif chunk.kind == SAMPLES:
        data = _pages_settled(data, os.pread(file.fileno(), len(data), at))
    return data[: len(data) // chunk.entry_bytes * chunk.entry_bytes]


def _threads_settled(data: bytes, file: BinaryIO, at: int) -> bytes:
    """The state of each thread with matching details; without details if the thread changed its
    state meanwhile."""
    settled: dict[int, bytes] = {}
    starts = range(0, len(data) // THREAD.bytes * THREAD.bytes, THREAD.bytes)
    for _ in range(TRIES):
        before, data = data, os.pread(file.fileno(), len(data), at)
        for start in starts:
            if before[start : start + DOING_BYTES] == data[start : start + DOING_BYTES]:
                settled.setdefault(start, before[start : start + THREAD.bytes])
        if len(settled) == len(starts):
            break
    return b"".join(
        settled.get(start) or _without_details(data[start : start + THREAD.bytes])
        for start in starts
    )


def _pages_settled(before: bytes, after: bytes) -> bytes:
    """The pages whose owner did not change while they were read, with the samples that were equal
    in both readings."""
    if before == after:
        return after
    starts = range(0, len(after) // PAGE.bytes * PAGE.bytes, PAGE.bytes)
    settled = (
        at for at in starts
        if before[at : at + PAGE_IDENTITY_BYTES] == after[at : at + PAGE_IDENTITY_BYTES]
    )
    return b"".join(
        _page_settled(before[at : at + PAGE.bytes], after[at : at + PAGE.bytes]) for at in settled
    )


def _page_settled(before: bytes, after: bytes) -> bytes:
    head = PAGE.offsets["samples"]
    places = range(head, PAGE.bytes, SAMPLE.bytes)
    samples = ((before[at : at + SAMPLE.bytes], after[at : at + SAMPLE.bytes]) for at in places)
    return after[:head] + b"".join(
        last if first == last else bytes(SAMPLE.bytes) for first, last in samples
    )


def _without_details(thread: bytes) -> bytes:
    entry = THREAD.unpack(thread)._replace(bytes=BYTES_UNKNOWN, peer=NO_RANK, tag=NO_TAG)
    return THREAD.codec.pack(*entry)


def _chunk_take(ledger: Ledger, chunk, at: int, data: bytes) -> None:
    if chunk.kind == FACTS:
        _facts_take(ledger, data)
    elif chunk.kind == CALLS:
        ledger.calls.update({entry.call: _call_of(entry) for entry in CALL.unpack_all(data)})
    elif chunk.kind == COMMUNICATORS:
        for entry in COMMUNICATOR.unpack_all(data):
            ledger.communicators.setdefault(entry.communicator, entry)
    elif chunk.kind == CELLS:
        ledger.cell_chunks[_chunk_number(at)] = chunk.thread, data
        starts = range(0, min(chunk.used * CELL.bytes, len(data) - CELL.bytes + 1), CELL.bytes)
        ledger.cells.setdefault(chunk.thread, []).extend(
            (at + start, CELL.unpack(data, start)) for start in starts
        )
    elif chunk.kind == PEERS:
        ledger.peers.setdefault(chunk.thread, []).extend(PEER.unpack_all(data))
    elif chunk.kind == THREADS:
        ledger.threads.update({entry.thread: entry for entry in THREAD.unpack_all(data)})
    elif chunk.kind == SAMPLES:
        ledger.pages.extend(PAGE.unpack_all(data))
    elif chunk.kind == REGIONS:
        ledger.regions.update({entry.region: text(entry.name) for entry in REGION.unpack_all(data)})
    elif chunk.kind == KERNELS:
        _kernels_take(ledger, data)
    elif chunk.kind == ACTIVITIES:
        ledger.activities.extend(ACTIVITY.unpack_all(data))
    elif chunk.kind == STREAMS:
        ledger.streams.update({entry.stream: entry for entry in STREAM.unpack_all(data)})
    elif chunk.kind == DEVICES:
        ledger.devices.update({entry.device: entry for entry in DEVICE.unpack_all(data)})
    elif chunk.kind == TRACINGS:
        ledger.tracings.extend(TRACING.unpack_all(data))
    elif chunk.kind == READINGS:
        ledger.readings.extend(READING.unpack_all(data))
    elif chunk.kind == CPU_TIMES:
        ledger.cpu_times.extend(CPU_TIME.unpack_all(data))
    elif chunk.kind == NEGOTIATIONS:
        ledger.negotiations.extend(NEGOTIATION.unpack_all(data))
    elif chunk.kind == PLACES:
        ledger.places.extend(PLACES_OF_WORD.unpack_all(data))
    elif chunk.kind == NEGOTIATED_STEPS:
        ledger.negotiated_steps.extend(NEGOTIATED_STEP.unpack_all(data))
    elif chunk.kind == ALGORITHMS:
        ledger.algorithms.extend(ALGORITHM.unpack_all(data))
    elif chunk.kind == SIGNATURES:
        ledger.signatures.update({entry.signature: entry for entry in SIGNATURE.unpack_all(data)})


def _call_of(entry) -> tuple[str, ...]:
    library = text(entry.library)
    about = text(entry.form), text(entry.bandwidth), text(entry.waits_for)
    return (
        text(entry.name), text(entry.family), library if library in LIBRARIES else LIBRARIES[0],
        *about,
    )


def _facts_take(ledger: Ledger, data: bytes) -> None:
    offset = 0
    while offset + FACT.bytes <= len(data):
        fact = FACT.unpack(data, offset)
        key_at = offset + FACT.bytes
        value_at = key_at + fact.key_bytes
        end = value_at + fact.value_bytes
        if end > len(data) or not fact.key_bytes:
            ledger.damage.append("some provenance is damaged and left out")
            return
        ledger.facts[text(data[key_at:value_at])] = text(data[value_at:end])
        offset = (end + 7) // 8 * 8


def _kernels_take(ledger: Ledger, data: bytes) -> None:
    offset = 0
    while offset + KERNEL.bytes <= len(data):
        kernel = KERNEL.unpack(data, offset)
        name_at = offset + KERNEL.bytes
        end = name_at + kernel.name_bytes
        if end > len(data):
            ledger.damage.append("some names of kernels are damaged and left out")
            return
        ledger.kernels[kernel.kernel] = (text(data[name_at:end]), int(kernel.is_communication != 0))
        offset = (end + 7) // 8 * 8


def cells_sum(ledger: Ledger) -> dict[CellKey, CellSum]:
    """The cells that count, with equal keys added up."""
    sums: dict[CellKey, CellSum] = {}
    damaged = 0
    for thread, cells in ledger.cells.items():
        for at, cell in (
            _cells_that_count(ledger.threads.get(thread), cells) if ledger.counts(thread) else ()
        ):
            buckets = _cell_buckets(ledger, thread, at, cell)
            if not buckets or not _cell_is_sound(cell, buckets):
                damaged += 1
            elif any(buckets):
                key = _cell_key(ledger, thread, cell)
                sums.setdefault(key, CellSum(CELL_SUMS)).add(cell, buckets)
    if damaged:
        ledger.damage.append(f"{damaged} of its cells are damaged and left out")
    return sums


def sums_of(entry, fields: Iterable[str]) -> Iterator[int]:
    """The sums of a cell or activity that must be plausible. The least of no times is the largest
    number."""
    return (getattr(entry, field) for field in fields if field != "min_ns")


def _cells_that_count(thread, cells: list) -> list:
    """Handles a fold in progress: `folding` packs three numbers of cells, 21 bits each: cell a
    counts, b and c do not."""
    folding = thread.folding if thread else 0
    if not folding:
        return [place for place in cells if place[1].live == 1]
    into, *folded = (((folding >> shift) & 0x1FFFFF) - 1 for shift in (0, 21, 42))
    return [
        place for index, place in enumerate(cells)
        if index == into or (place[1].live == 1 and index not in folded)
    ]


def _chunk_number(at: int) -> int:
    return (at - HEADER_BYTES) // CHUNK_BYTES


def _cell_buckets(ledger: Ledger, thread: int, at: int, cell) -> tuple[int, ...]:
    """The histogram of the cell at this place of the file; empty: one of its blocks is not in a
    chunk of its thread's cells."""
    counts: list[int] = []
    for distance in BLOCKS.unpack(cell.blocks):
        block_at = at + distance
        owner, data = ledger.cell_chunks.get(_chunk_number(block_at), (None, b""))
        start = (block_at - HEADER_BYTES) % CHUNK_BYTES - CHUNK.bytes
        if distance and (owner != thread or not 0 <= start <= len(data) - BLOCK.size):
            return ()
        counts.extend(BLOCK.unpack_from(data, start) if distance else NO_COUNTS)
    return tuple(counts[FIRST_BUCKET : FIRST_BUCKET + HISTOGRAM_BUCKETS])


def _cell_is_sound(cell, buckets: tuple[int, ...]) -> bool:
    return (
        max(cell.bytes, sum(buckets), *sums_of(cell, CELL_SUMS)) < MOST
        and (cell.min_ns <= cell.max_ns or not any(buckets))
        and cell.measure_and_flags & 15 < len(MEASURES) and memory_kind_is_known(cell.memory_kind)
    )


def _memory_kinds(pair: int) -> tuple[int, int]:
    """The memory kinds of the send buffer and of the receive buffer."""
    return pair & (1 << MEMORY_KIND_TO_BIT) - 1, pair >> MEMORY_KIND_TO_BIT


def memory_kind_is_known(pair: int) -> bool:
    return max(_memory_kinds(pair)) < len(MEMORY_KINDS)


def memory_kind_name(pair: int) -> str:
    """'device>host', or one word if both are the same."""
    sent, received = (MEMORY_KINDS[number] for number in _memory_kinds(pair))
    return sent if sent == received else f"{sent}>{received}"


def _cell_key(ledger: Ledger, thread: int, cell) -> CellKey:
    measure = MEASURES[cell.measure_and_flags & 15]
    is_folded = cell.measure_and_flags >> 4 & CELL_FOLDED
    name = ledger.call_name(cell.call)
    return CellKey(
        thread, name, cell.communicator, cell.bytes, measure, memory_kind_name(cell.memory_kind),
        cell.region, is_folded,
    )


def peers_sum(ledger: Ledger) -> dict[tuple[str, str, int, int], list[int]]:
    """Maps (call, direction, communicator, peer) to count, bytes and time, over all threads."""
    sums: dict[tuple[str, str, int, int], list[int]] = {}
    damaged = 0
    fields = numbers_of("peer", but=("peer",))
    for entry in (
        entry for thread, peers in ledger.peers.items() if ledger.counts(thread) for entry in peers
    ):
        amounts = [getattr(entry, field) for field in fields]
        communicator, direction = divmod(entry.direction, 1 << PEER_SLOT_BIT)
        if (
            max(amounts) >= MOST or direction >= len(DIRECTIONS)
            or not -1 <= entry.peer < MOST_RANKS
        ):
            damaged += 1
        elif entry.count:
            key = (ledger.call_name(entry.call), DIRECTIONS[direction], communicator, entry.peer)
            known = sums.setdefault(key, [0] * len(fields))
            known[:] = [old + new for old, new in zip(known, amounts)]
    if damaged:
        ledger.damage.append(f"{damaged} of its peers are damaged and left out")
    return sums

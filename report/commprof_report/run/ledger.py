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

from collections import namedtuple
import os
import time
from collections.abc import Callable, Container, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO

from ..base import (
    Columns,
    Groups,
    ReportError,
    found_in,
    gathered,
    grouped,
    np,
    regular_open,
    units,
    version_check,
)
from .ledger_format import (
    BYTES_UNKNOWN,
    CALLS,
    CELLS,
    CHUNK_BYTES,
    CHUNK_HEADER_BYTES,
    COLUMNS,
    FACTS,
    FORMAT,
    HEADER_BYTES,
    KERNELS,
    KILLED,
    MEMORY_KIND_TO_BIT,
    MOST,
    MOST_CHUNKS,
    NAMES,
    NO_RANK,
    NO_TAG,
    SAMPLES,
    SIGNATURES,
    Stub,
    THREADS,
    UNKNOWN,
    VERSION,
    is_of_this_node,
    layout,
    not_here,
    number,
    numbers_of,
    process_state,
    stub_read,
    text,
)

MAGIC = b"commprof-ledger\n"
MOST_RANKS = 1 << 24
TRIES = 8  # to read a ledger that is being written to in a consistent state
# of a header: these differ while cells are folded or reset, or masks of samples get bits
_moving = attrgetter(
    "folds_begun", "folds_ended", "epoch", "window_mask", "step_mask", "device_mask", "record_last"
)
FIRST_PAUSE_S = 0.0005  # doubled after each try; a fold takes microseconds

MEASURES, MEMORY_KINDS, DIRECTIONS = NAMES["measure"], NAMES["memory_kind"], NAMES["direction"]
LIBRARIES = ("mpi", "nccl")
HISTOGRAM_BUCKETS, SUB_BUCKETS = (
    FORMAT.numbers[f"HISTOGRAM_{name}"] for name in ("BUCKETS", "SUB_BUCKETS")
)
HEADER, CHUNK, CELL, BLOCK = (layout(name) for name in ("header", "chunk", "cell", "block"))
CHUNK_ROOM = CHUNK_BYTES - CHUNK_HEADER_BYTES
# kinds of chunks: the struct of their entries
ENTRIES = {
    number(kind): layout(struct)
    for kind, struct in {
        "CALLS": "call",
        "COMMUNICATORS": "communicator",
        "CELLS": "cell",
        "PEERS": "peer",
        "THREADS": "thread",
        "SAMPLES": "page",
        "REGIONS": "region",
        "ACTIVITIES": "activity",
        "STREAMS": "stream",
        "DEVICES": "device",
        "TRACINGS": "tracing",
        "READINGS": "reading",
        "ALGORITHMS": "algorithm",
        "SIGNATURES": "signature",
        "CPU_TIMES": "cpu_time",
        "NEGOTIATIONS": "negotiation",
        "PLACES": "places",
        "NEGOTIATED_STEPS": "negotiated_step",
    }.items()
}
# those of texts of any length: the struct before each, and the word for them
TEXTS = {
    FACTS: (layout("fact"), "provenance"),
    KERNELS: (layout("kernel"), "names of kernels"),
}
ALL_KINDS, ONLY_FACTS = frozenset((*ENTRIES, *TEXTS)), frozenset({FACTS})
ADDED = {"min_ns": Groups.min, "max_ns": Groups.max}  # all other sums are added
CELL_SUMS = numbers_of(
    "cell",
    but=("call", "communicator", "bytes", "measure", "memory_kind", "region", "is_folded"),
)


# The entries of a chunk. A chunk of cells is read whole, with its blocks.
Chunk = namedtuple("Chunk", "number thread data used")


# Cells or activities, of which those with equal keys are one. first: the place of the first that
# was added to each, among all. buckets: columns of those in use: the place of the cell or activity
# (`entry`), `bucket`, `calls`.
Sums = namedtuple("Sums", "entries first calls buckets")


class Ledger:
    """The entries of a ledger file, by kind. `damage` describes what was left out."""

    def __init__(self, path: Path, file: BinaryIO, wanted: frozenset[int]) -> None:
        """wanted: kinds of chunks that are read."""
        self.path, self.header = path, _header_read(path, file)
        self.damage: list[str] = []
        self.read_unix_ns = self.header.copied_unix_ns or time.time_ns()
        self.chunks = gathered(_chunks(self, file, wanted))  # by kind
        self.modified_unix_ns = os.fstat(file.fileno()).st_mtime_ns
        self.texts = {  # by kind: entry and text
            kind: [
                entry
                for chunk in self.chunks.get(kind, ())
                for entry in _texts(self, kind, chunk.data)
            ]
            for kind in TEXTS
        }
        self.facts = {
            text(found[: fact.key_bytes]): text(found[fact.key_bytes :])
            for fact, found in self.texts[FACTS]
        }
        self.calls = _calls(b"".join(chunk.data for chunk in self.chunks.get(CALLS, ())))

    def entries(
        self, kind: str, key: str = "", threads: Container[int] | None = None
    ) -> np.ndarray:
        """All entries of a kind (of some threads), or the first one of each `key`."""
        chunks = (
            chunk
            for chunk in self.chunks.get(number(kind), ())
            if threads is None or chunk.thread in threads
        )
        found = ENTRIES[number(kind)].array(b"".join(chunk.data for chunk in chunks))
        if not key:
            return found
        return found[np.sort(np.unique(found[key], return_index=True)[1])]

    def sound(self, entries: np.ndarray, is_sound: np.ndarray, what: str) -> np.ndarray:
        """The sound ones; how many are not is noted."""
        self.damage_note(len(entries) - int(is_sound.sum()), what)
        return entries[is_sound]

    def damage_note(self, damaged: int, what: str) -> None:
        if damaged:
            self.damage.append(f"{damaged} of its {what} are damaged and left out")

    def call_name(self, call: int) -> str:
        return self.calls.get(call, (f"call {call}",))[0]

    def is_nccl(self, calls: np.ndarray) -> np.ndarray:
        return np.isin(calls, [call for call, about in self.calls.items() if about[2] == "nccl"])

    def threads_that_count(self) -> dict[int, int]:
        """For each thread whose cells and peers count, the fold that is in progress; those from
        before the last reset do not count."""
        threads = self.entries("THREADS", "thread")
        epoch, folding = (
            dict(zip(threads["thread"].tolist(), threads[field].tolist()))
            for field in ("epoch", "folding")
        )
        known = (chunk.thread for chunks in self.chunks.values() for chunk in chunks)
        return {
            thread: folding.get(thread, 0)
            for thread in dict.fromkeys(known)
            if epoch.get(thread, self.header.epoch) == self.header.epoch
        }

    def gpu_counts(self) -> bool:
        """Whether GPU activities and devices count."""
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
        return _stub_follow(path, stub) if stub else Ledger(path, file, ONLY_FACTS)


def _stub_follow(path: Path, stub: Stub) -> Ledger:
    """The ledger that this stub names; another file may be there."""
    facts, place = stub
    try:
        with regular_open(place) as file:
            ledger = Ledger(place, file, ONLY_FACTS)
    except (FileNotFoundError, NotADirectoryError):
        raise not_here(path, stub) from None
    except (ReportError, OSError) as error:
        why = error.what if isinstance(error, ReportError) else f"cannot be read: {error.strerror}"
        raise ReportError(path, f"names the ledger {place}, which {why}") from None
    if (str(ledger.header.pid), ledger.facts.get("boot_id")) != (facts["pid"], facts["boot_id"]):
        raise not_here(path, stub)
    return ledger


def original_find(copy: Ledger) -> Path | None:
    """The ledger from which a copy was made, if it is on this machine and is still the same one."""
    original = Path(copy.facts.get("ledger_file", ""))
    if not copy.header.copied_unix_ns or not original.is_absolute():
        return None
    try:
        with regular_open(original) as file:
            found = Ledger(original, file, ONLY_FACTS)
    except (ReportError, OSError, ValueError):
        return None
    key = attrgetter("pid", "start_unix_ns", "world_rank", "world_size")
    is_same = not found.header.copied_unix_ns and key(found.header) == key(copy.header)
    boots = {each.facts.get("boot_id") for each in (copy, found)}
    is_of_its_boot = is_of_this_node(copy.facts) or len(boots) == 1
    return original if is_same and is_of_its_boot else None


def _read_at_rest(path: Path, wanted: frozenset[int]) -> Ledger:
    """Reads again while cells are folded or reset, or masks of samples get bits. A fold interrupted
    by a kill does no harm. A fold in progress in a live process is never accepted, since nothing
    shows when it ends; if it is unknown whether the process lives, it is accepted if two readings
    are equal."""
    with regular_open(path) as file:
        seen = None
        for attempt in range(TRIES):
            ledger = Ledger(path, file, wanted)
            moving, moved = _moving(ledger.header), _moving(_header_read(path, file))
            state = process_state(ledger.header.pid, ledger.facts)
            is_closed = moving[0] == moving[1] or state == KILLED
            if moving == moved and (is_closed or (moving == seen and state == UNKNOWN)):
                break
            seen = moved
            time.sleep(FIRST_PAUSE_S * 2**attempt)
        else:
            ledger.damage.append(
                "changed each time it was read: its sums may be slightly inconsistent"
            )
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
    ours = (VERSION, HEADER_BYTES, CHUNK_BYTES, CHUNK.itemsize, CELL.itemsize, HISTOGRAM_BUCKETS)
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
    return header


def _chunks(ledger: Ledger, file: BinaryIO, wanted: frozenset[int]) -> Iterator[tuple[int, Chunk]]:
    """The existing chunks and their kinds, those of samples first."""
    there = max(0, os.fstat(file.fileno()).st_size - HEADER_BYTES) // CHUNK_BYTES
    claimed = ledger.header.chunk_count
    if claimed > there:
        ledger.damage.append(f"is cut short: {there} of {claimed} chunks are there")
    found, damaged = [], []
    for index in range(min(claimed, there, MOST_CHUNKS)):
        at = HEADER_BYTES + index * CHUNK_BYTES
        chunk = CHUNK.unpack(
            os.pread(file.fileno(), CHUNK.itemsize, at).ljust(CHUNK.itemsize, b"\0")
        )
        entry_bytes = ENTRIES[chunk.kind].itemsize if chunk.kind in ENTRIES else 1
        is_known = chunk.kind in ALL_KINDS and chunk.entry_bytes == entry_bytes
        if not is_known or chunk.used * chunk.entry_bytes > CHUNK_ROOM:
            damaged.append(index)
        elif chunk.kind in wanted:
            found.append((index, chunk))
    if damaged:
        ledger.damage.append(
            f"chunk {units.shortened(units.rank_list(damaged), 40)} is damaged and left out"
        )
    for index, chunk in sorted(found, key=lambda place: place[1].kind != SAMPLES):
        data = _entries_read(chunk, file, HEADER_BYTES + index * CHUNK_BYTES + CHUNK.itemsize)
        yield chunk.kind, Chunk(index, chunk.thread, data, chunk.used)


def _entries_read(chunk, file: BinaryIO, at: int) -> bytes:
    if chunk.kind == CELLS:
        return os.pread(file.fileno(), CHUNK_ROOM, at).ljust(CHUNK_ROOM, b"\0")

    def read() -> bytes:
        data = os.pread(file.fileno(), chunk.used * chunk.entry_bytes, at)
        return data[: len(data) // chunk.entry_bytes * chunk.entry_bytes]

    if chunk.kind == THREADS:
        return _threads_settled(read)
    return _pages_settled(read(), read()) if chunk.kind == SAMPLES else read()


def _threads_settled(read: Callable[[], bytes]) -> bytes:
    """The state of each thread with matching details; without details if the thread changed its
    state meanwhile."""
    before, after = (ENTRIES[THREADS].array(read()).copy() for _ in range(2))
    if len(before) != len(after):  # the file was cut short meanwhile
        return b""
    has_changed = before["doing"] != after["doing"]
    before[has_changed] = after[has_changed]
    for field, unknown in (("bytes", BYTES_UNKNOWN), ("peer", NO_RANK), ("tag", NO_TAG)):
        before[field][has_changed] = unknown
    return before.tobytes()


def _pages_settled(*read: bytes) -> bytes:
    """The pages whose owner did not change while they were read twice, with the samples that were
    equal in both readings."""
    if read[0] == read[1]:
        return read[1]
    size = min(map(len, read))
    before, after = (ENTRIES[SAMPLES].array(data[:size]).copy() for data in read)
    changed = before["samples"] != after["samples"]
    after["samples"][changed] = np.zeros((), layout("sample").dtype)
    is_settled = (before["owner"] == after["owner"]) & (before["first"] == after["first"])
    return after[is_settled].tobytes()


@lru_cache(maxsize=16)
def _calls(data: bytes) -> dict[int, tuple[str, ...]]:
    """By number: name, family, library, and the other columns of the table. All ranks of a job have
    the same."""
    entries = ENTRIES[CALLS].array(data)
    name, family, library, *about = (
        [*map(text, entries[column.field].tolist())] for column in COLUMNS["call"]
    )
    library = [known if known in LIBRARIES else LIBRARIES[0] for known in library]
    return dict(zip(entries["call"].tolist(), zip(name, family, library, *about)))


def _texts(ledger: Ledger, kind: int, data: bytes) -> Iterator[tuple[Any, bytes]]:
    """The entries in a stream of bytes, each with its text: as long as the sizes that it begins
    with or, of a name, its second number says."""
    struct, what = TEXTS[kind]
    offset = 0
    while offset + struct.itemsize <= len(data):
        entry = struct.unpack(data, offset)
        sizes = [getattr(entry, field) for field in entry._fields if field.endswith("_bytes")]
        at, end = offset + struct.itemsize, offset + struct.itemsize + sum(sizes)
        if end > len(data) or not (sizes[0] or kind != FACTS):
            ledger.damage.append(
                f"some {what} {'are' if what.endswith('s') else 'is'} damaged and left out"
            )
            return
        yield entry, data[at:end]
        offset = (end + 7) // 8 * 8


def added_up(
    entries: np.ndarray, keys: Sequence[np.ndarray], fields: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Entries with equal keys become one, whose `fields` are the sums: these, the first entry of
    each, and which one each entry belongs to."""
    order, groups = grouped(*(key.astype(np.int64) for key in keys))
    first, of_entry = order[groups.first], np.empty(len(order), np.int64)
    sums = entries[first]
    for field in fields:
        sums[field] = ADDED.get(field, Groups.sum)(groups, entries[field][order])
    of_entry[order] = groups.of_row
    return sums, first, of_entry


def sums_of(
    ledger: Ledger,
    entries: np.ndarray,
    buckets: Columns,
    is_sound: np.ndarray,
    what: str,
    keys: Sequence[np.ndarray],
    fields: Sequence[str],
) -> Sums:
    """The sound cells or activities with calls, added up."""
    calls = np.bincount(buckets.entry, buckets.calls.astype(float), len(entries))
    plausible = [entries[field] < MOST for field in ("bytes", *fields) if field != "min_ns"]
    is_sound = np.all([is_sound, calls < MOST, *plausible], axis=0)
    is_sound &= (calls == 0) | (entries["min_ns"] <= entries["max_ns"])
    ledger.damage_note(len(entries) - int(is_sound.sum()), what)
    chosen = np.flatnonzero(is_sound & (calls > 0))
    sums, first, group = added_up(entries[chosen], [key[chosen] for key in keys], fields)
    sum_of = np.full(len(entries), -1)
    sum_of[chosen] = group
    buckets = buckets.changed(entry=sum_of[buckets.entry])
    buckets = buckets.take(buckets.entry >= 0)
    order, groups = grouped(buckets.entry, buckets.bucket)
    of_sum = buckets.take(order[groups.first]).changed(calls=groups.sum(buckets.calls[order]))
    count = Groups(of_sum.entry).sum(of_sum.calls)
    return Sums(sums, chosen[first], count, of_sum)


def cells_sum(ledger: Ledger) -> tuple[Sums, np.ndarray]:
    """The cells that count, with equal keys added up, and their threads."""
    folds = ledger.threads_that_count()
    chunks = [chunk for chunk in ledger.chunks.get(CELLS, ()) if chunk.thread in folds]
    chunks.sort(key=attrgetter("thread"))
    used, chunk_number, chunk_thread = (
        np.array([getattr(chunk, name) for chunk in chunks], np.int64)
        for name in ("used", "number", "thread")
    )
    cells = np.concatenate(
        [CELL.array(b""), *(CELL.array(chunk.data)[: chunk.used] for chunk in chunks)]
    )
    number, thread = np.repeat(chunk_number, used), np.repeat(chunk_thread, used)
    at = number * CHUNK_BYTES + CELL.itemsize * Groups(number).place()
    # which cells count, by their numbers in their threads, from 1: while a fold is in progress,
    # `folding` of a thread packs three of them, 21 bits each: cell a counts, b and c do not
    folding = np.repeat(np.array([folds[chunk.thread] for chunk in chunks], np.uint64), used)
    into, *folded = (folding >> shift & 0x1FFFFF for shift in (0, 21, 42))
    place = Groups(thread).place() + 1
    counts = (place == into) | (cells["live"] == 1) & np.all([place != n for n in folded], axis=0)
    cells, thread, at = cells[counts], thread[counts], at[counts]
    buckets, is_sound = _buckets(cells, thread, at, chunks)
    measure, memory_kind = cells["measure_and_flags"], cells["memory_kind"]
    is_sound &= (measure & 15 < len(MEASURES)) & memory_kinds_are_known(memory_kind)
    keys = [thread, measure & 31, memory_kind]
    keys += [cells[field] for field in ("call", "communicator", "bytes", "region")]
    return sums_of(ledger, cells, buckets, is_sound, "cells", keys, CELL_SUMS), thread


def _buckets(
    cells: np.ndarray, thread: np.ndarray, at: np.ndarray, chunks: Sequence[Chunk]
) -> tuple[Columns, np.ndarray]:
    """The histograms of cells at these places, and whether all blocks of each are in chunks of its
    thread's cells."""
    data = np.frombuffer(b"".join(chunk.data for chunk in chunks), "<u8")
    entry, block = np.nonzero(cells["blocks"])
    number, start = np.divmod(at[entry] + cells["blocks"][entry, block], CHUNK_BYTES)
    known = np.array([(chunk.number, chunk.thread) for chunk in chunks], np.int64).reshape(-1, 2)
    place = found_in((number, thread[entry]), tuple(known.T))
    is_there = (place >= 0) & (start <= CHUNK_ROOM - BLOCK.itemsize) & (start % 8 == 0)
    is_sound = np.ones(len(cells), bool)
    is_sound[entry[~is_there]] = False
    entry, block = entry[is_there], block[is_there]
    words = (place * CHUNK_ROOM + start)[is_there] // 8
    blocks = data[words[:, None] + np.arange(SUB_BUCKETS)]
    row, sub_bucket = np.nonzero(blocks)
    bucket = block[row] * SUB_BUCKETS + sub_bucket - (SUB_BUCKETS - 1)
    found = Columns(entry=entry[row], bucket=bucket, calls=blocks[row, sub_bucket])
    return found.take((bucket >= 0) & (bucket < HISTOGRAM_BUCKETS)), is_sound


def _memory_kinds(pair: Any) -> tuple[Any, Any]:
    """The memory kinds of the send buffer and of the receive buffer."""
    return pair & (1 << MEMORY_KIND_TO_BIT) - 1, pair >> MEMORY_KIND_TO_BIT


def memory_kinds_are_known(pairs: np.ndarray) -> np.ndarray:
    return np.maximum(*_memory_kinds(pairs)) < len(MEMORY_KINDS)


def memory_kind_name(pair: int) -> str:
    """'device>host', or one word if both are the same."""
    sent, received = (MEMORY_KINDS[number] for number in _memory_kinds(pair))
    return sent if sent == received else f"{sent}>{received}"

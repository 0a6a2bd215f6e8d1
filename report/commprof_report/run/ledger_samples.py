"""The samples in a ledger as rows of the schema: single calls, the windows in which a thread's
calls are all sampled, steps, spans of regions, and single activities of GPUs.

Which of them count is decided as in the library (ledger_format.h).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Sequence
from typing import Any

from ..base import Columns, gathered, np
from .ledger import DIRECTIONS, MOST_RANKS, Ledger
from .ledger_format import (
    DEVICE_SPAN_SHARED,
    DEVICE_SPAN_UNIT_NS,
    MOST,
    NAMES,
    NO_RANK,
    NO_TAG,
    OBJECT_BIT,
    OF_STEPS,
    OF_STREAM,
    OF_THREAD,
    ON_OBJECT_BIT,
    PAGE_SAMPLES,
    PEER_ANY,
    SAMPLE_BYTES_UNKNOWN,
    SAMPLE_FURTHER,
    SAMPLE_MESSAGE,
    SAMPLE_POLLED,
    SAMPLE_RECEIVED,
    SAMPLES,
    WINDOW_NS_LOG2,
    Rows,
    believed,
    layout,
    unless,
)

Span = tuple[int, int]  # begin and end, nanoseconds since the rank's start

SECOND = 1_000_000_000
OWNER_NUMBER_BIT = 8
CALL_MASK = 0xFFFF
SAMPLE_CALL_BITS = 12  # the flags are in the bits above
SAMPLE_ROUND = SAMPLE_RECEIVED
SAMPLE_EPOCH = SAMPLE_FURTHER | SAMPLE_RECEIVED
KNOWN_FLAGS = [flags for flags in range(2 * SAMPLE_FURTHER) if flags != SAMPLE_ROUND]
SIGNATURE_BIT = SAMPLE_BYTES_UNKNOWN.bit_length()  # of `bytes_and_signature`
MOST_STARTS = (1 << 31) - 1
ON_OBJECT = 1 << ON_OBJECT_BIT
KINDS, COPIES = NAMES["kind"], NAMES["copy"]
# of consecutive windows of a thread; if there are more, the mask gets bits
MOST_STRETCHES = 1 << 16


class Clock(namedtuple("Clock", "ticks ns rise_ns run_ticks")):
    """Converts ticks to nanoseconds since the rank's start: a line through one point, `rise_ns` for
    each `run_ticks`."""

    def since_start_ns(self, ticks: int) -> int:
        return believed(self.ns + (ticks - self.ticks) * self.rise_ns // self.run_ticks)

    def times_ns(self, ticks: np.ndarray) -> np.ndarray:
        return np.array([*map(self.since_start_ns, ticks.tolist())], np.int64)


def clock_of(ledger: Ledger) -> Clock:
    """The header's clock was measured during MPI_Init; a page's anchor at least a second later
    gives a better tick length."""
    header = ledger.header
    clock = Clock(
        header.clock_ticks, header.clock_ns - header.start_ns, header.clock_scale, 1 << 32
    )
    pages = ledger.entries("SAMPLES")
    pages = pages[pages["owner"] != 0]
    anchors = [
        anchor
        for anchor in zip(pages["anchor_ticks"].tolist(), pages["anchor_ns"].tolist())
        if _anchor_is_sane(header, *anchor)
    ]
    if not anchors:
        return clock
    ticks, ns = max(anchors)
    return clock._replace(rise_ns=ns - header.clock_ns, run_ticks=ticks - header.clock_ticks)


def _anchor_is_sane(header, anchor_ticks: int, anchor_ns: int) -> bool:
    run_ticks, rise_ns = anchor_ticks - header.clock_ticks, anchor_ns - header.clock_ns
    off_ns = rise_ns - (run_ticks * header.clock_scale >> 32)
    return run_ticks > 0 and rise_ns >= SECOND and abs(off_ns) * 100 <= rise_ns  # one percent


def sample_rows(ledger: Ledger, rows: Rows, has_ended: bool) -> dict[str, list[Any]]:
    """Rows by table. A running process may have made calls while its pages were read; they are
    complete up to the time of reading."""
    header, pages = ledger.header, ledger.entries("SAMPLES")
    clock, last_ns, kind = rows.clock, rows.last_ns, pages["owner"] & 255
    is_left_out = (kind == OF_STEPS) & (pages["first"] & header.step_mask != 0)
    counts = (
        np.isin(kind, [OF_THREAD, OF_STREAM, OF_STEPS]) & (pages["first"] < MOST) & ~is_left_out
    )
    pages, kind = pages[counts], kind[counts]
    activities, damaged = _activity_rows(ledger, rows, pages[kind == OF_STREAM])
    calls = _calls_of(ledger, pages[kind != OF_STREAM])
    is_sound = _are_sound(calls)
    ledger.damage_note(damaged + len(is_sound) - int(is_sound.sum()), "samples")
    tables = _tables(rows, calls.take(is_sound))
    record = range(header.record_first or 1, header.record_last + 1 if header.record_first else 1)
    for table in ("sample", "sample_message", "sample_start", "sample_epoch", "region_span"):
        tables[table] = in_windows(
            header.start_unix_ns, header.window_mask, tables[table], "end_ns", record=record
        )
    tables["gpu_sample"] = in_windows(
        header.start_unix_ns, header.device_mask, activities, "start_ns"
    )
    end_ns = last_ns if has_ended else min(last_ns, ledger.read_unix_ns - header.start_unix_ns)
    # activities are stored in the order of their begin, with a delay, so while tracing is on they
    # are complete only up to the begin of the last one
    settled_ns = max((activity.start_ns for activity in activities), default=0)
    if ledger.entries("TRACINGS")["end_ns"].all():
        settled_ns = last_ns
    # by owner: the times in which there was no room for its samples
    full = pages[pages["until_ticks"] != 0]
    gaps = gathered(
        (owner, (clock.since_start_ns(until), (last + 1 << WINDOW_NS_LOG2) - header.start_unix_ns))
        for owner, until, last in zip(
            *(full[name].tolist() for name in ("owner", "until_ticks", "last"))
        )
    )
    for table, owners, field, owner, mask, until_ns in (
        ("sample_window", "THREADS", "thread", OF_THREAD, header.window_mask, end_ns),
        ("gpu_sample_window", "STREAMS", "stream", OF_STREAM, header.device_mask, settled_ns),
    ):
        found = ledger.entries(owners, field)
        tables[table] = [
            (header.world_rank, number, *window)
            for number, since in zip(found[field].tolist(), found["sampled_since_ticks"].tolist())
            if SAMPLES in ledger.chunks  # else they were not asked for
            for window in _windows(
                header,
                clock,
                since,
                mask,
                until_ns,
                sorted(gaps.get(owner | number << OWNER_NUMBER_BIT, ())),
            )
        ]
    return tables


def in_windows(
    start_unix_ns: int,
    mask: int,
    rows: list[Any],
    time: str,
    window_ns_log2: int = WINDOW_NS_LOG2,
    record: range = range(0),
) -> list[Any]:
    """Rows in windows without bits of the mask, or in the record. In a ledger others stay in the
    log until their page is reused."""
    if not mask:
        return rows
    windows = ((start_unix_ns + getattr(row, time) >> window_ns_log2, row) for row in rows)
    return [row for window, row in windows if not window & mask or window in record]


def _are_there(header, entries: np.ndarray) -> np.ndarray:
    """Whether the samples are: complete, and not from before the last reset."""
    start, end = entries["start_ticks"], entries["end_ticks"]
    return (start != 0) & (end != 0) & (start >= header.reset_ticks)


def _activity_rows(ledger: Ledger, rows: Rows, pages: np.ndarray) -> tuple[list[Any], int]:
    """The activities in these pages, and how many are damaged."""
    entries = pages["samples"].reshape(-1).view(layout("activity_sample").dtype)
    stream = np.repeat(pages["owner"] >> OWNER_NUMBER_BIT, PAGE_SAMPLES)
    is_there = _are_there(ledger.header, entries)
    entries, stream = entries[is_there], stream[is_there]
    is_sound = (entries["kind"] > 0) & (entries["kind"] < len(KINDS))
    is_sound &= (entries["copy"] < len(COPIES)) & (entries["stream"] == stream)
    is_sound &= entries["start_ticks"] <= entries["end_ticks"]
    return rows.rows("gpu_sample", entries[is_sound]), len(entries) - int(is_sound.sum())


def _calls_of(ledger: Ledger, pages: np.ndarray) -> Columns:
    """Samples of threads and of steps. What a sample does not have is 0."""
    entries = pages["samples"].reshape(-1)
    kind, owner, first = (
        np.repeat(column, PAGE_SAMPLES)
        for column in (pages["owner"] & 255, pages["owner"] >> OWNER_NUMBER_BIT, pages["first"])
    )
    step = first * PAGE_SAMPLES + np.arange(len(entries), dtype=np.uint64) % PAGE_SAMPLES + 1
    flags, call = np.divmod(entries["call_and_flags"], 1 << SAMPLE_CALL_BITS)
    is_round, is_polled = flags == SAMPLE_ROUND, flags & SAMPLE_POLLED != 0
    sequence = np.where(is_polled, 0, entries["sequence"])
    on_object = np.where(sequence & ON_OBJECT != 0, sequence - ON_OBJECT, 0)
    calls = Columns(
        entry=entries,
        call=call,
        sequence=sequence,
        is_nccl=ledger.is_nccl(call),
        is_round=is_round,
        is_polled=is_polled,
        kind=kind,
        owner=owner,  # of the page: the kind of its owner, and the number of that
        step=step,  # from 1, if it is one
        flags=np.where(is_round, 0, flags & SAMPLE_POLLED - 1),  # not those of rounds and polls
        completed=np.where(is_polled, 0, entries["completed_ticks"]),
        span=np.where(is_round, 0, entries["device_span"]),  # or what else is in this field
        object=on_object >> OBJECT_BIT,  # of a collective on a window or a file: which one,
        object_sequence=on_object & (1 << OBJECT_BIT) - 1,  # and its number on that
    )
    return calls.take(_are_there(ledger.header, entries))


def _are_sound(calls: Columns) -> np.ndarray:
    entry, call, flags, sequence = calls.entry, calls.call, calls.flags, calls.sequence
    start, completed, peer = entry["start_ticks"], calls.completed, entry["peer"]
    offered, agreed = _round(entry)
    is_collective = (call > 0) & (flags == 0) & (sequence > 0) & (sequence <= MOST)
    is_epoch, is_start = flags == SAMPLE_EPOCH, flags == SAMPLE_FURTHER
    is_counted = (calls.span > 0) & (calls.span <= MOST_STARTS)
    is_rank = (peer >= 0) & (peer < MOST_RANKS)
    is_object = (sequence > 0) & (sequence < 1 << ON_OBJECT_BIT - OBJECT_BIT)
    has_thread = entry["thread"] > 0
    wrong = [
        calls.is_round & ((call == 0) | (agreed > offered)),
        calls.is_round & ((sequence == 0) | (sequence >= ON_OBJECT)),
        calls.is_polled & (entry["completed_ticks"] == 0),
        calls.is_polled & ((entry["completed_ticks"] > start) | (entry["sequence"] == 0)),
        (completed > 0) & (completed < start) & ~calls.is_nccl,
        entry["end_ticks"] < start,
        ~np.isin(flags, KNOWN_FLAGS),
    ]
    of_steps = (call > 0) | (flags > 0)
    # an epoch without a partner has no number, and is one of all
    of_all = (calls.span == 0) & (peer == NO_RANK)
    of_threads = [
        is_epoch & ~((is_counted & is_rank | of_all) & is_object & has_thread),
        ~is_epoch & (sequence > 0) & ~is_collective,
        (sequence & ON_OBJECT != 0) & ((calls.object == 0) | (calls.object_sequence == 0)),
        is_start & ~(has_thread & is_counted),
        (flags == 0) & (entry["thread"] != calls.owner),
        ~is_collective & ((peer < PEER_ANY) | (peer >= MOST_RANKS)) & (peer != NO_RANK),
        (call == 0) & ((flags > 0) | (entry["region"] == 0)),
    ]
    is_wrong = np.where(calls.kind == OF_STEPS, of_steps, np.any(of_threads, axis=0))
    return ~(is_wrong | np.any(wrong, axis=0))


def _round(entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tensors offered and agreed on. They are in the field `device_span` of other samples (a union
    in C)."""
    return entries["device_span"] & CALL_MASK, entries["device_span"] >> 16


def _tables(rows: Rows, calls: Columns) -> dict[str, list[Any]]:
    """The rows of each kind of samples. `thread` and `device_span` are `number`, `operation` or
    `partners`, and `starts` or `epoch`, of some of them (unions in C)."""
    is_step = calls.kind == OF_STEPS
    is_epoch, is_start = calls.flags == SAMPLE_EPOCH, calls.flags == SAMPLE_FURTHER
    is_message = (calls.flags & SAMPLE_FURTHER != 0) & ~is_epoch & ~is_start
    is_call = (calls.flags & SAMPLE_FURTHER == 0) & (calls.call > 0)
    steps, spans, messages, starts, epochs, samples = map(
        calls.take,
        (
            is_step,
            ~is_step & (calls.call == 0),
            is_message,
            is_start,
            is_epoch,
            is_call,
        ),
    )

    def further(table: str, mine: Columns, **computed: object) -> list[Any]:
        """Rows of the samples that further describe a call."""
        return rows.rows(
            table,
            mine.entry,
            thread=mine.owner,
            call=rows.call_names(mine.call),
            bytes=_bytes(mine),
            completed_ns=_completed_ns(rows.clock, mine),
            **computed,
        )

    # the last step has no end: it lasts as long as the rank is known to have lived
    end_ns = rows.clock.times_ns(steps.entry["end_ticks"])
    is_last = steps.entry["start_ticks"] == steps.entry["end_ticks"]
    end_ns = np.where(is_last, np.maximum(rows.last_ns, end_ns), end_ns)
    is_received = (messages.flags // SAMPLE_RECEIVED & 1).tolist()
    tag, number_of = _message(messages)
    return {
        "step": rows.rows("step", steps.entry, step=steps.step, end_ns=end_ns),
        "region_span": rows.rows("region_span", spans.entry),
        "sample_message": further(
            "sample_message",
            messages,
            tag=tag,
            number=number_of,
            direction=[DIRECTIONS[value] for value in is_received],
        ),
        "sample_start": further(
            "sample_start", starts, operation=starts.entry["thread"], number=starts.span
        ),
        "sample_epoch": further(
            "sample_epoch",
            epochs,
            object=epochs.sequence,
            number=_or_none(epochs.span),
            partners=epochs.entry["thread"],
        ),
        "sample": _sample_rows(rows, samples),
    }


def _or_none(values: np.ndarray) -> list[Any]:
    return unless(values == 0, values)


def _bytes(calls: Columns) -> list[Any]:
    amount = calls.entry["bytes_and_signature"] & SAMPLE_BYTES_UNKNOWN
    return unless(amount == SAMPLE_BYTES_UNKNOWN, amount)


def _message(calls: Columns) -> tuple[list[Any], list[Any]]:
    """Tags and numbers of samples' messages."""
    is_none, tag = calls.flags & SAMPLE_MESSAGE == 0, calls.span.astype(np.int32)
    number = calls.entry["thread"]
    return unless(is_none | (tag == NO_TAG), tag), unless(is_none | (number == 0), number)


def _completed_ns(clock: Clock, calls: Columns) -> list[Any]:
    """An NCCL operation is complete when its kernel ends; the clocks of host and device may differ
    by more than its duration."""
    ticks = np.maximum(calls.completed, calls.entry["start_ticks"])
    return unless(calls.completed == 0, clock.times_ns(ticks))


def _sample_rows(rows: Rows, calls: Columns) -> list[Any]:
    entry, sequence, clock = calls.entry, calls.sequence, rows.clock
    is_message, no_rank = calls.flags > 0, entry["peer"] == NO_RANK
    tag, number = _message(calls)
    request_call = np.where(is_message | calls.is_nccl, 0, calls.span & CALL_MASK)
    # of NCCL's operations: the kernel, and whether other operations share it
    is_host = (calls.completed == 0) | ~calls.is_nccl
    device_end_ns = clock.times_ns(calls.completed)
    device_span_ns = (calls.span >> 1).astype(np.int64) * DEVICE_SPAN_UNIT_NS
    # begin of the first unsuccessful poll before a call, and how long all of them lasted
    since, start = entry["completed_ticks"], entry["start_ticks"]
    since_ns = clock.times_ns(since)
    polled_ns = clock.times_ns(since + np.minimum(entry["sequence"], start - since)) - since_ns
    offered, agreed = _round(entry)
    return rows.rows(
        "sample",
        entry,
        thread=np.where(is_message, calls.owner, entry["thread"]),
        call=rows.call_names(calls.call),
        completed_ns=_completed_ns(clock, calls),
        bytes=_bytes(calls),
        peer=unless(no_rank | (sequence > 0), entry["peer"]),
        root=unless(no_rank | (sequence == 0), entry["peer"]),
        request_call=rows.call_names(request_call),
        device_start_ns=unless(is_host, np.maximum(device_end_ns - device_span_ns, 0)),
        device_end_ns=unless(is_host, device_end_ns),
        is_shared=unless(is_host, calls.span & DEVICE_SPAN_SHARED),
        tag=tag,
        number=number,
        signature=_or_none(entry["bytes_and_signature"] >> SIGNATURE_BIT),
        sequence=unless((sequence == 0) | (calls.object > 0), sequence),
        object=_or_none(calls.object),
        object_sequence=_or_none(calls.object_sequence),
        polled_since_ns=unless(~calls.is_polled, since_ns),
        polled_ns=unless(~calls.is_polled, polled_ns),
        offered=unless(~calls.is_round, offered),
        agreed=unless(~calls.is_round, agreed),
    )


def _windows(
    header, clock: Clock, since_ticks: int, mask: int, end_ns: int, gaps: Sequence[Span]
) -> Iterator[Span]:
    """The times in which all calls of a thread (activities of a stream) are sampled: from
    `sampled_since_ticks` on, the windows without bits of the mask, without gaps."""
    begin_ticks = max(since_ticks, header.reset_ticks)
    begin_ns = clock.since_start_ns(begin_ticks) if begin_ticks else 0
    for low_ns, high_ns in covered(begin_ns, end_ns, header.start_unix_ns, mask):
        for gap_begin_ns, gap_end_ns in gaps:
            if gap_begin_ns < high_ns and gap_end_ns > low_ns:
                if low_ns < gap_begin_ns:
                    yield low_ns, gap_begin_ns
                low_ns = gap_end_ns
        if low_ns < high_ns:
            yield low_ns, high_ns


def covered(
    begin_ns: int, end_ns: int, start_unix_ns: int, mask: int, window_ns_log2: int = WINDOW_NS_LOG2
) -> Iterator[Span]:
    """The parts of a time that are in windows without bits of the mask."""
    first, last = (start_unix_ns + time_ns >> window_ns_log2 for time_ns in (begin_ns, end_ns))
    telling = (1 << (last - first).bit_length()) - 1  # above these, bits leave out all or nothing
    while mask and last - first >> bin(mask & telling).count("1") > MOST_STRETCHES * (mask & -mask):
        mask |= mask + (mask & -mask)  # the lowest bit that it lacks
    low_bits = (mask & -mask) - 1 if mask else last
    window = next_window(first - 1, mask)
    while window <= last:
        low_ns = max(begin_ns, (window << window_ns_log2) - start_unix_ns)
        high_ns = min(end_ns, ((window | low_bits) + 1 << window_ns_log2) - start_unix_ns)
        if low_ns < high_ns:
            yield low_ns, high_ns
        window = next_window(window | low_bits, mask)


def next_window(window: int, mask: int) -> int:
    """The lowest number above this one without bits of the mask."""
    below = (1 << (window & mask).bit_length()) - 1 >> 1  # bits below the highest wrong one
    return ((window | mask | below) + 1) & ~mask

"""The samples in a ledger as rows of the schema: single calls, the windows in which a thread's
calls are all sampled, steps, spans of regions, and single activities of GPUs.

Which of them count is decided as in the library (ledger_format.h).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .ledger import (
    ACTIVITY_SAMPLE, MOST_RANKS, NO_RANK, NO_TAG, OF_STEPS, OF_STREAM, OF_THREAD, OWNER_NUMBER_BIT,
    PAGE_SAMPLES, PEER_ANY, SAMPLE, WINDOW_NS_LOG2, Ledger,
)
from .ledger_format import number
from .rows import MOST, NAMES, Rows, believed, known_rank

Span = tuple[int, int]  # begin and end, nanoseconds since the rank's start

SECOND = 1_000_000_000
KINDS_OF_OWNERS = (OF_THREAD, OF_STREAM, OF_STEPS)
ONE_PERCENT = 100
CALL_MASK = 0xFFFF
SAMPLE_CALL_BITS = 12  # the flags are in the bits above
SAMPLE_CALL_MASK = (1 << SAMPLE_CALL_BITS) - 1
SAMPLE_MESSAGE, SAMPLE_RECEIVED, SAMPLE_FURTHER, SAMPLE_POLLED = (
    number(f"SAMPLE_{flag}") for flag in ("MESSAGE", "RECEIVED", "FURTHER", "POLLED")
)
SAMPLE_ROUND = SAMPLE_RECEIVED
SAMPLE_EPOCH = SAMPLE_FURTHER | SAMPLE_RECEIVED
KNOWN_FLAGS = set(range(2 * SAMPLE_FURTHER)) - {SAMPLE_RECEIVED}
SAMPLE_BYTES_UNKNOWN = number("SAMPLE_BYTES_UNKNOWN")
SIGNATURE_BIT = SAMPLE_BYTES_UNKNOWN.bit_length()  # of `bytes_and_signature`
MOST_STARTS = (1 << 31) - 1
ON_OBJECT_BIT, OBJECT_BIT = number("ON_OBJECT_BIT"), number("OBJECT_BIT")
ON_OBJECT = 1 << ON_OBJECT_BIT
DEVICE_SPAN_SHARED, DEVICE_SPAN_UNIT_NS = (
    number("DEVICE_SPAN_SHARED"), number("DEVICE_SPAN_UNIT_NS"),
)
KINDS, COPIES = NAMES["kind"], NAMES["copy"]
# of consecutive windows of a thread; if there are more, the mask gets bits
MOST_STRETCHES = 1 << 16


class Clock(NamedTuple):
    """Converts ticks to nanoseconds since the rank's start: a line through one point, `rise_ns` for
    each `run_ticks`."""

    ticks: int
    ns: int
    rise_ns: int
    run_ticks: int

    def since_start_ns(self, ticks: int) -> int:
        return believed(self.ns + (ticks - self.ticks) * self.rise_ns // self.run_ticks)


def rows_of(ledger: Ledger, clock: Clock) -> Rows:
    return Rows(ledger.header, ledger.call_name, clock.since_start_ns)


def clock_of(ledger: Ledger) -> Clock:
    """The header's clock was measured during MPI_Init; a page's anchor at least a second later
    gives a better tick length."""
    header = ledger.header
    clock = Clock(
        header.clock_ticks, header.clock_ns - header.start_ns, header.clock_scale, 1 << 32
    )
    anchors = [
        (page.anchor_ticks, page.anchor_ns) for page in ledger.pages
        if _anchor_is_sane(header, page)
    ]
    if not anchors:
        return clock
    ticks, ns = max(anchors)
    return clock._replace(rise_ns=ns - header.clock_ns, run_ticks=ticks - header.clock_ticks)


def _anchor_is_sane(header, page) -> bool:
    run_ticks, rise_ns = page.anchor_ticks - header.clock_ticks, page.anchor_ns - header.clock_ns
    off_ns = rise_ns - (run_ticks * header.clock_scale >> 32)
    return (
        page.owner != 0 and run_ticks > 0 and rise_ns >= SECOND
        and abs(off_ns) * ONE_PERCENT <= rise_ns
    )


def sample_rows(
    ledger: Ledger, clock: Clock, last_ns: int, has_ended: bool
) -> dict[str, list[Any]]:
    """Rows by table. A running process may have made calls while its pages were read; they are
    complete up to the time of reading."""
    samples, messages, starts, epochs, steps, spans = [], [], [], [], [], []
    activities: list[Any] = []
    gaps: dict[int, list[tuple[int, int]]] = {}
    rows, header = rows_of(ledger, clock), ledger.header
    damaged = 0
    for page in ledger.pages:
        kind, number = page.owner & 255, page.owner >> OWNER_NUMBER_BIT
        if (
            kind not in KINDS_OF_OWNERS or page.first >= MOST
            or (kind == OF_STEPS and page.first & ledger.header.step_mask)
        ):
            continue
        if page.until_ticks:
            end_ns = (page.last + 1 << WINDOW_NS_LOG2) - header.start_unix_ns
            gaps.setdefault(page.owner, []).append((clock.since_start_ns(page.until_ticks), end_ns))
        if kind == OF_STREAM:
            damaged += _activities_take(ledger, rows, page, number, activities)
            continue
        for place, sample in enumerate(map(SAMPLE.make, SAMPLE.codec.iter_unpack(page.samples))):
            if (
                not sample.start_ticks or not sample.end_ticks
                or sample.start_ticks < ledger.header.reset_ticks
            ):
                continue
            if not _sample_is_sound(ledger, sample, kind, number):
                damaged += 1
            elif kind == OF_STEPS:
                steps.append(
                    _step_row(rows, clock, sample, page.first * PAGE_SAMPLES + place + 1, last_ns)
                )
            elif _flags(sample) == SAMPLE_FURTHER:
                starts.append(_start_row(ledger, rows, clock, sample, number))
            elif _flags(sample) == SAMPLE_EPOCH:
                epochs.append(_epoch_row(ledger, rows, sample, number))
            elif _flags(sample) & SAMPLE_FURTHER:
                messages.append(_message_row(ledger, rows, clock, sample, number))
            elif _call(sample):
                samples.append(_sample_row(ledger, rows, clock, sample, number))
            else:
                spans.append(rows.row("region_span", sample))
    if damaged:
        ledger.damage.append(f"{damaged} of its samples are damaged and left out")
    end_ns = last_ns if has_ended else min(last_ns, ledger.read_unix_ns - header.start_unix_ns)
    windows = [
        (header.world_rank, thread.thread, *window)
        for thread in (ledger.threads.values() if ledger.pages else ())
        for window in _windows(
            ledger, clock, thread, header.window_mask, end_ns,
            sorted(gaps.get(_owner(OF_THREAD, thread.thread), ())),
        )
    ]
    settled_ns = _settled_ns(ledger, last_ns, activities)
    gpu_windows = [
        (header.world_rank, stream.stream, *window)
        for stream in (ledger.streams.values() if ledger.pages else ())
        for window in _windows(
            ledger, clock, stream, header.device_mask, settled_ns,
            sorted(gaps.get(_owner(OF_STREAM, stream.stream), ())),
        )
    ]
    calls = {
        "sample": samples, "sample_message": messages, "sample_start": starts,
        "sample_epoch": epochs, "region_span": spans,
    }
    record = range(header.record_first or 1, header.record_last + 1 if header.record_first else 1)
    in_windows = {
        table: _in_windows(header.start_unix_ns, header.window_mask, found, "end_ns", record)
        for table, found in calls.items()
    }
    in_windows["gpu_sample"] = _in_windows(
        header.start_unix_ns, header.device_mask, activities, "start_ns"
    )
    return {**in_windows, "sample_window": windows, "step": steps, "gpu_sample_window": gpu_windows}


def _in_windows(
    start_unix_ns: int, mask: int, rows: list[Any], time: str, record: range = range(0)
) -> list[Any]:
    """Rows that are sampled, by a mask or in the record; others stay in the log until their page is
    reused."""
    if not mask:
        return rows
    windows = ((start_unix_ns + getattr(row, time) >> WINDOW_NS_LOG2, row) for row in rows)
    return [row for window, row in windows if not window & mask or window in record]


def _owner(kind: int, number: int) -> int:
    return kind | number << OWNER_NUMBER_BIT


def _settled_ns(ledger: Ledger, last_ns: int, activities: list) -> int:
    """Until when all activities are known. They are stored in the order of their begin, with a
    delay, so while tracing is on they are complete only up to the begin of the last one."""
    if all(tracing.end_ns for tracing in ledger.tracings):
        return last_ns
    return max((activity.start_ns for activity in activities), default=0)


def _activities_take(ledger: Ledger, rows: Rows, page, stream: int, activities: list) -> int:
    """Adds the activities of a page; returns how many are damaged."""
    damaged = 0
    for sample in map(ACTIVITY_SAMPLE.make, ACTIVITY_SAMPLE.codec.iter_unpack(page.samples)):
        if (
            not sample.start_ticks or not sample.end_ticks
            or sample.start_ticks < ledger.header.reset_ticks
        ):
            continue
        is_known = (
            0 < sample.kind < len(KINDS) and sample.copy < len(COPIES) and sample.stream == stream
        )
        if is_known and sample.start_ticks <= sample.end_ticks:
            activities.append(rows.row("gpu_sample", sample))
        else:
            damaged += 1
    return damaged


def _sample_is_sound(ledger: Ledger, sample, kind: int, number: int) -> bool:
    call, flags = _call(sample), _flags(sample)
    if flags == SAMPLE_ROUND:
        offered, agreed = _round(sample)
        is_round = call > 0 and agreed <= offered and 0 < sample.sequence < ON_OBJECT
        return is_round and _sample_is_sound(ledger, _without_round(sample), kind, number)
    is_early = 0 < sample.completed_ticks < sample.start_ticks and not ledger.call_is_nccl(call)
    if flags & SAMPLE_POLLED:
        is_polled = 0 < sample.completed_ticks <= sample.start_ticks and sample.sequence > 0
        return is_polled and _sample_is_sound(ledger, _without_polls(sample), kind, number)
    if sample.end_ticks < sample.start_ticks or is_early or flags not in KNOWN_FLAGS:
        return False
    if kind == OF_STEPS:
        return not sample.call_and_flags
    is_collective = call > 0 and not flags and 0 < sample.sequence <= MOST
    if flags == SAMPLE_EPOCH:
        if not _epoch_is_sound(sample):
            return False
    elif sample.sequence and not is_collective:
        return False
    if sample.sequence & ON_OBJECT and not all(_on_object(sample)):
        return False
    is_peer = is_collective or PEER_ANY <= sample.peer < MOST_RANKS or sample.peer == NO_RANK
    is_start = flags != SAMPLE_FURTHER or (
        sample.thread > 0 and 0 < sample.device_span <= MOST_STARTS
    )
    is_owner = bool(flags) or sample.thread == number
    return is_owner and is_peer and is_start and (call > 0 or (not flags and sample.region > 0))


def _epoch_is_sound(sample) -> bool:
    """`partners` and `epoch` are in the fields `thread` and `device_span` of other samples (a union
    in C). Without a partner there is no number."""
    is_numbered = 0 < sample.device_span <= MOST_STARTS and 0 <= sample.peer < MOST_RANKS
    is_of_all = sample.device_span == 0 and sample.peer == NO_RANK
    is_object = 0 < sample.sequence < 1 << ON_OBJECT_BIT - OBJECT_BIT
    return (is_numbered or is_of_all) and is_object and sample.thread > 0


def _without_polls(sample):
    """The same call, as if the thread had not polled before."""
    return sample._replace(
        call_and_flags=sample.call_and_flags & ~(SAMPLE_POLLED << SAMPLE_CALL_BITS),
        completed_ticks=0, sequence=0,
    )


def _round(sample) -> tuple[int, int]:
    """Tensors offered and agreed on. They are in the field `device_span` of other samples (a union
    in C)."""
    return sample.device_span & CALL_MASK, sample.device_span >> 16


def _without_round(sample):
    return sample._replace(call_and_flags=_call(sample), device_span=0)


def _polled(clock: Clock, sample) -> tuple[int | None, int | None]:
    """Begin of the first unsuccessful poll before a call, and how long all of them lasted."""
    if not _flags(sample) & SAMPLE_POLLED:
        return None, None
    since = sample.completed_ticks
    since_ns = clock.since_start_ns(since)
    until = since + min(sample.sequence, sample.start_ticks - since)
    return since_ns, clock.since_start_ns(until) - since_ns


def _on_object(sample) -> tuple[int, int]:
    """The window or file of a collective, and its number on that; 0: it is on neither."""
    if not sample.sequence & ON_OBJECT:
        return 0, 0
    return divmod(sample.sequence - ON_OBJECT, 1 << OBJECT_BIT)


def _call(sample) -> int:
    return sample.call_and_flags & SAMPLE_CALL_MASK


def _flags(sample) -> int:
    return sample.call_and_flags >> SAMPLE_CALL_BITS


def _bytes(sample) -> int | None:
    amount = sample.bytes_and_signature & SAMPLE_BYTES_UNKNOWN
    return None if amount == SAMPLE_BYTES_UNKNOWN else amount


def _message(sample) -> tuple[int | None, int | None]:
    """Tag and number of a sample's message. They are in the fields `device_span` and `thread` of
    other samples (a union in C)."""
    if not _flags(sample) & SAMPLE_MESSAGE:
        return None, None
    tag = sample.device_span - (sample.device_span >> 31 << 32)
    return None if tag == NO_TAG else tag, sample.thread or None


def _completed_ns(clock: Clock, sample) -> int | None:
    """An NCCL operation is complete when its kernel ends; the clocks of host and device may differ
    by more than its duration."""
    return (
        clock.since_start_ns(max(sample.completed_ticks, sample.start_ticks))
        if sample.completed_ticks else None
    )


def _message_row(ledger: Ledger, rows: Rows, clock: Clock, sample, thread: int) -> tuple:
    tag, number = _message(sample)
    return rows.row(
        "sample_message", sample, thread=thread, call=ledger.call_name(_call(sample)),
        direction=NAMES["direction"][_flags(sample) // SAMPLE_RECEIVED & 1], tag=tag, number=number,
        bytes=_bytes(sample), completed_ns=_completed_ns(clock, sample),
    )


def _start_row(ledger: Ledger, rows: Rows, clock: Clock, sample, thread: int) -> tuple:
    """`operation` and `starts` are in the fields `thread` and `device_span` of other samples (a
    union in C)."""
    return rows.row(
        "sample_start", sample, thread=thread, call=ledger.call_name(_call(sample)),
        operation=sample.thread, number=sample.device_span, bytes=_bytes(sample),
        completed_ns=_completed_ns(clock, sample),
    )


def _epoch_row(ledger: Ledger, rows: Rows, sample, thread: int) -> tuple:
    return rows.row(
        "sample_epoch", sample, thread=thread, call=ledger.call_name(_call(sample)),
        object=sample.sequence, number=sample.device_span or None, partners=sample.thread,
    )


def _sample_row(ledger: Ledger, rows: Rows, clock: Clock, sample, owner: int) -> tuple:
    polled_since_ns, polled_ns = _polled(clock, sample)
    if polled_ns is not None:
        sample = _without_polls(sample)
    offered, agreed = _round(sample) if _flags(sample) == SAMPLE_ROUND else (None, None)
    if offered is not None:
        sample = _without_round(sample)
    call = _call(sample)
    peer_or_root = known_rank(sample.peer)
    tag, number = _message(sample)
    is_message = bool(_flags(sample))
    request_call = 0 if is_message or ledger.call_is_nccl(call) else sample.device_span & CALL_MASK
    device_start_ns, device_end_ns, is_shared = _on_device(ledger, clock, sample)
    on_object, object_sequence = _on_object(sample)
    return rows.row(
        "sample",
        sample,
        thread=owner if is_message else sample.thread,
        call=ledger.call_name(call),
        completed_ns=_completed_ns(clock, sample),
        bytes=_bytes(sample),
        peer=None if sample.sequence else peer_or_root,
        root=peer_or_root if sample.sequence else None,
        request_call=ledger.call_name(request_call) if request_call else "",
        device_start_ns=device_start_ns,
        device_end_ns=device_end_ns,
        is_shared=is_shared,
        tag=tag,
        number=number,
        signature=sample.bytes_and_signature >> SIGNATURE_BIT or None,
        sequence=None if on_object else sample.sequence or None,
        object=on_object or None,
        object_sequence=object_sequence or None,
        polled_since_ns=polled_since_ns,
        polled_ns=polled_ns,
        offered=offered,
        agreed=agreed,
    )


def _on_device(ledger: Ledger, clock: Clock, sample) -> tuple[int | None, int | None, int | None]:
    """Begin and end of the kernel of an NCCL operation, and whether other operations share it."""
    if not sample.completed_ticks or not ledger.call_is_nccl(_call(sample)):
        return None, None, None
    end_ns = clock.since_start_ns(sample.completed_ticks)
    span_ns = (sample.device_span >> 1) * DEVICE_SPAN_UNIT_NS
    return max(end_ns - span_ns, 0), end_ns, sample.device_span & DEVICE_SPAN_SHARED


def _step_row(rows: Rows, clock: Clock, sample, step: int, last_ns: int) -> tuple:
    """The last step has no end: it lasts as long as the rank is known to have lived."""
    is_open = sample.start_ticks == sample.end_ticks
    end_ns = (
        max(last_ns, clock.since_start_ns(sample.start_ticks)) if is_open
        else clock.since_start_ns(sample.end_ticks)
    )
    return rows.row("step", sample, step=step, end_ns=end_ns)


def _windows(
    ledger: Ledger, clock: Clock, owner, mask: int, end_ns: int, gaps: Sequence[Span]
) -> Iterator[Span]:
    """The times in which all calls of a thread (activities of a stream) are sampled: from
    `sampled_since_ticks` on, the windows without bits of the mask, without gaps."""
    header = ledger.header
    begin_ticks = max(owner.sampled_since_ticks, header.reset_ticks)
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
    while mask and last - first >> bin(mask).count("1") > MOST_STRETCHES * (mask & -mask):
        mask |= 1 << mask.bit_length()
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
    wrong = window & mask
    below = (1 << wrong.bit_length() - 1) - 1 if wrong else 0
    return ((window | mask | below) + 1) & ~mask

"""Formats numbers and names for people. 1 KB = 1000 B, 1 KiB = 1024 B; bandwidth in GB/s of 1e9
bytes. And the members of a communicator, as the library writes them: 0-3,8,16-30:2,-1,... Those of
NCCL communicators are combined here.
"""

from __future__ import annotations

import os
import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Tuple

if TYPE_CHECKING:
    from fractions import Fraction

NO_VALUE = "-"
OF_ONE = {"they": "it", "them": "it", "their": "its", "are": "is", "do": "does", "have": "has"}
NEGOTIATION = ", negotiation"  # after the name of a call: that of a thread that negotiates
WHOLE_FLOATS = 1 << 53  # from here on not every whole number is a float
MINUTE_NS, HOUR_NS, DAY_NS = 60_000_000_000, 3_600_000_000_000, 86_400_000_000_000
LONG_UNITS = ((DAY_NS, "d", HOUR_NS, "h"), (HOUR_NS, "h", MINUTE_NS, "min"))
TIME_UNITS = (
    (HOUR_NS, "h"),
    (MINUTE_NS, "min"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "us"),
    (1, "ns"),
)
BYTE_UNITS = (
    (10**15, "PB"),
    (10**12, "TB"),
    (10**9, "GB"),
    (10**6, "MB"),
    (10**3, "KB"),
    (1, "B"),
)
DECIMAL_FACTORS = {unit: unit_bytes for unit_bytes, unit in BYTE_UNITS}
MOST_UNITS = 1000  # 1,152 KiB is harder to read than 1.18 MB
BINARY_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
ESCAPED = 0xDC00  # PEP 383: surrogates for bytes that cannot be decoded
UNDECODED = frozenset(chr(ESCAPED + byte) for byte in range(0x80, 0x100))


def visible(text: str) -> str:
    """The text with control characters escaped, so that a name in a file cannot control a
    terminal."""
    if text.isprintable():
        return text
    return "".join(
        _spelled(char) if unicodedata.category(char) in INVISIBLE else char for char in text
    )


def _spelled(char: str) -> str:
    """The escape of a character. A byte of a path that is not UTF-8 (in Python a surrogate) is
    shown as that byte."""
    code = ord(char) - ESCAPED if char in UNDECODED else ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def as_read(argument: str) -> str:
    """Decodes a name on the command line in the way in which names in files are decoded."""
    return os.fsencode(argument).decode("utf-8", "replace")


def shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def library_name(version: str) -> str:
    """Open MPI 4.1.4; MPICH 4.0.2; Intel MPI 2021.19: the beginning of what a library says of
    itself, without its build. Such a name stays as it is."""
    first = next(iter(version.strip().splitlines()), "").partition(",")[0].partition(" for ")[0]
    words = re.sub(r"\(R\)|\bLibrary\b|(^MPI )?\bversion\s*:?|\bv(?=\d)", " ", first, flags=re.I)
    return " ".join(words.split())


def call_name(call: str, memory_kind: str, measure: str) -> str:
    """MPI_Allreduce; MPI_Allreduce of device memory; ncclAllReduce on the device; ncclAllReduce on
    the host"""
    if call.startswith("nccl"):
        return f"{call} on the {'device' if measure == 'device' else 'host'}"
    return call if memory_kind in ("", "host") else f"{call} of {memory_kind} memory"


def _if_known(form: Callable[[float], str]) -> Callable[[float | None], str]:
    """A form that has NO_VALUE for None."""

    @wraps(form)
    def text(value: float | None) -> str:
        return NO_VALUE if value is None else form(value)

    return text


def three_digits(value: float) -> str:
    return f"{value:.{digits_shown(value)}f}"


def mean_count(value: float) -> str:
    """A mean of counts; without a digit after the point where nearly all are equal."""
    nearest = round(value)
    return f"{nearest:,}" if abs(value - nearest) < 0.05 else f"{value:.1f}"


def digits_shown(value: float | Fraction) -> int:
    """Digits after the decimal point."""
    return 0 if value >= 99.95 else 1 if value >= 9.995 else 2


@_if_known
def duration(ns: float) -> str:
    """1.24 ms; minutes from two minutes on, 3 h 12 min and 2 d 4 h from two hours and days on."""
    for whole_ns, whole, part_ns, part in LONG_UNITS:
        if ns >= 2 * whole_ns:
            wholes, parts = divmod(round(ns / part_ns), whole_ns // part_ns)
            return f"{wholes} {whole} {parts} {part}"
    return _in_units(ns, TIME_UNITS)


def _unit_of(value: float, units: Sequence[tuple[int, str]]) -> tuple[int, str]:
    """The largest unit of which there is one, of minutes and hours two."""
    enough = (
        (size, unit)
        for size, unit in units
        if value >= size * (2 if unit in ("min", "h") else 0.9995)
    )
    return next(enough, units[-1])


def _in_units(value: float, units: Sequence[tuple[int, str]]) -> str:
    size, unit = _unit_of(value, units)
    return f"{three_digits(value / size) if size > 1 else f'{value:.0f}'} {unit}"


def sum_text(terms: Sequence[tuple[float, str]]) -> str:
    """72.6 ms = 57.9 outside MPI + 8.0 transfer + 6.7 waiting: in the unit of the whole, with at
    least one decimal. The printed numbers add up: the terms with the largest remainders are rounded
    up."""
    whole_ns = sum(ns for ns, _ in terms)
    unit_ns, unit = _unit_of(whole_ns, TIME_UNITS)
    decimals = 0 if unit_ns == 1 else 2 if whole_ns < 9.995 * unit_ns else 1
    scaled = [ns * 10**decimals / unit_ns for ns, _ in terms]
    whole, parts = round(sum(scaled)), [int(each) for each in scaled]
    by_remainder = sorted(range(len(terms)), key=lambda place: parts[place] - scaled[place])
    for place in by_remainder[: whole - sum(parts)]:
        parts[place] += 1
    shown = [f"{number / 10**decimals:,.{decimals}f}" for number in (whole, *parts)]
    texts = (f"{number} {what}" for number, (_, what) in zip(shown[1:], terms))
    return f"{shown[0]} {unit} = {' + '.join(texts)}"


@_if_known
def volume(count_bytes: float) -> str:
    """12.3 MB: decimal units, for sums over a run."""
    return _in_units(count_bytes, BYTE_UNITS)


@_if_known
def size(message_bytes: float) -> str:
    """A message size, a mean of them, or the bytes of a step: 4 MiB if that is exact and short,
    1,152 B if it is small, else decimal."""
    if message_bytes != int(message_bytes):
        return volume(message_bytes)
    message_bytes = int(message_bytes)
    for unit_bytes, unit in BINARY_UNITS:
        if message_bytes % unit_bytes == 0 and 0 < message_bytes // unit_bytes < MOST_UNITS:
            return f"{message_bytes // unit_bytes} {unit}"
    return f"{message_bytes:,} B" if message_bytes < 10_000 else volume(message_bytes)


def size_range(low_bytes: int, high_bytes: int | None) -> str:
    """A bin of message sizes. A bin from 2049 to 4096 is printed as 2 KiB - 4 KiB: above the first,
    up to the second."""
    if low_bytes == high_bytes:
        return size(low_bytes)
    below = low_bytes - 1
    is_above_round = below > 0 and (below & (below - 1) == 0 or below % 1024 == 0)
    if high_bytes is None:
        return f"above {size(below)}" if is_above_round else f"{size(low_bytes)} and more"
    return f"{size(below if is_above_round else low_bytes)} - {size(high_bytes)}"


@_if_known
def bandwidth(bytes_per_s: float) -> str:
    return f"{volume(bytes_per_s)}/s"


@_if_known
def share(part: float) -> str:
    percent = 100 * part
    if percent < 0:
        return "> -0.01 %" if percent > -0.01 else f"-{share(-part)}"
    return (
        "< 0.01 %"
        if 0 < percent < 0.01
        else f"{percent:.2f} %"
        if percent < 1
        else f"{percent:.1f} %"
    )


@_if_known
def count(number: float) -> str:
    """12,345; ~12,345 for a float that may be rounded: a mean, or a sum too large for SQLite."""
    if isinstance(number, float) and number.is_integer() and abs(number) < WHOLE_FLOATS:
        number = int(number)
    return f"{number:,}" if isinstance(number, int) else f"~{number:,.0f}"


def capital(text: str) -> str:
    """As the first words of a sentence."""
    return text[:1].upper() + text[1:]


def counted(number: float, noun: str) -> str:
    """1 call, 2 calls; 2 processes."""
    return f"{count(number)} {noun if number == 1 else _with_s(noun)}"


def are(number: float, noun: str) -> str:
    """1 call is, 2 calls are."""
    return f"{counted(number, noun)} {agreeing('are', number)}"


def agreeing(words: str, number: float) -> str:
    """they cause; of one: it causes."""
    if number != 1:
        return words
    return " ".join(OF_ONE.get(word) or _with_s(word) for word in words.split())


def _with_s(word: str) -> str:
    return word + ("es" if word.endswith(("s", "ch")) else "s")


@_if_known
def change(part: float) -> str:
    """-31 %, -6.2 %; x3.4 from twice as much on, x0.0021 where no digits of a
    percentage are left."""
    if part >= 1 or part < -0.995:
        return f"x{1 + part:.{3 if part >= 1 else 2}g}"
    return f"{100 * part:+.{0 if abs(part) >= 0.0995 else 1}f} %"


def timestamp(unix_ns: int | None) -> str:
    """Date and time in the reader's time zone."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime((unix_ns or 0) // 1_000_000_000))
    except (OverflowError, ValueError, OSError):
        return "an impossible time"


def spans_of(ranks: Iterable[int]) -> list[range]:
    """In order, without gaps."""
    return list(_spans(sorted(ranks), most_step=1))


def _spans(ranks: Sequence[int], most_step: int) -> Iterator[range]:
    """Ranks that follow each other with equal steps: two with a step of 1, else three or more."""
    place = 0
    while place < len(ranks):
        end = place + 1
        step = ranks[end] - ranks[place] if end < len(ranks) else 0
        while 0 < step <= most_step and ranks[end : end + 1] == [ranks[end - 1] + step]:
            end += 1
        if end - place < (2 if step == 1 else 3):
            end, step = place + 1, 1
        yield range(ranks[place], ranks[end - 1] + 1, step)
        place = end


def rank_list(ranks: Iterable[int]) -> str:
    """[0, 1, 2, 5] as 0-2,5."""
    return span_list(spans_of(ranks))


class Listed(Tuple[Any, ...]):
    """Values of one column; a,b for scripts and as text."""

    def __str__(self) -> str:
        return ",".join(map(str, self))


class Ranks(Listed):
    """Likewise ranks in order: 0-2,5."""

    def __str__(self) -> str:
        return rank_list(self)


def rank_names(ranks: Iterable[int], width: int | None = 40) -> str:
    """rank 3; ranks 0-2,5."""
    return span_names(spans_of(ranks), width)


def span_names(spans: Iterable[range], width: int | None = 40) -> str:
    listed = span_list(spans)
    return (
        f"rank{'' if listed.isdigit() else 's'} "
        f"{listed if width is None else shortened(listed, width)}"
    )


def span_list(spans: Iterable[range]) -> str:
    """Spans of ranks, not single ranks, since there may be millions."""
    return ",".join(
        str(span[0]) + f"-{span[-1]}" * (len(span) > 1) + f":{span.step}" * (span.step > 1)
        for span in spans
    )


SPAN = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")
OUTSIDE, CUT_SHORT = "-1", "..."


def span_of(part: str) -> range | None:
    """3, 8-16 or 16-30:2; None: it is no such span."""
    found = SPAN.fullmatch(part)
    if not found:
        return None
    low, high, step = found.groups()
    return range(int(low), int(high or low) + 1, int(step or 0) or 1)


def spans_in(text: str) -> list[range] | None:
    """0,3-5,8-16:2; None: a part of it is no span."""
    spans = [span_of(part.strip()) for part in text.split(",")]
    return None if None in spans else list(filter(None, spans))


class Members:
    """World ranks; `is_whole` is False if the list was cut because it was too long."""

    def __init__(self, text: str) -> None:
        spans = [span_of(part) for part in text.split(",") if part != OUTSIDE]
        self.spans, self.is_whole = list(filter(None, spans)), None not in spans

    def below(self, world_size: int) -> Iterator[int]:
        """The members below this world size."""
        for span in self.spans:
            yield from range(span.start, min(span.stop, world_size), span.step)


def members_shown(text: str) -> str:
    """For people: 0,-1,-1 as "0 and 2 outside"."""
    parts = text.split(",")
    inside = [part for part in parts if part != OUTSIDE]
    if len(inside) == len(parts):
        return text
    return (
        f"{','.join(inside)} and {len(parts) - len(inside)} outside"
        if inside
        else f"{len(parts)} outside"
    )


def members_listed(ranks: str, size: int) -> str:
    """The members of a communicator in which each rank knows only its own number: of ranks such as
    0,1,2, in order; ends with "..." if not all of them were read."""
    known = [*map(int, ranks.split(","))]
    return members_text(known) + f",{CUT_SHORT}" * (len(known) < size)


def members_text(ranks: Sequence[int]) -> str:
    """[0, 1, 2, 5, 8, 10, 12] as 0-2,5,8-12:2."""
    return span_list(_spans([*ranks], sys.maxsize))


def operation(call: str) -> str:
    """Operation of a call of any form of MPI or NCCL: allreduce of MPI_Iallreduce,
    MPI_Allreduce_init and ncclAllReduce."""
    name = call[4:].lower().removesuffix("_init")
    return name[1:] if name[:1] == "i" else name

"""Reads what COMMPROF_GPU_DUMP keeps (src/cupti/dump.h): records as CUPTI gave them."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAGIC = b"commprof-cupti1\n"
BUFFER, RECORD = 2, 3
# Kind of record -> where its correlation id lies (src/cupti/records.h; tests/abi compares that with
# NVIDIA's headers).
CORRELATION_AT = {1: 44, 2: 44, 10: 92, 22: 60}
KINDS = {1: "copy", 2: "memset", 10: "kernel", 22: "copy to a peer"}


class Record(NamedTuple):
    kind: str
    correlation: int
    name: str


def items(data: bytes) -> Iterator[tuple[int, bytes]]:
    if data[:16] != MAGIC:
        raise ValueError("not a dump of CUPTI's buffers")
    (at,) = struct.unpack_from("<I", data, 16)
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("<II", data, at)
        yield kind, data[at + 8 : at + 8 + size]
        at += 8 + (size + 7) // 8 * 8


def records(path: Path) -> Iterator[Record]:
    buffer = b""
    for kind, item in items(path.read_bytes()):
        if kind == BUFFER:
            buffer = item
        elif kind == RECORD:
            (at,) = struct.unpack_from("<Q", item)
            (what,) = struct.unpack_from("<I", buffer, at)
            if what in KINDS:
                (correlation,) = struct.unpack_from("<I", buffer, at + CORRELATION_AT[what])
                yield Record(KINDS[what], correlation, item[8:].decode(errors="replace"))


def version(path: Path) -> int:
    return struct.unpack_from("<I", path.read_bytes(), 20)[0]


def write_expected(path: Path) -> None:
    """Writes what tests/unit/test_replay.c is to find in a dump: NAME.expected."""
    counts = Counter(record.name or record.kind.split()[0] for record in records(path))
    path.with_suffix(".expected").write_text(
        "".join(f"{count} {what}\n" for what, count in sorted(counts.items()))
    )

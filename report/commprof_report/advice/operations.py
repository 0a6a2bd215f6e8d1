"""How long ranks are blocked by nonblocking and persistent operations."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.thresholds import threshold
from ..calls.by_size import SizeRow
from .curves import Point

LITTLE = threshold("advice.overlap")


def is_blocked(blocked_ns: int, completion_ns: int) -> bool:
    return blocked_ns >= (1 - LITTLE) * completion_ns


def blocked_point(rows: Sequence[SizeRow], ranks: int) -> Point:
    """How long ranks are blocked by operations of one size."""
    size, count = rows[0].bytes_high or 0, sum(row.count for row in rows)
    blocked_ns = sum(row.blocked_ns for row in rows)
    return Point(
        size, size, count, count // ranks, blocked_ns, blocked_ns / max(1, count), 0.0, None
    )

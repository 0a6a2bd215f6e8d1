"""Lists of ranks as the reports write them."""

from __future__ import annotations


def expanded(text: str | None) -> tuple[int, ...]:
    """'0-2,5' written out."""
    parts = [part.split("-") for part in (text or "").split(",") if part]
    return tuple(rank for part in parts for rank in range(int(part[0]), int(part[-1]) + 1))

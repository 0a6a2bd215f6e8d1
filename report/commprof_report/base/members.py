"""The members of a communicator, as the library writes them: 0-3,8,16-30:2,-1,... Those of NCCL
communicators are combined here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

SPAN = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")
OUTSIDE, CUT_SHORT = "-1", "..."


def span_of(part: str) -> range | None:
    """3, 8-16 or 16-30:2; None: it is no such span."""
    found = SPAN.fullmatch(part)
    if not found:
        return None
    low, high, step = found.groups()
    return range(int(low), int(high or low) + 1, int(step or 0) or 1)


class Members:
    """World ranks; `is_whole` is False if the list was cut because it was too long."""

    def __init__(self, text: str) -> None:
        self.spans: list[range] = []
        self.is_whole = True
        for part in text.split(","):
            span = span_of(part)
            if span is not None:
                self.spans.append(span)
            elif part != OUTSIDE:
                self.is_whole = False

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
        f"{','.join(inside)} and {len(parts) - len(inside)} outside" if inside
        else f"{len(parts)} outside"
    )


class Gathered:
    """The SQL aggregate members_gathered(comm_rank, world_rank, size): the world ranks of a
    communicator in which each rank knows only its own number, in order; ends with "..." if not all
    of them were read."""

    def __init__(self) -> None:
        self.ranks: dict[int, int] = {}
        self.size = 0

    def step(self, comm_rank: int, world_rank: int, size: int) -> None:
        self.ranks[comm_rank] = world_rank
        self.size = size

    def finalize(self) -> str:
        known = members_text([rank for _, rank in sorted(self.ranks.items())])
        return known if len(self.ranks) >= self.size else f"{known},{CUT_SHORT}"


def members_text(ranks: Sequence[int]) -> str:
    """[0, 1, 2, 5, 8, 10, 12] as 0-2,5,8-12:2."""
    parts = []
    place = 0
    while place < len(ranks):
        end = place + 1
        step = ranks[end] - ranks[place] if end < len(ranks) else 0
        while step > 0 and end < len(ranks) and ranks[end] - ranks[end - 1] == step:
            end += 1
        if end - place < (2 if step == 1 else 3):
            end = place + 1
        last = ranks[end - 1]
        parts.append(
            str(last) if end == place + 1
            else f"{ranks[place]}-{last}" + (f":{step}" if step > 1 else "")
        )
        place = end
    return ",".join(parts)

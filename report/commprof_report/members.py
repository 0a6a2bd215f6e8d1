"""The members of a communicator, as the library writes them: 0-3,8,16-30:2,-1,..."""

from __future__ import annotations

import re
from collections.abc import Iterator

SPAN = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")
OUTSIDE, CUT_SHORT = "-1", "..."


class Members:
    """World ranks; `is_whole` is False where the list was too long for its place."""

    def __init__(self, text: str) -> None:
        self.spans: list[range] = []
        self.is_whole = True
        for part in text.split(","):
            span = SPAN.fullmatch(part)
            if span:
                low, high, step = (int(number) if number else None for number in span.groups())
                self.spans.append(range(low, (low if high is None else high) + 1, step or 1))
            elif part != OUTSIDE:
                self.is_whole = False

    def below(self, world_size: int) -> Iterator[int]:
        """Those that a world of this size has."""
        for span in self.spans:
            yield from range(span.start, min(span.stop, world_size), span.step)

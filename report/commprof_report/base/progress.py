"""A progress line on the terminal during long operations; nothing in a pipe or for short ones."""

from __future__ import annotations

import sys
import time

PATIENCE_S = 1.0
BETWEEN_S = 0.2


class Progress:
    def __init__(self, doing: str, whole: int, what: str = "files") -> None:
        self.doing, self.whole, self.what, self.done = doing, whole, what, 0
        self.is_wanted = sys.stderr is not None and sys.stderr.isatty()
        self.next_s = time.monotonic() + PATIENCE_S
        self.is_shown = False

    def __enter__(self) -> Progress:
        return self

    def step(self) -> None:
        self.done += 1
        if self.is_wanted and time.monotonic() >= self.next_s:
            self.next_s = time.monotonic() + BETWEEN_S
            self.is_shown = True
            print(
                f"\r{self.doing} {self.done} of {self.whole} {self.what}", end="", file=sys.stderr,
                flush=True,
            )

    def clear(self) -> None:
        if self.is_shown:
            self.is_shown = False
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        self.clear()

"""Files that are written aside and then renamed: whoever reads one finds all of it, or what was there before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from .errors import ReportError


@contextmanager
def aside_of(output: Path, mode: int = 0o666) -> Iterator[Path]:
    """An empty file beside the output, which takes its place in the end. A link that somebody has laid there is not followed. A device or a
    pipe is written itself: root would replace /dev/null for everybody."""
    if output.exists() and not output.is_file() and not output.is_dir():
        yield output
        return
    aside = output.with_name(f"{output.name}.{os.getpid()}.tmp")
    aside.unlink(missing_ok=True)
    os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    try:
        yield aside
        os.replace(aside, output)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def renamed_whole(output: Path) -> Iterator[Path]:
    """The same for a command's output: what goes wrong is a ReportError."""
    try:
        with aside_of(output) as aside:
            yield aside
    except OSError as error:
        raise ReportError(output, f"cannot be written: {error.strerror or error}") from None


@contextmanager
def written_whole(output: Path) -> Iterator[TextIO]:
    with renamed_whole(output) as aside, open(aside, "w", encoding="utf-8", errors="replace", newline="") as file:
        yield file

"""Files that are written aside and then renamed: whoever reads one finds all of it, or what was
there before."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from .errors import ReportError


@contextmanager
def aside_of(output: Path, mode: int = 0o666) -> Iterator[Path]:
    """An empty file beside the output, which takes its place in the end. A link that somebody has
    laid there is not followed. A device or a pipe is written itself: root would replace /dev/null
    for everybody."""
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
def renamed_whole(output: Path, mode: int) -> Iterator[Path]:
    """The same for a command's output, which a run's mode (rank_files.files_mode) makes as private
    as the run; a file that is there already keeps its own. Failures are ReportErrors."""
    try:
        own = stat.S_IMODE(output.stat().st_mode) if output.is_file() else None
        with aside_of(output, mode) as aside:
            yield aside
            if own is not None:
                os.chmod(aside, own)
    except OSError as error:
        raise ReportError(output, f"cannot be written: {error.strerror or error}") from None


@contextmanager
def written_whole(output: Path, mode: int) -> Iterator[TextIO]:
    with (
        renamed_whole(output, mode) as aside,
        open(aside, "w", encoding="utf-8", errors="replace", newline="") as file,
    ):
        yield file

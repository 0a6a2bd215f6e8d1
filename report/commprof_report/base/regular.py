"""Files from outside: which of two names are one file, and opening those that are files at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from .errors import ReportError


def regular_open(path: Path) -> BinaryIO:
    """Opens a regular file; not a pipe or device, which might block or react to being opened."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ReportError(path, "is not a regular file")
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))


def distinct(paths: Iterable[Path]) -> list[Path]:
    """The paths without those that lead to the same file or folder as one before."""
    found: dict[object, Path] = {}
    for path in paths:
        found.setdefault(_identity(path), path)
    return list(found.values())


def _identity(path: Path) -> object:
    try:
        status = os.stat(path)
    except OSError:
        return path
    return status.st_dev, status.st_ino


def common_folder(paths: Iterable[Path]) -> Path:
    """The folder that all paths are below, each relative or absolute."""
    words = list(paths)
    if len({path.is_absolute() for path in words}) > 1:
        words = [Path(os.path.abspath(path)) for path in words]
    return Path(os.path.commonpath(words) or ".")

"""Measurements of `commprof-run --canary` before a run: how fast each of its hosts was."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

from ..base.errors import ReportError
from ..base.json_file import json_read, number_in

MOST_NS = 1e15


# Times of work that is always the same; see src/tools/canary.h.
Canary = namedtuple("Canary", "arithmetic_ns memory_ns")


def folder_of(run: Path) -> Path:
    """Beside the run folder."""
    return run.with_name(f"{run.name}.canary")


def canaries_read(run: Path) -> dict[str, Canary]:
    """By host. A file that is not whole is skipped."""
    found = {}
    for path in sorted(folder_of(run).glob("*")):
        try:
            values = json_read(path)
            found[path.name] = Canary(
                *(number_in(values, name, 1, MOST_NS) for name in Canary._fields)
            )
        except (ReportError, ValueError):
            continue
    return found

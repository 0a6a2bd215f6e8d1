"""What `commprof-run --canary` measured before a run: how fast each of its hosts was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple


class Canary(NamedTuple):
    """Times of work that is always the same; see src/tools/canary.h."""

    arithmetic_ns: float
    memory_ns: float


def folder_of(run: Path) -> Path:
    """Beside the run folder."""
    return run.with_name(f"{run.name}.canary")


def canaries_read(run: Path) -> dict[str, Canary]:
    """By host. A file that is not whole is skipped."""
    found = {}
    for path in sorted(folder_of(run).glob("*")):
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            found[path.name] = Canary(*(float(values[name]) for name in Canary._fields))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found

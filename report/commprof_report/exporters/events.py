"""Chrome's trace event format: events as text, and the names of processes and threads."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ..base.units import visible

PLACES_OF_RANK = 1_000  # in the list of processes: a rank's own, then those of other profilers


def event_text(phase: str, process: int, thread: int, **values: object) -> str:
    return json.dumps({"ph": phase, "pid": process, "tid": thread, **_shown(values)})


def _shown(values: dict) -> dict:
    """Without control characters."""
    return {
        key: visible(value) if isinstance(value, str)
        else _shown(value) if isinstance(value, dict) else value
        for key, value in values.items()
    }


def process_named(process: int, name: str, place: int) -> Iterator[str]:
    yield event_text("M", process, 0, name="process_name", args={"name": name})
    yield event_text("M", process, 0, name="process_sort_index", args={"sort_index": place})


def thread_named(process: int, thread: int, name: str, place: int) -> Iterator[str]:
    yield event_text("M", process, thread, name="thread_name", args={"name": name})
    yield event_text("M", process, thread, name="thread_sort_index", args={"sort_index": place})


def us(ns: int) -> float:
    """Microseconds. Perfetto multiplies them in floating point and cuts: a fourth decimal keeps the
    nanosecond."""
    shown = ns / 1_000
    return shown if int(shown * 1_000) == ns else round(shown + (0.0002 if ns > 0 else -0.0002), 4)

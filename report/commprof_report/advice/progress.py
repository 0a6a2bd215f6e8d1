"""Waiting for ranks that are outside MPI while an operation that they have begun needs them, where
no late rank explains it."""

from __future__ import annotations

from collections.abc import Iterator

from ..late.sentences import PROGRESS, held_up_text, is_held_up
from . import changes
from .findings import LIKELY, Finding, Unknown
from .inputs import Inputs
from .late_rank_rules import crowded, late_unknown


def find(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """If the named ranks are those, rule imbalance says it."""
    text = held_up_text(inputs.late)
    if not text:
        yield from late_unknown(inputs)
    elif not is_held_up(inputs.late.run):
        found = Finding(
            "nonblocking operations make no progress while ranks compute", text, PROGRESS, LIKELY,
            inputs.late.held_up_ns, change=changes.without_progress(inputs),
        )
        yield crowded(found, inputs)

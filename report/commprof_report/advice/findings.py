"""Finding of a rule, or why it could not look; and the words that several rules share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..base import units
from ..base.thresholds import threshold, whole
from .inputs import Inputs

NOTABLE = threshold("advice.notable")
MANY = whole("advice.many")
SURE, LIKELY, POSSIBLE = "sure", "likely", "possible"


class Finding(NamedTuple):
    """saving_ns: over all ranks."""

    title: str
    evidence: str
    suggestion: str
    certainty: str
    saving_ns: float | None = None
    call: str | None = None
    identities: Sequence[str] = ()
    bytes: int | None = None


def is_notable(finding: Finding, inputs: Inputs) -> bool:
    return finding.saving_ns is None or is_notable_time(finding.saving_ns, inputs)


def is_notable_time(ns: float, inputs: Inputs) -> bool:
    return ns > 0 and ns >= NOTABLE * inputs.counted_ns


def ran_once(calls: float, inputs: Inputs) -> bool:
    """No rank made such a call twice, if all made as many: nothing to be learned from."""
    return calls <= inputs.ranks


def size_range(low_bytes: int, high_bytes: int) -> str:
    low, high = units.size(low_bytes), units.size(high_bytes)
    return low if low == high else f"{low} to {high}"


def waiting_text(waiting: float | None) -> str:
    """Messages cost nothing while their senders are late."""
    if waiting is None:
        return "; how much of it is waiting for late ranks is not known"
    return (
        f", {units.share(waiting)} of it waiting for late ranks (not counted as saved)"
        if waiting else ""
    )

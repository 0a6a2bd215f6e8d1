"""The gain of a change: made from the time of the calls that it names, without their waiting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Spans(NamedTuple):
    """The time in some calls of all ranks. waiting: the share in which they wait for late ranks,
    which no change of these calls saves; None: not known. most_ns: what the calls typically
    take, if a few are much longer: another call would be, too."""

    total_ns: float
    waiting: float | None = None
    most_ns: float = float("inf")


def ns(spans: Spans, needed_ns: float = 0.0, hidden_ns: float = float("inf")) -> float:
    """needed_ns: what is left of the calls. hidden_ns: time outside MPI, behind which they go."""
    cost_ns = min(spans.most_ns, spans.total_ns * (1 - (spans.waiting or 0.0)))
    return max(0.0, min(cost_ns - needed_ns, hidden_ns))


def together_ns(gains_ns: Iterable[float], exposed_ns: float) -> float:
    """exposed_ns: time inside MPI, which is all that can be saved."""
    return min(sum(gains_ns), exposed_ns)

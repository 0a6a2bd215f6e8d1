"""A size that is slower than a larger one at like places."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from . import basis, changes
from .basis import PADDED
from .curves import Curve, Point
from .findings import LIKELY, Finding, Unknown, on
from .inputs import Inputs
from .neighbours import quartiles_text, unknown_pairs


def find(inputs: Inputs) -> Iterator[Finding | Unknown]:
    for curve in basis.comparable(inputs):
        for point in curve.judged.values():
            larger = [
                other for other in curve.judged.values()
                if is_faster(other, point) and point.is_of_ranks_of(other)
            ]
            if larger:
                yield _pad(point, min(larger, key=lambda other: other.p50_ns), curve, inputs)
    yield from unknown_pairs(inputs, lambda below, above: is_faster(above, below))


def is_faster(other: Point, point: Point) -> bool:
    """A larger size, by no more than padding may add, of which three quarters are faster than three
    quarters of the smaller one."""
    is_near = point.bytes < other.bytes <= PADDED * point.bytes
    return is_near and other.split.transfer_p75_ns < point.split.transfer_p25_ns


def _pad(point: Point, best: Point, curve: Curve, inputs: Inputs) -> Finding:
    library = "NCCL" if curve.call.startswith("nccl") else "the MPI library"
    return Finding(
        f"pad {curve.call} of {units.size(point.bytes)} to {units.size(best.bytes)} on "
        f"{on(inputs, curve)}",
        f"{quartiles_text(point)}; {quartiles_text(best)}, both {curve.timed}",
        f"send the larger size, or let {library} use for this size the algorithm that it uses for "
        "the larger one",
        LIKELY, point.count * (point.p50_ns - best.p50_ns),
        curve.call, curve.identities, point.bytes,
        changes.shorter(
            inputs, changes.chosen(inputs, [curve.call], curve.identities, [point.bytes]),
            best.p50_ns / point.p50_ns,
        ),
    )

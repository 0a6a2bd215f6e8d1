"""Between two sizes close to each other the time grows much more than the size: what it grows
more."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from ..base.thresholds import threshold
from ..calls.by_call import operation
from . import basis, changes
from .basis import PADDED
from .curves import AFTER_PAUSES, IN_BURSTS, Curve, Point
from .findings import LIKELY, POSSIBLE, Finding, Unknown, on
from .inputs import Inputs
from .neighbours import at_other_places, quartiles_text, unknown_pairs

JUMP = threshold("advice.jump")
CLEAR = threshold("advice.clear-jump")
NCCL_LIMITS = "NCCL: NCCL_ALGO, NCCL_PROTO, or a tuner plugin"
MPI_LIMITS = (
    "Open MPI: btl_..._eager_limit, coll_tuned_...; MPICH: MPIR_CVAR_..._EAGER_..., "
    "MPIR_CVAR_..._MSG_SIZE"
)


def find(inputs: Inputs) -> Iterator[Finding | Unknown]:
    for curve in basis.comparable(inputs):
        for below, above in curve.neighbours(PADDED):
            if is_jump(below, above):
                yield _jump(below, above, curve, inputs)
    for below, above, curve in at_other_places(inputs):
        if curve.place == AFTER_PAUSES and is_clear(below, above):
            yield _clear_jump(below, above, curve, inputs)
    yield from unknown_pairs(inputs, is_jump)


def is_jump(below: Point, above: Point) -> bool:
    """Three quarters of the larger take longer than three quarters of the smaller, by more than the
    size."""
    larger = above.bytes / below.bytes
    is_apart = above.split.transfer_p25_ns > larger * below.split.transfer_p75_ns
    return larger <= PADDED and is_apart and above.p50_ns > JUMP * larger * below.p50_ns


def is_clear(below: Point, above: Point) -> bool:
    """Even the fastest call after a pause takes so long that the size and not the pause makes the
    difference. The fastest first bucket of training steps took up to 2 times as long as the same
    bytes in bursts."""
    return above.split.transfer_min_ns > CLEAR * above.bytes / below.bytes * below.p50_ns


def _jump(below: Point, above: Point, curve: Curve, inputs: Inputs) -> Finding:
    larger = above.bytes / below.bytes
    return Finding(
        f"{_between(below, above, curve)} on {on(inputs, curve)}",
        f"{quartiles_text(below)}; {quartiles_text(above)}, both {curve.timed}. "
        f"That is {above.p50_ns / below.p50_ns:.1f} times as long for {larger:.2f} times "
        "the bytes: the library seems to change its protocol or algorithm there",
        f"keep messages at or below {units.size(below.bytes)}, or move the limit "
        f"({_limits(curve)})",
        LIKELY, above.count * (above.p50_ns - below.p50_ns * larger),
        curve.call, curve.identities, above.bytes,
        changes.shorter(
            inputs, changes.chosen(inputs, [curve.call], curve.identities, [above.bytes]),
            below.p50_ns * larger / above.p50_ns,
        ),
    )


def _clear_jump(below: Point, above: Point, curve: Curve, inputs: Inputs) -> Finding:
    least_ns = above.split.transfer_min_ns
    return Finding(
        f"{_between(below, above, curve)} on {inputs.where(curve.identities)}",
        f"{quartiles_text(below)}, {curve._replace(place=IN_BURSTS).timed}. Calls of "
        f"{units.size(above.bytes)} all follow pauses, which may be a part of it, but even the "
        f"fastest of {units.count(above.count)} takes {units.duration(least_ns)}",
        f"compare both sizes without pauses (osu_{operation(curve.call)}); keep messages at or "
        f"below {units.size(below.bytes)}, or move the limit ({_limits(curve)})",
        POSSIBLE, above.count * (least_ns - below.p50_ns * above.bytes / below.bytes),
        curve.call, curve.identities, above.bytes,
        changes.shorter(
            inputs, changes.chosen(inputs, [curve.call], curve.identities, [above.bytes]),
            below.p50_ns * above.bytes / below.bytes / above.p50_ns,
        ),
    )


def _between(below: Point, above: Point, curve: Curve) -> str:
    return f"{curve.call} jumps between {units.size(below.bytes)} and {units.size(above.bytes)}"


def _limits(curve: Curve) -> str:
    """The settings of the library that has these limits."""
    return NCCL_LIMITS if curve.call.startswith("nccl") else MPI_LIMITS

"""Allreduces of a few values: the time in them that is not waiting. A background thread that has
nothing else to do may make many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import basis, changes, curves
from .allreduces import calls_text, certainty, is_tiny
from .curves import Curve, Point
from .findings import MANY, Finding, Unknown, background, on, waiting_text
from .inputs import HOROVOD, Inputs


def find(inputs: Inputs) -> Iterator[Finding | Unknown]:
    if inputs.negotiation:
        return
    if inputs.is_beside_main_mostly:
        yield background(inputs)
        return
    for curve in basis.allreduces(inputs):
        tiny = [point for point in curve.points if is_tiny(point)]
        if sum(point.count for point in tiny) >= MANY * curve.ranks:
            yield _fewer(curve, tiny, inputs)


def _fewer(curve: Curve, tiny: Sequence[Point], inputs: Inputs) -> Finding:
    total_ns, waiting = sum(point.total_ns for point in tiny), curves.waiting(tiny)
    return Finding(
        f"make fewer tiny {curve.call} on {on(inputs, curve)}",
        f"{calls_text(tiny, curve.ranks, inputs)} take {inputs.per_rank(total_ns)}"
        f"{waiting_text(waiting)}",
        _how(curve.call, inputs.framework),
        certainty(curve.ranks, tiny, total_ns), total_ns * (1 - (waiting or 0)),
        curve.call, curve.identities, max(tiny, key=lambda point: point.total_ns).bytes,
        changes.shorter(
            inputs,
            changes.chosen(
                inputs, [curve.call], curve.identities, [point.bytes for point in tiny]
            ), 0.0,
        ),
    )


def _how(call: str, framework: str) -> str:
    several = "put several values into one message, or sum them less often"
    if call != "MPI_Allreduce":
        return several
    if framework != HOROVOD:
        return f"{several} (Horovod negotiates like this: HOROVOD_CYCLE_TIME)"
    return "these are negotiation: raise HOROVOD_CYCLE_TIME, and leave HOROVOD_CACHE_CAPACITY on"

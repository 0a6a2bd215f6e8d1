"""Allreduces of a few values: the time in them that is not waiting. A background thread that has
nothing else to do may make many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base import units
from ..calls.by_call import operation
from ..calls.by_size import SizeRow
from . import basis, changes, curves
from .allreduces import TINY_BYTES, calls_text, certainty, is_tiny
from .curves import Curve, Point
from .findings import (
    MANY, POSSIBLE, Finding, Unknown, background, on, size_range, waiting_text,
)
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
    alike: dict[tuple[str, object], list[SizeRow]] = {}
    for row in inputs.completed:
        if operation(row.call) == "allreduce" and 0 < (row.bytes_high or 0) <= TINY_BYTES:
            alike.setdefault((row.call, inputs.family(row.identity)), []).append(row)
    for rows in alike.values():
        if sum(row.count for row in rows) >= MANY * inputs.ranks:
            yield _fewer_nonblocking(rows, inputs)


def _fewer_nonblocking(rows: Sequence[SizeRow], inputs: Inputs) -> Finding:
    """They are waited for in other calls, perhaps with others."""
    call, identities = rows[0].call, sorted({row.identity for row in rows})
    blocked_ns, sizes = sum(row.blocked_ns for row in rows), [row.bytes_high or 0 for row in rows]
    waiting = inputs.waiting([call], blocked_ns, identities)
    return Finding(
        f"make fewer tiny {call} on {inputs.where(identities)}",
        f"{units.count(sum(row.count for row in rows) // inputs.ranks)} operations a rank of "
        f"{size_range(min(sizes), max(sizes))} are waited for {inputs.per_rank(blocked_ns)}"
        f"{waiting_text(waiting)}",
        _how(call, inputs.framework), POSSIBLE, blocked_ns * (1 - (waiting or 0)), call,
        identities, max(sizes),
        changes.shorter(inputs, changes.chosen(inputs, [call], identities, sizes), 0.0),
    )


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

"""How much of a run each rule of advice can analyse: what "looked for and not found" rests on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable, NamedTuple

from ..base import units
from ..calls.by_call import operation, poll_rows
from ..calls.by_size import SizeRow
from ..gpu.gpu_activity import gpu
from ..late.sentences import basis_text
from ..run.crowding import core_uses, cores_of
from .allreduces import TINY_BYTES
from .curves import Curve, Point
from .inputs import Inputs
from .operations import blocked_point

MOST_NAMES = 60  # characters, of calls that no rule can judge


class Basis(NamedTuple):
    """The part that a rule can analyse of what its title speaks of. whole 0: the run has none."""

    text: str
    part: float
    whole: float

    @property
    def coverage(self) -> float | None:
        return min(1.0, self.part / self.whole) if self.whole else None


def of_knees(inputs: Inputs) -> Basis:
    with_knee = (
        curve for curve in (*fusible(inputs), *blocked_allreduces(inputs)) if curve.knee
    )
    return _of_calls(inputs, _does("allreduce"), _points(with_knee))


def of_allreduces(inputs: Inputs) -> Basis:
    return _of_calls(inputs, _does("allreduce"), _points(allreduces(inputs)))


def of_operations(*calls: str) -> Callable[[Inputs], Basis]:
    """These calls, among those of any form and library that do the same."""

    def basis(inputs: Inputs) -> Basis:
        judged = [row for row in inputs.sizes if row.call in calls and not row.is_folded]
        return _of_calls(inputs, _does(*map(operation, calls)), judged)

    return basis


def of_messages(inputs: Inputs) -> Basis:
    messages = [row for row in inputs.sizes if is_message(row)]
    return _of_calls(inputs, is_message, messages)


def of_late(inputs: Inputs) -> Basis:
    row = inputs.late.run
    split_ns, whole_ns = row.wait_ns + row.transfer_ns, 0 if inputs.is_alone else row.total_ns
    return Basis(basis_text(row) if split_ns else "none", split_ns, whole_ns)


def of_steps(inputs: Inputs) -> Basis:
    steps = inputs.steps
    return _of(steps.judged_steps, 0 if inputs.is_alone else steps.steps, "step")


def of_polls(inputs: Inputs) -> Basis:
    polls = sum(row.polls + row.found for row in poll_rows(inputs.run.connection))
    return _of(polls, polls, "poll")


def of_nonblocking(inputs: Inputs) -> Basis:
    mpi = (row for row in inputs.sizes if row.library == "mpi" and row.form != "blocking")
    started = sum(row.count for row in mpi)
    completed = sum(row.count for row in inputs.completed)
    return _of(completed, max(started, completed), "operation")


def of_rounds(inputs: Inputs) -> Basis:
    rounds = (inputs.negotiation.rounds if inputs.negotiation else 0) or 0
    return _of(rounds, rounds, "round")


def of_cores(inputs: Inputs) -> Basis:
    """Coverage of the rule on jobs that communicate beside the main thread."""
    known = sum(bool(cores_of(row.affinity)) for row in core_uses(inputs.run.connection))
    return _of(known, inputs.ranks if inputs.is_beside_main_mostly else 0, "rank")


def of_all_calls(inputs: Inputs) -> Basis:
    calls = sum(row.count for row in inputs.answers.calls)
    return _of(calls, calls, "call")


def of_copies(inputs: Inputs) -> Basis:
    traced = gpu(inputs.run.connection).summary
    return Basis(
        f"{units.share(traced.window_share)} of the time", traced.window_ns, traced.wall_ns or 1
    )


def allreduces(inputs: Inputs) -> list[Curve]:
    return [curve for curve in inputs.curves if operation(curve.call) == "allreduce"]


def fusible(inputs: Inputs) -> list[Curve]:
    """Without calls on a thread beside the main one: these compete with the computation, whatever
    their size. Where a framework negotiates, it is known which of them were ready together."""
    return [
        curve for curve in allreduces(inputs)
        if inputs.negotiation or not inputs.is_beside_main(curve.call, curve.identities)
    ]


def blocked_allreduces(inputs: Inputs) -> list[Curve]:
    """Nonblocking and persistent Allreduces larger than a value by size, with how long ranks are
    blocked by one. Without those of a framework that has fused what was ready together."""
    alike: dict[tuple, dict[int, list[SizeRow]]] = {}
    for row in () if inputs.negotiation else inputs.completed:
        size = row.bytes_high or 0
        if operation(row.call) == "allreduce" and size > TINY_BYTES and not row.is_folded:
            key = (row.call, inputs.family(row.identity), row.memory_kind)
            alike.setdefault(key, {}).setdefault(size, []).append(row)
    return [
        Curve(
            call, "",
            tuple(sorted({row.identity for rows in sizes.values() for row in rows})), memory_kind,
            inputs.ranks, [blocked_point(rows, inputs.ranks) for _, rows in sorted(sizes.items())],
        )
        for (call, _, memory_kind), sizes in alike.items()
    ]


def is_message(row: SizeRow) -> bool:
    """A blocking call that sends or receives, of MPI."""
    is_blocking = row.form == "blocking" and row.bandwidth != "silent" and row.library == "mpi"
    return is_blocking and row.family == "point-to-point"


def _points(curves: Iterable[Curve]) -> list[Point]:
    return [point for curve in curves for point in curve.points]


def _does(*operations: str) -> Callable[[SizeRow], bool]:
    return lambda row: operation(row.call) in operations


def _of_calls(
    inputs: Inputs, is_named: Callable[[SizeRow], bool], analysed: Iterable[SizeRow | Point]
) -> Basis:
    """is_named: the calls that a title speaks of. NCCL's are counted on the host."""
    named = [row for row in inputs.sizes if is_named(row) and row.measure != "device"]
    rows = list(analysed)
    calls, part_ns = sum(row.count for row in rows), sum(row.total_ns for row in rows)
    whole = max(calls, sum(row.count for row in named))
    if calls or not whole:
        share = units.share(part_ns / (inputs.counted_ns or 1))
        return _of(calls, whole, "call", f", {share} of the time")
    names = units.shortened(", ".join(sorted({row.call for row in named})), MOST_NAMES)
    return Basis(f"{units.counted(whole, 'call')} of {names}", 0, whole)


def _of(part: float, whole: float, noun: str, more: str = "") -> Basis:
    """15 of 40 calls"""
    some = f"{units.count(part)} of " if part < whole else ""
    return Basis(f"{some}{units.counted(whole, noun)}{more}", part, whole)

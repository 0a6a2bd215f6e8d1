"""How much of a run each rule of advice can analyse: what "looked for and not found" rests on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable, NamedTuple

from ..base import units
from ..base.query import Row
from ..calls.views import POLLS, operation
from ..gpu.gpu_activity import gpu
from ..late.sentences import basis_text
from ..run.cells import view_rows
from .curves import Point
from .inputs import Inputs
from .messages import allreduces, fusible, is_message
from .surroundings import with_cores

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
    points = (point for curve in fusible(inputs) if curve.knee for point in curve.points)
    return _of_calls(inputs, _does("allreduce"), points)


def of_allreduces(inputs: Inputs) -> Basis:
    blocking = (curve for curve in allreduces(inputs) if not curve.is_blocked)
    return _of_calls(
        inputs, _does("allreduce"), (point for curve in blocking for point in curve.points)
    )


def of_operations(*calls: str) -> Callable[[Inputs], Basis]:
    """These calls, among those of any form and library that do the same."""

    def basis(inputs: Inputs) -> Basis:
        judged = [row for row in inputs.sizes if row.call in calls and not row.is_folded]
        return _of_calls(inputs, _does(*map(operation, calls)), judged)

    return basis


def of_messages(inputs: Inputs) -> Basis:
    return _of_calls(inputs, is_message, [row for row in inputs.sizes if is_message(row)])


def of_late(inputs: Inputs) -> Basis:
    row = inputs.late.run
    split_ns, whole_ns = row.wait_ns + row.transfer_ns, 0 if inputs.is_alone else row.total_ns
    return Basis(basis_text(row) if split_ns else "none", split_ns, whole_ns)


def of_steps(inputs: Inputs) -> Basis:
    steps = inputs.steps
    return _of(steps.judged_steps, 0 if inputs.is_alone else steps.steps, "step")


def of_polls(inputs: Inputs) -> Basis:
    return _all(
        sum(row.polls + row.found for row in view_rows(inputs.run.connection, POLLS)), "poll"
    )


def of_nonblocking(inputs: Inputs) -> Basis:
    mpi = (row for row in inputs.sizes if row.library == "mpi" and row.form != "blocking")
    started = sum(row.count for row in mpi)
    completed = sum(row.count for row in inputs.completed)
    return _of(completed, max(started, completed), "operation")


def of_rounds(inputs: Inputs) -> Basis:
    return _all((inputs.negotiation.rounds if inputs.negotiation else 0) or 0, "round")


def of_cores(inputs: Inputs) -> Basis:
    return _all(len(with_cores(inputs)), "rank")


def of_shared_cores(inputs: Inputs) -> Basis:
    """Coverage of the rule on jobs that communicate beside the main thread."""
    whole = inputs.ranks if inputs.is_beside_main_mostly else 0
    return _of(len(with_cores(inputs)), whole, "rank")


def of_all_calls(inputs: Inputs) -> Basis:
    return _all(sum(row.count for row in inputs.answers.calls), "call")


def of_copies(inputs: Inputs) -> Basis:
    traced = gpu(inputs.run.connection).summary
    return Basis(
        f"{units.share(traced.window_share)} of the time", traced.window_ns, traced.wall_ns or 1
    )


def _does(*operations: str) -> Callable[[Row], bool]:
    return lambda row: operation(row.call) in operations


def _of_calls(
    inputs: Inputs, is_named: Callable[[Row], bool], analysed: Iterable[Row | Point]
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


def _all(number: float, noun: str) -> Basis:
    return _of(number, number, noun)


def _of(part: float, whole: float, noun: str, more: str = "") -> Basis:
    """15 of 40 calls"""
    some = f"{units.count(part)} of " if part < whole else ""
    return Basis(f"{some}{units.counted(whole, noun)}{more}", part, whole)

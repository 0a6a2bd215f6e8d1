"""How much of a run each rule of advice can analyse: what "looked for and not found" rests on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable, NamedTuple

from ..base import units
from ..base.query import Row
from ..calls.views import operation
from ..gpu.gpu_activity import gpu
from ..late.sentences import basis_text
from .curves import Point
from .inputs import Inputs
from .messages import BARRIER, fusible, is_message
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
    points = (point for curve in inputs.curves for point in curve.points)
    return _of_calls(inputs, _does("allreduce"), points)


def of_barriers(inputs: Inputs) -> Basis:
    """Blocking ones, among those of any form."""
    judged = [row for row in inputs.sizes if row.call == BARRIER and not row.is_folded]
    return _of_calls(inputs, _does("barrier"), judged)


def of_messages(inputs: Inputs) -> Basis:
    return _of_calls(inputs, is_message, [row for row in inputs.sizes if is_message(row)])


def of_late(inputs: Inputs) -> Basis:
    row = inputs.late.run
    split_ns, whole_ns = row.wait_ns + row.transfer_ns, 0 if inputs.is_alone else row.total_ns
    return Basis(basis_text(row) if split_ns else "none", split_ns, whole_ns)


def of_nonblocking(inputs: Inputs) -> Basis:
    mpi = (row for row in inputs.sizes if row.library == "mpi" and row.form != "blocking")
    started = sum(row.count for row in mpi)
    completed = sum(row.count for row in inputs.completed)
    return _of(completed, max(started, completed), "operation")


def of_rounds(inputs: Inputs) -> Basis:
    return _all((inputs.negotiation.rounds if inputs.negotiation else 0) or 0, "round")


def of_cores(inputs: Inputs) -> Basis:
    return _all(len(with_cores(inputs)), "rank")


def of_all_calls(inputs: Inputs) -> Basis:
    return _all(sum(row.count for row in inputs.answers.calls), "call")


def of_copies(inputs: Inputs) -> Basis:
    traced = gpu(inputs.run.connection).summary
    return Basis(
        f"{units.share(traced.window_share)} of the time", traced.window_ns, traced.wall_ns or 1
    )


def _does(what: str) -> Callable[[Row], bool]:
    return lambda row: operation(row.call) == what


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

"""Nonblocking operations that are waited for nearly all the time: what they are blocked without
waiting for late ranks, no more than all completing calls last, less what these are known to wait
for other operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base import units
from ..calls.by_size import SizeRow
from . import changes
from .findings import POSSIBLE, Finding, ran_once, waiting_text
from .inputs import Inputs
from .operations import is_blocked


def find(inputs: Inputs) -> Iterator[Finding]:
    nonblocking = {row.call for row in inputs.completed}
    for rows in _waited_together(inputs.completed, inputs):
        if ran_once(sum(row.count for row in rows), inputs):
            continue
        yield _overlaps_with_nothing(rows, nonblocking, inputs)


def _waited_together(completed: Sequence[SizeRow], inputs: Inputs) -> list[list[SizeRow]]:
    """Messages of a communicator are mostly waited for together, and communicators of one family do
    the same: they are one."""
    alike: dict[tuple[str, object], list[SizeRow]] = {}
    for rows in _not_overlapped(completed):
        call, family, identity = rows[0].call, rows[0].family, rows[0].identity
        what = family if family == "point-to-point" else call
        alike.setdefault((what, inputs.family(identity)), []).extend(rows)
    return list(alike.values())


def _not_overlapped(sizes: Sequence[SizeRow]) -> Iterator[list[SizeRow]]:
    """The sizes of one call on one communicator."""
    operations: dict[tuple[str, str], list[SizeRow]] = {}
    for row in sizes:
        operations.setdefault((row.call, row.identity), []).append(row)
    for rows in operations.values():
        completion_ns = sum(row.total_ns for row in rows)
        if completion_ns and is_blocked(sum(row.blocked_ns for row in rows), completion_ns):
            yield rows


def _overlaps_with_nothing(
    rows: Sequence[SizeRow], nonblocking: set[str], inputs: Inputs
) -> Finding:
    calls = sorted({row.call for row in rows})
    identities = sorted({row.identity for row in rows})
    blocked_ns = sum(row.blocked_ns for row in rows)
    others_ns = sum(
        (row.wait_ns or 0) + (row.transfer_ns or 0) for row in inputs.late.calls
        if row.call in nonblocking and not (row.call in calls and row.identity in identities)
    )
    waits_ns = sum(call.total_ns for call in inputs.answers.calls if call.family == "completion")
    spent_ns = min(blocked_ns, max(0, waits_ns - others_ns))
    waiting = inputs.waiting(calls, spent_ns, identities)
    share = min(1.0, blocked_ns / sum(row.total_ns for row in rows))
    return Finding(
        f"{' and '.join(calls)} {'overlap' if len(calls) > 1 else 'overlaps'} with nothing on "
        f"{inputs.where(identities)}",
        f"{units.count(sum(row.count for row in rows))} operations; {units.share(share)} of the "
        "time from start to completion is spent in the calls that start them and wait for them, "
        f"{inputs.per_rank(spent_ns)}{waiting_text(waiting)}",
        "compute between the call and its Wait; if the program does, the library makes no progress "
        "meanwhile: call MPI_Test now and then, or use its progress thread",
        POSSIBLE, spent_ns * (1 - (waiting or 0)),
        max(rows, key=lambda row: row.blocked_ns).call, identities,
        change=changes.shorter(
            inputs, changes.chosen(inputs, calls, identities, which=changes.is_completed), 0.0
        ),
    )

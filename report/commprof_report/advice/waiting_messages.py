"""Blocking point-to-point calls: what they wait; if that is not known, what they take beyond the
least time of their size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base import units
from ..calls.by_size import SizeRow
from . import basis, changes
from .findings import POSSIBLE, Finding, Unknown, calls_take, is_notable_time
from .inputs import Inputs
from .late_rank_rules import waited_for


def find(inputs: Inputs) -> Iterator[Finding | Unknown]:
    calls: dict[str, list[SizeRow]] = {}
    for row in filter(basis.is_message, inputs.sizes):
        calls.setdefault(row.call, []).append(row)
    for call, rows in calls.items():
        if inputs.late_share(call):
            yield Unknown(waited_for(inputs.late_ranks))
        yield from _of_call(call, rows, inputs)


def _of_call(call: str, rows: Sequence[SizeRow], inputs: Inputs) -> Iterator[Finding | Unknown]:
    total_ns = sum(row.total_ns for row in rows)
    least_ns = sum(row.count * row.min_ns for row in rows)
    waiting, late_share = inputs.waiting([call], total_ns), inputs.late_share(call)
    if waiting is not None:
        saving_ns = total_ns * waiting * (1 - late_share)
        spent = f"{units.share(waiting)} of it is waiting for the other side"
        spent += _late_part(inputs, late_share)
    else:
        saving_ns = total_ns - least_ns
        spent = f"if each took what the fastest of its size does, {inputs.per_rank(least_ns)}"
        if is_notable_time(total_ns, inputs) and not is_notable_time(saving_ns, inputs):
            yield Unknown(
                f"all calls of {call} take about as long; they may all wait, but single calls are "
                "not known"
            )
    worst = max(rows, key=lambda row: row.total_ns - row.count * row.min_ns)
    yield Finding(
        f"{call} waits for the other side",
        f"{calls_take(sum(row.count for row in rows))} {inputs.per_rank(total_ns)}; {spent}. Most "
        f"of it at {units.size(worst.bytes)}, {units.duration(worst.p50_ns)} in the median, "
        f"{units.duration(worst.min_ns)} at least",
        "if there is other work to do meanwhile, post receives early (MPI_Irecv) and wait late; "
        "`pipeline` and `peers` show who sends to whom",
        POSSIBLE, saving_ns, call, [worst.identity], worst.bytes,
        changes.waiting_for_none(
            inputs, changes.chosen(inputs, [call], inputs.labels, which=changes.is_message)
        ),
    )


def _late_part(inputs: Inputs, share: float) -> str:
    ranks = units.rank_names(inputs.late_ranks)
    return f", {units.share(share)} of that because of {ranks}" if share else ""

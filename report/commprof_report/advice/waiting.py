"""Ranks wait for each other, and hvprof-report late names nobody: what is known of it."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from ..base.present import present
from ..base.thresholds import threshold
from ..late.judgement import Kind
from ..late.late_ranks import LateRow
from ..late.sentences import basis_text, is_mostly, verdict
from ..late.verdict import COVERED, FEWEST_BLOCKS
from .findings import POSSIBLE, SURE, Finding, Unknown
from .inputs import Inputs
from .late_rank_rules import crowded, late_unknown

MUCH = threshold("advice.waiting")


def find(inputs: Inputs) -> Iterator[Finding | Unknown]:
    row = inputs.late.run
    is_named = row.late_ranks is not None and not is_mostly(row) or (
        row.verdict is Kind.BY_CALL
        and not any(each.named.is_mostly for each in inputs.late.blame.calls)
    )
    is_much = is_much_waiting(row.wait_ns, inputs.counted_ns)
    if is_named or inputs.late.is_negotiated or not is_much:
        yield from late_unknown(inputs)
    else:
        yield crowded(_waiting(inputs), inputs)


def is_much_waiting(wait_ns: int, counted_ns: int) -> bool:
    return wait_ns >= MUCH * counted_ns > 0


def is_scaled_from_few(row: LateRow) -> bool:
    """Few late arrivals stand for most of the waiting, because most of the time was not sampled."""
    return row.blocks < FEWEST_BLOCKS and present(row.sampled_share) < COVERED


def _waiting(inputs: Inputs) -> Finding:
    row = inputs.late.run
    most = max(inputs.late.calls, key=lambda call: call.wait_ns or 0)
    share = units.share((most.wait_ns or 0) / row.wait_ns)
    return Finding(
        f"ranks wait for each other for {units.share(row.wait_ns / inputs.counted_ns)} of the time",
        f"{inputs.per_rank(row.wait_ns)}, {share} of it in {most.call} on "
        f"{inputs.where([most.identity])} (analysed: {basis_text(row)}); "
        f"{verdict(inputs.late)}",
        "`late` says what each rank waited and caused, the timeline of `html` when: look at what "
        "ranks do before the longest waits",
        POSSIBLE if is_scaled_from_few(row) else SURE, call=most.call, identities=[most.identity],
    )

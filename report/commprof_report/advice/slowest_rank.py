"""The ranks that hvprof-report steps names, unless hvprof-report late names the same."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from ..base.members import Members
from ..late.reasons import remedy
from ..steps.steps_summary import slowest_text
from . import changes
from .findings import POSSIBLE, Finding, Unknown
from .inputs import Inputs
from .late_rank_rules import crowded, unknown, waited_for


def find(inputs: Inputs) -> Iterator[Finding | Unknown]:
    steps = inputs.steps
    if steps.slowest_ranks is not None and steps.slowest_ranks == inputs.late.run.late_ranks:
        yield Unknown(waited_for(steps.slowest_ranks))
    elif steps.slowest_ranks is not None:
        yield crowded(
            _slowest(steps.slowest_ranks, inputs), inputs, steps.slowest_reason
        )
    elif not steps.delimited_by and not inputs.is_alone:
        yield Unknown(f"steps found none: {steps.why}")
    elif steps.slowest_why.startswith("unknown: ") and not inputs.is_alone:
        yield unknown(steps.slowest_why, inputs.late.is_negotiated)


def _slowest(slowest: str, inputs: Inputs) -> Finding:
    steps = inputs.steps
    named = f"rank {slowest} is" if units.is_one(slowest) else f"ranks {slowest} are"
    return Finding(
        f"{named} the slowest in steps", slowest_text(steps),
        remedy(steps.slowest_reason, slowest) if steps.slowest_reason
        else "balance the work, or look at the host; `steps` shows what each step does",
        POSSIBLE, (steps.slowest_lead_ns or 0) * steps.slowest_steps * inputs.ranks,
        change=changes.without(inputs, Members(slowest).below(inputs.answers.summary.world_size)),
    )

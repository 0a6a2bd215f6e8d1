"""The ranks that hvprof-report steps names, unless hvprof-report late names the same."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from ..late.reasons import remedy
from ..steps.steps_summary import slowest_text
from . import changes
from .findings import POSSIBLE, Finding, Unknown
from .inputs import Inputs
from .late_rank_rules import crowded, waited_for


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
    elif isinstance(steps.slowest_why, Unknown) and not inputs.is_alone:
        yield steps.slowest_why


def _slowest(slowest: units.Ranks, inputs: Inputs) -> Finding:
    steps, are = inputs.steps, units.agreeing("are", len(slowest))
    return Finding(
        f"{units.rank_names(slowest, None)} {are} the slowest in steps", slowest_text(steps),
        remedy(steps.slowest_reason, slowest) if steps.slowest_reason
        else "balance the work, or look at the host; `steps` shows what each step does",
        POSSIBLE, (steps.slowest_lead_ns or 0) * steps.slowest_steps * inputs.ranks,
        change=changes.without(inputs, slowest),
    )

"""A cycle of a framework's negotiation that is long beside a step."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from ..base.thresholds import threshold
from . import shared_core
from .findings import POSSIBLE, Finding, Unknown
from .inputs import Inputs

LONG = threshold("advice.cycle")  # gradients then wait for half of it, on average


def find(inputs: Inputs) -> Iterator[Finding | Unknown]:
    found, step_ns = inputs.negotiation, inputs.steps.p50_ns
    if found is None or found.cycle_ns is None:
        return
    if step_ns is None:
        yield Unknown(f"steps found none: {inputs.steps.why}")
    elif is_long(found.cycle_ns, step_ns):
        yield _long_cycle(found.cycle_ns, step_ns, found.call, inputs)


def is_long(cycle_ns: float, step_ns: float) -> bool:
    return cycle_ns >= LONG * step_ns


def _long_cycle(cycle_ns: float, step_ns: float, call: str, inputs: Inputs) -> Finding | Unknown:
    if shared_core.bound(inputs) or inputs.answers.summary.crowding:
        return Unknown(
            "threads share cores, where fewer rounds may save as much time as earlier ones"
        )
    cycle, half = units.duration(cycle_ns), units.duration(cycle_ns / 2)
    value = inputs.setting("HOROVOD_CYCLE_TIME")
    return Finding(
        f"a cycle of {cycle} is long beside steps of {units.duration(step_ns)}",
        f"A round of negotiation begins every {cycle}"
        f"{value and f' (HOROVOD_CYCLE_TIME is {value})'}. The last gradients of a step wait for "
        f"the next one, {half} on average, {units.share(cycle_ns / 2 / step_ns)} of the step",
        "lower HOROVOD_CYCLE_TIME step by step (its default is 1, in ms), and compare the step "
        "times: a shorter cycle sends sooner, but fuses less and negotiates more often",
        POSSIBLE, call=call,
    )

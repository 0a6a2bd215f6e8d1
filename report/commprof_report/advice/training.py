"""Rules about a framework's thread that communicates beside the main one: its cycle, and the cores
that both have."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from ..calls.negotiation import FEWEST_IDLE
from ..run.crowding import CoreUseRow, core_uses, cores_of
from .findings import POSSIBLE, Finding, Unknown
from .inputs import Inputs

LONG_CYCLE = 0.25  # of a step: gradients then wait for an eighth of the step, on average


def cycle(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """A cycle that is long beside a step."""
    found, step_ns = inputs.negotiation, inputs.steps.p50_ns
    if found is None or (found.cycle_ns is None and found.idle_share * found.rounds < FEWEST_IDLE):
        return
    if found.cycle_ns is None:
        yield Unknown("rounds of negotiation that send nothing do not begin at regular times")
    elif step_ns is None:
        yield Unknown(f"steps found none: {inputs.steps.why}")
    elif found.cycle_ns >= LONG_CYCLE * step_ns and shares_a_core(inputs):
        yield Unknown(
            "threads share cores, where fewer rounds may save as much time as earlier ones"
        )
    elif found.cycle_ns >= LONG_CYCLE * step_ns:
        yield _long_cycle(inputs)


def _long_cycle(inputs: Inputs) -> Finding:
    found, step_ns = inputs.negotiation, inputs.steps.p50_ns
    return Finding(
        f"a cycle of {units.duration(found.cycle_ns)} is long beside steps of "
        f"{units.duration(step_ns)}",
        f"A round of negotiation begins every {units.duration(found.cycle_ns)}{_setting(inputs)}. "
        "The last gradients of a"
        f" step wait for the next one, {units.duration(found.cycle_ns / 2)} on average,"
        f" {units.share(found.cycle_ns / 2 / step_ns)} of the step",
        "lower HOROVOD_CYCLE_TIME step by step (its default is 1, in ms), and compare the step "
        "times: a shorter cycle sends"
        " sooner, but fuses less and negotiates more often",
        POSSIBLE,
        call=found.call,
    )


def _setting(inputs: Inputs) -> str:
    value = inputs.setting("HOROVOD_CYCLE_TIME")
    return f" (HOROVOD_CYCLE_TIME is {value})" if value else ""


def shared_core(inputs: Inputs) -> Iterator[Finding]:
    """Ranks bound to one core, where the thread that communicates then stops the one that
    computes."""
    bound, known = _bound(inputs), _known(inputs)
    if bound and inputs.is_beside_main_mostly:
        switches = [row.involuntary_switches for row in bound]
        often = (
            "" if None in switches
            else f", with {units.counted(sum(switches), 'involuntary switch')} over all of them"
        )
        yield Finding(
            "the thread that communicates and the one that computes share a core",
            f"{units.count(len(bound))} of {units.counted(len(known), 'rank')} may run on one core "
            f"only{often}."
            f" {units.share(inputs.late.run.background_share)} of the time inside MPI is on "
            "threads beside the main one, so"
            " communication stops the computation that it should overlap with",
            "bind ranks to two cores or more each (Open MPI: mpirun --bind-to none, or --map-by "
            "slot:PE=2; Slurm: --cpus-per-task)",
            POSSIBLE,
        )


def shares_a_core(inputs: Inputs) -> bool:
    return bool(_bound(inputs) or inputs.answers.summary.crowding)


def _known(inputs: Inputs) -> list[CoreUseRow]:
    return [row for row in core_uses(inputs.run.connection) if cores_of(row.affinity)]


def _bound(inputs: Inputs) -> list[CoreUseRow]:
    return [row for row in _known(inputs) if bin(cores_of(row.affinity)).count("1") == 1]

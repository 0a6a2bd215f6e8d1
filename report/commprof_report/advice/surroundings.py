"""Rules about what surrounds a job: its cores, its framework's cycle, its GPUs, and what the
profile lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base import units
from ..base.present import Unknown
from ..base.thresholds import threshold
from ..gpu.gpu_activity import TO_AND_FROM, activity_rows
from ..late.sentences import unfinished_text
from ..run.crowding import core_uses, cores_of, scheduling_text
from ..run.unseen import merged, missing, reason_text
from .findings import POSSIBLE, SURE, Finding
from .inputs import Inputs

LONG = threshold("advice.cycle")  # gradients then wait for half of it, on average
ALIKE = threshold("advice.copies-alike")
STAGED = threshold("advice.staged")


def cores(inputs: Inputs) -> Iterator[Finding]:
    """Before it is so, no other time can be trusted."""
    if inputs.late.crowding:
        yield Finding(
            f"give each rank a core: ranks {scheduling_text(inputs.late.crowding)}",
            f"{inputs.answers.summary.crowding}. Until each has one, the times of calls may be the "
            "scheduler's: nothing is said of what could be saved in them",
            "start fewer ranks, bind them otherwise, or ask for a larger quota or a machine of "
            "their own; then look again",
            SURE,
        )


def cycle(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """A cycle of a framework's negotiation that is long beside a step."""
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
    if _bound(inputs) or inputs.late.crowding:
        return Unknown(
            "threads share cores, where fewer rounds may save as much time as earlier ones"
        )
    period, half = units.duration(cycle_ns), units.duration(cycle_ns / 2)
    value = inputs.setting("HOROVOD_CYCLE_TIME")
    return Finding(
        f"a cycle of {period} is long beside steps of {units.duration(step_ns)}",
        f"A round of negotiation begins every {period}"
        f"{value and f' (HOROVOD_CYCLE_TIME is {value})'}. The last gradients of a step wait for "
        f"the next one, {half} on average, {units.share(cycle_ns / 2 / step_ns)} of the step",
        "lower HOROVOD_CYCLE_TIME step by step (its default is 1, in ms), and compare the step "
        "times: a shorter cycle sends sooner, but fuses less and negotiates more often",
        POSSIBLE, call=call,
    )


def with_cores(inputs: Inputs) -> list:
    """The ranks whose cores are known."""
    return [row for row in core_uses(inputs.run.connection) if cores_of(row.affinity)]


def _bound(inputs: Inputs) -> list:
    """The ranks that may run on one core only."""
    return [row for row in with_cores(inputs) if bin(cores_of(row.affinity)).count("1") == 1]


def staging(inputs: Inputs) -> Iterator[Finding]:
    """MPI has host buffers only, and GPUs copy about as much to the host and back."""
    summary = inputs.answers.summary
    copied = activity_rows(inputs.run.connection, TO_AND_FROM)
    volumes = [row.volume_bytes for row in copied]
    if summary.device_volume_share or not is_staged(volumes, summary.volume_bytes):
        return
    yield Finding(
        "hand GPU buffers to MPI",
        f"MPI calls have host buffers only ({units.volume(summary.volume_bytes)}), and GPUs copied "
        f"{_copies_text(copied)} while they were traced: it looks staged, though what was copied "
        "for MPI is not known",
        "if the MPI library is CUDA-aware, pass it device pointers; or let NCCL move what lies on "
        "GPUs",
        POSSIBLE,
    )


def is_staged(copied_bytes: Sequence[int], mpi_bytes: int) -> bool:
    """copied_bytes: to the host and to the device. Copies that come to little (a batch of data, a
    loss) say nothing."""
    return (
        len(copied_bytes) == 2 and min(copied_bytes) >= ALIKE * max(copied_bytes)
        and max(copied_bytes) >= STAGED * mpi_bytes > 0
    )


def _copies_text(copied: Sequence) -> str:
    """1.20 GB to host (0.31 s) and 1.20 GB to device (0.29 s)"""
    return " and ".join(
        f"{units.volume(row.volume_bytes)} {row.copy} ({units.duration(row.total_ns)})"
        for row in reversed(copied)
    )


def gaps(inputs: Inputs) -> Iterator[Finding]:
    """Questions that the profile cannot answer, or only in part."""
    if inputs.late.unfinished:
        yield Finding(
            unfinished_text(inputs.late),
            "all figures cover finished calls; what ranks wait in these is not counted",
            "`stuck` says who waits for whom", SURE,
        )
    lacking, together = missing(inputs.answers.seen), merged(inputs.answers.seen)
    if lacking or together:
        ways_out = dict.fromkeys(row.way_out for row in [*lacking, *together] if row.way_out)
        yield Finding(
            "this profile is not complete" if lacking
            else "this profile counts some things together",
            "; ".join(map(reason_text, [*lacking, *together])),
            "; ".join(ways_out) or "`seen` lists what is missing", SURE,
        )

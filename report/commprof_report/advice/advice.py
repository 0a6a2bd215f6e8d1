"""Advice: rules that look at a run's calls, each with its evidence and an estimate of the time it
could save.

A rule is a module: find() yields what it found, in sentences. RULES lists them; docs/SCHEMA.md has
the conditions and the formula of each. Two rules may save the same time: what all save together is
a row of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Callable, NamedTuple

from ..base import units
from ..base.attempt import attempt
from ..late.late_ranks import Late
from ..roles.world import World
from ..run.crowding import scheduling_text
from ..run.run import Run
from ..steps.steps_summary import StepsRow
from ..summary.run_summary import RunSummary
from . import (
    barriers,
    basis,
    changes,
    curves,
    cycle,
    gaps,
    imbalance,
    overlap,
    polling,
    progress,
    reduce_and_bcast,
    shared_core,
    slow_link,
    slowest_rank,
    small_messages,
    staging,
    tiny_messages,
    waiting,
    waiting_messages,
)
from .basis import Basis
from .curves import Curve, Knee
from .findings import POSSIBLE, Finding, Unknown, is_notable, on, size_range
from .inputs import Inputs, inputs_of


class Advice(NamedTuple):
    """A piece of advice; or, with found = 0, a rule that found nothing: how much it analysed, or
    why it could not."""

    rule: str
    found: int
    title: str
    evidence: str
    suggestion: str
    certainty: str
    saving_ns: int | None
    saving_share: float | None
    call: str | None
    communicator: str | None
    role: str | None
    bytes: int | None
    analysed: str
    coverage: float | None
    needs: str


class Rule(NamedTuple):
    """needs: what lets the rule look. basis: how much of that the run has."""

    name: str
    looks_for: str
    needs: str
    basis: Callable[[Inputs], Basis]
    find: Callable[[Inputs], Iterator["Finding | Unknown"]]
    is_by_medians: bool = False  # of the times of calls


ALLREDUCES = "blocking Allreduces, or NCCL's with times on the device"
SAMPLED = "samples of all ranks (COMMPROF_SAMPLES)"
STEPS = "steps that were sampled whole: marked (commprof_step(3)) or found"
BLOCKING = "blocking calls of MPI"
TRACED = "GPUs that are traced (COMMPROF_GPU)"

# fmt: off
RULES = (
    Rule("small_messages", "many Allreduces too small to be fast, that could be fused",
         ALLREDUCES, basis.of_knees, small_messages.find, True),
    Rule("tiny_messages", "many Allreduces of a few bytes",
         ALLREDUCES, basis.of_allreduces, tiny_messages.find, True),
    Rule("imbalance", "a rank that the others wait for",
         SAMPLED, basis.of_late, imbalance.find),
    Rule("waiting", "much waiting for ranks that are not named",
         SAMPLED, basis.of_late, waiting.find),
    Rule("progress", "operations that make no progress while ranks compute",
         SAMPLED, basis.of_late, progress.find),
    Rule("slow_link", "a pair of ranks whose messages are slow",
         SAMPLED, basis.of_messages, slow_link.find),
    Rule("slowest_rank", "a rank that is the slowest in steps",
         STEPS, basis.of_steps, slowest_rank.find),
    Rule("polling", "polls that find nothing",
         "polls of the main thread", basis.of_polls, polling.find),
    Rule("overlap", "nonblocking operations that overlap with nothing",
         "requests followed to completion", basis.of_nonblocking, overlap.find),
    Rule("cycle", "a cycle of negotiation that does not fit the steps",
         STEPS, basis.of_rounds, cycle.find),
    Rule("shared_core", "ranks bound to one core, where a thread beside the main one communicates",
         "the cores of each rank", basis.of_cores, shared_core.find),
    Rule("reduce_and_bcast", "Reduce and Bcast where one Allreduce would do",
         BLOCKING, basis.of_operations("MPI_Reduce", "MPI_Bcast"), reduce_and_bcast.find),
    Rule("waiting_messages", "blocking point-to-point calls that wait",
         SAMPLED, basis.of_messages, waiting_messages.find),
    Rule("barriers", "barriers that cost time",
         BLOCKING, basis.of_operations(*barriers.BARRIERS), barriers.find),
    Rule("gaps", "dropped calls, and requests that were not followed to completion",
         "", basis.of_all_calls, gaps.find),
)
GPU_RULES = (
    Rule("staging", "GPU data that goes through the host to MPI",
         TRACED, basis.of_copies, staging.find),
)
# fmt: on


def advice(
    run: Run, answers: RunSummary, late: Late, steps: StepsRow, world: World
) -> list[Advice]:
    """All advice: the largest savings first; then findings of another kind; then the rules that
    found nothing."""
    inputs = inputs_of(run, answers, late, steps, world)
    rules = (*RULES, *(GPU_RULES if inputs.uses_gpu else ()))
    said: list[Finding] = []
    rows = [
        row for rule in rules
        for row in attempt(f"Advice, {rule.looks_for}", judge, rule, inputs, said) or []
    ]
    rows += _together(said, inputs)
    rows += [_knee(curve, knee, inputs) for curve, knee in knees(inputs)]
    return sorted(rows, key=lambda row: (-row.found, row.saving_ns is None, -(row.saving_ns or 0)))


def _together(said: Sequence[Finding], inputs: Inputs) -> Iterator[Advice]:
    """The saving of several pieces together, if the calls that all of them change were played."""
    saving = [each for each in said if each.saving_ns]
    played = [each.change for each in saving if each.change is not None]
    if len(played) < max(2, len(saving)):
        return
    saving_ns = round(changes.saving_ns(inputs, played))
    share = saving_ns / (inputs.counted_ns or 1)
    text = (
        f"{units.share(share)} of the time, {units.duration(saving_ns)} over all ranks, could be "
        "saved (time that two pieces save counts once)"
    )
    yield Advice(
        "together", 0, text, "", "", "", saving_ns, share, None, None, None, None, "", None, ""
    )


def knees(inputs: Inputs) -> list[tuple[Curve, Knee]]:
    """Curves that have one, by their time. If sizes with few observations are faster, the best rate
    was not found."""
    found = [(curve, knee) for curve in inputs.curves if (knee := curve.knee)]
    known = [each for each in found if not each[1].is_exceeded]
    return sorted(known, key=lambda each: -sum(point.total_ns for point in each[0].points))


def _knee(curve: Curve, knee: Knee, inputs: Inputs) -> Advice:
    label, role = inputs.named(curve.identities)
    where = (curve.call, label, role, knee.bytes)
    text = knee_text(curve, knee, inputs)
    return Advice("knee", 0, text, "", "", "", None, None, *where, "", None, "")


def knee_text(curve: Curve, knee: Knee, inputs: Inputs) -> str:
    """MPI_Allreduce on MPI_COMM_WORLD, 1 KiB to 4 MiB: the best algbw is 1.05 GB/s, and at least
    two thirds of that at 1 MiB to 4 MiB"""
    rate = units.bandwidth(1e9 / knee.best_ns_per_byte)
    timed = "without waiting" if curve.is_split else "including waiting"
    return (
        f"{curve.call} on {on(inputs, curve)}, {size_range(knee.low_bytes, knee.high_bytes)}: the "
        f"best algbw is {rate}, and at least two thirds of that at "
        f"{size_range(knee.bytes, knee.upto_bytes)} (by medians {timed}, of sizes with "
        f"{curves.FEWEST} observations or more; algbw in `sizes` is by means)"
    )


HIDDEN = (
    "A background thread makes these calls: time that is hidden behind compute cannot be saved"
)


def judge(rule: Rule, inputs: Inputs, said: list[Finding]) -> list[Advice]:
    """Appends the findings to `said`."""
    found = [_beside_main(_played(each, inputs), inputs) for each in rule.find(inputs)]
    if rule.is_by_medians and inputs.late.crowding:
        found = [_scheduled(each, inputs) for each in found]
    findings = [each for each in found if isinstance(each, Finding) and is_notable(each, inputs)]
    said += findings
    seen = rule.basis(inputs)
    about = (seen.text, seen.coverage, rule.needs)
    if findings:
        return [_advice(rule, finding, inputs, about) for finding in findings]
    unknown = next((each for each in found if isinstance(each, Unknown)), Unknown(""))
    why, about = unknown.why, (seen.text, seen.coverage, unknown.needs or rule.needs)
    if seen.whole and not seen.part and not why:
        why = f"needs {rule.needs}; the run has {seen.text}"
    return [
        Advice(
            rule.name, 0, rule.looks_for, why, "", "", None, None, None, None, None, None, *about
        )
    ]


def _played(found: Finding | Unknown, inputs: Inputs) -> Finding | Unknown:
    """The gain of the run, if its calls can be played again, and it is not known from there yet."""
    if isinstance(found, Unknown) or found.change is None or found.is_played:
        return found
    return found._replace(saving_ns=changes.saving_ns(inputs, [found.change]))


def _beside_main(found: Finding | Unknown, inputs: Inputs) -> Finding | Unknown:
    """Qualifies a saving in calls of a background thread: compute hides some of their time."""
    if isinstance(found, Unknown) or not found.saving_ns or not found.call:
        return found
    if found.call.startswith("MPI_") and inputs.is_beside_main(found.call, found.identities):
        return found._replace(certainty=POSSIBLE, evidence=f"{found.evidence}. {HIDDEN}")
    return found


def _scheduled(found: Finding | Unknown, inputs: Inputs) -> Finding | Unknown:
    """The scheduler makes the times of calls, too, where ranks wait for cores or share them."""
    if isinstance(found, Unknown):
        return found
    why = f"Ranks {scheduling_text(inputs.late.crowding)}: these times may be the scheduler's"
    return found._replace(certainty=POSSIBLE, evidence=f"{found.evidence}. {why}")


def _advice(
    rule: Rule, finding: Finding, inputs: Inputs, about: tuple[str, float | None, str]
) -> Advice:
    saving_ns = None if finding.saving_ns is None else round(finding.saving_ns)
    share = saving_ns / inputs.counted_ns if saving_ns is not None and inputs.counted_ns else None
    label, role = inputs.named(finding.identities)
    said = (finding.title, finding.evidence, finding.suggestion, finding.certainty)
    return Advice(
        rule.name, 1, *said, saving_ns, share, finding.call, label, role, finding.bytes, *about
    )

"""Advice: rules that look at a run's calls, each with its evidence and an estimate of the time it
could save.

A rule is a function that yields what it found, in sentences (rules.py). RULES lists them, with how
much of a run each can analyse: what "looked for and not found" rests on. docs/METHODS.md has the
conditions and the formula of each. Two rules may save the same time: what all save together is a
row of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Callable, NamedTuple

from ..base import Field, Row, Unknown, attempt, gathered, row_type, units
from ..late import (
    Late,
    basis_text,
    is_crowded,
    lacks_cores,
)
from ..roles.world import World
from ..run import Run, scheduling_text
from ..steps.steps_summary import StepsRow
from ..summary.run_summary import RunSummary
from . import rules
from .inputs import POSSIBLE, Curve, Finding, Inputs, Point, inputs_of, is_notable
from .rules import BARRIER, fusible, is_message, with_cores

ADVICE = (
    Field(
        "rule",
        "[rules](METHODS.md#advice); `together`: what all pieces save together",
    ),
    Field("found", "1: advice; 0: none"),
    Field("title", "the advice; if nothing was found, what the rule checks"),
    Field(
        "evidence",
        "its numbers; if nothing was found, why the rule could not look",
    ),
    Field("suggestion", "what you can do"),
    Field("certainty", "`sure`, `likely`, `possible`"),
    Field("saving_ns", "estimate of how much shorter the run would be"),
    Field("saving_share", "saving_ns / the mean counted time of the ranks"),
    Field(
        "call",
        "what it concerns, with the communicator's [role](METHODS.md#roles) and the size that "
        "contributes most; null: none or several",
    ),
    *(Field(key, "") for key in ("communicator", "role", "bytes")),
    Field(
        "analysed",
        "how much the rule analysed, in words, and as a share of what its title names (null: the "
        "run has none; 0: none can be judged)",
    ),
    Field("coverage", ""),
    Field(
        "needs",
        "what the rule needs; if it could not look, what it lacks",
    ),
)
# a piece of advice; or, with found = 0, a rule that found nothing: how much it analysed, or why it
# could not
Advice = row_type("Advice", ADVICE)
NO_ADVICE = Advice("", 0, "", "", "", "", *[None] * 6, "", None, "")


class Basis(NamedTuple):
    """The part that a rule can analyse of what its title speaks of. whole 0: the run has none."""

    text: str
    part: float
    whole: float

    @property
    def coverage(self) -> float | None:
        return min(1.0, self.part / self.whole) if self.whole else None


def of_allreduces(inputs: Inputs, curves: Iterable[Curve]) -> Basis:
    points = (point for curve in curves for point in curve.points)
    return _of_calls(inputs, lambda row: units.operation(row.call) == "allreduce", points)


def of_sizes(
    inputs: Inputs, is_named: Callable[[Row], bool], is_judged: Callable[[Row], bool]
) -> Basis:
    return _of_calls(inputs, is_named, filter(is_judged, inputs.sizes))


def of_late(inputs: Inputs) -> Basis:
    row = inputs.late.run
    split_ns = row.wait_ns + row.transfer_ns
    whole_ns = 0 if inputs.late.processes == 1 else row.total_ns
    return Basis(basis_text(row) if split_ns else "none", split_ns, whole_ns)


def of_nonblocking(inputs: Inputs) -> Basis:
    mpi = (row for row in inputs.sizes if row.library == "mpi" and row.form != "blocking")
    started = sum(row.count for row in mpi)
    completed = sum(row.count for row in inputs.completed)
    return _of(completed, max(started, completed), "operation")


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
    names = units.shortened(", ".join(sorted({row.call for row in named})), 60)
    return Basis(f"{units.counted(whole, 'call')} of {names}", 0, whole)


def all_of(number: float, noun: str) -> Basis:
    return _of(number, number, noun)


def _of(part: float, whole: float, noun: str, more: str = "") -> Basis:
    """15 of 40 calls"""
    some = f"{units.count(part)} of " if part < whole else ""
    return Basis(f"{some}{units.counted(whole, noun)}{more}", part, whole)


class Rule(NamedTuple):
    """needs: what lets the rule look. basis: how much of that the run has. doubted: where
    the times that it judges may be the scheduler's: those of calls on any crowded host."""

    name: str
    looks_for: str
    needs: str
    basis: Callable[[Inputs], Basis]
    find: Callable[[Inputs], Iterator["Finding | Unknown"]]
    doubted: Callable[[Late], bool] = lambda late: False


CORES, OVERLAP = "cores", "overlap"
ALLREDUCES = "blocking Allreduces, or NCCL's with times on the device"
SAMPLED = "samples of all ranks (COMMPROF_SAMPLES)"

# fmt: off
RULES = (
    Rule("small_messages", "many Allreduces too small to be fast, that could be fused",
         ALLREDUCES,
         lambda inputs: of_allreduces(inputs, (each for each in fusible(inputs) if each.knee)),
         rules.small_messages, is_crowded),
    Rule("tiny_messages", "many Allreduces of a few bytes",
         ALLREDUCES, lambda inputs: of_allreduces(inputs, inputs.curves), rules.tiny_messages,
         is_crowded),
    Rule("imbalance", "a rank that the others wait for",
         SAMPLED, of_late, rules.imbalance, lacks_cores),
    Rule("waiting", "much waiting for ranks that are not named",
         SAMPLED, of_late, rules.waiting, lacks_cores),
    Rule(CORES, "ranks that lack a core of their own",
         "the cores of each rank", lambda inputs: all_of(len(with_cores(inputs)), "rank"),
         rules.cores),
    Rule("progress", "operations that make no progress while ranks compute",
         SAMPLED, of_late, rules.progress, lacks_cores),
    Rule("slow_link", "a pair of ranks whose messages are slow",
         SAMPLED, lambda inputs: of_sizes(inputs, is_message, is_message), rules.slow_link,
         lacks_cores),
    Rule("slow_size", "a size of a collective that takes far longer than its neighbours",
         SAMPLED, of_late, rules.slow_size, lacks_cores),
    Rule(OVERLAP, "nonblocking operations that overlap with nothing",
         "requests followed to completion", of_nonblocking, rules.overlap, is_crowded),
    Rule("cycle", "a cycle of negotiation that does not fit the steps",
         "steps that were sampled whole: marked (commprof_step(3)) or found",
         lambda inputs: all_of((inputs.negotiation and inputs.negotiation.rounds) or 0, "round"),
         rules.cycle),
    Rule("barriers", "barriers that cost time",
         "blocking calls of MPI", lambda inputs: of_sizes(
             inputs, lambda row: units.operation(row.call) == "barrier",
             lambda row: row.call == BARRIER and not row.is_folded,
         ), rules.barriers, is_crowded),
)
# fmt: on


def advice(run: Run, answers: RunSummary, late: Late, steps: StepsRow, world: World) -> list[Row]:
    """All advice: cores, before which no time is sure, unless a rank is late whatever they cost;
    the largest savings; findings of another kind; then the rules that found nothing."""
    inputs = inputs_of(run, answers, late, steps, world)
    rows = [
        row
        for rule in RULES
        for row in attempt(f"Advice, {rule.looks_for}", judge, rule, inputs) or []
    ]
    rows += attempt("Advice, all together", _together, rows, inputs) or []
    return sorted(
        rows,
        key=lambda row: (
            -row.found,
            row.rule != CORES or bool(late.run.late_ranks),
            row.saving_ns is None,
            -(row.saving_ns or 0),
        ),
    )


def _together(rows: Sequence[Row], inputs: Inputs) -> list[Row]:
    """Several pieces save no more than their sum, nor than the time inside MPI; all that overlap
    hides is hidden behind the same time outside."""
    saving_ns = gathered((row.rule == OVERLAP, row.saving_ns) for row in rows if row.saving_ns)
    hidden_ns, others_ns = saving_ns.get(True, []), saving_ns.get(False, [])
    if len(hidden_ns) + len(others_ns) < 2:
        return []
    all_ns = min(inputs.ranks * sum(hidden_ns), inputs.outside_ns) + inputs.ranks * sum(others_ns)
    row = _saving(min(all_ns, inputs.exposed_ns), inputs)
    text = (
        f"all of it at most {units.share(row['saving_share'])} of the time, "
        f"{units.duration(row['saving_ns'])} of the run"
    )
    return [NO_ADVICE._replace(rule="together", title=text, **row)]


def _saving(ns: float | None, inputs: Inputs) -> dict[str, float | None]:
    """A part of the run, over all ranks."""
    if ns is None or not inputs.counted_ns:
        return dict(saving_ns=None, saving_share=None)
    return dict(saving_ns=round(ns / inputs.ranks), saving_share=ns / inputs.counted_ns)


def judge(rule: Rule, inputs: Inputs) -> list[Row]:
    found = [_beside_main(each, inputs) for each in rule.find(inputs)]
    findings = [each for each in found if isinstance(each, Finding) and is_notable(each, inputs)]
    seen, why, needs = rule.basis(inputs), "", ""
    if rule.doubted(inputs.late) and seen.part:
        findings, needs, why = (
            [],
            "a core for each rank",
            f"ranks {scheduling_text(inputs.late.crowding)}: these times may be the scheduler's",
        )
    if findings:
        about = (seen.text, seen.coverage, rule.needs)
        return [_advice(rule, finding, inputs, about) for finding in findings]
    if not why:
        why, needs = next((each for each in found if isinstance(each, Unknown)), ("", ""))
    if seen.whole and not seen.part and not why:
        why = f"needs {rule.needs}; the run has {seen.text}"
    return [
        NO_ADVICE._replace(
            rule=rule.name,
            title=rule.looks_for,
            evidence=why,
            analysed=seen.text,
            coverage=seen.coverage,
            needs=needs or rule.needs,
        )
    ]


def _beside_main(found: Finding | Unknown, inputs: Inputs) -> Finding | Unknown:
    """Qualifies a saving in calls of a background thread: compute hides some of their time."""
    if isinstance(found, Unknown) or not found.saving_ns or not found.call:
        return found
    if found.call.startswith("MPI_") and inputs.is_beside_main(found.call, found.identities):
        evidence = (
            f"{found.evidence}. A background thread makes these calls: time that is hidden behind "
            "compute cannot be saved"
        )
        return found._replace(certainty=POSSIBLE, evidence=evidence)
    return found


def _advice(
    rule: Rule, finding: Finding, inputs: Inputs, about: tuple[str, float | None, str]
) -> Row:
    label, role = inputs.named(finding.identities)
    said = (finding.title, finding.evidence, finding.suggestion, finding.certainty)
    saving = _saving(finding.saving_ns, inputs).values()
    return Advice(rule.name, 1, *said, *saving, finding.call, label, role, finding.bytes, *about)

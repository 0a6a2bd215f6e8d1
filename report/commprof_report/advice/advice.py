"""Advice: rules that look at a run's calls, each with its evidence and an estimate of the time it could save.

A rule is a function that yields what it found; docs/SCHEMA.md has the conditions and the formula of each. The estimates of two rules may
count the same time, so they do not add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Callable, NamedTuple

from ..base import units
from ..calls.calls import poll_rows
from ..calls.sizes import SizeRow, reduce_bcast_rows, size_rows
from ..gpu.copied import CopiedRow, copied_rows
from ..late.late_ranks import Late
from ..late.sentences import few_of_named, is_unknown, part_text, unfinished_text, unknown_cause_text, verdict
from ..run.run import Run
from ..run.seen import merged, missing, reason_text
from ..steps.steps_summary import StepsRow, slowest_text
from ..summary.run_summary import RunSummary
from . import basis, curves
from .basis import PADDED, Basis
from .curves import Curve, Knee, Point
from .inputs import HOROVOD, PYTORCH, Inputs, inputs_of

NOTABLE = 0.005  # of the counted time of all ranks; what could save less is not said
MANY = 20  # calls per rank
TINY_BYTES = 64  # an Allreduce up to this is a value or a framework's negotiation, not a tensor
JUMP = 1.5  # times as much longer as the message is larger
LITTLE_OVERLAP = 0.1
BLOCKING_ALLREDUCES = "blocking Allreduces, or NCCL's with times on the device"
NEIGHBOURS = f"two sizes up to a factor of {PADDED} apart, with {curves.FEWEST} blocking calls each"
SAMPLED = "samples of all ranks (COMMPROF_SAMPLES)"
FEW_MORE = 0.1  # Bcasts than Reduces, or the reverse: what is handed out at the start or at the end
MOSTLY = 0.5
MUCH_WAITING = 0.1  # of the counted time
STAGED = 0.1  # of the bytes in MPI calls: copies that come to less (a batch of data, a loss) say nothing
SURE, LIKELY, POSSIBLE = "sure", "likely", "possible"


class Advice(NamedTuple):
    """A piece of advice; or, with found = 0, a rule that found nothing: how much it analysed, or why it could not."""

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


class Finding(NamedTuple):
    title: str
    evidence: str
    suggestion: str
    certainty: str
    saving_ns: float | None = None
    call: str | None = None
    identities: Sequence[str] = ()
    bytes: int | None = None


class Unknown(NamedTuple):
    """Why a rule could not look."""

    why: str


def advice(run: Run, answers: RunSummary, steps: StepsRow) -> list[Advice]:
    """What would save most first; then what is of another kind; then the rules that found nothing."""
    inputs = inputs_of(run, answers, steps)
    rules = (*RULES, *(GPU_RULES if inputs.uses_gpu else ()))
    rows = [row for rule in rules for row in judge(rule, inputs)] + [_knee(inputs, curve) for curve in knees(inputs)]
    return sorted(rows, key=lambda row: (-row.found, row.saving_ns is None, -(row.saving_ns or 0)))


def knees(inputs: Inputs) -> list[Curve]:
    """Curves that have one, by their time. If sizes with few observations are faster, the best rate was not found."""
    known = [curve for curve in inputs.curves if curve.knee and not curve.knee.is_exceeded]
    return sorted(known, key=lambda curve: -sum(point.total_ns for point in curve.points))


def _knee(inputs: Inputs, curve: Curve) -> Advice:
    label, role = inputs.named(curve.identities)
    where = (curve.call, label, role, curve.knee.bytes)
    return Advice("knee", 0, knee_text(inputs, curve), "", "", "", None, None, *where, "", None, "")


def knee_text(inputs: Inputs, curve: Curve) -> str:
    """MPI_Allreduce on MPI_COMM_WORLD, 1 KiB to 4 MiB: the best algbw is 1.05 GB/s; it is at least two thirds of that at 1 MiB to 4 MiB"""
    knee = curve.knee
    rate = units.bandwidth(1e9 / knee.best_ns_per_byte)
    timed = "without waiting" if curve.is_split else "including waiting"
    return (
        f"{curve.call} on {_on(inputs, curve)}, {_range(knee.low_bytes, knee.high_bytes)}: the best algbw is {rate}, and at least two thirds of"
        f" that at {_range(knee.bytes, knee.upto_bytes)} (by medians {timed}, of sizes with {curves.FEWEST} observations or more; algbw in"
        " `sizes` is by means)"
    )


def _on(inputs: Inputs, curve: Curve) -> str:
    where = inputs.where(curve.identities)
    return f"{where}, {curve.side}" if curve.side else where


def _range(low_bytes: int, high_bytes: int) -> str:
    low, high = units.size(low_bytes), units.size(high_bytes)
    return low if low == high else f"{low} to {high}"


class Rule(NamedTuple):
    """needs: what lets the rule look. basis: how much of that the run has."""

    name: str
    looks_for: str
    needs: str
    basis: Callable[[Inputs], Basis]
    find: Callable[[Inputs], Iterator["Finding | Unknown"]]


def judge(rule: Rule, inputs: Inputs) -> list[Advice]:
    found = [_of_background(each, inputs) for each in rule.find(inputs)]
    findings = [each for each in found if isinstance(each, Finding) and is_notable(each, inputs)]
    seen = rule.basis(inputs)
    about = (seen.text, seen.coverage, rule.needs)
    if findings:
        return [_advice(rule, finding, inputs, about) for finding in findings]
    why = next((each.why for each in found if isinstance(each, Unknown)), "")
    if seen.whole and not seen.part and not why:
        why = f"needs {rule.needs}; the run has {seen.text}"
    return [Advice(rule.name, 0, rule.looks_for, why, "", "", None, None, None, None, None, None, *about)]


def _of_background(found: Finding | Unknown, inputs: Inputs) -> Finding | Unknown:
    """Time in MPI on a thread that the program may not wait for is no saving: a framework's negotiation costs nothing by itself."""
    is_saving = isinstance(found, Finding) and is_notable(found, inputs) and found.saving_ns and (found.call or "").startswith("MPI_")
    if is_saving and inputs.is_background:
        return Unknown("a background thread makes the MPI calls, and what the program waits for of them is not known")
    return found


def is_notable(finding: Finding, inputs: Inputs) -> bool:
    return finding.saving_ns is None or is_notable_time(finding.saving_ns, inputs)


def is_notable_time(ns: float, inputs: Inputs) -> bool:
    return ns > 0 and ns >= NOTABLE * inputs.counted_ns


def _advice(rule: Rule, finding: Finding, inputs: Inputs, about: tuple[str, float | None, str]) -> Advice:
    saving_ns = None if finding.saving_ns is None else round(finding.saving_ns)
    share = saving_ns / inputs.counted_ns if saving_ns is not None and inputs.counted_ns else None
    label, role = inputs.named(finding.identities)
    said = (finding.title, finding.evidence, finding.suggestion, finding.certainty)
    return Advice(rule.name, 1, *said, saving_ns, share, finding.call, label, role, finding.bytes, *about)


def small_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Many Allreduces below the knee. They cost at least what the same bytes would take at the knee's rate."""
    for curve in basis.allreduces(inputs):
        knee = curve.knee
        if knee is None:
            yield Unknown(f"{curve.call} on {_on(inputs, curve)} has no two sizes with {curves.FEWEST} calls each to compare")
            continue
        small = [point for point in curve.points if TINY_BYTES < point.bytes < knee.bytes]
        if sum(point.count for point in small) >= MANY * curve.ranks:
            yield _fusing(curve, small, knee, inputs)


def _fusing(curve: Curve, small: Sequence[Point], knee: Knee, inputs: Inputs) -> Finding:
    count, total_ns = sum(point.count for point in small), sum(point.total_ns for point in small)
    small_bytes = sum(point.count * point.bytes for point in small)
    fused_ns = small_bytes * knee.ns_per_byte
    waiting = curves.waiting(small)
    return Finding(
        f"fuse small {curve.call} on {_on(inputs, curve)}",
        f"{units.count(round(count / curve.ranks))} calls a rank of {_sizes_text(small)} carry {units.volume(small_bytes / curve.ranks)}"
        f" and take {inputs.per_rank(total_ns)} ({inputs.per_rank(_typical_ns(small))} by their medians); at the rate that is reached"
        f" with {units.size(knee.bytes)} the same bytes take {inputs.per_rank(fused_ns)}{_waiting_text(waiting)}"
        + ("; most of it is on background threads, so it may cost the program less" if inputs.is_background else ""),
        {
            HOROVOD: "raise HOROVOD_CYCLE_TIME, so that more tensors are ready to be fused, and HOROVOD_FUSION_THRESHOLD if that is below"
            f" {units.size(knee.bytes)}",
            PYTORCH: f"raise bucket_cap_mb of DistributedDataParallel to more than {units.size(knee.bytes)}",
        }.get(
            inputs.framework,
            f"send them together, {units.size(knee.bytes)} or more at once (Horovod: HOROVOD_FUSION_THRESHOLD, HOROVOD_CYCLE_TIME;"
            " PyTorch's DistributedDataParallel: bucket_cap_mb)",
        ),
        POSSIBLE if inputs.is_background else _certainty(curve, small, total_ns),
        total_ns * (1 - (waiting or 0)) - fused_ns,
        curve.call,
        curve.identities,
        max(small, key=lambda point: point.total_ns).bytes,
    )


def _waiting_text(waiting: float | None) -> str:
    """Messages cost nothing while their senders are late."""
    if waiting is None:
        return "; how much of it is waiting for late ranks is not known"
    return f"; {units.share(waiting)} of this time is waiting for late ranks, and no part of the saving" if waiting else ""


def _certainty(curve: Curve, points: Sequence[Point], total_ns: int) -> str:
    """Where most of the time is waiting for a late rank, or that of a few very long calls, other messages may wait as long."""
    least_ns = sum(point.least_total_ns for point in points) * curve.ranks
    return LIKELY if min(least_ns, _typical_ns(points)) >= MOSTLY * total_ns else POSSIBLE


def _typical_ns(points: Sequence[Point]) -> float:
    return sum(point.count * point.p50_ns for point in points)


def _sizes_text(points: Sequence[Point]) -> str:
    return _range(points[0].bytes, points[-1].bytes)


def _background(inputs: Inputs) -> Unknown:
    return Unknown(f"{units.share(inputs.late.run.background_share)} of the time inside MPI is on background threads, which may have been idle")


def tiny_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Allreduces of a few values: the time in them that is not waiting. A background thread that has nothing else to do may make many."""
    if inputs.is_background:
        yield _background(inputs)
        return
    for curve in basis.allreduces(inputs):
        tiny = [point for point in curve.points if point.bytes <= TINY_BYTES]
        if sum(point.count for point in tiny) >= MANY * curve.ranks:
            count, total_ns = sum(point.count for point in tiny), sum(point.total_ns for point in tiny)
            waiting = curves.waiting(tiny)
            yield Finding(
                f"make fewer tiny {curve.call} on {_on(inputs, curve)}",
                f"{units.count(round(count / curve.ranks))} calls a rank of {_sizes_text(tiny)} take {inputs.per_rank(total_ns)}"
                + _waiting_text(waiting),
                "these are negotiation: raise HOROVOD_CYCLE_TIME, and leave HOROVOD_CACHE_CAPACITY on"
                if inputs.framework == HOROVOD and curve.call == "MPI_Allreduce"
                else "put several values into one message, or sum them less often"
                + (" (Horovod negotiates like this: HOROVOD_CYCLE_TIME)" if curve.call == "MPI_Allreduce" else ""),
                _certainty(curve, tiny, total_ns),
                total_ns * (1 - (waiting or 0)),
                curve.call,
                curve.identities,
                max(tiny, key=lambda point: point.total_ns).bytes,
            )


def padding(inputs: Inputs) -> Iterator[Finding]:
    """A size that is slower than a larger one: the difference of their means, for each call."""
    for curve in inputs.curves:
        for point in curve.points:
            larger = [other for other in curve.points if _is_faster(other, point)]
            if larger:
                best = min(larger, key=lambda other: other.mean_ns)
                yield Finding(
                    f"pad {curve.call} of {units.size(point.bytes)} to {units.size(best.bytes)} on {_on(inputs, curve)}",
                    f"{units.count(point.count)} calls of {units.size(point.bytes)} take {units.duration(point.p50_ns)} in the median"
                    f" ({_bounds_text(point)}), {units.count(best.count)} of {units.size(best.bytes)} {units.duration(best.p50_ns)}"
                    f" ({_bounds_text(best)})",
                    f"send the larger size, or let {_library(curve)} use for this size the algorithm that it uses for the larger one",
                    LIKELY,
                    point.count * (point.mean_ns - best.mean_ns),
                    curve.call,
                    curve.identities,
                    point.bytes,
                )


def _is_faster(other: Point, point: Point) -> bool:
    """A larger size, by no more than padding may add, that is surely faster: also without waiting."""
    if not point.bytes < other.bytes <= PADDED * point.bytes or point.low_ns is None or other.high_ns is None:
        return False
    return other.high_ns < point.low_ns and other.own_p50_ns < point.own_p50_ns and other.mean_ns < point.mean_ns


def _bounds_text(point: Point) -> str:
    return f"surely between {units.duration(point.low_ns)} and {units.duration(point.high_ns)}"


def jumps(inputs: Inputs) -> Iterator[Finding]:
    """Between two sizes close to each other the time grows much more than the size: what it grows more."""
    for curve in inputs.curves:
        for below, above in zip(curve.points, curve.points[1:]):
            larger = above.bytes / below.bytes
            if _is_jump(below, above, larger):
                yield Finding(
                    f"{curve.call} jumps between {units.size(below.bytes)} and {units.size(above.bytes)} on {_on(inputs, curve)}",
                    f"{units.duration(below.p50_ns)} becomes {units.duration(above.p50_ns)} in the median, {above.p50_ns / below.p50_ns:.1f}"
                    f" times as long for {larger:.2f} times the bytes: the library seems to change its protocol or algorithm there",
                    f"keep messages at or below {units.size(below.bytes)}, or move the limit ({_limits(curve)})",
                    LIKELY,
                    above.count * (above.mean_ns - below.mean_ns * larger),
                    curve.call,
                    curve.identities,
                    above.bytes,
                )


def _is_jump(below: Point, above: Point, larger: float) -> bool:
    if larger > PADDED or above.low_ns is None or below.high_ns is None:
        return False
    is_sure = above.low_ns > below.high_ns * larger
    return is_sure and above.p50_ns > JUMP * larger * below.p50_ns and above.own_p50_ns > larger * below.own_p50_ns


def _library(curve: Curve) -> str:
    return "NCCL" if curve.call.startswith("nccl") else "the MPI library"


def _limits(curve: Curve) -> str:
    """Where they are set."""
    if curve.call.startswith("nccl"):
        return "NCCL: NCCL_ALGO, NCCL_PROTO, or a tuner plugin"
    return "Open MPI: btl_..._eager_limit, coll_tuned_...; MPICH: MPIR_CVAR_..._EAGER_..., MPIR_CVAR_..._MSG_SIZE"


def imbalance(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Late ranks that hvprof-report late names: what all ranks would gain if these arrived with the next. If ranks share cores, a late rank
    may merely not have been scheduled."""
    crowding = inputs.answers.summary.crowding
    for found in _late_ranks(inputs):
        yield _crowded(found, crowding) if crowding and isinstance(found, Finding) else found


def _crowded(found: Finding, crowding: str) -> Finding:
    return found._replace(
        title=f"{found.title}, but ranks share cores",
        evidence=f"{found.evidence}; {crowding}",
        suggestion="give each rank a core of its own (fewer ranks, other binding, a larger quota) before looking for the cause in a rank",
        certainty=POSSIBLE,
    )


def _late_ranks(inputs: Inputs) -> Iterator[Finding | Unknown]:
    row = inputs.late.run
    if row.verdict == "marks":
        if row.late_ranks is not None:
            gain_ns = row.late_gain_ns * row.ranks
            yield Finding(_waited_for(row.late_ranks), verdict(inputs.late), _balance(inputs.late), LIKELY, gain_ns)
    elif row.late_ranks is not None:
        few = few_of_named(inputs.late)
        yield Finding(
            _waited_for(row.late_ranks),
            f"{units.share(row.late_share)} of the waiting is for {'it' if row.late_ranks.isdigit() else 'them'}"
            f"{few and f', nearly all of it in {few}'} ({units.share(row.coverage)} of the time inside MPI was analysed)",
            _balance(inputs.late),
            LIKELY,
            row.late_gain_ns * row.ranks,
        )
    elif row.verdict == "by-call":
        for cause in inputs.late.blame.calls:
            others = len(inputs.late.participants.members[cause.identity]) - len(cause.named.ranks)
            each_ns = cause.cost_ns * cause.named.share / max(1, others)
            yield Finding(
                f"{units.rank_names(cause.named.ranks)} {'is' if len(cause.named.ranks) == 1 else 'are'} waited for in {cause.call}"
                f" on {inputs.where([cause.identity])}",
                f"{units.share(cause.named.share)} of the waiting in this call; each other rank waits {units.duration(each_ns)} for"
                f" {'it' if len(cause.named.ranks) == 1 else 'them'}, on average",
                "look at what these ranks do before that call",
                LIKELY,
                cause.cost_ns * cause.named.share,
                cause.call,
                [cause.identity],
            )
    elif row.verdict == "transfer" and is_unknown(row):
        yield Unknown(unknown_cause_text(row))
    else:
        yield from _late_unknown(inputs, "unknown: ", "nobody is late", "no rank is named")


def _waited_for(ranks: str) -> str:
    return f"rank {ranks} is waited for" if ranks.isdigit() else f"ranks {ranks} are waited for"


def _balance(late: Late) -> str:
    if not few_of_named(late):
        return "balance the work, or look at the host: other jobs, throttled cores, where threads run"
    they, do = ("it", "does") if late.run.late_ranks.isdigit() else ("they", "do")
    what = "a checkpoint, an evaluation, reading data"
    return f"look at what {they} {do} before these arrivals and not otherwise: {what}"


def _late_unknown(inputs: Inputs, *beginnings: str) -> Iterator[Unknown]:
    """What hvprof-report late says, if it begins so: then nothing is denied."""
    if inputs.late.unfinished:
        yield Unknown(unfinished_text(inputs.late))
    elif (text := verdict(inputs.late)).startswith(beginnings):
        yield Unknown(text.removeprefix("unknown: "))


def waiting(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Ranks wait for each other, and hvprof-report late names nobody: what is known of it."""
    row, crowding = inputs.late.run, inputs.answers.summary.crowding
    is_named = row.late_ranks is not None or row.verdict == "by-call"
    if not is_named and not inputs.is_background and row.wait_ns >= MUCH_WAITING * inputs.counted_ns > 0:
        most = max(inputs.late.calls, key=lambda call: call.wait_ns or 0)
        found = Finding(
            f"ranks wait for each other for {units.share(row.wait_ns / inputs.counted_ns)} of the time",
            f"{inputs.per_rank(row.wait_ns)}, {units.share(most.wait_ns / row.wait_ns)} of it in {most.call} on {inputs.where([most.identity])}"
            f" ({part_text(row)} of the time inside MPI was analysed); {verdict(inputs.late)}",
            "`late` says what each rank waited and caused, the timeline of `html` when: look at what ranks do before the longest waits",
            SURE,
            call=most.call,
            identities=[most.identity],
        )
        yield _crowded(found, crowding) if crowding else found
    else:
        yield from _late_unknown(inputs, "unknown: ")


def slowest_rank(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """The ranks that hvprof-report steps names, unless hvprof-report late names the same."""
    steps, crowding = inputs.steps, inputs.answers.summary.crowding
    if steps.slowest_ranks is not None and steps.slowest_ranks == inputs.late.run.late_ranks:
        yield Unknown(_waited_for(steps.slowest_ranks))
    elif steps.slowest_ranks is not None:
        is_one = steps.slowest_ranks.isdigit()
        found = Finding(
            f"{'rank' if is_one else 'ranks'} {steps.slowest_ranks} {'is' if is_one else 'are'} the slowest in steps",
            slowest_text(steps),
            "balance the work, or look at the host; `steps` shows what each step does",
            POSSIBLE,
            steps.slowest_lead_ns * steps.slowest_steps * inputs.ranks,
        )
        yield _crowded(found, crowding) if crowding else found
    elif not steps.delimited_by and not inputs.is_alone:
        yield Unknown(f"steps found none: {steps.why}")
    elif steps.slowest_why.startswith("unknown: ") and not inputs.is_alone:
        yield Unknown(steps.slowest_why.removeprefix("unknown: "))


def polling(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Calls that looked for something and found nothing. What fewer of them would save is unknown: the program may only be waiting in them."""
    if inputs.is_background:
        yield _background(inputs)
        return
    for row in poll_rows(inputs.run.connection):
        if row.polls >= MANY * inputs.ranks and is_notable_time(row.poll_ns, inputs):
            yield Finding(
                f"{row.call} finds nothing most of the time" if row.polls > row.found else f"{row.call} often finds nothing",
                f"{units.count(row.polls)} of {units.count(row.polls + row.found)} calls found nothing and took {inputs.per_rank(row.poll_ns)}",
                "look less often where there is other work to do; where there is none, MPI_Wait or MPI_Probe takes as long. Polling makes"
                " progress too, so measure before and after",
                POSSIBLE,
                None,
                row.call,
            )


def overlap(inputs: Inputs) -> Iterator[Finding]:
    """Nonblocking operations that are waited for nearly all the time: what they are blocked without waiting for late ranks, no more than all
    completing calls last, less what these are known to wait for other operations. Messages of a communicator are mostly waited for together,
    and communicators of one family do the same: they are one."""
    waits_ns = sum(call.total_ns for call in inputs.answers.calls if call.family == "completion")
    completed = size_rows(inputs.run.connection, completion=True)
    nonblocking = {row.call for row in completed}
    alike: dict[tuple[str, object], list[SizeRow]] = {}
    for rows in _not_overlapped(completed):
        call, family, identity = rows[0].call, rows[0].family, rows[0].identity
        what = family if family == "point-to-point" else call
        alike.setdefault((what, inputs.family(identity)), []).extend(rows)
    for rows in alike.values():
        blocked_ns = sum(row.blocked_ns for row in rows)
        share = min(1.0, blocked_ns / sum(row.total_ns for row in rows))
        calls, identities = sorted({row.call for row in rows}), sorted({row.identity for row in rows})
        others = [row for row in inputs.late.calls if row.call in nonblocking and not (row.call in calls and row.identity in identities)]
        spent_ns = min(blocked_ns, max(0, waits_ns - sum((row.wait_ns or 0) + (row.transfer_ns or 0) for row in others)))
        waiting = inputs.waiting(calls, spent_ns, identities)
        yield Finding(
            f"{' and '.join(calls)} {'overlap' if len(calls) > 1 else 'overlaps'} with nothing on {inputs.where(identities)}",
            f"{units.count(sum(row.count for row in rows))} operations; {units.share(share)} of the time from start to completion is spent"
            f" in the calls that start them and wait for them, {inputs.per_rank(spent_ns)}{_waiting_text(waiting)}",
            "compute between the call and its Wait; if the program does, the library makes no progress meanwhile: call MPI_Test now and"
            " then, or use its progress thread",
            POSSIBLE,
            spent_ns * (1 - (waiting or 0)),
            max(rows, key=lambda row: row.blocked_ns).call,
            identities,
        )


def _not_overlapped(sizes: Sequence[SizeRow]) -> Iterator[list[SizeRow]]:
    """The sizes of one call on one communicator."""
    operations: dict[tuple[str, str], list[SizeRow]] = {}
    for row in sizes:
        operations.setdefault((row.call, row.identity), []).append(row)
    for rows in operations.values():
        completion_ns = sum(row.total_ns for row in rows)
        if completion_ns and sum(row.blocked_ns for row in rows) >= (1 - LITTLE_OVERLAP) * completion_ns:
            yield rows


def reduce_and_bcast(inputs: Inputs) -> Iterator[Finding]:
    """About as many Reduces as Bcasts of one size on a communicator. How long an Allreduce would take here is not known."""
    seen = {(row.identity, row.bytes) for row in reduce_bcast_rows(inputs.run.connection)}
    alike: dict[tuple, list[tuple[SizeRow, SizeRow]]] = {}
    for reduce, bcast in _reduces_and_bcasts(inputs):
        alike.setdefault((inputs.family(reduce.identity), reduce.memory_kind, reduce.bytes), []).append((reduce, bcast))
    for pairs in alike.values():
        reduces, bcasts = zip(*pairs)
        identities, size = [row.identity for row in reduces], units.size(reduces[0].bytes)
        is_seen = all((identity, reduces[0].bytes) in seen for identity in identities)
        reduce_ns, bcast_ns = sum(row.total_ns for row in reduces), sum(row.total_ns for row in bcasts)
        if is_notable_time(min(reduce_ns, bcast_ns), inputs):
            yield Finding(
                f"one MPI_Allreduce in place of MPI_Reduce and MPI_Bcast of {size} on {inputs.where(identities)}",
                f"{_pairs_text(sum(row.count for row in reduces), sum(row.count for row in bcasts))} of {size}; Reduce takes"
                f" {inputs.per_rank(reduce_ns)}, Bcast {inputs.per_rank(bcast_ns)}"
                + ("; the last of them follow each other" if is_seen else ""),
                "if the Bcast hands out what the Reduce has summed, an Allreduce does both, in many libraries in less time: measure it",
                SURE if is_seen else LIKELY,
                None,
                reduces[0].call,
                identities,
                reduces[0].bytes,
            )


def _reduces_and_bcasts(inputs: Inputs) -> Iterator[tuple[SizeRow, SizeRow]]:
    """Those of one size on a communicator, if there are about as many."""
    rows = [row for row in inputs.sizes if not row.is_folded and row.bytes]
    bcasts = {(row.identity, row.memory_kind, row.bytes): row for row in rows if row.call == "MPI_Bcast"}
    for row in rows:
        bcast = bcasts.get((row.identity, row.memory_kind, row.bytes))
        if row.call == "MPI_Reduce" and bcast is not None and _are_pairs(row.count, bcast.count):
            yield row, bcast


def _are_pairs(reduces: int, bcasts: int) -> bool:
    return min(reduces, bcasts) >= MANY and abs(reduces - bcasts) <= FEW_MORE * min(reduces, bcasts)


def _pairs_text(reduces: int, bcasts: int) -> str:
    return f"{units.count(reduces)} of each," if reduces == bcasts else f"{units.count(reduces)} Reduces and {units.count(bcasts)} Bcasts"


def waiting_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Blocking point-to-point calls: what they wait; if that is not known, what they take beyond the least time of their size."""
    calls: dict[str, list[SizeRow]] = {}
    for row in inputs.sizes:
        if basis.is_message(row):
            calls.setdefault(row.call, []).append(row)
    for call, rows in calls.items():
        total_ns, least_ns = sum(row.total_ns for row in rows), sum(row.count * row.min_ns for row in rows)
        waiting = inputs.waiting([call], total_ns)
        worst = max(rows, key=lambda row: row.total_ns - row.count * row.min_ns)
        late_share = inputs.late_share(call)
        if late_share:
            yield Unknown(_waited_for(inputs.late.run.late_ranks))
        if waiting is None and is_notable_time(total_ns, inputs) and not is_notable_time(total_ns - least_ns, inputs):
            yield Unknown(f"all calls of {call} take about as long; they may all wait, but single calls are not known")
        yield Finding(
            f"{call} waits for the other side",
            f"{_calls_take(sum(row.count for row in rows))} {inputs.per_rank(total_ns)}; "
            + (
                f"if each took what the fastest of its size does, {inputs.per_rank(least_ns)}"
                if waiting is None
                else f"{units.share(waiting)} of it is waiting for the other side{_late_part(inputs, late_share)}"
            )
            + f". Most of it at {units.size(worst.bytes)}, {units.duration(worst.p50_ns)} in the median, {units.duration(worst.min_ns)} at"
            " least",
            "if there is other work to do meanwhile, post receives early (MPI_Irecv) and wait late; `pipeline` and `peers` show who sends to"
            " whom",
            POSSIBLE,
            total_ns - least_ns if waiting is None else total_ns * waiting * (1 - late_share),
            call,
            [worst.identity],
            worst.bytes,
        )


def _late_part(inputs: Inputs, late_share: float) -> str:
    return f", {units.share(late_share)} of that because of {units.rank_names(list(inputs.late.blame.named.ranks))}" if late_share else ""


def _calls_take(number: int) -> str:
    return f"{units.counted(number, 'call')} {'takes' if number == 1 else 'take'}"


def barriers(inputs: Inputs) -> Iterator[Finding]:
    """Barriers: the time in them that is not waiting for late ranks."""
    for call in inputs.answers.calls:
        if call.call == "MPI_Barrier":
            waiting = inputs.waiting([call.call], call.total_ns)
            yield Finding(
                "MPI_Barrier costs time",
                f"{_calls_take(call.count)} {inputs.per_rank(call.total_ns)}{_waiting_text(waiting)}",
                "leave out those that nothing needs: collectives and messages order themselves; what ranks wait here for a late one they may"
                " then wait elsewhere",
                POSSIBLE,
                call.total_ns * (1 - (waiting or 0)),
                call.call,
            )


def staging(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """MPI has host buffers only, and GPUs copy about as much to the host and back: what these copies took."""
    summary = inputs.answers.summary
    copied = copied_rows(inputs.run.connection)
    if summary.device_volume_share:
        return
    volumes = [row.volume_bytes for row in copied]
    if len(copied) == 2 and min(volumes) >= MOSTLY * max(volumes) and max(volumes) >= STAGED * summary.volume_bytes > 0:
        yield Finding(
            "hand GPU buffers to MPI",
            f"MPI calls have host buffers only ({units.volume(summary.volume_bytes)}), and GPUs copied {_copies_text(copied)} while they were"
            " traced: it looks staged, though what was copied for MPI is not known",
            "if the MPI library is CUDA-aware, pass it device pointers; or let NCCL move what lies on GPUs",
            POSSIBLE,
            sum(row.total_ns for row in copied),
        )


def _copies_text(copied: Sequence[CopiedRow]) -> str:
    """1.20 GB to host (0.31 s) and 1.20 GB to device (0.29 s)"""
    said = [f"{units.volume(row.volume_bytes)} {row.copy} ({units.duration(row.total_ns)})" for row in reversed(copied)]
    return " and ".join(said)


def gaps(inputs: Inputs) -> Iterator[Finding]:
    """What the profile lacks."""
    if inputs.late.unfinished:
        evidence = "all figures are of finished calls: what ranks wait in these is no part of them"
        yield Finding(unfinished_text(inputs.late), evidence, "`stuck` says who waits for whom", SURE)
    lacking, together = missing(inputs.answers.seen), merged(inputs.answers.seen)
    if lacking or together:
        title = "this profile is not complete" if lacking else "this profile could tell more apart"
        ways_out = dict.fromkeys(row.way_out for row in [*lacking, *together] if row.way_out)
        evidence = "; ".join(map(reason_text, [*lacking, *together]))
        yield Finding(title, evidence, "; ".join(ways_out) or "`seen` lists what is missing", SURE)


RULES = (
    Rule(
        "small_messages",
        "many Allreduces too small to be fast, that could be fused",
        BLOCKING_ALLREDUCES,
        basis.of_knees,
        small_messages,
    ),
    Rule("tiny_messages", "many Allreduces of a few bytes", BLOCKING_ALLREDUCES, basis.of_allreduces, tiny_messages),
    Rule("padding", "sizes slower than a larger one", NEIGHBOURS, basis.of_neighbours, padding),
    Rule("jumps", "jumps of the time between neighbouring sizes", NEIGHBOURS, basis.of_neighbours, jumps),
    Rule("imbalance", "a rank that the others wait for", SAMPLED, basis.of_late, imbalance),
    Rule("waiting", "much waiting for ranks that are not named", SAMPLED, basis.of_late, waiting),
    Rule(
        "slowest_rank",
        "a rank that is the slowest in steps",
        "steps that were sampled whole: marked (commprof_step(3)) or found",
        basis.of_steps,
        slowest_rank,
    ),
    Rule("polling", "polls that find nothing", "polls of the main thread", basis.of_polls, polling),
    Rule("overlap", "nonblocking operations that overlap with nothing", "requests followed to completion", basis.of_nonblocking, overlap),
    Rule(
        "reduce_and_bcast",
        "Reduce and Bcast where one Allreduce would do",
        "blocking calls of MPI",
        basis.of_operations("MPI_Reduce", "MPI_Bcast"),
        reduce_and_bcast,
    ),
    Rule(
        "waiting_messages",
        "blocking point-to-point calls that wait",
        SAMPLED,
        basis.of_messages,
        waiting_messages,
    ),
    Rule(
        "barriers",
        "barriers that cost time",
        "blocking calls of MPI",
        basis.of_operations("MPI_Barrier"),
        barriers,
    ),
    Rule("gaps", "dropped calls, and requests that were not followed to completion", "", basis.of_all_calls, gaps),
)
GPU_RULES = (
    Rule("staging", "GPU data that goes through the host to MPI", "GPUs that are traced (COMMPROF_GPU)", basis.of_copies, staging),
)

"""NCCL's algorithms and protocols, by runs of the job itself: NCCL cannot switch within a run, and
kits have none of its calls. The first arm runs as NCCL decides, the others with NCCL_ALGO and
NCCL_PROTO; the profiler plugin says what ran at each size, and traces of the GPUs how long it took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..base import UsageError, gathered
from ..compare.figures import Figures, Key
from ..compare.sides import Side, in_blocks
from .evidence import AS_LAUNCHED, Candidate, Evidence, NCCL, Raced, Rule, Tried

CALLS = ("ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast", "ncclReduce")
DEVICE = "device"


def how(runs: Sequence[Figures], key: Key) -> str:
    """RING/LL128; empty: not known, or not the same in all runs."""
    found = {run.algorithm(key) for run in runs}
    names = found.pop().upper().replace(" ", "_").split(",_")[:2] if len(found) == 1 else []
    return "/".join(names) if len(names) == 2 else ""


def evidence_of(sides: Sequence[Side], launch: str) -> Evidence:
    paired = in_blocks(sides)
    if paired is None or len(paired) < 2:
        raise UsageError("tune", "nccl needs an experiment of two arms or more, in blocks")
    default, *others = paired
    first = default.runs[0]
    hosts = Counter(first.placement)
    evidence = Evidence(NCCL, first.fact("nccl.version"), "", "", launch, "plugin")
    evidence.launches = sum(len(side.runs) for side in paired)
    evidence.layout = sorted(hosts.values(), reverse=True)
    whole_ns = sum(row.total_ns for key, row in first.rows.items() if key.measure == DEVICE)
    for key, row in first.rows.items():
        if key.measure == DEVICE and key.call in CALLS and key.bytes:
            nodes = len(hosts) if key.group.size == first.world_size else 0
            share = row.total_ns / (whole_ns or 1)
            evidence.rows += [
                Raced(key.call, key.bytes, key.group.size, share, tried, pairs, nodes)
                for tried, pairs in contests(default, others, key)
            ]
    if not evidence.rows:
        raise UsageError(
            "tune",
            "nccl finds no size that has another algorithm or protocol in an arm than in the first "
            "one (commprof-run --nccl-plugin, and GPUs traced)",
        )
    return evidence


def contests(
    default: Side, others: Sequence[Side], key: Key
) -> Iterator[tuple[list[Tried], list[list[float]]]]:
    """The default against each other way, and times of a call in each block."""
    own = how(default.runs, key)
    for name, sides in gathered((how(side.runs, key), side) for side in others).items():
        if own and name and name != own:
            times = [
                [run.rows[key].value("time") if key in run.rows else None for run in side.runs]
                for side in (default, sides[0])
            ]
            pairs = [[before, after] for before, after in zip(*times) if before and after]
            yield [Tried(Candidate(AS_LAUNCHED)), Tried(Candidate(name, 1))], pairs


def is_taken(runs: Sequence[Figures], rule: Rule) -> bool:
    """Has every size of the rule's what the rule says?"""
    found = [
        how(runs, key) == span.candidate.name
        for key in runs[0].rows
        for span in rule.spans
        if (key.call, key.group.size) == (rule.call, rule.ranks)
        and span.low <= (key.bytes or 0) <= span.high
    ]
    return bool(found) and all(found)

"""Which rank is ready last for Horovod's operations, by Horovod's own timeline.

In a job that negotiates, arrival at a collective shows nobody: a background thread joins each in
time. Rank 0 of Horovod hears from each rank when it is ready for a tensor, in the round of
negotiation after it. The tensor that was negotiated for the longest time is judged, negotiation by
negotiation, as steps are at their marks (late/marks.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from ..base import units
from ..base.errors import ReportError
from ..base.thresholds import threshold
from ..late.verdict import FEWEST_BLOCKS, Cause, ranks_beyond_chance
from ..run.selection import Selection
from .horovod_timeline import Longest, Negotiation, longest
from .trace_files import trace_files, traces_open

NOTABLE_LEAD = threshold("exporters.ready-lead")
SURE_LEAD = threshold("exporters.ready-cycles")
LONGEST_CYCLE_NS = 5_000_000  # Horovod's default before 0.21; later 1 ms
KNOWN = threshold("exporters.ready-known")
WIDTH = 60  # of a tensor's name


class Ready(NamedTuple):
    """Negotiations of a tensor in which it is known who was ready last. apart_ns: from the first
    rank that is ready to the last, the median over all of them."""

    tensor: str
    negotiations: int
    apart_ns: float
    known: int
    ranks: tuple[int, ...] = ()
    last_count: int = 0
    lead_ns: float | None = None
    p: float | None = None


def ready_in(word: str, run: Selection, cycle_ns: float | None) -> Ready:
    """word: a timeline of this run, as a path or RANK=PATH. cycle_ns: of the run's negotiation."""
    files = trace_files([word])
    if len(files) > 1:
        raise ReportError(Path(word), "holds several timelines: name one of them")
    (of_rank,) = traces_open(files, run)
    path = of_rank.trace.path
    if not of_rank.trace.is_horovod:
        raise ReportError(path, "is a trace of PyTorch; late takes a timeline of Horovod")
    return ready(longest(path), cycle_ns)


def ready(found: Longest, cycle_ns: float | None) -> Ready:
    spans_us = [own.end_us - own.begin_us for own in found.negotiations]
    apart_ns = 1_000 * median(spans_us or [0])
    known = [own for own in found.negotiations if own.ready > 1]
    nobody = Ready(found.tensor, len(found.negotiations), apart_ns, len(known))
    if len(known) < KNOWN * len(found.negotiations):
        return nobody
    leads = _leads(known, cycle_ns or LONGEST_CYCLE_NS)
    all_ranks = range(max((own.ready for own in known), default=0))
    late = ranks_beyond_chance(leads, all_ranks)
    if late is None:
        return nobody
    own_ns = [
        cause.cost_ns for cause in leads if cause.cost_ns and cause.cause_rank in late.units
    ]
    return nobody._replace(
        ranks=tuple(sorted(late.units)), last_count=len(own_ns), lead_ns=median(own_ns), p=late.p
    )


def _leads(known: Sequence[Negotiation], cycle_ns: float) -> list[Cause]:
    """A lead that may be due to the rounds of negotiation, or is not notable, is none."""
    ends_us = [own.end_us for own in known]
    period_us = median([end_us - begin_us for begin_us, end_us in zip(ends_us, ends_us[1:])] or [0])
    least_us = max(NOTABLE_LEAD * period_us, SURE_LEAD * cycle_ns / 1_000)
    causes = []
    for place, own in enumerate(known):
        lead_ns = 1_000 * own.lead_us if own.lead_us > least_us else 0.0
        at_ns = 1_000 * own.end_us
        causes.append(Cause("", "", own.last_rank, lead_ns, lead_ns, at_ns, place, lead_ns))
    return causes


def ready_text(found: Ready) -> str:
    """rank 1 is ready last in 60 of 60 negotiations of conv1.weight, 48.0 ms (median) after the
    mean of the others"""
    tensor = units.shortened(units.visible(found.tensor), WIDTH)
    if found.ranks:
        who = units.rank_names(list(found.ranks)) + (" is" if len(found.ranks) == 1 else " are")
        often = f"{found.last_count:,} of {units.counted(found.known, 'negotiation')} of {tensor}"
        lead = f"{units.duration(found.lead_ns)} (median) after the mean of the others"
        return f"{who} ready last in {often}, {lead}"
    judged = f"{units.counted(found.negotiations, 'negotiation')} of {tensor or 'a tensor'}"
    if found.negotiations < FEWEST_BLOCKS:
        return f"{judged}: too few to tell a cause from chance"
    if found.known < KNOWN * found.negotiations:
        apart = f"the ranks are ready {units.duration(found.apart_ns)} (median) apart"
        cache = "only if Horovod's cache is off: HOROVOD_CACHE_CAPACITY=0"
        return f"{apart} in {judged}; the timeline says which one is last {cache}"
    return f"no rank is ready notably later than the others, beyond chance, in {judged}"

"""Horovod's timelines and PyTorch's traces."""

from __future__ import annotations

from commprof_report.exporters.horovod_ready import ready
from commprof_report.exporters.horovod_timeline import Longest, Negotiation, judged_tensor
from commprof_report.exporters.pytorch_trace import counts_from_1970
from commprof_report.exporters.trace_files import Process

TIMES = 100


def ready_last(lead_us: float, period_us: int, cycle_us: float, known: float = 1.0) -> str:
    """Rank 1 is ready so long after rank 0, in a negotiation in each period; in the others it is
    not known who was last."""
    negotiations = [
        Negotiation(
            0, period_us * place, period_us * place, *((2, 0, round(lead_us), 1)
            if place < known * TIMES else ()),
        )
        for place in range(TIMES)
    ]
    found = ready(Longest("gradient", negotiations), 1_000 * cycle_us)
    return f"rank {found.ranks[0]}" if found.ranks else "nobody"


def often(share: float) -> str:
    """Tensor 1 is negotiated for longer, but this much as often."""
    tensor = judged_tensor({0: 1_000, 1: round(1_000 * share)}, {0: 1, 1: 2})
    return "the longest" if tensor == 1 else "the other"


EXAMPLES = {
    "exporters.ready-lead": lambda share: ready_last(10_000 * share, 10_000, 1),
    "exporters.ready-cycles": lambda cycles: ready_last(1_000 * cycles, 10, 1_000),
    "exporters.ready-known": lambda share: ready_last(5_000, 10_000, 1, share),
    "exporters.often": often,
    "exporters.clock-step": lambda ns: "said" if Process(0, 0, "", 0, 0, -ns).was_set else "silent",
    "exporters.earliest": lambda ns: "placed" if counts_from_1970(ns) else "refused",
}

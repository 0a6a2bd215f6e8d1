"""How much of the GPUs' activity was traced."""

from __future__ import annotations

from commprof_report.gpu.gpu_activity import WindowRow, empty_windows
from commprof_report.gpu.overlap import incomplete_ranks

from .stored import stored


def late_records(share: float) -> str:
    """Records that came too late lasted for this share of what was summed up."""
    connection = stored(
        rank=[{"world_rank": 0, "gpu_late_records": 1}],
        fact=[{"world_rank": 0, "key": "gpu.late_ns", "value": str(round(share * 10**9))}],
        gpu_busy=[{"world_rank": 0, "device": 1, "ns": 10**9}],
    )
    return "incomplete" if incomplete_ranks(connection) else "complete"


EXAMPLES = {
    "gpu.late": late_records,
    "gpu.empty-window": lambda ns: (
        "empty" if empty_windows([WindowRow(0, 0, ns, "duty", None, 0)]) else "usual"
    ),
}

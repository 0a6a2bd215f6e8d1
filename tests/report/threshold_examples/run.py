"""Gaps of a profile, and names that a user gives."""

from __future__ import annotations

from types import SimpleNamespace

from commprof_report.base.errors import UsageError
from commprof_report.run.selection import identities_find
from commprof_report.run.unseen import seen_rows

from .stored import stored

RANK = (
    "dropped_calls interrupted_calls untracked_requests folded_communicators folded_cells"
    " gpu_dropped_records gpu_implausible_records gpu_late_records gpu_lost_intervals"
    " gpu_unmatched_operations gpu_unattributed_records"
)
WALL_NS = 10**9


def off(share: float) -> str:
    connection = stored(
        rank=[
            {
                "world_rank": 0, "world_size": 1, "wall_ns": WALL_NS,
                "counted_ns": round((1 - share) * WALL_NS), "start_unix_ns": 0,
                "reset_unix_ns": 0, "gpu_state": "none", **dict.fromkeys(RANK.split(), 0),
            }
        ],
        fact="world_rank key value",
        communicator="identity constructor remote_size is_inter",
        cell="world_rank count measure",
        selected_rank=[{"world_rank": 0}],
    )
    return ", ".join(row.reason for row in seen_rows(connection)) or "all calls"


def named_by(digits: int) -> str:
    identity = "0123456789abcdef"
    connection = stored(
        run_communicator=[{"identity": identity, "label": "data", "name": "data"}],
        communicator_of="identity label",
    )
    try:
        identities_find(SimpleNamespace(connection=connection), [identity[:digits]])
    except UsageError:
        return "unknown"
    return "found"


EXAMPLES = {"run.off": off, "run.identity-digits": named_by}

"""Gaps of a profile, and names that a user gives."""

from __future__ import annotations

from types import SimpleNamespace

from commprof_report.base import UsageError
from commprof_report.late.judgement import compared
from commprof_report.run.crowding import (
    CpuTimeRow,
    Lost,
    Use,
    is_crowded,
    is_read,
    taken_text,
    use_of,
)
from commprof_report.run.selection import identities_find
from commprof_report.run.unseen import seen_rows

from .stored import stored

RANK = (
    "dropped_calls dropped_messages dropped_completions interrupted_calls untracked_requests "
    "folded_communicators folded_cells gpu_dropped_records gpu_implausible_records "
    "gpu_late_records gpu_lost_intervals gpu_unmatched_operations gpu_unattributed_records "
    "record_begin_ns record_end_ns record_asked_ns record_is_full"
)
WALL_NS = 10**9


def off(share: float) -> str:
    times = {"wall_ns": WALL_NS, "counted_ns": round((1 - share) * WALL_NS)}
    began = dict.fromkeys(("start_unix_ns", "reset_unix_ns"), 0)
    rank = {"world_rank": 0, "world_size": 1, **times, **began, "gpu_state": "none"}
    connection = stored(
        rank=[{**rank, **dict.fromkeys(RANK.split(), 0)}],
        rank_wall=[{"world_rank": 0, **times}],
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


def use(read: float = 1.0, core_wait: float = 0.0) -> CpuTimeRow:
    """A rank that is outside MPI for a second; shares of that."""
    return CpuTimeRow(
        0, round(read * WALL_NS), 0, round(core_wait * WALL_NS), 10, 0, 0, 0, 0, 0, 0, WALL_NS, 1
    )


def known(read: float) -> str:
    return "known" if is_read(use(read)) else "unknown"


def crowded(core_wait: float) -> str:
    return "crowded" if is_crowded(use_of([use(1.0, core_wait)])) else "silent"


def taken(share: float) -> str:
    return "taken" if taken_text([Lost(1.0, 1.0, 0.0, share, None)]) else "silent"


def read_by(errors: float) -> str:
    """A rank that is blocked as long as it is outside MPI, and another that is neither. Its
    readings, all of them outside, are so many standard errors from a half."""
    own = Use(1.0, 1.0, 1.0, 0.0, errors * errors, 0.0, 0.0)
    found = compared(own, Use(0.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0))
    return found.kind if found else "silent"


EXAMPLES = {
    "run.off": off,
    "run.identity-digits": named_by,
    "run.core-read": known,
    "run.core-wait": crowded,
    "run.core-taken": taken,
    "run.core-errors": read_by,
}

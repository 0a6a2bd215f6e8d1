"""Which calls have lasted long."""

from __future__ import annotations

from types import SimpleNamespace

from commprof_report.base import threshold
from commprof_report.stuck.doing import is_settled


def inside(seconds: float) -> str:
    rank = SimpleNamespace(state="running", is_copy=0)
    row = SimpleNamespace(doing_ns=seconds * 1e9)
    return "stuck" if is_settled(rank, row, round(threshold("stuck.after") * 1e9)) else "running"


EXAMPLES = {"stuck.after": inside}

"""Hosts and changes over all jobs of a store."""

from __future__ import annotations

from collections import namedtuple
from unittest.mock import patch

from commprof_report.fleet import questions

DAY = namedtuple("DAY", "program ranks hosts call role high_bytes measure day jobs mean_ns")


def changes(days: int, change: float) -> str:
    """A call that takes longer from the middle of some days on; many jobs a day: the chance of
    few days is not in question."""
    key = ("app", 8, 2, "MPI_Allreduce", "world", 8, "call")
    shares = [1.0 + change * (2 * day >= days) for day in range(days)]
    rows = [DAY(*key, f"{day:02}", 9, share) for day, share in enumerate(shares)]
    with patch.object(questions, "LEVEL", 1.0):
        return "a change" if questions.changes_judged(rows) else "nothing"


EXAMPLES = {
    "fleet.level": lambda p: "named" if questions.is_late(p, 0.05) else "nobody",
    "fleet.behind": lambda share: "named" if questions.is_late(0.001, share) else "nobody",
    "fleet.change": lambda change: changes(20, change),
    "fleet.days": lambda days: changes(days, 0.5),
}

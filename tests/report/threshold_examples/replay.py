"""Whether a replay stands for the job."""

from __future__ import annotations

from commprof_report.replay.check import check

from .compare import key, row, run


def verdict(difference: float) -> str:
    """One run of the job and one replay, whose calls take so much longer."""
    jobs, replays = (
        [run(rows={key("Bcast"): row(total_ns)}, labels={key("Bcast").group: "all"})]
        for total_ns in (1e6, 1e6 * (1 + difference))
    )
    (found,) = check(jobs, replays).rows
    return found.verdict


EXAMPLES = {"replay.within": verdict}

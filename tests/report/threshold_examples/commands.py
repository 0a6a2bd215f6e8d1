"""Sentences of commands beside the analyses."""

from __future__ import annotations

from types import SimpleNamespace

from commprof_report.calls.by_size import hvprof_view
from commprof_report.commands import hvprof, late, stuck as top, summary


def uncounted(share: float) -> str:
    return summary.whole(SimpleNamespace(wall_ns=1_000, counted_ns=1_000 * (1 - share)))


def least(share: float) -> str:
    """Rank 0 is in collectives for so much less of the time than the other."""
    ranks = [
        top.Rates(SimpleNamespace(rank=rank), None, 1, 0.0, 0.0, 0.0, 0.0, part, None)
        for rank, part in enumerate((0.5 - share, 0.5))
    ]
    return top.least_text(ranks).partition(": ")[2].partition(",")[0]


def in_step(calls: float) -> str:
    row = (
        hvprof_view()
        .row(*[None] * len(hvprof_view().fields))
        ._replace(
            traffic="bulk", measure="call", library="MPI", calls_per_step=calls, bytes_per_step=1.0
        )
    )
    return "said" if hvprof.stepped_text([row], "bulk", "bulk") else "silent"


EXAMPLES = {
    "commands.finalize": lambda ns: "said" if late.is_long_end(ns, 0) else "silent",
    "commands.uncounted": uncounted,
    "commands.top": least,
    "commands.calls-in-step": in_step,
}

"""Counts and times are of the calls that reached the profiler. This command lists what did not, as far
as that is known: ranks and spawned processes without a profile, calls that bypass preloading,
recording switched off by the program or by settings, calls that were excluded or found no room,
records that a GPU's tracing interface lost; then what is not the job's own, and what is counted but
not apart. The line Seen of hvprof-report summary says the same in a sentence. Without a reason
there is one line, "all calls".
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from ..display import tables
from ..run.unseen import ALL, SeenRow, reason_text, seen_rows
from . import Command, common

HEADS = {
    "missing": "Not seen", "foreign": "Not the job's", "merged": "Not apart",
    "elsewhere": "Elsewhere",
}


def run(arguments: argparse.Namespace) -> None:
    rows = seen_rows(common.open_selected(arguments, with_histograms=False).connection)
    common.answer(arguments, rows, SeenRow._fields, lambda: common.print_facts(facts(rows)))


def facts(rows: Sequence[SeenRow]) -> Iterator[tuple[str, str]]:
    if not rows:
        yield "Seen", ALL
    for row in rows:
        yield HEADS[row.effect], reason_text(row)
        if row.way_out:
            yield "  way out", row.way_out


COMMANDS = {"seen": Command(
    __doc__, (*common.RUN, *common.ONLY_RANKS, *tables.ROWS), run,
    (("What was not seen, for a script", "hvprof-report seen --json RUN"),),
    ("ranks", "summary"),
)}

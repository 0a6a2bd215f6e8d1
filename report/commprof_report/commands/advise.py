"""Each piece of advice has its evidence, a suggestion, an estimate of how much shorter the run
could be, and how sure it is; the one that could save most is first. The rules look for

- ranks that lack a core of their own: that comes first, unless a rank is late by more, for then the
  times of calls may be the scheduler's, and none is advised to be fused, fewer or overlapped;
- many Allreduces that are too small to be fast and could be fused (in Horovod by its fusion
  threshold and cycle, in PyTorch's DistributedDataParallel by bucket_cap_mb), and Allreduces of a
  few bytes;
- a cycle of Horovod's negotiation that is long beside a step;
- a rank that the others wait for; much waiting, where none is named;
- nonblocking operations that overlap with nothing, and barriers.

Advice that could save less than 0.5 % of the time is left out. A change of calls saves no more than
they take without waiting, and overlap no more than the time outside MPI that could hide it; late
ranks cost what `late` says. All pieces together save no more than the time inside MPI. The same
advice on communicators of one family (all tensor-parallel groups) is given once. At the end it says
which rules found nothing and in how many calls, and which could not look, why, and what they need.
On a thread beside the main one savings are "possible" at most: what is hidden behind compute cannot
be saved.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from ..advice import advice
from ..advice.advice import Advice
from ..base import attempt, column, gathered, units
from ..display import page
from ..late.late_ranks import Late
from ..late.sentences import headline
from ..roles.world import world_of
from ..run.alignment import align
from ..run.selection import Selection
from ..run.unseen import unsampled_text
from ..steps.steps_summary import steps_or_none
from ..summary.run_summary import run_summary
from . import Command, common

WIDTH, INDENT = 110, "   "
MOST_PIECES = 10
NOT_FOUND, NOTHING = FOLDED = "Looked for and not found", "Nothing to look at"
COLUMNS = (
    column("advice", lambda row: row.title, False),
    column("could save (estimate)", lambda row: saving_text(row), False),
    column("sure", lambda row: row.certainty, False),
    column("evidence", lambda row: row.evidence, False),
    column("what to do", lambda row: row.suggestion, False),
)


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, with_samples=True)
    alignment = attempt("Clocks", align, run.connection)
    split = attempt("Waiting", Late, run, alignment)
    in_steps = attempt("Steps", steps_or_none, run, alignment, late=split)
    rows = (
        attempt(
            "Advice",
            advice.advice,
            run,
            run_summary(run, split),
            split,
            in_steps and in_steps.summary,
            attempt("Communicators", world_of, run.connection),
        )
        or []
    )
    common.answer(
        arguments,
        run,
        rows,
        Advice._fields,
        lambda: [
            units.visible(attempt("Waiting", headline, split) or ""),
            *blocks(rows, unsampled_text(run.connection), list(common.part_facts(run))),
        ],
        nothing=str,
    )


def blocks(rows: Sequence[Advice], unsampled: str, part: Sequence[tuple[str, str]]) -> list[str]:
    pieces = [row for row in rows if row.found]
    left = units.counted(len(pieces) - MOST_PIECES, "more piece")
    return [
        "\n".join(common.wrapped(verdict(rows), WIDTH)),
        *(piece_text(*each) for each in enumerate(pieces[:MOST_PIECES], 1)),
        f"... and {left}; --json has them all." if len(pieces) > MOST_PIECES else "",
        "\n".join(
            line
            for head, parts in closing(rows, unsampled, part)
            for line in common.wrapped(f"{head}{': ' if head else ''}{'; '.join(parts)}.", WIDTH)
        ),
    ]


def verdict(rows: Sequence[Advice]) -> str:
    """Why there is no advice; empty: there is some."""
    able = len(able_rules(rows))
    if any(row.found for row in rows):
        return ""
    if not any(row.analysed for row in rows):
        return "No advice: an analysis that it needs has failed."
    if not able:
        return "No advice: no rule had what it needs."
    unable = unable_rules(rows)
    found = f"{units.counted(able, 'rule')} found nothing that could save 0.5 % of the time"
    if len(unable) <= able:
        more = f"; {units.counted(len(unable), 'more rule')} could not look" if unable else ""
        return f"Nothing to advise: {found}{more}."
    ((need, rules),) = Counter(row.needs for row in unable).most_common(1)
    return (
        f"No advice: {len(unable)} of {len(unable) + able} rules could not look; {found}. {rules} "
        f"of these {len(unable)} need {need}."
    )


def able_rules(rows: Sequence[Advice]) -> list[Advice]:
    """Rules that found nothing where they looked."""
    return [row for row in rows if not row.found and not row.evidence and row.coverage is not None]


def unable_rules(rows: Sequence[Advice]) -> list[Advice]:
    return [row for row in rows if not row.found and row.evidence]


def piece_text(number: int, row: Advice) -> str:
    return "\n".join(
        (
            f"{number}. {head_text(row)}",
            *common.wrapped(f"{row.evidence}.", WIDTH, INDENT),
            *common.wrapped(f"-> {row.suggestion}.", WIDTH, INDENT),
        )
    )


def head_text(row: Advice) -> str:
    saved = saving_text(row)
    return units.capital(row.title) + (
        f": could save {saved} (estimate; {row.certainty})" if saved else ""
    )


def saving_text(row: Advice) -> str:
    if row.saving_ns is None:
        return ""
    return f"{units.share(row.saving_share)} of the time, {units.duration(row.saving_ns)}"


def closing(
    rows: Sequence[Advice], unsampled: str, part: Sequence[tuple[str, str]]
) -> list[tuple[str, list[str]]]:
    """The rules that found nothing: how much they analysed, or why they could not and what lets
    them."""
    unknown = gathered((row.evidence, row.title) for row in unable_rules(rows))
    said = "\n".join(f"{row.title}; {row.evidence}" for row in rows if row.found)
    unmade = [
        row.title
        for row in rows
        if not row.found and not row.evidence and row.coverage is None and row.rule != "together"
    ]
    found = [
        *((head, [text]) for head, text in part),
        ("Together", [row.title for row in rows if row.rule == "together"]),
        (NOT_FOUND, [f"{row.title} (in {row.analysed})" for row in able_rules(rows)]),
        (NOTHING, unmade),
        *(
            ("Not known", [f"{'; '.join(titles)} ({why})"])
            for why, titles in unknown.items()
            if why not in said
        ),
        ("Not known", [f"the single calls of {unsampled}"] if unsampled else []),
    ]
    return [(head, parts) for head, parts in found if parts]


def to_try_text(rows: Sequence[Advice]) -> str:
    """The first piece in one sentence."""
    pieces = [row for row in rows if row.found]
    if not pieces:
        return verdict(rows)
    more = f" {units.counted(len(pieces) - 1, 'more piece')} of advice below."
    return (
        f"{head_text(pieces[0])}. {units.capital(pieces[0].suggestion)}.{more * (len(pieces) > 1)}"
    )


def advise_section(run: Selection, rows: Sequence[Advice]) -> str:
    pieces = [row for row in rows if row.found]
    closed = closing(rows, unsampled_text(run.connection), list(common.part_facts(run)))
    facts = [(head, part) for head, parts in closed if head not in FOLDED for part in parts]
    return page.section(
        "What could be better",
        verdict(rows),
        page.table(COLUMNS, pieces[:MOST_PIECES]),
        page.facts_list(facts),
        *(page.folded(head, parts) for head, parts in closed if head in FOLDED),
    )


COMMANDS = {
    "advise": Command(
        __doc__,
        common.SELECTED,
        run,
        (("What could be better", "hvprof-report advise RUN"),),
        ("hvprof", "sizes"),
    )
}

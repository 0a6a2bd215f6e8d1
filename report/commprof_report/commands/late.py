"""Splits the time in collectives and messages into waiting for the last rank that a call depends
on, and transfer. A nonblocking operation is waited for in the call that completes it. Sends and
receives are matched by number and tag; a receive waits for its sender, a send that could not return
before its receive was posted waits for its receiver. A rank may arrive last only because it waited
itself: such chains are followed to the rank that caused them, and what no known rank caused is
shown apart. The first line says what costs most, what would be gained and how sure that is: ranks
that are late (a few ranks or one host cause most of the waiting, beyond chance), often late (beyond
chance, but less than half of the waiting), different ranks in different calls, none beyond chance,
or transfer (the messages take the time). With late ranks it says why they are late, where readings
of CPU time show it (COMMPROF_CPU_TIME): they compute longer than the others, lack a core, sleep
longer, or wait for a disk, outside MPI. It is not known who is late if less than half of the time
inside MPI can be split, if a rank is late too rarely to tell it from chance, and nothing is said of
transfer if few sampled calls stand for most of the time. Where a thread that negotiates makes most
calls, as Horovod's, which joins each one in time whatever the main thread does, ranks are compared
at marks instead: where each begins a region named "wait ..." or "sync ...", or calls
commprof_step(3). Then how much of each, what could be gained, and how certain that is. Then for
each rank how often it arrived last, what that cost the others, of how
much waiting it is the root cause (if that is not the rank that arrived last), and its own waiting
and transfer; for each host; for each call and communicator, where communicators of a family, such
as 16 tensor-parallel groups, share a row; for each kind of waiting, in Scalasca's terms. With --by
call each communicator has a row. With --by size: how far apart ranks arrive, and the time from the
last arrival to the last return, which is the MPI library's own. A rank arrives at a collective of
NCCL when its kernel begins on the device; NCCL collectives without device times are not split.

It analyses single calls, which the library samples (COMMPROF_SAMPLES). If only a part of the calls
is sampled, times are scaled to all. Clocks of hosts are aligned by the job's own collectives; where
that is too coarse, durations beyond the shortest count as waiting, marked with `~`.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..advice.advice import Advice
from ..base import Field, Row, attempt, gathered, option, present, shown, units, whole
from ..display import render
from ..late import (
    ALL,
    CALL,
    HANDED,
    HOST,
    Kind,
    LATE,
    LEVEL,
    LINK,
    Late,
    MOSTLY_LEVEL,
    NEGOTIATED,
    NOTABLE,
    NOTABLE_SHARE,
    PROGRESS,
    RANK,
    ROOT_CAUSE,
    SIZE,
    STATE,
    basis_text,
    calls_text,
    details,
    estimated,
    headline,
    held_up_text,
    is_mostly,
    is_unknown,
    links_text,
    notable_rest,
    reaching,
    rest_text,
    slow_size_text,
    unfinished_text,
)
from ..plots import bars as plot
from ..roles import roles
from ..run import Run, crowded_facts, unsampled_facts, unsampled_text
from . import Command, common

MOST_ROWS = 64
SCRIPT_ROWS = {  # their columns, and the rows among the answers
    "rank": (RANK, lambda answers: answers.ranks),
    "host": (HOST, lambda answers: answers.hosts),
    "call": (CALL, lambda answers: answers.calls),
    "state": (STATE, lambda answers: answers.states),
    "size": (SIZE, lambda answers: answers.sizes),
    "run": (LATE, lambda answers: [answers.run]),
}
WIDTH = 100  # of lines on screen
CALL_COLUMNS = shown(
    CALL,
    "call communicator collectives total_ns wait_ns transfer_ns wait_share top_rank top_cost_ns",
)


def late(known: common.Analysed, arguments: argparse.Namespace, answers: Late) -> common.Answer:
    fields, rows_of = SCRIPT_ROWS[arguments.by or "rank"]
    nothing = common.nothing_text(known.run, "call that was split")
    is_apart = answers.is_negotiated  # a background thread's timing blames no rank
    why_none = headline(answers) if is_apart or answers.run.verdict is Kind.NONE else nothing
    return common.Answer(
        rows_of(answers),
        fields,
        lambda: blocks(known, answers, arguments.by),
        lambda: (None if is_apart else plot.of_waits(answers.ranks), calls_text(answers.run)),
        str,
        lambda: why_none,
    )


def blocks(known: common.Analysed, answers: Late, by: str | None) -> Iterator[Any]:
    """No rank is shown as one that others wait for because of a background thread's timing."""
    if by in (None, "run"):
        yield attempt("Waiting", headline, answers) or ""
        crowded, unsampled = crowded_facts(answers.crowding), unsampled_facts(known.connection)
        yield common.Facts((*crowded, *facts(known.run, answers), *unsampled))
    calls = answers.calls
    if calls and not by:  # one row for a family of communicators
        calls = answers.call_rows(known.named(roles.families))
    found = {} if answers.run.verdict is Kind.NONE else tables_of(answers, calls)
    unasked = () if answers.is_negotiated else ("rank", "host", "call", "state")
    yield from (found.get(name, "") for name in ([by] if by else unasked))


def tables_of(answers: Late, calls: Sequence[Row]) -> dict[str, Any]:
    """calls: of each communicator, or each family."""
    ranks = sorted(answers.ranks, key=lambda row: (-row.caused_ns, -row.cost_ns, row.rank))
    hosts = answers.hosts if len(answers.hosts) > 1 else []
    columns, more = cause_columns(RANK, ranks), " ranks; --csv has them all."
    left = "--by call has each communicator of a family." * (len(calls) < len(answers.calls))
    return {
        "rank": [common.Rows(columns, ranks, MOST_ROWS, more), common.Words(legend(ranks), WIDTH)],
        "host": common.Rows(cause_columns(HOST, hosts), hosts),
        "call": [common.Rows(CALL_COLUMNS, calls), common.Hint(left)],
        "state": common.Rows(STATE, answers.states),
        "size": common.Rows(shown(SIZE), answers.sizes),
    }


def cause_columns(fields: Sequence[Field], rows: Sequence[Row]) -> list[Field]:
    """Without the root causes where they are the ranks that arrived last."""
    whole_ns = sum(row.cost_ns for row in rows)
    are_alike = all(abs(row.caused_ns - row.cost_ns) <= NOTABLE_SHARE * whole_ns for row in rows)
    return [field for field in shown(fields) if field.head != ROOT_CAUSE or not are_alike]


def legend(rows: Sequence[Row]) -> str:
    """The legend of the columns that need one."""
    words = "Times last: how often a rank arrived last. Others waited: for it, all others together."
    if any(column.head == ROOT_CAUSE for column in cause_columns(RANK, rows)):
        words += " Root cause of: the waiting that it causes, directly or through other ranks."
    return words


def facts(run: Run, answers: Late) -> list[tuple[str, str]]:
    """The answer in words, and how certain it is; without what is said of the whole
    run beside it. Last the ranks that the verdict cannot name."""
    row, missing, profiled = answers.run, run.missing, run.profiled
    unfinished = unfinished_text(answers) if answers.unfinished else ""
    rest = ("Not split", rest_text(answers) if notable_rest(answers) else "")
    if row.verdict is Kind.NONE:
        basis = [rest, ("NCCL", unjudged_text(row))]
    elif row.verdict is Kind.MARKS:
        basis = [("Based on", marks_basis_text(answers))]
    else:
        basis = [("Based on", coverage_text(row)), rest, *split_facts(answers)]
    return [
        *details(answers),
        ("Certainty", certainty_text(row) if answers.is_known and row.late_ranks else ""),
        final_fact(answers),
        (
            "Unfinished",
            f"{unfinished}, which is not counted here: see hvprof-report stuck"
            if unfinished
            else "",
        ),
        *basis,
        (
            "Not read",
            f"{units.span_names(missing)}: late ranks may be among them" if missing else "",
        ),
        (
            "Part",
            f"{units.count(len(profiled.ranks))} of {units.counted(run.world_size, 'rank')} were "
            f"chosen to be profiled ({units.shortened(profiled.setting, 36)}): late ranks may be "
            "among the others"
            if profiled
            else "",
        ),
    ]


def split_facts(answers: Late) -> list[tuple[str, str]]:
    """Waiting and transfer, where the time was split."""
    row = answers.run
    spent, moved = (units.duration(ns / row.ranks) for ns in (row.wait_ns, row.transfer_ns))
    links, held_up = links_text(answers) if answers.links else "", held_up_text(answers)
    is_notable = row.unknown_cause_ns >= NOTABLE_SHARE * row.wait_ns > 0
    return [
        (
            "Waiting",
            f"{estimated(row.wait_share, row.estimate_share)} of the time that was "
            f"split, {spent} per rank",
        ),
        ("Slow link", f"{links}; {LINK}" if links else ""),
        ("Slow size", slow_size_text(row)),
        ("No progress", f"{held_up}; {PROGRESS}" if held_up else ""),
        (
            "No known cause",
            f"{units.share(row.unknown_cause_ns / row.wait_ns)} of the waiting: for ranks whose "
            f"calls before it were not split, or not sampled"
            + ("; a larger COMMPROF_SAMPLES samples more" if is_unknown(row) else "")
            if is_notable
            else "",
        ),
        (
            "Transfer",
            f"{units.share(1 - present(row.wait_share))}, {moved} per rank; waiting "
            f"and transfer together: {units.share(row.share_of_wall)} of counted time",
        ),
        ("NCCL", unjudged_text(row)),
        ("Clocks", clock_text(row)),
    ]


def is_long_end(wait_ns: float, counted_ns: float) -> bool:
    """counted_ns: of a rank."""
    return wait_ns >= max(whole("commands.finalize"), NOTABLE * counted_ns)


def final_fact(answers: Late) -> tuple[str, str]:
    """Waiting at the end of the job, which no call of the verdict has."""
    row, others = answers.run, max(1, len(answers.lines) - 1)
    mean_ns, last = row.finalize_wait_ns / others, row.finalize_last_rank
    who = "the other rank waits" if others == 1 else "the other ranks wait"
    said = f"{who} {units.duration(mean_ns)}{' on average' if others > 1 else ''} in MPI_Finalize"
    is_said = last is not None and is_long_end(mean_ns, row.counted_ns / row.ranks)
    return "At the end", f"{said} for rank {last}; counted nowhere else" if is_said else ""


def marks_basis_text(answers: Late) -> str:
    share = units.share(answers.run.negotiated_share)
    region = present(answers.last).region
    how = " by what each one offers and all agree on" * (region == HANDED)
    return (
        f"when ranks {reaching(region, 2)},{how}: {share} of the time inside MPI is on a thread "
        "that negotiates, which joins each call in time"
    ).replace(",:", ":")


def unjudged_text(row: Row) -> str:
    return (
        (
            f"not judged: {units.counted(row.unjudged, 'collective')} without device times, since "
            "the time of queueing does not show when a collective ran"
        )
        if row.unjudged
        else ""
    )


def coverage_text(row: Row) -> str:
    text = basis_text(row)
    if present(row.sampled_share) >= ALL:
        text += f": {calls_text(row)}"
    if row.background_share >= NOTABLE_SHARE:
        text += f", {units.share(row.background_share)} of that time on background threads"
    if 0 < row.negotiated_share < NEGOTIATED:
        text += (
            f"; {units.share(row.negotiated_share)} is on threads that negotiate, where nobody is "
            "judged"
        )
    return text


def certainty_text(row: Row) -> str:
    """The test is defined in docs/METHODS.md."""
    chance = f"{max(present(row.late_p), 1e-9):.1g}"
    played = units.share(row.late_gain_share)
    gain = f"; the gain is predicted from {played} of the run" if row.late_gain_share else ""
    return (
        f"chance alone would show this with a probability below {chance} (test over "
        f"{row.blocks} parts of the run, level {MOSTLY_LEVEL if is_mostly(row) else LEVEL:g}){gain}"
    )


def clock_text(row: Row) -> str:
    text = "all ranks read one clock: no error seen"
    if row.unconnected_clocks:
        groups = row.unconnected_clocks + 1
        text = f"{groups} groups of clocks without a common collective or messages both ways"
    elif row.clocks > 1:
        text = f"{row.clocks} clocks, aligned by collectives or messages"
    if row.error_ns:
        text += f", within {units.duration(row.error_ns)}"
    return (
        text
        if not row.estimate_share
        else (
            f"{text}; for {units.share(row.estimate_share)} of the time that is too coarse: "
            "durations beyond the shortest count as waiting (~)"
        )
    )


ADVICE_WIDTH, INDENT = 110, "   "
MOST_PIECES = 10
NOT_FOUND, NOTHING = "Looked for and not found", "Nothing to look at"


def advise(known: common.Analysed, arguments: argparse.Namespace) -> common.Answer:
    """Each piece of advice has its evidence, a suggestion, an estimate of how much shorter the run
    could be, and how sure it is; the one that could save most is first. The rules look for

    - ranks that lack a core of their own: that comes first, unless a rank is late by more, for then
      the times of calls may be the scheduler's, and none is advised to be fused, fewer or
      overlapped;
    - many Allreduces that are too small to be fast and could be fused (in Horovod by its fusion
      threshold and cycle, in PyTorch's DistributedDataParallel by bucket_cap_mb), and Allreduces of
      a few bytes;
    - a cycle of Horovod's negotiation that is long beside a step;
    - a rank that the others wait for; much waiting, where none is named;
    - nonblocking operations that overlap with nothing, and barriers.

    Advice that could save less than 0.5 % of the time is left out. A change of calls saves no more
    than they take without waiting, and overlap no more than the time outside MPI that could hide
    it; late ranks cost what `late` says. All pieces together save no more than the time inside MPI.
    The same advice on communicators of one family (all tensor-parallel groups) is given once. At
    the end it says which rules found nothing and in how many calls, and which could not look, why,
    and what they need. On a thread beside the main one savings are "possible" at most: what is
    hidden behind compute cannot be saved."""
    rows = known.advised or []
    pieces = [row for row in rows if row.found]
    left = units.counted(len(pieces) - MOST_PIECES, "more piece")
    return common.Answer(
        rows,
        Advice._fields,
        lambda: [
            attempt("Waiting", headline, known.waits) or "",
            common.Words(verdict(rows), ADVICE_WIDTH),
            *(
                Piece(f"{number}. {head_text(row)}", f"{row.evidence}.", f"{row.suggestion}.")
                for number, row in enumerate(pieces[:MOST_PIECES], 1)
            ),
            common.Hint(f"... and {left}; --json has them all." * (len(pieces) > MOST_PIECES)),
            closing(known, rows),
        ],
        nothing=str,
    )


class Piece(NamedTuple):
    """One piece of advice."""

    head: str
    evidence: str
    suggestion: str

    def text(self) -> str:
        found, to_do = (
            common.wrapped(words, ADVICE_WIDTH, INDENT)
            for words in (self.evidence, f"-> {self.suggestion}")
        )
        return "\n".join([units.visible(self.head), *found, *to_do])

    def html(self) -> str:
        return render.advised(*self)


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


def head_text(row: Advice) -> str:
    saved = ""
    if row.saving_ns is not None:
        share, spent = units.share(row.saving_share), units.duration(row.saving_ns)
        saved = f": could save {share} of the time, {spent} (estimate; {row.certainty})"
    return units.capital(row.title) + saved


def closing(known: common.Analysed, rows: Sequence[Advice]) -> list[common.Folded]:
    """The rules that found nothing: how much they analysed, or why they could not and what lets
    them."""
    unsampled = unsampled_text(known.connection)
    unknown = gathered((row.evidence, row.title) for row in unable_rules(rows))
    said = "\n".join(f"{row.title}; {row.evidence}" for row in rows if row.found)
    unmade = [
        row.title
        for row in rows
        if not row.found and not row.evidence and row.coverage is None and row.rule != "together"
    ]
    found = [
        *((head, [text]) for head, text in common.part_facts(known.run)),
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
    return [common.Folded(head, parts, ADVICE_WIDTH) for head, parts in found if parts]


def to_try_text(rows: Sequence[Advice]) -> str:
    """The first piece in one sentence."""
    pieces = [row for row in rows if row.found]
    if not pieces:
        return verdict(rows)
    more = f" {units.counted(len(pieces) - 1, 'more piece')} of advice below."
    return (
        f"{head_text(pieces[0])}. {units.capital(pieces[0].suggestion)}.{more * (len(pieces) > 1)}"
    )


COMMANDS = {
    "late": Command(
        __doc__,
        (
            *common.DRAWN,
            option(
                "--by",
                choices=SCRIPT_ROWS,
                help="this table only (--json and --csv: ranks unless said otherwise)",
            ),
        ),
        common.View(late, common.SAMPLES, ("waits",)),
        (
            ("Who is late at Allreduce", "hvprof-report late --call Allreduce RUN"),
            ("All ranks for a spreadsheet", "hvprof-report late --csv RUN"),
            ("The library's own time by size", "hvprof-report late --by size RUN"),
        ),
        ("steps", "summary"),
    ),
    "advise": Command(
        advise.__doc__,
        common.SELECTED,
        common.View(advise, common.ALL),
        (("What could be better", "hvprof-report advise RUN"),),
        ("hvprof", "sizes"),
    ),
}

"""Who arrives last at collectives, and what that costs.

Splits the time in collectives into waiting for the last rank that a call depends on, and transfer. The first line is the verdict: load
imbalance (a few ranks or a host arrive last and the others wait), random lateness (all take turns), or transfer (the messages take the time).
Then how much of each, what could be gained, and how sure that is. Then for each rank how often it arrived last, what that cost the others,
what of that it alone caused, and its own waiting and transfer; for each host; for each call and communicator. A rank arrives at a collective
of NCCL when its kernel begins on the device; without traces of the GPU nothing is said about these.

It analyses single calls, which the library keeps in a log (COMMPROF_SAMPLES). If the log holds a part of the calls, times are scaled to all.
Clocks of hosts are aligned by the job's own collectives; where that is too coarse, durations beyond the shortest count as waiting, marked
with `~`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from ..base import units
from ..display import pictures, tables
from ..display.tables import Column
from ..late.late_ranks import Late, LateCallRow, LateHostRow, LateRankRow, LateRow, late
from ..plots import late as plot
from ..run.alignment import align
from ..run.crowding import crowding, sentence
from ..run.run import Run
from ..run.unsampled import unsampled_facts
from . import common

EXAMPLES = (
    ("Who is late at Allreduce", "hvprof-report late --call Allreduce RUN"),
    ("All ranks for a spreadsheet", "hvprof-report late --csv RUN"),
)
SEE_ALSO = ("steps", "summary")
MOST_ROWS = 64
HEAD_WIDTH = 16
NOTABLE_SHARE = 0.005  # of the time in collectives; below this nobody need care
ALL = 0.9995  # of the time: everything, but for how clocks are read
SCRIPT_ROWS = {
    "rank": ("ranks", LateRankRow._fields),
    "host": ("hosts", LateHostRow._fields),
    "call": ("calls", LateCallRow._fields),
}
RANK_COLUMNS = (
    Column("rank", lambda row: str(row.rank)),
    Column("host", lambda row: units.shortened(row.host or "", 20), False),
    Column("came last", lambda row: units.count(row.last_count)),
    Column("last share", lambda row: units.share(row.last_share)),
    Column("cost others", lambda row: units.duration(row.cost_ns)),
    Column("it alone", lambda row: units.duration(row.alone_ns)),
    Column("waited", lambda row: units.duration(row.wait_ns)),
    Column("transfer", lambda row: units.duration(row.transfer_ns)),
    Column("waiting share", lambda row: units.share(row.wait_share)),
)
NONBLOCKING_COLUMN = Column("last, nonblocking", lambda row: units.count(row.nonblocking_last))
HOST_COLUMNS = (
    Column("host", lambda row: units.shortened(row.host, 40), False),
    Column("ranks", lambda row: units.count(row.ranks)),
    Column("came last", lambda row: units.count(row.last_count)),
    Column("cost others", lambda row: units.duration(row.cost_ns)),
    Column("it alone", lambda row: units.duration(row.alone_ns)),
    Column("waited", lambda row: units.duration(row.wait_ns)),
    Column("transfer", lambda row: units.duration(row.transfer_ns)),
    Column("waiting share", lambda row: units.share(row.wait_share)),
)
CALL_COLUMNS = (
    Column("library", lambda row: row.library.upper(), False),
    Column("call", lambda row: row.call, False),
    Column("communicator", lambda row: units.shortened(row.communicator, 40), False),
    Column("looked at", lambda row: units.count(row.collectives)),
    Column("time", lambda row: units.duration(row.total_ns)),
    Column("waiting", lambda row: units.duration(row.wait_ns)),
    Column("transfer", lambda row: units.duration(row.transfer_ns)),
    Column("waiting share", lambda row: estimated(row.wait_share, row.estimate_share)),
    Column("most for rank", lambda row: units.NO_VALUE if row.top_rank is None else str(row.top_rank)),
    Column("its cost", lambda row: units.duration(row.top_cost_ns)),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_arguments(parser, draws=True)
    parser.add_argument("--by", choices=(*SCRIPT_ROWS, "run"), help="this table only (--json and --csv: ranks unless said otherwise)")


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, with_histograms=False, with_samples=True)
    answers = late(run, align(run.connection))
    if arguments.plot:
        shown = answers.ranks if any(row.wait_ns or row.transfer_ns for row in answers.ranks) else []
        pictures.save(arguments.plot, plot.draw, shown, plot.figure_size(shown))
    if tables.is_for_scripts(arguments) and arguments.by == "run":
        tables.write_rows(arguments, [answers.run], LateRow._fields)
    elif tables.is_for_scripts(arguments):
        name, fields = SCRIPT_ROWS[arguments.by or "rank"]
        tables.write_rows(arguments, getattr(answers, name), fields)
    else:
        print_text(run, answers, arguments.by)


def print_text(run: Run, answers: Late, by: str | None) -> None:
    if by in (None, "run"):
        for head, text in facts(run, answers):
            common.print_line(f"{head:<{HEAD_WIDTH}}{text}")
    shown = [table for name, table in text_tables(answers).items() if by in (None, name)]
    for place, table in enumerate(shown):
        print(("\n" if place or by is None else "") + table)


def text_tables(answers: Late) -> dict[str, str]:
    if not answers.is_known:
        return {}
    ranks = sorted(answers.ranks, key=lambda row: (-row.cost_ns, row.rank))
    by_rank = tables.text_table(rank_columns(ranks), ranks[:MOST_ROWS])
    if len(ranks) > MOST_ROWS:
        by_rank += f"\n... and {len(ranks) - MOST_ROWS} more ranks; --csv has them all."
    texts = {"rank": by_rank}
    if len(answers.hosts) > 1:
        texts["host"] = tables.text_table(HOST_COLUMNS, answers.hosts)
    texts["call"] = tables.text_table(call_columns(answers.calls), answers.calls)
    return texts


def rank_columns(ranks: Sequence[LateRankRow]) -> tuple[Column, ...]:
    return (*RANK_COLUMNS, NONBLOCKING_COLUMN) if any(row.nonblocking_last for row in ranks) else RANK_COLUMNS


def call_columns(rows: Sequence[LateCallRow]) -> list[Column]:
    """Without the library where there is MPI alone."""
    return [column for column in CALL_COLUMNS if column.head != "library" or any(row.library == "nccl" for row in rows)]


def facts(run: Run, answers: Late) -> Iterator[tuple[str, str]]:
    """The answer in words, and how sure it is."""
    row = answers.run
    if found := crowding(run.connection):
        yield "Crowded", sentence(found)
    yield "Verdict", verdict(answers)
    if row.verdict == "none":
        if row.unjudged:
            yield "NCCL", unjudged_text(row)
        yield from unsampled_facts(run)
        return
    spent = f"{units.duration(row.wait_ns / row.ranks)} per rank"
    moved = f"{units.duration(row.transfer_ns / row.ranks)} per rank"
    yield "Waiting", f"{estimated(row.wait_share, row.estimate_share)} of the time in collectives that synchronize, {spent}"
    yield "Transfer", f"{units.share(1 - row.wait_share)}, {moved}; both together {units.share(row.share_of_wall)} of counted time"
    yield from library_facts(answers)
    if row.late_ranks is not None and row.verdict == "imbalance":
        yield "To gain", gain_text(row)
    yield "Clocks", clock_text(row, "collective of MPI" if any(call.library == "nccl" for call in answers.calls) else "collective")
    yield "Looked at", looked_text(row)
    yield from unsampled_facts(run)
    if unsplit_ns(row) > NOTABLE_SHARE * row.total_ns:
        yield "Not split", unsplit_text(row)
    if run.missing:
        yield "Not read", f"rank {units.shortened(units.span_list(run.missing), 40)}: who is late may be among them"


def library_facts(answers: Late) -> Iterator[tuple[str, str]]:
    """MPI and NCCL apart, where there is NCCL."""
    if answers.run.unjudged:
        yield "NCCL", unjudged_text(answers.run)
    split = [row for row in answers.calls if row.wait_ns is not None]
    if not any(row.library == "nccl" for row in split):
        return
    for library, where in (("mpi", ""), ("nccl", " on the device")):
        own = [row for row in split if row.library == library]
        whole_ns = sum(row.wait_ns + row.transfer_ns for row in own)
        if whole_ns:
            share = units.share(sum(row.wait_ns for row in own) / whole_ns)
            yield library.upper(), f"{share} waiting of {units.duration(whole_ns / answers.run.ranks)} per rank{where}"


def unjudged_text(row: LateRow) -> str:
    return (
        f"{units.counted(row.unjudged, 'collective')} without times of the device are not judged: when they were put into the queue says"
        " nothing of when they ran"
    )


def verdict(answers: Late) -> str:
    row = answers.run
    if row.verdict == "none":
        return nothing_text(row)
    who = late_text(row)
    if row.verdict == "transfer":
        also = f"; of the waiting, {units.share(row.late_share)} is for {who}" if who else ""
        return f"transfer dominates: messages, algorithm, network, or ranks that share cores; hvprof-report sizes has the bandwidths{also}"
    if row.verdict == "imbalance":
        cause = "causes" if row.late_ranks.isdigit() else "cause"
        return f"load imbalance: {who} {cause} {units.share(row.late_share)} of the waiting"
    most = max(answers.ranks, key=lambda rank: rank.last_share or 0)
    return f"random lateness: all take turns, the most often last is rank {most.rank} with {units.share(most.last_share)}"


def nothing_text(row: LateRow) -> str:
    if row.ranks == 1:
        return "one rank: there is nobody to wait for"
    if not row.total_ns and row.unjudged:
        return "unknown: NCCL's collectives were not timed on the device (the GPU was not traced)"
    if not row.total_ns:
        return "no collective that makes ranks wait for each other"
    return "unknown: no such collective of which all ranks kept the single calls (COMMPROF_SAMPLES)"


def late_text(row: LateRow) -> str:
    """rank 3 on node01"""
    if row.late_ranks is None:
        return ""
    noun = "rank" if row.late_ranks.isdigit() else "ranks"
    place = f" on {row.late_hosts}" if row.late_hosts and "," not in row.late_hosts else ""
    return f"{noun} {row.late_ranks}{place}"


def gain_text(row: LateRow) -> str:
    who = "it" if row.late_ranks.isdigit() else "they"
    return f"at most {units.duration(row.late_gain_ns / row.ranks)} per rank, if {who} came no later than the next"


def clock_text(row: LateRow, collective: str) -> str:
    error = f"within {units.duration(row.error_ns)}" if row.error_ns else "no error seen"
    if row.clocks == 1:
        text = f"all ranks read one clock: {error}"
    elif row.unconnected_clocks:
        text = f"{row.clocks} clocks, {row.unconnected_clocks + 1} groups of them without a common {collective}; within a group: {error}"
    else:
        text = f"{row.clocks} clocks, aligned by the collectives {error}"
    if row.estimate_share:
        text += f"; for {units.share(row.estimate_share)} of the time that is too coarse: durations beyond the shortest count as waiting (~)"
    return text


def looked_text(row: LateRow) -> str:
    split_ns = row.wait_ns + row.transfer_ns
    part = "all" if row.coverage >= ALL else units.share(row.coverage)
    scaled = "; times are scaled to all calls (estimates)" if row.looked_ns < ALL * split_ns else ""
    return f"{units.counted(row.collectives, 'collective')}, {part} of that time{scaled}"


def unsplit_text(row: LateRow) -> str:
    unsure = f", {units.counted(row.unsure, 'call')} because the clocks do not tell or the root was not read" if row.unsure else ""
    return f"{units.duration(unsplit_ns(row) / row.ranks)} per rank in other collectives{unsure}"


def unsplit_ns(row: LateRow) -> int:
    return max(0, row.total_ns - row.wait_ns - row.transfer_ns) + row.other_ns


def estimated(share: float | None, estimate_share: float | None) -> str:
    return ("~" if estimate_share else "") + units.share(share)

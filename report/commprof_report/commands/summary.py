"""Begins with the headline of hvprof-report late: what costs most, what would be gained, how sure
that is. Shows the program, its ranks and its MPI library; the share of the wall time that ranks
spent inside MPI; the calls with the most time, and the message size that dominates each;
point-to-point volume; what the profiler cost; whether it has seen all calls, and if not, why and
what would show them (--unseen); NCCL's calls on the host and its operations on the device; whether
MPI was given GPU memory, or GPUs copied through the host. Ranks without MPI_Finalize are listed
with what they were in: running, killed, left by exit or MPI_Abort, since when, and in which call.
(One that was killed may also have left by _exit or exec, if the library did not notice.) Ranks that
waited for a core for 5 % of the time or more are named; where that was not counted
(COMMPROF_CPU_TIME), those that share cores by their affinity masks or a cgroup's quota. Only the
rank's own node knows whether it still runs; on another node it is "alive or ended".

The time inside MPI of a rank is that of its thread with the most, without MPI_Init and
MPI_Finalize; shares are of that rank's wall time. NCCL's calls are no part of it: they put
operations into a queue. With --json one object holds everything.

--unseen lists the parts of the run that were not seen. Counts and times are of the calls that
reached the profiler; these did not, as far as that is known: ranks and spawned processes without a
profile, calls that bypass preloading, recording switched off by the program or by settings, calls
that were excluded or found no room, records that a GPU's tracing interface lost; then what is not
the job's own, and what is counted but not apart. The line Seen says the same in a sentence. Without
a reason there is one line, "all calls".
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from sqlite3 import Connection
from typing import Any

from ..base import attempt, attempts, column, Field, option, present, Row, threshold, units
from ..calls import (
    of_nccl,
    peer_name,
)
from ..gpu import gpu_activity
from ..late import (
    Kind,
    Late,
    basis_text,
    details,
    efficiency_text,
    headline as run_headline,
)
from ..run import (
    ALL,
    Run,
    SeenRow,
    merged,
    programs_text,
    reason_text,
    seen_rows,
    unsampled_facts,
)
from ..steps.steps_summary import headline
from ..stuck import doing
from ..summary.run_summary import (
    RunSummary,
    SummaryRow,
    communicating,
    negotiation_shares,
)
from . import Command, common
from .counters import negotiation_columns
from .gpu import coverage_text
from .late import final_fact

MOST_CALLS = 6
MOST_RANKS = 8
MOST_HOSTS = 3
BAR_WIDTH = 40
NOTABLE_SHARE = threshold("commands.uncounted")
WIDTH = 80
MOST_GROUPS = 12
HEADS = {
    "killed": "Killed or left",
    "running or killed": "Alive or ended",
    "exit": "Exited",
    "abort": "Aborted",
    "running": "Running",
}
WRAPPED = (
    *("Crowded", "Cause", "Why", "To know it"),
    *("Based on", "In a step", "Efficiency", "Seen"),
)
UNSEEN = {
    "missing": "Not seen",
    "foreign": "Not the job's",
    "merged": "Not apart",
    "elsewhere": "Elsewhere",
}
OTHER_THREAD = "on a thread beside the main one: part of it may be hidden behind compute"


def summary(known: common.Analysed, arguments: argparse.Namespace) -> common.Answer:
    if arguments.unseen:
        return unseen(known)
    row = known.summary.summary
    return common.Answer([row], list(vars(row)), lambda: blocks(known, known.summary))


def unseen(known: common.Analysed) -> common.Answer:
    rows = seen_rows(known.connection)
    facts = [
        fact
        for row in rows
        for fact in ((UNSEEN[row.effect], reason_text(row)), ("  way out", row.way_out))
    ]
    return common.Answer(
        rows, SeenRow._fields, lambda: [common.Facts(facts or [("Seen", ALL)])], nothing=str
    )


def blocks(known: common.Analysed, answers: RunSummary) -> Iterator[Any]:
    """The headline, what was counted, and the rest of the screen."""
    summary, run = answers.summary, known.run
    command = summary.command_line or summary.program or "unknown program"
    yield common.Words(attempt("Waiting", run_headline, answers.late) or "", WIDTH)
    yield [
        programs_text(run) if len(run.programs) > 1 else units.shortened(command, 76),
        f"  {where_and_when(summary)}",
        f"  {library_name(summary)}; wall time {wall_time(summary)}",
    ]
    if has_mpi(summary):
        yield from (share_block(answers), calls_block(answers))
    if summary.has_nccl:
        yield from (common.Facts(nccl_facts(answers)), nccl_block(answers))
    yield [
        common.Facts([fact], WIDTH if fact[0] in WRAPPED else common.WIDEST)
        for fact in closing_facts(known, answers)
    ]


def in_a_step(known: common.Analysed) -> str:
    """The headline of hvprof-report steps, of a whole run, if its analysis has not failed."""
    row = known.steps.summary if known.steps and not known.run.filters else None
    return attempt("Steps", headline, row, late=known.waits and known.waits.run) or ""


def where_and_when(summary: SummaryRow) -> str:
    ranks = units.counted(summary.world_size, "rank")
    if summary.ranks_read < summary.world_size:
        ranks = f"{summary.ranks_read} of {ranks}"
    if summary.profiled_ranks:
        ranks += f" (chosen: {units.shortened(summary.profiled_ranks, 36)})"
    hosts, more = summary.hosts, len(summary.hosts) - MOST_HOSTS
    names = ", ".join(units.shortened(host, 24) for host in hosts[:MOST_HOSTS])
    names += f" and {more:,} more" if more > 0 else ""
    places = f" on {units.counted(len(hosts), 'host')} ({names})" if names else ""
    return f"{units.timestamp(summary.start_unix_ns)}, {ranks}{places}"


def library_name(summary: SummaryRow) -> str:
    mpi = units.shortened(
        units.library_name(summary.mpi_version) or summary.mpi_abi or "unknown MPI", 50
    )
    if not summary.has_nccl:
        return mpi
    nccl = f"NCCL {units.shortened(summary.nccl_version, 24)}".strip()
    return f"{mpi}; {nccl}" if has_mpi(summary) else f"{nccl}, without MPI"


def has_mpi(summary: SummaryRow) -> bool:
    """Unless the job has NCCL and called nothing of MPI."""
    return summary.count > 0 or not summary.has_nccl


def wall_time(summary: SummaryRow) -> str:
    estimated = " (an estimate)" if summary.wall_is_estimate else ""
    counted = (
        f", calls counted during {units.duration(summary.counted_ns)} of it"
        if is_counted_in_part(summary)
        else ""
    )
    return units.duration(summary.wall_ns) + estimated + counted


def is_counted_in_part(summary: SummaryRow) -> bool:
    """Whether a part of the run worth mentioning was not counted."""
    return summary.wall_ns is not None and (
        present(summary.counted_ns) < (1 - NOTABLE_SHARE) * summary.wall_ns
    )


def whole(summary: SummaryRow) -> str:
    """The time that shares refer to."""
    return "counted time" if is_counted_in_part(summary) else "wall time"


def share_block(answers: RunSummary) -> list:
    """The shares in MPI, and of few ranks a bar for each."""
    has_bars = 1 < len(answers.ranks) <= MOST_RANKS
    shares = share_texts(answers, " (dots)" if has_bars else "")
    lines: list = [common.Facts(zip(("In MPI", "", ""), shares))]
    negotiated = negotiation_shares(answers.ranks, answers.negotiated)
    for rank in answers.ranks if has_bars else ():
        whole = round(BAR_WIDTH * min(rank.mpi_share or 0, 1))
        dots = min(whole, round(BAR_WIDTH * negotiated.get(rank.rank, 0)))
        bar = "#" * (whole - dots) + "." * dots
        lines.append(f"  rank {rank.rank:<8} {units.share(rank.mpi_share):>7}  {bar}".rstrip())
    return lines


def share_texts(answers: RunSummary, drawn: str = "") -> list[str]:
    """Negotiation apart from data: mostly no rank has anything to send. `drawn`: as bars."""
    summary = answers.summary
    shares = [
        f"unknown share of the {whole(summary)}"
        if summary.mpi_share_mean is None
        else f"{units.share(summary.mpi_share_mean)} of {whole(summary)} {share_range(summary)}"
    ]
    beside = [rank.rank for rank in answers.ranks if not rank.mpi_thread_is_main]
    where = f"on {units.rank_names(beside)} " if len(beside) < len(answers.ranks) else ""
    if summary.negotiation_share_mean is not None:
        negotiation = units.share(summary.negotiation_share_mean)
        shares = [
            f"{units.share(summary.data_share_mean)} of {whole(summary)} in data operations, "
            f"{negotiation} in negotiation of what to send{drawn}",
            f"together {units.share(summary.mpi_share_mean)} {share_range(summary)}",
        ]
    return shares + ([f"{where}{OTHER_THREAD}"] if beside else [])


def share_range(summary: SummaryRow) -> str:
    if summary.ranks_read == 1:
        return f"of rank {summary.mpi_share_min_rank}"
    if summary.mpi_share_min == summary.mpi_share_max:
        return "on each rank"
    return (
        f"on average; {units.share(summary.mpi_share_min)} (rank {summary.mpi_share_min_rank}) to "
        f"{units.share(summary.mpi_share_max)} (rank {summary.mpi_share_max_rank})"
    )


def calls_block(answers: RunSummary) -> Any:
    of_time = f"of {whole(answers.summary).split()[0]}"
    share = column(of_time, lambda call: units.share(call.share_of_wall))
    shares = [share, *negotiation_columns(answers.negotiated)]
    calls = communicating(answers.calls)
    table = top_block(answers, calls, "Most time in", "calls", *shares)
    return table if calls else "No call was counted besides set-up."


def top_block(
    answers: RunSummary, calls: Sequence[Row], head: str, number: str, *shares: Field
) -> list:
    """The calls with the most time, which come first."""
    ranks = len(answers.ranks)
    columns = (
        column(head, lambda call: "  " + units.shortened(call.call, 24), False),
        column(number, lambda call: units.count(call.count)),
        column("per rank", lambda call: units.duration(call.total_ns / ranks)),
        *shares,
        column("mostly size", dominating_size),
        column("p50", lambda call: units.duration(call.p50_ns)),
        column("p99", lambda call: units.duration(call.p99_ns)),
    )
    rest_ns = sum(call.total_ns for call in calls[MOST_CALLS:])
    more = f"  and {len(calls) - MOST_CALLS} more: {units.duration(rest_ns / ranks)} per rank"
    return [common.Rows(columns, calls[:MOST_CALLS]), more * (len(calls) > MOST_CALLS)]


def nccl_facts(answers: RunSummary) -> list[tuple[str, str]]:
    """The calls on the host, and what the operations took on the device."""
    summary, ranks = answers.summary, len(answers.ranks)
    if not summary.has_nccl:
        return []
    on_device = "not known: the GPU was not traced"
    if summary.nccl_device_ns is not None:
        share = units.share(summary.top_nccl_call_ns / (summary.nccl_device_ns or 1))
        on_device = (
            f"{units.duration(summary.nccl_device_ns / ranks)} per rank in "
            f"{units.counted(summary.nccl_device_count, 'operation')} that were timed; "
            f"{summary.top_nccl_call} {share}"
        )
    return [
        (
            "NCCL on host",
            f"{units.counted(summary.nccl_count, 'call')} of NCCL, "
            f"{units.duration(summary.nccl_host_ns / ranks)} per rank, "
            f"{units.share(summary.nccl_host_share)} of {whole(summary)}: putting operations into "
            "queues",
        ),
        (
            "",
            f"of them {units.counted(summary.nccl_captured, 'call')} into CUDA graphs; how often "
            "these ran is not counted"
            if summary.nccl_captured
            else "",
        ),
        (
            "",
            f"{units.duration(summary.nccl_setup_ns / ranks)} per rank in making and freeing "
            "communicators"
            if summary.nccl_setup_ns
            else "",
        ),
        ("NCCL on device", on_device),
    ]


def nccl_block(answers: RunSummary) -> list:
    if timed := of_nccl(answers.calls, "device"):
        return top_block(answers, timed, "Most time on device", "timed")
    rows = of_nccl(answers.calls, "call") or of_nccl(answers.calls, "captured")
    return top_block(answers, rows, "NCCL calls, on host", "calls")


def dominating_size(call) -> str:
    text = f"{units.size(call.dominating_bytes)} ({100 * (call.dominating_share or 0):.0f} %)"
    return text if call.volume_bytes or call.dominating_bytes else units.NO_VALUE


def closing_facts(known: common.Analysed, answers: RunSummary) -> list[tuple[str, str]]:
    """The last block: (head, text) a line."""
    summary, run, together = answers.summary, known.run, merged(answers.seen)
    return [
        (
            "Wrong launcher",
            f"{summary.launcher} started {summary.launcher_size} processes, but each is a job of 1 "
            f"rank: the program's MPI is {summary.mpi_abi or 'another'}; use the launcher of that "
            "MPI (srun: --mpi=pmix or pmi2)"
            if summary.launcher
            else "",
        ),
        ("Crowded", summary.crowding or ""),
        *attempts(("Waiting", waiting_facts, answers.late, summary)),
        ("In a step", in_a_step(known)),
        (
            "Nonblocking",
            f"{units.counted(summary.completions, 'operation')}, {units.share(summary.overlap)} of "
            "their time overlaps with other work"
            if summary.completions
            else "",
        ),
        ("", f"longest waited for: {summary.awaited_call}" if summary.awaited_call else ""),
        ("Buffers", buffers_text(summary)),
        ("Point-to-point", peer_text(summary)),
        (
            "Set-up",
            f"{units.duration(summary.setup_ns / len(answers.ranks))} per rank in MPI_Init, "
            "MPI_Finalize (not counted above)"
            if has_mpi(summary)
            else "",
        ),
        ("GPU", attempt("GPU", gpu_text, run.connection) or ""),
        (
            "Profiler's cost",
            f"{units.duration(summary.cost_ns / len(answers.ranks))} per rank, "
            f"{units.share(summary.cost_share)} of wall time (start, end and each call)",
        ),
        ("Seen", summary.seen),
        *unsampled_facts(run.connection),
        (
            "Less detail",
            f"{', '.join(map(reason_text, together))}; all their calls are counted"
            if together
            else "",
        ),
        *attempts(("Ranks", rank_facts, run, answers)),
        *(("Beside it", aside) for aside in run.asides),
    ]


def buffers_text(summary: SummaryRow) -> str:
    """Said where a GPU was used."""
    copied = (summary.copied_to_host_bytes, summary.copied_to_device_bytes)
    if summary.device_volume_share:
        share = units.share(summary.device_volume_share)
        return f"{share} of the bytes in MPI calls came from GPU memory (CUDA-aware MPI)"
    if summary.device_volume_share is None or not any(copied):
        return ""
    out, back = (units.volume(each or 0) for each in copied)
    return f"host buffers only; traced GPUs copied {out} to the host and {back} back"


def waiting_facts(late: Late, summary: SummaryRow) -> list[tuple[str, str]]:
    """The lines that qualify the headline."""
    is_split = late.is_known and summary.wait_verdict is not Kind.MARKS
    efficiency, share = efficiency_text(summary), units.share(summary.efficiency_share)
    return [
        *details(late),
        ("Based on", basis_text(late.run) if is_split else ""),
        (
            "Efficiency",
            f"{efficiency} (POP; from {share} of the time without set-up)" if efficiency else "",
        ),
        final_fact(late),
    ]


def peer_text(summary: SummaryRow) -> str:
    if not summary.sent_count:
        is_part = summary.ranks_read < summary.world_size
        who = f"{summary.ranks_read:,} of {units.counted(summary.world_size, 'rank')}"
        return f"none sent by {who}" if is_part else "none"
    parts = (
        (summary.sent_count - summary.sent_rma_count, "message"),
        (summary.sent_rma_count, "RMA call"),
    )
    sent = " and ".join(units.counted(count, noun) for count, noun in parts if count)
    pair = " to ".join(map(peer_name, (summary.top_sender, summary.top_receiver)))
    return (
        f"{sent}, {units.volume(summary.sent_bytes)}; most from rank {pair}: "
        f"{units.volume(summary.top_pair_bytes)}"
    )


def gpu_text(connection: Connection) -> str:
    """The work of GPUs where one was used; or the reason why that is not known."""
    found = gpu_activity.gpu(connection)
    own = found.summary
    devices = units.counted(own.devices, "device")
    devices += f", {own.shared_devices:,} shared by ranks" if own.shared_devices else ""
    if own.traced_ns:
        doubted = " or in CUDA graphs that left no record" * bool(gpu_activity.graph_doubt(found))
        return (
            f"{units.share(own.computing_share)} computing, {units.share(own.exposed_share)} "
            f"exposed communication, {units.share(own.idle_share)} idle{doubted} "
            f"({devices}; traced {coverage_text(found)}; see hvprof-report gpu)"
        )
    is_open = own.unmerged_devices or any(row.rank in found.incomplete for row in found.parts)
    return f"{devices}: how busy is not known; see hvprof-report gpu" if is_open else ""


def rank_facts(run: Run, answers: RunSummary) -> list[tuple[str, str]]:
    """Ranks that are not there, or without MPI_Finalize: since when, and what they were in."""
    missing = f"{units.span_names(run.missing)} of {run.world_size}" if run.missing else ""
    facts, groups = [("Not read", missing)], doing.groups(answers.ranks, list(HEADS))
    for group in groups[:MOST_GROUPS]:
        place, head = group.place + doing.span_text(group.ranks), HEADS[group.state]
        how = {
            "abort": f" by MPI_Abort({group.ranks[0].abort_code})",
            "exit": " without MPI_Finalize",
        }.get(group.state, "")
        if group.state == "running":
            facts.append((head, f"{group.names}: {place}"))
        else:
            when = time_text(group, answers.summary)
            facts += [(head, f"{group.names}{how}, {when}"), ("", f"  {place}")]
    rest = sum(len(group.ranks) for group in groups[MOST_GROUPS:])
    more = f"and {units.counted(rest, 'rank')} elsewhere; hvprof-report ranks --per-rank names them"
    return [*facts, ("", more if rest else "")]


def time_text(group: doing.Group, summary: SummaryRow) -> str:
    """at 2026-11-21 22:31:07, 12.3 s after the start"""
    known = [rank.last_unix_ns for rank in group.ranks if rank.last_unix_ns is not None]
    if not known:
        return "at an unknown time"
    last_unix_ns = max(known)
    time = (
        f"{units.timestamp(last_unix_ns)} "
        f"({units.duration(max(0, last_unix_ns - summary.start_unix_ns))} after the start)"
    )
    return f"at {time}" if group.state in doing.SURE_OF_TIME else f"last sign of life {time}"


COMMANDS = {
    "summary": Command(
        __doc__,
        (
            *common.SELECTED,
            option(
                "--unseen",
                action="store_true",
                help="only what was not seen, of all calls: each reason, its size, what would "
                "show it",
            ),
        ),
        common.View(summary, common.ALL),
        (
            ("The run that was just profiled", "hvprof-report summary commprof-train.py-1234"),
            (
                "One communicator, for a script",
                "hvprof-report summary --communicator MPI_COMM_WORLD --json RUN",
            ),
            ("What was not seen, for a script", "hvprof-report summary --unseen --json RUN"),
        ),
        ("calls", "html", "late", "ranks", "stuck"),
    )
}

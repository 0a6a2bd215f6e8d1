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
import textwrap
from collections.abc import Iterator, Sequence
from itertools import chain
from sqlite3 import Connection

from ..base import units
from ..base.errors import attempt, attempts
from ..base.options import option
from ..base.values import present
from ..base.thresholds import threshold
from ..calls.views import Row, of_nccl
from ..display import tables
from ..display.tables import Column
from ..gpu import gpu_activity
from ..late.judgement import Kind
from ..late.late_ranks import Late, late
from ..late.sentences import basis_text, details, efficiency_text, headline as run_headline
from ..run.alignment import align
from ..run.run import Run, programs_text
from ..run.selection import Selection
from ..run.unseen import ALL, SeenRow, merged, reason_text, seen_rows, unsampled_facts
from ..steps.steps_summary import StepsRow, headline, steps_summary
from ..stuck import doing
from ..summary.run_summary import (
    RunSummary, SummaryRow, communicating, negotiation_ns, negotiation_shares, run_summary,
)
from . import Command, common
from .gpu import coverage_text
from .late import final_facts

MOST_CALLS = 6
MOST_RANKS = 8
MOST_HOSTS = 3
BAR_WIDTH = 40
NOTABLE_SHARE = threshold("commands.uncounted")
WIDTH = 80
MOST_GROUPS = 12
HEADS = {
    "killed": "Killed or left", "running or killed": "Alive or ended", "exit": "Exited",
    "abort": "Aborted", "running": "Running",
}
WRAPPED = (
    "Crowded", "Cause", "Why", "To know it", "Based on", "In a step", "Efficiency", "Seen",
)
UNSEEN = {
    "missing": "Not seen", "foreign": "Not the job's", "merged": "Not apart",
    "elsewhere": "Elsewhere",
}
OTHER_THREAD = "on a thread beside the main one: part of it may be hidden behind compute"


def run(arguments: argparse.Namespace) -> None:
    if arguments.unseen:
        show_unseen(arguments)
        return
    run = common.open_selected(arguments, with_samples=True)
    alignment = attempt("Clocks", align, run.connection)
    waits = attempt("Waiting", late, run, alignment)
    answers = run_summary(run, waits)
    if tables.is_for_scripts(arguments):
        tables.write_rows(arguments, [answers.summary], list(vars(answers.summary)))
        return
    whole = alignment if common.is_whole(arguments) else None
    steps = attempt("Steps", steps_summary, run, whole, late=waits)
    step = in_a_step(steps.summary if steps else None, waits)
    said = units.visible(attempt("Waiting", run_headline, waits) or "")
    print(textwrap.fill(said, WIDTH), end="\n\n")
    for line in chain(counted_lines(run, answers), closing_lines(run, answers, step)):
        print(line)


def show_unseen(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, with_histograms=False)
    rows = seen_rows(run.connection)
    common.answer(
        arguments, run, rows, SeenRow._fields, lambda: [common.facts_text(unseen_facts(rows))],
        nothing=str,
    )


def unseen_facts(rows: Sequence[SeenRow]) -> Iterator[tuple[str, str]]:
    if not rows:
        yield "Seen", ALL
    for row in rows:
        yield UNSEEN[row.effect], reason_text(row)
        if row.way_out:
            yield "  way out", row.way_out


def in_a_step(steps: StepsRow | None, waits: Late | None) -> str:
    """The headline of hvprof-report steps, if its analysis has not failed."""
    return attempt("Steps", headline, steps, late=waits and waits.run) or ""


def counted_lines(run: Run, answers: RunSummary) -> Iterator[str]:
    """The first part of the screen: what was counted."""
    summary = answers.summary
    on_host = (common.fact_line(*fact) for fact in nccl_facts(answers))
    for block in (
        run_lines(run, summary),
        *((share_lines(answers), call_lines(answers)) if has_mpi(summary) else ()),
        *((on_host, nccl_lines(answers)) if summary.has_nccl else ()),
    ):
        yield from (*block, "")


def closing_lines(run: Selection, answers: RunSummary, step: str) -> Iterator[str]:
    """The rest of the screen. `step`: the headline of hvprof-report steps."""
    for head, text in closing_facts(run, answers, step):
        lines = (
            textwrap.wrap(units.visible(text), WIDTH - common.HEAD_WIDTH, break_on_hyphens=False)
            if head in WRAPPED else [units.visible(text)]
        )
        yield from map(common.fact_line, (head, *[""] * (len(lines) - 1)), lines)


def run_lines(run: Run, summary: SummaryRow) -> Iterator[str]:
    command = summary.command_line or summary.program or "unknown program"
    yield units.visible(
        programs_text(run) if len(run.programs) > 1 else units.shortened(command, 76)
    )
    yield units.visible(f"  {where_and_when(summary)}")
    yield units.visible(f"  {library_name(summary)}; wall time {wall_time(summary)}")


def where_and_when(summary: SummaryRow) -> str:
    hosts = summary.hosts
    ranks = units.counted(summary.world_size, "rank")
    if summary.ranks_read < summary.world_size:
        ranks = f"{summary.ranks_read} of {ranks}"
    if summary.profiled_ranks:
        ranks += f" (chosen: {units.shortened(summary.profiled_ranks, 36)})"
    places = f" on {units.counted(len(hosts), 'host')} ({host_names(hosts)})" if hosts else ""
    return f"{units.timestamp(summary.start_unix_ns)}, {ranks}{places}"


def host_names(hosts: Sequence[str]) -> str:
    """node000, node001, node002 and 61 more"""
    more = f" and {len(hosts) - MOST_HOSTS:,} more" if len(hosts) > MOST_HOSTS else ""
    return ", ".join(units.shortened(host, 24) for host in hosts[:MOST_HOSTS]) + more


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
        if is_counted_in_part(summary) else ""
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


def share_lines(answers: RunSummary) -> Iterator[str]:
    has_bars = 1 < len(answers.ranks) <= MOST_RANKS
    shares = share_texts(answers, " (dots)" if has_bars else "")
    yield from map(common.fact_line, ("In MPI", "", ""), shares)
    if has_bars:
        negotiated = negotiation_shares(answers.ranks, answers.negotiated)
        for rank in answers.ranks:
            whole = round(BAR_WIDTH * min(rank.mpi_share or 0, 1))
            dots = min(whole, round(BAR_WIDTH * negotiated.get(rank.rank, 0)))
            bar = "#" * (whole - dots) + "." * dots
            yield f"  rank {rank.rank:<8} {units.share(rank.mpi_share):>7}  {bar}".rstrip()


def share_texts(answers: RunSummary, drawn: str = "") -> list[str]:
    """Negotiation apart from data: mostly no rank has anything to send. `drawn`: as bars."""
    summary = answers.summary
    shares = [share_text(summary)]
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


def share_text(summary: SummaryRow) -> str:
    if summary.mpi_share_mean is None:
        return f"unknown share of the {whole(summary)}"
    return f"{units.share(summary.mpi_share_mean)} of {whole(summary)} {share_range(summary)}"


def share_range(summary: SummaryRow) -> str:
    if summary.ranks_read == 1:
        return f"of rank {summary.mpi_share_min_rank}"
    if summary.mpi_share_min == summary.mpi_share_max:
        return "on each rank"
    least = f"{units.share(summary.mpi_share_min)} (rank {summary.mpi_share_min_rank})"
    return (
        f"on average; {least} to {units.share(summary.mpi_share_max)} (rank "
        f"{summary.mpi_share_max_rank})"
    )


def call_lines(answers: RunSummary) -> Iterator[str]:
    calls = communicating(answers.calls)
    if not calls:
        yield "No call was counted besides set-up."
        return
    of_time = f"of {whole(answers.summary).split()[0]}"
    share = Column(of_time, lambda call: units.share(call.share_of_wall))
    yield from top_lines(
        answers, calls, "Most time in", "calls", share, *negotiation_columns(answers)
    )


def top_lines(
    answers: RunSummary, calls: Sequence[Row], head: str, number: str, *shares: Column
) -> Iterator[str]:
    """The calls with the most time, which come first."""
    ranks = len(answers.ranks)
    columns = (
        Column(head, lambda call: "  " + units.shortened(call.call, 24), False),
        Column(number, lambda call: units.count(call.count)),
        Column("per rank", lambda call: units.duration(call.total_ns / ranks)),
        *shares,
        Column("mostly size", dominating_size),
        Column("p50", lambda call: units.duration(call.p50_ns)),
        Column("p99", lambda call: units.duration(call.p99_ns)),
    )
    yield from tables.text_table(columns, calls[:MOST_CALLS]).splitlines()
    if len(calls) > MOST_CALLS:
        rest_ns = sum(call.total_ns for call in calls[MOST_CALLS:])
        yield f"  and {len(calls) - MOST_CALLS} more: {units.duration(rest_ns / ranks)} per rank"


def negotiation_columns(answers: RunSummary) -> list[Column]:
    """The part of a call's time that is negotiation; none where no thread negotiates."""
    spent_ns = negotiation_ns(answers.negotiated, "call")
    if not spent_ns:
        return []

    def part(call: Row) -> str:
        return units.share(spent_ns[call.call] / (call.total_ns or 1))

    return [Column("negotiation", part)]


def nccl_facts(answers: RunSummary) -> Iterator[tuple[str, str]]:
    """The calls on the host, and what the operations took on the device."""
    summary, ranks = answers.summary, len(answers.ranks)
    if not summary.has_nccl:
        return
    yield (
        "NCCL on host",
        f"{units.counted(summary.nccl_count, 'call')} of NCCL, "
        f"{units.duration(summary.nccl_host_ns / ranks)} per rank, "
        f"{units.share(summary.nccl_host_share)} of {whole(summary)}: putting operations into "
        "queues",
    )
    if summary.nccl_captured:
        yield (
            "",
            f"of them {units.counted(summary.nccl_captured, 'call')} into CUDA graphs; how often "
            "these ran is not counted",
        )
    if summary.nccl_setup_ns:
        yield (
            "", f"{units.duration(summary.nccl_setup_ns / ranks)} per rank in making and freeing "
            "communicators",
        )
    if summary.nccl_device_ns is None:
        yield "NCCL on device", "not known: the GPU was not traced"
    else:
        share = units.share(summary.top_nccl_call_ns / (summary.nccl_device_ns or 1))
        yield (
            "NCCL on device",
            units.visible(
                f"{units.duration(summary.nccl_device_ns / ranks)} per rank in "
                f"{units.counted(summary.nccl_device_count, 'operation')} that were timed; "
                f"{summary.top_nccl_call} {share}"
            ),
        )


def nccl_lines(answers: RunSummary) -> Iterator[str]:
    if timed := of_nccl(answers.calls, "device"):
        return top_lines(answers, timed, "Most time on device", "timed")
    rows = of_nccl(answers.calls, "call") or of_nccl(answers.calls, "captured")
    return top_lines(answers, rows, "NCCL calls, on host", "calls")


def dominating_size(call) -> str:
    if not call.volume_bytes and not call.dominating_bytes:
        return units.NO_VALUE
    return f"{units.size(call.dominating_bytes)} ({100 * (call.dominating_share or 0):.0f} %)"


def closing_facts(run: Selection, answers: RunSummary, step: str) -> Iterator[tuple[str, str]]:
    """The last block: (head, text) a line."""
    summary, waits = answers.summary, answers.late
    if summary.launcher:  # this run is one of several that should have been one
        yield (
            "Wrong launcher",
            f"{summary.launcher} started {summary.launcher_size} processes, but each is a job of 1 "
            f"rank: the program's MPI is {summary.mpi_abi or 'another'}; use the launcher of that "
            "MPI (srun: --mpi=pmix or pmi2)",
        )
    if summary.crowding:
        yield "Crowded", summary.crowding
    yield from attempts(("Waiting", waiting_facts, waits, summary))
    if step:
        yield "In a step", step
    if summary.completions:
        yield (
            "Nonblocking",
            f"{units.counted(summary.completions, 'operation')}, {units.share(summary.overlap)} of "
            "their time overlaps with other work",
        )
        if summary.awaited_call:
            yield "", f"longest waited for: {summary.awaited_call}"
    yield from buffer_facts(answers)
    yield "Point-to-point", peer_text(summary)
    if has_mpi(summary):
        setup = units.duration(summary.setup_ns / len(answers.ranks))
        yield "Set-up", f"{setup} per rank in MPI_Init, MPI_Finalize (not counted above)"
    yield from attempts(("GPU", gpu_facts, run.connection))
    yield "Profiler's cost", cost_text(summary, len(answers.ranks))
    yield "Seen", summary.seen
    yield from unsampled_facts(run.connection)
    if together := merged(answers.seen):
        yield "Less detail", f"{', '.join(map(reason_text, together))}; all their calls are counted"
    yield from attempts(("Ranks", rank_facts, run, answers))
    for aside in run.asides:
        yield "Beside it", aside


def buffer_facts(answers: RunSummary) -> Iterator[tuple[str, str]]:
    """Memory kinds of MPI's buffers, printed where a GPU was used."""
    summary = answers.summary
    if summary.device_volume_share is None:
        return
    managed = sum(
        row.volume_bytes for row in answers.memory_kinds
        if row.library == "mpi" and row.memory_kind.startswith("managed")
    )
    also = f"; {units.volume(managed)} from managed memory" if managed else ""
    if summary.device_volume_share:
        share = units.share(summary.device_volume_share)
        yield (
            "Buffers",
            f"{share} of the bytes in MPI calls came from GPU memory (CUDA-aware MPI){also}",
        )
    elif managed:
        yield "Buffers", f"none of the bytes in MPI calls came from GPU memory{also}"
    elif summary.copied_to_host_bytes or summary.copied_to_device_bytes:
        yield "Buffers", f"host buffers only; {copied_text(summary)}"


def copied_text(summary: SummaryRow) -> str:
    """Volume that GPUs copied while they were traced; how much of it went through MPI is
    unknown."""
    copied = (summary.copied_to_host_bytes, summary.copied_to_device_bytes)
    out, back = (units.volume(each or 0) for each in copied)
    return (
        f"GPUs copied {out} to the host and {back} back while they were "
        f"traced{': it looks staged' if all(copied) else ''}"
    )


def waiting_facts(late: Late, summary: SummaryRow) -> Iterator[tuple[str, str]]:
    """What qualifies the headline."""
    yield from details(late)
    if late.is_known and summary.wait_verdict is not Kind.MARKS:
        yield "Based on", basis_text(late.run)
    if efficiency := efficiency_text(summary):
        share = units.share(summary.efficiency_share)
        yield "Efficiency", f"{efficiency} (POP; from {share} of the run)"
    yield from final_facts(late)


def peer_text(summary: SummaryRow) -> str:
    if not summary.sent_count:
        is_part = summary.ranks_read < summary.world_size
        return (
            f"none sent by {summary.ranks_read:,} of {units.counted(summary.world_size, 'rank')}"
            if is_part else "none"
        )
    parts = (
        (summary.sent_count - summary.sent_rma_count, "message"),
        (summary.sent_rma_count, "RMA call"),
    )
    sent = (
        f"{' and '.join(units.counted(count, noun) for count, noun in parts if count)}, "
        f"{units.volume(summary.sent_bytes)}"
    )
    pair = " to ".join(map(partner_text, (summary.top_sender, summary.top_receiver)))
    return f"{sent}; most from {pair}: {units.volume(summary.top_pair_bytes)}"


def partner_text(rank: int | None) -> str:
    if rank is None:
        return "an unknown rank"
    return "outside" if rank < 0 else f"rank {rank}"


def gpu_facts(connection: Connection) -> Iterator[tuple[str, str]]:
    """Facts on GPUs where one was used; with the reason if it was not traced."""
    found = gpu_activity.gpu(connection)
    own = found.summary
    shared = f", {own.shared_devices:,} shared by ranks" if own.shared_devices else ""
    if own.unmerged_devices and not own.traced_ns:
        yield (
            "GPU",
            f"{units.counted(own.devices, 'device')}{shared}: how busy is not known, ranks ran at "
            "once; see hvprof-report gpu",
        )
    elif not own.traced_ns and any(row.rank in found.incomplete for row in found.parts):
        why = "how busy is not known, records came too late to be summed up"
        yield "GPU", f"{units.counted(own.devices, 'device')}: {why}; see hvprof-report gpu"
    if own.traced_ns:
        doubted = (
            " or in CUDA graphs that left no record" if gpu_activity.graph_doubt(found) else ""
        )
        yield (
            "GPU",
            f"{units.share(own.computing_share)} computing, {units.share(own.exposed_share)} "
            f"exposed communication, {units.share(own.idle_share)} idle{doubted} "
            f"({units.counted(own.devices, 'device')}{shared}; traced {coverage_text(found)}; see "
            "hvprof-report gpu)",
        )


def cost_text(summary: SummaryRow, ranks: int) -> str:
    return (
        f"{units.duration(summary.cost_ns / ranks)} per rank, {units.share(summary.cost_share)} of "
        "wall time (start, end and each call)"
    )


def rank_facts(run: Run, answers: RunSummary) -> Iterator[tuple[str, str]]:
    """Ranks that are not there, or without MPI_Finalize: since when, and what they were in."""
    if run.missing:
        yield "Not read", f"{units.span_names(run.missing)} of {run.world_size}"
    groups = doing.groups(answers.ranks, list(HEADS))
    for group in groups[:MOST_GROUPS]:
        place = group.place + doing.span_text(group.ranks)
        if group.state == "running":
            yield HEADS[group.state], f"{group.names}: {place}"
        else:
            yield (
                HEADS[group.state],
                f"{group.names}{code_text(group)}, {time_text(group, answers.summary)}",
            )
            yield "", f"  {place}"
    if len(groups) > MOST_GROUPS:
        rest = sum(len(group.ranks) for group in groups[MOST_GROUPS:])
        yield (
            "", f"and {units.counted(rest, 'rank')} elsewhere; hvprof-report ranks --per-rank "
            "names them",
        )


def code_text(group: doing.Group) -> str:
    return {
        "abort": f" by MPI_Abort({group.ranks[0].abort_code})", "exit": " without MPI_Finalize",
    }.get(group.state, "")


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


COMMANDS = {"summary": Command(
    __doc__, (
        *common.SELECTED,
        option(
            "--unseen", action="store_true",
            help="only what was not seen, of all calls: each reason, its size, what would show it",
        ),
    ), run,
    (
        ("The run that was just profiled", "hvprof-report summary commprof-train.py-1234"),
        (
            "One communicator, for a script",
            "hvprof-report summary --communicator MPI_COMM_WORLD --json RUN",
        ),
        ("What was not seen, for a script", "hvprof-report summary --unseen --json RUN"),
    ),
    ("calls", "html", "late", "ranks", "stuck"),
)}

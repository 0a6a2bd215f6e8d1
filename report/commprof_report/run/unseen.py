"""Gaps of the profile: each reason with its size and the way out; communicators without samples,
because the sample log was full, so that reports based on samples do not include them; and times in
which samples of a rank may be missing, for this reason, or because the reporter has read only a
part of the log.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import NamedTuple

from ..base import Field, Ints, Row, gathered, np, query, row_type, threshold, units
from .alignment import Alignment

OFF_SHARE = threshold("run.off")
ALL = "all calls"
# Calls are counted all the same.
NOT_OF_CALLS = ("dropped-", "gpu", "nccl-datatype", "sizes", "untracked")


# a reason why something was not seen, of all ranks that have it alike
SEEN = (
    Field("reason", "its name"),
    Field(
        "effect",
        "`missing`: in no figure; `foreign`: in the figures, but not the job's own; `elsewhere`: "
        "not of this job; `merged`: counted, but not apart",
    ),
    Field("ranks", "the ranks that have it, as text; empty: all that were selected, or the run"),
    Field(
        "amount",
        "how much, summed over ranks, of `call`, `process`, `ns`, ...",
    ),
    Field("unit", ""),
    Field("share", "of a time: `amount` over the wall time of these ranks"),
    Field("what", "the reason in words; the setting or path concerned"),
    Field("detail", ""),
    Field("way_out", "how to record it; empty: not possible"),
)
SeenRow = row_type("SeenRow", SEEN)


class Reason(NamedTuple):
    """effect: as in SEEN. unit: of its amount; empty: it has none. source: the fact that gives it,
    whose value is the amount, else the detail; or the column of table rank that counts it; empty:
    seen.sql finds it."""

    effect: str
    unit: str
    source: str
    what: str
    way_out: str = ""


LARGER = "commprof-run --memory 256M"
# fmt: off
REASONS = {
    name: Reason(*reason)
    for name, *reason in (
        ("unread", "missing", "rank", "", "not read or not profiled",
         "name all folders that hold them; put commprof-run before each program of the job"),
        ("unprofiled", "missing", "rank", "", "not profiled", "run without COMMPROF_RANKS"),
        ("copied", "missing", "", "", "what followed the last copy of a ledger on another node",
         "read it there"),
        ("damaged", "missing", "", "unseen.damaged", "parts of a damaged ledger"),
        ("spawned", "missing", "process", "", "spawned without a profile beside this one",
         "spawn `commprof-run --output RUN PROGRAM`, or pass LD_PRELOAD and COMMPROF_OUTPUT on, by "
         "mpirun -x or mpiexec -genvlist"),
        ("bypass", "missing", "", "unseen.bypass",
         "calls that reach MPI past the profiler, from", "open it without RTLD_DEEPBIND"),
        ("lookups", "missing", "look-up", "unseen.dlsym",
         "of MPI functions not answered, as COMMPROF_DLSYM=off", "commprof-run --dlsym"),
        ("library", "missing", "", "unseen.library", "calls to a second MPI library"),
        ("gloo", "missing", "", "unseen.gloo", "communication over gloo, by",
         "the backends MPI or NCCL"),
        ("tool", "foreign", "", "unseen.tool",
         "calls that a tool before the profiler makes itself count as the job's",
         "commprof-run puts the profiler first"),
        ("off", "missing", "ns", "", "not recorded", "leave recording on"),
        ("reset", "missing", "ns", "", "set to zero by MPI_Pcontrol(2)", "leave that call out"),
        ("excluded", "missing", "", "settings.COMMPROF_EXCLUDE",
         "calls that COMMPROF_EXCLUDE names", "leave it unset"),
        ("dropped", "missing", "call", "dropped_calls", "dropped: the ledger was full", LARGER),
        ("dropped-messages", "missing", "message", "dropped_messages",
         "missing in the table of peers: the ledger was full", LARGER),
        ("dropped-completions", "missing", "completion", "dropped_completions",
         "dropped: the ledger was full", LARGER),
        ("interrupted", "missing", "call", "interrupted_calls",
         "left by an exception or longjmp, or made by a signal handler in the profiler's own code"),
        ("untracked", "missing", "request", "untracked_requests",
         "not followed to completion: there was no memory"),
        ("sizes", "missing", "", "",
         "sizes of messages: the ABI of this MPI library is not known"),
        ("captured", "missing", "call", "",
         "captured into CUDA graphs: how often these ran is not counted"),
        ("nccl-operation", "missing", "", "nccl.unknown_operation",
         "an NCCL operation that this version does not know", "a newer commprof"),
        ("nccl-datatype", "missing", "", "nccl.unknown_datatype",
         "bytes of an NCCL datatype that this version does not know", "a newer commprof"),
        ("gpu", "missing", "", "", "GPUs not traced"),
        ("gpu-dropped", "missing", "GPU record", "gpu_dropped_records",
         "dropped by the tracing interface or never handed over"),
        ("gpu-graphs", "missing", "graph launch", "gpu.unseen_graph_launches",
         "of CUDA left no record"),
        ("gpu-implausible", "missing", "GPU record", "gpu_implausible_records",
         "with impossible times"),
        ("gpu-late", "missing", "GPU record", "gpu_late_records",
         "too late for the sums of time (counted in the tables)"),
        ("gpu-uncollected", "missing", "ns", "gpu.uncollected_ns",
         "of GPU records before the end: not collected yet"),
        ("gpu-intervals", "missing", "MPI call", "gpu_lost_intervals", "missing in times in MPI"),
        ("gpu-unmatched", "missing", "NCCL operation", "gpu_unmatched_operations",
         "without a time on the device"),
        ("gpu-cut-off", "missing", "", "", "GPU records at the end"),
        ("gpu-together", "merged", "GPU record", "gpu_unattributed_records",
         "counted together with others: a table was full"),
        ("connected", "elsewhere", "process", "",
         "of other jobs, connected to this one: in profiles of their own, if they were profiled"),
        ("communicators", "merged", "communicator", "folded_communicators", "counted as one",
         LARGER),
        ("cells", "merged", "cell", "folded_cells",
         "merged into cells of several sizes or communicators", LARGER),
        ("regions", "merged", "", "region_refused",
         "regions counted in the one around them, from this one on"),
        ("record", "merged", "ns", "",
         "of COMMPROF_RECORD not recorded call by call: there was no more room", LARGER),
    )
}
# fmt: on
SOURCES = {each.source or name: name for name, each in REASONS.items()}
EFFECTS = ("missing", "merged", "foreign", "elsewhere")


def reasons_found(connection: Connection) -> list[tuple]:
    """Rows of table `seen` of a merged database (views.sql): one a rank and reason, of the run
    without a rank."""
    facts = f" {' '.join(each.source for each in REASONS.values() if each.source)} "
    found = query.run(connection, "run/seen", off_share=OFF_SHARE, facts=facts).fetchall()
    ranks = connection.execute("SELECT * FROM rank")
    names = [column[0] for column in ranks.description]
    found += (
        (values[0], name, amount, None, "")
        for values in ranks
        for name, amount in zip(names, values)
        if name in SOURCES
    )
    rows = []
    for rank, source, amount, whole, detail in found:
        effect, unit, of, what, way_out = REASONS[SOURCES[source]]
        if not unit or (amount or 0) > 0:
            amount, detail = amount if unit else None, "" if unit and of else detail
            rows.append((rank, SOURCES[source], effect, amount, unit, whole, what, detail, way_out))
    return sorted(rows, key=lambda row: (EFFECTS.index(row[2]), row[1], row[0] is not None, row[0]))


def seen_rows(connection: Connection) -> list[Row]:
    """The reasons that concern the selected ranks, what is missing first."""
    selected = {rank for (rank,) in connection.execute("SELECT world_rank FROM selected_rank")}
    found = gathered(
        ((*rest, unit, what, detail, way_out), (rank, amount, whole))
        for rank, *rest, amount, unit, whole, what, detail, way_out in reasons_found(connection)
        if rank is None or rank in selected
    )
    return [_row(key, of_ranks, len(selected)) for key, of_ranks in found.items()]


def _row(key: tuple, of_ranks: Sequence[tuple], selected: int) -> Row:
    reason, effect, unit, what, detail, way_out = key
    ranks, amounts, wholes = zip(*of_ranks)
    is_counted = unit != "ns" or None not in wholes
    amount = None if None in amounts else sum(amounts) if is_counted else max(amounts)
    share = None if None in wholes or amount is None or not sum(wholes) else amount / sum(wholes)
    named = units.Ranks(() if None in ranks or len(ranks) == selected else ranks)
    return SeenRow(reason, effect, named, amount, unit, share, what, detail, way_out)


def missing(rows: Iterable[Row]) -> list[Row]:
    """The reasons for which figures lack something, or have what is not the job's."""
    return [row for row in rows if row.effect in ("missing", "foreign")]


def merged(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.effect == "merged"]


def unseen_calls_text(connection: Connection) -> str:
    """The reasons for which calls are missing: what statements do not rest on. "":
    there are none."""
    rows = missing(seen_rows(connection))
    return "; ".join(reason_text(row) for row in rows if not row.reason.startswith(NOT_OF_CALLS))


def reason_text(row: Row) -> str:
    """1,234 calls dropped: the ledger was full, on ranks 0-3"""
    detail = f": {units.shortened(row.detail, 100)}" if row.detail else ""
    ranks = f", on {units.rank_names(row.ranks)}" if row.ranks else ""
    return f"{_amount_text(row)}{row.what}{detail}{ranks}"


def _amount_text(row: Row) -> str:
    if row.amount is None:
        return ""
    if row.unit == "ns" and row.share is None:
        return f"up to {units.duration(row.amount)} "
    if row.unit == "ns":
        return f"{units.share(row.share)} of the time "
    return f"{units.counted(row.amount, row.unit)} "


def seen_text(rows: Sequence[Row], is_over: bool) -> str:
    """All calls; or not all: each reason, and the way out. is_over: no rank may still be
    running."""
    lacking, elsewhere = (
        missing(rows),
        [reason_text(row) for row in rows if row.effect == "elsewhere"],
    )
    reasons = (reason_text(row) + (f" ({row.way_out})" if row.way_out else "") for row in lacking)
    whole = f"not all: {'; '.join(reasons)}" if lacking else f"{ALL}{'' if is_over else ' so far'}"
    return "; ".join([whole, *elsewhere])


MOST_NAMES = 3
HEAD = "No samples"


def unsampled_text(connection: Connection) -> str:
    """A sentence for a run read with or without samples; "": all communicators have some."""
    rows = list(query.rows(connection, "run/unsampled"))
    if not rows:
        return ""
    names = ", ".join(units.shortened(row.communicator, 32) for row in rows[:MOST_NAMES])
    more = f" and {len(rows) - MOST_NAMES} more" if len(rows) > MOST_NAMES else ""
    share = units.share(sum(row.share or 0 for row in rows))
    return (
        f"{len(rows)} of {units.counted(rows[0].communicators, 'communicator')}, {share} "
        "of the "
        f"time in collectives: {names}{more}"
    )


def unsampled_facts(connection: Connection) -> list[tuple[str, str]]:
    return [(HEAD, unsampled_text(connection))]


def no_log_text(connection: Connection) -> str:
    """Why a run has no samples at all, and what samples its calls; "": it has a sample log, or its
    facts say nothing of it."""
    found = connection.execute(
        "SELECT DISTINCT value FROM fact WHERE key = 'settings.COMMPROF_SAMPLES'"
    ).fetchall()
    if found != [("0",)]:
        return ""
    is_site = connection.execute(
        "SELECT 1 FROM fact WHERE key = 'settings.COMMPROF_PROFILE' AND value = 'site'"
    ).fetchone()
    why = ", the default of COMMPROF_PROFILE=site" if is_site else ""
    return (
        f"no single call was sampled: COMMPROF_SAMPLES=0{why}; commprof-run --samples 4M "
        "samples them"
    )


FAR_NS = 1 << 62


# In the rank's own time; sampling windows are a thread's own.
Hole = namedtuple("Hole", "world_rank thread begin_ns end_ns")


def together_share(connection: Connection) -> float:
    """The share of the ranks' time in which all calls of the rank's main thread are sampled."""
    query.run(connection, "run/holes")
    whole_ns, unseen_ns = connection.execute(
        "SELECT (SELECT total(wall_ns) FROM rank_wall), total(min(end_ns, wall_ns) - min(begin_ns, "
        "wall_ns)) FROM hole JOIN rank_wall USING (world_rank) LEFT JOIN (SELECT * FROM thread "
        "WHERE is_main) AS main USING (world_rank) WHERE hole.thread = coalesce(main.thread, 0)"
    ).fetchone()
    return 1 - unseen_ns / whole_ns if whole_ns else 1.0


def holes(connection: Connection) -> dict[int, list[Row]]:
    """By rank, in order of their begin; docs/METHODS.md has the definition (steps, complete)."""
    return gathered((hole.world_rank, hole) for hole in query.ask(connection, "run/holes", Hole))


def holes_aligned(
    connection: Connection, alignment: Alignment, threads: Mapping[int, int] | None = None
) -> tuple[Ints, Ints, Ints]:
    """Rank, begin and end of each, on the run's axis. threads: only those of these, by rank."""
    found = [
        hole
        for of_rank in holes(connection).values()
        for hole in of_rank
        if threads is None or hole.thread == threads.get(hole.world_rank)
    ]
    rank, _, begin_ns, end_ns = np.array(found, np.int64).reshape(-1, 4).T
    return rank, alignment.aligned(rank, begin_ns), alignment.aligned(rank, end_ns)


def sampled_spans(holes: Iterable[Row]) -> Ints:
    """The time outside these holes, as rows of begin and end."""
    spans = [(hole.begin_ns, hole.end_ns) for hole in holes]
    return without_holes(*np.array(spans, np.int64).reshape(-1, 2).T)


def without_holes(begin_ns: Ints, end_ns: Ints) -> Ints:
    """The times in which none of these holes is, as rows of begin and end."""
    order = np.argsort(begin_ns, kind="stable")
    since_ns = np.maximum.accumulate(np.append(-FAR_NS, end_ns[order]))
    until_ns = np.append(begin_ns[order], FAR_NS)
    return np.stack([since_ns, until_ns], 1)[since_ns < until_ns]

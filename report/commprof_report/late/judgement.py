"""The verdict on a run's waiting in one row: what may be said of what verdict.py and marks.py found
(docs/METHODS.md defines the verdicts), and why named ranks are late: they compute longer, lose
their core, sleep longer, wait for a disk or for other threads of their own, compared with the other
ranks, outside MPI, or are in MPI's calls on files.

One function gives the reason to all commands. It gives none where the readings do not show that
most of the time by which the ranks are longer outside MPI is of one kind.

The columns of `late --by run` are here, too.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from statistics import fmean
from typing import Any

from ..base import (
    AS_EVERYWHERE,
    Connection,
    Field,
    Row,
    keys,
    np,
    present,
    row_type,
    threshold,
    units,
)
from ..run import CpuTimeRow, Crowding, Use, core_uses, cpu_times, use_of
from .marks import Last
from .verdict import (
    COVERED,
    FEWEST_BLOCKS,
    FEWEST_TRANSFERS,
    NEGOTIATED,
    NOTABLE,
    Blame,
    CallCause,
    Named,
)
from .wait_split import COUNT, FILES, OUTSIDE, TRANSFER, Lines


class Kind(Enum):
    """A verdict's; docs/METHODS.md defines them."""

    NONE = "none"
    UNKNOWN = "unknown"
    LITTLE = "little"
    TRANSFER = "transfer"
    IMBALANCE = "imbalance"
    MOSTLY = "mostly"
    BY_CALL = "by-call"
    SPREAD = "spread"
    MARKS = "marks"
    CORES = "cores"

    def __str__(self) -> str:
        return self.value


NAMING = Kind.IMBALANCE, Kind.MOSTLY


def lacks_cores(
    crowding: Sequence[Crowding],
    counted: Row,
    unknown_ns: int,
    explained_ns: float,
    reasons: set[str],
) -> bool:
    """A core for each rank might save as much as is explained otherwise, over all ranks, so a late
    rank may merely not have been scheduled. reasons: why ranks are late."""
    is_explained = not reasons.isdisjoint((*OWN, LOST_CORE))
    return (
        bool(crowding)
        and not is_explained
        and explained_ns < schedulers_ns(crowding, counted, unknown_ns)
    )


def schedulers_ns(crowding: Sequence[Crowding], counted: Row, unknown_ns: int) -> float:
    """The most that a core for each rank could save, over all ranks: as long as they waited for
    one; and no longer than they did outside MPI, one after the other, and were in calls but for
    waiting whose cause is known. Infinite if it is not known how long they waited for a core."""
    lost = [each.lost for each in crowding]
    wait_ns = sum(each.wait_ns if each else float("inf") for each in lost)
    outside_ns = counted.ranks * sum(each.outside_ns for each in lost if each)
    inside_ns = counted.total_ns - counted.wait_ns + unknown_ns
    return min(wait_ns, outside_ns + inside_ns) if all(lost) else wait_ns


def notable_ns(counted: Row) -> float:
    return max(1.0, NOTABLE * counted.counted_ns / max(1, counted.ranks))


def judged(
    counted: Row, negotiated_share: float, unknown_ns: int, found: Blame, blocks: int
) -> tuple[Kind, Named | None]:
    """The verdict, and the ranks that it names: only if another rank could be done notably
    sooner."""
    kind, named = verdict_of(counted, negotiated_share, unknown_ns, found, blocks), found.named
    if named is None or named.gain_ns < notable_ns(counted):
        return Kind.SPREAD if kind in NAMING else kind, None
    return kind, named if kind in (Kind.TRANSFER, *NAMING) else None


def without(found: Blame, are_excused: Callable[[Named], bool]) -> tuple[Blame, Named | None]:
    """The rest of the blame, and the ranks of the run that would be named. One late rank
    in single calls is no different ranks in different calls."""
    if found.named and are_excused(found.named):
        return found._replace(named=None), found.named
    calls = [each for each in found.calls if not are_excused(each.named)]
    if len(calls) < len(found.calls) and len({each.named.ranks for each in calls}) < 2:
        calls = []
    return found._replace(calls=calls), None


def is_by_transfer(
    calls: Mapping[int, float], spent_ns: Mapping[int, Sequence[int]], ranks: Collection[int]
) -> bool:
    """Whether these ranks serve the others: they gather results, or answer requests. The others
    wait for them while they move data, which is no lateness; they are late only if they are outside
    MPI for longer. They make far more calls with others than the rest, and are later than the rest
    by the transfer of these, not by time outside MPI or in files. calls: with messages. spent_ns:
    in each state."""
    others = [rank for rank in calls if rank not in ranks and rank in spent_ns]
    own = [rank for rank in calls if rank in ranks and rank in spent_ns]
    if not own or not others:
        return False
    own_calls, others_calls = (fmean(calls[rank] for rank in part) for part in (own, others))
    if not own_calls or own_calls < threshold("late.serving") * others_calls:
        return False
    transfer_ns, outside_ns = (
        fmean(sum(spent_ns[rank][state] for state in states) for rank in own)
        - fmean(sum(spent_ns[rank][state] for state in states) for rank in others)
        for states in ((TRANSFER,), (OUTSIDE, FILES))
    )
    return transfer_ns > max(0.0, outside_ns)


def is_few_transfers(calls: int, sampled_share: float | None) -> bool:
    """Few calls stand for most of the transfer, because most of the time was not sampled."""
    return (sampled_share or 0.0) < COVERED and calls < FEWEST_TRANSFERS


def verdict_of(
    counted: Row, negotiated_share: float, unknown_ns: int, found: Blame, blocks: int
) -> Kind:
    if not (counted.wait_ns + counted.transfer_ns):
        return Kind.NONE
    if negotiated_share >= NEGOTIATED or present(counted.coverage) < COVERED:
        return Kind.UNKNOWN
    if counted.wait_ns < NOTABLE * counted.counted_ns > counted.transfer_ns:
        return Kind.LITTLE
    if counted.wait_ns < max(counted.transfer_ns, NOTABLE * counted.counted_ns):
        is_few = is_few_transfers(counted.transfer_calls, counted.sampled_share)
        return Kind.UNKNOWN if is_few else Kind.TRANSFER
    if blocks < FEWEST_BLOCKS:
        return Kind.UNKNOWN
    if found.named:
        return Kind.MOSTLY if found.named.is_mostly else Kind.IMBALANCE
    if found.calls:
        return Kind.BY_CALL
    return Kind.SPREAD if unknown_ns < COVERED * counted.wait_ns else Kind.UNKNOWN


SHARE = threshold("late.reason")
COMPUTES, LOST_CORE, READY, ASLEEP, DISK, THREADS, IN_FILES = (
    "computes",
    "core",
    "ready",
    "asleep",
    "disk",
    "threads",
    "files",
)
OWN = COMPUTES, ASLEEP, DISK, THREADS, IN_FILES  # no matter of cores


Words = namedtuple("Words", "do longer how remedy")
WORDS = {
    COMPUTES: Words("compute", "{} longer", "on a core", "balance the work"),
    LOST_CORE: Words(
        "lack",
        "a core {} longer",
        "ready without one",
        "give {them} a core of {their} own: other binding, fewer ranks or threads, no other jobs",
    ),
    READY: Words(
        "are",
        "ready to run {} longer",
        "on a core or waiting for one",
        "balance the work, and give each rank a core of its own",
    ),
    ASLEEP: Words(
        "sleep",
        "{} longer",
        "asleep",
        "look at what {do} outside MPI without a core: a sleep, a lock, input from elsewhere",
    ),
    THREADS: Words(
        "wait",
        "{} longer for other threads",
        "of CPU time of other threads",
        "balance the work of {their} threads, or give them cores",
    ),
    IN_FILES: Words(
        "wait",
        "{} longer for files",
        "in calls on files",
        "look at what {do} with files, and on which file system",
    ),
    DISK: Words(
        "wait",
        "{} longer for a disk",
        "waiting for it",
        "look at what {do} with files outside MPI, and on which file system",
    ),
}


class Reason(namedtuple("Reason", "kind own_ns others_ns where", defaults=["outside MPI"])):
    """own_ns, others_ns: mean time of this kind outside MPI, or before the wait at marks, of the
    named ranks, and the others."""

    @property
    def longer_ns(self) -> float:
        return self.own_ns - self.others_ns


def reason(
    connection: Connection,
    ranks: Collection[int],
    also_late: Collection[int] = (),
    last: Last | None = None,
) -> Reason | None:
    """It considers the whole run, whatever was selected. also_late: ranks that are late elsewhere,
    with which these are not compared. last: they are last at marks; then the main thread is taken
    to wait, blocked, from its mark to the last one of the step; what the readings found it doing
    there and elsewhere is not known."""
    times = cpu_times(connection)
    if last:
        times = {
            rank: _waiting(row, last.waits_ns[rank])
            for rank, row in times.items()
            if row.is_of_main and rank in last.waits_ns
        }
    own = [row for rank, row in times.items() if rank in ranks]
    others = [row for rank, row in times.items() if rank not in ranks and rank not in also_late]
    if len(own) < len(ranks) or not own or not others:
        return None
    unread_share = 0.0 if last else None
    found = compared(*(use_of(rows)._replace(unread_share=unread_share) for rows in (own, others)))
    is_on_gpu = connection.execute("SELECT 1 FROM gpu_device").fetchone() is not None
    # a rank that waits for its GPU spins on a core or sleeps
    if found is None or is_on_gpu and found.kind != LOST_CORE:
        return None
    # the mean CPU time of the other threads of these ranks' processes
    used_ns = {row.rank: row.cpu_ns or 0 for row in core_uses(connection)}
    beside_ns, others_ns = (
        fmean(max(0, used_ns.get(row.rank, 0) - row.core_ns) for row in rows)
        for rows in (own, others)
    )
    # of the other threads only the time on a core is known: they lack one as often as this one
    is_ready = 1 - use_of(own).wait_rate
    if found.kind == ASLEEP and beside_ns - others_ns >= SHARE * is_ready * found.longer_ns:
        return Reason(THREADS, beside_ns, others_ns, "in the whole run")
    return found._replace(where="before the wait") if last else found


def in_files(lines: Lines, ranks: Collection[int]) -> Reason | None:
    """Most of what these ranks spend more in their own time is in calls of MPI on files."""
    spent = [(rank in ranks, line.sums[-1]) for rank, line in lines.items()]
    own_ns, others_ns = (
        np.mean([ns for is_own, ns in spent if is_own == each] or [[0] * COUNT], axis=0)
        for each in (True, False)
    )
    more_ns = np.maximum(0, own_ns - others_ns)
    is_most = more_ns[FILES] >= SHARE * more_ns[[OUTSIDE, TRANSFER, FILES]].sum()
    found = Reason(IN_FILES, float(own_ns[FILES]), float(others_ns[FILES]), "of MPI")
    return found if is_most and more_ns[FILES] else None


def call_reasons(
    connection: Connection, calls: Sequence[CallCause]
) -> dict[tuple[int, ...], Reason]:
    """By the ranks that are late in single calls, as far as reasons are known."""
    all_late = {rank for each in calls for rank in each.named.ranks}
    found = {each.named.ranks: reason(connection, each.named.ranks, all_late) for each in calls}
    return {ranks: why for ranks, why in found.items() if why}


def _waiting(row: CpuTimeRow, wait_ns: int) -> CpuTimeRow:
    counted_ns = row.inside_ns + row.outside_ns
    wait_ns = min(wait_ns, counted_ns)
    readings = dict.fromkeys(
        (name for name in CpuTimeRow._fields if name.startswith(("outside_", "inside_"))), 0
    )
    return row._replace(**readings | {"inside_ns": wait_ns, "outside_ns": counted_ns - wait_ns})


def compared(own: Use, others: Use) -> Reason | None:
    """The kind that most of the excess is, by the bounds that are known and by the times that are
    said."""
    longer_ns = own.outside_ns - others.outside_ns
    if longer_ns < NOTABLE * own.counted_ns:
        return None
    core_ns, others_core_ns = (use.ready_ns - use.outside_wait_ns for use in (own, others))
    idle = DISK if own.outside_disk > SHARE * own.outside_blocked else ASLEEP
    (ready_ns, _), (_, others_ready_ns) = own.ready_bounds_ns, others.ready_bounds_ns
    # as if these ranks had waited for a core only outside MPI, and the others never
    computing_ns = ready_ns - min(ready_ns, own.core_wait_ns) - others_ready_ns
    # than the same computation takes a rank that waits for a core as often as the others do
    more = max(0.0, own.wait_rate - others.wait_rate)
    lost_ns = ready_ns * more / (1 - others.wait_rate) if more else 0.0
    by_bounds = (
        (
            own.blocked_bounds_ns[0] - others.blocked_bounds_ns[1],
            Reason(idle, own.blocked_ns, others.blocked_ns),
        ),
        (computing_ns, Reason(COMPUTES, core_ns, others_core_ns)),
        (lost_ns, Reason(LOST_CORE, own.outside_wait_ns, others.outside_wait_ns)),
        (ready_ns - others_ready_ns, Reason(READY, own.ready_ns, others.ready_ns)),
    )
    return next(
        (why for sure_ns, why in by_bounds if min(sure_ns, why.longer_ns) >= SHARE * longer_ns),
        None,
    )


def longer_text(found: Reason, number: int) -> str:
    """sleeps 2.48 s longer. number: of the ranks."""
    words, longer = WORDS[found.kind], units.duration(found.longer_ns)
    return f"{units.agreeing(words.do, number)} {words.longer.format(longer)}"


def reason_text(found: Reason) -> str:
    """2.60 s asleep outside MPI, the others 122 ms on average"""
    own, others = units.duration(found.own_ns), units.duration(found.others_ns)
    return f"{own} {WORDS[found.kind].how} {found.where}, the others {others} on average"


def remedy(kind: str, ranks: Sequence[int]) -> str:
    do, them, their = (units.agreeing(words, len(ranks)) for words in ("they do", "them", "their"))
    return WORDS[kind].remedy.format(do=do, them=them, their=their)


SUMS = (  # of its waits
    Field("ranks", "ranks read and selected"),
    Field(
        "collectives",
        "as in `--by rank`, of the run",
    ),
    Field("message_calls", ""),
    Field(
        "total_ns",
        "exact time inside MPI (without set-up) and in NCCL's operations on the device",
    ),
    Field("sampled_ns", "the time of these collectives and calls"),
    Field(
        "coverage",
        "(wait + transfer) / total_ns, without calls that create communicators before a rank's "
        "first other call: the part that was split",
    ),
    Field(
        "sampled_share",
        "sampled_ns / (wait + transfer). The verdict is based on coverage x sampled_share of the "
        "time",
    ),
    Field("wait_ns", "of what was split, scaled"),
    Field("transfer_ns", ""),
    Field("wait_share", ""),
    Field("share_of_wall", "(wait + transfer) / the ranks' counted time"),
    Field("estimate_share", "part of both that was split by durations"),
    Field("background_share", "part of the time inside MPI on threads other than the main one"),
    Field("counted_ns", "counted time, all ranks"),
    Field(
        "transfer_calls",
        "the fewest analysed calls that have half of transfer_ns together",
    ),
)
LATE = (
    *SUMS,
    Field(
        "negotiated_share",
        "part of total_ns on threads that [negotiate](METHODS.md#negotiation), which the "
        "verdict leaves out",
    ),
    Field("unknown_cause_ns", "the part of wait_ns whose cause is not known"),
    Field(
        "together_share",
        "share of the time in which all calls of main threads are sampled; causes are sought "
        "only there",
    ),
    Field(
        "unsure",
        "operations not split: the clocks are too inaccurate, or their root was not read",
    ),
    Field(
        "uncompleted",
        "nonblocking operations not split: the call that completed them is not sampled",
    ),
    Field(
        "unmatched",
        "messages whose other side is not known, each side counted; receives among them without "
        "a [number](#sample-single-calls)",
    ),
    Field("unnumbered", ""),
    Field(
        "clocks",
        "clocks; groups of them that no collective connects with the first",
    ),
    Field("unconnected_clocks", ""),
    Field(
        "error_ns",
        "bound of the error of two ranks' arrivals",
    ),
    Field("verdict", "[Verdicts](METHODS.md#verdicts)"),
    Field(
        "late_ranks",
        "the ranks named, their hosts, their programs (null if all run one); null: nobody",
    ),
    Field("late_hosts", ""),
    Field("late_programs", ""),
    Field(
        "late_share",
        "what they cause, over all waiting; at marks their distances where they are last, over "
        "all such distances",
    ),
    Field(
        "late_progress_share",
        "the part of what ranks wait for them that is in state `no progress`",
    ),
    Field(
        "late_gain_ns",
        "how much shorter the run would be had they taken no longer than the others "
        "([re-timing](METHODS.md#re-timing)). At marks: sum over the judged steps of the last of "
        "them less the last of the others",
    ),
    Field(
        "late_gain_share",
        "the share of the run that was played for late_gain_ns, which is scaled; null at marks",
    ),
    Field("late_p", "the probability of chance, corrected"),
    Field(
        "late_region",
        "the region with over half of what they spend more outside MPI than the others",
    ),
    Field(
        "late_mark",
        "with verdict `marks`: `negotiation` (hand-overs), the path of the wait region, or "
        "`commprof_step`",
    ),
    Field(
        "late_mark_steps",
        "judged steps (visits); in how many the named ranks are last",
    ),
    Field("late_mark_times", ""),
    Field("late_mark_lead_ns", "median of their distance in these"),
    Field("blocks", "blocks of the test"),
    Field(
        "unjudged",
        "sampled collectives of NCCL without times of the device on some rank",
    ),
    Field(
        "finalize_wait_ns",
        "how long all ranks waited in `MPI_Finalize` for the last one (in no other figure; 0: "
        "not known); that rank",
    ),
    Field("finalize_last_rank", ""),
    Field("slow_link_sender", "the slowest [link](METHODS.md#slow-links) that costs notably"),
    Field("slow_link_receiver", ""),
    Field("slow_link_times", ""),
    Field("slow_link_excess_ns", ""),
    Field(
        "slow_size_call",
        "the [slow size](METHODS.md#slow-links): call, bytes, how many times as long, excess in "
        "all calls of a rank",
    ),
    Field("slow_size_bytes", ""),
    Field("slow_size_times", ""),
    Field("slow_size_excess_ns", ""),
    Field(
        "late_reason",
        "[why they are late](METHODS.md#why-a-rank-is-late)",
    ),
    Field(
        "late_reason_ns",
        "time of this kind, mean over these ranks, over the others",
    ),
    Field("late_reason_others_ns", ""),
    Field("parallel_efficiency", AS_EVERYWHERE),
    Field("load_balance", ""),
    Field("communication_efficiency", ""),
    Field("serialization", ""),
    Field("transfer_efficiency", ""),
    Field("efficiency_share", "the share of the run that was played for the efficiencies"),
)
sums_row = row_type("LateRunRow", SUMS)


def late_row(**known: Any) -> Row:
    """Columns that are not known, as of ranks where none is named, are None."""
    return row_type("LateRow", LATE)(**{**dict.fromkeys(keys(LATE)), **known})

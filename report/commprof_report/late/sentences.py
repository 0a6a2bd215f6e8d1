"""The verdict of `late` in words, for every command that speaks about waiting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from ..base import units
from ..base.arrays import np
from ..base.field import Row
from ..base.present import Unknown, present
from ..base.thresholds import threshold
from ..run.crowding import scheduling_text
from .judgement import Kind, is_few_transfers
from .late_ranks import Late, LateRow
from .marks import HANDED, NOTABLE_LEAD, Last
from .reasons import reason_text
from .verdict import (
    COVERED,
    FEWEST_BLOCKS,
    FEWEST_TRANSFERS,
    MAJORITY,
    NOTABLE,
    SHORTEST_NS,
    CallCause,
    Named,
    When,
    is_concentrated,
    is_later,
    when,
)

ALL = threshold("base.all")
NOTABLE_SHARE = threshold("late.rest")


POLLS = (
    "MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Iprobe", "MPI_Improbe",
    "MPI_Request_get_status",
)
PROGRESS = (
    "test them in between (MPI_Test), or use an asynchronous progress thread (MPICH: "
    "MPICH_ASYNC_PROGRESS=1, Intel MPI: I_MPI_ASYNC_PROGRESS=1)"
)
LINK = (
    "look at what lies between the two: placement on other sockets, switches or hosts, a cable, an "
    "adapter"
)
MARK = "a mark where the main thread begins to wait for its gradients (commprof_step(3))"
WILDCARDS = (
    "as of receives with MPI_ANY_SOURCE or MPI_ANY_TAG (mpi4py's default) that are pending together"
)


def verdict(answers: Late) -> str:
    """One sentence; every command that speaks about waiting prints this one."""
    return str(answer(answers))


def answer(answers: Late) -> str | Unknown:
    return ANSWERS[answers.run.verdict](answers)


def little_text(answers: Late) -> str:
    return (
        f"calls in which ranks wait for each other take {units.share(answers.run.share_of_wall)} "
        "of counted time: no rank waits notably in them"
    )


def by_call_text(answers: Late) -> str:
    said = ", ".join(call_text(answers, each) for each in answers.blame.calls)
    return f"different ranks are late in different calls: {said}{whys_text(answers)}"


def spread_text(answers: Late) -> str:
    if answers.blame.named:
        return hardly_text(answers.blame.named)
    if answers.serving:
        return f"no rank is late: {serving_text(answers.serving)}"
    found = when(answers.costs, answers.costs)
    few = f"; nearly all waiting is in {few_text(found)}" if found.few else ""
    return most_text(answers) or (
        "waiting is spread: no single rank, host or call is to blame; "
        f"{largest_text(answers)}{few}"
    )


def _factors(row: Row) -> list[tuple[float, str]]:
    return [
        (present(row.load_balance), "load balance"), (present(row.serialization), "serialization"),
        (present(row.transfer_efficiency), "transfer"),
    ]


def efficiency_text(row: Row) -> str:
    """61.2 % = 70.0 % load balance x 95.0 % serialization x 92.0 % transfer; empty: not known"""
    if row.parallel_efficiency is None:
        return ""
    factors = " x ".join(f"{units.share(value)} {name}" for value, name in _factors(row))
    return f"{units.share(row.parallel_efficiency)} = {factors}"


def least_factor_text(row: Row) -> str:
    """load balance 70.0 %"""
    if row.parallel_efficiency is None:
        return units.NO_VALUE
    value, name = min(_factors(row))
    return f"{name} {units.share(value)}"


def transfer_text(answers: Late) -> str:
    """65.5 % is transfer, 34.5 % waiting; ..."""
    row, also = answers.run, ""
    if row.late_ranks is not None:
        also = f"; {blamed_text(answers)}"
    elif is_unknown(row):
        also = f"; {unknown_cause_text(row)}"
    waiting = present(row.wait_share)
    return (
        f"transfer dominates: {units.share(1 - waiting)} is transfer, {units.share(waiting)} "
        f"waiting{moving_text(answers)}{few_transfers_text(row)}{also}"
    )


def moving_text(answers: Late) -> str:
    """Clause on why transfer may take long, if there is more to say than messages and network."""
    if is_in_files(answers):
        return "; most transfer is reading and writing of files"
    if answers.links:
        return f"; {link_text(answers)}"
    if answers.crowding:
        ranks = scheduling_text(answers.crowding)
        return f"; ranks {ranks}, so scheduling may be part of both"
    return ""


def named_text(answers: Late) -> str:
    why = "no progress" if is_held_up(answers.run) else "load imbalance"
    if is_through_link(answers):
        why = f"a slow link: {link_text(answers)}"
    return f"{why}: {blamed_text(answers)}"


def blamed_text(answers: Late) -> str:
    """rank 3 on node01 causes 66.7 % of the waiting, ...; why: the ranks that are named."""
    row = answers.run
    who, share = late_text(row), present(row.late_share)
    more = f"{chain_text(row)}{nearly_all_text(when_of_named(answers))}{outside_text(answers)}"
    causes = units.agreeing("cause", len(present(row.late_ranks)))
    said = (
        shares_text(who, share, present(row.late_others_share), more) if is_mostly(row)
        else f"{who} {causes} {units.share(share)} of the waiting{more}"
    )
    return f"{said}{why_text(answers)}"


def hardly_text(named: Named) -> str:
    causes, they = (units.agreeing(word, len(named.ranks)) for word in ("cause", "they"))
    short = "" if named.is_measurable else f", or {units.duration(SHORTEST_NS)} at each arrival,"
    return (
        f"{units.rank_names(named.ranks)} {causes} {units.share(named.share)} of the "
        "waiting, but others arrive hardly earlier: less"
        f" than {units.share(NOTABLE)} of the run{short} could be gained if {they} "
        "arrived with the next rank"
    )


def serving_text(named: Named) -> str:
    causes, serve = (units.agreeing(words, len(named.ranks)) for words in ("cause", "they serve"))
    return (
        f"{units.rank_names(named.ranks)} {causes} {units.share(named.share)} of the waiting by "
        f"messages with which {serve} the others, not by time outside MPI"
    )


def why_text(answers: Late) -> str:
    """Why the named ranks are late."""
    ranks = answers.run.late_ranks or ()
    # others were told of last
    who = units.rank_names(ranks, None) if is_mostly(answers.run) else ""
    why = reason_text(answers.reason, ranks, who)
    return why and f"; {why}"


def whys_text(answers: Late) -> str:
    """Likewise those that are named in single calls."""
    said = [
        reason_text(found, ranks, units.rank_names(ranks))
        for ranks, found in answers.call_reasons.items()
    ]
    return "; " * bool(said) + ", ".join(said)


def marks_text(last: Last) -> str:
    """rank 1 reaches the mark last in 59 of 59 steps, 60.1 ms (median) after the mean of the
    others. Without ranks that are last beyond chance: the one that is behind the most."""
    point, judged = mark_text(last.region), judged_text(last)
    if last.ranks:
        return reaches_text(
            last.ranks, point, last.times, judged, present(last.lead_ns), last.share
        )
    if last.leader is None:
        notable = units.share(NOTABLE_LEAD)
        return f"no rank {reaching(point)} {notable} of a step after the others, in {judged}"
    rank = reaches_text(
        [last.leader], point, last.times, judged, present(last.lead_ns), MAJORITY
    )
    nobody = "no rank is late beyond chance" if last.p is None else "no single rank is to blame"
    return (
        f"{nobody}: {rank}; that is {units.share(last.share)} of what the last ranks are behind"
    )


def reaches_text(
    ranks: Sequence[int], point: str, times: int, judged: str, lead_ns: float, share: float
) -> str:
    """share: of what the last ranks are behind; less than half of it: mostly rank 3 (41.0 % of what
    the last ranks are behind) reaches the mark last ..., others together 59.0 %"""
    who, others = units.rank_names(ranks, None), ""
    if share < MAJORITY:
        who = f"mostly {who} ({units.share(share)} of what the last ranks are behind)"
        others = f", others together {units.share(1 - share)}"
    return (
        f"{who} {reaching(point, len(ranks))} last in {times:,} of {judged}, "
        f"{units.duration(lead_ns)} (median) after the mean of the others{others}"
    )


def reaching(point: str, ranks: int = 1) -> str:
    """reaches the mark; hand their gradients over"""
    if point == mark_text(HANDED):
        return f"{units.agreeing('hand their', ranks)} gradients over"
    return f"{units.agreeing('reach', ranks)} {point}"


def is_in_files(answers: Late) -> bool:
    """Most of the transfer is in calls on files."""
    calls = answers.stages.split.known.calls
    files_ns = sum(
        row.transfer_ns or 0 for row in answers.calls
        if row.call in calls and calls[row.call].family == "io"
    )
    return files_ns >= MAJORITY * max(1, answers.run.transfer_ns)


def mark_text(region: str) -> str:
    if region == HANDED:
        return "the hand-over of gradients"
    return f"region '{units.shortened(region, 32)}'" if region else "the mark"


def inside_text(region: str) -> tuple[str, str]:
    """The time of a step before and after the wait for its gradients begins."""
    if region == HANDED:
        return "until all gradients are handed over", "from then to the end of the sums"
    return f"outside {mark_text(region)}", "in it"


def judged_text(last: Last, text: Callable[[float, str], str] = units.counted) -> str:
    return text(last.judged, "visit" if last.region not in ("", HANDED) else "step")


def largest_text(answers: Late) -> str:
    rank, share, _ = main_cause(answers)
    return f"rank {rank} causes the most, {units.share(share)}"


def when_of_named(answers: Late) -> When:
    """A rank is late in few of those collectives that it takes part in."""
    ranks, costs = present(answers.blame.named).ranks, answers.costs
    theirs = [
        identity for identity, members in answers.participants.members.items()
        if not set(ranks).isdisjoint(members)
    ]
    return when(costs.of(ranks), costs.take(np.isin(costs.identity, theirs)))


def nearly_all_text(found: When) -> str:
    """, nearly all of it in 8 of 208 late arrivals"""
    return f", nearly all of it in {few_text(found)}" if found.few else ""


def few_text(found: When) -> str:
    """8 of 208 late arrivals"""
    return f"{found.few:,} of {units.counted(found.late_arrivals, 'late arrival')}"


def chain_text(row: LateRow) -> str:
    """Sentence on ranks that were late because they waited for the named ranks."""
    if row.late_through is None:
        return ""
    indirect = units.share(present(row.late_share) - present(row.late_direct_share))
    return (
        f", {units.share(row.late_direct_share)} directly and {indirect} through "
        f"{units.rank_names(row.late_through, 24)}"
    )


def link_text(answers: Late) -> str:
    """messages from rank 1 to rank 2 take 9.1 times as long as between others, 806 ms more; empty:
    no link is slow"""
    if not answers.links:
        return ""
    link, more = answers.links[0], len(answers.links) - 1
    others = f" (and of {units.counted(more, 'more pair')})" if more else ""
    between = f"from rank {link.sender} to rank {link.receiver}"
    return (
        f"messages {between}{others} take {link.times:,.{int(link.times < 10)}f} times as long as "
        f"between others, {units.duration(link.excess_ns)} more"
    )


def is_through_link(answers: Late) -> bool:
    """The named ranks lose at slow links most of what the others wait for them."""
    if answers.blame.named is None or answers.run.late_gain_ns is None:
        return False
    ranks = {*answers.blame.named.ranks}
    own = [link for link in answers.links if ranks & {link.sender, link.receiver}]
    lost_ns = max((link.excess_ns for link in own), default=0.0)
    is_all = all(any(rank in (link.sender, link.receiver) for link in own) for rank in ranks)
    return is_all and lost_ns >= MAJORITY * answers.run.late_gain_ns


def is_held_up(row: LateRow) -> bool:
    """The others wait for the named ranks mostly in operations that these have begun."""
    return (row.late_progress_share or 0.0) >= MAJORITY


def outside_text(answers: Late) -> str:
    """Clause on named ranks that have begun what the others wait for."""
    row = answers.run
    if not is_held_up(row):
        return ""
    ranks = present(answers.blame.named).ranks
    they = units.agreeing("they are", len(ranks))
    return f": {they} outside MPI between {_started(ranks, answers)}"


def _started(ranks: Sequence[int], answers: Late) -> str:
    call = next(call for rank, call in answers.held_up if rank in ranks)
    side = "its receive for " if "send" in call else "its send for " if "recv" in call else ""
    return f"{side}{call} and the call that completes it"


def held_up_text(answers: Late) -> str:
    """1.92 s of the waiting, 97.1 % of it for rank 1 between MPI_Iallreduce and the call that
    completes it; empty: it is not notable."""
    whole_ns = answers.held_up_ns
    if whole_ns < NOTABLE * answers.run.counted_ns or not whole_ns:
        return ""
    by_rank: defaultdict[int, int] = defaultdict(int)
    for (rank, _), ns in answers.held_up.items():
        by_rank[rank] += ns
    rank = max(by_rank, key=lambda rank: (by_rank[rank], -rank))
    return (
        f"{units.duration(whole_ns)} of waiting for ranks outside MPI, "
        f"{units.share(by_rank[rank] / whole_ns)} of it for rank {rank} between "
        f"{_started([rank], answers)}"
    )


def on_text(answers: Late, identity: str) -> str:
    """Named where calls are made on several communicators."""
    labels = {call.identity: call.communicator for call in answers.calls}
    return f" on {labels.get(identity, identity)}" if len(labels) > 1 else ""


def call_text(answers: Late, cause: CallCause) -> str:
    """rank 1 in MPI_Allreduce; or mostly rank 1 in MPI_Allreduce (41.0 % of the waiting there)"""
    named, where = cause.named, f"{cause.call}{on_text(answers, cause.identity)}"
    text = f"{units.rank_names(named.ranks)} in {where}"
    if not named.is_mostly:
        return text
    return f"mostly {text} ({units.share(named.share)} of the waiting there)"


def nothing(answers: Late) -> str | Unknown:
    row = answers.run
    if answers.processes == 1:
        return "one rank: there is nobody to wait for"
    if not row.total_ns and answers.is_untimed:
        return Unknown("NCCL's collectives were not timed on the device (the GPU was not traced)")
    if not row.total_ns:
        return (
            f"no {'finished ' if answers.unfinished else ''}call that makes ranks wait for each "
            "other"
        )
    if len(answers.timelines) == 1:
        return Unknown(
            f"1 of {answers.processes:,} processes that communicate was read; for whom it waits is "
            "not known"
        )
    if answers.unsampled:
        return Unknown(answers.unsampled)
    return Unknown(f"no call was split into waiting and transfer: {rest_text(answers)}")


def unknown(answers: Late) -> Unknown:
    row = answers.run
    if answers.is_negotiated and answers.last:
        return Unknown(
            f"{judged_text(answers.last, units.are)} too few to tell from chance who "
            f"{reaching(mark_text(answers.last.region))} last"
        )
    if answers.is_negotiated:
        return Unknown(
            f"{units.share(row.negotiated_share)} of the time inside MPI is on a thread "
            "that negotiates, which joins each call in time; Horovod's cache "
            "(HOROVOD_CACHE_CAPACITY not 0), or a region 'wait ...' around the wait for gradients "
            "(commprof_step(3)), shows who is late and what is exposed",
            MARK,
        )
    if present(row.coverage) < COVERED:
        return Unknown(
            f"only {units.share(row.coverage)} of the time inside MPI is in calls "
            "whose waiting is known"
        )
    is_transfer = row.wait_ns < max(row.transfer_ns, NOTABLE * row.counted_ns)
    if is_transfer and is_few_transfers(row.transfer_calls, row.sampled_share):
        return Unknown(
            f"half of the transfer is that of {analysed_text(row)}, too few to stand for "
            f"the calls that were not sampled, {units.share(1 - present(row.sampled_share))} of "
            "the time"
        )
    if row.blocks < FEWEST_BLOCKS:
        return Unknown(
            f"{units.are(row.blocks, 'late arrival')} too few to tell a cause from chance; "
            f"{largest_text(answers)}"
        )
    return Unknown(f"{unknown_cause_text(row)}; {largest_text(answers)}")


def few_transfers_text(row: LateRow) -> str:
    """Few calls, if half of the transfer is there."""
    analysed = row.collectives + row.message_calls
    is_few = row.transfer_calls < FEWEST_TRANSFERS and is_concentrated(row.transfer_calls, analysed)
    return f"; half of the transfer is that of {analysed_text(row)}" * is_few


def analysed_text(row: LateRow) -> str:
    """1 of 120 analysed calls"""
    analysed = row.collectives + row.message_calls
    return f"{row.transfer_calls:,} of {units.counted(analysed, 'analysed call')}"


def is_unknown(row: LateRow) -> bool:
    """Waiting is notable, and the cause of half of it or more is not known."""
    return (
        row.wait_ns >= NOTABLE * row.counted_ns
        and row.unknown_cause_ns >= COVERED * row.wait_ns > 0
    )


def unknown_cause_text(row: LateRow) -> str:
    together = (
        f", since all calls of a rank are sampled in {units.share(row.together_share)} of "
        "its time only"
    )
    return (
        f"the cause of {units.share(row.unknown_cause_ns / row.wait_ns)} of the waiting is not "
        f"known{together * (row.together_share < ALL)}"
    )


def unfinished_text(answers: Late) -> str:
    has, its = (units.agreeing(word, len(answers.unfinished)) for word in ("have", "their"))
    return f"{units.rank_names(answers.unfinished)} {has} not returned from {its} last call"


def part_text(row: LateRow) -> str:
    return "all" if present(row.coverage) >= ALL else units.share(row.coverage)


def basis_text(row: LateRow) -> str:
    """98.2 % of the time inside MPI; or, where samples stand for more calls: 5.1 % of the time
    inside MPI in 25 collectives, scaled to 98.2 %"""
    if present(row.sampled_share) >= ALL:
        return f"{part_text(row)} of the time inside MPI"
    sampled = units.share(present(row.coverage) * present(row.sampled_share))
    return f"{sampled} of the time inside MPI in {calls_text(row)}, scaled to {part_text(row)}"


def calls_text(row: LateRow) -> str:
    """25 collectives and 50 calls for messages"""
    said = [units.counted(row.collectives, "collective")] if row.collectives else []
    if row.message_calls:
        said.append(f"{units.counted(row.message_calls, 'call')} for messages")
    return " and ".join(said)


AS_CLOCKS = (
    "the ranks of a host may be late by as much each time, which looks like a clock that is off"
)


def notable_rest(answers: Late) -> dict[str, int]:
    notable_ns = NOTABLE_SHARE * answers.run.total_ns
    return {call: ns for call, ns in answers.rest.items() if ns > notable_ns}


def rest_text(answers: Late) -> str:
    """2.1 s per rank in MPI_Recv, 0.2 s in MPI_Wait"""
    row = answers.run
    said = [
        f"{units.duration(ns / row.ranks)} per rank in {call}"
        for call, ns in notable_rest(answers).items()
    ]
    why = [
        (row.unsure, "{} whose clocks are too inaccurate or whose root was not read", "operation"),
        (
            row.uncompleted, "{} whose request was freed, or whose completing call is not sampled",
            "nonblocking operation",
        ),
        (row.unmatched, "{} whose other side is not known", "message"),
    ]
    reasons = [text.format(units.counted(number, noun)) for number, text, noun in why if number]
    if row.unnumbered >= threshold("late.wildcards") * row.unmatched > 0:
        reasons[-1] += f", {WILDCARDS}"
    if row.unsure >= FEWEST_BLOCKS and row.clocks > 1 and not answers.is_known:
        reasons.append(AS_CLOCKS)
    polls = (
        ["polls, between which a rank may work"]
        if not notable_rest(answers).keys().isdisjoint(POLLS) else []
    )
    return "; ".join([", ".join(said), *polls, *reasons])


def late_text(row: LateRow) -> str:
    """rank 3 (ocean) on node01"""
    if row.late_ranks is None:
        return ""
    program = f" ({row.late_programs})" if row.late_programs else ""
    place = f" on {row.late_hosts}" if row.late_hosts and len(row.late_hosts) == 1 else ""
    return f"{units.rank_names(row.late_ranks, None)}{program}{place}"


def is_mostly(row: LateRow) -> bool:
    """Ranks are named that cause less than half of the waiting."""
    return row.late_share is not None and row.late_share < MAJORITY


def shares_text(who: str, share: float, others_share: float, more: str = "") -> str:
    """mostly rank 3 (41.0 % of the waiting), others together 59.0 %"""
    unknown = 1 - share - others_share
    rest = f", no known cause {units.share(unknown)}" if unknown >= NOTABLE else ""
    others = f"others together {units.share(others_share)}"
    return f"mostly {who} ({units.share(share)} of the waiting{more}), {others}{rest}"


def main_cause(answers: Late) -> tuple[int, float, float]:
    """The rank that causes most of the waiting of all ranks, whatever ranks were selected; its
    share, and that of unknown cause."""
    whole_ns, caused_ns = answers.costs.whole_ns or 1, answers.costs.caused_ns
    unknown_ns = caused_ns.pop(None, 0.0)
    rank = max(caused_ns, key=lambda rank: (caused_ns[rank], -present(rank)), default=None) or 0
    return rank, caused_ns.get(rank, 0.0) / whole_ns, unknown_ns / whole_ns


def most_text(answers: Late) -> str | None:
    """Sentence on a rank that causes half of the waiting, or may do so, though not beyond chance.
    None: no rank does, or some are named."""
    rank, share, unknown_share = main_cause(answers)
    if (
        answers.run.verdict is not Kind.SPREAD or answers.blame.named or answers.serving
        or share + (unknown_share if unknown_share >= NOTABLE else 0) < MAJORITY
    ):
        return None
    text = f"rank {rank} causes {units.share(share)} of the waiting"
    if share < MAJORITY:
        return (
            f"no rank is named: {text}, but the cause of {units.share(unknown_share)} is not known"
        )
    text = f"no rank is late beyond chance: {text}"
    if not is_later(answers.costs, rank):
        return f"{text}, but the others are late, too, where nobody waits for them"
    return f"{text}{nearly_all_text(when(answers.costs.of([rank]), answers.costs))}"


ANSWERS: Mapping[Kind, Callable[[Late], str | Unknown]] = {
    Kind.NONE: nothing, Kind.UNKNOWN: unknown, Kind.LITTLE: little_text,
    Kind.TRANSFER: transfer_text, Kind.IMBALANCE: named_text, Kind.MOSTLY: named_text,
    Kind.BY_CALL: by_call_text, Kind.SPREAD: spread_text,
    Kind.MARKS: lambda answers: f"{marks_text(present(answers.last))}{why_text(answers)}",
}

"""The verdict of `late` in words: the headline with which reports begin, and what qualifies it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..base import Row, Unknown, np, present, threshold, units
from ..run.crowding import scheduling_text
from .judgement import Kind, is_few_transfers, longer_text, reason_text, schedulers_ns
from .late_ranks import Late
from .marks import HANDED, NOTABLE_LEAD, Last
from .verdict import (
    COVERED,
    FEWEST_BLOCKS,
    MAJORITY,
    NOTABLE,
    SHORTEST_NS,
    CallCause,
    Named,
    enough_arrivals,
    is_too_few,
    late_arrivals,
    main_arrivals,
    main_cause,
    when,
)

ALL = threshold("base.all")
NOTABLE_SHARE = threshold("late.rest")
MOST_CALLS = 2  # in the headline
UNKNOWN = Kind.NONE, Kind.UNKNOWN, Kind.CORES


PROGRESS = (
    "test them in between (MPI_Test), or use an asynchronous progress thread (MPICH: "
    "MPICH_ASYNC_PROGRESS=1, Intel MPI: I_MPI_ASYNC_PROGRESS=1)"
)
LINK = (
    "look at what lies between the two: placement on other sockets, switches or hosts, a cable, an "
    "adapter"
)


def headline(late: Late) -> str:
    """The greatest cost, what would be gained, and how sure that is, in at most 25 words. Every
    report that speaks about waiting begins with it."""
    return f"{units.capital(verdict_text(late))}."


def verdict_text(late: Late) -> str:
    """The same within a sentence."""
    return HEADLINES[late.run.verdict](late)


def is_crowded(late: Late) -> bool:
    return bool(late.crowding)


def details(late: Late) -> list[tuple[str, str]]:
    """The lines that qualify the headline, as far as they have a text."""
    is_named, why = late.run.late_ranks is not None, not_known(late)
    to_know = why and why.needs and f"{why.needs} shows who is late and what is exposed"
    said = (
        ("Cause", cause_text(late)),
        ("Why", reason_text(late.reason) if is_named and late.reason else ""),
        ("To know it", to_know or ""),
    )
    return [(head, text) for head, text in said if text]


def lacks_cores(late: Late) -> bool:
    return late.run.verdict is Kind.CORES


def by_call_headline(late: Late) -> str:
    calls = late.blame.calls
    said = [
        f"{units.rank_names(each.named.ranks, 16)} in {where_text(late, each)}"
        for each in calls[:MOST_CALLS]
    ]
    said += [f"{len(calls) - MOST_CALLS} more"] * (len(calls) > MOST_CALLS)
    return f"different ranks are late in different calls: {', '.join(said)}"


def spread_headline(late: Late) -> str:
    if named := late.blame.named:
        return cheap_text(late, named)
    if named := late.serving:
        causes = f"{units.agreeing('cause', len(named.ranks))} {units.share(named.share)}"
        return (
            f"no rank is late: {units.rank_names(named.ranks, 24)} {causes} of the waiting by "
            "serving the others with messages"
        )
    rank, share, unknown_share = main_cause(late.costs)
    if unknown_share >= NOTABLE and share < MAJORITY <= share + unknown_share:
        return (
            f"no rank is named: rank {rank} causes {units.share(share)} of the waiting, the cause "
            f"of {units.share(unknown_share)} is not known"
        )
    return (
        "no rank is late beyond chance: ranks wait for "
        f"{units.share(late.run.wait_ns / late.run.counted_ns)} of the time, rank {rank} causes "
        f"{units.share(share)} of that, the most"
    )


def cheap_text(late: Late, named: Named) -> str:
    """rank 7 is late, but that costs 0.14 % of the run: it causes 12.0 % of the waiting, in 190 of
    200 late arrivals"""
    number, row = len(named.ranks), late.run
    are, they_cause = (units.agreeing(words, number) for words in ("are", "they cause"))
    often = f"{late_arrivals(late.costs.of(named.ranks)):,} of {late_arrivals(late.costs):,}"
    cost = f"that costs {units.share(named.gain_ns * row.ranks / row.counted_ns)} of the run"
    if not named.is_measurable:
        cost = f"by less than {units.duration(SHORTEST_NS)} each time"
    return (
        f"{units.rank_names(named.ranks, 24)} {are} late, but {cost}: {they_cause} "
        f"{units.share(named.share)} of the waiting, in {often} late arrivals"
    )


def transfer_headline(late: Late) -> str:
    row = late.run
    moving, waiting = (units.share(ns / row.counted_ns) for ns in (row.transfer_ns, row.wait_ns))
    if late.links:
        return link_text(late)
    if row.slow_size_call:
        shorter = shorter_text(row.slow_size_excess_ns, row)
        return f"{slow_size_text(row)}. At their pace {shorter}"
    known = late.split.known.calls
    files_ns = sum(
        (each.transfer_ns or 0) * (each.call in known and known[each.call].family == "io")
        for each in late.calls
    )
    is_in_files = files_ns >= MAJORITY * max(1, row.transfer_ns)
    what = "reading and writing of files" if is_in_files else "transfer"
    also = f", also for {units.rank_names(row.late_ranks, 24)}" if row.late_ranks else ""
    return f"{what} costs most: {moving} of the time, waiting for ranks {waiting}{also}"


def named_headline(late: Late) -> str:
    row = late.run
    gain = gain_text(row)
    if is_through_link(late):
        return f"{link_text(late)}. {gain}"
    number = len(present(row.late_ranks))
    are, they = (units.agreeing(word, number) for word in ("are", "they"))
    often = "often " * is_mostly(row)
    who = units.rank_names(row.late_ranks, 24)
    return f"{who} {are} {often}late: {they} {does_text(late)}. {gain}"


def does_text(late: Late) -> str:
    """sleeps 3.00 s longer; causes 97.8 % of the waiting"""
    row, number = late.run, len(late.run.late_ranks)
    if is_held_up(row):
        call = next(call for rank, call in late.held_up if rank in row.late_ranks)
        return f"{units.agreeing('make', number)} no progress with {call} while outside MPI"
    if late.reason:
        return longer_text(late.reason, number)
    if late.last:
        often = f"{late.last.times:,} of {judged_text(late.last)}"
        return f"{reaching(late.last.region, number)} last in {often}"
    return f"{units.agreeing('cause', number)} {units.share(row.late_share)} of the waiting"


def gain_text(row: Row) -> str:
    """Without that the run is 1.90 s (13.0 %) shorter"""
    if row.late_gain_ns is None:
        return "What the run would gain is not known"
    if row.late_gain_ns * row.ranks < NOTABLE * row.counted_ns:
        return "Other ranks would be done sooner, the run would not"
    return f"Without that {shorter_text(row.late_gain_ns, row)}"


def shorter_text(gain_ns: float, row: Row) -> str:
    """the run is 1.90 s (13.0 %) shorter"""
    share = units.share(gain_ns * row.ranks / row.counted_ns)
    return f"the run is {units.duration(gain_ns)} ({share}) shorter"


def marks_headline(late: Late) -> str:
    last = present(late.last)
    if last.named:
        return named_headline(late)
    if last.leader is None:
        notable = units.share(NOTABLE_LEAD)
        return f"no rank {reaching(last.region)} {notable} of a step after the others"
    often = f"{last.times:,} of {judged_text(last)}"
    return (
        f"no rank is late beyond chance: rank {last.leader}, the most often, "
        f"{reaching(last.region)} last in {often}"
    )


HEADLINES: Mapping[Kind, Callable[[Late], str]] = {
    **dict.fromkeys(
        (Kind.NONE, Kind.UNKNOWN),
        lambda late: nobody_text(late) or f"who is late is not known: {unknown(late).why}",
    ),
    Kind.LITTLE: lambda late: (
        "no rank waits notably: calls in which ranks may wait take "
        f"{units.share(late.run.share_of_wall)} of the time"
    ),
    Kind.TRANSFER: transfer_headline,
    Kind.IMBALANCE: named_headline,
    Kind.MOSTLY: named_headline,
    Kind.BY_CALL: by_call_headline,
    Kind.SPREAD: spread_headline,
    Kind.MARKS: marks_headline,
    Kind.CORES: lambda late: (
        f"{units.rank_names([rank for each in late.crowding for rank in each.ranks], 24)} "
        f"{scheduling_text(late.crowding)}. Give each rank its own first: until then, other "
        "times may be the scheduler's"
    ),
}


def cause_text(late: Late) -> str:
    """Who causes how much of the waiting, in all that is known; empty: the headline says it."""
    row = late.run
    if row.verdict is Kind.MARKS:
        return marks_text(present(late.last))
    if row.verdict is Kind.BY_CALL:
        return "; ".join(call_text(late, each) for each in late.blame.calls)
    if late.blame.named and row.late_ranks is not None:
        program = f" ({row.late_programs})" if row.late_programs else ""
        place = f" on {row.late_hosts}" if row.late_hosts and len(row.late_hosts) == 1 else ""
        return (
            f"{units.rank_names(row.late_ranks, None)}{program}{place} "
            f"{units.agreeing('cause', len(row.late_ranks))} {units.share(row.late_share)} of the "
            f"waiting{when_text(late)}"
        )
    return ""


def when_text(late: Late) -> str:
    """, nearly all of it in 8 of 208 late arrivals: of those collectives that they take part in"""
    ranks, costs = present(late.blame.named).ranks, late.costs
    members = late.participants.members.items()
    theirs = [identity for identity, own in members if not set(ranks).isdisjoint(own)]
    few, arrived = when(costs.of(ranks), costs.take(np.isin(costs.identity, theirs)))
    arrivals = units.counted(arrived, "late arrival")
    return f", nearly all of it in {few:,} of {arrivals}" if few else ""


def few_text(row: Row) -> str:
    """half of the transfer is in 1 of 120 analysed calls"""
    analysed = units.counted(row.collectives + row.message_calls, "analysed call")
    return f"half of the transfer is in {row.transfer_calls:,} of {analysed}"


def is_mostly(row: Row) -> bool:
    """Ranks are named that cause less than half of the waiting."""
    return row.late_share is not None and row.late_share < MAJORITY


def call_text(late: Late, cause: CallCause) -> str:
    """rank 1 causes 97.0 % of the waiting in MPI_Allreduce"""
    named = cause.named
    causes = units.agreeing("cause", len(named.ranks))
    reason = late.call_reasons.get(named.ranks)
    why = f" ({reason_text(reason)})" if reason else ""
    return (
        f"{units.rank_names(named.ranks)} {causes} {units.share(named.share)} of the waiting in "
        f"{where_text(late, cause)}{why}"
    )


def where_text(late: Late, cause: CallCause) -> str:
    """MPI_Allreduce; where ranks are late in it on several communicators, on which"""
    if [each.call for each in late.blame.calls].count(cause.call) == 1:
        return cause.call
    return f"{cause.call} on {late.split.known.communicators[cause.identity].label}"


def marks_text(last: Last) -> str:
    """rank 1 reaches the mark last in 59 of 59 steps, 60.1 ms (median) after the mean of the
    others. Without ranks that are last beyond chance: the one that is behind the most."""
    if last.leader is None:
        return f"in {judged_text(last)}"
    ranks = last.named.ranks if last.named else (last.leader,)
    return (
        f"{units.rank_names(ranks, None)} {reaching(last.region, len(ranks))} last in "
        f"{last.times:,} of {judged_text(last)}, {units.duration(last.lead_ns)} (median) after the "
        f"mean of the others: {units.share(last.share)} of what the last ranks are behind"
    )


def reaching(region: str, ranks: int = 1) -> str:
    """reaches the mark; hand their gradients over"""
    handed = f"{units.agreeing('hand their', ranks)} gradients over"
    return handed if region == HANDED else f"{units.agreeing('reach', ranks)} {mark_text(region)}"


def mark_text(region: str) -> str:
    named = {HANDED: "the hand-over of gradients", "": "the mark"}
    return named.get(region, f"region '{units.shortened(region, 32)}'")


def inside_text(region: str) -> tuple[str, str]:
    """The time of a step before and after the wait for its gradients begins."""
    handed = "until all gradients are handed over", "from then to the end of the sums"
    return handed if region == HANDED else (f"outside {mark_text(region)}", "in it")


def judged_text(last: Last) -> str:
    return units.counted(last.judged, "visit" if last.region not in ("", HANDED) else "step")


def link_text(late: Late) -> str:
    """messages from rank 1 to rank 2 take 9.1 times as long as others"""
    link = late.links[0]
    return (
        f"messages {link.route} take {link.times:,.{int(link.times < 10)}f} times as long as others"
    )


def slow_size_text(row: Row) -> str:
    """MPI_Allreduce of 64 KiB takes 17 times what its neighbours take, without waiting"""
    if not row.slow_size_call:
        return ""
    times = f"{row.slow_size_times:,.{int(row.slow_size_times < 10)}f}"
    return (
        f"{row.slow_size_call} of {units.size(row.slow_size_bytes)} takes {times}"
        " times what its neighbours take, without waiting"
    )


def links_text(late: Late) -> str:
    """The same, and what they cost."""
    link, more = late.links[0], len(late.links) - 1
    others = f"; so do those of {units.counted(more, 'more pair')}" if more else ""
    return f"{link_text(late)}, {units.duration(link.excess_ns)} more{others}"


def is_through_link(late: Late) -> bool:
    """The named ranks lose at slow links most of what the others wait for them."""
    if late.blame.named is None or late.run.late_gain_ns is None:
        return False
    ranks = {*late.blame.named.ranks}
    own = [link for link in late.links if ranks & {link.sender, link.receiver}]
    lost_ns = max((link.excess_ns for link in own), default=0.0)
    is_all = all(any(rank in (link.sender, link.receiver) for link in own) for rank in ranks)
    return is_all and lost_ns >= MAJORITY * late.run.late_gain_ns


def is_held_up(row: Row) -> bool:
    """The others wait for the named ranks mostly in operations that these have begun."""
    return (row.late_progress_share or 0.0) >= MAJORITY


def held_up_text(late: Late) -> str:
    """1.92 s of the waiting, 97.1 % of it for rank 1 between MPI_Iallreduce and the call that
    completes it; empty: it is not notable, or ranks wait for cores as long."""
    row, whole_ns = late.run, sum(late.held_up.values())
    scheduled_ns = schedulers_ns(late.crowding, row, row.unknown_cause_ns)
    if whole_ns <= max(NOTABLE * late.run.counted_ns, scheduled_ns):
        return ""
    (rank, call), most_ns = max(late.held_up.items(), key=lambda each: each[1])
    side = "its receive for " if "send" in call else "its send for " if "recv" in call else ""
    return (
        f"{units.duration(whole_ns)} of waiting for ranks outside MPI, "
        f"{units.share(most_ns / whole_ns)} of it for rank {rank} between {side}"
        f"{call} and the call that completes it"
    )


def unknown(late: Late) -> Unknown:
    """Why it is not known who is late."""
    row, (rank, share, _) = late.run, main_cause(late.costs)
    few = main_arrivals(late.costs, rank)
    ranks = len(late.participants.ranks)
    enough = enough_arrivals(ranks)
    is_transfer = row.wait_ns < max(row.transfer_ns, NOTABLE * row.counted_ns)
    reasons = (
        (lacks_cores(late), "ranks lack cores of their own"),
        (
            not row.total_ns,
            "NCCL's collectives were not timed on the device (the GPU was not traced)",
        ),
        (
            len(late.lines) == 1,
            f"1 of {late.processes:,} processes that communicate was read",
        ),
        (late.unsampled, late.unsampled),
        (row.verdict is Kind.NONE, "no call was split into waiting and transfer"),
        (
            late.last and late.last.is_open,
            "without Horovod's cache rank 0 of two ranks sends no "
            "requests, so when it hands its gradients over is not seen",
        ),
        (
            late.last,
            f"{late.last and judged_text(late.last)} are too few to tell from chance who is last",
        ),
        (
            late.is_negotiated,
            f"{units.share(row.negotiated_share)} of the time inside MPI is on "
            "a thread that negotiates",
        ),
        (
            (row.coverage or 0.0) < COVERED,
            f"only {units.share(row.coverage)} of the time inside "
            "MPI is in calls whose waiting is known",
        ),
        (
            is_transfer and is_few_transfers(row.transfer_calls, row.sampled_share),
            f"{few_text(row)}, too few to stand for all",
        ),
        (
            row.blocks < FEWEST_BLOCKS or is_too_few(late.costs, ranks),
            f"rank {rank} causes {units.share(share)} of the waiting, half of that in "
            f"{units.counted(few, 'late arrival')}"
            + (f"; {enough} could name it" if few < enough else ", too close together to name it"),
        ),
        (True, unknown_cause_text(row)),
    )
    why = next(text for is_so, text in reasons if is_so)
    is_open = late.is_negotiated and (not late.last or late.last.is_open)
    mark = (
        "Horovod's cache (HOROVOD_CACHE_CAPACITY not 0), or a region 'wait ...' around the wait "
        "for gradients (commprof_step(3))"
    )
    return Unknown(why, mark if is_open else "")


def not_known(late: Late) -> Unknown | None:
    return unknown(late) if late.run.verdict in UNKNOWN and not nobody_text(late) else None


def nobody_text(late: Late) -> str:
    """Why there is nobody to wait for; empty: there may be."""
    if late.processes == 1:
        return "one rank: there is nobody to wait for"
    finished = "finished " if late.unfinished else ""
    is_none = not late.run.total_ns and not late.has_nccl
    return f"no {finished}call makes ranks wait for each other" if is_none else ""


def unknown_cause_text(row: Row) -> str:
    return (
        f"the cause of {units.share(row.unknown_cause_ns / (row.wait_ns or 1))} of the waiting is "
        "not known"
    )


def is_unknown(row: Row) -> bool:
    """Waiting is notable, and the cause of half of it or more is not known."""
    return (
        row.wait_ns >= NOTABLE * row.counted_ns
        and row.unknown_cause_ns >= COVERED * row.wait_ns > 0
    )


FACTORS = {
    "load_balance": "load balance",
    "serialization": "serialization",
    "transfer_efficiency": "transfer",
}


def efficiency_text(row: Row) -> str:
    """61.2 % = 70.0 % load balance x 95.0 % serialization x 92.0 % transfer; empty: not known"""
    factors = (f"{units.share(getattr(row, key))} {name}" for key, name in FACTORS.items())
    whole = units.share(row.parallel_efficiency)
    return "" if row.parallel_efficiency is None else f"{whole} = {' x '.join(factors)}"


def least_factor_text(row: Row) -> str:
    """load balance 70.0 %"""
    if row.parallel_efficiency is None:
        return units.NO_VALUE
    value, name = min((getattr(row, key), name) for key, name in FACTORS.items())
    return f"{name} {units.share(value)}"


def unfinished_text(late: Late) -> str:
    has, its = (units.agreeing(word, len(late.unfinished)) for word in ("have", "their"))
    return f"{units.rank_names(late.unfinished)} {has} not returned from {its} last call"


def basis_text(row: Row) -> str:
    """98.2 % of the time inside MPI; or, where samples stand for more calls: 5.1 % of the time
    inside MPI in 25 collectives, scaled to 98.2 %"""
    part = "all" if present(row.coverage) >= ALL else units.share(row.coverage)
    if present(row.sampled_share) >= ALL:
        return f"{part} of the time inside MPI"
    sampled = units.share(present(row.coverage) * present(row.sampled_share))
    return f"{sampled} of the time inside MPI in {calls_text(row)}, scaled to {part}"


def calls_text(row: Row) -> str:
    """25 collectives and 50 calls for messages"""
    counts = (row.collectives, "collective", ""), (row.message_calls, "call", " for messages")
    return " and ".join(
        units.counted(number, noun) + more for number, noun, more in counts if number
    )


def notable_rest(late: Late) -> dict[str, int]:
    return {call: ns for call, ns in late.rest.items() if ns > NOTABLE_SHARE * late.run.total_ns}


def rest_text(late: Late) -> str:
    """2.1 s per rank in MPI_Recv, 0.2 s in MPI_Wait"""
    row = late.run
    said = [
        f"{units.duration(ns / row.ranks)} per rank in {call}"
        for call, ns in notable_rest(late).items()
    ]
    why = [
        (row.unsure, "{} whose clocks are too inaccurate or whose root was not read", "operation"),
        (
            row.uncompleted,
            "{} whose request was freed, or whose completing call is not sampled",
            "nonblocking operation",
        ),
        (row.unmatched, "{} whose other side is not known", "message"),
    ]
    reasons = [text.format(units.counted(number, noun)) for number, text, noun in why if number]
    if row.unnumbered >= threshold("late.wildcards") * row.unmatched > 0:
        reasons[-1] += (
            ", as of receives with MPI_ANY_SOURCE or MPI_ANY_TAG (mpi4py's default) that are "
            "pending together"
        )
    polls = (
        ["polls, between which a rank may work"]
        if not notable_rest(late)
        .keys()
        .isdisjoint(
            (
                "MPI_Test",
                "MPI_Testall",
                "MPI_Testany",
                "MPI_Testsome",
                "MPI_Iprobe",
                "MPI_Improbe",
                "MPI_Request_get_status",
            )
        )
        else []
    )
    return "; ".join([", ".join(said), *polls, *reasons])

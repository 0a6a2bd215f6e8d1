"""The analysis of waiting, stage by stage, added up by rank, host, call and run, with the verdict.
Each stage is a function of what the stages before it gave; only reading asks the run.

    sampled calls --> wait_split    of each: waiting, transfer, the rank that came last    Waits
                  --> timelines     what each rank did at every time                       Lines
                  --> root_causes   of each wait: which ranks caused how much of it        Causes
                  --> own_time      how late each rank was where not all wait for all      Compared
    cells         --> scale         the chosen waits, and how many calls each stands for   Sums
                  --> retimed       the calls played again: the gain without some ranks    Retimed
                  --> arrival_costs what each late arrival cost (sums.py), which verdict.py judges

"Waiting" in a report is wait_ns of run_row (sums.py): what wait_split.py split, from the arrivals
that depends.py and messages.py know.

Scaling: only some calls may be sampled, and the cells hold the time of all. From the calls that are
played again come the efficiencies of the POP centre, of the run and of its regions, too.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ..base import (
    Columns,
    Connection,
    Floats,
    Groups,
    Ints,
    NONE,
    Row,
    Table,
    Texts,
    among,
    by_rank,
    found_in,
    gathered,
    grouped,
    np,
    query,
    row_type,
    sums as grouped_by,
    threshold,
    units,
)
from ..calls import (
    is_inside,
    negotiation,
    parts,
    region_spans,
)
from ..retime.graph import Efficiency
from ..run import (
    Alignment,
    Cells,
    Crowding,
    Selection,
    cells_of,
    communicators,
    holes,
    no_log_text,
    together_share,
)
from ..run.crowding import crowding
from ..run.sampled import sampled
from .causes import Compared, compare_own_time, root_causes
from .judgement import (
    Kind,
    OWN,
    Reason,
    call_reasons,
    in_files,
    is_by_transfer,
    judged,
    lacks_cores,
    late_row,
    notable_ns,
    reason,
    without,
)
from .depends import Waits
from .marks import Last, last_at_marks, wait_region
from .messages import Link, slow_links
from .reading import Known, known, region_names
from .retimed import Part, Retimed, retimed
from .sums import (
    Sums,
    arrival_costs,
    call_rows,
    held_up,
    host_rows,
    rank_rows,
    rest_rows,
    run_row,
    size_rows,
    slow_size,
    stacked,
    state_rows,
    uncaused_ns,
)
from .wait_split import timelines, wait_split
from .verdict import (
    MAJORITY,
    NEGOTIATED,
    NOBODY,
    Blame,
    Named,
    Participants,
    blame,
    block_count,
    is_too_few,
    together,
)


class Late:
    """The ranks that a run waits for, of all, whatever was selected; and the rows of the selected
    ranks. The run must have been opened with samples.

    split, sums        waiting and transfer, and their sums with root causes
    lines              of the whole run whatever was selected
    retimed            the calls played again
    of_all             rows of all ranks
    costs              of late arrivals, in `blocks` for the test
    participants       who may be late
    run, ranks, hosts, calls, sizes, states  the rows of tables (judgement.py, sums.py)
    blame              the result of the test
    serving            ranks that would be named, but move data for the others
    last               at marks, if most calls are on threads that negotiate
    reason             why the named ranks are late, if that is known
    call_reasons       likewise those of single calls, by their ranks
    links              slow ones that cost notably, of the chosen calls of all ranks
    held_up            all, whatever ranks were selected
    rest               time that was not split, by call
    unsampled          why not all ranks have samples; "": they have
    unfinished         ranks inside a call that has not returned, of the whole run
    processes          of the largest communicator, whether they were read or not
    has_nccl           NCCL's collectives were counted
    """

    def __init__(self, run: Selection, alignment: Alignment) -> None:
        connection, self.split = run.connection, split(run, alignment)
        self.connection, self.alignment, self.programs = connection, alignment, run.programs
        known, ranks = self.split.known, self.split.ranks
        self.notable_ns = notable_ns(self.split.run)
        compared = self._add_causes()
        self.of_all = rank_rows(self.sums, known.hosts)
        self.crowding: list[Crowding] = crowding(connection)
        self.negotiation = negotiation(connection)
        self.negotiated_share = negotiated_share(connection)
        # threads that negotiate join each call in time, whatever the main thread does
        self.is_negotiated = self.negotiated_share >= NEGOTIATED
        cells = cells_of(connection).whole
        is_negotiated = cells.is_negotiating & cells.is_in("family", "collective", "neighborhood")
        negotiated = {*map(cells.texts.text, np.unique(cells.identity[is_negotiated]).tolist())}
        self.wait_region = wait_region(connection, known)
        costs = arrival_costs(self.sums, compared, known.calls)
        self.costs = costs.take(~self.sums.texts.among(costs.identity, negotiated))
        self.blocks = block_count(self.costs)
        self.participants = Participants(
            [row.rank for row in self.of_all if row.collectives or row.message_calls],
            {rank: host or "" for rank, host in known.hosts.items()},
            _members(self.sums.waits),
            self.sums.texts,
            {row.rank: row.wait_ns for row in self.of_all},
        )
        chosen_ranks = {*ranks}
        self.ranks = [row for row in self.of_all if row.rank in chosen_ranks]
        self.hosts, self.calls = host_rows(self.ranks), self.call_rows({})
        self.sizes = size_rows(self.sums, known.communicators, known.calls)
        self.states, self.held_up = state_rows(self.sums, ranks), held_up(self.sums)
        self.rest = rest_rows(self.sums, ranks, self.split.inside)
        self.unsampled, self.unfinished = _unsampled(connection), unfinished_ranks(connection)
        (most,) = connection.execute("SELECT max(size + remote_size) FROM communicator").fetchone()
        chosen = cells_of(connection)
        is_nccl = chosen.is_in("library", "nccl") & chosen.is_in("family", "collective")
        self.processes, self.has_nccl = most or 1, bool(is_nccl.any())
        # rounds last as their cycle does
        sizes = [row for row in self.sizes if row.identity not in negotiated]
        slow = slow_size(sizes, self.split.run.sampled_share, self.notable_ns)
        self.run: Row = self._judged(slow)

    def _add_causes(self) -> Compared:
        found, known = self.split.of_all, self.split.known
        waits, texts = found.waits, found.texts
        nccl = {row.identity for row in known.communicators.values() if row.library == "nccl"}
        is_nccl = texts.among(waits.identity, nccl)
        is_all = known.which(
            waits.call, texts, lambda call: call.kind == "all" and bool(call.is_blocking)
        )
        is_rooted = known.which(waits.call, texts, lambda call: call.is_rooted)
        self.lines = timelines(found.called, waits.take(~is_nccl), texts)
        self.sums: Sums = self.split.sums

        def played() -> tuple[Retimed, list[Link]]:
            share = self.split.run.sampled_share
            return retimed(self.connection, self.alignment, known, found, share), self._slow_links()

        (self.retimed, self.links), causes, compared = together(
            len(waits),
            len(known.hosts),
            played,
            lambda: root_causes(waits, self.lines, is_nccl, is_all),
            lambda: compare_own_time(
                found.collectives, self.alignment, waits, self.lines, is_rooted
            ),
        )
        self.sums.add(causes)
        return compared

    def call_rows(self, families: Mapping[str, str]) -> list[Row]:
        """families: names of communicators, by identity; those of one name share rows."""
        return call_rows(self.sums, self.split.ranks, self.split.known.communicators, families)

    def blamed(self, participants: Participants) -> Blame:
        """Ranks are weighed by how much sooner others, or all, would be done without these being
        late; where calls were not played, by what each of the others waits for them, on average."""

        def sooner_ns(own: tuple[int, ...]) -> int:
            if self._are_played(own):
                return self.retimed.sooner_ns(own)
            return round(self.costs.of(own).whole_ns / max(1, len(participants.ranks) - len(own)))

        return blame(self.costs, participants, sooner_ns, self.notable_ns)

    def named_among(self, groups: Mapping[int, str]) -> Collection[int]:
        """The ranks that the test names with groups of ranks in place of hosts."""
        if not self.is_known or self.is_negotiated:
            return ()
        hosts = {rank: groups.get(rank, "") for rank in self.participants.ranks}
        named = self.blamed(self.participants._replace(hosts=hosts)).named
        return named.ranks if named and named.gain_ns >= self.notable_ns else ()

    @property
    def working(self) -> Part | None:
        """Not known where the time between calls is not that of the program's work: on threads
        beside the main one, or while GPUs communicate."""
        is_elsewhere = self.is_negotiated or is_beside_main(self.split.run)
        return None if is_elsewhere or self.retimed.device is not None else self.retimed.host

    @property
    def is_known(self) -> bool:
        return self.run.verdict not in (Kind.NONE, Kind.UNKNOWN, Kind.CORES)

    def _are_played(self, ranks: Collection[int]) -> bool:
        """Most of what these ranks cause is in calls that were played: the threads that others wait
        on may not be. Polls are part of the call that they come before."""
        sums, parts = self.sums, self.retimed.parts
        own = np.isin(sums.causes.cause_rank, list(ranks))
        wait, caused_ns = sums.causes.wait[own], sums.caused_ns[own]
        played = np.concatenate([np.empty(0, np.int64), *(part.wait for part in parts)])
        is_in = np.isin(sums.rows[wait], played) | sums.waits.is_polled[wait]
        return bool(parts) and bool(caused_ns[is_in].sum() >= MAJORITY * caused_ns.sum() > 0)

    def _are_scheduled_late(self, named: Named, last: Last | None = None) -> bool:
        """Some of ranks that share cores always come last: these are named for less than half of
        the waiting only if readings of CPU time show that it is not for want of a core."""
        if not self.crowding or not named.is_mostly:
            return False
        found = reason(self.connection, named.ranks, last=last)
        return found is None or found.kind not in OWN

    def _by_calls(self) -> tuple[Blame, Named | None]:
        """And ranks that would be named, but move data for the others."""
        if self.is_negotiated:
            return NOBODY, None
        blamed, _ = without(self.blamed(self.participants), self._are_scheduled_late)
        calls = {row.rank: row.message_calls for row in self.of_all}
        spent = {rank: line.sums[-1].tolist() for rank, line in self.lines.items()}
        return without(blamed, lambda named: is_by_transfer(calls, spent, named.ranks))

    def _at_marks(self, kind: Kind) -> Last | None:
        """kind: the verdict by the calls."""
        error_ns = self.split.of_all.error_ns
        is_placed = len(self.alignment.clocks) == 1 or error_ns
        if not (self.is_negotiated and kind is not Kind.NONE and is_placed):
            return None
        last = last_at_marks(self.connection, self.alignment.aligned_ns, self.wait_region, error_ns)
        is_excused = last and last.named and self._are_scheduled_late(last.named, last)
        return last._replace(named=None) if last and is_excused else last

    def _judged(self, slow: dict[str, Any]) -> Row:
        """The run in one row. slow: the columns of the slow size."""
        counted, unknown_ns = self.split.run, uncaused_ns(self.sums, self.split.ranks)
        self.blame, self.serving = self._by_calls()
        kind, named = judged(counted, self.negotiated_share, unknown_ns, self.blame, self.blocks)
        is_open = kind is Kind.SPREAD and not (self.blame.named or self.serving)
        if is_open and is_too_few(self.costs, len(self.participants.ranks)):
            kind = Kind.UNKNOWN
        self.last = self._at_marks(kind)
        verdict: dict[str, Any] = {"verdict": kind, "blocks": self.blocks}
        if self.last and self.last.is_known:
            named, verdict = self.last.named, at_marks(self.last)
        if named:
            verdict |= self._whom(named, verdict["verdict"] is Kind.MARKS)
        self.reason = self._why(named) if named else None
        self.call_reasons = call_reasons(self.connection, self.blame.calls)
        explained_ns = max(
            (counted.wait_ns - unknown_ns)
            if verdict.get("late_gain_ns") is None
            else verdict["late_gain_ns"] * counted.ranks,
            slow.get("slow_size_excess_ns", 0) * counted.ranks,
        )
        kinds = {each.kind for each in (self.reason, *self.call_reasons.values()) if each}
        if (
            kind is not Kind.NONE
            and not (self.last and self.last.named)
            and lacks_cores(self.crowding, counted, unknown_ns, explained_ns, kinds)
        ):
            verdict, slow = {"verdict": Kind.CORES, "blocks": self.blocks}, {}
            self.blame, self.serving, self.reason, self.links = NOBODY, None, None, []
        finalize_ns, finalize_rank = final_wait(self.connection, self.alignment)
        slowest, why = self.links[0] if self.links else None, self.reason
        work, of_all = self.working, self.split.of_all
        return late_row(
            **counted._asdict(),
            negotiated_share=self.negotiated_share,
            unknown_cause_ns=unknown_ns,
            together_share=together_share(self.connection),
            **of_all.left,
            clocks=len(self.alignment.clocks),
            unconnected_clocks=self.alignment.islands - 1,
            error_ns=math.ceil(of_all.error_ns),
            **verdict,
            unjudged=_unjudged(self.connection, self.split.known),
            finalize_wait_ns=finalize_ns,
            finalize_last_rank=finalize_rank,
            slow_link_sender=slowest and slowest.sender,
            slow_link_receiver=slowest and slowest.receiver,
            slow_link_times=slowest and slowest.times,
            slow_link_excess_ns=slowest and round(slowest.excess_ns),
            **slow,
            late_reason=why and why.kind,
            late_reason_ns=why and round(why.own_ns),
            late_reason_others_ns=why and round(why.others_ns),
            **(work.efficiency if work else Efficiency())._asdict(),
            efficiency_share=work and work.share,
        )

    def _whom(self, named: Named, is_at_marks: bool) -> dict[str, Any]:
        """The columns of named ranks. The gain is that of the test at marks, else that of calls
        that were played again."""
        ranks, hosts = named.ranks, self.participants.hosts
        own = [name for name, ranks_of in self.programs.items() if {*ranks_of} & {*ranks}]
        whom = dict(
            late_ranks=units.Ranks(ranks),
            late_share=named.share,
            late_gain_ns=named.gain_ns,
            late_p=named.p,
            late_region=late_region(self.connection, self.split.known, ranks),
            late_programs=", ".join(own) if len(self.programs) > 1 else None,
            late_hosts=units.Listed(sorted({hosts[rank] for rank in ranks})),
        )
        if is_at_marks:
            return whom
        played = self.retimed
        is_in = self._are_played(ranks) and played.shows(ranks)
        waited_ns = sum(row.cost_ns for row in self.of_all if row.rank in ranks)
        held_ns = sum(ns for (rank, _), ns in self.held_up.items() if rank in ranks)
        return whom | dict(
            late_progress_share=held_ns / (waited_ns or 1),
            late_gain_ns=played.gain_ns(ranks) if played.share * is_in else None,
            late_gain_share=played.share * is_in,
        )

    def _why(self, named: Named) -> Reason | None:
        in_calls = in_files(self.lines, named.ranks)
        called = self.split.of_all.called
        # readings are those of the main thread
        is_beside = len(called.calls) < len(called.every) and is_beside_main(self.split.run)
        is_read = not in_calls and (self.last or not is_beside)
        return reason(self.connection, named.ranks, last=self.last) if is_read else in_calls

    def _slow_links(self) -> list[Link]:
        sums, known, completed = self.sums, self.split.known, self.split.of_all.completed
        completed = completed.changed(wait=found_in((completed.wait,), (sums.rows,)))
        completed = completed.take(completed.wait >= 0)
        found = slow_links(sums.waits, sums.factor, completed, known.calls, known.hosts, sums.texts)
        return [link for link in found if link.excess_ns >= self.notable_ns]


def at_marks(last: Last) -> dict[str, Any]:
    """The columns of ranks that come last at marks, and of marks at which nobody does."""
    return dict(
        verdict=Kind.MARKS,
        late_mark=last.region or "commprof_step",
        late_mark_steps=last.judged,
        late_mark_times=last.times if last.named else None,
        late_mark_lead_ns=last.lead_ns,
        blocks=last.blocks,
    )


def final_wait(connection: Connection, alignment: Alignment) -> tuple[int, int | None]:
    """How long all ranks waited together in MPI_Finalize, and for whom; None, if they did not wait
    for each other. This is no part of the analysis of waiting: one arrival tells nobody from
    chance, and MPI need not synchronize there. It did if no rank returned before the last one
    arrived."""
    rows = query.run(connection, "late/finalize").fetchall()
    (ranks,) = connection.execute("SELECT count(*) FROM rank").fetchone()
    if len(rows) < max(2, ranks):
        return 0, None
    rank, own_ends_ns, inside_ns = np.array(rows, np.int64).T
    ends_ns = alignment.aligned(rank, own_ends_ns)
    waits_ns = (ends_ns - inside_ns).max() - (ends_ns - inside_ns)
    error_ns = alignment.error(rank.tolist(), int(own_ends_ns[0])).distance_ns
    is_known = ends_ns.min() + error_ns >= (ends_ns - inside_ns).max() and waits_ns.max() > error_ns
    return (int(waits_ns.sum()), int(rank[waits_ns.argmin()])) if is_known else (0, None)


def unfinished_ranks(connection: Connection) -> list[int]:
    return [
        rank
        for (rank,) in query.run(
            connection, "late/unfinished", notable=threshold("late.unfinished")
        )
    ]


def _members(waits: Waits) -> dict[int, list[int]]:
    """The ranks in the split calls of each communicator."""
    order, groups = grouped(waits.identity, waits.world_rank)
    first = waits.take(order[groups.first])
    return gathered(zip(first.identity.tolist(), first.world_rank.tolist()))


def _unsampled(connection: Connection) -> str:
    if not connection.execute(
        "SELECT 1 FROM cell WHERE world_rank NOT IN (SELECT world_rank FROM sample)"
    ).fetchone():
        return ""
    return no_log_text(connection) or "single calls are not sampled on all ranks (COMMPROF_SAMPLES)"


RegionWorkRow = row_type("RegionWorkRow", (*parts.RegionRow._fields, *Efficiency._fields))


# Waiting and transfer of a run, without causes: Known; WaitSplit, of_all whatever was selected;
# Sums of the chosen calls of all ranks; the chosen ranks; the chosen cells of all ranks whose time
# is inside MPI, or on the device in NCCL; and the run's row.
Split = namedtuple("Split", "known of_all sums ranks inside run")


def split(run: Selection, alignment: Alignment) -> Split:
    """The run must have been opened with samples."""
    connection, about = run.connection, known(run.connection)
    of_all = wait_split(run, alignment, about)
    waits, texts = of_all.waits, of_all.texts
    chosen, names = cells_of(connection), ("call", "identity", "region", "bytes")
    is_chosen, is_left = (
        chosen.are_left(of_rows, **{name: getattr(rows, name) for name in names})
        for rows, of_rows in ((waits, texts), (chosen.whole, chosen.texts))
    )
    inside = chosen.whole.take(is_left & is_inside(chosen.whole))
    sums = scale(connection, about, inside, waits, np.flatnonzero(is_chosen), texts)
    counted_ns = dict(sorted(chosen.counted.items()))
    calls = of_all.called.every.take(of_all.called.is_set_up)
    calls = calls.take(chosen.are_left(texts, call=calls.call))
    row = run_row(sums, counted_ns, inside, calls)
    return Split(about, of_all, sums, list(counted_ns), inside, row)


def late_region(connection: Connection, known: Known, ranks: Collection[int]) -> str | None:
    """The region in which these ranks are longer than the others, outside MPI and the regions
    within it; None if most of that is not in one region, or spans of regions may be
    missing."""
    spans, (texts, calls, _, _) = region_spans(connection), sampled(connection)
    if holes(connection) or not len(spans):
        return None
    names = spans.texts.texts
    number, outer = texts.all(names), texts.all([name.rpartition("/")[0] for name in names])
    calls = calls.take(calls.region > 0)
    calls = calls.take(known.which(calls.call, texts, lambda call: call.library == "mpi"))
    region = region_names(connection, calls.world_rank, calls.region, texts)
    rows = stacked(
        *(
            {"name": of[spans.name], "rank": spans.world_rank, "outside_ns": sign * spans.span_ns}
            for of, sign in ((number, 1), (outer, -1))
        ),
        {"name": region, "rank": calls.world_rank, "outside_ns": calls.start_ns - calls.end_ns},
    )
    groups = grouped_by(Table(rows, texts), ["name", "rank"], among("name", *names))
    of_name, is_own = Groups(groups.name), np.isin(groups.rank, [*ranks])
    own_ns, others_ns = (
        of_name.sum(groups.sum("outside_ns") * 1.0 * flags) / np.maximum(1, of_name.sum(flags * 1))
        for flags in (is_own, ~is_own)
    )
    longer_ns = np.maximum(0.0, own_ns - others_ns)
    most = longer_ns.argmax()
    longest = texts.text(groups.name[of_name.first[most]])
    return longest if longer_ns[most] > MAJORITY * longer_ns.sum() else None


def is_beside_main(row: Row) -> bool:
    return row.background_share >= threshold("late.background")


def negotiated_share(connection: Connection) -> float:
    """The share of the time inside MPI on threads that negotiate, in the whole run."""
    cells = cells_of(connection).whole
    inside_ns = cells.total_ns * is_inside(cells)
    return inside_ns[cells.is_negotiating].sum(dtype=float) / max(1.0, inside_ns.sum(dtype=float))


def _unjudged(connection: Connection, known: Known) -> int:
    """How many sampled collectives of NCCL lack device times on at least one rank?"""
    texts, calls, _, _ = sampled(connection)
    is_nccl = known.which(
        calls.call, texts, lambda call: call.library == "nccl" and bool(call.kind)
    )
    calls = calls.take(is_nccl & (calls.sequence != NONE) & (calls.device_start_ns == NONE))
    owned = communicators(connection, texts)
    identity = np.append(owned.identity, NONE)[owned.row(calls)]
    is_own = np.append(owned.size > 1, False)[owned.row(calls)] & cells_of(connection).are_left(
        texts, call=calls.call, identity=identity
    )
    return len({*zip(identity[is_own].tolist(), calls.sequence[is_own].tolist())})


def region_rows(
    connection: Connection, alignment: Alignment, work: Callable[[], Part | None]
) -> list[Row]:
    """work: asked for only if a main thread visited a region."""
    found = dict(_efficiencies(connection, alignment, work))
    return [
        RegionWorkRow(*row, *found.get(row.region, Efficiency()))
        for row in parts.region_rows(connection)
    ]


def _efficiencies(
    connection: Connection, alignment: Alignment, work: Callable[[], Part | None]
) -> Iterator[tuple[str, Efficiency]]:
    """The efficiency of each region that main threads visited, with the regions within it."""
    spans = region_spans(connection)
    rows = spans.columns.take(spans.is_main & (spans.span_ns > 0))
    part = work() if len(rows) else None
    if part:
        for name, own in by_rank(rows.name):
            ranks, times = rows.world_rank[own], (rows.begin_ns[own], rows.end_ns[own])
            bounds = np.stack([alignment.aligned(ranks, ns) for ns in times], 1)
            yield (
                spans.texts.text(name) or "",
                part.efficiency_within({rank: bounds[place] for rank, place in by_rank(ranks)}),
            )


def scale(
    connection: Connection, known: Known, inside: Cells, waits: Waits, rows: Ints, texts: Texts
) -> Sums:
    """The chosen waits, those of which the cells know the time of all such calls. waits: of the
    run; rows: of those that the user selected. If a rank calls NCCL's point-to-point operations on
    a communicator, its groups there are not extrapolated, as the cells do not distinguish those of
    sends and receives, where nobody waits for all: only the split ones count."""
    waits, number = waits.take(rows), texts.all(inside.texts.texts)
    exact = grouped_by(
        inside,
        ["world_rank", "identity", "call"],
        lambda cells: (
            known.which(cells.call, cells.texts, lambda call: bool(call.kind and call.is_blocking))
            & (cells.size > 1)
        ),
    )
    identity, call = number[exact.identity], number[exact.call]
    row = found_in(
        (waits.world_rank, waits.identity, waits.call), (exact.world_rank, identity, call)
    )
    own = waits.is_blocking_collective & (row >= 0)
    spent_ns = waits.wait_ns + waits.transfer_ns
    sampled, sampled_ns = (
        np.bincount(row[own], weights, len(exact)) for weights in (None, spent_ns[own])
    )
    cells = cells_of(connection).whole
    sent = cells.take(cells.is_in("library", "nccl") & cells.is_in("family", "point-to-point"))
    place = found_in((exact.world_rank, exact.identity), (sent.world_rank, sent.identity))
    is_mixed = exact.is_in("call", "ncclGroup") & (place >= 0)
    total_ns = np.where(is_mixed, sampled_ns, exact.sum("total_ns"))
    # 0: the cells do not know this call of this rank on this communicator
    of_collectives = np.append(_factors(sampled, sampled_ns, exact.sum("count"), total_ns), 0.0)
    factor = np.where(
        waits.is_blocking_collective,
        of_collectives[row],
        _of_completions(connection, waits, texts),
    )
    is_counted = factor > 0
    return Sums(
        rows[is_counted],
        waits.take(is_counted),
        factor[is_counted],
        Columns(world_rank=exact.world_rank, identity=identity, call=call, total_ns=total_ns).take(
            ~is_mixed | (sampled > 0)
        ),
        texts,
    )


def _factors(sampled: Ints, sampled_ns: Floats, count: Floats, total_ns: Floats) -> Floats:
    is_whole = (sampled >= count) | (sampled_ns == 0)
    times = np.asarray(total_ns / np.where(is_whole, 1, sampled_ns), np.float64)
    return np.where(is_whole, 1.0, np.maximum(1.0, times))


def _of_completions(connection: Connection, waits: Waits, texts: Texts) -> Floats:
    """Calls that complete requests have no communicator, and messages may be split in part: the
    factor of each call that waits for requests or a message is that of all its samples, whatever
    they completed. 0: as above."""
    call = np.where(waits.completion == NONE, waits.call, waits.completion)
    calls = sampled(connection).calls
    calls = calls.take(np.isin(calls.call, call[~waits.is_blocking_collective]))
    cells = cells_of(connection).whole
    counted = grouped_by(cells, ["world_rank", "call"], among("measure", "call"))
    keys = counted.world_rank, texts.all(cells.texts.texts)[counted.call]
    place = found_in((calls.world_rank, calls.call), keys)
    samples, sampled_ns = (
        np.bincount(place[place >= 0], weights, len(counted))
        for weights in (None, (calls.end_ns - calls.start_ns)[place >= 0])
    )
    factors = _factors(samples, sampled_ns, counted.sum("count"), counted.sum("total_ns"))
    return np.append(factors, 0.0)[found_in((waits.world_rank, call), keys)]

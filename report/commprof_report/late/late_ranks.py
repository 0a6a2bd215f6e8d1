"""Late ranks: sums the wait splits by rank, host, call and run, and derives the verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache
from sqlite3 import Connection
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from ..base import query, units
from ..calls.negotiation import Negotiation, negotiation
from ..run.alignment import Alignment
from ..run.crowding import Crowding, crowding
from ..run.holes import holes, together_share
from ..run.selection import Selection
from ..run.unsampled import no_log_text
from .finalize import final_wait
from .marks import Last, WaitRegion, last_at_marks, wait_region
from .own_time import compare_own_time
from .root_causes import root_causes
from .timelines import Timeline, timelines
from .verdict import COVERED, FEWEST_BLOCKS, MOST_OF_IT, NEGOTIATED, NOBODY, NOTABLE, Blame, Cause, Participants, blame, block_count
from .wait_split import wait_split

SQL = query.beside(__file__)

WHOLE_RUN = [(-(1 << 62), 1 << 62)]


class LateRankRow(NamedTuple):
    """A rank's sums over the split calls."""

    rank: int
    host: str | None
    collectives: int
    message_calls: int
    last_count: int
    cost_ns: int
    alone_ns: int
    caused_ns: int
    direct_ns: int
    gain_ns: int
    wait_ns: int
    transfer_ns: int
    wait_share: float | None


class LateCallRow(NamedTuple):
    call: str
    communicator: str
    identity: str
    ranks: int
    total_ns: int
    collectives: int
    wait_ns: int | None
    transfer_ns: int | None
    wait_share: float | None
    estimate_share: float | None
    top_rank: int | None
    top_cost_ns: int | None
    library: str


class ChainRow(NamedTuple):
    """Waiting for a rank, by its root cause; late_chains.sql."""

    cause_rank: int | None
    last_rank: int
    caused_ns: float


class LateSizeRow(NamedTuple):
    """Blocking collectives of one size: arrivals, and the time from the last arrival to the last return."""

    call: str
    communicator: str
    identity: str
    bytes: int | None
    collectives: int
    skew_p50_ns: int
    skew_p95_ns: int
    transfer_p50_ns: int
    transfer_p95_ns: int
    transfer_p99_ns: int
    wait_share: float | None
    ranks: int
    bandwidth: str
    busbw_bytes_per_s: float | None


class LateStateRow(NamedTuple):
    """Waiting of one kind."""

    wait_state: str
    calls: int
    wait_ns: int
    share: float | None


class LateRestRow(NamedTuple):
    """Time of a call that was not split."""

    call: str
    rest_ns: int


class LateRunRow(NamedTuple):
    """late_run.sql"""

    ranks: int
    collectives: int
    message_calls: int
    total_ns: int
    sampled_ns: int
    coverage: float | None
    sampled_share: float | None
    wait_ns: int
    transfer_ns: int
    wait_share: float | None
    share_of_wall: float | None
    estimate_share: float | None
    background_share: float
    counted_ns: int


class LateVerdictRow(NamedTuple):
    """What could not be split, the clocks, and who is late."""

    negotiated_share: float
    unknown_cause_ns: int
    together_share: float
    unsure: int
    uncompleted: int
    unmatched: int
    unnumbered: int
    clocks: int
    unconnected_clocks: int
    error_ns: int
    verdict: str
    late_ranks: str | None
    late_hosts: str | None
    late_share: float | None
    late_direct_share: float | None
    late_through: str | None
    late_gain_ns: int | None
    late_p: float | None
    late_is_growing: int | None
    late_growth_p: float | None
    late_first_quarter_share: float | None
    late_last_quarter_share: float | None
    late_region: str | None
    late_mark: str | None
    late_mark_steps: int | None
    late_mark_times: int | None
    late_mark_lead_ns: float | None
    blocks: int
    unjudged: int
    finalize_wait_ns: int
    finalize_last_rank: int | None


if TYPE_CHECKING:

    class LateRow(LateRunRow, LateVerdictRow): ...
else:
    LateRow = query.row_of("LateRow", LateRunRow, LateVerdictRow)  # the run in one row


class LateHostRow(NamedTuple):
    """The ranks of a host, added up."""

    host: str
    ranks: int
    collectives: int
    message_calls: int
    last_count: int
    cost_ns: int
    alone_ns: int
    caused_ns: int
    wait_ns: int
    transfer_ns: int
    wait_share: float | None


class Late(NamedTuple):
    run: LateRow
    ranks: list[LateRankRow]
    hosts: list[LateHostRow]
    calls: list[LateCallRow]
    sizes: list[LateSizeRow]
    states: list[LateStateRow]
    rest: list[LateRestRow]
    unsampled: str  # why not all ranks have samples; "": they have
    blame: Blame
    causes: list[Cause]  # in order of time; without communicators of threads that negotiate
    participants: Participants
    crowding: list[Crowding]  # ranks that share cores, of the whole run whatever was selected
    timelines: dict[int, Timeline]  # by rank, of the whole run whatever was selected
    unfinished: list[int]  # ranks inside a call that has not returned, of the whole run
    processes: int  # of the largest communicator, whether they were read or not
    is_untimed: bool  # NCCL's collectives were counted, none was timed on the device
    negotiation: Negotiation | None  # of the whole run whatever was selected, as the next two
    wait_region: WaitRegion | None
    last: Last | None  # at marks, if most calls are on threads that negotiate

    @property
    def is_known(self) -> bool:
        return self.run.verdict not in ("none", "unknown")

    @property
    def is_negotiated(self) -> bool:
        """Threads that negotiate make most calls: they join each one in time, whatever the main thread does."""
        return self.run.negotiated_share >= NEGOTIATED

    @property
    def has_common_clock(self) -> bool:
        """The times of all ranks can be compared."""
        return self.run.clocks == 1 or self.run.error_ns > 0


def wait_sums(run: Selection, alignment: Alignment) -> tuple[LateRunRow, int]:
    """Waiting and transfer of the run as in `late`, and the clocks' error, without the causes, which take longer. Fills late_call and
    late_scaled."""
    split = wait_split(run, alignment)
    SQL.run(run.connection, "late_factors")
    return SQL.ask(run.connection, "late_run", LateRunRow)[0], math.ceil(split.error_ns)


def late(run: Selection, alignment: Alignment) -> Late:
    """The run must have been opened with samples. The rank filter restricts the rows; the verdict considers all ranks."""
    connection, split = run.connection, wait_split(run, alignment)
    lines = timelines(connection, alignment)
    root_causes(connection, lines)
    compare_own_time(connection, lines)
    SQL.run(connection, "late_factors")
    ranks = SQL.ask(connection, "late_ranks", LateRankRow)
    counted = SQL.ask(connection, "late_run", LateRunRow)[0]
    negotiating = negotiation(connection)
    negotiated = {identity for (identity,) in SQL.run(connection, "late_negotiated")}
    causes = [cause for cause in SQL.ask(connection, "late_causes", Cause) if cause.identity not in negotiated]
    hosts = {row.rank: row.host or "" for row in ranks}
    members: dict[str, list[int]] = {}
    for identity, rank in connection.execute("SELECT DISTINCT identity, world_rank FROM late_scaled"):
        members.setdefault(identity, []).append(rank)
    taking_part = [row.rank for row in ranks if row.collectives or row.message_calls]
    participants = Participants(taking_part, hosts, members)
    gain_of = lru_cache(maxsize=None)(lambda own: gain_ns(connection, own))
    negotiated_share = SQL.run(connection, "negotiated_share").fetchone()[0] if negotiating else 0.0
    found = NOBODY if negotiated_share >= NEGOTIATED else blame(causes, participants, lambda own: _is_notable(gain_of(own), counted))
    selected = {rank for (rank,) in connection.execute("SELECT world_rank FROM selected_rank")}
    chosen = [row for row in ranks if row.rank in selected]
    chains = SQL.ask(connection, "late_chains", ChainRow)
    unknown_ns, final = SQL.run(connection, "late_uncaused").fetchone()[0], final_wait(connection, alignment)
    named_gain_ns, blocks = gain_of(found.named.ranks if found.named else ()), block_count(causes)
    judged = _verdict(counted, negotiated_share, unknown_ns, ranks, found, blocks, chains, named_gain_ns)
    region, last = wait_region(connection), None
    if negotiated_share >= NEGOTIATED and judged["verdict"] != "none" and (len(alignment.clocks) == 1 or split.error_ns):
        last = last_at_marks(connection, alignment.aligned_ns, region, split.error_ns)
    if last and last.judged >= FEWEST_BLOCKS:
        judged.update(_at_marks(last, hosts))
    own = (last.ranks if last else ()) or (found.named.ranks if found.named else ())
    of_run = LateRow(
        *counted,
        negotiated_share=negotiated_share,
        unknown_cause_ns=unknown_ns,
        together_share=together_share(connection),
        unsure=split.unsure,
        uncompleted=split.uncompleted,
        unmatched=split.unmatched,
        unnumbered=split.unnumbered,
        clocks=len(alignment.clocks),
        unconnected_clocks=alignment.islands - 1,
        error_ns=math.ceil(split.error_ns),
        **judged,
        late_region=_region(connection, own) if judged["late_ranks"] else None,
        unjudged=SQL.run(connection, "late_unjudged").fetchone()[0],
        finalize_wait_ns=final.wait_ns,
        finalize_last_rank=final.last_rank,
    )
    calls, sizes = call_rows(connection), SQL.ask(connection, "late_sizes", LateSizeRow)
    states, rest = SQL.ask(connection, "late_states", LateStateRow), SQL.ask(connection, "late_rest", LateRestRow)
    lacks = connection.execute("SELECT 1 FROM cell WHERE world_rank NOT IN (SELECT world_rank FROM sample)").fetchone()
    unsampled = no_log_text(connection) or "single calls are not sampled on all ranks (COMMPROF_SAMPLES)" if lacks else ""
    about = (found, causes, participants, crowding(connection), lines, [rank for (rank,) in SQL.run(connection, "unfinished")])
    around = SQL.run(connection, "late_around").fetchone()
    return Late(of_run, chosen, _hosts(chosen), calls, sizes, states, rest, unsampled, *about, *around, negotiating, region, last)


def call_rows(connection: Connection, families: Mapping[str, str] | None = None) -> list[LateCallRow]:
    """After `late`. families: names of communicators, by identity; those of one name share rows."""
    return SQL.ask(connection, "late_calls", LateCallRow, families=json.dumps(families or {}))


def _hosts(ranks: Iterable[LateRankRow]) -> list[LateHostRow]:
    by_host: dict[str, list[LateRankRow]] = {}
    for row in ranks:
        by_host.setdefault(row.host or "", []).append(row)
    return [_host(host, rows) for host, rows in sorted(by_host.items())]


def _host(host: str, rows: list[LateRankRow]) -> LateHostRow:
    summed = {
        key: sum(getattr(row, key) for row in rows)
        for key in ("collectives", "message_calls", "last_count", "cost_ns", "alone_ns", "caused_ns", "wait_ns", "transfer_ns")
    }
    split_ns = summed["wait_ns"] + summed["transfer_ns"]
    return LateHostRow(host, len(rows), **summed, wait_share=summed["wait_ns"] / split_ns if split_ns else None)


def gain_ns(connection: Connection, ranks: Sequence[int], spans: Sequence[tuple[int, int]] | None = None) -> int:
    """After `late`: what these ranks together cost another rank at most, because one alone gains nothing while another is as late. Scaled to
    all calls; or of the sampled calls within spans of time that do not overlap."""
    SQL.run(connection, "late_named")
    connection.executemany("INSERT INTO late_named VALUES (?)", [(rank,) for rank in ranks])
    connection.executemany("INSERT OR REPLACE INTO late_span VALUES (?, ?)", WHOLE_RUN if spans is None else spans)
    return SQL.run(connection, "late_gain", is_scaled=spans is None).fetchone()[0]


def _is_notable(gain_ns: int, counted: LateRunRow) -> bool:
    return gain_ns * counted.ranks >= NOTABLE * counted.counted_ns > 0


def _verdict(
    counted: LateRunRow,
    negotiated_share: float,
    unknown_ns: int,
    ranks: list[LateRankRow],
    found: Blame,
    blocks: int,
    chains: Sequence[ChainRow],
    gain_ns: int,
) -> dict:
    """docs/SCHEMA.md defines the verdicts. Late ranks are named only with a verdict, and only if the run could gain notably."""
    named = found.named
    late = {row.rank: row for row in ranks if named and row.rank in named.ranks}
    verdict = _kind(counted, negotiated_share, unknown_ns, found, blocks)
    is_named = verdict in ("transfer", "imbalance") and named is not None and named.is_measurable and _is_notable(gain_ns, counted)
    if verdict == "imbalance" and not is_named:
        verdict = "spread"
    hosts = sorted({row.host or "" for row in late.values()})
    direct_share, through = _chain(late, chains)
    return {
        "verdict": verdict,
        "late_ranks": units.rank_list(sorted(late)) if is_named else None,
        "late_hosts": ",".join(hosts) if is_named else None,
        "late_share": named.share if is_named else None,
        "late_direct_share": direct_share if is_named else None,
        "late_through": units.rank_list(through) if is_named and through else None,
        "late_gain_ns": gain_ns if is_named else None,
        "late_p": named.p if is_named else None,
        "late_is_growing": int(named.growth.is_growing) if is_named else None,
        "late_growth_p": named.growth.p if is_named else None,
        "late_first_quarter_share": named.growth.first_share if is_named else None,
        "late_last_quarter_share": named.growth.last_share if is_named else None,
        "blocks": blocks,
        "late_mark": None,
        "late_mark_steps": None,
        "late_mark_times": None,
        "late_mark_lead_ns": None,
    }


def _at_marks(last: Last, hosts: Mapping[int, str]) -> dict:
    """The verdict on threads that negotiate: who comes last to a mark of the main thread."""
    return {
        "verdict": "marks",
        "late_ranks": units.rank_list(last.ranks) if last.ranks else None,
        "late_hosts": ",".join(sorted({hosts[rank] for rank in last.ranks})) if last.ranks else None,
        "late_gain_ns": last.gain_ns if last.ranks else None,
        "late_p": last.p,
        "blocks": last.blocks,
        "late_mark": last.region or "commprof_step",
        "late_mark_steps": last.judged,
        "late_mark_times": last.times if last.ranks else None,
        "late_mark_lead_ns": last.lead_ns,
    }


def _chain(ranks: Container[int], chains: Sequence[ChainRow]) -> tuple[float, list[int]]:
    """The share of the waiting that these ranks cause by arriving last themselves, and the ranks through which they cause the rest, as far
    as that is notable."""
    whole_ns = sum(row.caused_ns for row in chains)
    own = [row for row in chains if row.cause_rank in ranks]
    through = [row.last_rank for row in own if row.last_rank not in ranks and row.caused_ns >= NOTABLE * whole_ns]
    direct_ns = sum(row.caused_ns for row in own if row.last_rank in ranks)
    return direct_ns / (whole_ns or 1), sorted({*through})


def _region(connection: Connection, ranks: Container[int]) -> str | None:
    """The region in which these ranks are longer than the others, outside MPI; None if most of that is not in one region, or spans of
    regions may be missing."""
    by_region: dict[str, dict[int, float]] = {}
    for rank, name, outside_ns in SQL.run(connection, "late_regions") if not holes(connection) else ():
        by_region.setdefault(name, {})[rank] = outside_ns
    longer = {}
    for name, by_rank in by_region.items():
        own, others = ([ns for rank, ns in by_rank.items() if (rank in ranks) == is_named] for is_named in (True, False))
        longer[name] = max(0.0, fmean(own or [0.0]) - fmean(others or [0.0]))
    most = max(longer, key=longer.__getitem__, default=None)
    return most if most is not None and longer[most] > MOST_OF_IT * sum(longer.values()) else None


def _kind(counted: LateRunRow, negotiated_share: float, unknown_ns: int, found: Blame, blocks: int) -> str:
    split_ns = counted.wait_ns + counted.transfer_ns
    if not split_ns:
        return "none"
    if negotiated_share >= NEGOTIATED or counted.coverage < COVERED:
        return "unknown"
    if counted.wait_ns < NOTABLE * counted.counted_ns:
        return "transfer" if counted.transfer_ns >= NOTABLE * counted.counted_ns else "little"
    if counted.wait_ns < counted.transfer_ns:
        return "transfer"
    if blocks < FEWEST_BLOCKS:
        return "unknown"
    if found.named or found.calls or found.turns:
        return "imbalance" if found.named else "by-call" if found.calls else "rotation"
    return "spread" if unknown_ns < COVERED * counted.wait_ns else "unknown"

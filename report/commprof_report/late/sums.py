"""The waits of a run added up: by rank, call, size, kind of waiting, and over the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from ..base.arrays import np
from ..base.columns import NONE, Columns, Flags, Floats, Ints, Texts, found_in, grouped, numbered
from ..base.gather import by
from ..base.field import Field, Row, number, row_type, text
from ..base.percentiles import of_values
from ..base.units import NO_VALUE, duration, size
from ..base.units import share as share_text
from .columns import sums_row
from .known import CallInfo
from .own_time import Compared
from .progress import NO_PROGRESS
from .root_causes import Causes
from .scaled import Scaled
from .verdict import NOTABLE, Costs, sums_of
from .waits import Waits

MOST_REST = 3  # calls
MOST_NUMBER = (1 << 63) - 1
# waiting for a rank's progress in operations that it has begun, by rank and call, the longest first
HeldUp = dict[tuple[int, str], int]
ROOT_CAUSE = "root cause of"
RANK = (
    number("rank", "the rank, and its host", "rank"),
    text("host", "", "host", 20),
    Field(
        "collectives",
        "analysed collectives that it took part in (of several operations that one call "
        "completed, the one that decided); analysed calls in which a message decided",
    ),
    Field("message_calls", ""),
    Field(
        "last_count",
        "the number of collectives in which it was last, and of calls in which others waited for "
        "a message with it: one exchange can make several ranks wait",
        "times last",
    ),
    Field("cost_ns", "what others waited for it", "others waited"),
    Field("alone_ns", "the part of that which it causes alone", "avoidable"),
    Field(
        "caused_ns",
        "the waiting of which it is the root cause; the part that it causes directly, arriving "
        "last itself. Text shows it if it differs from the cost",
        ROOT_CAUSE,
    ),
    Field("direct_ns", ""),
    Field(
        "gain_ns",
        "the sum of alone_ns x (what it caused of the wait) / wait for the other rank with the "
        "largest: by about so much the run would be shorter had this rank not been late (an "
        "estimate: later arrivals may take its place)",
    ),
    Field("wait_ns", "of its own calls; wait / (wait + transfer)", "waited"),
    Field("transfer_ns", "", "transfer"),
    Field("wait_share", "", "waiting share"),
)
HOST = (
    text("host", "its name; number of its ranks", "host", 40),
    Field("ranks", "", "ranks"),
    Field(
        "collectives",
        "sums over its ranks (a collective counts for each of them); cost includes what its own "
        "ranks waited",
    ),
    *(
        field._replace(meaning="") for field in RANK[3:]
        if field.key not in ("direct_ns", "gain_ns")
    ),
)
CALL = (
    text("call", "the call; the communicator's label and identity", "call"),
    text("communicator", "", "communicator", 40),
    Field("identity", ""),
    Field(
        "ranks",
        "number of ranks that made the call; exact time in all calls (messages and nonblocking "
        "collectives: wait and transfer)",
    ),
    Field("total_ns", "", "time"),
    Field("collectives", "number of collectives analysed; for messages, of calls", "analysed"),
    Field("wait_ns", "over its ranks; null: none was analysed", "waiting"),
    Field("transfer_ns", "", "transfer"),
    Field(
        "wait_share", "", "waiting share",
        of_row=lambda row: estimated(row.wait_share, row.estimate_share),
    ),
    Field("estimate_share", "part of wait and transfer that was split by durations (Estimate)"),
    Field(
        "top_rank", "the root cause of most of the waiting, and of how much", "largest cause",
        lambda rank: NO_VALUE if rank is None else f"rank {rank}",
    ),
    Field("top_cost_ns", "", "it caused"),
    Field("library", "`mpi`, `nccl`", "library", str.upper, is_number=False),
)


def percentile_text(row: Row, percent: int) -> str:
    """A percentile is shown if some of the calls are beyond it."""
    is_beyond = row.collectives * (100 - percent) >= 100
    return duration(getattr(row, f"transfer_p{percent}_ns")) if is_beyond else NO_VALUE


SIZE = (
    text("call", "as in [sizes](#sizes)", "call"),
    text("communicator", "", "communicator", 40),
    Field("identity", ""),
    Field("bytes", "", "bytes", size),
    Field(
        "collectives", "that were split; text shows p95 of 20 and more, p99 of 100 and more",
        "analysed",
    ),
    Field("skew_p50_ns", "last arrival - first arrival", "skew p50"),
    Field("skew_p95_ns", "", "skew p95"),
    Field(
        "transfer_p50_ns",
        "last return - last arrival, not less than 0; pN is the first value at which N % are "
        "reached",
        "transfer p50",
    ),
    *(
        Field(
            f"transfer_p{percent}_ns", "", f"transfer p{percent}",
            of_row=partial(percentile_text, percent=percent),
        )
        for percent in (95, 99)
    ),
    Field("wait_share", "wait / (wait + transfer) of the ranks"),
    Field("ranks", "of the communicator; as in table `call`"),
    Field("bandwidth", ""),
    Field(
        "busbw_bytes_per_s",
        "bus bandwidth as in [sizes](#sizes), over `transfer_p50_ns` in place of the mean "
        "duration; null if not all ranks wait for all (`call.waits_for`), because data may then "
        "move before the last arrival",
        "busbw",
    ),
)
STATE = (
    text("wait_state", "see above", "wait state"),
    Field(
        "calls", "number of analysed calls in which a rank waited so, each rank's counted", "calls"
    ),
    Field("wait_ns", "their waiting, scaled; its part of all waiting", "waited"),
    Field("share", "", "of waiting"),
)
LateRankRow = row_type("LateRankRow", RANK)  # sums over the split calls
LateHostRow = row_type("LateHostRow", HOST)
LateCallRow = row_type("LateCallRow", CALL)
# Blocking collectives of one size: arrivals, and the time from the last arrival to the last return.
# That is free of late arrivals: it is the library's own time, and so is the bus bandwidth over its
# median; a rooted collective has none, because data may move before the last arrival.
LateSizeRow = row_type("LateSizeRow", SIZE)
LateStateRow = row_type("LateStateRow", STATE)


class Sums:
    """The chosen waits of a run and their root causes, ready to be added up."""

    def __init__(self, chosen: Waits, scaled: Scaled, causes: Causes, texts: Texts) -> None:
        """chosen: of all ranks. causes: of the scaled waits."""
        self.chosen, self.scaled, self.causes, self.texts = chosen, scaled, causes, texts
        self.waits, self.factor = scaled.waits, scaled.factor
        self.wait_ns, self.transfer_ns = (
            self.waits.wait_ns * self.factor, self.waits.transfer_ns * self.factor,
        )
        self.caused_ns = causes.caused_ns * self.factor[causes.wait]

    def of_ranks(self, ranks: Iterable[int]) -> Flags:
        return np.isin(self.waits.world_rank, list(ranks))


def rank_rows(sums: Sums, hosts: Mapping[int, str | None]) -> list[Row]:
    """hosts: of all ranks, in order. gain_ns: by how much the longest wait of another rank would
    shrink had this one not been late."""
    waits, causes, ranks = sums.waits, sums.causes, list(hosts)
    number = max(ranks, default=0) + 1

    def summed(keys: Ints, values: np.ndarray) -> Floats:
        known = (keys >= 0) & (keys < number)
        return np.bincount(keys[known], values[known], number)

    of_cause = causes.wait
    is_direct = causes.cause_rank == waits.last_rank[of_cause]
    alone_ns = np.where(
        causes.cause_rank == waits.world_rank[of_cause], 0.0,
        waits.alone_ns[of_cause] * sums.caused_ns / np.maximum(1, waits.wait_ns[of_cause]),
    )
    last = _last_counts(waits, number)
    columns = [
        summed(waits.world_rank, (waits.sequence > 0) & ~waits.is_polled),
        summed(waits.world_rank, (waits.sequence < 0) & ~waits.is_polled),
        last,
        summed(waits.last_rank, sums.wait_ns),
        summed(waits.last_rank, waits.alone_ns * sums.factor),
        summed(causes.cause_rank, sums.caused_ns),
        summed(causes.cause_rank, np.where(is_direct, sums.caused_ns, 0.0)),
        _most_of_another(causes.cause_rank, waits.world_rank[of_cause], alone_ns, number),
        summed(waits.world_rank, sums.wait_ns),
        summed(waits.world_rank, sums.transfer_ns),
    ]
    rows = []
    for rank, host in hosts.items():
        own = [float(column[rank]) for column in columns]
        wait_share = share(own[-2], own[-2] + own[-1])
        rows.append(LateRankRow._make((rank, host, *map(rounded, own), wait_share)))
    return rows


def _last_counts(waits: Waits, number: int) -> Floats:
    """How often did each rank arrive last, or others wait for it?"""
    is_known = waits.last_rank != NONE
    ranks = np.append(waits.last_rank[is_known], waits.world_rank[waits.is_last])
    keys = (
        np.append(each[is_known], each[waits.is_last]) for each in (waits.identity, waits.sequence)
    )
    order, groups = grouped(*keys, ranks)
    return np.bincount(ranks[order[groups.first]], minlength=number)


def _most_of_another(causing: Ints, waiting: Ints, ns: Floats, number: int) -> Floats:
    order, groups = grouped(causing, waiting)
    most_ns = np.zeros(number)
    first = order[groups.first]
    known = (causing[first] >= 0) & (causing[first] < number)
    np.maximum.at(most_ns, causing[first][known], groups.sum(ns[order])[known])
    return most_ns


def host_rows(ranks: Iterable[Row]) -> list[Row]:
    rows = []
    for host, own in sorted(by(ranks, lambda row: row.host or "").items()):
        summed = {
            name: sum(getattr(row, name) for row in own) for name in LateHostRow._fields[2:-1]
        }
        wait_share = share(summed["wait_ns"], summed["wait_ns"] + summed["transfer_ns"])
        rows.append(LateHostRow(host, len(own), **summed, wait_share=wait_share))
    return rows


def call_rows(
    sums: Sums, ranks: Iterable[int], communicators: Mapping[str, Row],
    families: Mapping[str, str],
) -> list[Row]:
    """For each call and communicator. Nonblocking operations: the calls that completed them. ranks:
    the chosen ones. families: names of communicators, by identity; those of one name share rows."""
    waits, texts, exact = sums.waits, sums.texts, sums.scaled.exact
    names = Texts()
    name_of = np.array(
        [
            names.number(families.get(text, text)) if text in communicators else NONE
            for text in texts.texts
        ]
        + [NONE]
    )
    own = np.flatnonzero(sums.of_ranks(ranks) & (name_of[waits.identity] != NONE))
    of_exact = np.flatnonzero(np.isin(exact.world_rank, list(ranks)))
    completing = own[~waits.is_blocking_collective[own]]

    def timed_as(table: Columns, rows: Ints, ns: Floats) -> tuple[np.ndarray, ...]:
        """The subject of the rows: name, call, identity, rank, time."""
        return (
            name_of[table.identity[rows]], table.call[rows], table.identity[rows],
            table.world_rank[rows], ns,
        )

    timed = [
        timed_as(exact, of_exact, exact.total_ns[of_exact].astype(float)),
        timed_as(waits, completing, (sums.wait_ns + sums.transfer_ns)[completing]),
    ]
    name, call, identity, rank, total_ns = (np.concatenate(parts) for parts in zip(*timed))
    order, groups = grouped(name, call)
    keys = name[order[groups.first]], call[order[groups.first]]
    of_row = found_in((name_of[waits.identity[own]], waits.call[own]), keys)
    analysed = _distinct(of_row, waits.identity[own], waits.sequence[own], number=len(groups))
    wait_ns, transfer_ns, estimated_ns = (
        np.bincount(of_row, values[own], len(groups)) if len(own) else np.zeros(len(groups))
        for values in (
            sums.wait_ns, sums.transfer_ns,
            np.where(waits.is_estimate, sums.wait_ns + sums.transfer_ns, 0),
        )
    )
    top = _top_causes(sums, own, of_row)
    members = _distinct(groups.of_row, rank[order], number=len(groups))
    totals = groups.sum(total_ns[order])
    rows = []
    for place in range(len(groups)):
        of_group = order[groups.first[place] : groups.first[place] + groups.counts[place]]
        identities = sorted({texts.texts[each] for each in np.unique(identity[of_group])})
        split_ns = float(wait_ns[place] + transfer_ns[place])
        top_rank, top_ns = top.get(place, (None, None))
        is_split = bool(analysed[place])
        rows.append(
            LateCallRow(
                texts.texts[keys[1][place]],
                min(families.get(each, communicators[each].label) for each in identities),
                identities[0],
                int(members[place]),
                rounded(totals[place]),
                int(analysed[place]),
                rounded(wait_ns[place]) if is_split else None,
                rounded(transfer_ns[place]) if is_split else None,
                share(wait_ns[place], split_ns),
                share(estimated_ns[place], split_ns),
                top_rank,
                None if top_ns is None else rounded(top_ns),
                min(communicators[each].library for each in identities),
            )
        )
    return sorted(rows, key=lambda row: (-row.total_ns, row.call, row.communicator))


def _distinct(groups: Ints, *keys: Ints, number: int) -> Ints:
    """Number of different keys that the rows of each group have."""
    order, different = grouped(groups, *keys)
    return np.bincount(groups[order[different.first]], minlength=number)


def _top_causes(sums: Sums, own: Ints, of_row: Ints) -> dict[int, tuple[int, float]]:
    """For each row of waits `own`, of which of_row gives the group: the rank that causes most of
    the group's waiting, and how much."""
    group_of_wait = np.full(len(sums.waits), -1)
    group_of_wait[own] = of_row
    group, rank = group_of_wait[sums.causes.wait], sums.causes.cause_rank
    known = np.flatnonzero((group >= 0) & (rank != NONE))
    order, groups = grouped(group[known], rank[known])
    first = known[order[groups.first]]
    cost_ns = groups.sum(sums.caused_ns[known[order]])
    top: dict[int, tuple[int, float]] = {}
    for place in np.lexsort((rank[first], -cost_ns)).tolist():
        top.setdefault(int(group[first[place]]), (int(rank[first[place]]), float(cost_ns[place])))
    return top


def size_rows(
    sums: Sums, communicators: Mapping[str, Row], infos: Mapping[str, CallInfo]
) -> list[Row]:
    """Without nonblocking collectives, messages and estimates."""
    texts = sums.texts
    waits = sums.chosen.take(sums.chosen.is_blocking_collective & ~sums.chosen.is_estimate)
    order, collectives = grouped(waits.identity, waits.call, waits.bytes, waits.sequence)
    waits = waits.take(order)
    skew_ns = collectives.max(waits.start_ns) - collectives.min(waits.start_ns)
    last_ns = np.maximum(0, collectives.max(waits.end_ns) - collectives.max(waits.start_ns))
    of_size = waits.take(collectives.first)
    _, sizes = grouped(of_size.identity, of_size.call, of_size.bytes)
    keys, scaled = of_size.take(sizes.first), sums.waits
    row = found_in(*((each.identity, each.call, each.bytes) for each in (scaled, keys)))
    own = (row >= 0) & scaled.is_blocking_collective
    wait_ns, transfer_ns = (
        np.bincount(row[own], ns[own], len(sizes)) for ns in (sums.wait_ns, sums.transfer_ns)
    )
    rows = []
    for place, (first, count) in enumerate(zip(sizes.first.tolist(), sizes.counts.tolist())):
        skews, lasts = (
            np.sort(ns[first : first + count]).tolist() for ns in (skew_ns, last_ns)
        )
        communicator = communicators[texts.texts[keys.identity[place]]]
        info, message_bytes = infos[texts.texts[keys.call[place]]], _number(keys.bytes[place])
        p50_ns = of_values(lasts, 50)
        rows.append(
            LateSizeRow(
                info.call,
                communicator.label,
                communicator.identity,
                message_bytes,
                count,
                of_values(skews, 50),
                of_values(skews, 95),
                p50_ns,
                of_values(lasts, 95),
                of_values(lasts, 99),
                share(wait_ns[place], wait_ns[place] + transfer_ns[place]),
                communicator.size,
                info.bandwidth,
                _bus_bandwidth(info, message_bytes, communicator.size, p50_ns),
            )
        )
    return sorted(
        rows, key=lambda row: (row.call, row.communicator, -1 if row.bytes is None else row.bytes)
    )


def _bus_bandwidth(info: CallInfo, message_bytes: int | None, ranks: int, ns: int) -> float | None:
    if info.blocks is None or info.passes is None or message_bytes is None or not ns:
        return None
    whole_bytes = message_bytes * (ranks if info.blocks == "n" else 1)
    return whole_bytes * 1e9 / ns * (info.passes * (ranks - 1.0) / ranks if info.passes else 1)


def transfer_shares(
    sums: Sums, infos: Mapping[str, CallInfo]
) -> dict[tuple[str, str, int | None], float]:
    """The share of transfer in blocking calls of all ranks, by call, communicator and bytes (None:
    each rank has a size of its own)."""
    waits = sums.chosen.take(sums.chosen.completion == NONE)
    is_own = sums.texts.among(
        waits.call, {name for name, info in infos.items() if info.bandwidth == "own-size"}
    )
    message_bytes = np.where(is_own, NONE, waits.bytes)
    order, groups = grouped(waits.call, waits.identity, message_bytes)
    first = order[groups.first]
    transfer_ns, all_ns = (
        groups.sum(ns[order]) for ns in (waits.transfer_ns, waits.wait_ns + waits.transfer_ns)
    )
    texts = sums.texts.texts
    return {
        (texts[waits.call[row]], texts[waits.identity[row]], _number(message_bytes[row])): float(
            part / (whole or 1)
        )
        for row, part, whole in zip(first, transfer_ns, all_ns)
    }


def state_rows(sums: Sums, ranks: Iterable[int]) -> list[Row]:
    own = np.flatnonzero(sums.of_ranks(ranks) & (sums.waits.wait_state != NONE))
    state = sums.waits.wait_state[own]
    counts, waited_ns = np.bincount(state), np.bincount(state, sums.wait_ns[own])
    whole_ns = float(waited_ns.sum())
    rows = [
        LateStateRow(
            sums.texts.texts[each], int(counts[each]), rounded(waited_ns[each]),
            share(waited_ns[each], whole_ns),
        )
        for each in np.unique(state)
    ]
    return sorted(rows, key=lambda row: (-row.wait_ns, row.wait_state))


def held_up(sums: Sums) -> HeldUp:
    waits, texts = sums.waits, sums.texts
    own = np.flatnonzero(waits.wait_state == texts.number(NO_PROGRESS))
    order, groups = grouped(waits.last_rank[own], waits.call[own])
    first, wait_ns = own[order[groups.first]], groups.sum(sums.wait_ns[own[order]])
    known = [
        ((int(waits.last_rank[row]), texts.texts[waits.call[row]]), rounded(ns))
        for row, ns in zip(first.tolist(), wait_ns.tolist())
    ]
    return dict(sorted(known, key=lambda each: (-each[1], each[0])))


def rest_rows(
    sums: Sums, ranks: Iterable[int], inside: Iterable[Row]
) -> dict[str, int]:
    """The calls with most of the time that was not split, and that."""
    waits, chosen = sums.waits, set(ranks)
    call = np.where(waits.completion == NONE, waits.call, waits.completion)
    own = sums.of_ranks(chosen)
    split_ns = np.bincount(call[own], (sums.wait_ns + sums.transfer_ns)[own], len(sums.texts.texts))
    whole_ns: dict[str, int] = {}
    for row in inside:
        if row.world_rank in chosen:
            whole_ns[row.call] = whole_ns.get(row.call, 0) + row.total_ns
    numbers = sums.texts.numbers
    rest = {
        name: ns - (float(split_ns[numbers[name]]) if name in numbers else 0.0)
        for name, ns in whole_ns.items()
    }
    known = [(name, rounded(ns)) for name, ns in rest.items() if ns > 0]
    return dict(sorted(known, key=lambda each: (-each[1], each[0]))[:MOST_REST])


def run_row(
    sums: Sums, counted_ns: Mapping[int, int], inside: Iterable[Row]
) -> Row:
    """counted_ns: of the chosen ranks, for how long calls were counted. total_ns is exact; the
    samples' times are rounded apart from it."""
    own = sums.of_ranks(counted_ns)
    waits = sums.waits
    wait_ns, transfer_ns = float(sums.wait_ns[own].sum()), float(sums.transfer_ns[own].sum())
    sampled_ns = int((waits.wait_ns + waits.transfer_ns)[own].sum())
    is_estimate = own & waits.is_estimate
    estimated_ns = float((sums.wait_ns + sums.transfer_ns)[is_estimate].sum())
    order, operations = grouped(sums.chosen.identity, sums.chosen.sequence)
    sequence = sums.chosen.sequence[order[operations.first]]
    of_ranks = [row for row in inside if row.world_rank in counted_ns]
    whole_ns, mpi_ns = (
        sum(row.total_ns for row in of_ranks), sum(row.total_ns for row in of_ranks if row.is_mpi),
    )
    background_ns = sum(row.total_ns for row in of_ranks if row.is_mpi and not row.is_main)
    split_ns, all_counted_ns = wait_ns + transfer_ns, sum(counted_ns.values())
    return sums_row(
        ranks=len(counted_ns),
        collectives=int((sequence > 0).sum()),
        message_calls=int((sequence < 0).sum()),
        total_ns=min(int(whole_ns), MOST_NUMBER),
        sampled_ns=sampled_ns,
        coverage=share(split_ns, max(whole_ns, split_ns)),
        sampled_share=share(sampled_ns, split_ns),
        wait_ns=rounded(wait_ns),
        transfer_ns=rounded(transfer_ns),
        wait_share=share(wait_ns, split_ns),
        share_of_wall=share(split_ns, all_counted_ns),
        estimate_share=share(estimated_ns, split_ns),
        background_share=share(background_ns, mpi_ns) or 0.0,
        counted_ns=min(int(all_counted_ns), MOST_NUMBER),
        transfer_calls=_calls_of_half(sums, own),
    )


def _calls_of_half(sums: Sums, own: Flags) -> int:
    """The fewest collectives and calls for messages that have half of the transfer."""
    order, operations = grouped(sums.waits.identity[own], sums.waits.sequence[own])
    largest_ns = np.sort(operations.sum(sums.transfer_ns[own][order]))[::-1]
    if not largest_ns.any():
        return 0
    calls = int(np.searchsorted(np.cumsum(largest_ns), largest_ns.sum() / 2)) + 1
    return min(calls, len(largest_ns))


def chain(sums: Sums, ranks: Sequence[int]) -> tuple[float, list[int]]:
    """The share of the waiting that these ranks cause by arriving last themselves, and the ranks
    through which they cause the rest, as far as that is notable."""
    last, is_own = sums.waits.last_rank[sums.causes.wait], np.isin(sums.causes.cause_rank, ranks)
    by_last, whole_ns = sums_of(last[is_own], sums.caused_ns[is_own]), float(sums.caused_ns.sum())
    direct_ns = sum(by_last.pop(rank, 0.0) for rank in ranks)
    through = [
        rank for rank, ns in by_last.items() if rank is not None and ns >= NOTABLE * whole_ns
    ]
    return direct_ns / (whole_ns or 1), through


def uncaused_ns(sums: Sums, ranks: Iterable[int]) -> int:
    """How much of the waiting has no known cause?"""
    own = sums.of_ranks(ranks)[sums.causes.wait] & (sums.causes.cause_rank == NONE)
    return rounded(sums.caused_ns[own].sum())


def arrival_costs(sums: Sums, compared: Compared, infos: Mapping[str, CallInfo]) -> Costs:
    """Cost of each late arrival, in order of time: the collective, and each root cause's part of
    what the others waited; and of a collective in which not all wait for all, and of a message, how
    late each of its ranks was, in rows of their own without a cost. Any rank may be late at a
    collective in which all wait for all, and hold up a nonblocking one."""
    waits, causes, texts = sums.waits, sums.causes, sums.texts
    is_any = texts.among(waits.call, {name for name, info in infos.items() if info.kind == "all"})
    is_any |= (waits.wait_state == texts.number(NO_PROGRESS)) & (waits.sequence > 0)
    order, groups = grouped(waits.identity, waits.sequence)
    mean_factor = groups.sum(sums.factor[order]) / groups.counts
    keys = waits.identity[order[groups.first]], waits.sequence[order[groups.first]]
    group = found_in((compared.identity, compared.sequence), keys)
    compared, mean_factor = compared.take(group >= 0), mean_factor[group[group >= 0]]
    nothing, no_cost = np.full(len(compared), NONE), np.zeros(len(compared))
    of_wait = waits.take(causes.wait)
    parts = (
        (of_wait.identity, compared.identity),
        (of_wait.sequence, compared.sequence),
        (of_wait.call, compared.call),
        (of_wait.last_rank, nothing),
        (causes.cause_rank, compared.world_rank),
        (of_wait.start_ns + of_wait.wait_ns, compared.arrival_ns),
        (sums.caused_ns, no_cost),
        (np.where(is_any[causes.wait], sums.caused_ns, 0.0), compared.late_ns * mean_factor),
        (causes.caused_ns, no_cost),
        (np.full(len(causes), NONE), compared.awaited_rank),
    )
    identity, sequence, call, last, cause, arrival_ns, cost_ns, compared_ns, sampled_ns, awaited = (
        np.concatenate(pair) for pair in parts
    )
    order, groups = grouped(identity, sequence, call, last, cause)
    first = order[groups.first]
    named_call = np.where((sequence > 0) | (last != NONE), call, NONE)[first]
    arrival = numbered(identity[first], sequence[first], named_call, last[first])
    cost_ns, compared_ns, sampled_ns = (
        groups.sum(values[order]) for values in (cost_ns, compared_ns, sampled_ns)
    )
    arrival_ns = groups.min(arrival_ns[order])
    in_time = np.lexsort((-cost_ns, arrival, arrival_ns))
    first, arrival = first[in_time], arrival[in_time]
    _, place, number = np.unique(arrival, return_index=True, return_inverse=True)
    return Costs(
        call[first], identity[first], cause[first], cost_ns[in_time], compared_ns[in_time],
        arrival_ns[in_time], place[number], sampled_ns[in_time], awaited[first],
        sequence[first] < 0,
    )


def _number(value: np.int64) -> int | None:
    return None if value == NONE else int(value)


def share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


def rounded(value: float) -> int:
    """To the nearest integer that a column can hold, halves up."""
    return min(int(np.floor(value + 0.5)), MOST_NUMBER)


def estimated(share: float | None, estimate_share: float | None) -> str:
    return ("~" if estimate_share else "") + share_text(share)

"""The waits of a run added up: by rank, call, size, kind of waiting, and over the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..base import (
    AS_EVERYWHERE,
    Columns,
    Field,
    Flags,
    Floats,
    Groups,
    Ints,
    NONE,
    NO_VALUE,
    Row,
    Table,
    Texts,
    View,
    by,
    found_in,
    grouped,
    line_ns,
    np,
    number,
    numbered,
    of_groups,
    ratio,
    row_type,
    share as share_text,
    size,
    summarize,
    sums as grouped_by,
    text,
    threshold,
    values_of,
)
from ..calls.views import PASSES
from ..run import Cells
from .causes import Causes, Compared
from .judgement import sums_row
from .depends import Waits
from .reading import CallInfo
from .verdict import FEWEST_BLOCKS, Costs, fewest
from .wait_split import NO_PROGRESS

NOTHING = {"f": 0.0, "b": False, "i": NONE}
MOST_NUMBER = (1 << 63) - 1
ROOT_CAUSE = "root cause of"
RANK = (
    number("rank", AS_EVERYWHERE, "rank"),
    text("host", "", "host", 20),
    Field(
        "collectives",
        "analysed collectives with this rank; analysed calls in which a message decided",
    ),
    Field("message_calls", ""),
    Field(
        "last_count",
        "collectives in which it was last, and calls in which others waited for its message",
        "times last",
    ),
    Field("cost_ns", "what others waited for it", "others waited"),
    Field(
        "caused_ns",
        "the waiting of which it is the root cause; the part that it causes "
        "[directly](METHODS.md#root-causes)",
        ROOT_CAUSE,
    ),
    Field("direct_ns", ""),
    Field("wait_ns", "of its own calls", "waited"),
    Field("transfer_ns", "", "transfer"),
    Field("wait_share", "", "waiting share"),
)
HOST = (
    text("host", "its name; number of its ranks", "host", 40),
    Field("ranks", "", "ranks"),
    Field(
        "collectives",
        "sums over its ranks; cost includes what its own ranks waited",
    ),
    *(field._replace(meaning="") for field in RANK[3:] if field.key != "direct_ns"),
)
CALL = (
    text("call", AS_EVERYWHERE, "call"),
    text("communicator", "", "communicator", 40),
    Field("identity", ""),
    Field(
        "ranks",
        "ranks that made it; exact time in all calls (messages, nonblocking collectives: wait + "
        "transfer)",
    ),
    Field("total_ns", "", "time"),
    Field("collectives", "number of collectives analysed; for messages, of calls", "analysed"),
    Field("wait_ns", "over its ranks; null: none was analysed", "waiting"),
    Field("transfer_ns", "", "transfer"),
    Field(
        "wait_share",
        "",
        "waiting share",
        of_row=lambda row: estimated(row.wait_share, row.estimate_share),
    ),
    Field("estimate_share", "part of wait and transfer that was split by durations (Estimate)"),
    Field(
        "top_rank",
        "the root cause of most of the waiting, and of how much",
        "largest cause",
        lambda rank: NO_VALUE if rank is None else f"rank {rank}",
    ),
    Field("top_cost_ns", "", "it caused"),
    Field("library", AS_EVERYWHERE, "library", str.upper, is_number=False),
)


SIZE = (
    text("call", AS_EVERYWHERE, "call"),
    text("communicator", "", "communicator", 40),
    Field("identity", ""),
    Field("bytes", "", "bytes", size),
    Field(
        "collectives",
        "that were split",
        "analysed",
    ),
    Field("skew_p50_ns", "last arrival - first arrival", "skew p50"),
    Field("skew_p95_ns", "", "skew p95"),
    Field(
        "transfer_p25_ns",
        "last return - last arrival, at least 0; the first value at which N % are reached",
    ),
    Field(
        "transfer_p50_ns",
        "last return - last arrival, at least 0; the first value at which N % are reached",
        "transfer p50",
    ),
    Field("transfer_p95_ns", "", "transfer p95"),
    Field("transfer_p99_ns", ""),
    Field("wait_share", "of the ranks"),
    Field("ranks", "of the communicator"),
    Field("bandwidth", AS_EVERYWHERE),
    Field(
        "busbw_bytes_per_s",
        "[bus bandwidth](#words) over `transfer_p50_ns`; null if not all ranks wait for all",
        "busbw",
    ),
)
STATE = (
    text("wait_state", "[wait states](METHODS.md#whom-a-call-waits-for)", "wait state"),
    Field(
        "calls",
        "analysed calls in which a rank waited so, each rank's counted",
        "calls",
        of=lambda groups: groups.groups.counts,
    ),
    Field(
        "wait_ns",
        "their waiting, scaled; its part of all waiting",
        "waited",
        of=lambda groups: rounded_all(groups.sum("wait_ns")),
    ),
    Field(
        "share",
        "",
        "of waiting",
        of=lambda groups: ratio(groups.sum("wait_ns"), groups.sum("wait_ns").sum()),
    ),
)
LateHostRow = row_type("LateHostRow", HOST)
# Blocking collectives of one size: arrivals, and the time from the last arrival to the last return.
# That is free of late arrivals: it is the library's own time, and so is the bus bandwidth over its
# median; a rooted collective has none, because data may move before the last arrival.


class Sums(Table):
    """The chosen waits of a run and their root causes, ready to be added up: with the columns of
    the waits, where wait_ns and transfer_ns are scaled to all calls."""

    def __init__(
        self,
        rows: Ints,
        waits: Waits,
        factor: Floats,
        exact: Columns,
        texts: Texts,
    ) -> None:
        """waits: those rows of the run's Waits. factor: how many nanoseconds one sampled nanosecond
        of this rank, call and communicator represents. exact: the time of all calls of a rank on a
        communicator."""
        super().__init__(waits, texts)
        self.rows, self.waits, self.factor, self.exact = rows, waits, factor, exact
        self.wait_ns, self.transfer_ns = (
            self.waits.wait_ns * self.factor,
            self.waits.transfer_ns * self.factor,
        )
        nothing = waits.wait_ns[:0]
        self.add(Causes(wait=nothing, cause_rank=nothing, caused_ns=nothing * 1.0))

    def add(self, causes: Causes) -> None:
        """causes: of the run's waits."""
        wait = found_in((causes.wait,), (self.rows,))
        self.causes = causes.changed(wait=wait).take(wait >= 0)
        self.caused_ns = self.causes.caused_ns * self.factor[self.causes.wait]

    def of_ranks(self, ranks: Iterable[int]) -> Flags:
        return np.isin(self.waits.world_rank, list(ranks))


def stacked(*parts: Mapping[str, np.ndarray]) -> Columns:
    """Rows of several kinds. A kind has nothing in columns that it lacks: 0, False or NONE."""
    nothing = {name: NOTHING[values.dtype.kind] for part in parts for name, values in part.items()}
    lengths = [len(next(iter(part.values()))) for part in parts]
    return Columns(
        **{
            name: np.concatenate(
                [part.get(name, np.full(n, value)) for part, n in zip(parts, lengths)]
            )
            for name, value in nothing.items()
        }
    )


def rank_rows(sums: Sums, hosts: Mapping[int, str | None]) -> list[Row]:
    """Sums over the split calls. hosts: of all ranks, in order."""
    waits, causes, ranks = sums.waits, sums.causes, np.array(list(hosts), np.int64)

    def summed(place: Ints, values: np.ndarray) -> Floats:
        return np.bincount(place[place >= 0], values[place >= 0], len(ranks))

    own, awaited, cause = (
        found_in((rank,), (ranks,))
        for rank in (waits.world_rank, waits.last_rank, causes.cause_rank)
    )
    is_counted, last = ~waits.is_polled, waits.take(waits.is_last)
    late = stacked(
        {"rank": waits.last_rank, "identity": waits.identity, "sequence": waits.sequence},
        {"rank": last.world_rank, "identity": last.identity, "sequence": last.sequence},
    )
    order, late_in = grouped(late.rank, late.identity, late.sequence)
    first = order[late_in.first]
    is_direct = causes.cause_rank == waits.last_rank[causes.wait]
    wait_ns, transfer_ns = (summed(own, ns) for ns in (sums.wait_ns, sums.transfer_ns))
    columns = (
        ranks,
        [*hosts.values()],
        *(
            rounded_all(values)
            for values in (
                summed(own, is_counted & (waits.sequence > 0)),
                summed(own, is_counted & (waits.sequence < 0)),
                summed(found_in((late.rank[first],), (ranks,)), late.identity[first] != NONE),
                summed(awaited, sums.wait_ns),
                summed(cause, sums.caused_ns),
                summed(cause, np.where(is_direct, sums.caused_ns, 0.0)),
                wait_ns,
                transfer_ns,
            )
        ),
        ratio(wait_ns, wait_ns + transfer_ns),
    )
    return rows_of_columns(row_type("LateRankRow", RANK), columns)


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
    sums: Sums,
    ranks: Iterable[int],
    communicators: Mapping[str, Row],
    families: Mapping[str, str],
) -> list[Row]:
    """For each call and communicator. Nonblocking operations: the calls that completed them. ranks:
    the chosen ones. families: names of communicators, by identity; those of one name share rows."""
    texts, names = sums.texts, Texts()
    of_texts = [families.get(each, each) if each in communicators else None for each in texts.texts]
    name_of, order = np.append(names.all(of_texts), NONE), texts.order()
    rows = _timed(sums)
    rows = rows.take(np.isin(rows.world_rank, list(ranks)) & (name_of[rows.identity] != NONE))
    rows = rows.changed(name=name_of[rows.identity], place=order[rows.identity])
    groups = grouped_by(Table(rows, texts), ["call", "name"])
    analysed = groups.within("identity", "sequence", where=lambda rows: rows.is_split)
    analysed_count = np.bincount(analysed.of, minlength=len(groups))
    causes = groups.within("cause_rank", where=lambda rows: rows.cause_rank != NONE)
    top = groups.first_of(causes, -causes.sum("caused_ns"), causes.cause_rank)
    top_rank, top_ns = (
        np.append(values, NONE)[top]
        for values in (causes.keys[1], rounded_all(causes.sum("caused_ns")))
    )
    wait_ns, transfer_ns = groups.sum("wait_ns"), groups.sum("transfer_ns")
    identities = groups.texts(np.argsort(order)[groups.min("place")])
    columns = (
        groups.texts(groups.call),
        [families.get(each, communicators[each].label) for each in identities],
        identities,
        groups.distinct("world_rank", lambda rows: rows.is_timed),
        rounded_all(groups.sum("timed_ns")),
        analysed_count,
        *(np.where(analysed_count, rounded_all(ns), NONE) for ns in (wait_ns, transfer_ns)),
        ratio(wait_ns, wait_ns + transfer_ns),
        ratio(groups.sum("estimated_ns"), wait_ns + transfer_ns),
        top_rank,
        top_ns,
        [communicators[each].library for each in identities],
    )
    return sorted(
        rows_of_columns(row_type("LateCallRow", CALL), columns),
        key=lambda row: (-row.total_ns, row.call, row.communicator),
    )


def _timed(sums: Sums) -> Columns:
    """The terms of call_rows: the exact time of blocking collectives, waits, and their causes."""
    waits, exact = sums.waits, sums.exact
    spent_ns = sums.wait_ns + sums.transfer_ns
    completes = ~waits.is_blocking_collective

    def keys(rows: Columns, place: slice | Ints = slice(None)) -> dict[str, np.ndarray]:
        return {name: getattr(rows, name)[place] for name in ("identity", "call", "world_rank")}

    return stacked(
        {
            **keys(exact),
            "timed_ns": exact.total_ns.astype(float),
            "is_timed": np.ones(len(exact), bool),
        },
        {
            **keys(waits),
            "sequence": waits.sequence,
            "is_split": np.ones(len(waits), bool),
            "wait_ns": sums.wait_ns,
            "transfer_ns": sums.transfer_ns,
            "estimated_ns": np.where(waits.is_estimate, spent_ns, 0.0),
            "is_timed": completes,
            "timed_ns": np.where(completes, spent_ns, 0.0),
        },
        {
            **keys(waits, sums.causes.wait),
            "cause_rank": sums.causes.cause_rank,
            "caused_ns": sums.caused_ns,
        },
    )


def size_rows(
    sums: Sums, communicators: Mapping[str, Row], infos: Mapping[str, CallInfo]
) -> list[Row]:
    """Without nonblocking collectives, messages and estimates."""
    groups = grouped_by(
        sums,
        ["call", "identity", "bytes"],
        lambda rows: rows.is_blocking_collective & ~rows.is_estimate,
    )
    each = groups.within("sequence")
    of_size, last_start_ns = Groups(each.of), each.max("start_ns")
    skew_ns = last_start_ns - each.min("start_ns")
    last_ns = np.maximum(0, each.max("end_ns") - last_start_ns)
    of_call = [infos[text] for text in groups.texts(groups.call)]
    of = [communicators[text] for text in groups.texts(groups.identity)]
    wait_ns, p50_ns = groups.sum("wait_ns"), of_groups(last_ns, of_size, 50)
    sizes = list(values_of(groups.bytes))
    columns = (
        [info.call for info in of_call],
        [communicator.label for communicator in of],
        [communicator.identity for communicator in of],
        sizes,
        of_size.counts,
        *(of_groups(skew_ns, of_size, percent) for percent in (50, 95)),
        of_groups(last_ns, of_size, 25),
        p50_ns,
        *(of_groups(last_ns, of_size, percent) for percent in (95, 99)),
        ratio(wait_ns, wait_ns + groups.sum("transfer_ns")),
        [communicator.size for communicator in of],
        [info.bandwidth for info in of_call],
        [
            _bus_bandwidth(info, size, communicator.size, ns)
            for info, size, communicator, ns in zip(of_call, sizes, of, p50_ns.tolist())
        ],
    )
    return sorted(
        rows_of_columns(row_type("LateSizeRow", SIZE), columns),
        key=lambda row: (row.call, row.communicator, -1 if row.bytes is None else row.bytes),
    )


def slow_size(rows: Sequence[Row], sampled_share: float | None, least_ns: float) -> dict[str, Any]:
    """The columns of the size that costs the most more than its neighbours, and least_ns or more;
    empty: none does. rows: of size_rows."""
    found = []
    for own in by(rows, lambda row: (row.call, row.identity)).values():
        # in rooted ones data may move before the last arrival
        own = [row for row in own if row.busbw_bytes_per_s and row.collectives >= FEWEST_BLOCKS]
        for before, row, after in zip(own, own[1:], [*own[2:], None]):
            near = (each and (each.bytes, each.transfer_p50_ns) for each in (before, after))
            usual_ns = line_ns(row.bytes, *near)
            more_ns = (row.transfer_p50_ns - usual_ns) * row.collectives / (sampled_share or 1)
            is_slow = row.transfer_p25_ns >= threshold("late.slow-link") * usual_ns > 0
            if is_slow and more_ns >= least_ns:
                found.append((round(more_ns), row.transfer_p50_ns / usual_ns, row.bytes, row.call))
    keys = "excess_ns", "times", "bytes", "call"
    return {f"slow_size_{key}": value for key, value in zip(keys, max(found, default=()))}


def rows_of_columns(kind: Any, columns: Iterable[Any]) -> list[Row]:
    return list(map(kind._make, zip(*(values_of(np.asarray(column)) for column in columns))))


def _bus_bandwidth(info: CallInfo, message_bytes: int | None, ranks: int, ns: int) -> float | None:
    passes, is_of_all = PASSES.get(info.bandwidth), (info.waits_for or "").startswith("all")
    if not is_of_all or passes is None or message_bytes is None or not ns:
        return None
    whole_bytes = message_bytes * (ranks if info.bandwidth == "allgather" else 1)
    return whole_bytes * 1e9 / ns * (passes * (ranks - 1.0) / ranks if passes else 1)


def transfer_shares(
    sums: Sums, infos: Mapping[str, CallInfo]
) -> dict[tuple[str, str, int | None], float]:
    """The share of transfer in blocking calls of all ranks, by call, communicator and bytes (None:
    each rank has a size of its own)."""
    own_size = {name for name, info in infos.items() if info.bandwidth == "own-size"}

    def size(rows: Any) -> Ints:
        return np.where(rows.is_in("call", *own_size), NONE, rows.bytes)

    groups = grouped_by(
        Table(sums.waits, sums.texts),
        ["call", "identity", size],
        lambda rows: rows.completion == NONE,
    )
    transfer_ns = groups.sum("transfer_ns")
    shares = transfer_ns / np.maximum(1, transfer_ns + groups.sum("wait_ns"))
    keys = zip(groups.texts(groups.call), groups.texts(groups.identity), values_of(groups.keys[2]))
    return dict(zip(keys, shares.tolist()))


def state_rows(sums: Sums, ranks: Iterable[int]) -> list[Row]:
    is_own = sums.of_ranks(ranks)
    view = View(
        "LateStateRow",
        ["wait_state"],
        STATE,
        lambda groups: (-rounded_all(groups.sum("wait_ns")), groups.place("wait_state")),
        lambda rows: is_own & (rows.wait_state != NONE),
    )
    return summarize(sums, view)


def held_up(sums: Sums) -> dict[tuple[int, str], int]:
    """The waiting for a rank's progress in operations that it has begun, by rank and call, the
    longest first."""
    groups = grouped_by(
        sums, ["last_rank", "call"], lambda rows: rows.is_in("wait_state", NO_PROGRESS)
    )
    keys = zip(groups.last_rank.tolist(), groups.texts(groups.call))
    known_ns = dict(zip(keys, rounded_all(groups.sum("wait_ns")).tolist()))
    return dict(sorted(known_ns.items(), key=lambda each: (-each[1], each[0])))


def rest_rows(sums: Sums, ranks: Sequence[int], inside: Cells) -> dict[str, int]:
    """The calls with most of the time that was not split, and that."""
    waits = sums.waits
    call = np.where(waits.completion == NONE, waits.call, waits.completion)
    own = sums.of_ranks(ranks)
    counted = grouped_by(inside, ["call"], lambda cells: np.isin(cells.world_rank, ranks))
    rest_ns = Counter[str](dict(zip(counted.texts(counted.call), counted.sum("total_ns").tolist())))
    split_ns = np.bincount(call[own], (sums.wait_ns + sums.transfer_ns)[own])
    for name, ns in zip(sums.texts.texts, split_ns.tolist()):
        rest_ns[name] -= ns
    known = [(name, rounded(ns)) for name, ns in rest_ns.items() if ns > 0]
    return dict(sorted(known, key=lambda each: (-each[1], each[0]))[:3])


def run_row(sums: Sums, counted_ns: Mapping[int, int], inside: Cells, setting_up: Columns) -> Row:
    """counted_ns: of the chosen ranks, for how long calls were counted. total_ns is exact; the
    samples' times are rounded apart from it. setting_up: calls that need not be split."""
    own = sums.of_ranks(counted_ns)
    waits = sums.waits
    wait_ns, transfer_ns = float(sums.wait_ns[own].sum()), float(sums.transfer_ns[own].sum())
    sampled_ns = int((waits.wait_ns + waits.transfer_ns)[own].sum())
    estimated_ns = float((sums.wait_ns + sums.transfer_ns)[own & waits.is_estimate].sum())
    keys = ["identity", "sequence"]
    of_all, of_own = grouped_by(sums, keys), grouped_by(sums, keys, lambda rows: own)
    is_counted, is_mpi = np.isin(inside.world_rank, [*counted_ns]), inside.is_in("library", "mpi")
    whole_ns, mpi_ns, background_ns = (
        sum(inside.total_ns[is_counted & which].tolist())
        for which in (True, is_mpi, is_mpi & ~inside.is_main)
    )
    split_ns, all_counted_ns = wait_ns + transfer_ns, sum(counted_ns.values())
    is_chosen = np.isin(setting_up.world_rank, list(counted_ns))
    to_split_ns = whole_ns - int((setting_up.end_ns - setting_up.start_ns)[is_chosen].sum())
    return sums_row(
        ranks=len(counted_ns),
        collectives=int((of_all.sequence > 0).sum()),
        message_calls=int((of_all.sequence < 0).sum()),
        total_ns=min(int(whole_ns), MOST_NUMBER),
        sampled_ns=sampled_ns,
        coverage=share(split_ns, max(to_split_ns, split_ns)),
        sampled_share=share(sampled_ns, split_ns),
        wait_ns=rounded(wait_ns),
        transfer_ns=rounded(transfer_ns),
        wait_share=share(wait_ns, split_ns),
        share_of_wall=share(split_ns, all_counted_ns),
        estimate_share=share(estimated_ns, split_ns),
        background_share=share(background_ns, mpi_ns) or 0.0,
        counted_ns=min(int(all_counted_ns), MOST_NUMBER),
        transfer_calls=fewest(of_own.sum("transfer_ns"), 0.5),
    )


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
    operations = grouped_by(sums, ["identity", "sequence"])
    mean_factor = operations.sum("factor") / operations.groups.counts
    group = found_in((compared.identity, compared.sequence), operations.keys)
    compared, mean_factor = compared.take(group >= 0), mean_factor[group[group >= 0]]
    wait = causes.wait
    rows = stacked(
        {
            "identity": waits.identity[wait],
            "sequence": waits.sequence[wait],
            "call": waits.call[wait],
            "last": waits.last_rank[wait],
            "cause_rank": causes.cause_rank,
            "arrival_ns": waits.start_ns[wait] + waits.wait_ns[wait],
            "cost_ns": sums.caused_ns,
            "compared_ns": np.where(is_any[wait], sums.caused_ns, 0.0),
            "sampled_ns": causes.caused_ns,
        },
        {
            "identity": compared.identity,
            "sequence": compared.sequence,
            "call": compared.call,
            "cause_rank": compared.world_rank,
            "arrival_ns": compared.arrival_ns,
            "compared_ns": compared.late_ns * mean_factor,
            "awaited_rank": compared.awaited_rank,
        },
    )
    groups = grouped_by(Table(rows, texts), ["identity", "sequence", "call", "last", "cause_rank"])
    is_named = (groups.sequence > 0) | (groups.last != NONE)
    arrival = numbered(
        groups.identity, groups.sequence, np.where(is_named, groups.call, NONE), groups.last
    )
    cost_ns, arrival_ns = groups.sum("cost_ns"), groups.min("arrival_ns")
    in_time = np.lexsort((-cost_ns, arrival, arrival_ns))
    _, place, number = np.unique(arrival[in_time], return_index=True, return_inverse=True)
    costs = Costs(
        call=groups.call,
        identity=groups.identity,
        cause_rank=groups.cause_rank,
        cost_ns=cost_ns,
        compared_ns=groups.sum("compared_ns"),
        sampled_ns=groups.sum("sampled_ns"),
        arrival=arrival,
        arrival_ns=arrival_ns,
        awaited_rank=groups.awaited_rank,
        is_message=groups.sequence < 0,
    )
    return costs.take(in_time).changed(arrival=place[number])


def share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


def rounded(value: float) -> int:
    """To the nearest integer that a column can hold, halves up."""
    return min(int(np.floor(value + 0.5)), MOST_NUMBER)


def rounded_all(values: Floats) -> Ints:
    return np.array([rounded(value) for value in values], np.int64)


def estimated(share: float | None, estimate_share: float | None) -> str:
    return ("~" if estimate_share else "") + share_text(share)

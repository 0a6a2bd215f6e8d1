"""Who is waited for."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Callable

from commprof_report.base import NONE, Columns, Row, Texts, np, table
from commprof_report.late.reading import CallInfo, is_resolved, is_spinning
from commprof_report.late.judgement import (
    ASLEEP,
    compared,
    is_by_transfer,
    judged,
    sums_row,
    verdict_of,
)
from commprof_report.late.late_ranks import is_beside_main, unfinished_ranks
from commprof_report.late.messages import are_possible, slow_links
from commprof_report.late.marks import last_ranks, region_of
from commprof_report.late.causes import comparable, largest
from commprof_report.late.wait_split import is_explained
from commprof_report.late.retimed import depends, is_by_transfers
from commprof_report.late.sentences import notable_rest, rest_text
from commprof_report.late.verdict import (
    FEWEST_BLOCKS,
    LEVEL,
    LONG_BLOCK,
    MOSTLY_LEVEL,
    MOST_BLOCKS,
    NOBODY,
    Costs,
    Participants,
    Suspects,
    blame,
    block_count,
    costs_of,
    is_concentrated,
    persistence,
    when,
)
from commprof_report.late.depends import Waits
from commprof_report.run.alignment import Error
from commprof_report.run.crowding import Use

from .stored import stored

COUNTED_NS = 1_000_000
SHARES = {"coverage": 1.0, "sampled_share": 1.0, "share_of_wall": 0.5}
NOTHING = "message_calls wait_ns wait_share estimate_share background_share".split()
MOVING = dict.fromkeys(("total_ns", "sampled_ns", "transfer_ns"), 500_000)  # all time inside MPI
COUNTS = {"ranks": 4, "collectives": 100, "counted_ns": COUNTED_NS, "transfer_calls": 50}
RUN = sums_row(**COUNTS, **MOVING, **SHARES, **dict.fromkeys(NOTHING, 0))
WAITING = RUN._replace(wait_ns=500_000, transfer_ns=0)
BLOCKS = 16


def verdict(negotiated: float = 0.0, blocks: int = 16, **differing: object) -> str:
    return str(verdict_of(RUN._replace(**differing), negotiated, 0, NOBODY, blocks))


def caused(*costs: dict[int | None, float]) -> Costs:
    """The costs of ranks at each arrival; None: it is not known who."""
    rows = [(place, *each) for place, own in enumerate(costs) for each in own.items()]
    return costs_of(*zip(*rows))


def participants(hosts: dict[int, str]) -> Participants:
    return Participants(range(len(hosts)), hosts, {0: range(len(hosts))}, Texts())


def one_last(ranks: Iterable[int]) -> Costs:
    """The rank that comes last to each arrival."""
    return caused(*({rank: 1.0} for rank in ranks))


def ranks_text(ranks: Sequence[int]) -> str:
    if len(ranks) > 1:
        return f"ranks {ranks[0]}-{ranks[-1]}"
    return f"rank {ranks[0]}" if ranks else "nobody"


def named(costs: Costs, ranks: int) -> str:
    found = Suspects(costs, range(ranks)).beyond_chance(LEVEL)
    return ranks_text(sorted(found[0]) if found else [])


def mostly(costs: dict[int | None, float], ranks: int) -> str:
    """Rank 0 causes this share of each block, and each other one as much of the rest."""
    rest = 1 - sum(costs.values())
    others = {rank: rest / (ranks - 1) for rank in range(1, ranks)}
    every = caused(*[{**costs, **others}] * BLOCKS)
    found = blame(every, participants(dict.fromkeys(range(ranks), ""))).named
    return f"mostly {ranks_text(found.ranks)}" if found else "nobody"


def with_another(share: float) -> str:
    """Rank 0 is always last of eight; rank 1 waits for this share of what the rest do, and the run
    gains more if it is on time, too."""
    waited_ns = {0: 0, 1: round(share * 100), **dict.fromkeys(range(2, 8), 100)}
    eight = participants(dict.fromkeys(range(8), ""))._replace(waited_ns=waited_ns)
    costs = caused(*[{0: 1e7}] * BLOCKS)
    found = blame(costs, eight, lambda ranks: 10 ** len(ranks)).named
    return ranks_text(found.ranks)


def named_below_half(costs: Costs, ranks: int) -> str:
    found = Suspects(costs, range(ranks)).below_half(MOSTLY_LEVEL)
    return ranks_text(sorted(found[0]) if found else [])


def at_chance(p: float, who: Callable[[Costs, int], str] = named) -> str:
    """Rank 1 costs most in 12 blocks, and rank 0 so much that this is as probable. Costs differ, so
    that many sums do."""

    def costs(other: float) -> Costs:
        return caused(*({1: 12.0 + at, 0: other * (12 + 7 * at % 12)} for at in range(12)))

    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        found = Suspects(costs(middle), range(3)).beyond_chance(1.0)
        assert found
        low, high = (middle, high) if found[1] < p else (low, middle)
    return who(costs(low), 3)


def at_persistence(correlation: float) -> str:
    """Costs of 300 arrivals, each with a part of the one before."""
    chance = random.Random(1)
    costs = [chance.expovariate(1) for _ in range(301)]

    def causes(part: float) -> Costs:
        return caused(*({0: cost + part * before} for before, cost in zip(costs, costs[1:])))

    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        is_less = persistence(causes(middle)) < correlation
        low, high = (middle, high) if is_less else (low, middle)
    return "short blocks" if block_count(causes(low)) > MOST_BLOCKS else "long blocks"


def in_slight_blocks(share: float) -> str:
    """Rank 1 costs 1 in four blocks, and this share of its mean in each of the others."""
    slight = share * 4 / (BLOCKS - share * (BLOCKS - 4))
    return named(caused(*[{1: 1.0}] * 4, *[{1: slight}] * (BLOCKS - 4)), 4)


def of_a_host(share: float) -> str:
    """Rank 0 causes most of the waiting, and the others of its host this share."""
    host = {0: 0.6, **{rank: share / 3 for rank in (1, 2, 3)}, None: 0.4 - share}
    hosts = {rank: f"node{rank // 4}" for rank in range(16)}
    found = blame(caused(*[host] * BLOCKS), participants(hosts)).named
    return ranks_text(found.ranks if found else ())


def with_lateness(ns: float) -> str:
    """Rank 0 is late by so much at each arrival."""
    costs = one_last([0] * BLOCKS).changed(sampled_ns=np.full(BLOCKS, 3 * ns))
    hosts = dict.fromkeys(range(4), "node")
    found = blame(costs, participants(hosts), lambda ranks: COUNTED_NS)
    kind, _ = judged(WAITING, 0.0, 0, found, BLOCKS)
    return str(kind)


NAMES = (
    "identity sequence world_rank call bytes region start_ns end_ns wait_ns transfer_ns "
    "last_rank is_last is_estimate completion wait_state peer peer_ns operations is_polled"
).split()


def among_links(pairs: int, times: float) -> str:
    """So many pairs send messages; those of the first one take so many times as long."""
    texts = Texts()
    same, rows = (False, False, None, "late sender"), []
    for pair, message in product(range(pairs), range(FEWEST_BLOCKS)):
        transfer_ns = round(1_000 * (1 if pair else times))
        row = ("abc", -message, 2 * pair, "MPI_Recv", 8, "", 0, 0, 1, transfer_ns)
        rows.append((*row, 2 * pair + 1, *same, 2 * pair + 1, 0, 1, False))
    waits = table(Waits, rows, texts, NAMES)
    infos = {"MPI_Recv": CallInfo("MPI_Recv", "mpi", "point-to-point", "", "sender", None, 1, "")}
    hosts = dict.fromkeys(range(2 * pairs), "node")
    names = "call identity bytes peer wait_state".split()
    of_waits = {name: getattr(waits, name) for name in names}
    messages = Columns(wait=np.arange(len(rows)), **of_waits)
    found = slow_links(waits, np.ones(len(rows)), messages, infos, hosts, texts)
    return "a slow link" if found else "like others"


def in_one(share: float) -> str:
    """Rank 0 causes this share in one of 20 arrivals, and the rest in the others."""
    causes = caused({0: share}, *[{0: (1 - share) / 19}] * 19)
    return "few" if when(causes, causes)[0] else "many"


def rest_of(share: float) -> str:
    answers = Answers(RUN, {"MPI_Recv": round(share * RUN.total_ns)})
    return "said" if notable_rest(answers) else "silent"


class Answers:
    """As late_ranks.Late, of a run with unmatched messages."""

    def __init__(self, run: Row, rest: dict[str, int], unnumbered: int = 0) -> None:
        self.run, self.rest = self, rest
        self.unsure = self.uncompleted = 0
        self.unmatched, self.unnumbered = 1_000, unnumbered
        self.total_ns, self.ranks = run.total_ns, run.ranks


def without_numbers(share: float) -> str:
    text = rest_text(Answers(RUN, {}, round(share * 1_000)))
    return "wildcards" if "MPI_ANY_SOURCE" in text else "no reason"


def inside(share: float) -> str:
    doing = {"doing_call": "MPI_Recv", "doing_is_inside": 1, "doing_ns": share * COUNTED_NS}
    connection = stored(
        doing=[{"world_rank": 0, **doing}],
        call=[{"name": "MPI_Recv", "family": "point-to-point"}],
        rank_state=[{"world_rank": 0, "state": "running"}],
        rank_wall=[{"world_rank": 0, "counted_ns": COUNTED_NS}],
    )
    return "has not returned" if unfinished_ranks(connection) else "runs"


def contradicting(ns: int) -> str:
    """A message is received, and so long after that it is sent."""
    sides = Columns(
        channel=np.zeros(2, np.int64),
        posted_ns=np.array([ns, 0]),
        gone_ns=np.array([NONE, 0]),
        since_ns=np.full(2, -1),
        until_ns=np.ones(2),
        is_probe=np.zeros(2, bool),
    )
    send, receive = np.array([0]), np.array([1])
    return "matched" if are_possible(sides, send, receive, np.zeros(1)).all() else "not matched"


def with_causes(number: int) -> str:
    found = largest({rank: 1_000.0 for rank in range(number)}, number * 1_000)
    return "some not known" if NONE in found else "all known"


def at_marks(behind: Callable[[int], int], length_ns: int = 1_000, error_ns: float = 0.0) -> str:
    """Rank 0 is behind the mean of the others by so much in each of 9 steps."""
    steps = {step: {0: behind(step), 1: 0} for step in range(9)}
    last = last_ranks(steps, {step: length_ns for step in steps}, error_ns)
    return "rank 0" if {rank for rank, _ in last.values()} == {0} else "nobody"


def during_visits(share: float) -> str:
    """Another thread communicates in this share of the visits."""
    visits = [(10 * place, 10 * place + 5) for place in range(1_000)]
    is_it = region_of("wait", {0: visits}, {0: visits[: round(1_000 * share)]})
    return "a wait region" if is_it else "another region"


def reasoned(share: float) -> str:
    """A rank that is longer outside MPI by a second, and asleep for this share of it. The rest is
    time on a core, and waiting for one, in equal parts."""
    rest_ns = (1 - share) / 2 * 1e9
    own = Use(1e9, 0.0, rest_ns, rest_ns, 1.0, 0.0, 0.0)
    others = Use(0.0, 1e9, 1e9, 0.0, 0.0, 0.0, 0.0)
    found = compared(own, others)
    return found.kind if found and found.kind == ASLEEP else "silent"


def serving(times: float) -> str:
    """Rank 0 makes so many times the calls of the others, and is longer in transfer."""
    spent_ns = {rank: [100, 50 if rank else 90, 0, 0, 0, 0] for rank in range(3)}
    calls = {0: 1_000 * times, 1: 1_000, 2: 1_000}
    return "serves" if is_by_transfer(calls, spent_ns, {0}) else "late"


EXAMPLES = {
    "late.reason": reasoned,
    "late.covered": lambda share: verdict(coverage=share),
    "late.negotiated": lambda share: verdict(share),
    "late.notable": lambda share: verdict(transfer_ns=int(share * COUNTED_NS)),
    "late.transfers": lambda calls: verdict(sampled_share=0.1, transfer_calls=calls),
    "late.blocks": lambda blocks: verdict(blocks=blocks, wait_ns=400_000, transfer_ns=100_000),
    "late.level": at_chance,
    "late.brief": at_persistence,
    "late.most-blocks": lambda number: (
        "long blocks"
        if block_count(one_last([0] * LONG_BLOCK * number)) == number
        else "longer blocks"
    ),
    "late.long-block": lambda number: (
        "as many blocks as may be"
        if block_count(one_last([0] * number * MOST_BLOCKS)) == MOST_BLOCKS
        else "fewer blocks"
    ),
    "late.ranks-per-named": lambda ranks: named(
        caused(*[{0: 0.45, 1: 0.45, None: 0.1}] * BLOCKS), 2 * ranks
    ),
    "late.majority": lambda share: named(caused(*[{0: share, None: 1 - share}] * BLOCKS), 4),
    "late.mostly": lambda share: mostly({0: share, None: 0.48}, ranks=8),
    "late.times-others": lambda times: mostly({0: times / 64}, ranks=64),
    "late.mostly-level": lambda p: at_chance(p, named_below_half),
    "late.notably-more": of_a_host,
    "late.shortest": with_lateness,
    "late.spin": lambda ns: (
        "waits" if is_spinning(np.array([100 * ns]), np.array([5_000]), 50).all() else "computes"
    ),
    "late.progress": lambda share: (
        "a wait for progress"
        if is_explained(np.array([1_000 * share]), np.array([1_000])).all()
        else "not known"
    ),
    "late.partner": lambda share: (
        "depends on it"
        if depends(np.array([1_000 * share]), np.array([1_000])).all()
        else "by itself"
    ),
    "late.by-transfers": lambda share: (
        "saved"
        if is_by_transfers(1_000 - round(1_000 * share), round(1_000 * share))
        else "not saved"
    ),
    "late.slow-link": lambda times: among_links(4, times),
    "late.pairs": lambda number: among_links(number, 10.0),
    "late.slight": in_slight_blocks,
    "late.nearly-all": in_one,
    "late.hardly": with_another,
    "late.concentrated": lambda share: (
        "few" if is_concentrated(round(1_000 * share), 1_000) else "many"
    ),
    "late.rest": rest_of,
    "late.wildcards": without_numbers,
    "late.unfinished": inside,
    "late.clock-error": lambda share: (
        "split" if is_resolved(Error(1_000 * share, 0), 1_000) else "not split"
    ),
    "late.background": lambda share: (
        "not known" if is_beside_main(RUN._replace(background_share=share)) else "efficiencies"
    ),
    "late.contradiction": contradicting,
    "late.fewer-messages": lambda times: (
        "compared" if comparable(np.array([times]), np.array([1])).all() else "not compared"
    ),
    "late.serving": serving,
    "late.causes": with_causes,
    "late.least-cause": lambda share: "known" if 1 in largest({1: share}, 1.0) else "not known",
    "late.mark-lead": lambda share: at_marks(lambda step: round(10_000 * share), 10_000),
    "late.mark-errors": lambda errors: at_marks(lambda step: round(10_000 * errors), 1, 10_000),
    "late.communicated": during_visits,
}

"""The time inside MPI after the set-up of a job, which is no part of a comparison: communicators
are created, and Barriers follow before any other call. These wait for the launch and set up
connections.

Calls that only start operations cannot wait, so their time is transfer: whether the start or the
completion of a message does the work depends on the library.
"""

from __future__ import annotations

from collections import defaultdict, namedtuple

from ..base import NONE, Floats, Ints, gathered, np
from ..late.depends import Waits
from ..late.late_ranks import Split
from ..late.sums import Sums, rounded, share, transfer_shares

BARRIER = "MPI_Barrier"


class Times(
    namedtuple(
        "Times",
        "begin_ns wait_ns transfer_ns total_ns is_split first_barriers shares shares_of_calls",
    )
):
    """begin_ns (on the run's axis), wait_ns, transfer_ns: of sampled calls of all ranks, scaled to
    all such calls. total_ns: of all calls. is_split: a call was analysed. first_barriers:
    durations, by communicator and rank. shares: of transfer, by call, communicator and bytes; of
    calls that complete requests, or only start them, by call."""

    def of_ranks(self, ranks: int, since_ns: int = NONE) -> dict[str, float | None]:
        """wait_ns and transfer_ns per rank, from a time on; null: no call was analysed."""
        is_known, own = self.is_split or not self.total_ns, self.begin_ns >= since_ns
        return {
            name: rounded(getattr(self, name)[own].sum()) / ranks if is_known else None
            for name in ("wait_ns", "transfer_ns")
        }

    @property
    def coverage(self) -> float:
        known_ns = float((self.wait_ns + self.transfer_ns).sum()) if self.is_split else 0.0
        return share(known_ns, max(known_ns, self.total_ns)) or 0.0

    def share(self, call: str, identity: str, size: int | None) -> float | None:
        return self.shares.get((call, identity, size), self.shares_of_calls.get(call))


def times_of(split: Split) -> Times:
    calls, texts = split.known.calls, split.sums.texts
    sums, early = _without_first_barriers(split)
    inside: dict[str, int] = defaultdict(int)
    for row in split.inside:
        if row.call not in calls or calls[row.call].family != "communicator":
            inside[row.call] += row.total_ns
    early_ns = (early.wait_ns + early.transfer_ns).tolist()
    barriers = gathered(
        ((texts.texts[identity], rank), ns)
        for identity, rank, ns in zip(early.identity, early.world_rank.tolist(), early_ns)
    )
    starting = {
        name
        for name, call in calls.items()
        if name in inside
        and call.only_starts
        and (call.library, call.family != "io") == ("mpi", True)
    }
    begin_ns, starts_ns = _starts(split, {call: inside[call] for call in starting})
    return Times(
        np.append(sums.waits.start_ns, begin_ns),
        np.append(sums.wait_ns, np.zeros(len(starts_ns))),
        np.append(sums.transfer_ns, starts_ns),
        sum(inside.values()) - sum(map(sum, barriers.values())),
        len(sums.waits) > 0,
        barriers,
        transfer_shares(sums, calls),
        _completing(sums) | dict.fromkeys(starting, 1.0),
    )


def _without_first_barriers(split: Split) -> tuple[Sums, Waits]:
    """The sums without Barriers that a rank makes before its first other call, and these."""
    sums, called = split.sums, split.of_all.called
    is_other = ~split.known.which(
        called.calls.call,
        sums.texts,
        lambda call: call.family == "communicator" or call.call == BARRIER,
    )
    ranks, first = np.unique(called.calls.world_rank[is_other], return_index=True)
    first_ns = np.full(max(called.ranks, default=0) + 1, NONE)
    first_ns[ranks] = called.start_ns[is_other][first]

    waits = sums.waits
    is_early = sums.texts.among(waits.call, {BARRIER})
    is_early &= waits.start_ns < first_ns[waits.world_rank]
    own = ~is_early
    left = Sums(sums.rows[own], waits.take(own), sums.factor[own], sums.exact, sums.texts)
    return left, waits.take(is_early)


def _starts(split: Split, inside: dict[str, int]) -> tuple[Ints, Floats]:
    """Begin and time of the sampled calls among these, scaled to the time of all."""
    called, texts = split.of_all.called, split.sums.texts
    own = texts.among(called.calls.call, inside)
    calls = called.calls.take(own)
    sampled_ns = (calls.end_ns - calls.start_ns).astype(float)
    of_call = np.bincount(calls.call, sampled_ns, len(texts.texts))
    all_ns = np.zeros(len(texts.texts))
    for call, ns in inside.items():
        if call in texts.numbers:
            all_ns[texts.numbers[call]] = ns
    return called.start_ns[own], sampled_ns * (all_ns / np.maximum(1, of_call))[calls.call]


def _completing(sums: Sums) -> dict[str, float]:
    """The share of transfer in calls that complete requests."""
    waits, own = sums.waits, sums.waits.completion != NONE
    number = len(sums.texts.texts)
    wait_ns, transfer_ns = (
        np.bincount(waits.completion[own], ns[own], number).tolist()
        for ns in (sums.wait_ns, sums.transfer_ns)
    )
    return {
        text: transfer / (wait + transfer)
        for text, wait, transfer in zip(sums.texts.texts, wait_ns, transfer_ns)
        if wait + transfer
    }

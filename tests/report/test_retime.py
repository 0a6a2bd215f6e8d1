"""Graphs of calls, written down by hand: playing them again, what would change, efficiencies."""

from __future__ import annotations

import random

import numpy as np
import pytest

from commprof_report.retime.graph import Calls, Chains, Depends, Graph, Members, efficiency


COLUMNS = {
    Calls: "chain start_ns end_ns",
    Chains: "world_rank window begin_ns end_ns",
    Members: "group call delta_ns",
    Depends: "call source delta_ns",
}


def columns(kind, rows):
    names = COLUMNS[kind].split()
    values = np.array(rows, np.int64).reshape(-1, len(names)).T
    found = dict(zip(names, values))
    return kind(**found, is_own=values[0] < 0) if kind is Calls else kind(**found)


def graph(ranks, groups=(), depends=(), windows=None):
    """ranks: of each its calls. groups: the places (rank, call) that wait for each other. depends:
    pairs of places, the first one waits for the begin of the second."""
    rows = [(rank, *call) for rank, calls in enumerate(ranks) for call in calls]
    first = np.cumsum([0, *map(len, ranks)])
    at = lambda place: int(first[place[0]]) + place[1]  # noqa: E731
    chains = [(rank, 0, 0, calls[-1][1]) for rank, calls in enumerate(ranks)]
    members = [(number, at(place), 0) for number, group in enumerate(groups) for place in group]
    edges = [(at(own), at(other), 0) for own, other in depends]
    edges += [(call, len(rows) + len(ranks) + number, 0) for number, call, _ in members]
    return Graph(
        columns(Calls, rows),
        columns(Chains, chains),
        columns(Members, members),
        columns(Depends, edges),
    )


def collectives(arrivals, transfer=1):
    """Graph of ranks that make only collectives of all. arrivals: of each the begins."""
    ends = [max(begins) + transfer for begins in arrivals]
    ranks = [
        [(begins[rank], end) for begins, end in zip(arrivals, ends)]
        for rank in range(len(arrivals[0]))
    ]
    groups = [[(rank, number) for rank in range(len(ranks))] for number in range(len(arrivals))]
    return graph(ranks, groups)


@pytest.fixture(params=[1, 1_000])
def wide(request, monkeypatch):
    """From how many nodes on a level is found at once."""
    monkeypatch.setattr("commprof_report.retime.graph.WIDE", request.param)


def test_without_a_change_each_call_has_exactly_its_recorded_time(wide):
    chance = random.Random(1)
    ranks, groups, depends, now = [[] for _ in range(5)], [], [], [0] * 5
    for _ in range(200):
        who = sorted(chance.sample(range(5), chance.choice((2, 3, 5))))
        begins = [now[rank] + chance.randrange(50) for rank in who]
        for rank, begin in zip(who, begins):
            is_held = chance.random() < 0.7
            end = (max(begins) if is_held else begin) + 1 + chance.randrange(9)
            ranks[rank].append((begin, end))
            now[rank] = end
        places = [(rank, len(ranks[rank]) - 1) for rank in who]
        if chance.random() < 0.5:
            groups.append(places)
        else:
            depends.append((places[0], places[1]))
    played = graph(ranks, groups, depends)
    assert played.is_whole
    times = played.play(played.unchanged)
    assert times.tolist() == played.times_ns.tolist()


def test_what_began_after_a_call_has_returned_did_not_hold_it_up():
    played = graph([[(10, 12)], [(40, 41)]], depends=[((0, 0), (1, 0))])
    assert played.transfer_ns.tolist() == [2, 1]


def test_calls_that_wait_for_each_other_in_a_circle_are_refused(wide):
    """Both begins are before both ends, but each rank's second call is needed for its first."""
    calls = columns(Calls, [(0, 10, 30), (0, 20, 31), (1, 10, 30), (1, 20, 31)])
    depends = columns(Depends, [(0, 3, 0), (2, 1, 0)])
    chains = columns(Chains, [(0, 0, 0, 31), (1, 0, 0, 31)])
    assert not Graph(calls, chains, columns(Members, []), depends).is_whole


@pytest.mark.parametrize(
    ("arrivals", "transfer", "expected"),
    [
        # all work for 10 and lose nothing but the transfer of 10 in 20
        ([(10, 10)], 10, (1, 1, 0.5)),
        # one works for 10, the other for 30, then 10 of transfer
        ([(10, 30)], 10, (20 / 30, 1, 30 / 40)),
        # both work for 40, but not at the same time: each waits for 20
        ([(10, 30), (60, 40)], 0, (1, 40 / 60, 1)),
    ],
)
def test_efficiencies_are_those_of_hand(arrivals, transfer, expected):
    played = collectives(arrivals, transfer)
    ideal = played.play(played.unchanged._replace(transfer_ns=0 * played.transfer_ns))
    found = efficiency(played.useful_ns(), int(played.lasts_ns(ideal).sum()), int(played.played_ns))
    parts = (found.load_balance, found.serialization, found.transfer_efficiency)
    assert parts == pytest.approx(expected)
    assert found.communication_efficiency == pytest.approx(expected[1] * expected[2])
    assert found.parallel_efficiency == pytest.approx(np.prod(expected))

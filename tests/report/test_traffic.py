"""Bulk and control traffic: the threshold is found where a person would put it."""

from __future__ import annotations

import planted
import pytest
from cases import of
from planted import Cell, Rank, Sample, Signature, Window


@pytest.fixture
def traffic(report, tmp_path):
    """The answer about a job of two ranks with these cells each."""

    def answer(*cells: Cell, words=("--json",)):
        ranks = [Rank(rank, 2, cells=list(cells)) for rank in range(2)]
        return report(
            "traffic", planted.write_databases(tmp_path / f"run-{len(words)}", ranks), *words
        )

    return answer


def classes(rows: list[dict]) -> dict[tuple[str, str], tuple[int, int, int]]:
    return {of(row, "traffic call"): of(row, "count least_bytes most_bytes") for row in rows}


HOROVOD = (
    *(
        Cell("MPI_Allreduce", size, [20_000], times=times)
        for size, times in ((8, 1_500), (16, 615), (24, 200))
    ),
    *(
        Cell("MPI_Allreduce", size, [9_000_000], times=times)
        for size, times in ((22 << 20, 20), (1 << 20, 200), (102_400, 151))
    ),
    Cell("MPI_Bcast", 4, [30_000], times=81),
    Cell("MPI_Gather", 4, [30_000], times=81),
    Cell("MPI_Barrier", 0, [10_000], times=3),
    Cell("MPI_Init_thread", 0, [10**9], communicator=0),
)


def test_horovod_s_negotiation_is_control(traffic):
    assert classes(traffic(*HOROVOD).rows) == {
        ("bulk", "MPI_Allreduce"): (2 * 371, 102_400, 22 << 20),
        ("control", "MPI_Allreduce"): (2 * 2_315, 8, 24),
        ("control", "MPI_Gather"): (162, 4, 4),
        ("control", "MPI_Bcast"): (162, 4, 4),
        ("control", "MPI_Barrier"): (6, 0, 0),
    }


def test_starts_are_of_either_kind_and_persistent_operations_have_no_ratio(traffic):
    cells = (
        *(
            Cell(call, 1 << 20, [900], volume_bytes=0)
            for call in ("MPI_Send_init", "MPI_Recv_init")
        ),
        *(
            Cell(call, 1 << 20, [90_000], measure="completion", times=100)
            for call in ("MPI_Send_init", "MPI_Recv_init")
        ),
        Cell("MPI_Startall", 0, [500], communicator=0, times=100),
        Cell("MPI_Waitall", 0, [80_000], communicator=0, times=100),
        Cell("MPI_Barrier", 0, [10_000], times=3),
    )
    assert classes(traffic(*cells).rows) == {
        ("bulk", "MPI_Send_init"): (2, 1 << 20, 1 << 20),
        ("bulk", "MPI_Recv_init"): (2, 1 << 20, 1 << 20),
        ("completion", "MPI_Waitall"): (200, 0, 0),
        ("completion", "MPI_Startall"): (200, 0, 0),
        ("control", "MPI_Barrier"): (6, 0, 0),
    }
    text = traffic(*cells, words=()).out
    assert (
        "for each bulk call" not in text
        and "Persistent      operations are counted once, where they are set up" in text
    )


def test_the_text_says_how_many_control_calls_there_are_for_each_bulk_call(traffic):
    text = traffic(*HOROVOD, words=()).out
    assert "Control calls   6.68 for each bulk call" in text
    (bits,) = [
        line for line in text.splitlines() if line.split()[:2] == ["Control", "MPI_Allreduce"]
    ]
    assert " 24 B " in bits
    assert text.splitlines()[1].startswith("Bulk       742    13.0 %  ")


def test_a_single_size_is_bulk(traffic):
    assert classes(traffic(Cell("MPI_Allreduce", 8, [10] * 50)).rows) == {
        ("bulk", "MPI_Allreduce"): (100, 8, 8)
    }


def test_small_gradients_are_not_control_because_they_are_few(traffic):
    """Up to the first leap: negotiation has 8 to 24 bytes, the least tensor 256."""
    tensors = [
        Cell("MPI_Allreduce", size, [40_000], times=5)
        for size in (256, 512, 1_024, 4_096, 9_408, 22 << 20)
    ]
    rows = traffic(
        *tensors, *(Cell("MPI_Allreduce", size, [20_000], times=900) for size in (8, 16, 24))
    ).rows
    assert classes(rows) == {
        ("bulk", "MPI_Allreduce"): (60, 256, 22 << 20),
        ("control", "MPI_Allreduce"): (5_400, 8, 24),
    }


KINDS = [
    Signature(1, "MPI_LONG_LONG", 8, 8, 1, 1, "MPI_BAND"),
    Signature(2, "MPI_FLOAT", 4, 4, 1, 64, "MPI_SUM"),
    Signature(3, "MPI_BYTE", 1, 1, 1, 9_000),
    Signature(4, "MPI_FLOAT", 4, 4, 1, 2_250),
]


def negotiating(is_main: int, rounds: int = 40, has_bits: int = 1) -> list[Rank]:
    """Small gradients, and lists of names that are longer than those: to rank 0, which sends none,
    if there are no rounds of bits."""
    made = (
        *[("MPI_Allreduce", 8, 1)] * has_bits,
        ("MPI_Allreduce", 256, 2),
        ("MPI_Gatherv", 9_000, 3),
        ("MPI_Bcast", 9_000, 4),
    )
    calls = [one for one in made for _ in range(rounds)]
    times = [
        (1_000_000 * number, 1_000_000 * number + 10_000) for number in range(1, len(calls) + 1)
    ]
    return [
        Rank(
            rank,
            2,
            threads=[(0, "train", 1), (1, "horovod", 0)],
            communicators=planted.communicators_of(rank)[:1],
            signatures=KINDS,
            cells=[
                Cell(call, size, [10_000] * rounds, thread=1 - is_main) for call, size, _ in made
            ],
            samples=[
                Sample(
                    call,
                    *time,
                    bytes=size,
                    sequence=place,
                    thread=1 - is_main,
                    signature=None
                    if call == "MPI_Gatherv" and (rank, has_bits) == (0, 0)
                    else kind,
                )
                for place, ((call, size, kind), time) in enumerate(zip(calls, times), 1)
            ],
            windows=[Window(0, 10**9, 1 - is_main)],
        )
        for rank in range(2)
    ]


@pytest.mark.parametrize(
    "made, control, told",
    [
        ((0, 40), {("MPI_Allreduce", 8), ("MPI_Gatherv", 9_000)}, 320),
        ((0, 40, 0), {("MPI_Gatherv", 9_000)}, 200),
        ((1, 40), {("MPI_Allreduce", 8)}, 0),
        ((0, 9), {("MPI_Allreduce", 8)}, 0),
    ],
    ids=["negotiates", "by name", "main thread", "few rounds"],
)
def test_what_a_negotiating_thread_calls_is_told_by_what_it_is(
    report, tmp_path, made, control, told
):
    folder = planted.write_databases(tmp_path / "run", negotiating(*made))
    rows = report("traffic", folder, "--json").rows
    assert {of(row, "call most_bytes") for row in rows if row["traffic"] == "control"} == control
    assert sum(row["told_count"] for row in rows) == told
    assert ("Negotiation " in report("traffic", folder).out) == bool(told)

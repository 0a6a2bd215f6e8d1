"""Bulk, control and negotiation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sqlite3 import Connection

from commprof_report.calls.views import size_view
from commprof_report.calls.by_size import OddSizes, odd_sizes
from commprof_report.run.selection import traffic_classify

from .stored import stored

BULK = {"call": "MPI_Alltoall", "bytes": 10**9, "count": 1_000}
WAITS = {"Alltoall": "all", "Allreduce": "all", "Gather": "root-last", "Bcast": "root-first"}
FUNCTIONS = [
    {"name": f"MPI_{name}", "family": "collective", "form": "blocking", "waits_for": waits_for}
    for name, waits_for in WAITS.items()
]
BITS, BYTES, FLOATS = 1, 2, 3
SIGNATURES = (
    {"world_rank": 0, "signature": BITS, "op": "MPI_BAND", "datatype": "MPI_LONG", "count": 1},
    {"world_rank": 0, "signature": BYTES, "op": "", "datatype": "MPI_BYTE", "count": 64},
    {"world_rank": 0, "signature": FLOATS, "op": "", "datatype": "MPI_FLOAT", "count": 16},
)


KIND = ("call", "bytes", "signature")
Samples = Mapping[tuple[str, int, int], int]  # how many of each call, size and signature


def classified(cells: Iterable[Mapping[str, object]], samples: Samples | None = None) -> Connection:
    """A run with these cells and samples, all of a thread beside the main one."""
    own = {"world_rank": 0, "thread": 1}
    of_all = {"communicator": 2}
    connection = stored(
        communicator=[{"world_rank": 0, **of_all, "identity": "a"}],
        communicator_of=[{"world_rank": 0, **of_all, "size": 2}],
        cell=[
            {"cell": at, **own, **of_all, **cell, "measure": "call"}
            for at, cell in enumerate(cells, 1)
        ],
        call=FUNCTIONS,
        thread=[{**own, "is_main": 0}],
        signature=SIGNATURES,
        sample=[
            {**own, **of_all, **dict(zip(KIND, kind)), "sequence": sequence}
            for kind, number in (samples or {}).items()
            for sequence in range(number)
        ]
        or "world_rank thread communicator call bytes signature sequence",
    )
    traffic_classify(connection)
    return connection


def traffic(call: str, sizes: Iterable[int], samples: Samples | None = None) -> str:
    """Which traffic the largest of these sizes of a call is, beside bulk of another one."""
    cells = [{"call": call, "bytes": size, "count": 3} for size in sizes]
    last = "SELECT traffic FROM cell_traffic ORDER BY cell DESC"
    return classified([BULK, *cells], samples).execute(last).fetchone()[0]


def of_neighbours(times: int) -> str:
    return "a line" if of_odd_sizes(64 * times, 0.1) else "no line"


def of_odd_sizes(above: int, share: float) -> list[OddSizes]:
    """100 B between 64 B and another size; it takes this much more than these."""
    sizes = (64, 100, above)
    empty = size_view().row(*[None] * len(size_view().fields))
    what = {"call": "MPI_Allreduce", "identity": "a", "library": "mpi", "measure": "call"}
    rows = []
    for size in sizes:
        own = dict.fromkeys(("bytes", "bytes_low", "bytes_high"), size)
        own |= {"p50_ns": 1_000.0 * (1 + share * (size == 100)), "power_of_two": size != 100}
        rows.append(empty._replace(count=20, p95_ns=1_000.0, **what, **own))
    return odd_sizes(rows)


def with_rounds(number: int) -> str:
    found = classified([BULK], {("MPI_Allreduce", 8, BITS): number})
    is_negotiating = found.execute("SELECT 1 FROM negotiating").fetchone()
    return "a thread that negotiates" if is_negotiating else "no thread"


def sent_from_a_root(times: int) -> str:
    found = classified([BULK, {"call": "MPI_Bcast", "bytes": 8, "count": times}])
    sizes = "SELECT threshold_bytes FROM control_size WHERE call = 'MPI_Bcast'"
    row = found.execute(sizes).fetchone()
    return f"{row[0]} B" if row else "no threshold"


def with_share(share: float) -> str:
    cells = [
        {"call": "MPI_Allreduce", "bytes": 8, "count": share * 10**6},
        {"call": "MPI_Alltoall", "bytes": 8_000, "count": (1 - share) * 10**3},
    ]
    return classified(cells).execute("SELECT traffic FROM cell_traffic").fetchone()[0]


def distributed_once(size: int) -> str:
    cells = [BULK, {"call": "MPI_Bcast", "bytes": size, "count": 1}]
    return classified(cells).execute("SELECT traffic FROM cell_traffic").fetchall()[-1][0]


def of_types(share: float) -> str:
    """A thread that negotiates; so many of its Gathers carry bytes, the others numbers."""
    samples = {
        ("MPI_Allreduce", 8, BITS): 100,
        ("MPI_Gather", 64, BYTES): round(1_000 * share),
        ("MPI_Gather", 64, FLOATS): round(1_000 * (1 - share)),
    }
    return traffic("MPI_Gather", [64], samples)


EXAMPLES = {
    "calls.neighbours": of_neighbours,
    "calls.odd-sizes": lambda share: "said" if of_odd_sizes(128, share) else "silent",
    "calls.rounds": with_rounds,
    "calls.distributed": sent_from_a_root,
    "calls.most-control-bytes": lambda size: traffic(
        "MPI_Allreduce", [*(64 * 3**place for place in range(7)), size]
    ),
    "calls.control-share": with_share,
    "calls.control-jump": lambda ratio: traffic("MPI_Allreduce", [64, 64 * ratio]),
    "calls.control-bytes": distributed_once,
    "calls.data-share": of_types,
}

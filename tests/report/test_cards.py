"""The first screen of the page, and of `summary`: what a step is, and where time in MPI is
negotiation."""

from __future__ import annotations

import dataclasses
import re
from html import unescape

import planted
from planted import Cell, Communicator, Negotiation, Rank, Sample, Signature, Window
from test_root_causes import MS

STEPS, STEP_NS, WALL_NS = 40, 20 * MS, 1_000 * MS
BITS, GRADIENTS = (
    Signature(1, "MPI_LONG_LONG", 8, 8, 1, 1, "MPI_BAND"),
    Signature(2, "MPI_FLOAT", 4, 4, 1, 25_000, "MPI_SUM"),
)
SENT = [(12, 2, 300_000), (16, 1, 100_000)]  # ms after the begin of a step, ms that it takes, bytes
CARD = re.compile(r'<div class="card"><b>(.*?)</b><span>(.*?)</span></div>')


def world(rank: int) -> Communicator:
    return dataclasses.replace(planted.communicators_of(rank)[0], members="0-1", size=2)


def training() -> list[Rank]:
    """Steps of two Allreduces each; before them ten rounds of half a millisecond, after the last of
    which it sends."""
    made = []
    for step in range(STEPS):
        begin_ns = 10 * MS + step * STEP_NS
        made += [(begin_ns + number * MS, MS // 2, 8, BITS) for number in range(1, 11)]
        made += [(begin_ns + at * MS, spent * MS, size, GRADIENTS) for at, spent, size in SENT]
    times: dict[int, list[int]] = {}
    for _, spent_ns, size, _ in made:
        times.setdefault(size, []).append(spent_ns)
    what = {"wall_ns": WALL_NS, "windows": [Window(0, WALL_NS, 1)]}
    what["facts"] = {**planted.facts_of(0), "boot_id": "a1", "time_namespace": "time:[1]"}
    what["facts"]["command_line"] = f"python3 train.py --steps {STEPS}"
    what |= {"threads": [(0, "train", 1), (1, "horovod", 0)], "signatures": [BITS, GRADIENTS]}
    idle = Negotiation(10 * STEPS, idle=(9 * STEPS, 9 * STEPS * MS))
    samples = []
    for place, (begin_ns, spent_ns, size, kind) in enumerate(made, 1):
        how = {"bytes": size, "sequence": place, "thread": 1, "signature": kind.signature}
        samples.append(Sample("MPI_Allreduce", begin_ns, begin_ns + spent_ns, **how))
    return [
        Rank(
            rank,
            2,
            communicators=[world(rank)],
            cells=[Cell("MPI_Allreduce", *own, thread=1) for own in times.items()],
            samples=samples,
            negotiations=[idle],
            **what,
        )
        for rank in range(2)
    ]


def test_a_job_that_negotiates_says_what_a_step_is_and_what_is_data(report, tmp_path):
    folder = planted.write_databases(tmp_path / "run", training())
    assert report("html", folder, "-o", tmp_path / "page.html").status == 0
    header = (tmp_path / "page.html").read_text().partition("</header>")[0]
    cards = [(value, unescape(text)) for value, text in CARD.findall(header)]
    assert cards[:3] == [
        ("20.0 ms", "a step, the mean of 40 steps"),
        ("12.0 %", "of wall time in data operations; 20.0 % in negotiation"),
        ("1.00 s", "wall time; 0.30 % of it is the profiler's own"),
    ]

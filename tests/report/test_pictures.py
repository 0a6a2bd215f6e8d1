"""Pictures and the page: what is drawn, and that nothing from a file gets loose in it."""

from __future__ import annotations

import argparse
import re
import sys
from html import unescape
from itertools import combinations
from math import log2

import planted
import pytest
from commprof_report.calls.by_size import hvprof_rows, latency_rows
from commprof_report.calls.parts import PeerRow, peer_rows
from commprof_report.calls.views import CALLS, RANK_TIMES, size_rows
from commprof_report.commands import hvprof
from commprof_report.display import pictures
from commprof_report.display.pictures import DARK, PAPER, TRANSFER, WAITING, in_both_modes, of_call
from commprof_report.plots import bars
from commprof_report.plots.bars import histogram_of, lines_of, map_of
from commprof_report.run.run import run_open
from commprof_report.run.selection import FILTERS, select, view_rows
from commprof_report.steps.columns import step_row
from parallel import world
from planted import Cell, Communicator, Negotiation, Rank, Sample, Signature, Window
from test_root_causes import MS

matplotlib = pytest.importorskip("matplotlib")

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
DRAWING = ("sizes", "latency", "peers", "ranks", "calls", "steps", "hvprof")


@pytest.fixture
def axes():
    from matplotlib.figure import Figure

    return Figure().add_subplot()


def draw(axes, picture) -> list:
    """The axes that the figure then has."""
    figure = axes.figure
    picture.draw(axes)
    return figure.axes


@pytest.fixture
def connection(run_folder):
    run = run_open(run_folder)
    select(run, argparse.Namespace(**dict.fromkeys(FILTERS)))
    return run.connection


@pytest.mark.slow
@pytest.mark.parametrize("ending", STARTS)
@pytest.mark.parametrize("command", DRAWING)
def test_a_picture_is_written_by_its_ending(report, run_folder, tmp_path, command, ending):
    path = tmp_path / f"picture.{ending}"
    assert report(command, run_folder, "--plot", path).status == 0
    assert path.read_bytes().startswith(STARTS[ending])


def small_run(cell: Cell, ranks: int = 2, *samples: planted.Sample) -> list[Rank]:
    what = {"cells": [cell], "samples": [*samples]}
    return [Rank(own, ranks, communicators=[world(own, ranks)], **what) for own in range(ranks)]


BCAST = Cell("MPI_Bcast", 8, [1_000])
ONE_CALL = planted.Sample("MPI_Bcast", 5_000, 6_000, bytes=8, sequence=1, root=0)
SMALL_RUNS = {
    "without messages": small_run(Cell("MPI_Barrier", 0, [100])),
    "set-up only": small_run(Cell("MPI_Init", 0, [1_000_000], communicator=0)),
    "one rank": small_run(BCAST, 1),
    "without samples": small_run(Cell("MPI_Allreduce", 8, [1_000] * 40)),
    "one call": small_run(BCAST, 2, ONE_CALL),
}
UNSAMPLED = (
    "Who is late is not known: single calls are not sampled on all ranks (COMMPROF_SAMPLES)."
)
NO_MESSAGE = "no point-to-point message{} between two ranks of the job was counted in this run"
WHY_NONE = {  # "": drawn; in the order of SMALL_RUNS
    "calls": [""] * 5,
    "latency": [""] * 5,
    "sizes": [*["no call with a message was counted in this run"] * 2, "", "", ""],
    "hvprof": ["", "no call of this run that fits the filters carries a message", "", "", ""],
    "ranks": ["", "no call but those that set MPI up was counted in this run", "", "", ""],
    "peers": [NO_MESSAGE.format(" of a byte or more")] * 5,
    "peers --counts": [NO_MESSAGE.format("")] * 5,
    "gpu": ["no GPU was used, or none was found"] * 5,
    "gpu --by kernel": ["no GPU was used, or none was found"] * 5,
    "late": [
        UNSAMPLED,
        "No call makes ranks wait for each other.",
        "One rank: there is nobody to wait for.",
        UNSAMPLED,
        "Who is late is not known: no call was split into waiting and transfer.",
    ],
    "steps": [
        "no steps: none of 2 collectives between ranks was sampled",
        "no steps: no collective between ranks was counted",
        "no steps: no collective between ranks was counted",
        "no steps: none of 80 collectives between ranks was sampled",
        "no steps: in the calls of rank 0: 1 call is too few, 8 are needed",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL_RUNS)
@pytest.mark.parametrize("command", WHY_NONE)
def test_a_picture_of_a_small_run_is_drawn_or_it_is_said_why_not(report, tmp_path, command, name):
    folder = planted.write_databases(tmp_path / "run", SMALL_RUNS[name])
    path = tmp_path / "picture.svg"
    why = WHY_NONE[command][list(SMALL_RUNS).index(name)]
    answer = report(*command.split(), folder, "--plot", path)
    said = f"hvprof-report: {path}: not drawn: {why}\n" if why else ""
    assert (answer.status, answer.err, path.exists()) == (bool(why), said, not why)
    assert not why or not answer.out


@pytest.mark.parametrize("version", [None, (3, 5, 3, "final", 0)])
def test_without_a_new_matplotlib_a_picture_is_refused_in_one_line(
    report, run_folder, tmp_path, monkeypatch, version
):
    if version:
        monkeypatch.setattr("matplotlib.__version_info__", version)
    else:
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    answer = report("sizes", run_folder, "--plot", tmp_path / "x.png")
    assert (answer.status, answer.err.count("\n")) == (1, 1)
    assert "no matplotlib 3.6 or newer is installed" in answer.err


def test_the_bars_of_calls_are_as_long_as_their_time(axes, connection):
    rows = view_rows(connection, CALLS)
    draw(axes, bars.of_calls(rows))
    names = [label.get_text() for label in axes.get_yticklabels()]
    lengths = {
        names[round(bar.get_y() + bar.get_height() / 2)]: bar.get_width() for bar in axes.patches
    }
    assert lengths == {row.call: row.total_ns for row in rows}


def test_the_bars_of_ranks_stack_to_the_time_of_all_threads(axes, connection):
    rows = view_rows(connection, RANK_TIMES)
    draw(axes, bars.of_ranks(rows))
    bars_ = [bar for bar in axes.patches if round(bar.get_x() + bar.get_width() / 2) == 0]
    of_rank_0 = sum(row.total_ns for row in rows if row.rank == 0)
    assert sum(bar.get_height() for bar in bars_) == of_rank_0


def test_the_latency_histogram_holds_every_call(axes, connection):
    rows = latency_rows(connection, "MPI_Allreduce", 4 << 20, 4 << 20)
    draw(axes, histogram_of(rows))
    calls = 0.0
    for bar in axes.patches:
        calls += bar.get_height() * log2((bar.get_x() + bar.get_width()) / bar.get_x())
    assert calls == pytest.approx(400)
    assert axes.get_title() == "MPI_Allreduce of 4 MiB: 400 calls"


def test_the_text_of_latency_merges_neighbours_to_at_most_24_rows(report, tmp_path):
    """1,024 calls whose durations are equally frequent at all places of the logarithmic axis, over
    eight octaves."""
    durations = [round(10_000 * 2 ** (place / 128)) for place in range(1_024)]
    rank = Rank(0, 1, cells=[Cell("MPI_Bcast", 8, durations)])
    planted.write_database(tmp_path / "rank-0.db", rank)
    assert len(report("latency", tmp_path, "--json").rows) > 48
    lines = [line.split() for line in report("latency", tmp_path).out.splitlines()[3:]]
    assert 12 < len(lines) <= 24
    counts = [int(words[4]) for words in lines]
    assert sum(counts) == 1_024
    assert all(upper[2:4] == lower[:2] for upper, lower in zip(lines, lines[1:]))
    assert lines[-1][7:9] == ["100.0", "%"]


def points(panel) -> list[list[tuple[float, float]]]:
    """Points of each line; the legend's have none."""
    return [
        [*zip(line.get_xdata(), line.get_ydata())]
        for line in panel.get_lines()
        if len(line.get_xdata()) and line.get_linestyle() != "None"
    ]


def test_the_line_of_sizes_passes_through_the_medians(axes, connection):
    key = ("MPI_Allreduce", "MPI_COMM_WORLD")
    rows = [row for row in size_rows(connection) if (row.call, row.communicator) == key]
    (panel,) = draw(axes, lines_of(rows))
    assert points(panel) == [[(row.bytes, row.p50_ns) for row in rows]]


def test_the_bars_of_size_classes_stack_to_the_calls_and_the_time_of_a_rank(axes, connection):
    rows = hvprof_rows(connection, "as run")
    picture = hvprof.picture([hvprof.Side("as run", 4, 0, False, "", rows, rows, [], None)])
    rows, (times,) = hvprof.best_timed(rows), draw(axes, picture)
    calls = sum(float(note.partition(" ")[0].replace(",", "")) for note in picture.notes)
    assert calls == pytest.approx(sum(row.count for row in rows) / 4, rel=0.02)
    lengths = sum(bar.get_width() for bar in times.patches)
    assert lengths == pytest.approx(sum(row.total_ns for row in rows) / 4)
    assert times.get_xlabel() == "time of a mean rank"


def test_the_heat_map_has_senders_as_rows(axes, connection):
    draw(axes, map_of(peer_rows(connection), 4, "bytes"))
    array = axes.get_images()[0].get_array()
    assert array[0, 1] == 30 * 8_192 and array.mask[1, 0]


def test_a_large_job_is_drawn_in_blocks(axes):
    draw(axes, map_of([PeerRow(9_999, 0, 1, 7, 1, 0)], 10_000, "bytes"))
    array = axes.get_images()[0].get_array()
    assert max(array.shape) <= 512 and array.sum() == 7


def test_the_page_opens_with_the_summary_and_holds_every_picture(report, run_folder):
    assert report("html", run_folder).out == f"{run_folder}/report.html\n"
    page = (run_folder / "report.html").read_text()
    assert page.index("python3 train.py --epochs 3") < page.index("<h2>Where the time goes")
    assert page.count("data:image/svg+xml;base64,") == 6
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    # a sentence for each figure
    assert len(re.findall(r'<p class="soft">[A-Z][^<]{60,}', page)) >= 6


def test_the_page_without_matplotlib_has_tables_and_says_so(
    report, run_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(pictures, "is_possible", lambda: False)
    assert report("html", run_folder, "--output", tmp_path / "page.html").status == 0
    page = (tmp_path / "page.html").read_text()
    assert "<img" not in page and "MPI_Allreduce" in page
    assert "this page has no pictures but the steps and the timeline" in page


def test_the_page_escapes_what_comes_from_files(report, tmp_path):
    evil = '<script>alert("x")</script>&$\x1b[2J'
    rank = Rank(0, 1, run_id=evil, facts={"host": evil, "command_line": evil, "env.OMPI_X": evil})
    rank.communicators = [Communicator(2, 77, "0", 1, 0, name=evil)]
    rank.cells = [Cell("MPI_Bcast", 8, [100])]
    planted.write_databases(tmp_path / "run", [rank])
    assert report("html", tmp_path / "run").status == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert evil not in page and '<script>alert("x")' not in page and "\x1b" not in page
    assert "&lt;script&gt;" in page


def step_rows(count: int) -> list:
    times, rest = (100.0, 30.0, 0.0, 70.0, 0.0, 2, None, None, 1), ("", *[None] * 8)
    return [
        step_row(step, step * 100, *times, step == 1, int(step == 5), *rest)
        for step in range(1, count + 1)
    ]


def test_the_bars_of_a_step_stack_to_its_time_and_outliers_have_their_time_above(axes):
    draw(axes, bars.of_steps(step_rows(60), str))
    corners = [shape.get_paths()[0].vertices.tolist() for shape in axes.collections]
    of_third = [{y for x, y in each if x in (1.5, 2.5)} for each in corners]
    assert of_third == [{0, 30}, {30, 100}]  # in MPI, and outside
    (mark,) = axes.texts
    assert (mark.xy, mark.get_text()) == ((4, 100), "\u25b6 100 ns")


# The first screen of the page: what a step is, and where time in MPI is negotiation.

STEPS, STEP_NS, WALL_NS = 40, 20 * MS, 1_000 * MS
BITS, GRADIENTS = (
    Signature(1, "MPI_LONG_LONG", 8, 8, 1, 1, "MPI_BAND"),
    Signature(2, "MPI_FLOAT", 4, 4, 1, 25_000, "MPI_SUM"),
)
SENT = [(12, 2, 300_000), (16, 1, 100_000)]  # ms after the begin of a step, ms that it takes, bytes
CARD = re.compile(r'<div class="card"><b>(.*?)</b><span>(.*?)</span></div>')


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
            communicators=[world(rank, 2)],
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


# A call has one colour in all pictures; all differ, for colour-blind readers, too.

MAIN = tuple(
    (
        "MPI_Allreduce MPI_Reduce_scatter MPI_Bcast MPI_Allgather MPI_Alltoall MPI_Barrier "
        "MPI_Send MPI_Recv MPI_Waitall"
    ).split()
)
# of light, in sRGB (Vienot, Brettel and Mollon 1999)
SEEN = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.11, 0.89, 0), (0.11, 0.89, 0), (0.004, -0.004, 1)),
    "no green": ((0.29, 0.71, 0), (0.29, 0.71, 0), (-0.02, 0.02, 1)),
}
NEAREST = 20  # of 255


def seen(colour: str, matrix) -> list[float]:
    linear = [(one / 255) ** 2.2 for one in bytes.fromhex(colour[1:])]
    mixed = [sum(part * one for part, one in zip(row, linear)) for row in matrix]
    return [255 * max(0.0, one) ** (1 / 2.2) for one in mixed]


@pytest.mark.parametrize("matrix", SEEN.values(), ids=SEEN)
@pytest.mark.parametrize("is_dark", (False, True))
def test_colour_blind_readers_distinguish_the_calls_of_training(matrix, is_dark):
    colours = [*map(of_call, MAIN), TRANSFER, WAITING]
    shown = [DARK.get(colour, colour) if is_dark else colour for colour in colours]
    for one, other in combinations(shown, 2):
        distance = sum((a - b) ** 2 for a, b in zip(seen(one, matrix), seen(other, matrix))) ** 0.5
        assert distance > NEAREST, (one, other)


def test_a_picture_in_the_page_is_dark_in_dark_mode():
    drawn = in_both_modes(f'<svg><defs></defs><path style="fill: {PAPER}"/></svg>'.encode())
    assert f"dark){{:root{{--colour-ffffff:{DARK[PAPER]};}}}}" in drawn.decode()
    assert 'style="fill: var(--colour-ffffff)"' in drawn.decode()

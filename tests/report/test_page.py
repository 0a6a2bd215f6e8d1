"""The page in a real browser: what it draws is what the commands say, and all its controls work
with mouse and keys."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import planted
import pytest
from browser import AXE_COMPLAINTS, needs_browser
from commprof_report.commands import common
from commprof_report.steps import run_view
from planted_job import HostClock, Job
from test_root_causes import MS, grid

STEPS = 40
DATA = re.compile(r'<script type="application/json" id="timeline-data">(.*?)</script>', re.S)
WAITING, UNSEEN = 3, 5


@pytest.fixture
def run_path(tmp_path):
    """Rank 2 is late; ranks wait for it directly and through rank 3. Step 7 takes longer than all
    others."""
    job = grid([{2: 80 * MS if step == 7 else 8 * MS} for step in range(STEPS)], has_marks=True)
    return job.write(tmp_path / "run.db")


@pytest.fixture
def page_of(report, tmp_path):
    """page_of(run, *options): the file of its page."""

    def written(run, *options: object) -> Path:
        path = tmp_path / "page.html"
        assert report("html", run, "-o", path, *options).status == 0
        return path

    return written


@pytest.fixture(scope="module")
def known_page() -> dict[str, str]:
    """Pages of the run that there are already."""
    return {}


@pytest.fixture
def page(page_of, run_path, tmp_path, known_page):
    if not known_page:
        known_page["page"] = page_of(run_path).read_text()
    path = tmp_path / "page.html"
    path.write_text(known_page["page"])
    return path


@pytest.fixture
def small_page(monkeypatch, page_of, run_path):
    """small_page(bound): the page with room for so many parts, and for one a rank."""

    def written(bound: int) -> Path:
        monkeypatch.setattr(run_view, "MOST_PER_RANK", 1)
        monkeypatch.setattr(run_view, "LEAST_BOUND", bound)
        return page_of(run_path)

    return written


def timeline(page) -> dict:
    return json.loads(DATA.search(page.read_text())[1])


def pieces(rank: dict) -> list[tuple[int, int, int, int]]:
    """Begin, end, state, rank that was waited for."""
    found, at_ns = [], 0
    for gap, spent, state, _, waits_for, _ in zip(*[iter(rank["pieces"])] * 6):
        found.append((at_ns + gap, at_ns + gap + spent, state, waits_for))
        at_ns += gap + spent
    return found


CHOSEN = "What the main thread of each rank did, from the whole run to single calls. "


@pytest.mark.slow
def test_the_user_picks_the_steps_of_the_timeline(page_of, run_path, monkeypatch):
    """Steps 2 to 40 were sampled whole; 8 is the longest."""

    def picked(words: str) -> tuple[list[str], str]:
        path = page_of(run_path, "--steps", words)
        titles = [step["title"].partition(":")[0] for step in timeline(path)["steps"]]
        return titles, path.read_text()

    titles, text = picked("7-10")
    assert titles == ["step 7", "step 8, the longest", "step 9", "step 10"]
    assert f"{CHOSEN}Single calls of 4 of 4 steps are in this page: steps 7-10. Choose" in text
    titles, text = picked("39-50")
    assert titles == ["step 39", "step 40"]
    assert "Single calls of 2 of 12 steps are in this page: steps 39-50." in text
    assert picked("8")[0] == ["step 8, the longest"]
    monkeypatch.setattr(run_view, "MOST_PER_RANK", 1)
    monkeypatch.setattr(run_view, "LEAST_BOUND", 100)
    few, text = picked("7-40")
    assert few == ["step 7", "step 8, the longest", "step 9"][: len(few)]
    assert f"Single calls of {len(few)} of 34 steps" in text
    none, text = picked("41")
    assert none == [] and "None of the steps asked for was sampled whole." in text


@pytest.mark.slow
def test_the_timeline_has_the_steps_their_waiting_and_their_path(page, report, run_path):
    """The median step and the longest; the critical path."""
    rows = {row["step"]: row for row in report("steps", run_path, "--per-step", "--json").rows}
    data = timeline(page)
    titles = [step["title"] for step in data["steps"]]
    assert sum(", the median: " in title for title in titles) == 1
    (said,) = [title for title in titles if ", the longest: " in title]
    assert said.startswith(f"step {max(rows, key=lambda step: rows[step]['step_ns'])}, ")
    parts: Counter[tuple[int, int]] = Counter()
    for row in report("steps", run_path, "--critical-path", "--json").rows:
        parts[row["step"], row["rank"]] += row["time_ns"]
    for step in data["steps"]:
        waited_ns = 0
        for rank, (_, since_ns, until_ns) in zip(data["ranks"], step["times"]):
            for begin_ns, end_ns, state, waits_for in pieces(rank):
                if state == WAITING:
                    assert waits_for in (2, 3)
                    waited_ns += max(0, min(end_ns, until_ns) - max(begin_ns, since_ns))
        assert waited_ns / 4 == pytest.approx(rows[step["step"]]["wait_ns"], abs=1)
        drawn: Counter[int] = Counter()
        for rank, begin_ns, end_ns in step["path"]:
            drawn[rank] += end_ns - begin_ns
        assert drawn == {rank: ns for (number, rank), ns in parts.items() if number == step["step"]}


@pytest.mark.slow
def test_a_wait_that_is_an_estimate_has_no_arrow_and_says_so(page_of, run_folder, run_path):
    """The clocks of the training run's hosts are too uncertain."""
    data = timeline(page_of(run_folder))
    numbers = [piece for rank in data["ranks"] for piece in zip(*[iter(rank["pieces"])] * 6)]
    found = {
        (waits_for, detail) for _, _, state, _, waits_for, detail in numbers if state == WAITING
    }
    ((waits_for, detail),) = found
    said = "1,000 B, MPI_COMM_WORLD, waiting estimated from durations"
    assert (waits_for, data["names"][detail]) == (-1, said)
    assert "estimated" not in page_of(run_path).read_text()


@pytest.mark.slow
def test_a_bin_has_the_time_of_each_state(page, run_path):
    """Each within half a part of a bin; the wall time is that of all bins."""
    data = timeline(page)
    for rank in data["ranks"]:
        cells, spent_ns = cells_of(data, rank), [0] * len(data["classes"])
        width_ns = data["span"] / len(cells)
        assert all(sum(cell.values()) == data["parts"] for cell in cells)
        for begin_ns, end_ns, state, _ in pieces(rank):
            spent_ns[state] += end_ns - begin_ns
        for name in ("waiting", "transfer"):
            shown_ns = sum(cell.get(name, 0) for cell in cells) * width_ns / data["parts"]
            part_ns = len(cells) * width_ns / data["parts"] / 2
            assert shown_ns == pytest.approx(spent_ns[data["classes"].index(name)], abs=part_ns)
            assert name == "transfer" or shown_ns > part_ns or rank["rank"] == 2


def cells_of(data: dict, lane: dict) -> list[dict[str, int]]:
    """The parts of each bin by class."""
    width, digits, cells = data["width"], data["digits"], []
    for first in range(0, len(lane["cells"]), width):
        text = lane["cells"][first : first + width]
        number = sum(digits.index(one) * len(digits) ** at for at, one in enumerate(text))
        entry = data["palette"][number]
        classes = (data["classes"][one] for one in entry[::2])
        cells.append(dict(zip(classes, entry[1::2])))
    return cells


def flying(tmp_path) -> Path:
    """Rank 0 sends to rank 1; both wait for it in the end."""
    job = Job([HostClock(77)] * 2)
    job.send(0, 1, 2 * MS, 7 * MS, call="MPI_Isend")
    job.call("MPI_Wait", 6 * MS, 7 * MS, 0)
    job.receive(1, 0, 4 * MS, 9 * MS, call="MPI_Irecv")
    job.call("MPI_Wait", 8 * MS, 9 * MS, 1)
    return job.write(tmp_path / "run.db")


def in_flight(data: dict, rank: int) -> list[tuple[str, int, int]]:
    found, at_ns = [], 0
    for since, spent, call, _ in zip(*[iter(data["ranks"][rank]["inFlight"])] * 4):
        at_ns += since
        found.append((data["names"][call], at_ns, at_ns + spent))
    return found


def test_operations_are_in_flight_to_their_completion_and_messages_between_them(
    page_of, tmp_path, no_pictures
):
    data = timeline(page_of(flying(tmp_path)))
    assert in_flight(data, 0) == [("MPI_Isend", 2 * MS, 7 * MS)]
    assert in_flight(data, 1) == [("MPI_Irecv", 4 * MS, 9 * MS)]
    assert data["messages"] == [0, 1, 2 * MS, 7 * MS]


@pytest.mark.parametrize("until_ms", (10_000, 4_000))
def test_what_was_not_sampled_is_not_drawn_as_time_outside_mpi(
    report, tmp_path, no_pictures, until_ms
):
    """Nor after the last call. The twin is sampled to its end."""
    calls = [
        planted.Sample("MPI_Barrier", at * MS, at * MS + MS, sequence=at // 500, bytes=0)
        for at in range(500, 4_000, 500)
    ]
    what = {"cells": [planted.Cell("MPI_Barrier", 0, [MS], times=20)], "samples": calls}
    what["windows"] = [planted.Window(0, until_ms * MS)]
    ranks = [planted.Rank(rank, 2, **what) for rank in range(2)]
    run = planted.write_databases(tmp_path / "run", ranks)
    assert report("html", run).status == 0
    data = timeline(run / "report.html")
    for rank in data["ranks"]:
        is_seen = until_ms == 10_000
        expected = "outside MPI" if is_seen else "not sampled"
        assert cells_of(data, rank)[-200:] == [{expected: data["parts"]}] * 200
        unseen = [piece for piece in pieces(rank) if piece[2] == UNSEEN]
        assert unseen == ([] if is_seen else [(3_501 * MS, 10_000 * MS, UNSEEN, -1)])


def test_the_timeline_of_a_large_run_is_bounded(small_page, monkeypatch, no_pictures):
    """Its four ranks make 320 calls each. The bounds are those of docs/SCHEMA.md, but for two
    orders of magnitude."""
    monkeypatch.setattr(run_view, "MOST_CELLS", 2_500)
    data = timeline(small_page(220))
    assert sum(len(rank["pieces"]) for rank in data["ranks"]) <= 6 * 220
    assert sum(len(cells_of(data, rank)) for rank in data["ranks"]) <= 2_500
    assert len(json.dumps(data, separators=(",", ":"))) <= 50_000
    monkeypatch.setattr(run_view, "MOST_CELLS", 3 * run_view.FEWEST_BINS)
    data = timeline(small_page(220))
    assert len(data["ranks"]) == 3 and data["note"].startswith("1 more rank is left out")


@needs_browser
@pytest.mark.parametrize(
    ("width", "is_dark"), [(800, False), pytest.param(1440, True, marks=pytest.mark.slow)]
)
def test_the_page_is_drawn_without_complaint_and_fits(browser, page, width, is_dark):
    browser.open(page, width, dark=is_dark)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    for holds in (
        "[...document.querySelectorAll('nav a')].every((one) => document.querySelector(one.hash))",
        "document.querySelectorAll('nav a').length === "
        "document.querySelectorAll('section:not(.warn)').length",
        "[...document.images].every((one) => one.complete && one.naturalWidth && one.alt)",
    ):
        assert browser.ask(holds), holds


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("width", (800, 1440))
@pytest.mark.parametrize("is_dark", (False, True), ids=("light", "dark"))
def test_everybody_can_read_the_page(browser, page, axe, width, is_dark):
    """Contrast, names, keyboard: axe-core finds nothing wrong."""
    browser.open(page, width, dark=is_dark)
    browser.send("Runtime.evaluate", expression=axe)
    assert browser.ask(AXE_COMPLAINTS) == []


LEFT, TOP = 78, 42  # of the timeline's rows


TIMELINE = "document.getElementById('timeline')"
TIMELINE_SAID = "document.getElementById('timeline-said').textContent"


def heard(browser, parts: int) -> list[str]:
    """Texts of the next parts of the timeline, by the keys."""
    browser.ask(f"{TIMELINE}.focus()")
    said = []
    for _ in range(parts):
        browser.press(".")
        said.append(browser.ask(TIMELINE_SAID))
    return said


def show_step(browser, place: int) -> None:
    """By its place in the list; 0: the whole run."""
    browser.ask(
        f"(choice => {{ choice.selectedIndex = {place}; choice.dispatchEvent(new Event('change'));"
        " })(document.getElementById('timeline-step'))"
    )


def drawn(browser) -> str:
    """Image on the canvas."""
    return browser.ask(f"{TIMELINE}.toDataURL()")


@pytest.mark.slow
@needs_browser
def test_the_timeline_zooms_and_moves_with_keys(browser, page):
    browser.open(page)
    browser.ask(f"{TIMELINE}.focus()")
    seen = [drawn(browser)]
    for key in ("+", "ArrowRight", "ArrowLeft", "-", "+", "0"):
        browser.press(key)
        seen.append(drawn(browser))
    whole, near, moved, *rest = seen
    assert len({whole, near, moved}) == 3 and rest == [near, whole, near, whole]


@pytest.mark.slow
@needs_browser
def test_a_part_is_named_with_whom_it_waits_for_by_keys_and_mouse(browser, page):
    browser.open(page)
    said, waits = (
        heard(browser, 12),
        r"rank 0 · MPI_\w+, .*column.* · waiting for rank 2 · 8\.\d+ ms",
    )
    assert any(re.fullmatch(waits, text) for text in said), said
    box = f"(({{left, top}}) => [left, top])({TIMELINE}.getBoundingClientRect())"
    (left, top), data = browser.ask(box), timeline(page)
    step = data["steps"][0]
    begin_ns, end_ns = next(
        (begin_ns, end_ns)
        for begin_ns, end_ns, state, _ in pieces(data["ranks"][0])
        if state == WAITING and end_ns - begin_ns > MS and begin_ns > step["begin"]
    )
    show_step(browser, 1)
    width = browser.ask(f"{TIMELINE}.clientWidth") - LEFT
    part = ((begin_ns + end_ns) / 2 - step["begin"]) / (step["end"] - step["begin"])
    browser.mouse("mouseMoved", left + LEFT + part * width, top + TOP + 6)
    text = browser.ask(TIMELINE_SAID)
    assert text.startswith("rank 0 · MPI_") and "waiting for rank" in text


@pytest.mark.slow
@needs_browser
def test_another_step_is_chosen_and_the_path_hidden(browser, page):
    browser.open(page)
    show_step(browser, 1)
    median = drawn(browser)
    browser.click("#timeline-path")
    without_path = drawn(browser)
    show_step(browser, 2)
    assert len({median, without_path, drawn(browser)}) == 3


@pytest.mark.slow
@needs_browser
def test_tables_sort_by_any_column_numbers_by_their_value(browser, page):
    browser.open(page)
    table = "document.querySelector('#who-is-late table')"
    heads = browser.ask(f"[...{table}.tHead.rows[0].cells].map((cell) => cell.textContent)")
    column = heads.index("waited")
    units = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}

    def values() -> list[float]:
        texts = browser.ask(
            f"[...{table}.tBodies[0].rows].map((row) => row.cells[{column}].textContent)"
        )
        return [float(number) * units[unit] for number, unit in map(str.split, texts)]

    descending = sorted(values(), reverse=True)
    for expected in (descending, descending[::-1]):
        browser.click(f"#who-is-late th:nth-child({column + 1}) button")
        assert values() == expected


def test_the_page_opens_with_the_answers_and_names_no_options(page):
    text = re.sub("<style>.*</style>|<script.*?</script>", "", page.read_text(), flags=re.S)
    answers = re.search('<dl class="answers">(.*?)</dl>', text)[1]
    heads = re.findall("<dt>([^<]+)", answers)
    assert [head for head in heads if head != "Crowded"] == ["Waiting", "Costs most", "To try"]
    assert text.index(answers) < text.index("<section")
    assert not re.findall(r"[^<!\w-]--[a-z][a-z-]+", re.sub("<[^>]+>", "", text))
    assert "<details><summary>Looked for and not found" in text
    # sentences are not wrapped as for a screen, whose line breaks a page would show as text
    one = common.Folded("Not known", ["many words " * 9], width=40)
    assert "\\x0a" not in text + one.html() and "\n" in one.text()


SECOND = "rank-by-rank .scroll ~ .scroll ~ .scroll ~"  # below the picture and the table of calls


def copied(browser, part: str) -> list[str]:
    """Lines of a table that is copied."""
    browser.ask("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    browser.click(f"#{part} .copy")
    return browser.ask("window.copied").splitlines()


@pytest.mark.slow
@needs_browser
def test_a_table_is_copied_as_csv(browser, page):
    browser.open(page)
    lines = copied(browser, "who-is-late")
    rows = browser.ask("document.querySelector('#who-is-late table').tBodies[0].rows.length")
    assert lines[0].startswith('"rank",') and len(lines) == 1 + rows


@pytest.mark.slow
@needs_browser
def test_a_long_table_is_filtered_by_words_and_copied_so(browser, page_of, tmp_path):
    """Twelve ranks, four on each host; ten rows are the fewest."""
    cells = [planted.Cell("MPI_Bcast", 8, [100])]
    hosts = [{"host": f"node{rank // 4}"} for rank in range(12)]
    ranks = [planted.Rank(rank, 12, facts=host, cells=cells) for rank, host in enumerate(hosts)]
    browser.open(page_of(planted.write_databases(tmp_path / "run", ranks)))
    assert browser.ask("document.querySelectorAll('input[type=search]').length") == 1
    browser.ask("document.querySelector('#rank-by-rank input').focus()")
    for key in "NODE1 5":
        browser.press(key)
    table = "document.querySelector('#rank-by-rank .scroll ~ .scroll ~ .scroll table')"
    rows = f"[...{table}.tBodies[0].rows].filter((row) => row.offsetHeight)"
    texts = f"{rows}.map((row) => [...row.cells].map((cell) => cell.textContent))"
    assert [row[:2] for row in browser.ask(texts)] == [["5", "node1"]]
    assert browser.ask("document.querySelector('.filter').textContent") == " 1 of 12"
    assert [line.split(",")[0] for line in copied(browser, SECOND)] == ['"rank"', '"5"']


@pytest.mark.slow
@needs_browser
def test_names_of_ill_intent_stay_text(browser, page_of, tmp_path):
    name = "</script><img src=x>"
    job = grid([{2: 8 * MS}] * STEPS, has_marks=True)
    job.groups[1].name = name
    browser.open(page_of(job.write(tmp_path / "run.db")))
    assert browser.ask("document.querySelector('img[src=x]')") is None
    text = browser.ask("document.querySelector('#communicators').textContent")
    assert name in text and drawn(browser)

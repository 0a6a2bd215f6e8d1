"""The page of a comparison in a real browser: its figures and words are those of compare, and
nothing else is claimed."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import AXE_COMPLAINTS, needs_browser
from commprof_report.base import units
from commprof_report.compare.comparison import interval_text
from compared_runs import BLOCKS, changed, fact, words

pytestmark = pytest.mark.usefixtures("figures_once")

FIGURES = {
    "Step": "step",
    "Waiting": "wait",
    "Transfer *": "transfer",
    "Inside MPI": "time",
    "Wall time": "wall",
}
WIDTHS = pytest.mark.parametrize("width", (800, 1440))
SCHEMES = pytest.mark.parametrize("is_dark", (False, True), ids=("light", "dark"))
CELLS = (
    "[...document.querySelectorAll('{} table')].map((one) => [...one.rows].map((row) => "
    "[...row.cells].map((cell) => cell.innerText)))"
)


@pytest.fixture
def page_of(report, browser, tmp_path):
    """Writes the page of two sides and opens it."""

    def opened(
        runs: list[object], *options: object, width: int = 1440, is_dark: bool = False
    ) -> Path:
        path = tmp_path / "page.html"
        answer = report("html", *runs, "--output", path, *options)
        assert (answer.status, answer.out) == (0, f"{path}\n"), answer.err
        browser.open(path, width, dark=is_dark)
        return path

    return opened


@pytest.fixture
def tables(browser):
    """The tables of a section: heads and cells, as they are read."""
    return lambda section: browser.ask(CELLS.format(f"#{section}"))


@pytest.fixture
def said(browser):
    return lambda selector: browser.ask(f"document.querySelector('{selector}').textContent")


def duration(ns: float) -> str:
    return units.duration(ns).replace("us", "µs")


@pytest.mark.slow
@needs_browser
def test_the_headline_is_the_verdict_in_the_words_of_compare(page_of, said, report, slower):
    page_of(words(slower))
    text = report("compare", *words(slower)).prose
    verdict = text.partition("Verdict ")[2].partition(" Because")[0]
    assert verdict.startswith("b takes more transfer: transfer +")
    assert said("h1") == f"Verdict: {verdict}"
    found = report("compare", *words(slower), "--by", "verdict", "--json").rows[0]
    header = said("header")
    figures = (units.change(found["change"]), interval_text(found["low"], found["high"]))
    for text in (*figures, f"a: {BLOCKS} runs", f"b: {BLOCKS} runs"):
        assert text in header
    assert "MPI_Allreduce 4 MiB on MPI_COMM_WORLD: transfer +3" in header


@pytest.mark.slow
@needs_browser
def test_measures_are_those_of_compare(page_of, tables, report, slower):
    page_of(words(slower))
    found = report("compare", *words(slower), "--by", "figure", "--json").rows
    rows = {row["figure"]: row for row in found}
    ((heads, *cells),) = tables("measures")
    assert heads == ["Per rank (* verdict)", "a", "b", "change", "95 % interval", "remark"]
    assert [FIGURES[name] for name, *_ in cells] == list(rows)
    for name, *own, _ in cells:
        row = rows[FIGURES[name]]
        values = [
            duration(row["first_ns"]),
            duration(row["second_ns"]),
            units.change(row["change"]),
        ]
        assert own == [*values, interval_text(row["low"], row["high"])]


@pytest.mark.slow
@needs_browser
@WIDTHS
@SCHEMES
def test_everybody_can_read_the_page_which_fits(page_of, browser, axe, slower, width, is_dark):
    page_of(words(slower), width=width, is_dark=is_dark)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    links = "[...document.querySelectorAll('nav a')]"
    assert browser.ask(f"{links}.every((link) => document.querySelector(link.hash))")
    browser.send("Runtime.evaluate", expression=axe)
    assert browser.ask(AXE_COMPLAINTS) == []


@pytest.mark.slow
@needs_browser
def test_names_of_ill_intent_stay_text(page_of, browser, said, slower, tmp_path):
    name, setting = "<img src=x>&$", fact("env.UCX_TLS", "</script><img src=x>")
    folder = tmp_path / "sides"
    folder.mkdir()
    for run in changed(slower, setting + f"UPDATE communicator SET name = '{name}'"):
        side = name if run.name[0] == "b" else "a"
        (folder / f"{side}{run.stem[1:]}.db").write_bytes(run.read_bytes())
    page_of([*sorted(folder.glob("a-*")), "--", *sorted(folder.glob("<*"))], "--allow", "all")
    sources = browser.ask("[...document.querySelectorAll('img')].map((one) => one.src.slice(0, 5))")
    assert {*sources} == {"data:"}
    assert said("h1").startswith(f"Verdict: {name} takes more transfer")
    assert "</script><img src=x>" in said("#what-differs")
    assert name in said("#measures")


@pytest.mark.parametrize("options", ["--anonymous", "--steps 3", "--rank 0"])
def test_options_that_do_not_fit_are_refused(report, slower, options):
    answer = report("html", *words(slower), *options.split())
    said = "html: a comparison takes neither --anonymous nor --steps nor filters"
    assert (answer.status, answer.err) == (2, f"hvprof-report: {said}\n")

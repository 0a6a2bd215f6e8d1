"""The page of a comparison in a real browser: its figures and words are those of compare, and
nothing else is claimed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser import AXE_COMPLAINTS, needs_browser
from commprof_report.base import units
from commprof_report.compare.sentences import interval_text
from compared_runs import BLOCKS, LARGE, SMALL, TINY, changed, experiment, fact, sides, words

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

OUTSIDE = """[...document.querySelectorAll('.measure :not(title)')].filter((one) => {
    const [box, whole] = [one, one.closest('svg')].map((each) => each.getBoundingClientRect());
    return box.left < whole.left - 1 || box.right > whole.right + 1
        || box.top < whole.top - 1 || box.bottom > whole.bottom + 1;
}).map((one) => one.outerHTML)"""


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


def marks(browser, section: str, kind: str) -> int:
    """How many changes are drawn as filled or hollow; a filled one stands beside the name of each
    side, too."""
    drawn = f"document.querySelectorAll('#{section} .measure path.{kind}')"
    return browser.ask(f"[...{drawn}].filter((mark) => mark.querySelector('title')).length")


@pytest.mark.slow
@needs_browser
def test_the_headline_is_the_verdict_in_the_words_of_compare(page_of, said, report, slower):
    page_of(words(slower))
    verdict = (
        " ".join(report("compare", *words(slower)).out.split())
        .partition("Verdict ")[2]
        .partition(" Because")[0]
    )
    assert verdict.startswith("b takes more transfer: transfer +")
    assert said("h1") == f"Verdict: {verdict}"
    found = report("compare", *words(slower), "--by", "verdict", "--json").rows[0]
    header = said("header")
    for text in (
        units.change(found["change"]),
        interval_text(found["low"], found["high"]),
        f"a: {BLOCKS} runs",
        f"b: {BLOCKS} runs",
    ):
        assert text in header
    assert "MPI_Allreduce 4 MiB on MPI_COMM_WORLD: transfer +3" in header


@pytest.mark.slow
@needs_browser
def test_measures_are_those_of_compare(page_of, tables, report, slower):
    page_of(words(slower))
    rows = {
        row["figure"]: row
        for row in report("compare", *words(slower), "--by", "figure", "--json").rows
    }
    ((heads, *cells),) = tables("measures")
    assert heads == ["Per rank (* verdict)", "a", "b", "change", "95 % interval", "remark"]
    assert [FIGURES[name] for name, *_ in cells] == list(rows)
    for name, *own, _ in cells:
        row = rows[FIGURES[name]]
        interval = interval_text(row["low"], row["high"])
        assert own == [
            duration(row["first_ns"]),
            duration(row["second_ns"]),
            units.change(row["change"]),
            interval,
        ]


@pytest.mark.slow
@needs_browser
def test_rows_are_those_of_compare_the_largest_change_first(page_of, tables, report, slower):
    page_of(words(slower))
    rows = sorted(
        report("compare", *words(slower), "--json").rows, key=lambda row: -abs(row["change_ns"])
    )
    ((heads, *cells),) = tables("calls-and-sizes")
    assert [cell[heads.index("bytes")] for cell in cells] == ["4 MiB", "64 KiB", "8 B"]
    assert [cell[heads.index("change")] for cell in cells] == [
        units.change(row["change"]) for row in rows
    ]
    assert [cell[heads.index("per rank")] for cell in cells] == [
        f"+{duration(row['change_ns'])}" for row in rows
    ]
    assert [cell[heads.index("of change")] for cell in cells] == [
        units.share(row["part_of_change"]) for row in rows
    ]


@pytest.mark.slow
@needs_browser
def test_each_run_is_a_mark_with_its_value(page_of, browser, report, slower):
    page_of(words(slower))
    runs = report("compare", *words(slower), "--by", "run", "--json").rows
    drawn = (
        "[...document.querySelectorAll('#measures .measure')].find((one) => "
        "one.ariaLabel.startsWith('Transfer *'))"
    )
    titles = browser.ask(
        f"[...{drawn}.querySelectorAll('.run title')].map((title) => title.textContent)"
    )
    assert titles == [
        f"{run['side']}: {duration(run['transfer_ns'])} (block {run['block']}, {run['run']})"
        for run in runs
    ]
    places = browser.ask(
        f"[...{drawn}.querySelectorAll('.run')].map((mark) => mark.getBoundingClientRect().x)"
    )
    order = sorted(range(len(runs)), key=lambda place: runs[place]["transfer_ns"])
    assert sorted(order, key=lambda place: places[place]) == order
    shapes = browser.ask(
        f"[...{drawn}.querySelectorAll('.run')].map((mark) => mark.getAttribute('d'))"
    )
    assert (
        len(set(shapes[:BLOCKS])) == len(set(shapes[BLOCKS:])) == 1 and shapes[0] != shapes[-1]
    ), "without colour, too"


@pytest.mark.slow
@needs_browser
def test_marks_are_named_by_the_keyboard_as_under_the_mouse(page_of, browser, said, slower):
    page_of(words(slower))
    browser.ask("document.querySelector('.measure').focus()")
    assert browser.ask("document.activeElement.matches('.measure[tabindex=\"0\"]')"), "Tab comes by"
    name = "document.activeElement.nextElementSibling.textContent"
    assert browser.ask(name) == ""
    titles = browser.ask(
        "[...document.activeElement.querySelectorAll('title')].map((title) => title.textContent)"
    )
    assert len(titles) == 2 * BLOCKS + 1, "each run, and the change"
    heard = []
    for _ in titles:
        browser.press("ArrowRight")
        heard.append(browser.ask(name))
    assert heard == titles
    assert browser.ask("document.querySelectorAll('.measure .chosen').length") == 1
    browser.press("Home")
    browser.press("ArrowLeft")
    assert browser.ask(name) == titles[0]
    browser.ask("document.activeElement.blur()")
    assert (
        browser.ask(
            "[...document.querySelectorAll('.measure + .said')].map((one) => "
            "one.textContent).join('')"
        )
        == ""
    )
    assert browser.ask("document.querySelectorAll('.measure .chosen').length") == 0


@pytest.mark.slow
@needs_browser
def test_a_planted_effect_is_filled_where_it_is(page_of, browser, slower):
    page_of(words(slower))
    assert marks(browser, "measures", "filled") == 2, "transfer, time inside MPI"
    assert marks(browser, "calls-and-sizes", "filled") == 1


@needs_browser
def test_equal_sides_are_the_same_and_nothing_is_named(page_of, browser, said, equal):
    page_of(words(equal))
    assert said("h1").startswith("Verdict: same within 2.0 %: transfer ")
    assert marks(browser, "measures", "filled") == marks(browser, "calls-and-sizes", "filled") == 0
    text = said("main")
    assert not re.search(
        "takes|Because|exploratory|Refused|no verdict;? ",
        text.replace("none or has no verdict", ""),
    )


@pytest.mark.slow
@needs_browser
def test_nothing_found_is_said_with_what_would_have_been_found(page_of, said, report, tmp_path):
    runs = words(sides(tmp_path / "runs", {}, noise=0.2))
    page_of(runs)
    assert re.fullmatch(
        r"Verdict: no difference found: transfer .* would have been found with a probability "
        r"of 80 %",
        said("h1"),
    )


@pytest.mark.slow
@needs_browser
def test_a_refusal_is_the_headline_with_the_way_out_and_estimates_are_no_verdict(
    page_of, browser, said, slower
):
    runs = changed(slower, fact("last.affinity", "0"))
    page_of(words(runs))
    assert (
        said("h1")
        == "Verdict: none: not the same experiment (disturbed); what follows are estimates"
    )
    header = said("header")
    assert "2 ranks share 1 core" in header and "Way out: run on nodes of its own" in header
    assert marks(browser, "measures", "filled") == marks(browser, "calls-and-sizes", "filled") == 0
    page_of(words(runs), "--allow", "disturbed")
    assert said("h1").startswith("Verdict: b takes more transfer") and "Allowed" in said("header")


@needs_browser
def test_two_single_runs_have_estimates_and_the_way_to_a_verdict(
    page_of, said, browser, equal, slower
):
    page_of([equal[0], "--", slower[1]])
    assert said("h1") == "Verdict: none: one run of each side, so their difference may be chance"
    assert "commprof-experiment run EXPERIMENT --arm 'a-0.db: mpirun" in said("header")
    assert marks(browser, "measures", "filled") == 0


@pytest.mark.slow
@needs_browser
def test_what_differs_is_a_table_with_the_value_of_each_side(page_of, tables, report, slower):
    runs = changed(slower, fact("env.UCX_TLS", "tcp") + fact("last.affinity", "0-1"))
    page_of(words(runs), "--allow", "all")
    on, settings = tables("what-differs-and-notes")
    assert [row[:5] for row in on[1:]] == [
        [side, "8", "0", "Open MPI 4.1.4", "2 ranks on 1 host"] for side in "ab"
    ]
    assert on[2][5].startswith("2 (of 2 in use)") and on[2][6] == "node00"
    assert settings == [["setting", "a", "b"], ["UCX_TLS", "not set", "tcp"]]


@pytest.mark.slow
@needs_browser
def test_notes_are_said_at_the_end_and_counted_at_the_top(page_of, said, slower):
    runs = changed(slower, f"DELETE FROM cell WHERE bytes = {TINY}")
    page_of(words(runs), "--allow", "work")
    assert "2, at the end of this page" in said("header")
    notes = said("#what-differs-and-notes")
    assert "1 row that not every run has left out" in notes and "calls differ: " in notes


@pytest.mark.slow
@needs_browser
def test_changes_sort_by_their_value(page_of, browser, tables, tmp_path, slower):
    page_of(words(slower))
    browser.click("#measures th:nth-child(4) button")
    ((_, *cells),) = tables("measures")
    values = [float(cell[3].rstrip(" %")) for cell in cells]
    assert values == sorted(values, reverse=True) and values[0] > 20
    browser.ask("document.querySelector('#measures td:nth-child(4)').textContent = 'x1.10'")
    browser.click("#measures th:nth-child(4) button")
    ((_, *cells),) = tables("measures")
    assert [cell[3] for cell in cells][-2:] == ["x1.10", f"+{values[1]:.0f} %"], "x1.10 is +10 %"


@pytest.mark.slow
@needs_browser
@WIDTHS
@SCHEMES
def test_everybody_can_read_the_page(page_of, browser, axe, slower, width, is_dark):
    page_of(words(slower), width=width, is_dark=is_dark)
    browser.send("Runtime.evaluate", expression=axe)
    assert browser.ask(AXE_COMPLAINTS) == []


@pytest.mark.slow
@needs_browser
@WIDTHS
@SCHEMES
def test_the_page_is_drawn_without_complaint_and_fits(page_of, browser, slower, width, is_dark):
    page_of(words(slower), width=width, is_dark=is_dark)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask(
        "[...document.querySelectorAll('nav a')].every((link) => document.querySelector(link.hash))"
    )
    assert browser.ask(
        "[...document.querySelectorAll('.measure')].every((one) => one.getAttribute('aria-label'))"
    )
    assert browser.ask(OUTSIDE) == []


@pytest.mark.slow
@needs_browser
def test_no_table_is_cut_off_on_paper(page_of, browser, slower):
    page_of(words(slower), width=800)
    browser.send("Emulation.setEmulatedMedia", media="print")
    cut = browser.ask(
        "[...document.querySelectorAll('.scroll')].map((one) => one.scrollWidth - one.clientWidth)"
    )
    browser.send("Emulation.setEmulatedMedia", media="")
    assert max(cut) <= 0


@pytest.mark.slow
@needs_browser
def test_names_of_ill_intent_stay_text(page_of, browser, said, slower, tmp_path):
    name = "<img src=x>&$"
    folder = tmp_path / "sides"
    folder.mkdir()
    for run in changed(
        slower,
        fact("env.UCX_TLS", "</script><img src=x>") + f"UPDATE communicator SET name = '{name}'",
    ):
        (folder / f"{name if run.name[0] == 'b' else 'a'}{run.stem[1:]}.db").write_bytes(
            run.read_bytes()
        )
    page_of([*sorted(folder.glob("a-*")), "--", *sorted(folder.glob("<*"))], "--allow", "all")
    assert browser.ask("document.querySelector('img')") is None
    assert said("h1").startswith(f"Verdict: {name} takes more transfer")
    assert "</script><img src=x>" in said("#what-differs-and-notes")
    assert name in said("#measures svg")


@pytest.mark.slow
@needs_browser
def test_several_sides_have_a_verdict_each(page_of, browser, said, tables, equal, slower, tmp_path):
    for side, runs in (("a", equal), ("b", slower), ("c", equal)):
        for run in runs:
            if run.name[0] == ("a" if side == "a" else "b"):
                (tmp_path / f"{side}{run.name[1:]}").write_bytes(run.read_bytes())
    page_of(
        [
            *sorted(tmp_path.glob("a-*")),
            "--",
            *sorted(tmp_path.glob("b-*")),
            "--",
            *sorted(tmp_path.glob("c-*")),
        ],
        "--allow",
        "order",
    )
    assert said("h1") == "2 verdicts against a"
    header = said("header")
    assert (
        "bb takes more transfer: transfer +" in header and "csame within 2.0 %: transfer " in header
    )
    assert [table[0][1:3] for table in tables("measures")] == [["a", "b"], ["a", "c"]]
    assert (
        browser.ask("document.querySelectorAll('#measures .measure:nth-of-type(3) .run').length")
        == 3 * BLOCKS
    )


@pytest.mark.slow
@needs_browser
def test_numbers_are_written_as_in_the_tables(page_of, browser, equal):
    page_of(words(equal))
    times = [
        0,
        7,
        999,
        999.6,
        1000,
        1_234,
        12_340,
        99_949,
        99_951,
        999_499,
        999_501,
        2.5e6,
        1.25e7,
        12_450_000,
        5e9,
        119e9,
        120e9,
        3.6e12,
        7.2e12,
        1.152e13,
        1.87e14,
    ]
    assert browser.ask(f"{times}.map(units.duration)") == [duration(ns) for ns in times]
    shares = [0, 1e-9, 0.00005, 0.00125, 0.0099, 0.01, 0.8125, 0.8175, 0.5, 1 / 3, 1]
    assert browser.ask(f"{shares}.map(units.share)") == [units.share(part) for part in shares]


@pytest.mark.slow
def test_an_experiment_has_its_page_in_its_folder(report, tmp_path):
    folder = experiment(tmp_path, sides(tmp_path / "runs", {LARGE: 1.3}))
    assert report("html", folder).out == f"{folder}/report.html\n"
    assert "Verdict: b takes more transfer: " in (folder / "report.html").read_text()
    assert report("compare", folder, "--by", "verdict", "--json").rows[0]["verdict"] == "more"


@pytest.mark.slow
def test_a_comparison_has_the_options_of_compare(report, slower, tmp_path):
    page = tmp_path / "page.html"
    assert (
        report("html", *words(slower), "-o", page, "--metric", "wall", "--min-effect", "1%").status
        == 0
    )
    assert "Verdict: same within 1.0 %: wall time +0.0 %" in page.read_text()


@pytest.mark.parametrize(
    "options, said",
    [
        (("--anonymous",), "html: a comparison takes neither --anonymous nor --steps nor filters"),
        (("--steps", "3"), "html: a comparison takes neither --anonymous nor --steps nor filters"),
        (("--rank", "0"), "html: a comparison takes neither --anonymous nor --steps nor filters"),
    ],
)
def test_options_that_do_not_fit_are_refused(report, slower, options, said):
    answer = report("html", *words(slower), *options)
    assert (answer.status, answer.err) == (2, f"hvprof-report: {said}\n")


def test_options_of_a_comparison_need_sides(report, slower):
    answer = report("html", slower[0], "--metric", "wall")
    assert (answer.status, answer.err) == (
        2,
        "hvprof-report: html: the options of a comparison need two sides: A... -- B...\n",
    )
    answer = report("html", slower[0], "--")
    assert answer.status == 2 and "name the runs of each side" in answer.err


@pytest.mark.slow
def test_what_compare_cannot_read_has_no_page(report, slower, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = report("html", tmp_path / "missing", "--", *slower[:2])
    assert answer.status == 1 and "missing" in answer.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_comparison_is_written_into_the_working_directory(report, slower, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert report("html", *words(slower)).out == "comparison.html\n"
    assert (
        str(SMALL) not in (tmp_path / "comparison.html").read_text()
        and "64 KiB" in (tmp_path / "comparison.html").read_text()
    )

"""Promises of the documentation: every key, metric and column that is printed is defined in
docs/SCHEMA.md."""

from __future__ import annotations

import json
import lzma
import re
import sqlite3
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

import compared_runs
import parallel
import planted
import pytest
import test_gpu
import test_stuck
from commprof_report import manual
from commprof_report.base import AS_EVERYWHERE
from commprof_report.commands import QUESTIONS as COMMANDS
from commprof_report.main import parser_build
from commprof_report.run import database, ledger
from planted import ROOT, SCHEMA
from read_once import figures_once, read_once

TEXT = (ROOT / "docs" / "SCHEMA.md").read_text()
PARSERS = manual._subparsers(parser_build())
FOR_SCRIPTS = [
    name
    for name, parser in PARSERS.items()
    if "--json" in parser._option_string_actions
    and name not in ("export", "fleet")  # which asks a store: test_fleet.py
]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
SELECTS = ("--memory-kind", "--sort", "--metric", "--bins")  # other rows, with the same keys


def section(title: str) -> str:
    return re.search(rf"^### {title}\b.*?(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)[0]


def undefined(keys: set[str], title: str, everywhere: frozenset[str] = frozenset()) -> set[str]:
    defined = section(title)
    return {key for key in keys - everywhere if f"`{key}`" not in defined}


def listed(title: str, kind: str) -> list[str]:
    """The names that a section's lists of this kind define, each before the colon of its item."""
    return names(section(title), kind)


def names(text: str, kind: str) -> list[str]:
    lists = re.findall(rf"^{kind}\b.*:\n\n((?:- .*\n)*)", text, re.MULTILINE)
    heads = re.findall(r"^- ((?:`\w+`(?:, )?)+):", "".join(lists), re.MULTILINE)
    return re.findall(r"`(\w+)`", " ".join(heads))


COMMON = frozenset(names(TEXT.partition("\n## Tables\n")[2], "Columns everywhere"))
EVERYWHERE = frozenset(names(TEXT.partition("\n## Answers\n")[2], "Keys everywhere"))


def forms(parser: ArgumentParser) -> Iterator[list[str]]:
    """The options with which a command answers in other rows: each alone, with
    each of its values."""
    yield []
    for action in parser._actions:
        name = next((name for name in action.option_strings if name.startswith("--")), "--help")
        if name not in ("--help", "--json", "--csv", *SELECTS):
            values = [[str(choice)] for choice in action.choices or ()] or [[]] * (
                action.nargs == 0
            )
            yield from ([name, *value] for value in values)


def keys(answer: object) -> Iterator[str]:
    """Also of objects within objects."""
    if isinstance(answer, dict):
        yield from answer
        answer = list(answer.values())
    if isinstance(answer, list):
        for part in answer:
            yield from keys(part)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, list]:
    """Runs to ask about: the words after the options, by what is planted there."""
    folder: Path = tmp_path_factory.mktemp("runs")
    ranks = {
        "training": planted.training_run(),
        "gpu": planted.gpu_run(),
        "pipeline": parallel.pipeline_run(2, slow=1),
        "steps of a gpu": [test_gpu.step_rank()],
        "hang": test_stuck.killed(test_stuck.hang_of_all_kinds()),
    }
    found = {}
    for name, own in ranks.items():
        is_live = own[0].ended == "running"
        write = planted.write_ledgers if is_live else planted.write_databases
        found[name] = [write(folder / name, own)]
    runs = compared_runs.sides(folder / "sides", {compared_runs.LARGE: 1.5}, blocks=2)
    return {**found, "sides": [*runs[::2], "--", *runs[1::2]]}


@pytest.mark.slow
@pytest.mark.parametrize("command", FOR_SCRIPTS)
def test_every_key_that_a_command_prints_is_defined_and_no_other(report, runs, command):
    stale = set(listed(command, "Keys"))
    of_sides = {"compare": [runs["sides"]], "replay": [["check", *runs["sides"]]]}
    of_runs = [words for name, words in runs.items() if name != "sides"]
    asked = of_sides.get(command, of_runs)
    with read_once(), figures_once():
        for form in forms(PARSERS[command]):
            answers = [report(command, *form, "--json", *words) for words in asked]
            printed = {key for answer in answers if answer.status == 0 for key in keys(answer.rows)}
            assert printed, f"no run of these shows what {command} {form} prints"
            assert (form, undefined(printed, command, EVERYWHERE)) == (form, set())
            stale -= printed
    assert stale == set()


def test_every_table_that_export_prints_is_defined(report, runs):
    tables: dict[str, set[str]] = {}
    for name in ("training", "gpu", "hang"):
        for row in report("export", *runs[name]).rows:
            tables.setdefault(row["table"], set()).update(row)
    titles = {table: {"bucket_bound": "bucket"}.get(table, table) for table in tables}
    assert {
        table: lacks
        for table, own in tables.items()
        if (lacks := undefined(own - {"table"}, titles[table], COMMON))
    } == {}
    assert undefined({"table"}, "export") == set()


def test_every_metric_of_prometheus_says_what_it_is(report, runs):
    for name in ("training", "gpu", "hang"):
        text = report("export", "--format", "prometheus", *runs[name]).out
        samples = {
            re.sub("_(bucket|sum|count)$", "", each) for each in re.findall(r"^\w+", text, re.M)
        }
        assert samples - {*re.findall(r"^# HELP (\w+) \S", text, re.M)} == set()


def test_every_argument_of_a_timeline_is_defined(report, runs, tmp_path):
    """Arguments of metadata events (names and order of processes and threads) are the trace event
    format's own."""
    found: set[str] = set()
    for name in ("training", "gpu"):
        path = tmp_path / f"{name}.json"
        assert report("export", "--format", "perfetto", "--output", path, *runs[name]).status == 0
        timeline = json.loads(path.read_text())
        own = [event for event in timeline["traceEvents"] if event["ph"] != "M"]
        found |= {*timeline["otherData"], *(key for event in own for key in event.get("args", ()))}
    assert undefined(found, "export") == set()


def test_answers_are_defined_in_the_order_of_the_commands():
    answers = TEXT.partition("\n## Answers\n")[2].partition("\n## ")[0]
    titles = re.findall(r"^### (\w+)", answers, re.MULTILINE)
    assert titles == [command for command in COMMANDS if command in titles]
    index = re.search(r"^- \[Answers\]\(#answers\):((?:.*\n  )*.*)", TEXT, re.MULTILINE)
    assert index and re.findall(r"\[(\w+)\]", index[1]) == titles


def test_the_versions_that_are_read_are_named():
    text = " ".join(TEXT.split())
    assert f"Databases are read from schema version {database.OLDEST} on" in text
    assert f"of ledgers, only version {ledger.VERSION} is read" in text


def test_every_column_of_the_schema_is_defined_and_no_other():
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA.read_text())
    tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
    for (table,) in connection.execute(tables).fetchall():
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        title = {"bucket_bound": "bucket"}.get(table, table)
        assert undefined({*columns}, title, COMMON) == set()
        assert [column for column in listed(title, "Columns") if column not in columns] == []


def test_tables_of_columns_are_those_that_the_reporter_says(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import columns

    same = {
        key
        for fields in columns.LISTS.values()
        for key in columns.meanings(fields).get(AS_EVERYWHERE, ())
    }
    assert same <= {f"`{key}`" for key in EVERYWHERE}
    assert columns.page(TEXT) == TEXT, "python3 docs/columns.py prints it"


def test_grafana_s_dashboard_is_what_its_script_prints(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import grafana

    printed = json.loads((ROOT / "docs/grafana-fleet.json").read_text())
    assert printed == grafana.dashboard(), "python3 docs/grafana.py prints it"


def anchors(page: Path) -> set[str]:
    """As GitHub makes them from headings, and those that a page sets itself."""
    text = page.read_text()
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads} | {
        *re.findall(r'<a id="(\S+?)"', text)
    }


def sentences(text: str) -> Iterator[str]:
    """Without code; items of lists, their terms and cells of tables are sentences of their own."""
    text = re.sub(r"(?ms)^```.*?^```|^ {4}[^\n]*$", "", text)
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[-*#|]|\d+\.))| \| |(?<=`): ", text):
        yield from re.split(r"(?<=[.:!?])\s+(?=[A-Z`*\[(])", part)


def test_few_sentences_have_more_than_35_words():
    words = [
        len(re.findall(r"\S*\w\S*", each)) for page in PAGES for each in sentences(page.read_text())
    ]
    assert sum(number > 35 for number in words) < 0.01 * sum(number > 2 for number in words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_a_page_and_its_heading(page):
    links = re.findall(r"\]\((?!http)([^)#\s]*)#?(\S*?)\)", page.read_text())
    dead = [
        f"{path}#{anchor}"
        for path, anchor in links
        if not (target := page.parent / path if path else page).exists()
        or (anchor and target.suffix == ".md" and anchor not in anchors(target))
    ]
    assert dead == []


# The recorded run from which README's picture of the page is drawn.


@pytest.fixture
def example(tmp_path):
    path = tmp_path / "run.db"
    path.write_bytes(lzma.decompress((ROOT / "docs" / "example-run.db.xz").read_bytes()))
    return path


@pytest.mark.parametrize("command", ("summary", "steps", "late", "advise"))
def test_the_recorded_run_can_be_read(report, example, command):
    """After a change of the schema: make demo && docs/picture.sh --record"""
    answer = report(command, example)
    assert (answer.status, answer.err) == (0, "")


def test_the_recorded_run_names_no_path_or_host(example):
    recorded = example.read_bytes()
    assert b"host-1" in recorded
    for name in (b"/home", b"/root", b"/usr", b"/tmp", b"train.py", b"env."):
        assert name not in recorded


def test_each_picture_of_the_gallery_is_small_and_shown():
    shown = (ROOT / "README.md").read_text() + (ROOT / "docs/gallery/README.md").read_text()
    pictures = {path.name: path.stat().st_size for path in (ROOT / "docs/gallery").glob("*.png")}
    assert len(pictures) >= 6
    assert [name for name, size in pictures.items() if not 5_000 < size < 150_000] == []
    assert [name for name in pictures if name not in shown] == []

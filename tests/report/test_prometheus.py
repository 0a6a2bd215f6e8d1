"""`export --format prometheus` against the rules of the text exposition format, and against the
planted numbers.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

import pytest

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^\\"\n]|\\[\\"n])*)"'
SAMPLE = re.compile(rf"({NAME})\{{({LABEL}(?:,{LABEL})*)\}} (\S+)")
KINDS = ("counter", "gauge")


class Series(NamedTuple):
    name: str
    labels: frozenset[tuple[str, str]]


def parse(text: str) -> dict[Series, float]:
    """Refuses whatever the format does not allow."""
    assert text.endswith("\n")
    found: dict[Series, float] = {}
    described: list[str] = []
    name = kind = ""
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, kind = line.split(" ", 3)[2], ""
            assert re.fullmatch(NAME, name) and name not in described, line
            described.append(name)
        elif line.startswith("# TYPE "):
            _, _, same, kind = line.split(" ")
            assert same == name and kind in KINDS, line
            assert (kind == "counter") == name.endswith("_total"), line
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample and kind, line
            assert sample[1] == name, line
            labels = [(key, unescaped(value)) for key, value in re.findall(LABEL, sample[2])]
            series = Series(sample[1], frozenset(labels))
            assert len(dict(labels)) == len(labels) and series not in found, line
            found[series] = float(sample.groups()[-1])
    return found


def unescaped(value: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], value)


def series(name: str, **labels: object) -> Series:
    return Series(
        name,
        frozenset({"run": "job-1", **{key: str(value) for key, value in labels.items()}}.items()),
    )


def prometheus(report, path, *words: object) -> dict[Series, float]:
    return parse(report("export", "--format", "prometheus", path, *words).out)


def test_the_file_is_replaced_as_a_whole_and_readable_by_others(report, run_folder, tmp_path):
    output = tmp_path / "commprof.prom"
    output.write_text("old")
    umask = os.umask(0o022)
    try:
        answer = report("export", "--format", "prometheus", "--output", output, run_folder)
    finally:
        os.umask(umask)
    assert (answer.status, answer.out) == (0, "")
    assert parse(output.read_text()) == prometheus(report, run_folder)
    assert output.stat().st_mode & 0o777 == 0o644
    assert sorted(path.name for path in tmp_path.iterdir()) == ["commprof.prom", "run"]


@pytest.mark.slow
@pytest.mark.parametrize("command", ("export", "merge", "html"))
def test_a_link_laid_where_the_file_is_prepared_is_not_followed(
    report, run_folder, tmp_path, command
):
    (tmp_path / "thesis").write_text("ten years of work")
    output = tmp_path / "out"
    os.symlink(tmp_path / "thesis", tmp_path / f"out.{os.getpid()}.tmp")
    words = {
        "export": ("export", "--format", "prometheus", "--output", output, run_folder),
        "merge": ("merge", run_folder, output),
        "html": ("html", "--output", output, run_folder),
    }
    assert report(*words[command]).status == 0
    assert (tmp_path / "thesis").read_text() == "ten years of work"
    assert output.exists() and not output.is_symlink()


def test_prometheus_own_parser_takes_it(report, run_folder):
    parser = pytest.importorskip("prometheus_client.parser")
    text = report("export", "--format", "prometheus", run_folder).out
    samples = [
        sample
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    ]
    assert {
        Series(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples
    } == parse(text)

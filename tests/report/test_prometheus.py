"""`export --format prometheus`: as Prometheus reads it, and as a file that others read. Golden
answers have its numbers."""

from __future__ import annotations

import os

import pytest


def test_the_file_is_replaced_as_a_whole_and_readable_by_others(report, run_folder, tmp_path):
    output = tmp_path / "commprof.prom"
    output.write_text("old")
    umask = os.umask(0o022)
    try:
        answer = report("export", "--format", "prometheus", "--output", output, run_folder)
    finally:
        os.umask(umask)
    assert (answer.status, answer.out) == (0, "")
    assert output.read_text() == report("export", "--format", "prometheus", run_folder).out
    assert output.stat().st_mode & 0o777 == 0o644
    assert sorted(path.name for path in tmp_path.iterdir()) == ["commprof.prom", "run"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    ("export --format prometheus RUN --output OUT", "merge RUN OUT", "html RUN --output OUT"),
)
def test_a_link_laid_where_the_file_is_prepared_is_not_followed(
    report, run_folder, tmp_path, words
):
    (tmp_path / "thesis").write_text("ten years of work")
    output = tmp_path / "out"
    os.symlink(tmp_path / "thesis", tmp_path / f"out.{os.getpid()}.tmp")
    places = {"RUN": run_folder, "OUT": output}
    assert report(*(places.get(word, word) for word in words.split())).status == 0
    assert (tmp_path / "thesis").read_text() == "ten years of work"
    assert output.exists() and not output.is_symlink()


def test_prometheus_own_parser_takes_it(report, run_folder):
    parser = pytest.importorskip("prometheus_client.parser")
    text = report("export", "--format", "prometheus", run_folder).out
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    families = parser.text_string_to_metric_families(text)
    samples = [sample for family in families for sample in family.samples]
    assert samples and len(samples) == len(lines)
    assert len({(each.name, *sorted(each.labels.items())) for each in samples}) == len(samples)

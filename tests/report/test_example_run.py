"""The recorded run from which README's picture of the page is drawn: it can be read, and names
nobody."""

from __future__ import annotations

import lzma

import pytest
from planted import ROOT


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
    assert not [
        name for name in (b"/home", b"/root", b"/usr", b"/tmp", b"train.py", b"env.")
        if name in recorded
    ]


def test_readme_shows_the_picture():
    assert "](docs/page.png)" in (ROOT / "README.md").read_text()
    assert 50_000 < (ROOT / "docs" / "page.png").stat().st_size < 300_000

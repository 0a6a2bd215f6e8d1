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
        name
        for name in (b"/home", b"/root", b"/usr", b"/tmp", b"train.py", b"env.")
        if name in recorded
    ]


def test_each_picture_of_the_gallery_is_small_and_shown():
    shown = (ROOT / "README.md").read_text() + (ROOT / "docs/gallery/README.md").read_text()
    pictures = {path.name: path.stat().st_size for path in (ROOT / "docs/gallery").glob("*.png")}
    assert len(pictures) >= 6
    assert [name for name, size in pictures.items() if not 5_000 < size < 150_000] == []
    assert [name for name in pictures if name not in shown] == []

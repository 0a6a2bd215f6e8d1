"""Files that commands make are as private as the run."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import planted
import pytest
from commprof_report.display import pictures

MADE = (
    ("html", "--output", "OUT"),
    ("html", "--anonymous", "--output", "OUT"),
    ("merge", "OUT"),
    ("export", "--format", "prometheus", "--output", "OUT"),
    ("export", "--format", "perfetto", "--output", "OUT"),
    ("export", "--json", "--output", "OUT/"),
    ("export", "--csv", "--table", "cell", "--output", "OUT/"),
    ("ranks", "--plot", "OUT.svg"),
)


@pytest.fixture(autouse=True)
def umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def run(tmp_path) -> Path:
    return planted.write_ledgers(tmp_path / "run", planted.training_run())


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}


def made(report, run: Path, words: tuple[str, ...]) -> Path:
    folder = run.parent / "out"
    folder.mkdir(exist_ok=True)
    command, *options = [word.replace("OUT", str(folder / "made")) for word in words]
    assert report(command, run, *options).status == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("words", MADE, ids=" ".join)
@pytest.mark.parametrize(
    ("files", "folder", "wanted"),
    ((0o600, 0o755, 0o600), (0o644, 0o755, 0o644), (0o644, 0o700, 0o600)),
)
def test_a_file_is_as_private_as_the_run(report, run, words, files, folder, wanted):
    if "--plot" in words and not pictures.is_possible():
        pytest.skip("no matplotlib")
    for path in run.iterdir():
        path.chmod(files)
    run.chmod(folder)
    assert modes(made(report, run, words)) == {wanted}


@pytest.mark.slow
def test_the_strictest_of_the_inputs_counts(report, run):
    (run / "rank-2.ledger").chmod(0o600)
    assert modes(made(report, run, MADE[0])) == {0o600}


def test_a_comparison_is_as_private_as_its_runs(report, run, tmp_path, no_pictures):
    ranks = planted.training_run()
    for rank in ranks:
        rank.run_id = "job-2"
    other = planted.write_ledgers(tmp_path / "other", ranks)
    for path in other.iterdir():
        path.chmod(0o640)
    assert report("html", run, "--", other, "--output", tmp_path / "page.html").status == 0
    assert stat.S_IMODE((tmp_path / "page.html").stat().st_mode) == 0o640


@pytest.mark.slow
def test_a_file_that_is_there_already_keeps_its_mode(report, run):
    for path in run.iterdir():
        path.chmod(0o600)
    page = made(report, run, MADE[0]) / "made"
    page.chmod(0o664)
    assert modes(made(report, run, MADE[0])) == {0o664}

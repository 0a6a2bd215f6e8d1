"""A site's file of settings: read by the library itself, below variables and options, whatever is in it."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path

import pytest

from .harness import COMMPROF_RUN, LIBRARY, Run, compile_program, launch, unprofiled_environment
from .libraries import Mpi

PROGRAM = "pcontrol"


def run_with(mpi: Mpi, folder: Path, site: str | bytes, *prefix: str, output: str = "site", **environment: str) -> Run:
    """Two ranks with this file as the site's, in the folder."""
    (folder / "site.conf").write_bytes(site if isinstance(site, bytes) else site.encode())
    environment = {"COMMPROF_CONFIG": str(folder / "site.conf"), "USER": "ada", **environment}
    outcome = launch(mpi, 2, [*prefix, str(compile_program(mpi, PROGRAM))], folder, environment)
    assert outcome.exit_status == 0, outcome
    return Run(2, folder / output, outcome)


@pytest.mark.parametrize("prefix", [["env", f"LD_PRELOAD={LIBRARY}"], [str(COMMPROF_RUN)]], ids=["preloaded", "commprof-run"])
def test_a_site_says_where_runs_go(mpi, tmp_path, prefix):
    run = run_with(mpi, tmp_path, "output = site/%u/%p-%d\nmemory = 8M\n", *prefix)
    today = datetime.date.today()
    folders = {f"{PROGRAM}-{day}" for day in (today, today - datetime.timedelta(days=1))}
    (made,) = (tmp_path / "site/ada").iterdir()
    assert made.name in folders
    facts = Run(2, made, run.outcome).facts(1)
    assert (facts["settings.COMMPROF_OUTPUT"], facts["settings.COMMPROF_MEMORY"]) == ("site/%u/%p-%d", "8M")


def test_variables_and_options_take_precedence_over_the_site(mpi, tmp_path):
    site = "output = site\nmemory = 8M\nsamples = 1M\nquiet = on\n"
    run = run_with(mpi, tmp_path, site, str(COMMPROF_RUN), "--output", "mine", "--quiet=off", output="mine", COMMPROF_MEMORY="16M")
    facts = run.facts(0)
    assert not (tmp_path / "site").exists()
    assert (facts["settings.COMMPROF_MEMORY"], facts["settings.COMMPROF_SAMPLES"]) == ("16M", "1M")
    assert "profile of 2 ranks in" in run.outcome.stderr


@pytest.mark.parametrize(
    ("site", "said"),
    [
        ("output = site\nmemry = 8M\nrubbish\n", "line 2: memry is not a setting; commprof-run --help lists them; lines that are not"),
        (b"output = site\n\x1b]0;gotcha\x07\n", "it is not used: not a text file"),
        ("output = site\n" + "# padding\n" * 2000, "it is not used: larger than 16 kB"),
    ],
)
def test_what_is_wrong_in_the_file_is_one_line_of_rank_0(mpi, tmp_path, site, said):
    run = run_with(mpi, tmp_path, site, str(COMMPROF_RUN), "--output", "site")
    lines = [line for line in run.outcome.stderr.splitlines() if "commprof:" in line and "profile of 2 ranks" not in line]
    assert len(lines) == 1 and lines[0].startswith(f"commprof: {tmp_path / 'site.conf'}, {said}"), lines
    assert run.files() == ["rank-0.db", "rank-1.db"]


def test_the_doctor_says_where_each_setting_comes_from(mpi, tmp_path):
    (tmp_path / "site.conf").write_text("memory = 8M\ntypo = 1\n")
    command = [COMMPROF_RUN, "--config", tmp_path / "site.conf", "--verbose", "1", "--doctor", compile_program(mpi, PROGRAM)]
    said = subprocess.run(command, capture_output=True, text=True, env=unprofiled_environment()).stdout
    assert f"ok       settings: COMMPROF_MEMORY=8M, from {tmp_path / 'site.conf'}\n" in said
    assert "ok       settings: COMMPROF_VERBOSE=1, from the environment or an option\n" in said
    assert f"note     settings: {tmp_path / 'site.conf'}, line 2: typo is not a setting" in said
    assert "COMMPROF_CLOCK" not in said

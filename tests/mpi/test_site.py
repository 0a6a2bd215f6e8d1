"""A site's file of settings: read by the library itself, below variables and options, whatever is
in it."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path

import pytest

from .harness import COMMPROF_RUN, LIBRARY, Run, compile_program, launch, unprofiled_environment
from .libraries import Mpi

pytestmark = [pytest.mark.slow, pytest.mark.one_mpi]

PROGRAM = "pcontrol"


def run_with(
    mpi: Mpi,
    folder: Path,
    site: str | bytes,
    *prefix: str,
    output: str = "site",
    **environment: str,
) -> Run:
    """Two ranks with this file as the site's, in the folder."""
    (folder / "site.conf").write_bytes(site if isinstance(site, bytes) else site.encode())
    environment = {"COMMPROF_CONFIG": str(folder / "site.conf"), "USER": "ada", **environment}
    outcome = launch(mpi, 2, [*prefix, str(compile_program(mpi, PROGRAM))], folder, environment)
    assert outcome.exit_status == 0, outcome
    return Run(2, folder / output, outcome)


@pytest.mark.parametrize(
    "prefix",
    [["env", f"LD_PRELOAD={LIBRARY}"], [str(COMMPROF_RUN)]],
    ids=["preloaded", "commprof-run"],
)
def test_a_site_says_where_runs_go(mpi, tmp_path, prefix):
    run = run_with(mpi, tmp_path, "output = site/%u/%p-%d\nmemory = 8M\n", *prefix)
    today = datetime.date.today()
    folders = {f"{PROGRAM}-{day}" for day in (today, today - datetime.timedelta(days=1))}
    (made,) = (tmp_path / "site/ada").iterdir()
    assert made.name in folders
    facts = Run(2, made, run.outcome).facts(1)
    assert (facts["settings.COMMPROF_OUTPUT"], facts["settings.COMMPROF_MEMORY"]) == (
        "site/%u/%p-%d",
        "8M",
    )


def test_variables_and_options_take_precedence_over_the_site(mpi, tmp_path):
    site = "output = site\nmemory = 8M\nsamples = 1M\nquiet = on\n"
    options = (str(COMMPROF_RUN), "--output", "mine", "--quiet=off")
    run = run_with(mpi, tmp_path, site, *options, output="mine", COMMPROF_MEMORY="16M")
    facts = run.facts(0)
    assert not (tmp_path / "site").exists()
    assert (facts["settings.COMMPROF_MEMORY"], facts["settings.COMMPROF_SAMPLES"]) == ("16M", "1M")
    assert "profile of 2 ranks in" in run.outcome.stderr


@pytest.mark.parametrize(
    ("site", "said"),
    [
        (
            "output = site\nmemry = 8M\nrubbish\n",
            "line 2: memry is not a setting; commprof-run --help lists them; lines that are not",
        ),
        (b"output = site\n\x1b]0;gotcha\x07\n", "it is not used: not a text file"),
        ("output = site\n" + "# padding\n" * 2000, "it is not used: larger than 16 kB"),
    ],
)
def test_what_is_wrong_in_the_file_is_one_line_of_rank_0(mpi, tmp_path, site, said):
    run = run_with(mpi, tmp_path, site, str(COMMPROF_RUN), "--output", "site")
    (line,) = (line for line in said_by_us(run) if "profile of 2 ranks" not in line)
    assert line.startswith(f"commprof: {tmp_path / 'site.conf'}, {said}")
    assert run.files() == ["rank-0.db", "rank-1.db"]


def doctor(program: object, *options: object) -> subprocess.CompletedProcess[str]:
    command = [COMMPROF_RUN, *options, "--doctor", program]
    return subprocess.run(command, capture_output=True, text=True, env=unprofiled_environment())


def test_the_doctor_says_where_each_setting_comes_from(mpi, tmp_path):
    (tmp_path / "site.conf").write_text("memory = 8M\ntypo = 1\n")
    options = ("--config", tmp_path / "site.conf", "--verbose", "1")
    said = doctor(compile_program(mpi, PROGRAM), *options).stdout
    assert f"ok       settings: COMMPROF_MEMORY=8M, from {tmp_path / 'site.conf'}\n" in said
    assert "ok       settings: COMMPROF_VERBOSE=1, from the environment or an option\n" in said
    assert f"note     settings: {tmp_path / 'site.conf'}, line 2: typo is not a setting" in said
    assert "COMMPROF_CLOCK" not in said


# profile=site: preloaded into all jobs

SPOOL = "profile = site\noutput = spool/%u/%j\n"
PRELOADED = ("env", f"LD_PRELOAD={LIBRARY}")


def runs_in(folder: Path) -> list[Path]:
    """The run folders that jobs have left in the spool."""
    return sorted(path for path in folder.glob("spool/*/*"))


def said_by_us(run: Run) -> list[str]:
    return [line for line in run.outcome.stderr.splitlines() if "commprof" in line]


def test_a_site_that_preloads_it_into_all_jobs_gets_counters_and_users_see_nothing(mpi, tmp_path):
    environment = {"UCX_TLS": "shm,self", "SLURM_JOB_ACCOUNT": "private"}
    run = run_with(mpi, tmp_path, SPOOL + "shortest-s = 0\n", *PRELOADED, **environment)
    assert said_by_us(run) == []
    (made,) = runs_in(tmp_path)
    run = Run(2, made, run.outcome)
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert run.counts("MPI_Allreduce") == [8, 8]
    assert run.query(0, "SELECT count(*) FROM sample") == [(0,)]
    facts = run.facts(0)
    assert (facts["settings.COMMPROF_PROFILE"], facts["settings.COMMPROF_SAMPLES"]) == ("site", "0")
    assert (facts["program"], facts["env.UCX_TLS"]) == (PROGRAM, "shm,self")
    assert not any(str(tmp_path) in value for key, value in facts.items() if key.startswith("env."))
    assert not {"command_line", "working_directory", "user_id", "env.SLURM_JOB_ACCOUNT"} & set(
        facts
    )


def test_other_sites_get_all_of_it(mpi, tmp_path):
    environment = {"UCX_TLS": "shm,self", "SLURM_JOB_ACCOUNT": "private"}
    run = run_with(mpi, tmp_path, "output = site\n", *PRELOADED, **environment)
    assert len(said_by_us(run)) == 1
    assert run.query(0, "SELECT count(*) FROM sample")[0][0] > 0
    known = "command_line working_directory user_id env.UCX_TLS env.SLURM_JOB_ACCOUNT"
    assert {*known.split()} <= set(run.facts(0))


def test_commprof_run_is_a_wish_for_a_full_profile(mpi, tmp_path):
    run = run_with(mpi, tmp_path, SPOOL, str(COMMPROF_RUN))
    assert len(said_by_us(run)) == 1
    (made,) = runs_in(tmp_path)
    assert Run(2, made, run.outcome).query(0, "SELECT count(*) FROM sample")[0][0] > 0


@pytest.mark.parametrize(
    "ledger", ["", "ledger = node\n"], ids=["in the run folder", "on the node"]
)
def test_a_job_that_is_too_short_leaves_nothing(mpi, tmp_path, ledger):
    """If rank 1 exits, the launcher may kill rank 0, which then leaves its ledger."""
    outcome = run_lifetime(mpi, tmp_path, SPOOL + ledger + "shortest-s = 100000\n", "plain")
    assert [line for line in outcome.stderr.splitlines() if "commprof:" in line] == []
    assert runs_in(tmp_path) == list(tmp_path.glob("node/*")) == []
    run_lifetime(mpi, tmp_path, SPOOL + ledger + "shortest-s = 100000\n", "exit_without_finalize")
    assert list(tmp_path.glob("**/*rank-1*")) == []


# One that aborts leaves its ledgers however short.
@pytest.mark.parametrize(
    ("how", "shortest_s", "ending"),
    [("plain", 0, "db"), ("exit_without_finalize", 0, "ledger"), ("abort", 100000, "ledger")],
)
def test_a_job_that_is_long_enough_or_aborts_is_kept(mpi, tmp_path, how, shortest_s, ending):
    run_lifetime(mpi, tmp_path, SPOOL + f"shortest-s = {shortest_s}\n", how)
    assert f"rank-1.{ending}" in sorted(path.name for path in tmp_path.glob("spool/*/*/*"))


def run_lifetime(mpi: Mpi, folder: Path, site: str, how: str):
    (folder / "site.conf").write_text(site)
    environment = {"COMMPROF_CONFIG": str(folder / "site.conf"), "USER": "ada"}
    return launch(
        mpi, 2, [*PRELOADED, str(compile_program(mpi, "lifetime")), how], folder, environment
    )


REASONS = {
    "skipped": ("skip = lifetime,pcon*\n", "COMMPROF_SKIP names pcontrol"),
    "switched-off": ("off-file = site.conf\n", "site.conf exists"),
    "unwanted": ("profile = off\n", ""),
    "without-a-folder": ("profile = site\nquiet = off\n", "profile=site needs an output folder"),
    "too-short": (
        "shortest-s = 100000\n",
        "nothing is kept of a run shorter than COMMPROF_SHORTEST_S=100000",
    ),
}


@pytest.mark.parametrize(("site", "said"), REASONS.values(), ids=REASONS)
def test_who_finds_no_profile_is_told_why_once(mpi, tmp_path, site, said):
    run = run_with(mpi, tmp_path, site, *PRELOADED)
    assert [path.name for path in tmp_path.iterdir()] == ["site.conf"]
    assert len(said_by_us(run)) == (1 if said else 0)
    assert said in run.outcome.stderr


def test_what_does_not_fit_the_job_keeps_nothing_from_being_recorded(mpi, tmp_path):
    site = "output = site\nskip = lifetime,pcontro,xpcon*\noff-file = missing\nprofile = full\n"
    run = run_with(mpi, tmp_path, site, *PRELOADED)
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert len(said_by_us(run)) == 1


def test_a_spool_that_cannot_be_used_is_no_concern_of_the_user_s(mpi, tmp_path):
    site = "output = site.conf/%j\n"
    loud = run_with(mpi, tmp_path, site, *PRELOADED, TMPDIR=str(tmp_path))
    assert "cannot use the run folder" in loud.outcome.stderr
    assert list(tmp_path.glob("commprof-*/*/rank-0.db"))
    silent = tmp_path / "silent"
    silent.mkdir()
    run = run_with(
        mpi, silent, site + "profile = site\nshortest-s = 0\n", *PRELOADED, TMPDIR=str(silent)
    )
    assert said_by_us(run) == []
    assert not list(silent.glob("commprof-*"))


def test_the_doctor_knows_the_sites_profile_and_its_switch(mpi, tmp_path):
    (tmp_path / "site.conf").write_text(f"profile = site\noff-file = {tmp_path / 'off'}\n")
    asked = (compile_program(mpi, PROGRAM), "--config", tmp_path / "site.conf")
    said = doctor(*asked).stdout
    assert f"ok       settings: COMMPROF_PROFILE=site, from {tmp_path / 'site.conf'}\n" in said
    assert "ok       settings: COMMPROF_SAMPLES=0, from profile=site\n" in said
    holds = "note     settings: this holds for programs that are preloaded without commprof-run "
    lacks = "(nothing is recorded of them, since profile=site needs COMMPROF_OUTPUT)"
    assert f"{holds}{lacks}; with it," in said
    assert "PROBLEM" not in said
    (tmp_path / "off").touch()
    off = f"PROBLEM  settings: {tmp_path / 'off'} exists, so nothing is recorded on this node\n"
    assert off in doctor(*asked).stdout


@pytest.mark.parametrize(
    ("profile", "said"),
    [("off", "COMMPROF_PROFILE=off"), ("site", "profile=site needs COMMPROF_OUTPUT"), ("full", "")],
)
def test_the_doctor_says_which_profile_records_nothing(mpi, profile, said):
    answer = doctor(compile_program(mpi, PROGRAM), "--config", "/dev/null", "--profile", profile)
    problem = f"PROBLEM  settings: {said}: nothing is recorded\n"
    assert (problem in answer.stdout) == bool(said) == bool(answer.returncode)


def test_the_doctor_says_that_a_program_is_skipped(tmp_path):
    (tmp_path / "train.py").touch()
    script = f"python3 {tmp_path}/train.py"
    for skip, program, name in (
        ("osu_*,sle*", "sleep", "sleep"),
        ("train", script.replace(" ", " -u "), "train"),
        ("python3", script, ""),
        ("osu_*", "sleep", ""),
    ):
        options = ["--config", "/dev/null", "--skip", skip, "--doctor", *program.split()]
        ended = subprocess.run(
            [COMMPROF_RUN, *options], capture_output=True, text=True, env=unprofiled_environment()
        )
        problem = f"PROBLEM  settings: COMMPROF_SKIP names {name}: nothing is recorded\n"
        assert (problem in ended.stdout) == ("COMMPROF_SKIP names" in ended.stdout) == bool(name)

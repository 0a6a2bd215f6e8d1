"""Provenance of a run: where, with what and under which settings it was made."""

import os
import re
import socket
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from . import reporter

SECRETS = dict.fromkeys(
    "NCCL_API_KEY UCX_PASSWORD SLURM_TOKEN SLURM_JWT HOROVOD_SECRET_KEY FI_CREDENTIALS".split(),
    "s3cret",
)
WORTH_KEEPING = {
    "UCX_TLS": "shm,self",
    "NCCL_DEBUG": "WARN",
    "CUDA_VISIBLE_DEVICES": "0,1",
    "HOROVOD_CYCLE_TIME": "5",
}
OF_NO_INTEREST = {"MY_OWN_VARIABLE": "private"}


@pytest.fixture
def run(profile):
    return profile("lifetime", 2, "plain", env=SECRETS | WORTH_KEEPING | OF_NO_INTEREST)


def test_the_program_its_host_and_its_library_are_known(run, mpi):
    facts = run.facts(1)
    assert facts["host"] == socket.gethostname()
    assert facts["program"].endswith("lifetime")
    assert facts["command_line"].endswith("lifetime plain")
    assert facts["run_id"] == run.rank_row(1)["run_id"]
    assert facts["user_id"] == str(os.getuid())
    assert facts["kernel"].split()[:2] == [os.uname().sysname, os.uname().release]
    assert facts["mpi_abi"] == mpi.abi and mpi.says in facts["mpi_version"]
    settings = {key for key in facts if key.startswith("settings.")}
    assert len(settings) >= 6 and str(run.folder) in {facts[key] for key in settings}
    row, other = run.rank_row(0), run.rank_row(1)
    assert len({row["pid"], other["pid"], os.getpid()}) == 3
    assert row["cost_init_ns"] > 0 < row["cost_finalize_ns"]
    assert 0 < row["cost_per_call_ps"] < 1_000_000


def test_the_environment_of_mpi_libraries_is_known_without_secrets_and_no_other(run):
    facts = run.facts(0)
    assert {name: facts.get(f"env.{name}") for name in WORTH_KEEPING} == WORTH_KEEPING
    assert not {"env.MY_OWN_VARIABLE", "env.PATH"} & facts.keys()
    assert {facts[f"env.{name}"] for name in SECRETS if f"env.{name}" in facts} == {"***"}
    assert b"s3cret" not in run.database(0).read_bytes()


SECRET = "--wandb-api-key=s3cret postgres://user:s3cret@host --password s3cret"
MASKED = "--wandb-api-key=*** postgres://***@host --password ***"


@pytest.mark.parametrize(
    ("arguments", "settings", "shown", "hidden"),
    [
        (SECRET, {}, f"lifetime plain {MASKED}", b"s3cret"),
        ("--data patients.csv", {"COMMPROF_ARGUMENTS": "off"}, "/lifetime", b"patients"),
    ],
)
def test_secrets_among_the_arguments_are_in_no_file(profile, arguments, settings, shown, hidden):
    run = profile("lifetime", 2, "plain", *arguments.split(), env=settings)
    assert run.facts(0)["command_line"].endswith(shown)
    assert hidden not in run.database(0).read_bytes()


def test_the_build_of_the_mpi_library_is_known(run):
    library = Path(run.facts(0)["mpi_library"]).resolve()
    notes = subprocess.check_output(["readelf", "--notes", library], text=True)
    build_id = re.search("Build ID: ([0-9a-f]+)", notes)
    if not build_id:
        pytest.skip("it has no build id")
    known = {value for key, value in run.facts(0).items() if key.startswith("build_id.libmp")}
    assert build_id[1] in known


COUNTED = (
    "since_start_ns cpu_user_ns cpu_system_ns voluntary_switches involuntary_switches "
    "minor_faults major_faults"
).split()


def test_what_a_rank_used_and_where_it_may_run_is_known_at_both_ends(run):
    facts = run.facts(1)
    assert all(0 <= int(facts[f"begin.{key}"]) <= int(facts[f"last.{key}"]) for key in COUNTED)
    assert int(facts["begin.since_start_ns"]) > 0
    assert int(facts["last.cpu_user_ns"]) + int(facts["last.cpu_system_ns"]) > 0
    for reading in ("begin", "last"):
        parts = [part.split("-") for part in facts[f"{reading}.affinity"].split(",")]
        cores = {core for part in parts for core in range(int(part[0]), int(part[-1]) + 1)}
        assert cores <= os.sched_getaffinity(0)
        assert int(facts[f"{reading}.core"]) in cores


def merged_facts(run, rank: int) -> dict[str, str]:
    """Facts of a database or a ledger, as the reporter reads either."""
    merged = run.folder.parent / "merged.db"
    reporter.text("merge", run.folder, merged)
    with closing(sqlite3.connect(merged)) as connection:
        return dict(connection.execute("SELECT key, value FROM fact WHERE world_rank = ?", (rank,)))


def test_a_rank_that_aborts_has_a_last_reading_and_a_killed_one_the_first_alone(profile):
    facts = merged_facts(profile("lifetime", 2, "abort", exit_status=None), 1)
    assert int(facts["last.since_start_ns"]) >= int(facts["begin.since_start_ns"])
    facts = merged_facts(profile("lifetime", 2, "kill", exit_status=None), 1)
    assert "begin.affinity" in facts and "last.affinity" not in facts

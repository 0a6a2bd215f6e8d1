"""`html --anonymous` and `merge --anonymous`: a page or a database to send, with everything but
names of people, machines and files."""

from __future__ import annotations

import base64
import re
import sqlite3

import planted
import pytest
from commprof_report.display import pictures
from commprof_report.run import anonymous, database, run
from planted import ROOT

GIVEN_AWAY = {
    "host": "s3cret-node{0}",
    "command_line": "/home/s3cret/bin/python3 train.py --data s3cret",
    "working_directory": "/home/s3cret/net",
    "mpi_library": "/home/s3cret/lib/libmpi.so.40",
    "mpi_version": "Open MPI v4.1.4, package: Open MPI s3cret@s3cret Distribution",
    "settings.COMMPROF_OUTPUT": "s3cret-run",
    "settings.COMMPROF_MEMORY": "64M",
    "env.SLURM_JOB_USER": "s3cret",
    "cvar.orte_jobfam_session_dir": "/tmp/ompi.s3cret",
    "env.SLURM_JOB_UID": "271828",
    "env.HOROVOD_CYCLE_TIME": "5",
    "env.HOROVOD_TIMELINE": "/home/s3cret/timeline",
    "boot_id": "s3cret-boot{0}",
    "gpu.state": "off",
    "gpu.reason": "cannot load /home/s3cret/libcupti.so.12: s3cret/x",
    "gpu.tracing_library": "/home/s3cret/libcupti.so.12",
    "ledger_file": "/dev/shm/commprof-271828/s3cret.ledger",
    "new_fact": "s3cret",
}


@pytest.fixture
def folder(tmp_path):
    ranks = planted.training_run()
    for rank in ranks:
        rank.run_id = "s3cret-40001"
        rank.facts.update(
            {key: value.format(rank.world_rank // 2) for key, value in GIVEN_AWAY.items()}
        )
    return planted.write_databases(tmp_path / "s3cret-folder", ranks)


def page_of(report, folder, tmp_path, *options):
    """With its pictures as text, for a name in one of them is one on the page."""
    assert report("html", folder, "-o", tmp_path / "page.html", *options).status == 0
    text = (tmp_path / "page.html").read_text()
    pictures_ = re.findall(r"base64,([^\"]+)", text)
    return text + "".join(base64.b64decode(picture).decode() for picture in pictures_)


@pytest.mark.slow
def test_an_anonymous_page_has_all_but_names(report, folder, tmp_path):
    """Hosts have stable pseudonyms; program, library, settings and communicators stay."""
    text = page_of(report, folder, tmp_path, "--anonymous")
    for name in ("s3cret", "271828", "/home", "--data", "host-3"):
        assert name not in text
    stay = "python3; Open MPI 4.1.4; libmpi.so.40; COMMPROF_MEMORY; env.HOROVOD_CYCLE_TIME; "
    for name in (stay + "MPI_COMM_WORLD; host-1, host-2").split("; "):
        assert name in text
    if pictures.is_possible():
        again = page_of(report, folder, tmp_path, "--anonymous")
        pictured = re.compile(r"<dc:date>.*?</dc:date>|base64,[^\"]+")
        assert pictured.sub("", again) == pictured.sub("", text)


def test_an_anonymous_database_has_no_host_user_path_argument_or_id(
    report, folder, tmp_path, monkeypatch
):
    """In any byte: deleted rows stay in free pages, unless SQLite was built to overwrite them as
    Debian's is."""

    def created() -> sqlite3.Connection:
        connection = database.database_create()
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    monkeypatch.setattr(run, "database_create", created)
    for options, is_there in ((), True), (("--anonymous",), False):
        assert report("merge", *options, folder, tmp_path / "run.db").status == 0
        assert (b"s3cret" in (tmp_path / "run.db").read_bytes()) == is_there
    ids = sqlite3.connect(tmp_path / "run.db").execute(
        "SELECT DISTINCT run_id, pid, tid FROM rank JOIN thread USING (world_rank)"
    )
    assert ids.fetchall() == [("", 0, 0)]


@pytest.mark.parametrize("command", ("calls", "sizes", "late", "steps", "communicators"))
def test_an_anonymous_database_says_the_same_as_the_run(report, folder, tmp_path, command):
    assert report("merge", "--anonymous", folder, tmp_path / "run.db").status == 0
    ours, theirs = (
        [{**row, "host": None} for row in report(command, "--json", path).rows]
        for path in (tmp_path / "run.db", folder)
    )
    assert theirs and ours == theirs


# Facts of the library.

FACT = re.compile(
    r'(?:ledger_fact|record_unless_empty|record_namespace|note_once)\((?:&\w+, )?"([^"]+)"'
)
FACTS = sorted(
    {key for path in (ROOT / "src").rglob("*.c") for key in FACT.findall(path.read_text())}
)


def is_in(page: str, key: str) -> bool:
    return f"`{key}`" in (ROOT / "docs" / page).read_text()


@pytest.mark.parametrize("key", FACTS)
def test_a_fact_is_documented(key):
    assert is_in("SCHEMA.md", key)


@pytest.mark.parametrize("key", FACTS)
def test_a_fact_that_is_not_listed_as_private_is_on_an_anonymous_page(key):
    """Else a sentence would be missing there that rests on it."""
    assert is_in("PRIVACY.md", key) or key in anonymous.UNCHANGED

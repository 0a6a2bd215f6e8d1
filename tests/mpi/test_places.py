"""Run folders on real file systems of many kinds: where the ledger lies, and what comes of a full or refusing one."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from .disks import fill
from .harness import COMMPROF_RUN, Run, calls_in_ledger, command_for, launch

PRIVATE = f"commprof-{os.geteuid()}"


@pytest.fixture
def profile_on(mpi, tmp_path):
    """profile_on(folder, "program", ranks, COMMPROF_...="..."): its run in <folder>/run. `around` stands before the command."""

    def profiled(folder: Path, program: str, ranks: int, *, around: tuple[str, ...] = (), **settings: str) -> Run:
        environment = {"COMMPROF_OUTPUT": str(folder / "run"), "COMMPROF_VERBOSE": "2", **settings}
        outcome = launch(mpi, ranks, [*around, str(COMMPROF_RUN), *command_for(mpi, program)], tmp_path, environment)
        assert outcome.exit_status == 0, outcome
        return Run(ranks, folder / "run", outcome)

    return profiled


def ledgers(run) -> list[Path]:
    """Where the ranks kept their ledgers, by their own account."""
    return sorted(Path(path) for path in re.findall(r"commprof: rank .*, ledger (\S+)", run.outcome.stderr))


def complaints(run) -> list[str]:
    lines = [line for line in run.outcome.stderr.splitlines() if line.startswith("commprof: ")]
    return [line for line in lines if not re.search(r"^commprof: (rank \d+ of|profile of) ", line)]


@pytest.mark.parametrize("kind", ["ext4", "xfs", "tmpfs"])
def test_a_safe_file_system_has_the_ledgers_in_the_run_folder(profile_on, disk, kind):
    folder = disk(kind)
    run = profile_on(folder, "pcontrol", 2)
    assert ledgers(run) == [folder / "run/rank-0.ledger", folder / "run/rank-1.ledger"]
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert complaints(run) == []


@pytest.mark.parametrize("kind", ["btrfs", "fuse"])
def test_any_other_has_them_on_the_node_and_nothing_is_said(profile_on, disk, kind):
    folder = disk(kind)
    run = profile_on(folder, "pcontrol", 2)
    assert {path.parent for path in ledgers(run)} == {Path("/dev/shm") / PRIVATE}
    assert not any(path.exists() for path in ledgers(run))
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert run.counts("MPI_Allreduce") == [8, 8]
    assert complaints(run) == []


IN_USER_SPACE = 'bindfs "$0" "$0" || exit; "$@"; status=$?; umount "$0"; exit $status'


@pytest.mark.skipif(not shutil.which("bindfs"), reason="no bindfs")
def test_a_file_system_in_user_space_is_not_trusted(profile_on, tmp_path):
    run = profile_on(tmp_path, "strided_members", 1, around=("sh", "-c", IN_USER_SPACE, str(tmp_path)))
    assert [path.parent for path in ledgers(run)] == [Path("/dev/shm") / PRIVATE]
    assert run.files() == ["rank-0.db"]
    assert complaints(run) == []


NO_PLACE = f"""mount --make-rprivate / || exit
for place in /dev/shm /tmp; do
    mkdir -p -m 700 $place/{PRIVATE} && mount -t tmpfs -o mode=755 tmpfs $place/{PRIVATE} || exit
done
exec "$@" """


def test_where_the_node_has_no_place_it_lies_in_the_run_folder_and_the_risk_is_said(profile_on, disk):
    folder = disk("btrfs")
    run = profile_on(folder, "strided_members", 1, around=("unshare", "--mount", "sh", "-c", NO_PLACE, "sh"))
    assert ledgers(run) == [folder / "run/rank-0.ledger"]
    (line,) = complaints(run)
    assert "would end the job" in line
    assert run.files() == ["rank-0.db"]


@pytest.mark.parametrize("kind", ["ext4", "tmpfs", "xfs"])
def test_a_disk_that_fills_ends_no_job_and_loses_no_call(profile_on, disk, kind):
    folder = disk(kind, "size=4m" if kind == "tmpfs" else "")
    fill(folder, 3000)
    run = profile_on(folder, "many_sizes", 2, COMMPROF_MEMORY="256M")
    assert counted(run, 0)["MPI_Send"] == 20000
    assert counted(run, 1)["MPI_Recv"] == 20000


def counted(run, rank):
    """In the database, or in the ledger where the database found no room either."""
    if run.database(rank).exists():
        return {call: sum(cell.count for cell in run.cells(rank, call)) for call in ("MPI_Send", "MPI_Recv")}
    assert f"rank-{rank}.db: " in run.outcome.stderr
    return calls_in_ledger(run.ledger(rank))


def test_a_disk_that_is_full_at_the_start_has_its_ledgers_on_the_node(profile_on, disk):
    folder = disk("tmpfs", "size=300k")
    run = profile_on(folder, "pcontrol", 2)
    assert {path.parent for path in ledgers(run)} == {Path("/dev/shm") / PRIVATE}
    (line,) = complaints(run)
    assert "No space left on device; it is /dev/shm/" in line
    assert run.counts("MPI_Allreduce") == [8, 8]


def check_replaced(run, wanted, reason, place):
    """The run folder lies elsewhere, and one line for the node says so."""
    (line,) = complaints(run)
    assert line.startswith(f"commprof: cannot use the run folder {wanted}: {reason}; on {socket.gethostname()} it is {place}/{PRIVATE}/")
    replaced = Run(run.ranks, Path(line.rpartition(" it is ")[2]), run.outcome)
    assert replaced.files() == ["rank-0.db", "rank-1.db"]
    assert replaced.counts("MPI_Allreduce") == [8, 8]


def test_a_disk_that_is_read_only(profile_on, disk, tmp_path):
    folder = disk("ext4")
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    run = profile_on(folder, "pcontrol", 2, TMPDIR=str(tmp_path))
    check_replaced(run, folder / "run", "Read-only file system", tmp_path)


def test_a_path_that_is_too_long(profile_on, tmp_path):
    folder = tmp_path / "/".join(["long" * 50] * 20)
    run = profile_on(folder, "pcontrol", 2, TMPDIR=str(tmp_path))
    check_replaced(run, folder / "run", "File name too long", tmp_path)


NOBODY = 65534


@pytest.fixture
def for_nobody():
    """A folder that a process without rights reaches; the tests' own are root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="commprof-nobody-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_folder_that_the_user_may_not_write_to(mpi, for_nobody):
    (for_nobody / "run").mkdir(mode=0o755)
    user = mpi._replace(mpirun=("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *mpi.mpirun))
    settings = {"COMMPROF_OUTPUT": str(for_nobody / "run"), "TMPDIR": str(for_nobody)}
    run = Run(2, for_nobody, launch(user, 2, [str(COMMPROF_RUN), *command_for(mpi, "pcontrol")], for_nobody, settings))
    assert run.outcome.exit_status == 0
    (line,) = complaints(run)
    assert f"cannot use the run folder {for_nobody}/run: Permission denied; on" in line
    replaced = Run(2, Path(line.rpartition(" it is ")[2]), run.outcome)
    assert replaced.folder.parent == for_nobody / f"commprof-{NOBODY}"
    assert replaced.counts("MPI_Allreduce") == [8, 8]


def test_little_address_space_makes_a_smaller_ledger_and_is_said(profile_on, tmp_path):
    run = profile_on(tmp_path, "pcontrol", 2, around=("prlimit", f"--as={64 << 30}"), COMMPROF_MEMORY="1024G")
    (line,) = complaints(run)
    assert line.startswith("commprof: no address space for a ledger of 1073741824 kB; it has ")
    assert run.counts("MPI_Allreduce") == [8, 8]


def test_without_file_descriptors_the_table_folds_and_no_call_is_lost(profile_on, tmp_path):
    run = profile_on(tmp_path, "exhausted", 2)
    assert run.counts("MPI_Bcast") == [200, 200]
    (line,) = complaints(run)
    assert re.fullmatch(r"commprof: cannot grow .*/run/rank-0.ledger beyond \d+ kB: Too many open files; the rarest .* fold", line)

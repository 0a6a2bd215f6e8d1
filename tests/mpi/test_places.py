"""Run folders on real file systems of many kinds: where the ledger lies, and what comes of a full
or refusing one."""

import os
import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from .disks import fill
from .harness import (
    COMMPROF_RUN,
    Run,
    abort_code_in_ledger,
    calls_in_ledger,
    command_for,
    copied_unix_ns_in_ledger,
    ended_in_ledger,
    launch,
)

pytestmark = [pytest.mark.slow, pytest.mark.one_mpi]

PRIVATE = f"commprof-{os.geteuid()}"
NODE = Path("/dev/shm") / PRIVATE


@pytest.fixture
def profile_on(mpi, tmp_path):
    """profile_on(folder, "program", ranks, COMMPROF_...="..."): its run in <folder>/run. `around`
    stands before the command."""

    runs: list[Run] = []

    def profiled(
        folder: Path, program: str, ranks: int, *, around: tuple[str, ...] = (), **settings: str
    ) -> Run:
        environment = {"COMMPROF_OUTPUT": str(folder / "run"), "COMMPROF_VERBOSE": "2", **settings}
        command = [*around, str(COMMPROF_RUN), *command_for(mpi, program)]
        outcome = launch(mpi, ranks, command, tmp_path, environment)
        assert outcome.exit_status == 0, outcome
        runs.append(Run(ranks, folder / "run", outcome))
        return runs[-1]

    yield profiled
    for ledger in (path for run in runs for path in ledgers(run)):
        ledger.unlink(missing_ok=True)  # one whose database found no room stays on the node


def ledgers(run) -> list[Path]:
    """Ledgers of the ranks, by their own account."""
    return sorted(
        Path(path) for path in re.findall(r"commprof: rank .*, ledger (\S+)", run.outcome.stderr)
    )


def complaints(run) -> list[str]:
    lines = [line for line in run.outcome.stderr.splitlines() if line.startswith("commprof: ")]
    return [line for line in lines if not re.search(r"^commprof: (rank \d+ of|profile of) ", line)]


@pytest.mark.parametrize("kind", ["ext4", "xfs", "tmpfs", "btrfs", "fuse"])
def test_a_safe_file_system_has_the_ledgers_in_the_run_folder_and_others_on_the_node(
    profile_on, disk, kind
):
    """Nothing is said."""
    folder = disk(kind)
    run = profile_on(folder, "pcontrol", 2)
    if kind in ("btrfs", "fuse"):
        assert {path.parent for path in ledgers(run)} == {NODE}
        assert not any(path.exists() for path in ledgers(run))
    else:
        assert ledgers(run) == [folder / "run/rank-0.ledger", folder / "run/rank-1.ledger"]
    assert run.files() == ["rank-0.db", "rank-1.db"]
    assert run.counts("MPI_Allreduce") == [8, 8]
    assert complaints(run) == []


IN_USER_SPACE = 'bindfs "$0" "$0" || exit; "$@"; status=$?; umount "$0"; exit $status'


@pytest.mark.skipif(not shutil.which("bindfs"), reason="no bindfs")
def test_a_file_system_in_user_space_is_not_trusted(profile_on, tmp_path):
    around = ("sh", "-c", IN_USER_SPACE, str(tmp_path))
    run = profile_on(tmp_path, "strided_members", 1, around=around)
    assert [path.parent for path in ledgers(run)] == [NODE]
    assert (run.files(), complaints(run)) == (["rank-0.db"], [])


NO_PLACE = f"""mount --make-rprivate / || exit
for place in /dev/shm /tmp; do
    mkdir -p -m 700 $place/{PRIVATE} && mount -t tmpfs -o mode=755 tmpfs $place/{PRIVATE} || exit
done
exec "$@" """


def test_where_the_node_has_no_place_it_lies_in_the_run_folder_and_the_risk_is_said(
    profile_on, disk
):
    folder, around = disk("btrfs"), ("unshare", "--mount", "sh", "-c", NO_PLACE, "sh")
    run = profile_on(folder, "strided_members", 1, around=around)
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


def test_a_thread_with_a_stack_of_16_kilobytes_survives_a_disk_that_fills(profile_on, plain, disk):
    folder = disk("tmpfs", "size=4m")
    fill(folder, 3000)
    run = profile_on(folder, "small_stacks", 2, COMMPROF_MEMORY="256M")
    assert any("cannot grow" in line for line in complaints(run))
    assert counted(run, 0)["MPI_Send"] == 20000
    # MPI itself goes deep, by how much depends on the vector registers that its lazy binding saves
    assert int(run.outcome.stdout) <= int(plain("small_stacks", 2).stdout) + 2048


def counted(run, rank):
    """In the database, or in the ledger where the database found no room either."""
    if run.database(rank).exists():
        return {call: run.counts(call)[rank] for call in ("MPI_Send", "MPI_Recv")}
    assert f"rank-{rank}.db: " in run.outcome.stderr
    return calls_in_ledger(run.ledger(rank))


def test_a_disk_that_is_full_at_the_start_has_its_ledgers_on_the_node(profile_on, disk):
    folder = disk("tmpfs", "size=16k")
    run = profile_on(folder, "pcontrol", 2)
    assert {path.parent for path in ledgers(run)} == {NODE}
    in_order = sorted(ledgers(run), key=lambda path: path.name.partition("-rank-")[2])
    assert [calls_in_ledger(ledger)["MPI_Allreduce"] for ledger in in_order] == [8, 8]
    keep, *later = complaints(run)
    full = f"the ledger {{}} {folder}/run/rank-0.ledger: No space left on device; "
    assert f"cannot keep {full.format('in')}it is /dev/shm/" in keep
    copy = f"cannot copy {full.format('to')}what is measured is in /dev/shm/"
    assert any(copy in line for line in later)
    assert sum("database or disk is full; the ledger /dev/shm/" in line for line in later) == 2


def check_replaced(run, wanted, reason, place):
    """The run folder lies elsewhere, and one line for the node says so."""
    (line,) = complaints(run)
    # a line of 4 kB has lost its middle
    head, _, tail = line.partition("...") if "..." in line else (line, "", line)
    begin = f"commprof: cannot use the run folder {wanted}:"
    assert begin.startswith(head[: len(begin)])
    assert f": {reason}; on {socket.gethostname()} it is {place}/{PRIVATE}/" in tail
    replaced = Run(run.ranks, Path(line.rpartition(" it is ")[2]), run.outcome)
    assert replaced.files() == ["rank-0.db", "rank-1.db"]
    assert replaced.counts("MPI_Allreduce") == [8, 8]


def test_a_disk_that_is_read_only(profile_on, disk, tmp_path):
    folder = disk("ext4")
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    run = profile_on(folder, "pcontrol", 2, TMPDIR=str(tmp_path))
    check_replaced(run, folder / "run", "Read-only file system", tmp_path)


PATH_MAX = 4096


def test_a_path_that_is_too_long(profile_on, tmp_path):
    # one that is refused as a setting is another matter
    longest = str(tmp_path / "/".join(["long" * 50] * 21))[: PATH_MAX - 20]
    folder = Path(longest.rstrip("/"))
    run = profile_on(folder, "pcontrol", 2, TMPDIR=str(tmp_path))
    check_replaced(run, folder / "run", "File name too long", tmp_path)


NOBODY = 65534


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_folder_that_the_user_may_not_write_to(mpi):
    become = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    command = [str(COMMPROF_RUN), *command_for(mpi, "pcontrol")]
    # the tests' own folders are root's alone
    with tempfile.TemporaryDirectory(prefix="commprof-nobody-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "run").mkdir(mode=0o755)
        settings = {"COMMPROF_OUTPUT": f"{name}/run", "TMPDIR": name}
        user = mpi._replace(mpirun=(*become, *mpi.mpirun))
        run = Run(2, folder, launch(user, 2, command, folder, settings))
        assert run.outcome.exit_status == 0
        (line,) = complaints(run)
        assert f"cannot use the run folder {name}/run: Permission denied; on" in line
        replaced = Run(2, Path(line.rpartition(" it is ")[2]), run.outcome)
        assert replaced.folder.parent == folder / f"commprof-{NOBODY}"
        assert replaced.counts("MPI_Allreduce") == [8, 8]


def test_little_address_space_makes_a_smaller_ledger_and_is_said(profile_on, tmp_path):
    around = ("prlimit", f"--as={64 << 30}")
    run = profile_on(tmp_path, "pcontrol", 2, around=around, COMMPROF_MEMORY="1024G")
    (line,) = complaints(run)
    assert line.startswith("commprof: no address space for a ledger of 1073741824 kB; it has ")
    assert run.counts("MPI_Allreduce") == [8, 8]


def test_without_file_descriptors_the_table_folds_and_no_call_is_lost(profile_on, tmp_path):
    run = profile_on(tmp_path, "exhausted", 2)
    assert run.counts("MPI_Bcast") == [2000, 2000]
    (line,) = complaints(run)
    why = r"cannot grow .*/run/rank-0.ledger beyond \d+ kB: Too many open files; the rarest .* fold"
    assert re.fullmatch(f"commprof: {why}", line)


# Copies of ledgers that lie on the node. In programs/lifetime.c rank 1 receives five messages, and
# ends as it is told to.


@pytest.fixture
def elsewhere(tmp_path):
    (tmp_path / "node").mkdir()
    return tmp_path / "node"


# how rank 1 ends: enum ledger_ended, the abort's code
ENDS = {"exit_without_finalize": (2, 0), "abort": (3, 5), "kill_once_copied": (0, 0)}


@pytest.mark.parametrize("how", ENDS)
def test_a_rank_that_ends_early_leaves_a_copy_with_all_that_was_counted(profile, elsewhere, how):
    """After an exit nothing stays on the node; after a kill the copy says where the ledger is.
    Other ranks may have been killed by the launcher, and have left theirs."""
    env = {"COMMPROF_LEDGER": str(elsewhere)}
    copy = profile("lifetime", 2, how, env=env, exit_status=None).ledger(1)
    assert copied_unix_ns_in_ledger(copy) > 0 and not copy.is_symlink()
    left = list((elsewhere / PRIVATE).glob("*-rank-1-*.ledger"))
    if how == "kill_once_copied":
        (ledger,) = left
        assert str(ledger).encode() in copy.read_bytes()
        assert (calls_in_ledger(ledger)["MPI_Recv"], copied_unix_ns_in_ledger(ledger)) == (5, 0)
        return
    assert calls_in_ledger(copy)["MPI_Recv"] == 5
    assert (ended_in_ledger(copy), abort_code_in_ledger(copy)) == ENDS[how]
    assert how == "abort" or left == []


def test_where_the_database_cannot_be_written_the_last_copy_has_everything(
    profile_on, elsewhere, tmp_path
):
    for rank in range(2):
        (tmp_path / "run" / f"rank-{rank}.db.tmp").mkdir(parents=True)
    run = profile_on(tmp_path, "pcontrol", 2, COMMPROF_LEDGER=str(elsewhere))
    assert [calls_in_ledger(run.ledger(rank))["MPI_Allreduce"] for rank in range(2)] == [8, 8]
    assert [ended_in_ledger(run.ledger(rank)) for rank in range(2)] == [1, 1]


def test_calls_are_counted_in_the_time_window_alone(profile_on, mpi, tmp_path):
    run = profile_on(tmp_path, "window", 1, COMMPROF_BEGIN_S="1", COMMPROF_END_S="2")
    assert 0 < run.counts("MPI_Barrier")[0] < int(run.outcome.stdout)
    # an option has dashes; MPI_Pcontrol(1) of the program begins a window that never does
    options = ["--begin-s", "1000", "--output", str(tmp_path / "never")]
    command = [str(COMMPROF_RUN), *options, *command_for(mpi, "pcontrol")]
    run = Run(2, tmp_path / "never", launch(mpi, 2, command, tmp_path, {}))
    assert run.facts(0)["settings.COMMPROF_BEGIN_S"] == "1000"
    assert run.counts("MPI_Allreduce") == [5, 5]

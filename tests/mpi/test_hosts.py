"""Jobs on several hosts, each with its own clock (tests/hosts): which host a rank is on, how well
their clocks are aligned, and what a slow link looks like. tests/truth has the slow host."""

from __future__ import annotations

import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from . import reporter
from .effects import EXPERIMENT
from .harness import COMMPROF_RUN, Run, command_for, profiled, unprofiled_environment
from .libraries import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests"))
from hosts.cluster import HOSTS, Host, on_hosts, refused
from truth.logs import read

pytestmark = pytest.mark.slow

RANDOM_WORK = ("plants", "random", "32", "500", "40000", "-1")
RATE_BIT_PER_S, BURST = 50_000_000, 64 << 10  # of a slow link; bytes that pass at once (cluster.sh)
ROUNDS, BYTES = 12, 1 << 20
CALLS = """
    SELECT aligned_ns + (start_ns - since_ns) * (1 + drift), end_ns - start_ns
    FROM sample JOIN clock_line USING (world_rank)
    WHERE call = ? AND world_rank = ? AND start_ns >= since_ns AND start_ns < until_ns
    ORDER BY start_ns"""


@pytest.fixture(scope="module")
def played(mpi, tmp_path_factory):
    """played(words, ranks_per_host, hosts): a program's run on these hosts, once."""
    runs: dict[object, Run] = {}

    def get(words: Sequence[str], ranks_per_host: int = 2, hosts: Sequence[Host] = HOSTS) -> Run:
        if reason := refused(hosts):
            pytest.skip(reason)
        asked = (*words, ranks_per_host, *hosts)
        if asked not in runs:
            folder = tmp_path_factory.mktemp(f"{mpi.name}-hosts")
            command = [COMMPROF_RUN, *command_for(mpi, words[0]), *words[1:]]
            ranks, there = ranks_per_host * len(hosts), on_hosts(mpi, ranks_per_host, hosts)
            runs[asked] = profiled(there, ranks, command, folder, COMMPROF_QUIET="on")
            assert runs[asked].outcome.exit_status == 0, runs[asked].outcome
        return runs[asked]

    return get


def test_each_rank_is_on_its_own_host(played):
    run = played(RANDOM_WORK)
    assert [run.facts(rank)["host"] for rank in range(4)] == ["h1", "h1", "h2", "h2"]
    rows = reporter.rows_of_ended("late", run.folder, "--by", "host")
    assert [(row["host"], row["ranks"]) for row in rows] == [("h1", 2), ("h2", 2)]


def test_an_experiment_runs_its_arms_on_the_hosts_and_measures_each_of_them(mpi, tmp_path):
    if reason := refused():
        pytest.skip(reason)
    there = on_hosts(mpi, 1)
    program = shlex.join([*command_for(mpi, RANDOM_WORK[0]), *RANDOM_WORK[1:]])
    job = f"{shlex.join([*there.mpirun, '-n', '2'])} {{}} {program}"
    arms = ("--arm", f"a: {job}", "--arm", f"b: {job}")
    command = [EXPERIMENT, "run", "exp", "--blocks", "1", *arms]
    env = unprofiled_environment() | there.environment
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done
    assert "a: " in done.stdout and "2 ranks on 2 hosts" in done.stdout
    runs = [Path(row["run"]) for row in reporter.rows("compare", tmp_path / "exp", "--by", "run")]
    assert sorted(run.name for run in runs) == ["a", "b"]
    for run in runs:
        canaries = run.with_name(f"{run.name}.canary").iterdir()
        assert sorted(path.name for path in canaries) == ["h1", "h2"]
    (verdict,) = reporter.rows("compare", tmp_path / "exp", "--by", "verdict")
    assert {"placement", "hosts", "partial", "program"}.isdisjoint(verdict["refused"].split("; "))


def contradictions_ns(run: Run, merged: Path, call: str) -> list[float]:
    """By call: how far two ranks' times on the axis are apart beyond what the program has read
    from its clock before and after the same call. Clocks of hosts are ahead by a known time."""
    apart = []
    with closing(sqlite3.connect(merged)) as database:
        for rank in range(run.ranks):
            calls = database.execute(CALLS, (call, rank)).fetchall()
            ahead_ns = HOSTS[rank * len(HOSTS) // run.ranks].ahead_s * 10**9
            log = read(run.folder.parent / f"log-{rank}", ahead_ns).events
            events = [event for event in log if event.call == call]
            assert len(calls) == len(events) > 0
            apart.append(
                [
                    (begin_ns - (event.end_ns - duration_ns), begin_ns - event.start_ns)
                    for (begin_ns, duration_ns), event in zip(calls, events)
                ]
            )
    return [max(low for low, _ in of) - min(high for _, high in of) for of in zip(*apart)]


@pytest.mark.nightly
def test_clocks_2_000_s_apart_are_aligned_within_the_error_that_is_said(played, tmp_path):
    run = played(RANDOM_WORK, ranks_per_host=1)
    (late,) = reporter.rows("late", run.folder, "--by", "run")
    assert (late["clocks"], late["unconnected_clocks"], late["estimate_share"]) == (2, 0, 0)
    reporter.text("merge", run.folder, tmp_path / "merged.db")
    assert max(contradictions_ns(run, tmp_path / "merged.db", "MPI_Allreduce")) <= late["error_ns"]


def transfer_ns(run: Run) -> list[int]:
    return [row["transfer_ns"] for row in reporter.rows_of_ended("late", run.folder)]


def over_links(played, *rates: str) -> Run:
    """Even ranks send to the next ones, each from a host of its own; the hosts send at these
    rates."""
    hosts = tuple(Host(10 * number, rate) for number, rate in enumerate(rates))
    return played(("pairs", str(ROUNDS), str(BYTES)), ranks_per_host=1, hosts=hosts)


@pytest.mark.nightly
def test_messages_over_a_slow_link_have_long_transfers(played):
    """No message is faster than its link, and no other one has to wait for the link."""
    to_rank = transfer_ns(over_links(played, "", "", f"{RATE_BIT_PER_S}bit", ""))
    least_ns = ROUNDS * 8 * (BYTES - BURST) / RATE_BIT_PER_S * 1e9
    assert to_rank[3] > 0.9 * least_ns > 2 * max(to_rank[:2])


@pytest.mark.nightly
@pytest.mark.parametrize(("rate", "link"), [(f"{RATE_BIT_PER_S}bit", (4, 5)), ("", (None, None))])
def test_a_slow_link_is_named_as_one(played, rate, link):
    run = over_links(played, "", "", "", "", rate, "")
    (late,) = reporter.rows_of_ended("late", run.folder, "--by", "run")
    assert (late["slow_link_sender"], late["slow_link_receiver"]) == link
    said = "messages from rank 4 to rank 5 take" in reporter.text("late", run.folder)
    assert said == bool(rate)

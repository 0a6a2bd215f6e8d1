"""Stubs in a run folder: they name ledgers on nodes, whose ranks were killed before the first copy
was made."""

from __future__ import annotations

import os
import subprocess

import planted
import pytest
from commprof_report.run import ledger, ledger_format
from planted import Cell, Rank, process_facts

HASH = "0123456789abcdef"


def rank(number: int = 0, world_size: int = 2, **changes: object) -> Rank:
    usual = {"ended": "running", "facts": process_facts(os.getpid()), "pid": os.getpid()}
    usual["cells"] = [Cell("MPI_Bcast", 8, [100] * 5)]
    usual["communicators"] = planted.communicators_of(0)[:1]
    return Rank(number, world_size, **{**usual, **changes})


def stub_text(ledger, *, host=None, pid=None, **changes: str) -> str:
    facts = {**process_facts(os.getpid()), **changes}
    where = (host or os.uname().nodename, facts["boot_id"], facts["pid_namespace"])
    words = [*where, pid or os.getpid(), facts["process_start"], ledger]
    return f"commprof-ledger-at {' '.join(map(str, words))}\n"


@pytest.fixture
def node(tmp_path):
    (tmp_path / "run").mkdir()
    folder = tmp_path / "node" / "commprof-0"
    folder.mkdir(parents=True)
    return folder


def ledger_of(node, number: int):
    return node / f"{HASH}-rank-{number}-18a0.ledger"


def plant(node, number: int, **of_stub: object) -> None:
    stub = node.parents[1] / "run" / f"rank-{number}.ledger"
    stub.write_text(stub_text(ledger_of(node, number), **of_stub))


def test_the_ledgers_that_stubs_name_are_read(report, tmp_path, node):
    for number in range(2):
        planted.write_ledger(ledger_of(node, number), rank(number))
        plant(node, number)
    answer = report("calls", tmp_path / "run", "--json")
    assert [(row["call"], row["count"]) for row in answer.rows] == [("MPI_Bcast", 10)]
    assert answer.err.splitlines() == [
        f"hvprof-report: {tmp_path}/run: ranks 0-1 are still running; shown up to now"
    ]


def refused(report, tmp_path) -> str:
    answer = report("summary", tmp_path / "run")
    assert answer.status == 1
    (line,) = answer.err.splitlines()
    assert line.startswith(f"hvprof-report: {tmp_path}/run/rank-0.ledger: names the ledger ")
    return line.partition(": names the ledger ")[2]


def test_a_ledger_on_another_host_is_named_with_its_host(report, tmp_path, node):
    plant(node, 0, host="node3", boot_id="of-node3")
    there = "read the run there, or copy the ledger from there to this file"
    assert refused(report, tmp_path) == f"{ledger_of(node, 0)} on host node3: {there}"
    copy = rank(world_size=1, facts={"boot_id": "of-node3"})
    planted.write_ledger(tmp_path / "run" / "rank-0.ledger", copy)
    said = "still running, or ended without MPI_Finalize: killed, or left by"
    assert said in report("summary", tmp_path / "run").err


def test_a_ledger_that_has_outlived_a_restart_is_read(report, tmp_path, node):
    planted.write_ledger(ledger_of(node, 0), rank(world_size=1, facts={"boot_id": "before"}))
    plant(node, 0, boot_id="before")
    assert [row["count"] for row in report("calls", tmp_path / "run", "--json").rows] == [5]


@pytest.mark.parametrize(
    "other", ("nothing", "a ledger of another process", "a ledger of another boot")
)
def test_a_ledger_that_was_removed_is_gone(report, tmp_path, node, other):
    with subprocess.Popen(["true"]) as ended:
        pid = ended.pid
    boot_id = process_facts(os.getpid())["boot_id"]
    left = {"process": (pid + 1, boot_id), "boot": (pid, "another")}.get(other.split()[-1])
    if left:
        process = {"pid": left[0], "facts": {"boot_id": left[1]}}
        planted.write_ledger(ledger_of(node, 0), rank(world_size=1, **process))
    plant(node, 0, pid=pid)
    said = "which is not on this host: nothing is left of this rank, unless its job had a "
    assert refused(report, tmp_path) == f"{ledger_of(node, 0)}, {said}{tmp_path}/node of its own"


@pytest.mark.parametrize("facts", ({}, {"pid_namespace": "pid:[1]"}))
def test_of_a_process_that_may_run_the_ledger_is_not_said_to_be_gone(report, tmp_path, node, facts):
    plant(node, 0, **facts)
    begins = f"the rank has just begun, or its job has a {tmp_path}/node of its own"
    assert refused(report, tmp_path) == f"{ledger_of(node, 0)}, which is not on this host: {begins}"


def test_a_ledger_of_another_user_is_said_to_be_there(report, tmp_path, node, monkeypatch):
    planted.write_ledger(ledger_of(node, 0), rank(world_size=1))
    plant(node, 0)

    regular_open = ledger.regular_open

    def refuse(path):
        if path == ledger_of(node, 0):
            raise PermissionError(13, "Permission denied", path)
        return regular_open(path)

    monkeypatch.setattr(ledger, "regular_open", refuse)
    said = f"{ledger_of(node, 0)}, which cannot be read: Permission denied"
    assert refused(report, tmp_path) == said


def test_a_rank_that_finalizes_while_the_folder_is_read_is_read_from_its_database(
    report, tmp_path, node, monkeypatch
):
    """The ledger is removed before its stub."""
    plant(node, 0)
    complain = ledger_format.not_here

    def finalize_and_complain(path, of_rank):
        planted.write_database(tmp_path / "run" / "rank-0.db", rank(world_size=1, ended="finalize"))
        return complain(path, of_rank)

    monkeypatch.setattr(ledger, "not_here", finalize_and_complain)
    answer = report("calls", tmp_path / "run", "--json")
    assert [row["count"] for row in answer.rows] == [5]
    assert answer.err == ""


@pytest.mark.parametrize(
    "text",
    (
        "commprof-ledger-at nowhere\n",
        "commprof-ledger-at " + "x" * 100_000,
        "commprof-ledger-at a b c 1 d e\n",
    ),
)
def test_a_damaged_stub_is_one_line(report, tmp_path, node, text):
    (tmp_path / "run" / "rank-0.ledger").write_text(text)
    assert len(report("summary", tmp_path / "run").err.splitlines()) == 1


def test_a_copy_says_on_which_host_the_ledger_is(report, tmp_path, node):
    other = {"boot_id": "another", "host": "node3", "ledger_file": str(ledger_of(node, 0))}
    what = {"facts": {**rank().facts, **other}, "copied_unix_ns": planted.START_UNIX_NS}
    planted.write_ledger(tmp_path / "run" / "rank-0.ledger", rank(world_size=1, **what))
    said = f"later calls are in {node} on host node3 alone, if that is still there\n"
    assert f"the time of the ledger's copy; {said}" in report("summary", tmp_path / "run").err

"""Ranks that share cores: said where masks or a quota show it, and nowhere else."""

from __future__ import annotations

import re

import pytest
from commprof_report.run.crowding import cores_of, crowding, sentence
from commprof_report.run.run import run_open
from planted import SECOND, WORLD, Cell, Communicator, Rank, write_databases
from planted_job import HostClock, Job

HOST = {"host": "x", "boot_id": "b"}
NUMBERS = tuple(
    "cpu_user_ns cpu_system_ns voluntary_switches involuntary_switches since_start_ns".split()
)


def facts_of(
    affinity: str | None, begin: tuple = (), last: tuple = (), **more: str
) -> dict[str, str]:
    known = {"begin.affinity": affinity, "last.affinity": affinity} if affinity else {}
    read = {
        f"{reading}.{key}": str(value)
        for reading, values in (("begin", begin), ("last", last))
        for key, value in zip(NUMBERS, values)
    }
    return {**HOST, **known, **read, **more}


def ranks_with(facts: list[dict[str, str]]) -> list[Rank]:
    """Rank 0 waits for the others in an Allreduce."""
    size = len(facts)
    return [
        Rank(
            rank,
            size,
            facts=own,
            communicators=[
                Communicator(WORLD, 7, f"0-{size - 1}", size, rank, name="MPI_COMM_WORLD")
            ],
            cells=[Cell("MPI_Allreduce", 8, [SECOND // (rank + 1)] * 30)],
        )
        for rank, own in enumerate(facts)
    ]


def crowded(tmp_path, facts: list[dict[str, str]]) -> list:
    return crowding(run_open(write_databases(tmp_path / "run", ranks_with(facts))).connection)


def by_masks(tmp_path, *masks: str | None) -> list:
    return crowded(tmp_path, [facts_of(mask) for mask in masks])


READ = {"begin": (5, 5, 10, 100, 1_000), "last": (SECOND, 0, 20, 5_879, SECOND + 1_000)}


def test_four_ranks_on_two_cores_are_crowded(tmp_path):
    (found,) = crowded(tmp_path, [facts_of("0-1", **READ)] * 4)
    assert (found.host, found.ranks, found.cores, found.is_quota) == ("x", [0, 1, 2, 3], 2, False)
    assert (
        sentence([found])
        == "4 ranks share 2 cores on host x: part of the time in MPI here is scheduling"
    )


@pytest.mark.parametrize(
    "masks",
    [
        ("0", "1"),
        ("0-1", "0-1"),
        ("0", "0-1"),
        ("0-3", "0-3", "4"),
        ("0-1", "0-1", "2-3", "2-3"),
        ("0-7",) * 8,
    ],
    ids=" ".join,
)
def test_as_many_cores_as_ranks_are_enough(tmp_path, masks):
    assert by_masks(tmp_path, *masks) == []


@pytest.mark.parametrize(
    "masks, ranks, cores",
    [
        (("0", "0"), [0, 1], 1),
        (("3", "3", "0-2"), [0, 1], 1),  # three cores more help nobody who is bound to the fourth
        (("0", "0", "1", "1"), [0, 1, 2, 3], 2),
        (("0", "0", "0-1"), [0, 1, 2], 2),
        (("0-1", "1-2", "0-2", "0-2"), [0, 1, 2, 3], 3),
        (("0", "0", "0-7"), [0, 1], 1),
        (("0", "0", "0", "0-2", "0,3-4"), [0, 1, 2, 3], 3),  # all five have five cores
    ],
    ids=str,
)
def test_ranks_with_fewer_cores_than_they_are_share_them(tmp_path, masks, ranks, cores):
    (found,) = by_masks(tmp_path, *masks)
    assert (found.ranks, found.cores) == (ranks, cores)


def test_ranks_of_other_hosts_have_cores_of_their_own(tmp_path):
    assert crowded(tmp_path, [facts_of("0"), facts_of("0", host="y", boot_id="c")]) == []


def test_containers_of_one_kernel_share_its_cores(tmp_path):
    (found,) = crowded(tmp_path, [facts_of("0"), facts_of("0", host="y")])
    assert found.host == "x, y"


QUOTA = {"cpu_quota_cores": "1.5", "cpu_quota_cgroup": "/job"}


def test_a_quota_below_the_ranks_crowds_them(tmp_path):
    (found,) = crowded(tmp_path, [facts_of("0-7", **QUOTA)] * 2)
    assert (
        sentence([found])
        == "2 ranks share 1.5 cores by cgroup quota on host x: part of the time in MPI here is "
        "scheduling"
    )


def test_without_masks_nobody_knows(tmp_path):
    assert by_masks(tmp_path, None, None) == []


@pytest.mark.parametrize("text", ["", "x", "0-", "9-1", "0-99999999999", "1,,2", "-1"])
def test_a_mask_that_makes_no_sense_is_unknown(text):
    assert cores_of(text) == 0


def test_summary_late_and_steps_say_it_first(report, tmp_path):
    folder = write_databases(tmp_path / "run", ranks_with([facts_of("0", **READ)] * 2))
    line = (
        "Crowded         2 ranks share 1 core on host x: part of the time in MPI here is scheduling"
    )
    assert " ".join(line.split()) in " ".join(report("summary", folder).out.split())
    assert report("late", folder).out.partition("\n\n")[2].startswith(line)
    assert report("steps", folder).out.startswith(line)
    (row,) = report("summary", folder, "--json").rows
    assert row["crowded_ranks"] == "0-1"
    assert row["involuntary_switches"] == 11_558
    assert row["crowding"] in line


def test_where_ranks_share_cores_transfer_may_be_scheduling(report, tmp_path):
    def verdict(*cores: str) -> str:
        job = Job([HostClock()] * 2, wall_ns=SECOND)
        for step in range(40):
            job.collective("MPI_Allreduce", [step * 20_000_000] * 2, [5_000_000] * 2)
        for rank, own in enumerate(cores):
            job.add("fact", world_rank=rank, key="begin.affinity", value=own)
        return report("late", job.write(tmp_path / "run.db")).out

    assert verdict("0", "0").startswith("Ranks 0-1 share cores. Give each rank its own first: ")
    assert "schedul" not in verdict("0", "1")


def test_advice_gives_ranks_cores_before_it_blames_one(report, tmp_path):
    def advice(*facts: dict[str, str]) -> dict:
        """Rank 1 is late to all of 40 collectives."""
        job = Job([HostClock()] * 2, wall_ns=SECOND)
        for step in range(40):
            job.collective(
                "MPI_Allreduce", [step * 20_000_000, step * 20_000_000 + 5_000_000], [1_000] * 2
            )
        for rank, own in enumerate(facts):
            for key, value in own.items():
                if key not in HOST:
                    job.add("fact", world_rank=rank, key=key, value=value)
        (row,) = [
            row
            for row in report("advise", job.write(tmp_path / "run.db"), "--json").rows
            if row["rule"] == "imbalance"
        ]
        return row

    blamed = advice(*[facts_of("0", **READ)] * 2)
    assert (blamed["found"], blamed["certainty"]) == (0, "")
    assert blamed["evidence"].endswith("these times may be the scheduler's")
    blamed = advice(facts_of("0", **READ), facts_of("1", **READ))
    assert (blamed["title"], blamed["certainty"]) == ("rank 1 is waited for", "likely")


def test_where_ranks_lack_cores_no_command_names_one(report, tmp_path):
    """Rank 1 is late to all of 40 collectives: by its work, or because rank 0 had the core."""
    job = Job([HostClock()] * 2, wall_ns=SECOND)
    for step in range(40):
        begin_ns = step * 20_000_000
        job.collective("MPI_Allreduce", [begin_ns, begin_ns + 5_000_000], [1_000] * 2)
    for rank in range(2):
        job.add("fact", world_rank=rank, key="begin.affinity", value="0")
    folder = job.write(tmp_path / "run.db")
    (row,) = report("late", folder, "--by", "run", "--json").rows
    assert (row["verdict"], row["late_ranks"]) == ("cores", None)
    for command in ("summary", "late", "steps", "advise"):
        said = report(command, folder).out
        assert "Give each rank its own first" in said
        assert not re.search(r"rank 1 (is|causes|in \d)|Certainty", said, re.IGNORECASE), said
    advice = report("advise", folder, "--json").rows
    assert [row["rule"] for row in advice if row["found"]] == ["cores"]


def test_a_healthy_run_says_nothing_of_cores(report, tmp_path):
    folder = write_databases(
        tmp_path / "run", ranks_with([facts_of("0", **READ), facts_of("1", **READ)])
    )
    assert (
        "Crowded"
        not in report("summary", folder).out
        + report("late", folder).out
        + report("steps", folder).out
    )
    (row,) = report("summary", folder, "--json").rows
    assert (row["crowding"], row["crowded_ranks"]) == (None, "")


def test_impossible_readings_do_no_harm(report, tmp_path):
    impossible = {
        "begin": ("x",) * 5,
        "last": ("9223372036854775807",) * 5,
        "cpu_quota_cores": "nan",
        "cpu_quota_cgroup": "",
    }
    folder = write_databases(tmp_path / "run", ranks_with([facts_of("0", **impossible)] * 2))
    assert "Crowded" in report("summary", folder).out
    assert report("ranks", "--per-rank", folder, "--json").status == 0

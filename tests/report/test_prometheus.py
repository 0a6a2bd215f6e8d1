"""`export --format prometheus` against the rules of the text exposition format, and against the
planted numbers.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import os
import re
import sqlite3
from typing import NamedTuple

import planted
import pytest
from commprof_report.base.units import visible
from planted import SECOND, START_UNIX_NS, Doing, process_facts
from planted_job import HostClock, Job

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^\\"\n]|\\[\\"n])*)"'
SAMPLE = re.compile(rf"({NAME})\{{({LABEL}(?:,{LABEL})*)\}} (\S+)")
KINDS = ("counter", "gauge")


class Series(NamedTuple):
    name: str
    labels: frozenset[tuple[str, str]]


def parse(text: str) -> dict[Series, float]:
    """Refuses whatever the format does not allow."""
    assert text.endswith("\n")
    found: dict[Series, float] = {}
    described: list[str] = []
    name = kind = ""
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, kind = line.split(" ", 3)[2], ""
            assert re.fullmatch(NAME, name) and name not in described, line
            described.append(name)
        elif line.startswith("# TYPE "):
            _, _, same, kind = line.split(" ")
            assert same == name and kind in KINDS, line
            assert (kind == "counter") == name.endswith("_total"), line
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample and kind, line
            assert sample[1] == name, line
            labels = [(key, unescaped(value)) for key, value in re.findall(LABEL, sample[2])]
            series = Series(sample[1], frozenset(labels))
            assert len(dict(labels)) == len(labels) and series not in found, line
            found[series] = float(sample.groups()[-1])
    return found


def unescaped(value: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], value)


def series(name: str, **labels: object) -> Series:
    return Series(
        name,
        frozenset({"run": "job-1", **{key: str(value) for key, value in labels.items()}}.items()),
    )


def prometheus(report, path, *words: object) -> dict[Series, float]:
    return parse(report("export", "--format", "prometheus", path, *words).out)


def test_gauges_say_what_ranks_are_in_and_whether_they_run(report, tmp_path, monkeypatch):
    monkeypatch.setattr("time.clock_gettime_ns", lambda _: planted.START_NS + 42 * SECOND)
    ranks = planted.training_run()
    for rank in ranks[:3]:
        rank.ended, rank.pid = "running", os.getpid()
        rank.facts.update(process_facts(os.getpid()))
        rank.doing = {
            0: Doing("MPI_Recv", 40 * SECOND, rank.world_rank != 1, bytes=8, peer=3, tag=1)
        }
    ranks[2].facts["boot_id"] = "another"
    found = prometheus(report, planted.write_ledgers(tmp_path / "run", ranks))
    inside = {key: value for key, value in found.items() if key.name == "commprof_in_call_seconds"}
    assert (
        inside[
            series(
                "commprof_in_call_seconds", rank=0, call="MPI_Recv", communicator="MPI_COMM_WORLD"
            )
        ]
        == 2.0
    )
    assert {dict(key.labels)["rank"] for key in inside} == {"0", "2"}
    up = {
        dict(key.labels)["rank"]: value for key, value in found.items() if key.name == "commprof_up"
    }
    assert up == {"0": 1, "1": 1, "3": 0}
    assert (
        found[series("commprof_rank_info", rank=2, host="node01", state="running or killed")] == 1
    )
    assert (
        found[series("commprof_wall_seconds", rank=0)]
        == found[series("commprof_counted_seconds", rank=0)]
        == 42
    )
    assert found[series("commprof_last_sign_timestamp_seconds", rank=3)] == START_UNIX_NS / 1e9 + 10


def test_waiting_is_that_of_late_with_its_causes_and_coverage(report, tmp_path):
    """Rank 1 is 5 ms late to each of 40 collectives of 1 ms."""
    job = Job([HostClock()] * 3, wall_ns=SECOND)
    for begin_ns in range(0, 800_000_000, 20_000_000):
        job.collective("MPI_Allreduce", [begin_ns, begin_ns + 5_000_000, begin_ns], [1_000_000] * 3)
    # from whom nothing is known: of 320 ms in the calls of all ranks 70 ms more
    job.receive(0, 1, 900_000_000, 970_000_000)
    found = prometheus(report, job.write(tmp_path / "run.db"))
    assert [
        found[series("commprof_wait_seconds", rank=rank)] for rank in range(3)
    ] == pytest.approx([0.2, 0, 0.2])
    assert [
        found[series("commprof_caused_wait_seconds", rank=rank)] for rank in range(3)
    ] == pytest.approx([0, 0.4, 0])
    assert found[series("commprof_unknown_cause_wait_seconds")] == 0
    assert found[series("commprof_wait_coverage_ratio")] == pytest.approx(520 / 590)


def test_names_from_files_stay_within_their_labels(report, run_folder):
    evil = 'a"} 1\n# TYPE \\ up\x1b[2J'
    connection = sqlite3.connect(run_folder / "rank-0.db")
    connection.execute(
        "UPDATE communicator SET name = ? WHERE communicator = ?", (evil, planted.WORLD)
    )
    connection.commit()
    connection.close()
    found = prometheus(report, run_folder)
    assert (
        found[
            series("commprof_calls_total", rank=0, call="MPI_Allreduce", communicator=visible(evil))
        ]
        == 160
    )


def test_the_file_is_replaced_as_a_whole_and_readable_by_others(report, run_folder, tmp_path):
    output = tmp_path / "commprof.prom"
    output.write_text("old")
    umask = os.umask(0o022)
    try:
        answer = report("export", "--format", "prometheus", "--output", output, run_folder)
    finally:
        os.umask(umask)
    assert (answer.status, answer.out) == (0, "")
    assert parse(output.read_text()) == prometheus(report, run_folder)
    assert output.stat().st_mode & 0o777 == 0o644
    assert sorted(path.name for path in tmp_path.iterdir()) == ["commprof.prom", "run"]


@pytest.mark.slow
@pytest.mark.parametrize("command", ("export", "merge", "html"))
def test_a_link_laid_where_the_file_is_prepared_is_not_followed(
    report, run_folder, tmp_path, command
):
    (tmp_path / "thesis").write_text("ten years of work")
    output = tmp_path / "out"
    os.symlink(tmp_path / "thesis", tmp_path / f"out.{os.getpid()}.tmp")
    words = {
        "export": ("export", "--format", "prometheus", "--output", output, run_folder),
        "merge": ("merge", run_folder, output),
        "html": ("html", "--output", output, run_folder),
    }
    assert report(*words[command]).status == 0
    assert (tmp_path / "thesis").read_text() == "ten years of work"
    assert output.exists() and not output.is_symlink()


def test_prometheus_own_parser_takes_it(report, run_folder):
    parser = pytest.importorskip("prometheus_client.parser")
    text = report("export", "--format", "prometheus", run_folder).out
    samples = [
        sample
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    ]
    assert {
        Series(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples
    } == parse(text)

"""Communicators of whose collectives the log kept nothing: every report from samples names them."""

from __future__ import annotations


import planted
import pytest

SAID = "2 of 3 communicators, 0.12 % of the time in collectives: Comm_split {0-1}, Comm_split {2-3}"
COMMANDS = ("summary", "late", "steps", "advise", "html", "export --format perfetto")


def training_run(without: int | None = None) -> list[planted.Rank]:
    """without: a communicator of each rank, none of whose calls are sampled."""
    ranks = planted.training_run()
    for rank in ranks:
        rank.samples = [
            sample
            for sample in rank.samples
            if without is None or sample.communicator != rank.communicators[without].communicator
        ]
    return ranks


HALVES = 2  # the communicator that is a half of the ranks


@pytest.fixture
def said(report, tmp_path):
    """Output of a command on a run, without line breaks."""

    def ask(command: str, ranks: list[planted.Rank]) -> str:
        folder = planted.write_databases(tmp_path / "run", ranks)
        words = command.split()
        if words[0] == "html":
            assert report("html", folder, "--output", tmp_path / "page.html").status == 0
            return (tmp_path / "page.html").read_text()
        answer = report(words[0], folder, *words[1:])
        assert answer.status == 0
        return " ".join((answer.out + answer.err).split())

    return ask


@pytest.mark.parametrize("command", COMMANDS)
def test_communicators_without_samples_are_named(said, command):
    assert SAID in said(command, training_run(HALVES))


NO_LOG = (
    "no single call was sampled: COMMPROF_SAMPLES=0, the default of COMMPROF_PROFILE=site; "
    "commprof-run --samples 4M samples them"
)


def run_without_a_log(**settings: str) -> list[planted.Rank]:
    ranks = planted.training_run()
    for rank in ranks:
        rank.samples = []
        rank.facts.update({f"settings.COMMPROF_{name}": value for name, value in settings.items()})
    return ranks


@pytest.mark.parametrize("command", ("summary", "late", "steps", "advise", "html"))
def test_a_job_that_keeps_no_log_has_it_said_with_the_way_to_one(said, command):
    text = said(command, run_without_a_log(SAMPLES="0", PROFILE="site"))
    assert NO_LOG in text and "No samples" not in text and "can mark its steps" not in text


def test_a_log_that_a_user_has_switched_off_is_not_the_sites_doing(said):
    assert "was sampled: COMMPROF_SAMPLES=0; commprof-run" in said(
        "late", run_without_a_log(SAMPLES="0", PROFILE="full")
    )


def test_where_the_settings_are_not_known_the_reason_is_not_either(said):
    assert "not known: single calls are not sampled on all ranks (COMMPROF_SAMPLES)" in said(
        "late", run_without_a_log()
    )

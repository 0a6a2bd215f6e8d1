"""The filters, and the labels that communicators go by."""

from __future__ import annotations

import pytest


def test_a_size_that_no_call_has_is_refused_with_the_nearest_one(report, run_folder):
    answer = report("sizes", run_folder, "--bytes", "77")
    assert answer.status == 2 and "the nearest is 0 B" in answer.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ["--call", "Alreduce"],
            "--call Alreduce: this run made no such call; it made: MPI_Allgather, ",
        ),
        (
            ["--communicator", "c3"],
            "--communicator c3: this run has no such communicator; it has: ",
        ),
        (["--rank", "7"], "--rank: the run has ranks 0-3"),
        (["--rank", "a"], "argument --rank: a: ranks are a list like 0,3-5,8-16:2"),
        (["--bytes", "4X"], "argument --bytes: 4X: a size is a number"),
        (["--bytes", "4K:2K"], "4K is more than 2K"),
        (["--plot", "x.gif"], "x.gif: the name of a picture ends in .png, .svg, .pdf"),
        (["--bins", "odd"], "invalid choice: 'odd'"),
        (["--frobnicate"], "hvprof-report: sizes: unrecognized arguments: --frobnicate"),
    ],
)
def test_a_wrong_option_is_one_line_and_status_2(report, run_folder, words, complaint):
    answer = report("sizes", run_folder, *words)
    assert (answer.status, answer.out) == (2, "")
    assert complaint in answer.err
    assert answer.err.startswith("hvprof-report: ") and answer.err.count("\n") == 1

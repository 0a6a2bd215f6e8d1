"""What the documentation promises: every key, every column, every command and option has its place in it."""

from __future__ import annotations

import argparse
import re
import shutil
import sqlite3
import subprocess

import pytest
from commprof_report import gpu, gpu_steps, late, questions, stuck
from commprof_report.advice import Advice
from commprof_report.commands import COMMANDS
from commprof_report.digest import SummaryRow
from commprof_report.main import parser_build
from commprof_report.stages import StageRow
from commprof_report.step_costs import StepCallRow, StepRow
from commprof_report.steps_digest import StepsRow
from planted import ROOT, SCHEMA

TEXT = (ROOT / "docs" / "SCHEMA.md").read_text()
ANSWERS = {
    "summary": SummaryRow,
    "calls": questions.CallRow,
    "sizes": questions.SizeRow,
    "latency": questions.LatencyRow,
    "hvprof": questions.HvprofRow,
    "communicators": questions.CommunicatorRow,
    "regions": questions.RegionRow,
    "ranks": questions.RankCallRow,
    "ranks --per-rank": questions.RankRow,
    "late --by rank": questions.LateRankRow,
    "late --by host": late.LateHostRow,
    "late --by call": questions.LateCallRow,
    "late --by run": late.LateRow,
    "peers": questions.PeerRow,
    "pipeline": StageRow,
    "advise": Advice,
    "traffic": questions.TrafficRow,
    "steps": StepsRow,
    "steps --per-step": StepRow,
    "steps --per-call": StepCallRow,
    "gpu --by device": gpu.GpuDeviceRow,
    "gpu --by run": gpu.GpuRow,
    "gpu --by run, steps": gpu_steps.StepTimes,
    "gpu --by run, cost": gpu_steps.TracingCost,
    "gpu --by kernel": gpu.GpuKernelRow,
    "gpu --by copy": gpu.GpuCopyRow,
    "gpu --by stream": gpu.GpuStreamRow,
    "gpu --by step": gpu_steps.GpuStepRow,
    "gpu --by window": gpu.WindowRow,
    "stuck mismatch": questions.MismatchRow,
    "stuck awaited": stuck.Awaited,
    "stuck wait": stuck.Wait,
    "stuck position": stuck.Position,
}


def section(title: str) -> str:
    return re.search(rf"^### {title}\b.*?(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)[0]


@pytest.mark.parametrize("answer", ANSWERS)
def test_every_key_of_every_answer_is_defined(answer):
    defined = section(answer.split()[0])
    assert [key for key in ANSWERS[answer]._fields if f"`{key}`" not in defined] == []


def test_every_column_of_the_schema_is_defined():
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA.read_text())
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        title = {"bucket_bound": "bucket"}.get(table, table)
        assert [column for column in columns if f"`{column}`" not in section(title)] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_has_its_manual(command):
    page = (ROOT / "docs" / "man" / f"hvprof-report-{command}.1").read_text()
    (subparsers,) = [action for action in parser_build()._actions if isinstance(action, argparse._SubParsersAction)]
    actions = subparsers.choices[command]._actions
    options = {option for action in actions for option in action.option_strings if option.startswith("--")}
    refused = {"--bytes", "--communicator", "--region"} if command == "peers" else set()
    assert [option for option in options - refused - {"--help"} if f"Fl -{option[2:]}" not in page] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "man").glob("hvprof-report*.1")), ids=lambda page: page.name)
def test_every_manual_page_is_sound(page):
    if not shutil.which("mandoc"):
        pytest.skip("no mandoc")
    done = subprocess.run(["mandoc", "-Tlint", "-W", "warning", page], capture_output=True, text=True)
    assert done.stdout == ""

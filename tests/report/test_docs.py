"""What the documentation promises: every key and every column has its place in it."""

from __future__ import annotations

import re
import sqlite3

import pytest
from commprof_report.advice.advice import Advice
from commprof_report.calls.calls import CallRow
from commprof_report.calls.hvprof import HvprofRow
from commprof_report.calls.latency import LatencyRow
from commprof_report.calls.peers import PeerRow
from commprof_report.calls.ranks import RankCallRow, RankRow
from commprof_report.calls.regions import RegionRow
from commprof_report.calls.sizes import SizeRow
from commprof_report.calls.traffic import TrafficRow
from commprof_report.late.late_ranks import LateCallRow, LateRankRow
from commprof_report.roles.communicators import CommunicatorRow
from commprof_report.stuck.positions import MismatchRow
from commprof_report.compare import comparison
from commprof_report.gpu import gpu_activity
from commprof_report.late import late_ranks
from commprof_report.roles.pipelines import StageRow
from commprof_report.steps import gpu_steps
from commprof_report.steps.step_costs import StepCallRow, StepRow
from commprof_report.steps.steps_summary import StepsRow
from commprof_report.stuck import stuck
from commprof_report.summary.run_summary import SummaryRow
from planted import ROOT, SCHEMA

TEXT = (ROOT / "docs" / "SCHEMA.md").read_text()
ANSWERS = {
    "summary": SummaryRow,
    "calls": CallRow,
    "sizes": SizeRow,
    "latency": LatencyRow,
    "hvprof": HvprofRow,
    "communicators": CommunicatorRow,
    "regions": RegionRow,
    "ranks": RankCallRow,
    "ranks --per-rank": RankRow,
    "late --by rank": LateRankRow,
    "late --by host": late_ranks.LateHostRow,
    "late --by call": LateCallRow,
    "late --by run": late_ranks.LateRow,
    "peers": PeerRow,
    "pipeline": StageRow,
    "advise": Advice,
    "compare --by verdict": comparison.VerdictRow,
    "compare --by figure": comparison.FigureRow,
    "compare --by row": comparison.ComparedRow,
    "compare --by size": comparison.SizeRow,
    "compare --by run": comparison.RunRow,
    "traffic": TrafficRow,
    "steps": StepsRow,
    "steps --per-step": StepRow,
    "steps --per-call": StepCallRow,
    "gpu --by device": gpu_activity.GpuDeviceRow,
    "gpu --by run": gpu_activity.GpuRow,
    "gpu --by run, steps": gpu_steps.StepTimes,
    "gpu --by run, cost": gpu_steps.TracingCost,
    "gpu --by kernel": gpu_activity.GpuKernelRow,
    "gpu --by copy": gpu_activity.GpuCopyRow,
    "gpu --by stream": gpu_activity.GpuStreamRow,
    "gpu --by step": gpu_steps.GpuStepRow,
    "gpu --by window": gpu_activity.WindowRow,
    "stuck mismatch": MismatchRow,
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

"""Prints docs/SCHEMA.md with its tables of columns as the reporter says them (base/__init__.py).

python3 docs/columns.py >SCHEMA.md    (from the top folder, with report/ in PYTHONPATH)"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from commprof_report.advice.advice import ADVICE
from commprof_report.base import Field
from commprof_report.calls.parts import PEER, RANK, REGION
from commprof_report.calls.by_size import HVPROF, LATENCY
from commprof_report.calls.views import CALL, OF_TRAFFIC, RANK_CALL, SIZE
from commprof_report.compare import judge as compare
from commprof_report.fleet.questions import FIELDS
from commprof_report.gpu.gpu_activity import (
    ALGORITHM,
    COPY,
    DEVICE,
    KERNEL,
    RUN,
    STREAM,
    WINDOW,
)
from commprof_report.gpu.sensors import SENSOR
from commprof_report.late import sums as late
from commprof_report.late.columns import LATE
from commprof_report.roles.roles import COMMUNICATOR
from commprof_report.roles.pipelines import STAGE
from commprof_report.run.unseen import SEEN
from commprof_report.steps.columns import STEP as OF_STEP, STEPS
from commprof_report.steps.long_steps import PATH
from commprof_report.steps.gpu_steps import STEP, TIMES, TRACING
from commprof_report.steps.step_costs import CALL as STEP_CALL

TABLES = {  # by the head of their first column
    "key of `summary --unseen`": SEEN,
    "key of `traffic`": OF_TRAFFIC,
    "key of `calls`": CALL,
    "key of `sizes`": SIZE,
    "key of `sizes --histogram`": LATENCY,
    "key of `hvprof`": HVPROF,
    "key of `regions`": REGION,
    "key of `ranks`": RANK_CALL,
    "key of `--per-rank`": RANK,
    "key of `peers`": PEER,
    "key of `communicators`": COMMUNICATOR,
    "key of `pipeline`": STAGE,
    "key of `advise`": ADVICE,
    "key of `compare --by verdict`": compare.VERDICT,
    "key of `compare --by figure` and `--by row`": compare.COMPARED,
    "key of `compare --by size`": compare.SIZE,
    "key of `compare --by run`": compare.RUN,
    "key of `--by device`": DEVICE,
    "key of `--by run`": RUN,
    "key of `--by run`: its steps": (*TIMES, *TRACING),
    "key of `--by sensor`": SENSOR,
    "key of `--by kernel`": KERNEL,
    "key of `--by copy`": COPY,
    "key of `--by stream`": STREAM,
    "key of `--by step`": STEP,
    "key of `--by window`": WINDOW,
    "key of `--by algorithm`": ALGORITHM,
    "key of `steps`": STEPS,
    "key of `--per-step`": OF_STEP,
    "key of `--per-call`": STEP_CALL,
    "key of `--critical-path`": PATH,
    "key of `late --by run`": LATE,
    "key of `late --by rank`": late.RANK,
    "key of `late --by host`": late.HOST,
    "key of `late --by call`": late.CALL,
    "key of `late --by state`": late.STATE,
    "key of `late --by size`": late.SIZE,
    "key of `fleet`": FIELDS.values(),
}


def table_of_meanings(fields: Iterable[Field]) -> str:
    """A row for each meaning. Fields without one share that of the field before."""
    keys: dict[str, list[str]] = {}
    meaning = ""
    for field in fields:
        meaning = field.meaning or meaning
        keys.setdefault(meaning, []).append(f"`{field.key}`")
    return "".join(f"| {', '.join(own)} | {meaning} |\n" for meaning, own in keys.items())


def page(text: str) -> str:
    for head, fields in TABLES.items():
        begin = f"| {head} | meaning |\n|---|---|\n"
        table = begin + table_of_meanings(fields)
        text, found = re.subn(rf"{re.escape(begin)}(\|.*\n)*", lambda _: table, text)
        assert found == 1, f"docs/SCHEMA.md has {found} tables of {head}"
    return text


if __name__ == "__main__":
    known = Path(__file__).with_name("SCHEMA.md")
    sys.stdout.write(page(known.read_text(encoding="utf-8")))

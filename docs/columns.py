"""Prints docs/SCHEMA.md with the lists of keys as the reporter says them (base/core.py).

python3 docs/columns.py >SCHEMA.md    (from the top folder, with report/ in PYTHONPATH)"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from commprof_report.advice.advice import ADVICE
from commprof_report.base import AS_EVERYWHERE, Field
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
    SENSOR,
    STREAM,
    WINDOW,
)
from commprof_report.late import sums as late
from commprof_report.late.judgement import LATE
from commprof_report.roles.roles import COMMUNICATOR, STAGE
from commprof_report.run.unseen import SEEN
from commprof_report.steps.columns import STEP as OF_STEP, STEPS
from commprof_report.steps.long_steps import PATH
from commprof_report.steps.gpu_steps import STEP, TIMES, TRACING
from commprof_report.steps.step_costs import CALL as STEP_CALL

LISTS = {  # by what is said before them
    "Keys of `summary --unseen`": SEEN,
    "Keys of `traffic`": OF_TRAFFIC,
    "Keys of `calls`": CALL,
    "Keys of `sizes`": SIZE,
    "Keys of `sizes --histogram`": LATENCY,
    "Keys of `hvprof`": HVPROF,
    "Keys of `regions`": REGION,
    "Keys of `ranks`": RANK_CALL,
    "Keys of `--per-rank`": RANK,
    "Keys of `peers`": PEER,
    "Keys of `communicators`": COMMUNICATOR,
    "Keys of `pipeline`": STAGE,
    "Keys of `advise`": ADVICE,
    "Keys of `compare --by verdict`": compare.VERDICT,
    "Keys of `compare --by figure` and `--by row`": compare.COMPARED,
    "Keys of `compare --by size`": compare.SIZE,
    "Keys of `compare --by run`": compare.RUN,
    "Keys of `--by device`": DEVICE,
    "Keys of `--by run`": RUN,
    "Keys of `--by run`, steps": (*TIMES, *TRACING),
    "Keys of `--by sensor`": SENSOR,
    "Keys of `--by kernel`": KERNEL,
    "Keys of `--by copy`": COPY,
    "Keys of `--by stream`": STREAM,
    "Keys of `--by step`": STEP,
    "Keys of `--by window`": WINDOW,
    "Keys of `--by algorithm`": ALGORITHM,
    "Keys of `steps`": STEPS,
    "Keys of `--per-step`": OF_STEP,
    "Keys of `--per-call`": STEP_CALL,
    "Keys of `--critical-path`": PATH,
    "Keys of `late --by run`": LATE,
    "Keys of `late --by rank`": late.RANK,
    "Keys of `late --by host`": late.HOST,
    "Keys of `late --by call`": late.CALL,
    "Keys of `late --by state`": late.STATE,
    "Keys of `late --by size`": late.SIZE,
    "Keys of `fleet`": FIELDS.values(),
}


def meanings(fields: Iterable[Field]) -> dict[str, list[str]]:
    """The keys with each meaning. Fields without one share that of the field before."""
    keys: dict[str, list[str]] = {}
    meaning = ""
    for field in fields:
        meaning = field.meaning or meaning
        keys.setdefault(meaning, []).append(f"`{field.key}`")
    return keys


def list_of_meanings(fields: Iterable[Field]) -> str:
    """Without the keys that mean the same everywhere, which are defined once, by hand."""
    keys = meanings(fields)
    keys.pop(AS_EVERYWHERE, None)
    return "".join(f"- {', '.join(own)}: {meaning}\n" for meaning, own in keys.items())


def page(text: str) -> str:
    for head, fields in LISTS.items():
        begin = f"{head}:\n\n"
        own = begin + list_of_meanings(fields)
        text, found = re.subn(rf"^{re.escape(begin)}(- .*\n)*", lambda _: own, text, flags=re.M)
        assert found == 1, f"docs/SCHEMA.md has {found} lists: {head}"
    return text


if __name__ == "__main__":
    known = Path(__file__).with_name("SCHEMA.md")
    sys.stdout.write(page(known.read_text(encoding="utf-8")))

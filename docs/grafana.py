"""Prints docs/grafana-fleet.json, a dashboard of Grafana over the tables that `hvprof-report fleet
load` has written into PostgreSQL: a panel for each question that needs no test, with its SQL file.

python3 docs/grafana.py >docs/grafana-fleet.json    (with report/ in PYTHONPATH)"""

from __future__ import annotations

import json
from typing import Any

from commprof_report.base.query import text
from commprof_report.fleet.questions import QUESTIONS, fields

PANELS = {  # by question; rows in Grafana's grid of 24 columns
    "trend": {"type": "barchart", "options": {"xField": "month"}},
    "top": {"type": "table"},
    "programs": {"type": "table"},
    "sizes": {"type": "table"},
    "libraries": {"type": "table"},
}
UNITS = {"share": "percentunit", "hours": "h", "bytes": "bytes", "ns": "ns"}  # by end of a key
SOURCE = {"type": "grafana-postgresql-datasource", "uid": "${source}"}
CALLS = "SELECT DISTINCT call FROM size_rows WHERE measure = 'call' ORDER BY call"
HEIGHT = 9


def query(question: str) -> str:
    """PostgreSQL's; the call that is asked for is a variable of the dashboard."""
    asked = "WITH asked AS (SELECT ${call:sqlstring} AS wanted_call)"
    return text(f"fleet/{question}").rstrip(";\n").replace("WITH", f"{asked},", 1)


def panel(place: int, question: str) -> dict[str, Any]:
    """On half of the width."""
    return {
        "id": place + 1,
        "title": QUESTIONS[question].title,
        **PANELS[question],
        "description": QUESTIONS[question].note.format(call="$call"),
        "datasource": SOURCE,
        "gridPos": {"h": HEIGHT, "w": 12, "x": 12 * (place % 2), "y": HEIGHT * (place // 2)},
        "targets": [
            {
                "refId": "A",
                "datasource": SOURCE,
                "format": "table",
                "rawQuery": True,
                "rawSql": query(question),
            }
        ],
        "fieldConfig": {
            "defaults": {},
            "overrides": [
                *(
                    {
                        "matcher": {"id": "byRegexp", "options": f".*_{end}"},
                        "properties": [{"id": "unit", "value": unit}],
                    }
                    for end, unit in UNITS.items()
                ),
                *(
                    {
                        "matcher": {"id": "byName", "options": field.key},
                        "properties": [{"id": "displayName", "value": field.head}],
                    }
                    for field in fields(question)
                    if field.head
                ),
            ],
        },
    }


def dashboard() -> dict[str, Any]:
    return {
        "uid": "commprof-fleet",
        "title": "commprof: all jobs",
        "tags": ["commprof", "MPI"],
        "schemaVersion": 39,
        "editable": True,
        "templating": {
            "list": [
                {"name": "source", "type": "datasource", "query": SOURCE["type"]},
                {
                    "name": "call",
                    "type": "query",
                    "datasource": SOURCE,
                    "query": CALLS,
                    "refresh": 1,
                    "current": {"text": "MPI_Allreduce", "value": "MPI_Allreduce"},
                },
            ]
        },
        "panels": [panel(place, question) for place, question in enumerate(PANELS)],
    }


if __name__ == "__main__":
    print(json.dumps(dashboard(), indent=1))

"""Versions of the schema. Databases of every version from release 0.1.0 on stay readable.

A version is written down as what it has added to the one before: the schema of an older version is
schema.sql without what was added later, and rows of older versions get the values given here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ..base.files import library_text

# By version and table: the columns that it has added, each with its value in older rows; None: the
# table itself. The columns that ranks_of_file.sql reads never change.
ADDED: dict[int, dict[str, dict[str, str] | None]] = {
    10: {
        "rank": {
            "dropped_messages": "0", "dropped_completions": "0", "interrupted_calls": "0",
            "window_mask": "0", "record_begin_ns": "NULL", "record_end_ns": "NULL",
            "record_asked_ns": "NULL", "record_is_full": "0",
        },
        "gpu_device": {
            "sms": "NULL", "communication_ns": "0", "communication_sm_ns": "0",
            "communication_most_sms": "0", "memory_bytes": "NULL",
        },
        "sample": {
            "object": "NULL", "object_sequence": "NULL", "polled_since_ns": "NULL",
            "polled_ns": "NULL", "offered": "NULL", "agreed": "NULL",
        },
        "signature": {"buffer_at": "NULL", "received_at": "NULL"},
        "sample_epoch": None,
        "gpu_reading": None,
        "cpu_time": None,
        "negotiation": None,
        "negotiated_place": None,
        "negotiated_step": None,
    },
}
# By version: the last bucket of histograms, of all longer durations, before it and from it on.
LAST_BUCKET = {10: (289, 345)}
NEWEST, OLDEST = max(ADDED), min(ADDED) - 1


@lru_cache
def schema_of(version: int) -> str:
    """The statements that create an empty database of a version. An added column has a line of
    schema.sql to itself."""
    schema = library_text("output/schema.sql")
    for newer in range(version + 1, NEWEST + 1):
        for table, columns in ADDED[newer].items():
            (created,) = re.findall(
                rf"^CREATE TABLE {table} \(.*?^\)[^;]*;$", schema, re.M | re.S
            )
            lines = rf"^ +({'|'.join(columns or ())}) .*\n"
            older = re.sub(lines, "", created, flags=re.M) if columns else ""
            schema = schema.replace(created, older)
        before, since = LAST_BUCKET.get(newer, (0, 0))
        schema = schema.replace(f"bucket <= {since})", f"bucket <= {before})")
    return schema.replace(f"user_version = {NEWEST};", f"user_version = {version};")


def values_of(version: int, table: str) -> Mapping[str, str] | None:
    """The columns of today's table that a version lacks, with their values in its rows; None: it
    lacks the table."""
    lacks: dict[str, str] = {}
    for newer in range(version + 1, NEWEST + 1):
        columns = ADDED[newer].get(table, {})
        if columns is None:
            return None
        lacks.update(columns)
        if newer in LAST_BUCKET and table in ("bucket", "gpu_bucket"):
            before, since = LAST_BUCKET[newer]
            lacks["bucket"] = f"CASE bucket WHEN {before} THEN {since} ELSE bucket END"
    return lacks

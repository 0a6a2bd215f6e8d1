"""Tables of a store: columns, and what their values are. A store has the schema that made it."""

from __future__ import annotations

SCHEMA = 1
_KEYS = {"run": "BIGINT", "part": "BIGINT"}  # of a job; of the file that holds its rows
TABLES = {  # the job last: what it stands for has been written then
    "setting": {**_KEYS, "name": "VARCHAR", "value": "VARCHAR"},
    "bucket": {
        **_KEYS, "call": "VARCHAR", "role": "VARCHAR", "high_bytes": "BIGINT",
        "measure": "VARCHAR", "low_ns": "BIGINT", "high_ns": "BIGINT", "calls": "BIGINT",
    },
    "host": {
        **_KEYS, "host": "VARCHAR", "place": "BIGINT", "ranks": "BIGINT", "wall_ns": "BIGINT",
        "sync_ns": "BIGINT", "is_last": "BIGINT", "behind_ns": "BIGINT",
    },
    "row": {
        **_KEYS, "call": "VARCHAR", "family": "VARCHAR", "role": "VARCHAR",
        "high_bytes": "BIGINT", "measure": "VARCHAR", "calls": "BIGINT", "volume_bytes": "BIGINT",
        "total_ns": "BIGINT", "max_ns": "BIGINT",
    },
    "job": {
        **_KEYS, "run_id": "VARCHAR", "start_s": "BIGINT", "day": "VARCHAR",
        "user_name": "VARCHAR", "program": "VARCHAR", "library": "VARCHAR", "hosts": "BIGINT",
        "ranks": "BIGINT", "ranks_read": "BIGINT", "ended": "VARCHAR", "wall_ns": "BIGINT",
        "rank_ns": "BIGINT", "in_mpi_ns": "BIGINT", "sync_ns": "BIGINT", "uneven_ns": "BIGINT",
    },
}
PARTITIONS = {"month": "VARCHAR", "cluster": "VARCHAR"}  # in the names of folders
NAMES = ("user", "program", "host", "library", "setting")  # what a store may leave out

"""Which rows a tuning file is searched for."""

from __future__ import annotations

from commprof_report.tune.rows import Row

EXAMPLES = {
    "tune.worth": lambda share: (
        "tuned" if Row("MPI_Allreduce", 8, 4, 1, share).is_worth else "left out"
    )
}

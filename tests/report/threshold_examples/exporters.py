"""Horovod's timelines and PyTorch's traces."""

from __future__ import annotations

from commprof_report.exporters.traces import Process, counts_from_1970

EXAMPLES = {
    "exporters.clock-step": lambda ns: (
        "said" if Process(0, 0, "", 0, 0, -ns, "").was_set else "silent"
    ),
    "exporters.earliest": lambda ns: "placed" if counts_from_1970(ns) else "refused",
}

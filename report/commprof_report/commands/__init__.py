"""The commands, in the order in which help shows them. A command has a docstring, add_arguments and
run."""

from __future__ import annotations

from . import (
    advise, calls, communicators, compare, export, gpu, html, hvprof, late, latency, merge, peers,
    pipeline, ranks, regions, replay, seen, sizes, steps, stuck, summary, top, traffic,
)

COMMANDS = {
    "summary": summary, "seen": seen, "steps": steps, "late": late, "advise": advise,
    "compare": compare, "traffic": traffic, "calls": calls, "sizes": sizes, "latency": latency,
    "hvprof": hvprof, "communicators": communicators, "ranks": ranks, "regions": regions,
    "gpu": gpu, "peers": peers, "pipeline": pipeline, "stuck": stuck, "top": top, "merge": merge,
    "export": export, "replay": replay, "html": html,
}

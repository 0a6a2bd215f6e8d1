"""The commands, in the order in which help shows them. A command has a docstring, add_arguments and run."""

from __future__ import annotations

from . import (
    advise,
    calls,
    communicators,
    export,
    html,
    hvprof,
    late,
    latency,
    merge,
    peers,
    pipeline,
    ranks,
    regions,
    sizes,
    stuck,
    summary,
    top,
)

COMMANDS = {
    "summary": summary,
    "calls": calls,
    "sizes": sizes,
    "latency": latency,
    "hvprof": hvprof,
    "communicators": communicators,
    "ranks": ranks,
    "late": late,
    "regions": regions,
    "peers": peers,
    "pipeline": pipeline,
    "advise": advise,
    "stuck": stuck,
    "top": top,
    "merge": merge,
    "export": export,
    "html": html,
}

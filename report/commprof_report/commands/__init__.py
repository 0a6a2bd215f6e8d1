"""The commands, in the order in which help shows them. Their questions are here, so that help
answers without importing any; all else is said where a command is made (COMMANDS of its module)."""

from __future__ import annotations

from collections import namedtuple
from importlib import import_module

QUESTIONS = {
    "summary": "The run on one screen: where communication time went.",
    "steps": "How the time of a training step is spent.",
    "late": "Who arrives last at collectives and messages, and what that costs.",
    "advise": "Messages that could be fused, overlapped or left out.",
    "compare": "Whether groups of runs differ, by how much, and how sure that is.",
    "traffic": "Bulk traffic and control traffic: what carries data, and what coordinates it.",
    "calls": "Time and volume of each call of MPI and NCCL.",
    "sizes": "Latency and bandwidth of each message size.",
    "hvprof": "The effect of fusion: messages of a step with it and without, calls and time per "
    "call.",
    "communicators": "The communicators of the run, their members and their traffic.",
    "ranks": "How evenly time is spread over the ranks.",
    "regions": "Time and volume by region, the parts that the program has named.",
    "gpu": "The time of the GPUs, and how much communication was exposed.",
    "peers": "Who sends how much point-to-point to whom.",
    "pipeline": "Stages of pipelines: who waits, and for which stage; masters and parameter "
    "servers.",
    "stuck": "Who waits for whom in a job that hangs or was killed.",
    "top": "A running job, refreshed until it ends.",
    "export": "All tables as JSON, CSV or one database, sums for Prometheus, or a timeline for "
    "Perfetto, with traces of PyTorch and Horovod.",
    "replay": "The job's communication as a kit, and how well replays of it stand for the job.",
    "tune": "Whether other algorithms of the MPI library are faster for the job, as a proven file.",
    "fleet": "All jobs of a centre: who communicates most, which nodes are late, what has changed.",
    "html": "One self-contained page with tables and pictures, of a run or of a comparison.",
}
MODULES = {  # of commands that share one
    "advise": "late",
    "top": "stuck",
    **dict.fromkeys(("calls", "sizes", "ranks", "traffic", "peers"), "counters"),
    **dict.fromkeys(("communicators", "regions", "pipeline"), "groups"),
}
ALIASES = {  # earlier names
    "latency": ("sizes", "--histogram"),
    "seen": ("summary", "--unseen"),
    "merge": ("export", "--format", "sqlite"),
}
SEPARATOR = " -- "  # of sides; argparse takes "--" for the end of options


# text: its help, after the question, as a docstring; examples: what they do, and the command line
Command = namedtuple("Command", "text options run examples see_also", defaults=[()])


def command_of(name: str) -> Command:
    """Its module is imported when a command of it is first asked for."""
    return import_module(f"{__name__}.{MODULES.get(name, name)}").COMMANDS[name]


def help_of(name: str) -> str:
    from inspect import cleandoc  # not at the top: only help needs it, and it is slow to import

    return f"{QUESTIONS[name]}\n\n{cleandoc(command_of(name).text or '')}"

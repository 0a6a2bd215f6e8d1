"""The job's communication as a kit, to be made again elsewhere by commprof-replay(1).

A kit has the calls, their sizes, datatypes, communicators and the times in between; no names, paths,
arguments, hosts and no data. It covers the longest time in which all calls of all ranks were sampled
(COMMPROF_SAMPLES=1000000 has room for more). What it lacks is listed.

- kit RUN -o FILE writes the kit of a run.
- show FILE says what is in a kit, after checking it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ..base import units
from ..base.aside import renamed_whole
from ..base.errors import UsageError
from ..replay import kit as kits
from . import common

EXAMPLES = (
    ("A kit, and the job's traffic again under another MPI library",
     "hvprof-report replay kit RUN -o job.kit && mpirun -n 4 commprof-run commprof-replay job.kit"),
)
SEE_ALSO = ("compare",)
ACTIONS = ("kit", "show")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=ACTIONS, help="what to do")
    common.add_run_argument(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="the kit to write (RUN.kit)"
    )


def run(arguments: argparse.Namespace) -> None:
    if arguments.action == "show":
        if len(arguments.run) != 1:
            raise UsageError("replay", "show takes one kit")
        kit, digest = kits.read(arguments.run[0])
        print_text(kit, digest)
        return
    run = common.open_noted(arguments, with_samples=True, most_samples=None)
    from ..replay.from_run import kit_of  # needs numpy, which `show` does not

    kit = kit_of(run)
    output = arguments.output or Path(f"{run.path.resolve().name}.kit")
    with renamed_whole(output, run.mode) as aside:
        digest = kits.write(kit, aside)
    common.print_line(f"{output}: {units.volume(output.stat().st_size)}")
    print_text(kit, digest)


def print_text(kit: kits.Kit, digest: str) -> None:
    made = kit.made
    total, left = sum(made.values()), sum(kit.left_out.values())
    print(f"Kit             {units.counted(total, 'call')} of {units.counted(kit.ranks, 'rank')} in "
          f"{units.duration(kit.window_ns)}; recorded under {units.visible(kit.library)}")
    print(f"SHA-256         {digest}")
    names = ", ".join(f"{name} {count:,}" for name, count in made.most_common())
    print(f"Calls           {names or 'none'}")
    share = units.share(total / (total + left)) if total + left else "none"
    print(f"Left out        {units.counted(left, 'call')}; the kit has {share} of the calls of that "
          "time")
    for (name, why), calls in kit.left_out.most_common():
        print(f"  {units.visible(name)} {calls:,}: {units.visible(why)}")

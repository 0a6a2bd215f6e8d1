"""commprof-experiment: runs the arms of an experiment in blocks, for hvprof-report compare."""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean

from . import __version__
from .base import (
    EXPECTED,
    ReportError,
    UsageError,
    as_report,
    checked,
    gathered,
    option,
    options_add,
    seconds,
    units,
    whole,
)
from .compare.comparison import compare
from .compare.refusals import binding, differences_text, layout
from .compare.figures import figures
from .compare.judge import Rules, fewest_pairs
from .compare.sides import Side
from .experiment.plan import (
    Arm,
    FAILED,
    OK,
    PLACEHOLDER,
    Plan,
    REMOVED,
    Run,
    WARM_UP,
    folder_of,
    is_replay,
    launch,
    program_find,
)
from .experiment import plan as plans
from .main import Parser
from .replay import kit as kits

PROGRAM = "commprof-experiment"


def arm(text: str) -> Arm:
    name, colon, command = text.partition(":")
    if not colon or not plans.NAME.fullmatch(name.strip()) or command.count(PLACEHOLDER) != 1:
        example = "'openmpi: mpirun.openmpi -n 4 {} ./app'"
        raise argparse.ArgumentTypeError(
            f"{text}: an arm is a name of letters and digits and a command with one {{}}, like "
            f"{example}"
        )
    return Arm(name.strip(), command.strip())


def number(least: int = 1, most: int = 999_999) -> Callable[[str], int]:
    return checked(
        lambda word: int(word) if least <= int(word) <= most else None,
        f"a whole number from {least:,} to {most:,}",
    )


FOLDER = option("folder", metavar="EXPERIMENT", type=Path)
TIMES = (
    option(
        "--limit",
        type=seconds,
        metavar="TIME",
        help="begin no block that would not end within this time, and end a run that does not: "
        "90m, 2h",
    ),
    option(
        "--timeout",
        type=seconds,
        metavar="TIME",
        help="after this time a run is ended and has failed: 600, 10m",
    ),
)
RUN = (
    FOLDER,
    option(
        "--arm",
        action="append",
        type=arm,
        default=[],
        metavar="'NAME: COMMAND'",
        help="{} in it stands for commprof-run; repeat",
    ),
    option(
        "--kit",
        metavar="FILE",
        type=Path,
        help="a job's kit (hvprof-report replay kit), which arms without a program replay: {} "
        "stands for commprof-run and commprof-replay, whose options may follow; copied to "
        "EXPERIMENT",
    ),
    option(
        "--blocks",
        type=number(),
        default=10,
        metavar="N",
        help="complete blocks that are wanted (default: 10)",
    ),
    option(
        "--aa",
        action="store_true",
        help="run the first arm twice in each block, as a control: A against A must show nothing",
    ),
    option(
        "--bare",
        action="store_true",
        help="run each arm without the profiler, too, so that its cost is known and whether the "
        "arms differ as much without it",
    ),
    option(
        "--seed",
        type=number(-plans.MOST, plans.MOST),
        metavar="N",
        help="decides which arm runs first (default: by chance; recorded)",
    ),
    *TIMES,
)


def way_on(folder: Path) -> str:
    """An experiment keeps its commands."""
    return (
        f"go on with: {PROGRAM} resume {shlex.quote(str(folder))} (other commands: in another "
        "folder)"
    )


def begin(arguments: argparse.Namespace) -> None:
    folder, kit = arguments.folder, arguments.kit
    arms = [
        *arguments.arm,
        *(
            each._replace(name=f"{each.name}-again", of=each.name)
            for each in arguments.arm[: arguments.aa]
        ),
    ]
    if arguments.bare:
        if any(
            re.search(re.escape(PLACEHOLDER) + r"\s+-", each.command) for each in arms if not kit
        ):
            raise UsageError(
                "--bare",
                "an arm has options of commprof-run after {}: set their variables instead "
                "(commprof-run --help)",
            )
        arms += [
            each._replace(name=f"{each.name}-bare", of=each.name, is_bare=True)
            for each in arguments.arm
        ]
    names = [each.name for each in arms]
    if sum(not each.is_bare for each in arms) < 2 or len(set(names)) < len(names):
        raise UsageError(
            "--arm", "two arms or more are needed, each with a name of its own; or one with --aa"
        )
    if plans.is_experiment(folder):
        raise UsageError(folder, f"is an experiment already; {way_on(folder)}")
    if kit and not any(is_replay(each.command) for each in arguments.arm):
        raise UsageError("--kit", "each arm has a program after {}; one without replays the kit")
    digest = kits.read(kit)[1] if kit else ""
    folder.mkdir(parents=True, exist_ok=True)
    if kit:
        shutil.copyfile(kit, folder / plans.KIT)
        with suppress(FileNotFoundError):  # a check, by which compare says what replays stand for
            shutil.copyfile(f"{kit}.check", folder / plans.CHECK)
    seed = random.randrange(1 << 31) if arguments.seed is None else arguments.seed
    plans.plan_write(folder, Plan(arms, arguments.blocks, seed, os.getcwd(), digest))
    go_on(arguments)


def go_on(arguments: argparse.Namespace) -> None:
    folder, plan = arguments.folder, plans.plan_read(arguments.folder)
    with plans.owned(folder):
        if arguments.blocks not in (None, plan.blocks):
            plan = plan._replace(blocks=arguments.blocks)
            plans.plan_write(folder, plan)
        Runner(folder, plan, arguments.timeout, arguments.limit).run()


class OutOfTime(Exception):
    """Nothing more would end within --limit."""


class Runner:
    """Runs what is missing, and knows how much that is."""

    def __init__(
        self, folder: Path, plan: Plan, timeout_s: float | None, limit_s: float | None
    ) -> None:
        self.folder, self.plan, self.timeout_s = folder, plan, timeout_s
        self.end_s = None if limit_s is None else time.monotonic() + limit_s
        self.runs = plans.runs_of(folder, plan)

    def run(self) -> None:
        self.commprof_run = program_find("commprof-run")
        self.replay = ""  # for arms without a program
        if self.plan.kit:
            path = self.folder.resolve() / plans.KIT
            if kits.read(path)[1] != self.plan.kit:
                raise ReportError(path, "is another kit than that of the experiment")
            self.replay = shlex.join([program_find("commprof-replay"), str(path)])
        self.say_if_few()
        name = shlex.quote(str(self.folder))
        try:
            for each in self.plan.arms:
                self.warm_up(each)
            self.describe()
            while self.plan.blocks > len(self.complete()):
                self.must_end(self.block_s())
                self.block()
        except OutOfTime:
            say(
                f"{self.blocks_text()}; more would not end within --limit. Go on with: {PROGRAM} "
                f"resume {name}"
            )
            return
        say(
            f"done: {units.counted(len(self.complete()), 'block')}. Read them with: hvprof-report "
            f"compare {name}"
        )

    def say_if_few(self) -> None:
        """Before the first run, that the blocks wanted can give no verdict."""
        arms = [each for each in self.plan.arms if not each.is_bare]
        verdicts = sum(not each.of for each in arms) - 1 or 1
        needed = fewest_pairs(Rules().of_one(verdicts, True).level)
        if self.plan.blocks < needed:
            say(
                f"{units.counted(self.plan.blocks, 'block')} of {len(arms)} arms can give no "
                f"verdict: {needed} are needed at least (--blocks {needed})"
            )

    def must_end(self, seconds: float) -> None:
        """Raises OutOfTime if what takes so long would not end within --limit."""
        if self.end_s is not None and time.monotonic() + seconds >= self.end_s:
            raise OutOfTime

    def complete(self) -> list[int]:
        return plans.complete_blocks(self.plan, self.runs)

    def blocks_text(self) -> str:
        return f"{len(self.complete())} of {self.plan.blocks} blocks"

    def block_s(self) -> float:
        """How long a block takes, by those so far; before the first one, by the runs that were
        discarded."""
        status = OK if self.complete() else WARM_UP
        counted = [run.seconds for run in self.runs if run.status == status]
        return fmean(counted) * len(self.plan.arms) if counted else 0.0

    def warm_up(self, each: Arm) -> None:
        """One run that is discarded: page cache, connections and tuning files are then warm for all
        arms."""
        folder = self.folder / "block-00" / each.name
        while not any(run.arm == each.name and run.status == WARM_UP for run in self.runs):
            for path in (folder, folder_of(folder)):  # what a failed or interrupted one has left
                shutil.rmtree(path, ignore_errors=True)
            self.must_end(max((run.seconds for run in self.runs if run.block == 0), default=0))
            run = self.launch(0, each)
            self.add(run._replace(status=WARM_UP) if run.status == OK else run)

    def launch(self, block: int, each: Arm) -> Run:
        """A run that --limit ends counts as interrupted."""
        timeout_s = self.timeout_s
        if self.end_s is not None:
            left_s = max(0.0, self.end_s - time.monotonic())
            timeout_s = min(left_s, timeout_s or left_s)
        run = launch(
            self.folder, block, each, self.commprof_run, self.replay, self.plan.directory, timeout_s
        )
        if run.status == FAILED:
            self.must_end(0)
        return run

    def describe(self) -> None:
        """How the arms differ in settings and binding, by their first runs: before the runs that
        count."""
        first = self.folder / "block-00"
        answers = compare(
            [
                Side(each.name, [figures(first / each.name)[0]])
                for each in self.plan.arms
                if not each.is_bare
            ],
            Rules(),
        )
        for side in answers.sides:
            run = side.runs[0]
            say(
                f"{side.name}: {run.library}, {layout(run)}; cores that a rank may use: "
                f"{binding(run)}"
            )
        for row, found in ((pair.verdict, pair.differences) for pair in answers.pairs):
            if found:
                say(f"{row.side} differs from {row.reference} in: {differences_text(found)}")
        for refusal in answers.refused:
            say(
                f"hvprof-report compare will give no verdict ({refusal.kind}): {refusal.what}. Way "
                f"out: {refusal.way_out}"
            )

    def block(self) -> None:
        number = plans.next_block(self.folder, self.runs)
        for each in plans.order_of(self.plan, len(self.complete())):
            self.add(self.launch(number, each))
            if self.runs[-1].status != OK:
                return
        self.progress()

    def add(self, run: Run) -> None:
        plans.run_add(self.folder, run)
        self.runs.append(run)
        log = f"{self.folder / run.folder}.log"
        name = (
            f"block {run.block}, {run.arm}" if run.block else f"first run of {run.arm}, discarded"
        )
        say(
            f"{name}: failed, {run.why}; see {log}"
            if run.status == FAILED
            else f"{name}: {run.seconds:.1f} s"
        )
        if gives_up([each for each in self.runs if each.arm == run.arm]):
            lines = Path(log).read_text(encoding="utf-8", errors="replace").split("\n")
            last = next((line.strip() for line in reversed(lines) if line.strip()), "nothing")
            raise ReportError(
                run.arm,
                f"failed {whole('experiment.failures')} times in a row; the last output "
                f"is in {log}: {units.shortened(last, 200)}; {way_on(self.folder)}",
            )

    def progress(self) -> None:
        """How long the rest takes, if anything is left."""
        left = self.plan.blocks - len(self.complete())
        if left > 0:
            about = f"; about {units.duration(left * self.block_s() * 1e9)} left"
            say(f"  {self.blocks_text()}{about * bool(self.block_s())}")


def gives_up(runs: Sequence[Run]) -> bool:
    """runs: of one arm. The last ones have all failed."""
    most = whole("experiment.failures")
    return [run.status for run in runs[-most:]] == [FAILED] * most


def show(arguments: argparse.Namespace) -> None:
    folder, plan = arguments.folder, plans.plan_read(arguments.folder)
    runner = Runner(folder, plan, None, None)
    done = runner.complete()
    kit = f"; kit {plan.kit}" if plan.kit else ""
    say(f"{len(done)} of {plan.blocks} blocks complete; seed {plan.seed}{kit}")
    for each in plan.arms:
        own = gathered((run.status, run) for run in runner.runs if run.arm == each.name)
        counted, failed, removed = (own.get(status, []) for status in (OK, FAILED, REMOVED))
        parts = {
            units.counted(len(counted), "run"): 1,
            counted and f", mean {fmean(run.seconds for run in counted):.1f} s" or "": counted,
            f"; {len(removed)} removed": removed,
            f"; {units.counted(len(failed), 'failed run')}, the last: "
            f"{failed and failed[-1].why}": failed,
        }
        said = "".join(text for text, is_so in parts.items() if is_so)
        say(f"  {each.name}: {said}; {each.command}")
    runner.progress()
    name = shlex.quote(str(folder))
    say(
        f"next: {PROGRAM} resume {name}"
        if len(done) < plan.blocks
        else f"next: hvprof-report compare {name}"
    )


COMMANDS = (  # what they do, help, options
    ("run", begin, "begin an experiment in a new folder", RUN),
    (
        "resume",
        go_on,
        "go on after an interruption, or with more blocks",
        (
            FOLDER,
            option(
                "--blocks",
                type=number(),
                metavar="N",
                help="complete blocks that are wanted in all",
            ),
            *TIMES,
        ),
    ),
    ("status", show, "what has run, and what has failed", [FOLDER]),
)


def parser_build() -> Parser:
    parser = Parser(prog=PROGRAM, description=__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")
    for name, run, about, options in COMMANDS:
        command = commands.add_parser(name, help=about, allow_abbrev=False)
        command.set_defaults(run_command=run)
        options_add(command, options)
    return parser


def say(text: str) -> None:
    print(units.visible(text), flush=True)


def main(words: Sequence[str] | None = None) -> int:
    """`words`: the arguments; those of the process if none are given."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined, union-attr]
    arguments = argparse.Namespace(folder=Path())
    try:
        arguments = parser_build().parse_args(words)
        arguments.run_command(arguments)
        return 0
    except EXPECTED as error:
        print(units.visible(f"{PROGRAM}: {as_report(error)}"), file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        if plans.is_experiment(arguments.folder):
            said = f"{PROGRAM}: interrupted; {way_on(arguments.folder)}"
            print(units.visible(said), file=sys.stderr)
        return 128 + signal.SIGINT

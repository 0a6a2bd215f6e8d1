"""A search lets the algorithms that the MPI library itself names take turns in replays of a job's
kit, call by call, under the job's own arrivals. A rule is written only where the least gain that
the interval holds exceeds the least effect, for the sizes and communicators that were measured, and
only for an algorithm that was shown to run: it sends other messages than the default. Works with
Open MPI 4.1 and MPICH 4.0, whose algorithms MPI_T can choose. A library that cannot switch, like
Intel MPI, has a launch for each algorithm in turn, chosen by variables of the environment; that was
tried with those of Open MPI.

- plan RUN|KIT says which calls are worth it, which algorithms there are for them, and how long a
  search takes. Where ranks wait for each other, no algorithm helps: late says for whom.
- search KIT --launch 'mpirun -n 4 {}' -o DIR looks for faster ones; {} stands for commprof-replay.
- write DIR writes the file, the settings that apply it (settings.sh) and how-to-apply.txt.
- verify DIR [EXPERIMENT] launches the kit with the file: are the rules taken, by their messages?
  With an experiment of the job (commprof-experiment) of an arm without the file and one with it, is
  the job faster?
- auto RUN|KIT --launch 'mpirun -n 4 {}' -o DIR does all of it, with the kit in place of the job.
  With --job 'mpirun -n 4 {} ./program' the job itself runs, too: it is recorded if there is no RUN,
  compared with its replay, and at the end runs in turn with the file and without. {} stands for
  commprof-run.
- nccl EXPERIMENT -o DIR finds NCCL's faster algorithms and protocols, by size, in runs of the job:
  the first arm as NCCL decides, the others with NCCL_ALGO and NCCL_PROTO.

DIR/report.html has all of it as a page.

Another algorithm adds numbers up in another order: results may differ in their last bits.
"""

from __future__ import annotations

import argparse
import math
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..base import (
    Field,
    ReportError,
    UsageError,
    checked,
    column,
    option,
    seconds,
    threshold,
    units,
    written_whole,
)
from ..compare.comparison import change_text, compare as compare_sides, finding_text, interval_text
from ..compare.judge import Rules, VerdictRow, fewest_pairs
from ..compare.sides import checked_read, checked_write
from ..display import render
from ..experiment.plan import PLACEHOLDER, ended, program_find
from ..late.late_ranks import Late
from ..replay import kit as kits
from ..replay.from_run import kit_of
from ..run import align
from ..tune import evidence as evidences, formats, nccl
from ..tune.evidence import (
    Evidence,
    Library,
    NCCL,
    Raced,
    Rule,
    SWITCHING,
    as_launched,
    fingerprint,
    gains,
    judged,
    library_read,
    rules_of,
    stands_text,
)
from ..tune.search import Launcher, Search, cannot_search
from ..tune.rows import Row, rows_of_kit, rows_of_run
from . import Command, common, compare, replay
from .compare import percent

MOST_ROWS = 1000  # with most calls
KIT, SETTINGS, ADVICE, PAGE = "job.kit", "settings.sh", "how-to-apply.txt", "report.html"
CHECK_BLOCKS = 4  # of the job and its replay
RECORDED_S = 600  # of the job, at most
BITS = "Another algorithm adds numbers up in another order: results may differ in their last bits."


launch = checked(
    lambda text: text if text.count(PLACEHOLDER) == 1 else None,
    "a command with one {}, like 'mpirun -n 4 {}'",
)


def run(arguments: argparse.Namespace) -> None:
    RUN[arguments.action](arguments)


def say(text: str) -> None:
    print(units.visible(text), flush=True)


def rules_by(arguments: argparse.Namespace) -> Rules:
    return Rules(min_effect=arguments.min_effect)


def needed(arguments: argparse.Namespace, name: str, what: str) -> Any:
    value = getattr(arguments, name)
    if not value:
        raise UsageError("tune", f"{arguments.action} needs {what}")
    return value


def only(arguments: argparse.Namespace, what: str) -> Path:
    if len(arguments.runs) != 1:
        raise UsageError("tune", f"{arguments.action} takes {what}")
    return arguments.runs[0]


def output_of(arguments: argparse.Namespace) -> Path:
    output = needed(arguments, "output", "-o DIR, for what it finds")
    output.mkdir(parents=True, exist_ok=True)
    return output


def is_kit(path: Path) -> bool:
    return path.is_file() and path.read_bytes()[:2] in (b"\x1f\x8b", b"co")


def listed(mpi: str | None) -> Library:
    """By the library itself, without a job."""
    words = [program_find("commprof-replay"), "--algorithms", *(["--mpi", mpi] if mpi else [])]
    found = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    if found.returncode:
        raise UsageError("--mpi", found.stderr.strip() or "no MPI library is found")
    return library_read(found.stdout.splitlines())


def plan(arguments: argparse.Namespace) -> None:
    path = arguments.runs[0] if arguments.runs else None
    if path and is_kit(path):
        kit, _ = kits.read(path)
        rows, window_s, waits = rows_of_kit(path), kit.window_ns * 1e-9, ""
        stands = stands_text(with_check(Evidence("", "", "", "", "", ""), path))
    else:
        arguments.run = arguments.runs
        selected = common.open_selected(arguments, with_histograms=False, with_samples=True)
        answers = Late(selected, align(selected.connection))
        rows, window_s, waits = rows_of_run(answers), window_of(answers), waits_text(answers)
        stands = f"on {units.share(answers.run.coverage or 0.0)} of the time inside MPI"
    library = listed(arguments.mpi)
    if not library.family:
        raise cannot_search(library.version)
    worth = [row for row in rows if row.is_worth]
    most = max((len(library.candidates(row.call, row.bytes)) for row in worth), default=1)
    launches = 2 + math.ceil(math.log2(most))
    pairs = fewest_pairs(Rules().of_one(max(1, len(worth)), True).level)
    launches += pairs
    if arguments.separate or library.family not in SWITCHING:
        launches = 1 + 3 * most + 2 * pairs
    print(
        common.facts_text(
            (
                ("Library", library.version),
                ("Worth it", worth_text(rows, worth, waits)),
                ("Stands", stands if worth else ""),
                (
                    "Search",
                    f"about {units.counted(launches, 'launch')}, at least "
                    f"{units.duration(launches * 2 * max(1.0, window_s) * 1e9)}"
                    if worth
                    else "",
                ),
            )
        )
    )
    if worth:
        print("\n" + render.text_table(plan_columns(library), worth))


def plan_columns(library: Library) -> list[Field]:
    def names(row: Row) -> str:
        found = library.candidates(row.call, row.bytes)[1:]
        return ", ".join(dict.fromkeys(each.name for each in found))

    return [
        column("call", lambda row: row.call),
        column("bytes", lambda row: units.size(row.bytes)),
        column("ranks", lambda row: units.count(row.ranks)),
        column("calls", lambda row: units.count(row.calls)),
        column("at most", lambda row: "" if row.share is None else units.share(row.share)),
        column("algorithms", names, is_number=False),
    ]


def worth_text(rows: Sequence[Row], worth: Sequence[Row], waits: str) -> str:
    if not rows:
        return (
            "nothing is known of blocking Allreduces, Bcasts, Allgathers, Alltoalls and Reduces; a "
            "run tells in windows in which all ranks' calls were sampled (commprof-run --record)"
        )
    if not worth:
        most = max(row.share or 0.0 for row in rows)
        return (
            f"nothing: without any transfer in a row the run would be {units.share(most)} shorter "
            f"at most{waits}"
        )
    number = units.counted(len(worth), "row")
    if worth[0].share is None:
        return f"{number}; a kit has no times, so the search measures them"
    return (
        f"{number}: without any transfer in the first, the run would be at most "
        f"{units.share(worth[0].share)} shorter{waits}"
    )


def waits_text(answers: Late) -> str:
    wait_ns, transfer_ns = answers.run.wait_ns or 0, answers.run.transfer_ns or 0
    share = wait_ns / (wait_ns + transfer_ns or 1)
    return (
        f"; {units.share(share)} of the split time is waiting for other ranks, which no algorithm "
        "shortens (hvprof-report late)"
        if share >= 0.5
        else ""
    )


def window_of(answers: Late) -> float:
    part = answers.retimed.host
    return float(part.graph.played_ns) * 1e-9 if part else 0.0


def with_check(found: Evidence, kit: Path) -> Evidence:
    """For how much of the job replays of the kit stand, if a check of it lies beside it."""
    beside = Path(f"{kit}.check")
    if beside.exists() and (checked := checked_read(beside)).kit == kits.read(kit)[1]:
        found.stands, found.failing = checked.share, ", ".join(checked.failing)
    return found


def search(arguments: argparse.Namespace) -> None:
    kit, output = only(arguments, "one kit"), output_of(arguments)
    _, digest = kits.read(kit)
    rows = rows_of_kit(kit)[:MOST_ROWS]
    if not rows:
        raise ReportError(kit, "has no blocking Allreduce, Bcast, Allgather, Alltoall or Reduce")
    if kit.resolve() != (output / KIT).resolve():
        shutil.copyfile(kit, output / KIT)
    found = Search(
        launcher(arguments, output),
        rows,
        arguments.budget,
        digest,
        rules_by(arguments),
        say,
        arguments.unproven,
    ).run()
    show_search(output, with_check(found, kit), rules_by(arguments))


def find_nccl(arguments: argparse.Namespace) -> None:
    experiment, output = only(arguments, "one experiment"), output_of(arguments)
    show_search(
        output,
        nccl.evidence_of(compare.read(compare.chosen([experiment]), 0.0), str(experiment)),
        rules_by(arguments),
    )


def launcher(arguments: argparse.Namespace, output: Path, before: str = "") -> Launcher:
    return Launcher(
        needed(arguments, "launch", "--launch 'mpirun -n RANKS {}'"),
        program_find("commprof-replay"),
        output / KIT,
        output,
        before,
        arguments.separate,
    )


def search_facts(found: Evidence, rules: Rules) -> list[tuple[str, str]]:
    written = len(rules_of(found, rules))
    return [
        ("Library", found.library),
        (
            "Search",
            f"{units.counted(found.launches, 'launch')} in "
            f"{units.duration(found.seconds * 1e9)}; messages counted by {found.counted}",
        ),
        (
            "Faster",
            f"{units.counted(written, 'rule')} to write"
            if written
            else f"nothing: no algorithm is proven to be faster by {units.share(rules.min_effect)}",
        ),
        ("Stands", stands_text(found)),
    ]


def show_search(output: Path, found: Evidence, rules: Rules) -> None:
    evidences.write(output, found)
    write_page(output, found, rules)
    print("\n" + common.facts_text(search_facts(found, rules)))
    if found.rows:
        print("\n" + render.text_table(search_columns(found, rules), found.rows))


def search_columns(found: Evidence, rules: Rules) -> list[Field]:
    return [
        column("call", lambda row: row.call),
        column("bytes", lambda row: units.size(row.bytes)),
        column("ranks", lambda row: units.count(row.ranks)),
        column("of a pass", lambda row: units.share(row.share)),
        column(
            "best",
            lambda row: row.best.candidate.text if row.best else "as launched",
            is_number=False,
        ),
        column(
            "change",
            lambda row: change_text(judged(found, row, rules)) if row.pairs else "",
            is_number=False,
        ),
        column(
            "faster",
            lambda row: "yes" if row in gains(found, rules) else "not proven",
            is_number=False,
        ),
    ]


def write(arguments: argparse.Namespace) -> list[Rule]:
    folder = only(arguments, "the folder of a search")
    found, by_rules = evidences.read(folder), rules_by(arguments)
    rules = rules_of(found, by_rules)
    if not rules:
        print(
            "nothing to write: no algorithm is proven to be faster by "
            f"{units.share(by_rules.min_effect)}"
        )
        return rules
    name, chosen = formats.format_named(found, arguments.format)
    file = (folder / chosen.file).resolve()
    settings = formats.settings_text(found, rules, chosen, file)
    for path, text in (
        (file, chosen.text(found, rules)),
        (folder / SETTINGS, settings),
        (folder / ADVICE, "\n".join(advice(found, rules, by_rules, chosen, settings)) + "\n"),
    ):
        with written_whole(path, 0o666) as output:
            output.write(text)
    print(
        units.visible(
            f"{file}: {units.counted(len(rules), 'rule')}, {name}; apply it with: . "
            f"{shlex.quote(str(folder / SETTINGS))}"
        )
    )
    return rules


def advice(
    found: Evidence, rules: Sequence[Rule], by_rules: Rules, chosen: formats.Format, settings: str
) -> list[str]:
    proven = (
        f"{row.call} {units.size(row.bytes)}: {change_text(judged(found, row, by_rules))} a call "
        f"in {len(row.pairs)} launches; {fingerprint(row.best.counts)}, as launched "
        f"{fingerprint(row.tried[0].counts)}"
        for row in gains(found, by_rules)
        if row.best
    )
    layout = ", ".join(map(str, found.layout))
    return [
        f"{formats.about(found)}; valid for this version, these sizes and these ranks only, on "
        f"{units.counted(len(found.layout), 'node')} of {layout} ranks.",
        "",
        "Before mpirun, in the shell or the job's script:",
        "",
        *(f"    {line}" for line in settings.splitlines() if not line.startswith("#")),
        "",
        *(formats.span_text(rule, span) for rule in rules for span in rule.spans),
        "",
        *proven,
        f"The measurements stand {stands_text(found)}.",
        *(["That these algorithms ran is not proven."] if found.counted == "no" else []),
        "",
        *filter(None, [chosen.untried]),
        "Options of mpirun (--mca) take precedence over these variables.",
        BITS,
    ]


def verify(arguments: argparse.Namespace) -> bool:
    """False: the job's own runs do not show that it is faster."""
    if not 1 <= len(arguments.runs) <= 2:
        raise UsageError("tune", "verify takes the folder of a search, and an experiment")
    folder, *experiment = arguments.runs
    found, by_rules = evidences.read(folder), rules_by(arguments)
    if not (folder / SETTINGS).exists():
        raise ReportError(folder, f"has no {SETTINGS}: hvprof-report tune write writes it")
    raced = gains(found, by_rules)
    sides = compare.read(compare.chosen(experiment), 0.0) if experiment else []
    pairs = compare_sides(sides, by_rules).pairs if sides else []
    if found.family == NCCL:
        rules = rules_of(found, by_rules)
        taken = [bool(sides) and nccl.is_taken(sides[-1].runs, rule) for rule in rules]
        names = [formats.span_text(rule, rule.spans[0]) for rule in rules]
    else:
        arguments.launch = arguments.launch or found.launch
        taken = taken_rows(arguments, folder, found, raced)
        names = [f"{row.call} {units.size(row.bytes)} on {row.ranks} ranks" for row in raced]
    proof = "recorded algorithms" if found.family == NCCL else "message counts"
    facts = [
        ("Predicted", predicted_text(found, raced, by_rules)),
        (
            "Taken",
            f"{sum(taken)} of {units.counted(len(taken), 'rule')} ({proof})"
            if found.counted != "no"
            else "not known: messages cannot be counted here",
        ),
        *(("Verified", f"{pair.verdict.side}: {finding_text(pair)}") for pair in pairs),
        *(
            ("Estimate", f"{pair.verdict.metric} {change_text(pair.verdict)}")
            for pair in pairs
            if pair.verdict.verdict == "refused"
        ),
    ]
    is_idle = bool(pairs) and not is_faster(pairs[-1].verdict, by_rules)
    if is_idle:
        facts.append(("Not used", f"{SETTINGS}: the job is not shown to be faster with it"))
    print(common.facts_text(facts))
    write_page(folder, found, by_rules, facts)
    for name, is_taken in zip(names, taken):
        if not is_taken:
            print(f"NOT taken: {name}")
    if not all(taken) and found.counted != "no":
        raise ReportError(folder, "a rule is not taken; is something set by options of mpirun?")
    return not is_idle


def is_faster(found: VerdictRow, rules: Rules) -> bool:
    """Without a verdict, as where other work disturbs both sides, their estimate decides."""
    is_clear = found.high is not None and found.high < -rules.min_effect
    return found.verdict == "less" or (found.verdict == "refused" and is_clear)


def taken_rows(
    arguments: argparse.Namespace, folder: Path, found: Evidence, raced: Sequence[Raced]
) -> list[bool]:
    """Does each row send, with the file, what its algorithm sent in the search?"""
    launched = [as_launched(row.call, row.bytes, row.ranks) for row in raced]
    before = f". {shlex.quote(str((folder / SETTINGS).resolve()))}\n"
    arguments.separate = False
    outcome = launcher(arguments, folder, before).run("", launched, 1, counting=True)
    if outcome.layout != found.layout:
        ranks = (" and ".join(map(str, layout)) for layout in (outcome.layout, found.layout))
        raise ReportError(folder, "ranks of nodes: {}; the search had {}".format(*ranks))
    return [
        row.best is not None and outcome.counts(number, 0) == row.best.counts
        for number, row in enumerate(raced)
    ]


def predicted_text(found: Evidence, raced: Sequence[Raced], rules: Rules) -> str:
    parts = [(row.share, judged(found, row, rules)) for row in raced]
    estimate, low, high = (
        sum(share * (getattr(answer, name) or 0.0) for share, answer in parts)
        for name in ("change", "low", "high")
    )
    return (
        f"a pass of the replay {units.change(estimate)} {interval_text(low, high)}, by calls that "
        f"have {units.share(sum(share for share, _ in parts))} of it; stands {stands_text(found)}"
    )


def write_page(
    folder: Path, found: Evidence, rules: Rules, verified: Sequence[tuple[str, str]] = ()
) -> None:
    """Everything of a search, and how it is applied, if it is."""
    tried = [(row, each) for row in found.rows for each in row.tried]
    applied = folder / ADVICE
    lines = applied.read_text(encoding="utf-8").splitlines() if applied.exists() else []
    parts = [
        render.header("tune", [], [], search_facts(found, rules), verified),
        render.section("Calls", "", render.table(search_columns(found, rules), found.rows)),
        render.section("Algorithms", "", render.table(TRIED, tried)),
        render.section("How to apply", "", render.bullets(filter(None, lines))) if lines else "",
    ]
    with written_whole(folder / PAGE, 0o666) as output:
        output.write(render.page("tune", parts))


TRIED = [
    column("call", lambda each: each[0].call),
    column("bytes", lambda each: units.size(each[0].bytes)),
    column("ranks", lambda each: units.count(each[0].ranks)),
    column("algorithm", lambda each: each[1].candidate.text, is_number=False),
    column("sends", lambda each: fingerprint(each[1].counts), is_number=False),
    column("out, because", lambda each: each[1].fate, is_number=False),
]


def auto(arguments: argparse.Namespace) -> None:
    needed(arguments, "launch", "--launch 'mpirun -n RANKS {}'")
    output = output_of(arguments)
    if arguments.job and not arguments.runs:
        say("recording the job")
        arguments.runs = [record(arguments.job, output)]
    if not (len(arguments.runs) == 1 and is_kit(arguments.runs[0])):
        arguments.run = arguments.runs
        profiled = common.open_noted(arguments, with_samples=True, most_samples=None)
        kits.write(kit_of(profiled), output / KIT)
        arguments.runs = [output / KIT]
    if arguments.job:
        arms = {"job": arguments.job, "replay": arguments.launch}
        kit = ["--kit", str(arguments.runs[0])]
        experiment = run_experiment(output / "check", CHECK_BLOCKS, arms, *kit)
        jobs, replays = replay.sides_checked([experiment])
        checked = replay.result_of(replay.check(jobs, replays), replays)
        checked_write(Path(f"{arguments.runs[0]}.check"), checked, 0o666)
    search(arguments)
    arguments.runs = [output]
    if not write(arguments):
        return
    if arguments.job:
        settings = shlex.quote(str((output / SETTINGS).resolve()))
        arms = {"default": arguments.job, "tuned": f". {settings}; {arguments.job}"}
        needed_blocks = fewest_pairs(rules_by(arguments).of_one(1, True).level)
        arguments.runs.append(run_experiment(output / "experiment", needed_blocks + 2, arms))
    if not verify(arguments):
        for name in (SETTINGS, ADVICE):
            (output / name).unlink()
        say(f"{SETTINGS} is removed")


def record(job: str, output: Path) -> Path:
    run = output / "job"
    words = [program_find("commprof-run"), "--record", str(RECORDED_S), "--output", str(run)]
    with open(output / "job.log", "ab") as log:
        if why := ended(job.replace(PLACEHOLDER, shlex.join(words)), None, log, None):
            raise ReportError(job, f"failed, {why}; see {log.name}")
    return run


def run_experiment(folder: Path, blocks: int, arms: dict[str, str], *more: str) -> Path:
    words = [program_find("commprof-experiment"), "run", str(folder), "--blocks", str(blocks)]
    for name, command in arms.items():
        words += ["--arm", f"{name}: {command}"]
    if subprocess.run([*words, *more], check=False).returncode:
        raise ReportError(folder, "the runs of the job failed")
    return folder


RUN = {
    "plan": plan,
    "search": search,
    "nccl": find_nccl,
    "write": write,
    "verify": verify,
    "auto": auto,
}

COMMANDS = {
    "tune": Command(
        __doc__,
        (
            common.RUN[0],
            option("action", choices=tuple(RUN), help="what to do"),
            option(
                "runs",
                metavar="PATH",
                type=Path,
                nargs="*",
                help="a run (default of plan and auto: the newest here), a kit, the folder of a "
                "search",
            ),
            option(
                "--launch",
                type=launch,
                metavar="COMMAND",
                help="starts as many ranks as the job had; {} stands for commprof-replay",
            ),
            option(
                "--budget",
                type=seconds,
                default=1200,
                metavar="TIME",
                help="the search ends about then: 600, 20m, 2h (default: 20m)",
            ),
            option("-o", "--output", type=Path, metavar="DIR", help="for what a search finds"),
            option(
                "--job",
                type=launch,
                metavar="COMMAND",
                help="of auto: the job; {} stands for commprof-run",
            ),
            option(
                "--separate",
                action="store_true",
                help="a launch for each algorithm, chosen by the environment, as for libraries "
                "that cannot switch",
            ),
            option(
                "--unproven",
                action="store_true",
                help="search also where messages cannot be counted: that an algorithm ran is not "
                "proven then",
            ),
            option(
                "--format",
                choices=tuple(formats.FORMATS),
                help="of write (default: that of the library that was searched)",
            ),
            option(
                "--min-effect",
                type=percent,
                default=threshold("compare.min-effect"),
                metavar="N%",
                help="write no rule whose least gain is not more than this (default: 2%%)",
            ),
            option(
                "--mpi", metavar="LIBRARY", help="of plan: the MPI library (default: one found)"
            ),
        ),
        run,
        (
            ("Is it worth it?", "hvprof-report tune plan"),
            (
                "Search, write and verify in one",
                "hvprof-report tune auto job.kit --launch 'mpirun -n 4 {}' -o tuned",
            ),
            (
                "In steps",
                "hvprof-report tune search job.kit --launch 'mpirun -n 4 {}' --budget 20m -o tuned",
            ),
            ("The file", "hvprof-report tune write tuned"),
            ("Is it taken?", "hvprof-report tune verify tuned"),
            (
                "All of it, with the job itself",
                "hvprof-report tune auto --launch 'mpirun -n 4 {}' --job 'mpirun -n 4 {} ./app' "
                "-o tuned",
            ),
        ),
        ("replay", "compare"),
    )
}

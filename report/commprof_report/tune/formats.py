"""Rules as the files that MPI libraries read.

Each of these fails silently somewhere, so a file is more than its rules:

- Open MPI ignores all rules of a collective without one for size 0. Its rules are open upwards, in
  sizes of messages and of communicators; the first one also holds below. So each rule is closed
  again, by algorithm 0: as the library decides.
- A file for MPICH replaces the whole table, and a collective that it lacks aborts the job. So it is
  the library's own table, with branches put before its own ones.
- A variable that forces an algorithm takes precedence over MPICH's file, and over a 0 in Open
  MPI's. So the settings beside the file unset it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..base import ReportError, UsageError, gathered, units
from .evidence import (
    Candidate,
    Evidence,
    INTEL,
    MPICH,
    NCCL,
    OPEN_MPI,
    Rule,
    SWITCHING,
    Span,
    collective,
    variable_name,
)

COLLECTIVES = {  # their numbers in Open MPI's files
    "MPI_Allgather": 0,
    "MPI_Allreduce": 2,
    "MPI_Alltoall": 3,
    "MPI_Bcast": 7,
    "MPI_Reduce": 11,
}
# their message is what all ranks send together, or what each rank sends to all
SCALED = {
    OPEN_MPI: ("MPI_Allgather", "MPI_Alltoall"),
    MPICH: ("MPI_Allgather",),
    NCCL: ("ncclAllGather",),
}
FEW = "count<pow2"  # fewer elements than ranks, about
REDUCING = (("count=any", FEW), ("is_op_built_in=yes", "is_op_built_in=no"))
SMP = ("comm_hierarchy=parent", "comm_hierarchy=any")
GUARDS = {  # of MPICH's algorithms, or of all of a call: the condition, and what else may be
    "MPI_Bcast smp": (SMP,),
    "smp": (SMP, ("is_commutative=yes", "is_commutative=no")),
    "reduce_scatter_allgather": REDUCING,
    "reduce_scatter_gather": REDUCING,
    "pairwise_sendrecv_replace": (("is_sendbuf_inplace=yes", "is_sendbuf_inplace=no"),),
    "MPI_Alltoall": (("is_sendbuf_inplace=no", "is_sendbuf_inplace=yes"),),
}
DEFAULT = Candidate("as the library decides", 0)
MOST_TABLE = 1 << 20  # bytes
PAGE = 4096


def message_bytes(family: str, call: str, ranks: int, size: int) -> int:
    """The size by which a library chooses, of a call whose size in our reports is `size`."""
    return size * ranks if call in SCALED.get(family, ()) else size


Step = tuple[int, Candidate]  # from this size on, in the library's bytes


def steps_of(family: str, rule: Rule) -> list[Step]:
    """From 0 on; outside of the spans as the library decides."""
    found: list[Step] = [(0, DEFAULT)]
    for span in rule.spans:
        low, high = (
            message_bytes(family, rule.call, rule.ranks, size) for size in (span.low, span.high)
        )
        if found[-1][0] == low:
            found.pop()
        found += [(low, span.candidate), (high + 1, DEFAULT)]
    return found


def by_call(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    ordered = sorted(rules, key=lambda rule: (rule.call, rule.ranks))
    return gathered((rule.call, rule) for rule in ordered)


def openmpi_classic(evidence: Evidence, rules: Sequence[Rule]) -> str:
    calls = by_call(rules)
    lines = [f"# {about(evidence)}", f"{len(calls)} # collectives"]
    for call, own in calls.items():
        fences = fenced(own)
        lines += [f"{COLLECTIVES[call]} # {call}", f"{len(fences)} # sizes of communicators"]
        for ranks, steps in fences:
            lines += [f"{ranks} # ranks and more", f"{len(steps)} # sizes of messages"]
            lines += [
                f"{size} {candidate.value} 0 {candidate.segment or 0} # {candidate.text}"
                for size, candidate in steps
            ]
    return "\n".join((*lines, ""))


def fenced(rules: Sequence[Rule]) -> list[tuple[int, list[Step]]]:
    """One call: sizes of communicators from which on steps hold, closed below and above."""
    default: list[Step] = [(0, DEFAULT)]
    found = [(1, default)]
    for rule in rules:
        if found[-1][0] == rule.ranks:
            found.pop()
        found += [(rule.ranks, steps_of(OPEN_MPI, rule)), (rule.ranks + 1, default)]
    return found


def openmpi_json(evidence: Evidence, rules: Sequence[Rule]) -> str:
    """Ranges are closed, and what no rule is for is as without a file."""

    def sizes(rule: Rule, span: Span) -> dict[str, int]:
        low, high = (
            message_bytes(OPEN_MPI, rule.call, rule.ranks, size) for size in (span.low, span.high)
        )
        return {
            "msg_size_min": low,
            "msg_size_max": high,
            "alg": span.candidate.value,
            "segsize": span.candidate.segment or 0,
        }

    return json_text(
        {
            "rule_file_version": 3,
            "module": "tuned",
            "collectives": {
                collective(call): [
                    {
                        "comm_size_min": rule.ranks,
                        "comm_size_max": rule.ranks,
                        "comm_rank_distribution": distribution(rule),
                        "rules": [sizes(rule, span) for span in rule.spans],
                    }
                    for rule in own
                ]
                for call, own in by_call(rules).items()
            },
        }
    )


def distribution(rule: Rule) -> str:
    return "single-node" if rule.nodes == 1 else "one-per-node" if rule.per_node == 1 else "any"


def mpich_json(evidence: Evidence, rules: Sequence[Rule]) -> str:
    """The library's own table; padded, so that it does not fill whole pages: MPICH reads the
    mapped file as a text that ends in a zero."""
    table = mpich_table(Path(evidence.path))
    for call, own in by_call(rules).items():
        branch = table.get(f"collective={collective(call)}")
        if not isinstance(branch, dict) or "comm_type=intra" not in branch:
            raise ReportError(evidence.path, f"its table has no {call}")
        before = branch["comm_type=intra"]
        inside = before
        for rule in reversed(own):
            inside = {
                f"comm_size<={rule.ranks - 1}": before,
                f"comm_size<={rule.ranks}": of_nodes(rule, before),
                "comm_size=any": inside,
            }
        branch["comm_type=intra"] = inside
    text = json_text(table)
    return text if len(text.encode()) % PAGE else f"{text}\n"


def of_nodes(rule: Rule, before: Any) -> dict[str, Any]:
    """MPICH compares with the mean number of ranks that a communicator has on a node."""
    own = of_sizes(rule, before)
    if not rule.per_node:
        return own
    fewer = {f"comm_avg_ppn<={rule.per_node - 1}": before} if rule.per_node > 1 else {}
    return {**fewer, f"comm_avg_ppn<={rule.per_node}": own, "comm_size=any": before}


def of_sizes(rule: Rule, before: Any) -> dict[str, Any]:
    """avg_msg_size is known for some collectives only; MPICH aborts where it is not."""
    name = "total_msg_size" if rule.call in SCALED[MPICH] else "avg_msg_size"
    steps, found = steps_of(MPICH, rule), {}
    for (_, candidate), (following, _) in zip(steps, [*steps[1:], (None, DEFAULT)]):
        key = f"{name}=any" if following is None else f"{name}<{following}"
        found[key] = guarded(rule.call, candidate, before) if candidate.value else before
    return found


def guarded(call: str, candidate: Candidate, before: Any) -> dict[str, Any]:
    """An algorithm under the conditions that it needs. MPICH does not look for them where a file
    names it: an smp on the communicator of a node ends the job."""
    where = "allcomm" if candidate.name == "nb" else "intra"  # of all communicators
    found: dict[str, Any] = {
        f"algorithm=MPIR_{collective(call).capitalize()}_{where}_{candidate.name}": {}
    }
    names = (f"{call} {candidate.name}", candidate.name, call)
    for met, other in next((GUARDS[name] for name in names if name in GUARDS), ()):
        found = {other: before, met: found} if other == FEW else {met: found, other: before}
    return found


def mpich_table(path: Path) -> dict[str, Any]:
    """The table of algorithms inside the library: of three texts of JSON the one that names
    MPIR's."""
    content = path.read_bytes()
    for match in re.finditer(rb'\{\s*"collective=', content):
        text = content[match.start() : match.start() + MOST_TABLE].partition(b"\0")[0]
        if b'"algorithm=MPIR_' in text:
            try:
                return json.loads(text)
            except ValueError:
                continue
    raise ReportError(path, "has no table of algorithms that could be completed")


def intel_env(evidence: Evidence, rules: Sequence[Rule]) -> str:
    """I_MPI_ADJUST_<collective>=id:low-high@ranks-ranks;..."""
    return "".join(
        f"I_MPI_ADJUST_{collective(call).upper()}="
        + ";".join(
            f"{span.candidate.value}:{span.low}-{span.high}@{rule.ranks}-{rule.ranks}"
            for rule in own
            for span in rule.spans
        )
        + "\n"
        for call, own in by_call(rules).items()
    )


def nccl_csv(evidence: Evidence, rules: Sequence[Rule]) -> str:
    """The form of NCCL's example tuner: collective, sizes, algorithm, protocol, channels, nodes,
    ranks, and two that hold for all. A candidate's name is ALGORITHM/PROTOCOL."""
    return "".join(
        f"{collective(rule.call)},{message_bytes(NCCL, rule.call, rule.ranks, span.low)},"
        f"{message_bytes(NCCL, rule.call, rule.ranks, span.high)},"
        f"{span.candidate.name.lower().replace('/', ',')},-1,{rule.nodes or -1},"
        f"{rule.ranks},-1,-1\n"
        for rule in rules
        for span in rule.spans
    )


class Format(NamedTuple):
    family: str
    file: str
    text: Callable[[Evidence, Sequence[Rule]], str]
    settings: tuple[tuple[str, str], ...]  # {} is the file's path
    untried: str = ""


FORMATS = {
    "openmpi-classic": Format(
        OPEN_MPI,
        "rules.conf",
        openmpi_classic,
        (
            ("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"),
            ("OMPI_MCA_coll_tuned_dynamic_rules_filename", "{}"),
        ),
    ),
    "openmpi-json": Format(
        OPEN_MPI,
        "rules.json",
        openmpi_json,
        (
            ("OMPI_MCA_coll_tuned_use_dynamic_rules", "1"),
            ("OMPI_MCA_coll_tuned_dynamic_rules_filename", "{}"),
        ),
        "Open MPI 6 reads it; earlier ones ignore it without a word. It was not tried.",
    ),
    "mpich-json": Format(
        MPICH, "rules.json", mpich_json, (("MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", "{}"),)
    ),
    "intel-env": Format(
        INTEL,
        "rules.env",
        intel_env,
        (),
        "It was not tried: set these variables for the job.",
    ),
    "nccl-csv": Format(
        NCCL,
        "rules.csv",
        nccl_csv,
        (("NCCL_TUNER_CONFIG_FILE", "{}"),),
        "It was not tried; it needs NCCL's example tuner plugin (NCCL_TUNER_PLUGIN).",
    ),
}


def format_named(evidence: Evidence, name: str | None) -> tuple[str, Format]:
    """None: the first of the library's."""
    for own, found in FORMATS.items():
        if own == name or (name is None and found.family == evidence.family):
            if found.family != evidence.family:
                raise UsageError(
                    "--format",
                    f"{own} is for {found.family}; the search ran under {evidence.library}",
                )
            return own, found
    raise UsageError("--format", f"there is none for {evidence.library}")


def about(evidence: Evidence) -> str:
    return f"written by hvprof-report tune for {evidence.library} and the kit {evidence.kit[:12]}"


def json_text(values: Any) -> str:
    return json.dumps(values, indent=1) + "\n"


FENCE = """\
# for {0} ranks a node, as far as the batch system tells
case "${{SLURM_TASKS_PER_NODE:-{0}}}" in
{0} | "{0}(x"*")") ;;
*) echo "not applied: {0} ranks a node are needed, not $SLURM_TASKS_PER_NODE" >&2; return 1 ;;
esac
"""


def fence(layout: Sequence[int]) -> str:
    """Not every format can tell ranks of a node; Slurm can."""
    return FENCE.format(layout[0]) if len(set(layout)) == 1 else ""


def settings_text(evidence: Evidence, rules: Sequence[Rule], chosen: Format, file: Path) -> str:
    """For a shell: `. tuned/settings.sh`. Without variables that take precedence over the file."""
    calls = by_call(rules) if evidence.family in SWITCHING else {}
    prefix = "OMPI_MCA_" if evidence.family == OPEN_MPI else ""
    return "".join(
        (
            f"# {about(evidence)}\n",
            fence(evidence.layout),
            *(f"unset {prefix}{variable_name(evidence.family, call)}\n" for call in calls),
            *(f"export {name}='{value.format(file)}'\n" for name, value in chosen.settings),
        )
    )


def span_text(rule: Rule, span: Span) -> str:
    sizes = units.size(span.low)
    if span.high > span.low:
        sizes += f" to {units.size(span.high)}"
    return f"{rule.call} of {sizes} on {rule.ranks} ranks: {span.candidate.text}"

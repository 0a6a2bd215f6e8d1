"""The first lines are the verdict: a collective in which the ranks of a communicator do not match
(another function, root or size); a circle of ranks that wait for each other; or the rank that the
others wait for, directly or not, and what it does: it is outside MPI, has ended, was killed, or
left no file; or ranks that negotiate, as Horovod's, without having handed over the tensors that
others wait for. Below is the evidence: on each communicator where a rank waits the position of each
rank in the sequence of collectives, the calls of each rank where they first differ, and the other
calls that ranks are in.

In a running job, calls count that have lasted for --after seconds. How long a killed rank's last
call lasted is unknown, so it counts in any case. If all ranks were killed, one is named only if
others began or ended calls --after seconds after it went quiet, or while it was waited for, or if
the ranks' CPU time was still read so much later. The last line says since when nothing moved. It
reads the ledgers and never asks the job. On another node than the job's it sees as much as the
copies of the ledgers there.

A thread that polls with MPI_Test or MPI_Iprobe is never in one call for long. In a run that was
killed a message may have been under way: a circle may have lasted only a moment.
"""

from __future__ import annotations

import argparse
import sys
from collections import namedtuple
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable

from ..base import by, checked, option, threshold, units
from ..display import tables
from ..run import process
from ..stuck import doing, wait_graph
from ..stuck.wait_graph import Killed, Position, Stuck, Wait
from . import Command, common

MOST_LINES = 12  # of a kind
IF_HUNG = "If the job hung before that"
MOST_CIRCLE = 8  # ranks of a circle that are written out


# what: killed, mismatch, circle, awaited, unhanded, together, nothing. is_sure: 0: it holds if the
# job hung before all of its ranks were killed.
Verdict = namedtuple("Verdict", "what text is_sure", defaults=[1])


seconds = checked(
    lambda word: float(word) if 0 <= float(word) <= 1e9 else None, "not a number of seconds"
)


def run(arguments: argparse.Namespace) -> None:
    run = common.open_selected(arguments, with_histograms=False)
    found = wait_graph.stuck(run, round(arguments.after * 1e9))
    unread = run.world_size - len(found.ranks)
    if arguments.json or arguments.csv:
        for_scripts(found, unread, arguments.csv)
    else:
        print("\n\n".join(map(common.lines_text, filter(None, blocks(found, unread)))))


def for_scripts(found: Stuck, unread: int, is_csv: bool) -> None:
    """As CSV all kinds have one header; a list of ranks is in one cell."""
    kinds: dict[str, Sequence[Any]] = {
        "verdict": verdicts(found, unread),
        "mismatch": found.mismatches,
        "awaited": found.awaited,
        "unhanded": found.unhanded,
        "wait": found.waits,
        "position": found.positions,
        "still": [found.still] if found.still else [],
        "circle": found.cycles,
    }
    records = [{"kind": kind, **row._asdict()} for kind, rows in kinds.items() for row in rows]
    fields = list(dict.fromkeys(key for record in records for key in record))
    cells = (
        [" ".join(map(str, cell)) if isinstance(cell, list) else cell for cell in row]
        for row in (map(record.get, fields) for record in records)
    )
    if is_csv:
        tables.write_csv(sys.stdout, fields, cells)
    else:
        tables.write_json(sys.stdout, records)


def blocks(found: Stuck, unread: int) -> list[list[str]]:
    """Lines that stand together."""
    others = _grouped(
        [wait for wait in found.waits if wait.sequence is None],
        lambda wait: wait_text(found, wait),
        lambda alike: wait_span(found, alike),
    )
    killed = found.killed.ranks if found.killed else []
    return [
        [verdict.text for verdict in verdicts(found, unread)],
        killed and ["Where they were", *_grouped(killed, doing.place_text, lambda _: "")],
        *communicator_blocks(found),
        others and ["Other calls", *others],
        [
            f"Nothing has moved since {units.timestamp(found.still.since_unix_ns)}: no rank began "
            f"or ended a call in the {units.duration(found.still.lasted_ns)} after that."
        ]
        if found.still
        else [],
    ]


def verdicts(found: Stuck, unread: int) -> list[Verdict]:
    said = [
        *_mismatch_verdicts(found),
        *_circle_verdicts(found),
        *_awaited_verdicts(found),
        *(
            Verdict(
                "unhanded",
                f"Rounds of a negotiation go on, but {one.text}; since "
                f"{units.timestamp(one.since_unix_ns)}, on {one.communicator}.",
                int(not found.killed),
            )
            for one in found.unhanded
        ),
    ]
    if found.killed:
        is_explained = any(verdict.is_sure for verdict in said)
        said = sorted(
            [*said, _killed_verdict(found.killed, is_explained or found.still is not None)],
            key=lambda verdict: (-verdict.is_sure, verdict.what == "killed"),
        )
    return (said or list(_together_verdicts(found)) or [_nothing(found, unread)])[:MOST_LINES]


def _killed_verdict(killed: Killed, is_explained: bool) -> Verdict:
    """All 4 ranks ended without MPI_Finalize: killed, or left by _exit or exec. Nothing shows that
    one ended first or hung: their last calls began or ended within 1.24 ms."""
    ranks = f"{len(killed.ranks)} ranks" + ("" if killed.is_whole else " that left a file")
    is_known = all(rank.state == "killed" for rank in killed.ranks)
    what = (
        f"All {ranks} {process.CUT_OFF}."
        if is_known
        else f"None of the {ranks} came to an end; whether they still run cannot be seen from here."
    )
    early = [rank.rank for rank in killed.ranks if killed.is_early(rank.rank)]
    if early and not is_explained:
        names = units.rank_names(early)
        lead = units.duration(min(killed.quiet_ns[rank] for rank in early))
        before = f"{lead}{' or more' if len(early) > 1 else ''} before the others"
        what += f" {units.capital(names)} went quiet {before}: ended first, or hung."
    elif not is_explained:
        what += (
            " Nothing shows that one ended first or hung: their last calls began or ended within "
            f"{units.duration(max(killed.quiet_ns.values()))}."
        )
    return Verdict("killed", what)


def _mismatch_verdicts(found: Stuck) -> Iterator[Verdict]:
    for rows in by(found.mismatches, lambda row: row.identity).values():
        first = rows[0]
        said = ", ".join(
            f"{units.rank_names([row.rank for row in alike])} called {made}"
            for made, alike in by(rows, made_text).items()
        )
        earlier = (
            "" if first.is_first else " It is the oldest on record: they may have differed before."
        )
        yield Verdict(
            "mismatch",
            f"Collective {first.sequence:,} on {first.communicator} does not match: {said}."
            f"{earlier}",
        )


def _circle_verdicts(found: Stuck) -> Iterator[Verdict]:
    for ranks, is_sure in found.cycles:
        text = ", ".join(
            f"{rank} waits for {following}" for rank, following in zip(ranks, ranks[1:] + ranks[:1])
        )
        if len(ranks) > MOST_CIRCLE:
            first = ", ".join(map(str, ranks[:MOST_CIRCLE]))
            text = f"{len(ranks)} ranks in a circle, {first}, ..., each for the next"
        said = f"A circle: {text}." if is_sure else f"{IF_HUNG}: a circle, {text}."
        yield Verdict("circle", said, is_sure)


def _awaited_verdicts(found: Stuck) -> Iterator[Verdict]:
    for awaited in found.awaited:
        waiting = units.rank_names(awaited.waiting)
        verb = "waits" if len(awaited.waiting) == 1 else "wait, directly or not,"
        named = units.rank_names(awaited.waited_for)
        which = "which" if len(awaited.waited_for) == 1 else "each of which"
        begin = units.capital(waiting) if awaited.is_sure else f"{IF_HUNG}: {waiting}"
        yield Verdict(
            "awaited", f"{begin} {verb} for {named}, {which} {awaited.why}.", awaited.is_sure
        )


def _together_verdicts(found: Stuck) -> Iterator[Verdict]:
    """Nobody in particular is waited for: all are in the same collective, or a message may come
    from anywhere."""
    alone = [wait for wait in found.waits if not wait.waited_for]
    for place, waits in by(alone, lambda wait: wait_text(found, wait)).items():
        names = units.rank_names([wait.rank for wait in waits])
        why = (
            "all of its ranks have begun it"
            if waits[0].sequence
            else "no rank in particular is waited for"
        )
        yield Verdict(
            "together", f"{units.capital(names)}: {place}{wait_span(found, waits)}; {why}."
        )


def _nothing(found: Stuck, unread: int) -> Verdict:
    """unread: ranks of which nothing can be said."""
    no, all_of = (
        ("no rank that was read", "all that were read") if unread else ("no rank", "all ranks")
    )
    states, longest = {rank.state for rank in found.ranks.values()}, found.longest
    text = f"Nothing is stuck: {no} is, or was when last heard of, inside a call."
    if states in ({"finalize"}, {"end"}):
        ended = "reached MPI_Finalize" if states == {"finalize"} else "ended"
        text = f"Nothing was stuck: {all_of} {ended}."
    elif longest:
        text = (
            f"Nothing is stuck: {no} has been in one call for longer than "
            f"{units.duration(longest.doing_ns)} (rank {longest.rank}, {longest.call})."
        )
    unknown = f" Nothing is known of {units.counted(unread, 'more rank')}." if unread else ""
    return Verdict("nothing", text + unknown)


def communicator_blocks(found: Stuck) -> Iterator[list[str]]:
    by_identity = by(found.positions, lambda row: row.identity)
    waits = by(
        [wait for wait in found.waits if wait.sequence], lambda wait: (wait.rank, wait.identity)
    )
    notable = [
        rows
        for rows in by_identity.values()
        if any(row.is_waiting or row.is_behind for row in rows)
    ][:MOST_LINES]
    for rows in notable:
        yield [
            rows[0].communicator,
            *_grouped(
                sorted(rows, key=lambda row: row.begun),
                lambda row: position_text(found, waits, row),
                lambda alike: position_span(found, waits, alike),
            ),
        ]
    quiet = len(by_identity) - len(notable)
    if quiet and found.waits:
        others = units.counted(quiet, "other communicator")
        yield [f"{others}: --json has how far each rank is there"]


def position_text(found: Stuck, waits: dict[tuple[int, str], list[Wait]], row: Position) -> str:
    """in MPI_Barrier, collective 13; behind, has begun 12, the last MPI_Bcast (8 B, root 0);
    outside MPI after MPI_Bcast"""
    for wait in waits.get((row.rank, row.identity), ()):
        return wait_text(found, wait, with_place=False)
    rank = found.ranks.get(row.rank)
    begun = (
        f"has begun {row.begun:,}" + (f", the last {made_text(row)}" if row.call else "")
        if row.begun
        else "has begun none"
    )
    place = doing.place_text(rank) if rank else "left no file"
    return f"{'behind, ' if row.is_behind else ''}{begun}; {place}"


def position_span(
    found: Stuck, waits: dict[tuple[int, str], list[Wait]], alike: list[Position]
) -> str:
    lasting = [wait for row in alike for wait in waits.get((row.rank, row.identity), ())[:1]]
    if lasting:
        return wait_span(found, lasting)
    return doing.span_text([found.ranks[row.rank] for row in alike if row.rank in found.ranks])


def wait_text(found: Stuck, wait: Wait, with_place: bool = True) -> str:
    """in MPI_Recv (4 B from rank 1, tag 3) on MPI_COMM_WORLD; in MPI_Barrier on MPI_COMM_WORLD,
    collective 13"""
    collective = f", collective {wait.sequence:,}" if wait.sequence else ""
    where = wait.communicator if with_place else None
    rank = found.ranks[wait.rank]._replace(
        doing_call=wait.call,
        doing_request_call=wait.request_call,
        doing_communicator=where,
        doing_bytes=wait.bytes,
        doing_peer=wait.peer,
        doing_tag=wait.tag,
    )
    return f"in {doing.call_text(rank)}{collective}"


def wait_span(found: Stuck, waits: list[Wait]) -> str:
    return doing.span_text(
        [found.ranks[wait.rank] for wait in waits], [wait.doing_ns for wait in waits]
    )


def made_text(row) -> str:
    """MPI_Bcast (64 B, root 0); no bytes are worth a word only where others have some."""
    details = (
        [units.size(row.bytes)]
        if row.bytes or (row.bytes == 0 and getattr(row, "what", "") == "bytes")
        else []
    )
    details += [f"root {row.root}"] if row.root is not None else []
    return row.call + (f" ({', '.join(details)})" if details else "")


def _grouped(rows: Iterable, text: Callable, span: Callable) -> list[str]:
    """One line for all ranks of which the same is to be said."""
    groups = list(by(rows, text).items())
    more = f"  and {len(groups) - MOST_LINES} more; --json has them all"
    return [
        *(
            f"  {units.rank_names([row.rank for row in alike])}: {said}{span(alike)}"
            for said, alike in groups[:MOST_LINES]
        ),
        *[more] * (len(groups) > MOST_LINES),
    ]


COMMANDS = {
    "stuck": Command(
        __doc__,
        (
            *common.RUN,
            option(
                "--after",
                type=seconds,
                default=threshold("stuck.after"),
                metavar="SECONDS",
                help="calls of a running job count from this duration on; of a job that was "
                "killed as a whole, waits up to the last call that any rank began or ended "
                "(default: %(default)g)",
            ),
            *tables.FORMS,
        ),
        run,
        (("A job that makes no progress", "hvprof-report stuck commprof-train.py-1234"),),
        ("summary", "top"),
    )
}

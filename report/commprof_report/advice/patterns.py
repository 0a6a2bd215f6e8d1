"""Rules about how a program calls MPI: polls, overlap, barriers, blocking messages, staging."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base import units
from ..calls.calls import poll_rows
from ..calls.sizes import SizeRow, reduce_bcast_rows, size_rows
from ..gpu.copied import CopiedRow, copied_rows
from ..late.sentences import unfinished_text
from ..run.seen import merged, missing, reason_text
from . import basis
from .findings import (
    LIKELY, MANY, MOSTLY, POSSIBLE, SURE, Finding, Unknown, background, is_notable_time,
    waiting_text,
)
from .inputs import Inputs
from .late_ranks import waited_for

LITTLE_OVERLAP = 0.1
FEW_MORE = 0.1  # Bcasts than Reduces, or the reverse: what is handed out at the start or at the end
# of the bytes in MPI calls: copies that come to less (a batch of data, a loss) say nothing
STAGED = 0.1


def polling(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Calls that looked for something and found nothing. The saving from fewer of them is unknown:
    the program may only be waiting in them."""
    rows = poll_rows(inputs.run.connection)
    if rows and inputs.is_beside_main_mostly:
        yield background(inputs)
        return
    for row in rows:
        if row.polls >= MANY * inputs.ranks and is_notable_time(row.poll_ns, inputs):
            yield Finding(
                f"{row.call} finds nothing most of the time"
                if row.polls > row.found
                else f"{row.call} often finds nothing",
                f"{units.count(row.polls)} of {units.count(row.polls + row.found)} calls found "
                f"nothing and took {inputs.per_rank(row.poll_ns)}",
                "look less often where there is other work to do; where there is none, MPI_Wait or "
                "MPI_Probe takes as long. Polling makes"
                " progress too, so measure before and after",
                POSSIBLE,
                None,
                row.call,
            )


def overlap(inputs: Inputs) -> Iterator[Finding]:
    """Nonblocking operations that are waited for nearly all the time: what they are blocked without
    waiting for late ranks, no more than all completing calls last, less what these are known to
    wait for other operations. Messages of a communicator are mostly waited for together, and
    communicators of one family do the same: they are one."""
    waits_ns = sum(call.total_ns for call in inputs.answers.calls if call.family == "completion")
    completed = size_rows(inputs.run.connection, completion=True)
    nonblocking = {row.call for row in completed}
    alike: dict[tuple[str, object], list[SizeRow]] = {}
    for rows in _not_overlapped(completed):
        call, family, identity = rows[0].call, rows[0].family, rows[0].identity
        what = family if family == "point-to-point" else call
        alike.setdefault((what, inputs.family(identity)), []).extend(rows)
    for rows in alike.values():
        blocked_ns = sum(row.blocked_ns for row in rows)
        share = min(1.0, blocked_ns / sum(row.total_ns for row in rows))
        calls, identities = (
            sorted({row.call for row in rows}), sorted({row.identity for row in rows}),
        )
        others = [
            row for row in inputs.late.calls
            if row.call in nonblocking and not (row.call in calls and row.identity in identities)
        ]
        spent_ns = min(
            blocked_ns,
            max(0, waits_ns - sum((row.wait_ns or 0) + (row.transfer_ns or 0) for row in others)),
        )
        waiting = inputs.waiting(calls, spent_ns, identities)
        yield Finding(
            f"{' and '.join(calls)} {'overlap' if len(calls) > 1 else 'overlaps'} with nothing on "
            f"{inputs.where(identities)}",
            f"{units.count(sum(row.count for row in rows))} operations; {units.share(share)} of "
            "the time from start to completion is spent"
            " in the calls that start them and wait for them, "
            f"{inputs.per_rank(spent_ns)}{waiting_text(waiting)}",
            "compute between the call and its Wait; if the program does, the library makes no "
            "progress meanwhile: call MPI_Test now and"
            " then, or use its progress thread",
            POSSIBLE,
            spent_ns * (1 - (waiting or 0)),
            max(rows, key=lambda row: row.blocked_ns).call,
            identities,
        )


def _not_overlapped(sizes: Sequence[SizeRow]) -> Iterator[list[SizeRow]]:
    """The sizes of one call on one communicator."""
    operations: dict[tuple[str, str], list[SizeRow]] = {}
    for row in sizes:
        operations.setdefault((row.call, row.identity), []).append(row)
    for rows in operations.values():
        completion_ns = sum(row.total_ns for row in rows)
        if (
            completion_ns
            and sum(row.blocked_ns for row in rows) >= (1 - LITTLE_OVERLAP) * completion_ns
        ):
            yield rows


def reduce_and_bcast(inputs: Inputs) -> Iterator[Finding]:
    """About as many Reduces as Bcasts of one size on a communicator. How long an Allreduce would
    take here is not known."""
    seen = {(row.identity, row.bytes) for row in reduce_bcast_rows(inputs.run.connection)}
    alike: dict[tuple, list[tuple[SizeRow, SizeRow]]] = {}
    for reduce, bcast in _reduces_and_bcasts(inputs):
        alike.setdefault(
            (inputs.family(reduce.identity), reduce.memory_kind, reduce.bytes), []
        ).append((reduce, bcast))
    for pairs in alike.values():
        reduces, bcasts = zip(*pairs)
        identities, size = [row.identity for row in reduces], units.size(reduces[0].bytes)
        is_seen = all((identity, reduces[0].bytes) in seen for identity in identities)
        reduce_ns, bcast_ns = (
            sum(row.total_ns for row in reduces), sum(row.total_ns for row in bcasts),
        )
        if is_notable_time(min(reduce_ns, bcast_ns), inputs):
            reduce_count, bcast_count = (
                sum(row.count for row in reduces), sum(row.count for row in bcasts),
            )
            yield Finding(
                f"one MPI_Allreduce in place of MPI_Reduce and MPI_Bcast of {size} on "
                f"{inputs.where(identities)}",
                f"{_pairs_text(reduce_count, bcast_count)} of {size}; Reduce takes "
                f"{inputs.per_rank(reduce_ns)}, Bcast {inputs.per_rank(bcast_ns)}"
                + ("; the last of them follow each other" if is_seen else ""),
                "if the Bcast hands out what the Reduce has summed, an Allreduce does both, in "
                "many libraries in less time: measure it",
                SURE if is_seen else LIKELY,
                None,
                reduces[0].call,
                identities,
                reduces[0].bytes,
            )


def _reduces_and_bcasts(inputs: Inputs) -> Iterator[tuple[SizeRow, SizeRow]]:
    """Pairs of a Reduce and a Bcast of one size on a communicator, if there are about as many of
    each."""
    rows = [row for row in inputs.sizes if not row.is_folded and row.bytes]
    bcasts = {
        (row.identity, row.memory_kind, row.bytes): row for row in rows if row.call == "MPI_Bcast"
    }
    for row in rows:
        bcast = bcasts.get((row.identity, row.memory_kind, row.bytes))
        if row.call == "MPI_Reduce" and bcast is not None and _are_pairs(row.count, bcast.count):
            yield row, bcast


def _are_pairs(reduces: int, bcasts: int) -> bool:
    return min(reduces, bcasts) >= MANY and abs(reduces - bcasts) <= FEW_MORE * min(reduces, bcasts)


def _pairs_text(reduces: int, bcasts: int) -> str:
    return (
        f"{units.count(reduces)} of each," if reduces == bcasts
        else f"{units.count(reduces)} Reduces and {units.count(bcasts)} Bcasts"
    )


def waiting_messages(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """Blocking point-to-point calls: what they wait; if that is not known, what they take beyond
    the least time of their size."""
    calls: dict[str, list[SizeRow]] = {}
    for row in inputs.sizes:
        if basis.is_message(row):
            calls.setdefault(row.call, []).append(row)
    for call, rows in calls.items():
        total_ns, least_ns = (
            sum(row.total_ns for row in rows), sum(row.count * row.min_ns for row in rows),
        )
        waiting = inputs.waiting([call], total_ns)
        worst = max(rows, key=lambda row: row.total_ns - row.count * row.min_ns)
        late_share = inputs.late_share(call)
        if late_share:
            yield Unknown(waited_for(inputs.late.run.late_ranks))
        if (
            waiting is None and is_notable_time(total_ns, inputs)
            and not is_notable_time(total_ns - least_ns, inputs)
        ):
            yield Unknown(
                f"all calls of {call} take about as long; they may all wait, but single calls are "
                "not known"
            )
        yield Finding(
            f"{call} waits for the other side",
            f"{_calls_take(sum(row.count for row in rows))} {inputs.per_rank(total_ns)}; "
            + (
                f"if each took what the fastest of its size does, {inputs.per_rank(least_ns)}"
                if waiting is None else f"{units.share(waiting)} of it is waiting for the other "
                f"side{_late_part(inputs, late_share)}"
            )
            + f". Most of it at {units.size(worst.bytes)}, {units.duration(worst.p50_ns)} in the "
            f"median, {units.duration(worst.min_ns)} at"
            " least",
            "if there is other work to do meanwhile, post receives early (MPI_Irecv) and wait "
            "late; `pipeline` and `peers` show who sends to"
            " whom",
            POSSIBLE,
            total_ns - least_ns if waiting is None else total_ns * waiting * (1 - late_share),
            call,
            [worst.identity],
            worst.bytes,
        )


def _late_part(inputs: Inputs, late_share: float) -> str:
    return (
        f", {units.share(late_share)} of that because of "
        f"{units.rank_names(list(inputs.late.blame.named.ranks))}" if late_share else ""
    )


def _calls_take(number: int) -> str:
    return f"{units.counted(number, 'call')} {'takes' if number == 1 else 'take'}"


def barriers(inputs: Inputs) -> Iterator[Finding]:
    """Barriers: the time in them that is not waiting for late ranks."""
    for call in inputs.answers.calls:
        if call.call == "MPI_Barrier":
            waiting = inputs.waiting([call.call], call.total_ns)
            yield Finding(
                "MPI_Barrier costs time",
                f"{_calls_take(call.count)} "
                f"{inputs.per_rank(call.total_ns)}{waiting_text(waiting)}",
                "leave out those that nothing needs: collectives and messages order themselves; "
                "what ranks wait here for a late one they may"
                " then wait elsewhere",
                POSSIBLE,
                call.total_ns * (1 - (waiting or 0)),
                call.call,
            )


def staging(inputs: Inputs) -> Iterator[Finding | Unknown]:
    """MPI has host buffers only, and GPUs copy about as much to the host and back: what these
    copies took."""
    summary = inputs.answers.summary
    copied = copied_rows(inputs.run.connection)
    if summary.device_volume_share:
        return
    volumes = [row.volume_bytes for row in copied]
    if (
        len(copied) == 2 and min(volumes) >= MOSTLY * max(volumes)
        and max(volumes) >= STAGED * summary.volume_bytes > 0
    ):
        yield Finding(
            "hand GPU buffers to MPI",
            f"MPI calls have host buffers only ({units.volume(summary.volume_bytes)}), and GPUs "
            f"copied {_copies_text(copied)} while they were"
            " traced: it looks staged, though what was copied for MPI is not known",
            "if the MPI library is CUDA-aware, pass it device pointers; or let NCCL move what lies "
            "on GPUs",
            POSSIBLE,
            sum(row.total_ns for row in copied),
        )


def _copies_text(copied: Sequence[CopiedRow]) -> str:
    """1.20 GB to host (0.31 s) and 1.20 GB to device (0.29 s)"""
    said = [
        f"{units.volume(row.volume_bytes)} {row.copy} ({units.duration(row.total_ns)})"
        for row in reversed(copied)
    ]
    return " and ".join(said)


def gaps(inputs: Inputs) -> Iterator[Finding]:
    """Findings on what the profile lacks."""
    if inputs.late.unfinished:
        evidence = "all figures are of finished calls: what ranks wait in these is no part of them"
        yield Finding(
            unfinished_text(inputs.late), evidence, "`stuck` says who waits for whom", SURE
        )
    lacking, together = missing(inputs.answers.seen), merged(inputs.answers.seen)
    if lacking or together:
        title = "this profile is not complete" if lacking else "this profile could tell more apart"
        ways_out = dict.fromkeys(row.way_out for row in [*lacking, *together] if row.way_out)
        evidence = "; ".join(map(reason_text, [*lacking, *together]))
        yield Finding(title, evidence, "; ".join(ways_out) or "`seen` lists what is missing", SURE)

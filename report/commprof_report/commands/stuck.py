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
import secrets
import shutil
import sys
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from operator import attrgetter
from typing import Any, Optional, Tuple

from ..base import (
    by,
    checked,
    column,
    Field,
    gathered,
    option,
    print_note,
    ReportError,
    Row,
    threshold,
    units,
)
from ..display import render
from ..run import CUT_OFF, Run, run_open, selection
from ..stuck import doing
from . import Command, common

AFTER_S = threshold("stuck.after")
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
    found = doing.stuck(run, round(arguments.after * 1e9))
    unread = run.world_size - len(found.ranks)
    if arguments.json or arguments.csv:
        for_scripts(found, unread, arguments.csv)
    else:
        print("\n\n".join(map(common.lines_text, filter(None, blocks(found, unread)))))


def for_scripts(found: doing.Stuck, unread: int, is_csv: bool) -> None:
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
        render.write_csv(sys.stdout, fields, cells)
    else:
        render.write_json(sys.stdout, records)


def blocks(found: doing.Stuck, unread: int) -> list[list[str]]:
    """Lines that stand together."""
    others = _grouped(
        found,
        [
            (wait.rank, wait_text(found, wait), wait.doing_ns)
            for wait in found.waits
            if wait.sequence is None
        ],
    )
    killed = found.killed.ranks if found.killed else []
    places = _grouped(found, [(rank.rank, doing.place_text(rank), None) for rank in killed])
    return [
        [verdict.text for verdict in verdicts(found, unread)],
        killed and ["Where they were", *places],
        *communicator_blocks(found),
        others and ["Other calls", *others],
        [
            f"Nothing has moved since {units.timestamp(found.still.since_unix_ns)}: no rank began "
            f"or ended a call in the {units.duration(found.still.lasted_ns)} after that."
        ]
        if found.still
        else [],
    ]


def verdicts(found: doing.Stuck, unread: int) -> list[Verdict]:
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


def _killed_verdict(killed: doing.Killed, is_explained: bool) -> Verdict:
    """All 4 ranks ended without MPI_Finalize: killed, or left by _exit or exec. Nothing shows that
    one ended first or hung: their last calls began or ended within 1.24 ms."""
    ranks = f"{len(killed.ranks)} ranks" + ("" if killed.is_whole else " that left a file")
    is_known = all(rank.state == "killed" for rank in killed.ranks)
    what = (
        f"All {ranks} {CUT_OFF}."
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


def _mismatch_verdicts(found: doing.Stuck) -> Iterator[Verdict]:
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


def _circle_verdicts(found: doing.Stuck) -> Iterator[Verdict]:
    for ranks, is_sure in found.cycles:
        text = ", ".join(
            f"{rank} waits for {following}" for rank, following in zip(ranks, ranks[1:] + ranks[:1])
        )
        if len(ranks) > MOST_CIRCLE:
            first = ", ".join(map(str, ranks[:MOST_CIRCLE]))
            text = f"{len(ranks)} ranks in a circle, {first}, ..., each for the next"
        said = f"A circle: {text}." if is_sure else f"{IF_HUNG}: a circle, {text}."
        yield Verdict("circle", said, is_sure)


def _awaited_verdicts(found: doing.Stuck) -> Iterator[Verdict]:
    for awaited in found.awaited:
        waiting = units.rank_names(awaited.waiting)
        verb = "waits" if len(awaited.waiting) == 1 else "wait, directly or not,"
        named = units.rank_names(awaited.waited_for)
        which = "which" if len(awaited.waited_for) == 1 else "each of which"
        begin = units.capital(waiting) if awaited.is_sure else f"{IF_HUNG}: {waiting}"
        yield Verdict(
            "awaited", f"{begin} {verb} for {named}, {which} {awaited.why}.", awaited.is_sure
        )


def _together_verdicts(found: doing.Stuck) -> Iterator[Verdict]:
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


def _nothing(found: doing.Stuck, unread: int) -> Verdict:
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


def communicator_blocks(found: doing.Stuck) -> Iterator[list[str]]:
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
                found,
                [
                    position_said(found, row, waits.get((row.rank, row.identity), [])[:1])
                    for row in sorted(rows, key=lambda row: row.begun)
                ],
            ),
        ]
    quiet = len(by_identity) - len(notable)
    if quiet and found.waits:
        others = units.counted(quiet, "other communicator")
        yield [f"{others}: --json has how far each rank is there"]


Said = Tuple[int, str, Optional[int]]  # a rank, what of it, and for how long, if that is known


def position_said(found: doing.Stuck, row: doing.Position, waits: Sequence[doing.Wait]) -> Said:
    """in MPI_Barrier, collective 13; behind, has begun 12, the last MPI_Bcast (8 B, root 0);
    outside MPI after MPI_Bcast. waits: the rank's there, if it is in one."""
    for wait in waits:
        return row.rank, wait_text(found, wait, with_place=False), wait.doing_ns
    rank = found.ranks.get(row.rank)
    begun = (
        f"has begun {row.begun:,}" + (f", the last {made_text(row)}" if row.call else "")
        if row.begun
        else "has begun none"
    )
    place = doing.place_text(rank) if rank else "left no file"
    text = f"{'behind, ' if row.is_behind else ''}{begun}; {place}"
    return row.rank, text, rank and rank.doing_ns


def wait_text(found: doing.Stuck, wait: doing.Wait, with_place: bool = True) -> str:
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


def wait_span(found: doing.Stuck, waits: list[doing.Wait]) -> str:
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


def _grouped(found: doing.Stuck, said: Iterable[Said]) -> list[str]:
    """One line for all ranks of which the same is to be said."""
    groups = list(gathered((text, (rank, ns)) for rank, text, ns in said).items())
    more = f"  and {len(groups) - MOST_LINES} more; --json has them all"
    return [
        *(
            f"  {units.rank_names(ranks)}: {text}"
            + doing.span_text([found.ranks[rank] for rank in ranks if rank in found.ranks], spans)
            for text, alike in groups[:MOST_LINES]
            for ranks, spans in [zip(*alike)]
        ),
        *[more] * (len(groups) > MOST_LINES),
    ]


# The page is served by Python's own HTTP server, to this machine alone. Whoever does not know the
# address, which holds a random token, finds nothing.

REST = 4  # times as long as a look takes
MOST_WIDTH = 160  # of a line where there is no terminal
NOTABLE = threshold("commands.top")
MOST_RANKS = 64
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
HOME, CLEAR_LINE, CLEAR_REST = "\033[H", "\033[K", "\033[J"


# A rank between two looks; the row and the amounts are those of the later one. device_share: of
# operations of NCCL, of several streams added up, at most 1; gpu_share: of the time summed up for
# GPUs, null: nothing was.
Rates = namedtuple(
    "Rates",
    "row amounts interval_ns calls_per_s bytes_per_s device_share mpi_share collective_share "
    "gpu_share",
)


# One look at the run. ranks: in the order that was asked for; those that have ended are left out,
# unless all have. end: who ended how; empty: the run goes on.
Screen = namedtuple("Screen", "is_first head columns ranks end")


ORDERS = {
    "rank": lambda rates: rates.row.rank,
    "calls": lambda rates: -rates.calls_per_s,
    "bytes": lambda rates: -rates.bytes_per_s,
    "mpi": lambda rates: -rates.mpi_share,
    "collectives": lambda rates: rates.collective_share,
}
COLUMNS = (
    column("rank", lambda rates: str(rates.row.rank)),
    column("host", lambda rates: units.shortened(rates.row.host or "", 16), False),
    column("calls/s", lambda rates: units.count(round(rates.calls_per_s))),
    column("bytes", lambda rates: units.bandwidth(rates.bytes_per_s)),
    column("in MPI", lambda rates: units.share(rates.mpi_share)),
    column("collectives", lambda rates: units.share(rates.collective_share)),
    column("NCCL on device", lambda rates: units.share(rates.device_share)),
    column("GPU busy", lambda rates: units.share(rates.gpu_share)),
    column("now", lambda rates: now_text(rates.row), False),
)


port = checked(lambda word: int(word) if 0 <= int(word) < 1 << 16 else None, "not a port")


def top(arguments: argparse.Namespace) -> None:
    """Shows calls and bytes per second, the share of time inside MPI and inside collectives, and
    what each rank is in. The first screen is an average since the start, each other one is over the
    time since the one before; the calls that ranks are in at that time count. A rank that comes
    late spends less time in collectives than the others, which wait there; so does the root of a
    Bcast. hvprof-report-late(1) tells which. Where NCCL alone is used, it is the time of its
    operations on the device.

    "GPU busy" is the share in which the rank's GPUs ran anything, of the traced time that was
    summed up between the two looks; "-": none was, as between windows. It lags by what CUPTI has
    not handed over yet: a second, and on a GPU that never idles the time of 303 kernels.

    On a terminal the screen is redrawn and holds as many ranks as fit; elsewhere each screen is a
    block of plain text. It reads ledgers and asks nothing of the job. After each reading it rests
    at least four times as long as the reading took. Ctrl-C ends it.

    With --web the screens are a page that a browser on this machine shows, at an address that
    nobody can guess; the whole page of hvprof-report-html(1), of the moment at which it is asked
    for, is linked there. From elsewhere, `ssh -L PORT:127.0.0.1:PORT HOST` brings the browser to
    it."""
    try:
        if arguments.web is None:
            watch(arguments, show)
        else:
            serve(arguments)
    except KeyboardInterrupt:
        print()


def serve(arguments: argparse.Namespace) -> None:
    """Goes on after the run's end, so that it can still be read."""
    with LivePage(arguments) as live:
        threading.Thread(target=live.serve_forever, daemon=True).start()
        try:
            common.print_line(live.address)
            sys.stdout.flush()
            watch(arguments, live.show)
            if not arguments.count:
                live.wait()
        finally:
            live.shutdown()


def watch(arguments: argparse.Namespace, show: Callable[[Screen], None]) -> None:
    before: dict[int, Rates] = {}
    shown = 0
    while True:
        began_s = time.monotonic()
        run, rows = look(arguments)
        ranks = [rates(before.get(row.rank), row, amounts) for row, amounts in rows]
        show(screen(run, ranks, arguments.sort, is_first=not before))
        shown += 1
        if all(row.state in doing.ENDS for row, _ in rows) or shown == arguments.count:
            break
        before = {rank.row.rank: rank for rank in ranks}
        looked_s = time.monotonic() - began_s
        time.sleep(max(arguments.every - looked_s, REST * looked_s))


def look(arguments: argparse.Namespace) -> tuple[Run, list[tuple[Row, doing.Amounts]]]:
    run = run_open(arguments.run, with_histograms=False)
    selection.select(run, arguments)
    return run, doing.live_rows(run.connection)


def rates(before: Rates | None, row: Row, amounts: doing.Amounts) -> Rates:
    """Since the look before; since the start where there was none, or the counters were set to zero
    meanwhile. A copy of a ledger that has not been renewed has nothing new to say."""
    if before and before.row.wall_ns == row.wall_ns:
        return before._replace(row=row)
    earlier = doing.Amounts(
        max(row.reset_unix_ns - row.start_unix_ns, 0) if row.reset_unix_ns else 0,
        *[0] * (len(amounts) - 1),
    )
    if before and before.row.reset_unix_ns == row.reset_unix_ns:
        earlier = before.amounts
    interval_ns, *spent, traced_ns, busy_ns = (
        max(0, now - then) for now, then in zip(amounts, earlier)
    )
    calls, moved, *times = (each / interval_ns if interval_ns else 0.0 for each in spent)
    shares = [*(min(1.0, each) for each in times), busy_ns / traced_ns if traced_ns else None]
    return Rates(row, amounts, interval_ns, calls * 1e9, moved * 1e9, *shares)


def screen(run: Run, ranks: Sequence[Rates], order: str, is_first: bool) -> Screen:
    alive = [rank for rank in ranks if rank.row.state not in doing.ENDS]
    shown = alive or ranks
    span = units.duration(max((rank.interval_ns for rank in shown), default=0))
    calls_per_s, bytes_per_s, in_mpi = (
        sum(getattr(rank, key) for rank in shown)
        for key in ("calls_per_s", "bytes_per_s", "mpi_share")
    )
    of_state = gathered((rank.row.state, rank.row.rank) for rank in ranks)
    ended = (
        f"{units.rank_names(of_state[state])} {end}"
        for state, end in doing.ENDS.items()
        if state in of_state
    )
    return Screen(
        is_first,
        [
            f"{run.path.resolve().name}: {len(alive)} of {units.counted(run.world_size, 'rank')} "
            f"running, {units.timestamp(time.time_ns())}, "
            f"{'since the start' if is_first else f'the last {span}'}",
            f"all together: {units.count(round(calls_per_s))} calls/s, "
            f"{units.bandwidth(bytes_per_s)}, {units.share(in_mpi / len(shown))} of the time in "
            "MPI on average",
            least_text(alive),
            *(f"behind now: {one.text}" for one in doing.unhanded(run.connection, 1)),
        ],
        columns_of(ranks),
        sorted(shown, key=ORDERS[order]),
        "" if alive else f"The run has ended: {'; '.join(ended)}.",
    )


def columns_of(ranks: Sequence[Rates]) -> list[Field]:
    shown = {
        "NCCL on device": any(rank.row.nccl_count or rank.amounts.device_ns for rank in ranks),
        "GPU busy": any(rank.amounts.traced_ns for rank in ranks),
    }
    return [column for column in COLUMNS if shown.get(column.head, True)]


def least_text(alive: Sequence[Rates]) -> str:
    """Who comes last to collectives spends least time in them: the others wait inside. Where nobody
    is in MPI's, NCCL's on the device."""
    by_device = not any(rank.collective_share for rank in alive) and any(
        rank.device_share for rank in alive
    )
    share, where = (
        (attrgetter("device_share"), "NCCL's operations")
        if by_device
        else (attrgetter("collective_share"), "collectives")
    )
    if len(alive) < 2:
        return f"least time in {where}: nobody to compare"
    if not any(map(share, alive)):
        return f"least time in {where}: no rank was in any"
    least = min(alive, key=share)
    others = sum(share(rank) for rank in alive if rank is not least) / (len(alive) - 1)
    if others - share(least) < NOTABLE:
        return f"least time in {where}: all ranks about the same"
    return (
        f"least time in {where}: rank {least.row.rank}, {units.share(share(least))}; the others "
        f"{units.share(others)} on average"
    )


def now_text(row: Row) -> str:
    if row.state in doing.ENDS:
        return doing.ENDS[row.state]
    as_of = f" (as of {units.timestamp(row.last_unix_ns)})" if row.is_copy else ""
    span = f", for {units.duration(row.doing_ns)}" if row.doing_ns is not None else ""
    return doing.place_text(row) + span + as_of


def show(screen: Screen) -> None:
    """On a terminal over the last one, as many ranks as fit; else below it."""
    is_terminal = sys.stdout.isatty()
    width, height = shutil.get_terminal_size((MOST_WIDTH, 0)) if is_terminal else (MOST_WIDTH, 0)
    fitting = screen.ranks[: max(1, height - len(screen.head) - 4)] if height else screen.ranks
    lines = [*screen.head, "", *render.text_table(screen.columns, fitting).splitlines()]
    if len(fitting) < len(screen.ranks):
        lines.append(f"... and {len(screen.ranks) - len(fitting)} more ranks")
    text = [units.visible(line[: width - 1]) for line in lines]
    if is_terminal:
        print(
            (CLEAR_REST if screen.is_first else "")
            + HOME
            + "\n".join(line + CLEAR_LINE for line in text)
            + f"\n{CLEAR_REST}",
            end="",
        )
    else:
        print(("" if screen.is_first else "\n") + "\n".join(text))
    if screen.end:
        common.print_line(screen.end)
    sys.stdout.flush()


class LivePage(ThreadingHTTPServer):
    """The page of one run, as the command has seen it last: it takes no orders. A request for the
    whole page alone reads the run again, one at a time."""

    daemon_threads = True

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments, self.token = arguments, secrets.token_urlsafe(16)
        self.title, self.now, self.reading = "commprof", "", threading.Lock()
        try:
            super().__init__(("127.0.0.1", arguments.web), Handler)
        except OSError as error:
            raise ReportError(
                f"port {arguments.web}", f"no page can be shown there: {error.strerror}"
            ) from None
        self.address = f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def show(self, screen: Screen) -> None:
        self.title = screen.head[0].partition(":")[0]
        self.now = "\n".join(parts(screen))

    def wait(self) -> None:
        """Until Ctrl-C."""
        threading.Event().wait()

    def answer(self, path: str) -> str | None:
        """None: there is no such page."""
        _, token, name = (*path.split("/", 2), "", "")[:3]
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return None
        if name == "page":
            from . import html  # all analyses, which only this page needs

            with self.reading:
                run = common.open_selected(self.arguments, with_samples=True)
                return html.page_of(run)
        every_s = self.arguments.every
        return {
            "": render.live_page(f"commprof: {self.title}", self.now, every_s),
            "now": self.now,
        }.get(name)

    def handle_error(self, _request: object, _client_address: object) -> None:
        """Clients break connections at any time; other errors are ours."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            print_note(f"the page could not be shown: {type(error).__name__} {error}")


class Handler(BaseHTTPRequestHandler):
    timeout = 30  # seconds
    server: LivePage

    def do_GET(self) -> None:
        try:
            found, status = self.server.answer(self.path), HTTPStatus.OK
        except ReportError as error:
            found, status = render.text(error), HTTPStatus.SERVICE_UNAVAILABLE
        if found is None:
            found, status = "", HTTPStatus.NOT_FOUND
        body = found.encode("utf-8", "replace")
        with suppress(ConnectionError):  # the browser no longer wants it
            self.send_response(status)
            for name, value in {**HEADERS, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    def version_string(self) -> str:
        return "hvprof-report"

    def log_message(self, *_: object) -> None:
        """The terminal is the user's."""


def parts(screen: Screen) -> list[str]:
    title, _, head = screen.head[0].partition(": ")
    most = "are shown; --sort and --rank choose others"
    return [
        render.header(title, [head, *screen.head[1:], *filter(None, [screen.end])], [], []),
        render.section("Ranks", "", render.table(screen.columns, screen.ranks, MOST_RANKS, most)),
        '<p><a href="page">The whole page, of this moment</a></p>',
    ]


COMMANDS = {
    "stuck": Command(
        __doc__,
        (
            *common.RUN,
            option(
                "--after",
                type=seconds,
                default=AFTER_S,
                metavar="SECONDS",
                help="calls of a running job count from this duration on; of a job that was "
                "killed as a whole, waits up to the last call that any rank began or ended "
                "(default: %(default)g)",
            ),
            *render.FORMS,
        ),
        run,
        (("A job that makes no progress", "hvprof-report stuck commprof-train.py-1234"),),
        ("summary", "top"),
    ),
    "top": Command(
        top.__doc__,
        (
            *common.RUN,
            *selection.OPTIONS,
            option(
                "--every",
                type=seconds,
                default=2.0,
                metavar="SECONDS",
                help="between two looks (default: %(default)g)",
            ),
            option(
                "--count",
                type=int,
                default=0,
                metavar="N",
                help="end after so many screens (default: with the run); 1 gives one block for a "
                "script",
            ),
            option(
                "--sort",
                choices=tuple(ORDERS),
                default="collectives",
                help="by what (default: %(default)s, least first)",
            ),
            option(
                "--web",
                type=port,
                metavar="PORT",
                help="show a page there instead, until Ctrl-C; 0: a port that is free",
            ),
        ),
        top,
        (
            ("What the job does now", "hvprof-report top commprof-train.py-1234"),
            (
                "A line of all ranks together each minute, for a log",
                "hvprof-report top --every 60 RUN | grep 'all together'",
            ),
            ("In a browser on this machine", "hvprof-report top --web 8080 RUN"),
        ),
        ("export", "html", "stuck"),
    ),
}

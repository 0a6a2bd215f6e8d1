"""The doings of ranks, now or at their last sign of life: in words, as sums of their calls up to
now, and which of them have not handed over tensors that others offer in a negotiation.

Which ranks wait for which, and why: positions in collectives, mismatches, and the graph of
waits. docs/METHODS.md has the rules.

    rank --> rank                     a point-to-point call that names its peer, or a root that has
                                      not begun
    rank --> list of ranks --> rank   a collective that it is in, and those that it needs and that
                                      have not begun it

Most ranks inside a collective need the same ones. So they share the list, and the graph grows with
the ranks, not with their square.

A circle in this graph cannot resolve itself. Otherwise every path ends at a rank that waits for no
particular rank: it is the likely cause.

The time at which a rank was killed is unknown. If all ranks were killed, a wait may be an ordinary
one of a healthy step that the kill interrupted. Unless other ranks continued meanwhile, it is only
possible (`is_sure` 0), and no rank is named as the cause.
"""

from __future__ import annotations

from collections import Counter, namedtuple
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import attrgetter
from typing import Union

from ..base import (
    Connection,
    Row,
    View,
    by,
    gathered,
    present,
    query,
    summarize,
    total,
    units,
)
from ..calls import (
    is_call,
    is_device,
    is_in_mpi,
    is_working,
    rank_rows,
)
from ..run import CUT_OFF, PEER_ANY, PEER_OUTSIDE, Run, cells_of

ENDS = {  # by state
    "finalize": "reached MPI_Finalize",
    "end": "ended",
    "killed": CUT_OFF,
    "exit": "left without MPI_Finalize",
    "abort": "called MPI_Abort",
    "snapshot": "left a snapshot",
}
# in these states the last call lasted until the last known time
SURE_OF_TIME = ("running", "snapshot", "exit", "abort")


# Ranks with the same description. place: the call that they are in or returned from, without times.
Group = namedtuple("Group", "state ranks place names")


def groups(ranks: Sequence[Row], states: Sequence[str]) -> list[Group]:
    """Groups of ranks, in the order of the states, then of the lowest rank."""
    found = by(ranks, lambda rank: (rank.state, rank.abort_code, place_text(rank)))
    made = [
        Group(state, own, place, units.rank_names([rank.rank for rank in own]))
        for (state, _, place), own in found.items()
        if state in states
    ]
    return sorted(made, key=lambda group: (states.index(group.state), group.ranks[0].rank))


def place_text(rank: Row) -> str:
    """in MPI_Recv (4 KiB from rank 1, tag 7) on MPI_COMM_WORLD; outside MPI since MPI_Bcast."""
    if rank.doing_call is None:
        return "before its first call of MPI"
    if not rank.doing_is_inside:
        return (
            f"outside {'NCCL' if rank.doing_call.startswith('nccl') else 'MPI'} after "
            f"{rank.doing_call}"
        )
    return "in " + call_text(rank)


def call_text(rank: Row) -> str:
    """MPI_Wait for MPI_Irecv (4 KiB from rank 1) on MPI_COMM_WORLD. The rank is in a call."""
    call = present(rank.doing_call)
    name = call + (f" for {rank.doing_request_call}" if rank.doing_request_call else "")
    what = [units.size(rank.doing_bytes)] if rank.doing_bytes else []
    what += (
        [peer_text(rank.doing_request_call or call, rank.doing_peer)]
        if rank.doing_peer is not None
        else []
    )
    details = [" ".join(what)] if what else []
    details += (
        [f"tag {rank.doing_tag}"] if rank.doing_tag is not None and rank.doing_tag >= 0 else []
    )
    where = f" on {units.shortened(rank.doing_communicator, 32)}" if rank.doing_communicator else ""
    return name + (f" ({', '.join(details)})" if details else "") + where


def peer_text(call: str, peer: int) -> str:
    name = {PEER_ANY: "any rank", PEER_OUTSIDE: "another job"}.get(peer, f"rank {peer}")
    short = call.lower()
    if "sendrecv" in short:
        return f"with {name}"
    return f"{'from' if 'recv' in short or 'probe' in short else 'to'} {name}"


def span_text(ranks: Sequence[Row], spans_ns: Sequence[int | None] | None = None) -> str:
    """How long they have been there (or another duration): 12.3 s; 3.10 s to 12.3 s. For killed
    ranks a lower bound, if anything is known."""
    known_ns = [
        span
        for span in ([rank.doing_ns for rank in ranks] if spans_ns is None else spans_ns)
        if span is not None
    ]
    is_sure = all(rank.state in SURE_OF_TIME for rank in ranks)
    if not known_ns or not (is_sure or any(known_ns)):
        return ""
    least, most = units.duration(min(known_ns)), units.duration(max(known_ns))
    span = least if least == most else f"{least} to {most}"
    return f", for {span}" + ("" if is_sure else " or more")


class Unhanded(
    namedtuple("Unhanded", "communicator identity behind waiting tensors since_unix_ns waited_ns")
):
    """Ranks `waiting` have handed over tensors that `behind` have not; if all ranks wait, for other
    tensors each, none is behind. tensors: the most that one of them waits for; since then, and for
    so long, all of them do."""

    @property
    def text(self) -> str:
        """ranks 0,2 have waited 3.2 s for 28 tensors that rank 1 has not handed over"""
        waits, hands = (units.agreeing("have", len(ranks)) for ranks in (self.waiting, self.behind))
        what = units.counted(self.tensors, "tensor") if self.tensors else "tensors"
        whom = units.rank_names(self.behind) if self.behind else "others"
        return (
            f"{units.rank_names(self.waiting)} {waits} waited {units.duration(self.waited_ns)} for "
            f"{what} that {whom} {hands} not handed over"
        )


def negotiating_rows(connection: Connection) -> list[Row]:
    return list(query.rows(connection, "stuck/negotiating"))


def unhanded(connection: Connection, after_ns: int) -> list[Unhanded]:
    """On each communicator where a rank has waited for at least so long."""
    found = []
    open_rows = [row for row in negotiating_rows(connection) if row.is_open]
    for identity, rows in groupby(open_rows, attrgetter("identity")):
        ranks = list(rows)
        waiting = [row for row in ranks if row.waited_ns is not None]
        if not waiting or max(present(row.waited_ns) for row in waiting) < after_ns:
            continue
        found.append(
            Unhanded(
                ranks[0].communicator,
                identity,
                sorted({row.rank for row in ranks} - {row.rank for row in waiting}),
                sorted({row.rank for row in waiting}),
                max(row.tensors for row in waiting),
                min(present(row.since_unix_ns) for row in waiting),
                max(present(row.waited_ns) for row in waiting),
            )
        )
    return found


# Sums over the threads of a rank; time in MPI, and in collectives, is that of the thread with the
# most, with the call that it is in. NCCL's operations have the time on the device. GPUs: the time
# that is summed up, and the part of it in which something ran, over the rank's devices.
Amounts = namedtuple(
    "Amounts", "wall_ns count volume_bytes device_ns mpi_ns collective_ns traced_ns busy_ns"
)
THREADS = View(
    "LiveRow",
    ("world_rank", "thread"),
    {
        "rank": "world_rank",
        "thread": "thread",
        "count": total("count", is_call),
        "volume_bytes": total("volume_bytes", is_call),
        "device_ns": total("total_ns", is_device),
        "mpi_ns": total("total_ns", is_in_mpi),
        "collective_ns": total(
            "total_ns", lambda cells: is_in_mpi(cells) & cells.is_in("family", "collective")
        ),
    },
    lambda groups: (groups.world_rank, groups.thread),
    where=is_working,
)


def live_rows(connection: Connection) -> list[tuple[Row, Amounts]]:
    """Ranks, as in rank_rows."""
    threads = {row[:2]: [*row[2:]] for row in summarize(cells_of(connection), THREADS)}
    for rank, thread, is_collective, ns in query.run(connection, "stuck/live"):
        own = threads.setdefault((rank, thread), [0] * 5)
        own[3:] = own[3] + ns, own[4] + ns * is_collective
    of_ranks = gathered((rank, own) for (rank, _), own in threads.items())
    gpus = {rank: times for rank, *times in query.run(connection, "stuck/live_gpus")}
    found = []
    for row in rank_rows(connection):
        *sums, mpi_ns, collective_ns = zip(*of_ranks.get(row.rank, [[0] * 5]))
        in_mpi = max(mpi_ns), max(collective_ns)
        amounts = row.wall_ns or 0, *map(sum, sums), *in_mpi, *gpus.get(row.rank, (0, 0))
        found.append((row, Amounts(*amounts)))
    return found


ALWAYS = 1 << 63
Collective = tuple[str, int]  # identity and sequence
Node = Union[int, tuple]  # a rank; a list of ranks


# A call that a rank has been inside for a long time; sequence: of a collective; waited_for: ranks.
Wait = namedtuple(
    "Wait",
    "rank thread call request_call communicator identity sequence bytes peer tag waited_for "
    "since_unix_ns doing_ns",
)
# A rank's position in the collectives of a communicator: the last one begun, whether it is inside
# it (is_waiting), and whether others are inside one that it has not begun (is_behind).
Position = namedtuple(
    "Position",
    "communicator identity rank begun call bytes root is_waiting is_behind",
)
# A rank's call of the first collective on record at which ranks differ, and in what. is_first: they
# agreed on the one before, or there is none; otherwise they may have differed even earlier.
Mismatch = namedtuple(
    "Mismatch", "communicator identity sequence what is_first rank call bytes root"
)
# Ranks for which all others on their paths wait, directly or not, and which wait for no particular
# rank. is_sure: 0: all ranks were killed, and nothing shows how long the wait lasted.
Awaited = namedtuple("Awaited", "waited_for waiting why is_sure")
# Ranks each of which waits for the next, the last for the first.
Circle = namedtuple("Circle", "ranks is_sure")
# No rank has begun or ended a call since then, for as long as one is known to have lived.
Still = namedtuple("Still", "since_unix_ns lasted_ns")


class Killed(namedtuple("Killed", "ranks is_whole quiet_ns last_unix_ns after_ns")):
    """No rank has an end, and none is seen to run. When they died is unknown; known is when each
    last began or ended a call (quiet_ns: by rank, from then to the last one of the job), and when
    its CPU time was last read. (The modification time of a ledger may be that of a copy that
    somebody made.) is_whole: no rank is missing. last_unix_ns: of the last call, or until when
    nothing moved."""

    def is_early(self, rank: int) -> bool:
        """Whether the rank made no call for so long before the others' last that it ended first, or
        hung."""
        return self.quiet_ns.get(rank, 0) >= max(1, self.after_ns)


# The result of the analysis; empty lists: nothing is stuck. ranks: rows by rank. longest: the call
# that any rank has been inside longest. killed: None: some rank has an end or runs. still: None:
# something has moved within --after seconds, or all ranks ended. unhanded: rounds of a negotiation
# go on, but not all hand over.
Stuck = namedtuple(
    "Stuck", "ranks waits positions mismatches cycles awaited longest killed still unhanded"
)


class Board:
    """The positions and calls of all ranks."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.killed: Killed | None = None
        self.room = 1 << 17  # for members without a collective: a damaged file may claim any number
        self.late: dict[Collective, list[int]] = {}
        self.ranks = {row.rank: row for row in rank_rows(run.connection)}
        # up to when the positions of ranks are known: not during waits that begin after the copy
        self.copied = {
            rank: row.last_unix_ns or 0 for rank, row in self.ranks.items() if row.is_copy
        }
        self.begun_rows = list(query.rows(run.connection, "stuck/collectives"))
        # on record, the oldest first
        self.recent = by(
            (row for row in self.begun_rows if row.is_open), lambda row: (row.identity, row.rank)
        )
        self.members = {
            identity: self._members(rows)
            for identity, rows in by(
                (rows[-1] for rows in self.recent.values()), lambda row: row.identity
            ).items()
        }
        self.orders: dict[str, dict[int, int]] = {}  # by members: the world ranks and their places

    def _members(self, rows: list[Row]) -> list[int]:
        """The members, of both groups of an inter-communicator. If the list was too long to be
        stored, those that used the communicator."""
        used = {row.rank for row in rows}
        sides = [members for members, _ in Counter(row.members for row in rows).most_common(2)]
        profiled = self.run.profiled  # how far the others are is not known
        of_sides = (
            rank for members in sides for rank in units.Members(members).below(self.run.world_size)
        )
        listed = (
            rank
            for rank in of_sides
            if rank not in used and (profiled is None or rank in profiled.ranks)
        )
        idle = set(islice(listed, self.room))
        self.room -= len(idle)
        return sorted(used | idle)

    def last(self, identity: str, rank: int) -> Row | None:
        """The last collective that it has begun; without its call, if that is not on record."""
        row = self.recent.get((identity, rank), [None])[-1]
        if row is None or row.sequence == row.begun:
            return row
        return row._replace(call=None, bytes=None, root=None, kind=None)

    def needed(self, row: Row, collective: Collective) -> list[int]:
        """Ranks behind that a rank inside it depends on, as in late. If all these have begun it,
        all behind: data may come through them."""
        own, behind = present(self.last(collective[0], row.rank)), self.behind(collective)
        kind, places = own.kind if own.begun == collective[1] else None, self._places(own)
        if kind == "lower" and row.rank in places:
            most = places[row.rank]
            behind = [rank for rank in behind if places.get(rank, most) < most] or behind
        elif kind == "root-first" and own.root is not None:
            behind = [rank for rank in behind if places.get(rank) == own.root] or behind
        if not self.copied:
            return behind
        return [rank for rank in behind if self.copied.get(rank, ALWAYS) >= row.since_unix_ns]

    def _places(self, row: Row) -> dict[int, int]:
        """World ranks in the order of the communicator, and their places; empty: not known, or of
        two groups."""
        if row.members not in self.orders:
            ranks = units.Members(row.members).below(self.run.world_size)
            self.orders[row.members] = {rank: place for place, rank in enumerate(ranks)}
        return self.orders[row.members] if len(self.orders[row.members]) == row.size else {}

    def behind(self, collective: Collective) -> list[int]:
        """Members that have not begun it."""
        if collective not in self.late:
            identity, sequence = collective
            self.late[collective] = [
                rank
                for rank in self.members[identity]
                for row in [self.last(identity, rank)]
                if (row.begun if row else 0) < sequence
            ]
        return self.late[collective]


def stuck(run: Run, after_ns: int) -> Stuck:
    board = Board(run)
    inside = list(query.rows(run.connection, "stuck/waiting"))
    acted = list(query.rows(run.connection, "stuck/last_acted"))
    still = _still(acted, after_ns)
    killed = board.killed = _killed_as_a_whole(board, acted, still, after_ns)
    settled = [row for row in inside if is_settled(board.ranks[row.rank], row, after_ns)]
    lasting = {
        row.rank
        for row in settled
        if not killed or killed.last_unix_ns - row.since_unix_ns >= after_ns
    }
    waits = [_wait(board, row) for row in settled]
    graph = _graph(waits)
    return Stuck(
        board.ranks,
        waits,
        list(_positions(board, waits)),
        list(_mismatches(board.begun_rows)),
        [Circle(ranks, int(lasting.issuperset(ranks))) for ranks in _cycles(graph)],
        list(_awaited(board, graph, lasting)),
        max(inside, key=lambda row: row.doing_ns) if inside else None,
        killed,
        still,
        unhanded(run.connection, max(1, after_ns)),
    )


def _still(acted: Sequence[Row], after_ns: int) -> Still | None:
    """A ledger has all that its rank did, a copy what it did until then."""
    alive = [row for row in acted if not row.is_done and row.alive_unix_ns is not None]
    if not alive:
        return None
    since_unix_ns = max(row.acted_unix_ns for row in acted)
    last_unix_ns = max(present(row.alive_unix_ns) for row in alive)
    copied = [present(row.alive_unix_ns) for row in alive if row.is_copy]
    lasted_ns = min([last_unix_ns, *copied]) - since_unix_ns
    return Still(since_unix_ns, lasted_ns) if lasted_ns >= max(1, after_ns) else None


def _killed_as_a_whole(
    board: Board, acted: Sequence[Row], still: Still | None, after_ns: int
) -> Killed | None:
    """None if a rank ended or runs. A copy shows the time at which it was made, not the end."""
    ranks = list(board.ranks.values())
    if len(ranks) < 2 or any(
        rank.state not in ("killed", "running or killed") or rank.is_copy for rank in ranks
    ):
        return None
    last_unix_ns = max(row.acted_unix_ns for row in acted)
    quiet_ns = {row.rank: last_unix_ns - row.acted_unix_ns for row in acted}
    last_unix_ns += still.lasted_ns if still else 0
    return Killed(
        ranks, not board.run.missing and not board.run.profiled, quiet_ns, last_unix_ns, after_ns
    )


def is_settled(rank: Row, row: Row, after_ns: int) -> bool:
    """Whether a call has lasted long enough. For a killed rank the time is unknown, so its last
    call counts."""
    return row.doing_ns >= after_ns or not (rank.state in ("running", "snapshot") or rank.is_copy)


def _collective_of(board: Board, row: Row) -> Collective | None:
    """The collective that a thread is in, or waits for; if it may be one of several, the first that
    not all members have begun."""
    own = board.last(row.identity, row.rank)
    if not own:
        return None
    if not row.request_call:
        return (row.identity, own.begun) if own.call == row.call else None
    sequences = [
        each.sequence
        for each in board.recent[row.identity, row.rank]
        if each.call == row.request_call and len({row.bytes, each.bytes} - {None}) < 2
    ]
    open_ones = [sequence for sequence in sequences if board.behind((row.identity, sequence))]
    return (row.identity, (open_ones or sequences)[0 if open_ones else -1]) if sequences else None


def _wait(board: Board, row: Row) -> Wait:
    collective, waited_for = _collective_of(board, row), []
    if row.call in ("MPI_Waitany", "MPI_Waitsome", "MPI_Testany", "MPI_Testsome"):
        pass
    elif collective:
        waited_for = board.needed(row, collective)
    elif row.family in ("point-to-point", "probe") and row.peer is not None and row.peer >= 0:
        waited_for = [row.peer]
    known = {key: getattr(row, key) for key in Wait._fields if hasattr(row, key)}
    return Wait(**known, sequence=collective and collective[1], waited_for=waited_for)


def _positions(board: Board, waits: list[Wait]) -> Iterator[Position]:
    inside = by((wait for wait in waits if wait.sequence), lambda wait: wait.identity)
    for identity, members in board.members.items():
        rows = {rank: board.last(identity, rank) for rank in members}
        label = next(row.communicator for row in rows.values() if row)
        waiting = {wait.rank for wait in inside.get(identity, ())}
        furthest = max((wait.sequence for wait in inside.get(identity, ())), default=0)
        for rank, row in rows.items():
            begun = row.begun if row else 0
            yield Position(
                label,
                identity,
                rank,
                begun,
                row and row.call,
                row and row.bytes,
                row and row.root,
                int(rank in waiting),
                int(begun < furthest),
            )


def _mismatches(rows: Iterable[Row]) -> Iterator[Mismatch]:
    """All ranks must call the same function, with the same root and size; not in the two groups of
    an inter-communicator, nor where each rank may have its own size. Unknown values are not
    compared. Communicators by name."""
    recorded = by(
        (row for row in rows if row.sequence), lambda row: (row.communicator, row.identity)
    )
    for of_communicator, own in sorted(recorded.items()):
        made = by(own, lambda row: row.sequence)
        compared = sorted(sequence for sequence, alike in made.items() if len(alike) > 1)
        for sequence in compared:
            alike = made[sequence]
            what = next(
                (
                    name
                    for name, key in {
                        "call": "call",
                        "root": "same_root",
                        "bytes": "same_bytes",
                    }.items()
                    if len({getattr(row, key) for row in alike} - {None}) > 1
                ),
                None,
            )
            if what:
                is_first = int(sequence == 1 or sequence > compared[0])
                for row in alike:
                    called = (row.rank, row.call, row.same_bytes, row.same_root)
                    yield Mismatch(*of_communicator, sequence, what, is_first, *called)
                break


def _graph(waits: Iterable[Wait]) -> dict[Node, list[Node]]:
    """From those who wait to those whom they wait for."""
    lists = [(wait.rank, tuple(wait.waited_for)) for wait in waits if wait.waited_for]
    shared = dict.fromkeys(ranks for _, ranks in lists)
    return gathered([*lists, *((ranks, rank) for ranks in shared for rank in ranks)])


def _backwards(graph: Mapping[Node, Iterable[Node]]) -> dict[Node, list[Node]]:
    return gathered((ahead, node) for node, following in graph.items() for ahead in following)


def _cycles(graph: dict[Node, list[Node]]) -> Iterator[list[int]]:
    """One circle for each group of ranks that wait for each other: the shortest through the lowest
    rank."""
    backwards, seen = _backwards(graph), set()
    endless = _endless(graph, backwards) & _endless(backwards, graph)
    for rank in sorted(node for node in endless if isinstance(node, int)):
        before = {} if rank in seen else _before(graph, rank)
        if rank not in before:
            continue
        circle = [before[rank]]
        while circle[-1] != rank:
            circle.append(before[circle[-1]])
        yield [node for node in circle[::-1] if isinstance(node, int)]
        seen |= before.keys() & _before(backwards, rank).keys()


def _endless(graph: dict[Node, list[Node]], backwards: dict[Node, list[Node]]) -> set[Node]:
    """The nodes from which paths lead into a circle: all but ends, and those that lead to these
    alone."""
    left = {node: len(following) for node, following in graph.items()}
    ends = [node for node in backwards if node not in graph]
    for end in ends:  # and those that are found meanwhile
        for node in backwards.get(end, ()):
            left[node] -= 1
            ends += [node] if not left[node] else []
    return graph.keys() - set(ends)


def _before(graph: Mapping[Node, Iterable[Node]], start: Node) -> dict[Node, Node]:
    """The nodes that paths from this one reach, and of each the one before it on the shortest."""
    before: dict[Node, Node] = {}
    front = [start]
    for node in front:  # and those that are reached meanwhile
        for ahead in graph.get(node, ()):
            if ahead not in before:
                before[ahead] = node
                front.append(ahead)
    return before


def _awaited(board: Board, graph: dict[Node, list[Node]], lasting: set[int]) -> Iterator[Awaited]:
    """The ends of all paths. Ends with the same waiting ranks and the same description are
    combined."""
    early = set(filter(board.killed.is_early, board.ranks)) if board.killed else set()
    backwards = _backwards(graph)
    ends = sorted(node for node in backwards if isinstance(node, int) and node not in graph)
    # the same ranks wait for ends that the same nodes lead to
    one_of_alike = {tuple(backwards[end]): end for end in ends}
    waiting = {
        nodes: tuple(sorted(node for node in _before(backwards, end) if isinstance(node, int)))
        for nodes, end in one_of_alike.items()
    }
    found = gathered(((waiting[tuple(backwards[end])], why_text(board, end)), end) for end in ends)
    for (ranks, why), same in found.items():
        is_sure = not (lasting | early).isdisjoint([*ranks, *same])
        yield Awaited(same, list(ranks), why, int(is_sure))


def why_text(board: Board, rank: int) -> str:
    """Describes an awaited rank: the state of its process, and its last call."""
    row = board.ranks.get(rank)
    if row is None:
        return (
            "left no file"
            if board.run.profiled is None or rank in board.run.profiled.ranks
            else "was not chosen to be profiled"
        )
    if row.state in ("finalize", "end", "exit", "abort"):
        return f"has {ENDS[row.state]}" + f"({row.abort_code})" * (row.state == "abort")
    place = place_text(row)
    if row.doing_peer == PEER_ANY and row.doing_is_inside:
        place += ", which may come from anywhere"
    if board.killed:
        if board.killed.is_early(rank):
            place += (
                ", and began or ended its last call "
                f"{units.duration(board.killed.quiet_ns[rank])} before the last one of the job"
            )
        return f"was {place}"
    was = {"killed": "was killed or left by _exit or exec, ", "running": "is "}.get(
        row.state, "is or was "
    )
    return was + place + span_text([row])

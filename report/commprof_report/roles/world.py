"""The facts that roles and pipelines are inferred from: a run's communicators, their members and
their use, and the graph of its messages. Filters do not apply.

The graph of point-to-point messages has patterns. Pipelines: lines of ranks that pass bulk
messages on to fixed neighbours. Servers: ranks with which all others exchange messages that
exchange none with each other.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Collection, Iterable, Sequence

from ..base import (
    Connection,
    Groups,
    Members,
    NONE,
    Row,
    Texts,
    View,
    among,
    by,
    by_rank,
    gathered,
    grouped,
    np,
    own,
    query,
    summarize,
    threshold,
    total,
    whole,
)
from ..late import jobs
from ..run.sampled import Calls, communicators, sampled
from ..run.selection import cells_of, run_communicators, traffic_classify

CONTROL_BYTES = whole("roles.control-bytes")


USES = View(  # how many calls of which size, and the bytes that they move
    "UseRow",
    ("identity", "call", "bytes"),
    {
        **own("identity", "call", "family", "bytes"),
        "count": total("count"),
        "message_bytes": lambda groups: np.where(  # collectives of one rank move nothing
            (groups.size == 1) & groups.is_in("family", "collective", "neighborhood"),
            0,
            groups.sum("message_bytes"),
        ),
    },
    lambda groups: (groups.place("identity"), groups.place("call"), groups.bytes),
    where=among("measure", "call", "captured"),
)


class Group(namedtuple("Group", "described ranks use")):
    """A communicator whose purpose is inferred. described: its row of run_communicator."""

    def message_bytes(self, *families: str) -> int:
        return sum(row.message_bytes for row in self.use if not families or row.family in families)

    @property
    def collectives(self) -> list[Row]:
        """The collectives that carry more than control messages."""
        return [row for row in self.use if row.family == "collective" and row.bytes > CONTROL_BYTES]


# How a communicator's sampled bulk collectives follow each other on its ranks, in all. turns: rows
# of a rank's collectives on it without other bulk collectives or messages between them; sends: bulk
# messages of these ranks; repeats: how often a size occurs in the turn of a collective, on average.
Turns = namedtuple("Turns", "turns sends repeats")


# The run to which the communicators belong. ranks: whose files were read. partitions: ways of
# creating communicators that put every rank into exactly one. busy: the groups of each rank that
# are smaller than the world and make collectives. sent_bytes: by sender and receiver. passed_sizes:
# of point-to-point messages larger than control messages; passed_per_rank: their number. turns: by
# identity; without those that have no samples.
World = namedtuple(
    "World",
    "size ranks groups partitions busy graph sent_bytes message_bytes passed_sizes passed_per_rank "
    "turns roots",
)


def world_of(connection: Connection) -> World:
    cells = cells_of(connection).whole
    use = gathered((row.identity, row) for row in summarize(cells, USES))
    (size,) = connection.execute("SELECT max(world_size) FROM rank").fetchone()
    read = frozenset(rank for (rank,) in connection.execute("SELECT world_rank FROM rank"))
    described = run_communicators(connection).values()
    known = {  # the world ranks of the members, where all of them are known
        row.identity: frozenset(members.below(size))
        for row in described
        for members in [Members(row.members)]
        if members.is_whole and not row.is_inter
    }
    groups = [
        Group(row, known.get(row.identity, frozenset()), use.get(row.identity, []))
        for row in described
    ]
    traffic_classify(connection)
    messages = query.ask(connection, "roles/messages", MessageRow)
    passed = [
        row
        for rows in use.values()
        for row in rows
        if row.family == "point-to-point" and row.bytes > CONTROL_BYTES and "ecv" not in row.call
    ]
    busy = busy_of(groups, size)
    pattern = graph(messages)
    if pattern.chains:
        pattern = graph(messages, query.ask(connection, "roles/message_times", MessageTime))
    return World(
        size,
        read,
        groups,
        partitions_of(groups, read),
        busy,
        pattern,
        {(row.sender, row.receiver): row.bytes for row in messages},
        sum(row.message_bytes for rows in use.values() for row in rows),
        frozenset(row.bytes for row in passed),
        sum(row.count for row in passed) / max(1, len(read)),
        turns_of(connection) if busy else {},
        list(query.rows(connection, "roles/roots")),
    )


def turns_of(connection: Connection) -> dict[str, Turns]:
    """By identity of the communicator."""
    texts, calls, _, _ = sampled(connection)
    calls = _bulk(calls, texts, gathered(connection.execute("SELECT family, name FROM call")))
    calls = calls.take(np.lexsort((calls.start_ns, calls.world_rank)))
    known = communicators(connection, texts)
    identity = np.append(known.identity, NONE)[known.row(calls)]
    turns = Groups(calls.world_rank, identity, calls.is_collective)
    order, alike = grouped(turns.of_row, calls.call, calls.bytes)
    repeats = turns.counts**2 / np.bincount(turns.of_row[order[alike.first]])
    sends, rank = np.bincount(calls.world_rank, calls.is_sent), calls.world_rank[turns.first]
    asked = np.flatnonzero((calls.is_collective & (identity != NONE))[turns.first])
    found = {}
    for number, mine in by_rank(identity[turns.first[asked]]):
        own = asked[mine]
        sent = int(sends[np.unique(rank[own])].sum())
        repeated = repeats[own].sum() / turns.counts[own].sum()
        found[texts.texts[number]] = Turns(len(own), sent, repeated)
    return found


def _bulk(calls: Calls, texts: Texts, names: dict[str, list[str]]) -> Calls:
    """The sampled collectives and messages that carry more than control messages. names: of calls,
    by family."""
    messages = names.get("point-to-point", [])
    is_collective = texts.among(calls.call, names.get("collective", []))
    is_message = texts.among(calls.call, messages)
    is_sent = texts.among(calls.call, [name for name in messages if "ecv" not in name])
    calls = calls.changed(is_collective=is_collective, is_sent=is_sent)
    return calls.take((is_collective | is_message) & (calls.bytes > CONTROL_BYTES))


def ways(group: Group) -> list[tuple]:
    """How it was created, alone and with its pattern of ranks or its calls: one parent is often
    split in several ways."""
    made = (group.described.constructor, group.described.parent_identity)
    calls = frozenset(row.call for row in group.use if row.family != "communicator")
    return [made, (*made, shape(group.ranks)), (*made, calls)]


def partitions_of(groups: Sequence[Group], read: frozenset[int]) -> frozenset[tuple]:
    alike = gathered((way, group.ranks) for group in groups if group.ranks for way in ways(group))
    return frozenset(way for way, parts in alike.items() if covers_once({*parts}, read))


def busy_of(groups: Sequence[Group], world_size: int) -> dict[int, list[Group]]:
    return gathered(
        (rank, group)
        for group in groups
        if 1 < len(group.ranks) < world_size and group.collectives
        for rank in group.ranks
    )


def shape(ranks: frozenset[int]) -> tuple[int, ...]:
    ordered = sorted(ranks)
    return tuple(rank - ordered[0] for rank in ordered)


def covers_once(parts: Collection[frozenset[int]], read: frozenset[int]) -> bool:
    """Whether every rank that was read is in exactly one of them."""
    everyone = frozenset().union(*parts)
    return len(parts) > 1 and sum(map(len, parts)) == len(everyone) and read <= everyone


FEWEST = whole("roles.messages")
ALIKE = threshold("roles.direction")
PASSED_ON = threshold("roles.passed-on")


# All messages from one rank to another; messages.sql.
MessageRow = namedtuple("MessageRow", "sender receiver count bytes")


# A line of ranks, in the order in which messages go forward. is_direction_known: False: as many
# bytes go in either direction; the end with the lower rank counts as the first stage.
Chain = namedtuple("Chain", "ranks is_direction_known")


class Star(namedtuple("Star", "servers others sent_bytes received_bytes")):
    """Ranks that serve others, which exchange no messages with each other. sent_bytes: by the
    servers."""

    @property
    def has_workers(self) -> bool:
        """Messages go both ways."""
        return self.sent_bytes > 0 and self.received_bytes > 0


# exchanges: lines of ranks that send to both neighbours before they have received from them. webs:
# connected ranks that are no line, or pass nothing on. pairs: of ranks that exchange bulk messages.
Graph = namedtuple("Graph", "chains exchanges stars webs pairs")


# When a rank began to send a message, or had received one; message_times.sql.
MessageTime = namedtuple("MessageTime", "rank peer is_sent at_ns")


def graph(rows: Iterable[Row], times: Iterable[Row] = ()) -> Graph:
    """times: in order of time, for each rank; without them messages between neighbours in a line
    are taken as passed on."""
    rows = list(rows)
    sent = {(row.sender, row.receiver): row.bytes for row in rows}
    neighbours = _neighbours(rows)
    found = Graph([], [], [], [], sum(map(len, neighbours.values())) // 2)
    times_of = gathered((time.rank, time) for time in times)
    for ranks in _components(neighbours):
        ends = [rank for rank in ranks if len(neighbours[rank]) == 1]
        if star := _star(ranks, neighbours, sent):
            found.stars.append(star)
        elif max(len(neighbours[rank]) for rank in ranks) > 2 or not ends:
            found.webs.append(ranks)
        elif _is_passed_on(line := _walk(ends[0], neighbours), sent):
            if _is_exchange(line, sent, times_of):
                found.exchanges.append(ranks)
            else:
                found.chains.append(_chain(line, sent))
        else:
            found.webs.append(ranks)
    return found


def _neighbours(rows: Sequence[Row]) -> dict[int, list[int]]:
    """For each rank the ranks with which it exchanges bulk messages; ranks without any are left
    out."""
    exchanged = by(rows, lambda row: tuple(sorted((row.sender, row.receiver))))
    sums = {
        pair: (sum(row.bytes for row in own), sum(row.count for row in own))
        for pair, own in sorted(exchanged.items())
    }
    bulk = threshold("roles.bulk") * max((moved for moved, _ in sums.values()), default=0)
    return gathered(
        pair
        for (one, other), (moved, messages) in sums.items()
        if moved and moved >= bulk and messages >= FEWEST
        for pair in ((one, other), (other, one))
    )


def _components(neighbours: dict[int, list[int]]) -> list[list[int]]:
    """The connected components, in the order of their lowest ranks, each sorted."""
    joined = {rank: (rank, *others) for rank, others in neighbours.items()}
    return sorted(map(sorted, jobs([*neighbours], joined))) if neighbours else []


def _walk(start: int, neighbours: dict[int, list[int]]) -> tuple[int, ...]:
    """The ranks from one end of a line to the other."""
    ranks = [start]
    for rank in ranks:  # and those that are reached meanwhile
        ranks += [other for other in neighbours[rank] if other not in ranks][:1]
    return tuple(ranks)


def _is_passed_on(ranks: Sequence[int], sent: dict[tuple[int, int], int]) -> bool:
    """Each rank but the first and the last receives from one neighbour and sends to the other."""
    return all(
        (sent.get((before, rank)) and sent.get((rank, after)))
        or (sent.get((after, rank)) and sent.get((rank, before)))
        for before, rank, after in zip(ranks, ranks[1:], ranks[2:])
    )


def _star(
    ranks: Sequence[int], neighbours: dict[int, list[int]], sent: dict[tuple[int, int], int]
) -> Star | None:
    """If each of few ranks exchanges messages with each of the others, and there are no messages
    but these."""
    others = neighbours[min(ranks, key=lambda rank: (-len(neighbours[rank]), rank))]
    servers = [rank for rank in ranks if rank not in others]
    if len(servers) >= len(others) or not (
        all(neighbours[rank] == others for rank in servers)
        and all(neighbours[rank] == servers for rank in others)
    ):
        return None
    sent_bytes, received_bytes = (
        sum(sent.get(pair, 0) for pair in each)
        for each in zip(*(((one, two), (two, one)) for one in servers for two in others))
    )
    star = Star(servers, others, sent_bytes, received_bytes)
    return None if len(ranks) == 3 and _may_be_a_line(star, sent) else star


def _may_be_a_line(star: Star, sent: dict[tuple[int, int], int]) -> bool:
    """One rank with two others may pass messages on from one to the other, in order of ranks: then
    it sends as much as it receives."""
    (server,), (one, two) = star.servers, star.others
    if not star.has_workers or not all(sent.get((server, rank)) for rank in (one, two)):
        return _is_passed_on((one, server, two), sent)
    whole = star.sent_bytes + star.received_bytes
    return one < server < two and abs(star.sent_bytes - star.received_bytes) <= ALIKE * whole


def _is_exchange(
    line: Sequence[int],
    sent: dict[tuple[int, int], int],
    times_of: dict[int, list[Row]],
) -> bool:
    """Whether ranks in the middle do not wait for a message before they send one on. At one end of
    a pipeline at least messages are answered."""
    middle = [
        _passed_on(times_of[rank], source, target)
        for before, rank, after in zip(line, line[1:], line[2:])
        if rank in times_of
        for source, target in ((before, after), (after, before))
        if sent.get((source, rank)) and sent.get((rank, target))
    ]
    if any(share < PASSED_ON for share in middle):
        return True
    ends = [
        _passed_on(times_of[end], peer, peer)
        for end, peer in ((line[0], line[1]), (line[-1], line[-2]))
        if end in times_of and sent.get((end, peer)) and sent.get((peer, end))
    ]
    return len(ends) == 2 and max(ends) < PASSED_ON


def _passed_on(times: Sequence[Row], source: int, target: int) -> float:
    """The share of a rank's messages to the target before which it had as many from the source."""
    received = sends = passed = 0
    for time in times:
        if time.is_sent and time.peer == target:
            sends += 1
            passed += received >= sends
        elif not time.is_sent and time.peer == source:
            received += 1
    return passed / sends if sends else 1.0


def _chain(ranks: Sequence[int], sent: dict[tuple[int, int], int]) -> Chain:
    """Forward is the direction with more bytes; if both are alike, from the end with the lower
    rank."""
    forward = sum(sent.get(pair, 0) for pair in zip(ranks, ranks[1:]))
    backward = sum(sent.get(pair, 0) for pair in zip(ranks[1:], ranks))
    is_known = abs(forward - backward) > ALIKE * (forward + backward)
    is_reversed = is_known and backward > forward
    return Chain(tuple(ranks[::-1] if is_reversed else ranks), is_known)

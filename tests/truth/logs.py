"""Who waited for whom, by the ranks' own logs (programs/plants.calls). Nothing here comes from the
profiler.

An event depends on ranks: a collective on those whose part it needs, a receive or probe on its
sender, a send of RENDEZVOUS_BYTES or more on its receiver, in an epoch of a window an origin on the
target's post, the target on the origin's complete. It waits from its own start to the last start
that it depends on, but no longer than it lasts; the rest is transfer. A call that completes
requests depends on all that these depend on. If, after that, a partner works for half of the
transfer or more, and stops before the event and its own part have ended, the event waits for it,
too: it was held up. Where it works for less than four fifths, as on cores that other work has too,
that is not sure. The rank that started last has the cost of the wait; the root cause is the rank
that was not waiting itself during that time.

The logs are played again for what would be gained: some ranks work no longer than the others do,
and an event ends its transfer after all that it depends on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

RENDEZVOUS_BYTES = 1 << 20
HELD_UP = 0.5  # share of the transfer
SURELY_HELD_UP = 0.8
# of an epoch of a window: Win_post, Win_start, Win_complete and Win_wait with one partner
EPOCHS = ("post", "access", "done", "exposed")
OTHER_SIDE = {"access": "post", "done": "exposed", "exposed": "done"}
# a probe looks for the message that the next recv receives, until it has found it
WAITING = ("call", "send", "recv", "wait", "probe", "access", "done", "exposed")
CALLS_IN_MPI = (*WAITING, "start", "isend", "irecv", "post")


class Event(NamedTuple):
    """A line of a log."""

    kind: str
    call: str
    where: str
    peer: int
    bytes: int
    completed: int  # the event that completed it; -1: none
    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


class RankLog(NamedTuple):
    events: list[Event]
    communicators: dict[str, tuple[int, ...]]


class Wait(NamedTuple):
    """An event that may wait, whether it did or not."""

    rank: int
    calls: frozenset[str]  # the call; if it completes requests, the calls that started these
    start_ns: int
    wait_ns: int
    transfer_ns: int
    last_rank: int | None
    unsure_ns: int  # part of wait_ns
    needs: tuple[tuple[int, int], ...]  # the ranks, and when they did what it depends on


class Truth(NamedTuple):
    """Sums over a run; by rank where it says so."""

    wait_ns: Counter[int]
    transfer_ns: Counter[int]
    cost_ns: Counter[int]  # what others waited for this rank directly
    root_ns: Counter[int]  # what others waited because of this rank, directly or through others
    cost_of_call_ns: dict[str, Counter[int]]
    taken_ns: Counter[int]  # in MPI
    unsure_ns: Counter[int]  # part of wait_ns that may be transfer
    lasts_ns: int  # the run, from a rank's first event to its last one
    gain_ns: int  # if the late ranks worked no longer than the others do

    def is_for(self, ranks: Sequence[int], among: Sequence[int] | None = None) -> float:
        """The share of all waiting, or of that which has some of the ranks `among` as root cause,
        that has these ranks as root cause."""
        whole_ns = sum(
            self.root_ns.values() if among is None else (self.root_ns[rank] for rank in among)
        )
        return sum(self.root_ns[rank] for rank in ranks) / (whole_ns or 1)


def read(path: Path, ahead_ns: int) -> RankLog:
    """A rank's log; `ahead_ns`: by how much its clock is ahead."""
    log = RankLog([], {})
    for line in path.read_text().splitlines():
        word, *fields = line.split()
        if word == "communicator":
            log.communicators[fields[0]] = tuple(map(int, fields[1:]))
        else:
            peer, size, completed, start_ns, end_ns = map(int, fields[3:])
            log.events.append(
                Event(*fields[:3], peer, size, completed, start_ns - ahead_ns, end_ns - ahead_ns)
            )
    return log


class Job:
    """The logs of all ranks, and what matches in them: the n-th collective of a communicator, the
    n-th message between two ranks."""

    def __init__(self, logs: Sequence[RankLog]) -> None:
        self.logs = logs
        self.collectives: dict[tuple, dict[int, Event]] = defaultdict(dict)
        self.messages: dict[tuple, dict[str, Event]] = defaultdict(dict)
        self.epochs: dict[tuple, dict[str, Event]] = defaultdict(dict)
        self.keys: list[list[tuple]] = []
        for rank, log in enumerate(logs):
            seen: Counter[tuple] = Counter()
            self.keys.append([self._match(rank, log, event, seen) for event in log.events])
        self.waits = [self._waits(rank) for rank in range(len(logs))]

    def _match(self, rank: int, log: RankLog, event: Event, seen: Counter[tuple]) -> tuple:
        if event.kind in ("call", "start"):
            what: tuple = ("collective", log.communicators[event.where])
        elif event.kind == "probe":
            what = ("message", event.peer, rank)
            return (*what, seen[what])
        elif event.kind in EPOCHS:
            is_origin = event.kind in ("access", "done")
            pair = (rank, event.peer) if is_origin else (event.peer, rank)
            what = (event.kind, *pair)
            key = ("epoch", *pair, seen[what])
            seen[what] += 1
            self.epochs[key][event.kind] = event
            return key
        elif event.kind.lstrip("i") in ("send", "recv"):
            side = event.kind.lstrip("i")
            what = ("message", *((rank, event.peer) if side == "send" else (event.peer, rank)))
        else:
            return ()
        key = (*what, seen[what])
        seen[what] += 1
        if what[0] == "collective":
            self.collectives[key][rank] = event
        else:
            self.messages[key][side] = event
        return key

    def _depends_on(self, rank: int, place: int) -> dict[int, int]:
        """When each rank that an event depends on had started its part."""
        event, key = self.logs[rank].events[place], self.keys[rank][place]
        if event.kind in ("call", "start"):
            others = {
                other: part.start_ns
                for other, part in self.collectives[key].items()
                if other != rank
            }
            if event.call == "MPI_Bcast":
                return {event.peer: others[event.peer]} if rank != event.peer else {}
            return {} if event.call == "MPI_Reduce" and rank != event.peer else others
        if event.kind in ("access", "done"):
            return {event.peer: self.epochs[key]["post"].start_ns}
        if event.kind == "exposed":
            return {event.peer: self.epochs[key]["done"].start_ns}
        if event.kind in ("recv", "irecv", "probe"):
            return {event.peer: self.messages[key]["send"].start_ns}
        if event.kind in ("send", "isend") and event.bytes >= RENDEZVOUS_BYTES:
            return {event.peer: self.messages[key]["recv"].start_ns}
        return {}

    def _waits(self, rank: int) -> list[Wait]:
        found = []
        events = self.logs[rank].events
        of_wait: dict[int, list[int]] = defaultdict(list)
        for place, event in enumerate(events):
            if event.completed >= 0:
                of_wait[event.completed].append(place)
        for place, event in enumerate(events):
            if event.kind not in WAITING:
                continue
            parts = of_wait[place] if event.kind == "wait" else [place]
            starts = {
                other: start
                for part in parts
                for other, start in sorted(
                    self._depends_on(rank, part).items(), key=lambda item: item[1]
                )
            }
            for part in parts:
                for other, start_ns in self._depends_on(rank, part).items():
                    starts[other] = max(starts[other], start_ns)
            last_rank = max(starts, key=starts.__getitem__, default=None)
            last_ns = starts[last_rank] if last_rank is not None else event.start_ns
            wait_ns = min(max(0, last_ns - event.start_ns), event.duration_ns)
            needs = [
                need
                for part in parts
                for need in self._depends_on(rank, part).items()
                if need[1] <= event.end_ns
            ]
            held_ns, partner, back_ns = self._held_up(
                rank, parts, event.start_ns + wait_ns, event.end_ns
            )
            transfer_ns, unsure_ns = event.duration_ns - wait_ns, 0
            if held_ns >= max(wait_ns, HELD_UP * transfer_ns):
                wait_ns, last_rank = wait_ns + held_ns, partner
                unsure_ns = held_ns if held_ns < SURELY_HELD_UP * transfer_ns else 0
                needs.append((partner, back_ns))
            calls = frozenset(events[part].call for part in parts)
            found.append(
                Wait(
                    rank,
                    calls,
                    event.start_ns,
                    wait_ns,
                    event.duration_ns - wait_ns,
                    last_rank if wait_ns else None,
                    unsure_ns,
                    tuple(needs),
                )
            )
        return found

    def _held_up(
        self, rank: int, parts: Sequence[int], since_ns: int, end_ns: int
    ) -> tuple[int, int, int]:
        """How long the partner in these events that worked for longest did so meanwhile, which it
        is, and until when."""
        partners: dict[int, int] = {}  # when its part ended
        for part in parts:
            key, own = self.keys[rank][part], self.logs[rank].events[part]
            sides = (
                self.collectives[key]
                if key[0] == "collective"
                else {own.peer: self._other_side(key, own)}
            )
            for other, event in sides.items():
                log = self.logs[other].events
                last_ns = log[event.completed].end_ns if event.completed >= 0 else event.end_ns
                partners[other] = max(partners.get(other, 0), min(last_ns, end_ns))
        held = []
        for other, until_ns in partners.items():
            works = [
                work
                for work in self.logs[other].events
                if work.kind == "work" and since_ns < work.end_ns <= until_ns and other != rank
            ]
            held_ns = sum(work.end_ns - max(since_ns, work.start_ns) for work in works)
            held.append((held_ns, other, works[-1].end_ns if works else 0))
        return max(held, default=(0, rank, 0))

    def _other_side(self, key: tuple, own: Event) -> Event:
        """The work of the partner in an event until its part is over."""
        if key[0] == "epoch":
            return self.epochs[key][OTHER_SIDE[own.kind]]
        if own.kind == "probe":
            return self.messages[key]["send"]
        return next(side for side in self.messages[key].values() if side is not own)

    def _roots(
        self, rank: int, start_ns: int, end_ns: int, depth: int = 0
    ) -> Iterator[tuple[int, int]]:
        """Who has the time that others wait for this rank: the rank itself, but where
        it waits too."""
        own_ns = end_ns - start_ns
        for wait in self.waits[rank]:
            begin_ns, until_ns = (
                max(start_ns, wait.start_ns),
                min(end_ns, wait.start_ns + wait.wait_ns),
            )
            if wait.last_rank is not None and begin_ns < until_ns and depth < len(self.logs):
                own_ns -= until_ns - begin_ns
                yield from self._roots(wait.last_rank, begin_ns, until_ns, depth + 1)
        yield rank, own_ns

    def lasts_without_ns(self, ranks: Sequence[int]) -> int:
        """How long the run lasts if these ranks work no longer than the others: each time than the
        median of the same time of the others, or of all times if they work at other times."""
        works = [
            [event.duration_ns for event in log.events if event.kind == "work"] for log in self.logs
        ]
        others = [own for rank, own in enumerate(works) if rank not in ranks]
        usual = [median(times) for times in zip(*others)]
        if any(others) and len(set(map(len, works))) > 1:
            usual = [median(ns for own in others for ns in own)] * max(map(len, works))
        played: dict[tuple[int, int], int] = {}  # rank, time: the time if it is played again
        players = [
            self._played(rank, played, usual if rank in ranks else None)
            for rank in range(len(self.logs))
        ]
        while players:
            players = [player for player in players if next(player, None)]
        return max(
            played[rank, log.events[-1].end_ns] - log.events[0].start_ns
            for rank, log in enumerate(self.logs)
        )

    def _played(
        self, rank: int, played: dict[tuple[int, int], int], most_ns: Sequence[float] | None
    ) -> Iterator[bool]:
        """Plays a rank as far as others have been played, again and again."""
        events, works = self.logs[rank].events, iter(most_ns or ())
        waits = {wait.start_ns: wait for wait in self.waits[rank]}
        before_ns = now_ns = events[0].start_ns
        for event in events:
            now_ns += event.start_ns - before_ns
            lasts_ns, before_ns = event.duration_ns, event.end_ns
            played[rank, event.start_ns] = now_ns
            if event.kind == "work" and most_ns:
                lasts_ns = min(lasts_ns, int(next(works)))
            if wait := waits.get(event.start_ns):
                while not all(need in played for need in wait.needs):
                    yield True
                ready_ns = max([event.start_ns, *(ns for _, ns in wait.needs)])
                now_ns = max([now_ns, *(played[need] for need in wait.needs)])
                lasts_ns = event.end_ns - ready_ns
            now_ns += lasts_ns
            played[rank, event.end_ns] = now_ns

    def truth(self, late: Sequence[int]) -> Truth:
        lasts_ns = max(log.events[-1].end_ns - log.events[0].start_ns for log in self.logs)
        truth = Truth(
            Counter(),
            Counter(),
            Counter(),
            Counter(),
            defaultdict(Counter),
            Counter(),
            Counter(),
            lasts_ns,
            lasts_ns - self.lasts_without_ns(late) if late else 0,
        )
        for wait in (wait for waits in self.waits for wait in waits):
            truth.wait_ns[wait.rank] += wait.wait_ns
            truth.transfer_ns[wait.rank] += wait.transfer_ns
            truth.unsure_ns[wait.rank] += wait.unsure_ns
            if wait.last_rank is None:
                continue
            truth.cost_ns[wait.last_rank] += wait.wait_ns
            for call in wait.calls:
                truth.cost_of_call_ns[call][wait.last_rank] += wait.wait_ns
            for root, part_ns in self._roots(
                wait.last_rank, wait.start_ns, wait.start_ns + wait.wait_ns
            ):
                truth.root_ns[root] += part_ns
        for rank, log in enumerate(self.logs):
            truth.taken_ns[rank] = sum(
                event.duration_ns for event in log.events if event.kind in CALLS_IN_MPI
            )
        return truth


def truth_of(folder: Path, ahead_ns: Sequence[int], late: Sequence[int] = ()) -> Truth:
    """From the files log-RANK in a folder; by rank, how far its clock is ahead. late: the ranks."""
    logs = [read(folder / f"log-{rank}", ahead) for rank, ahead in enumerate(ahead_ns)]
    return Job(logs).truth(late)

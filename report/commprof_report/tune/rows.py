"""The collectives of a kit or a run that a tuning file could speed up."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ..base import np, threshold
from ..late.late_ranks import Late
from ..replay import kit as kits
from .evidence import RACED

WORTH = threshold("tune.worth")


class Row(NamedTuple):
    """Blocking calls of one size on communicators of so many ranks. calls: of the communicator, in
    the kit or the run. share: by which the run would be shorter if they took no time beyond
    waiting; None: not known."""

    call: str
    bytes: int
    ranks: int
    calls: int
    share: float | None = None

    @property
    def is_worth(self) -> bool:
        return self.share is None or self.share >= WORTH


def rows_of_kit(path: Path) -> list[Row]:
    """A kit has no durations. Most calls first."""
    sizes, types, calls = list[int](), list[int](), list[tuple[str, int, int]]()
    made: Counter[tuple[str, int, int]] = Counter()
    with kits.opened(path) as text:
        for line in text:
            word, *rest = line.decode(errors="replace").split()
            if word == "comm":
                sizes.append(len(rest[4].split(",")))
            elif word == "type":
                types.append(int(rest[2]))
            elif word == "call" and rest[2] != kits.NONE:
                has_volume = kits.NONE not in rest[3:5]
                volume = types[int(rest[3])] * int(rest[4]) if has_volume else 0
                calls.append((rest[1], volume, sizes[int(rest[2])]))
            elif word == "call":
                calls.append(("", 0, 1))
            elif word.lstrip("~").isdecimal():
                made[calls[int(rest[0])]] += 1
    return [
        Row(call, volume, ranks, count // ranks)
        for (call, volume, ranks), count in made.most_common()
        if call in RACED and ranks > 1 and volume
    ]


def rows_of_run(answers: Late) -> list[Row]:
    """With shares, of the calls that were sampled and split; most first."""
    part, split = answers.retimed.host, answers.split
    if part is None:
        return []
    waits, texts = split.of_all.waits, split.of_all.texts
    communicators = split.known.communicators
    played = part.wait >= 0
    found = []
    own = waits.is_blocking_collective & (waits.bytes > 0)
    own &= texts.among(waits.call, set(RACED))
    members = {
        number: communicators[identity].size
        for number in np.unique(waits.identity[own]).tolist()
        if (identity := texts.text(number)) in communicators
    }
    ranks = np.array([members.get(number, 0) for number in waits.identity.tolist()])
    keys = np.stack([waits.call, waits.bytes, ranks], axis=1)[own & (ranks > 1)]
    for call, volume, size in np.unique(keys, axis=0).tolist():
        is_row = own & (waits.call == call) & (waits.bytes == volume) & (ranks == size)
        changed = part.unchanged.transfer_ns.copy()
        changed[played & is_row[np.where(played, part.wait, 0)]] = 0
        times_ns = part.graph.play(part.unchanged._replace(transfer_ns=changed))
        whole_ns = int(part.graph.lasts_ns(part.before_ns).sum())
        found.append(
            Row(
                texts.texts[call],
                volume,
                size,
                int(is_row.sum()) // size,
                part.saved_ns(times_ns) * part.share / (whole_ns or 1),
            )
        )
    return sorted(found, key=lambda row: -(row.share or 0.0))

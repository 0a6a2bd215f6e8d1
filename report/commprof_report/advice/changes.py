"""Changes that findings would make in the recorded calls (retime/graph.py), so that their savings
are predicted by playing these again, each alone and all together. None: those calls were not
played."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import reduce

from ..base.arrays import np
from ..base.columns import NONE, Flags
from ..late.retimed import Part
from ..late.waits import Waits
from ..retime.graph import Change
from .inputs import Inputs

Which = Callable[[Waits], Flags]  # some of the waits


def chosen(
    inputs: Inputs, calls: Collection[str], identities: Collection[str] = (),
    sizes: Sequence[int] = (), which: Which | None = None,
) -> Flags:
    """The waits in these calls; on these communicators, of these sizes, if they are given."""
    of_all = inputs.late.stages.split.of_all
    waits, texts = of_all.waits, of_all.texts
    found = texts.among(waits.call, calls)
    if identities:
        found &= texts.among(waits.identity, identities)
    if sizes:
        found &= np.isin(waits.bytes, sizes)
    return found & which(waits) if which else found


def _having(inputs: Inputs, waits: Flags) -> Part | None:
    """The calls that were played, if some of these waits are among them."""
    played = inputs.played
    return played if played and played.are(waits).any() else None


def shorter(inputs: Inputs, waits: Flags, part: float) -> Change | None:
    """Their transfers last this part of what they do."""
    played = _having(inputs, waits)
    return played.shorter(waits, part) if played else None


def no_longer(inputs: Inputs, waits: Flags, ns_per_byte: float) -> Change | None:
    own_bytes = inputs.late.stages.split.of_all.waits.bytes
    played = _having(inputs, waits)
    return played.no_longer(waits, np.maximum(own_bytes, 0) * ns_per_byte) if played else None


def waiting_for_none(inputs: Inputs, waits: Flags) -> Change | None:
    """These calls depend on no other rank."""
    played = _having(inputs, waits)
    return played.unchanged._replace(is_free=played.are(waits)) if played else None


def without_progress(inputs: Inputs) -> Change | None:
    """No call waits until another rank comes back into MPI."""
    played = inputs.played
    if not played:
        return None
    return played.unchanged._replace(needs_none=np.ones(len(played.graph.calls), bool))


def without(inputs: Inputs, ranks: Iterable[int], before: Flags | None = None) -> Change | None:
    """These ranks take no longer than the others do; before: only before these waits."""
    played = inputs.played
    if not played:
        return None
    change = played.without(tuple(ranks))
    if before is None:
        return change
    own, gap_ns = played.are(before), played.unchanged.gap_ns.copy()
    gap_ns[: len(own)][own] = change.gap_ns[: len(own)][own]
    return played.unchanged._replace(gap_ns=gap_ns)


def saving_ns(inputs: Inputs, changes: Iterable[Change]) -> float:
    """The saving of all these together, over all ranks."""
    played = inputs.played
    if not played:
        return 0.0
    change = reduce(Change.together, changes, played.unchanged)
    return played.gain_ns(change) * inputs.ranks


def is_message(waits: Waits) -> Flags:
    return (waits.peer != NONE) & (waits.completion == NONE)


def is_completed(waits: Waits) -> Flags:
    return waits.completion != NONE

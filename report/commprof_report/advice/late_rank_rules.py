"""Words of the rules about late ranks. `late` and `steps` decide who is named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base import units
from ..late.links import Link
from ..late.reasons import ASLEEP, COMPUTES, DISK, LOST_CORE
from ..late.sentences import answer, unfinished_text
from .findings import POSSIBLE, Finding, Unknown
from .inputs import Inputs


def waited_for(ranks: Sequence[int], width: int | None = None) -> str:
    return f"{units.rank_names(ranks, width)} {units.agreeing('are', len(ranks))} waited for"


def slow_text(link: Link) -> str:
    return f"the link from rank {link.sender} to rank {link.receiver} is slow"


def crowded(found: Finding, inputs: Inputs, why: str | None = None) -> Finding:
    """If ranks wait for cores, a late rank may merely not have been scheduled. why: the kind of the
    reason, if it is known."""
    crowding = inputs.answers.summary.crowding
    if not crowding or why in (COMPUTES, ASLEEP, DISK):
        return found
    if why == LOST_CORE:
        return found._replace(evidence=f"{found.evidence}; {crowding}")
    do = "wait for" if any(each.lost for each in inputs.late.crowding) else "share"
    return found._replace(
        title=f"{found.title}, but ranks {do} cores",
        evidence=f"{found.evidence}; {crowding}",
        suggestion="give each rank a core of its own (fewer ranks, other binding, a larger quota) "
        "before looking for the cause in a rank",
        certainty=POSSIBLE,
    )


def late_unknown(inputs: Inputs) -> Iterator[Unknown]:
    """The verdict of hvprof-report late, if it is not known: then nothing is denied."""
    if inputs.late.unfinished:
        yield Unknown(unfinished_text(inputs.late))
    elif isinstance(said := answer(inputs.late), Unknown):
        yield said

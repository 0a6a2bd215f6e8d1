"""A pair of ranks whose messages take longer than those between others."""

from __future__ import annotations

from collections.abc import Iterator

from ..base.arrays import np
from ..late.links import Link
from ..late.sentences import LINK, is_through_link, link_text
from ..retime.graph import Change
from . import basis, changes
from .findings import LIKELY, Finding, Unknown
from .inputs import Inputs
from .late_rank_rules import crowded, slow_text


def find(inputs: Inputs) -> Iterator[Finding | Unknown]:
    if not inputs.late.links:
        if not inputs.late.run.message_calls and any(map(basis.is_message, inputs.sizes)):
            yield Unknown("no message was split into waiting and transfer")
        return
    link, row = inputs.late.links[0], inputs.late.run
    gain_ns = (row.late_gain_ns or 0) * row.ranks if is_through_link(inputs.late) else 0
    found = Finding(
        slow_text(link), link_text(inputs.late), LINK, LIKELY, max(link.excess_ns, gain_ns),
        link.call, change=_as_between_others(link, inputs),
    )
    yield crowded(found, inputs)


def _as_between_others(link: Link, inputs: Inputs) -> Change | None:
    """All messages of the pair are as fast as between others."""
    waits, pair = inputs.late.stages.split.of_all.waits, [link.sender, link.receiver]
    return changes.shorter(
        inputs, np.isin(waits.world_rank, pair) & np.isin(waits.peer, pair), 1 / link.times
    )

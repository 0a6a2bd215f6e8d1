"""A pair of ranks whose messages take longer than those between others."""

from __future__ import annotations

from collections.abc import Iterator

from ..late.sentences import LINK, link_text
from . import basis
from .findings import LIKELY, Finding, Unknown
from .inputs import Inputs
from .late_rank_rules import crowded


def find(inputs: Inputs) -> Iterator[Finding | Unknown]:
    if not inputs.late.links:
        if not inputs.late.run.message_calls and any(map(basis.is_message, inputs.sizes)):
            yield Unknown("no message was split into waiting and transfer")
        return
    link = inputs.late.links[0]
    found = Finding(
        f"the link from rank {link.sender} to rank {link.receiver} is slow", link_text(inputs.late),
        LINK, LIKELY, link.excess_ns, link.call,
    )
    yield crowded(found, inputs)

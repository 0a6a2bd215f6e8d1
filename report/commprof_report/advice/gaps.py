"""Questions that the profile cannot answer, or only in part."""

from __future__ import annotations

from collections.abc import Iterator

from ..late.sentences import unfinished_text
from ..run.unseen import merged, missing, reason_text
from .findings import SURE, Finding
from .inputs import Inputs


def find(inputs: Inputs) -> Iterator[Finding]:
    if inputs.late.unfinished:
        yield Finding(
            unfinished_text(inputs.late),
            "all figures cover finished calls; what ranks wait in these is not counted",
            "`stuck` says who waits for whom", SURE,
        )
    lacking, together = missing(inputs.answers.seen), merged(inputs.answers.seen)
    if lacking or together:
        ways_out = dict.fromkeys(row.way_out for row in [*lacking, *together] if row.way_out)
        yield Finding(
            "this profile is not complete" if lacking
            else "this profile counts some things together",
            "; ".join(map(reason_text, [*lacking, *together])),
            "; ".join(ways_out) or "`seen` lists what is missing", SURE,
        )

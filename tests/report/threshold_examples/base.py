"""Steps of several ranks."""

from __future__ import annotations

from collections.abc import Sequence

from commprof_report.base.summarize import agree, matched, warm_up
from commprof_report.late.sentences import basis_text

from .late import RUN

STEP_NS, STEPS = 1_000, 100
ENDS = [STEP_NS * place for place in range(STEPS)]


def missed(number: int) -> str:
    """A rank lacks so many steps, and its last one ends long after those of the other."""
    own = [*ENDS[: STEPS - 1 - number], ENDS[-1] + 3 * STEP_NS]
    return "in order" if max(matched({0: ENDS, 1: own})[1]) <= STEPS else "by time"


def longer_steps(ratio: float) -> str:
    own = [round(ratio * end_ns) for end_ns in ENDS[:60]]
    return "matched" if 1 in matched({0: ENDS, 1: own}) else "left out"


def apart(share: float) -> str:
    own = [end_ns + round(share * STEP_NS) for end_ns in ENDS]
    return "the same steps" if agree({0: ENDS, 1: own}) else "other steps"


def warm_up_of(times: Sequence[float]) -> int:
    return len(list(warm_up(dict(enumerate(times, 1)))))


def slow_start(share: float) -> str:
    slow = round(share * 1_000)
    steps = warm_up_of([2.0] * slow + [1.0] * (1_000 - slow))
    return "all slow steps" if steps == slow else "not all slow steps"


EXAMPLES = {
    "base.all": lambda share: basis_text(RUN._replace(coverage=share)).partition(" of ")[0],
    "base.missed-steps": missed,
    "base.several-steps": longer_steps,
    "base.same-step": apart,
    "base.slow-start": lambda ratio: (
        "1 step" if warm_up_of([1.0, ratio, *[1.0] * 98]) == 1 else "2 steps"
    ),
    "base.warm-up": slow_start,
}

"""Whether steps became slower over the run: Kendall's test on the medians of parts of it.

The steps are divided, in order of time, into up to 16 parts with the same number of steps, three or
more. A run has less than 1 % probability of showing a trend if all orders of their medians are
equally probable.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from ..base import kendall
from ..base.thresholds import threshold, whole
from ..late.verdict import spans

FEWEST_STEPS = whole("steps.trend-steps")
MOST_PARTS, FEWEST_OF_A_PART = whole("steps.trend-parts"), whole("steps.trend-part")
TREND_LEVEL, NOTABLE = threshold("steps.trend-level"), threshold("steps.trend-notable")


class Trend(NamedTuple):
    trend: str  # 'none', 'slower', 'faster', 'unknown'
    trend_p: float | None
    first_tenth_ns: float | None
    last_tenth_ns: float | None


def trend(step_ns: Sequence[float]) -> Trend:
    """Trend of the durations of steps in order of time."""
    if len(step_ns) < FEWEST_STEPS:
        return Trend("unknown", None, None, None)
    medians = [median(step_ns[begin:end]) for begin, end in parts(len(step_ns))]
    score = kendall.score(medians)
    tenth = len(step_ns) // 10
    first_ns, last_ns = median(step_ns[:tenth]), median(step_ns[-tenth:])
    change_ns, p = last_ns - first_ns, kendall.chance(len(medians), abs(score))
    is_notable = change_ns * score > 0 and abs(change_ns) >= NOTABLE * median(step_ns)
    seen = ("slower" if score > 0 else "faster") if p < TREND_LEVEL and is_notable else "none"
    return Trend(seen, p, first_ns, last_ns)


def parts(steps: int) -> list[tuple[int, int]]:
    return spans(steps, min(MOST_PARTS, steps // FEWEST_OF_A_PART))

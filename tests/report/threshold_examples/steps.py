"""Which steps there are, and what is said of them."""

from __future__ import annotations

import numpy as np
from commprof_report.base import chance, units
from commprof_report.late.wait_split import OUTSIDE, UNSPLIT, Piece
from commprof_report.steps.boundaries import outlier_limit
from commprof_report.steps.long_steps import foreign_calls, is_known, parts, trend, why_longer
from commprof_report.steps.gpu_steps import cost_of
from commprof_report.steps.lines import mostly_timed
from commprof_report.steps.columns import STEPS, steps_row
from commprof_report.steps.steps_summary import headline, outside_text

MANY = 1_000
NOTHING = steps_row(*[None] * len(STEPS))


def timed(share: float) -> str:
    is_timed = np.arange(MANY) < round(share * MANY)
    is_on_device = mostly_timed(np.zeros(MANY, np.int64), is_timed, np.ones(MANY, bool))
    return "device" if is_on_device[0] else "host"


def outlier(step_ns: float, others_ns: list[int]) -> str:
    return "outlier" if step_ns > outlier_limit(others_ns) else "usual"


def foreign(share: float) -> str:
    steps = np.arange(round(share * MANY))
    return "foreign" if foreign_calls(steps, np.zeros_like(steps), MANY) else "usual"


def explains(share: float) -> str:
    said = why_longer(1_000, [], [share * 1_000], {}, True)
    return "explained" if said.endswith("more outside MPI") else "unexplained"


def trend_parts(number: int) -> str:
    longest = max(end - begin for begin, end in parts(3 * number))
    return "3 steps a part" if longest == 3 else "4 steps in some"


def trend_part(steps: int) -> str:
    return "16 parts" if len(parts(16 * steps)) == 16 else "fewer parts"


def trend_notable(share: float) -> str:
    """From one level to another, and as long at each."""
    rise = np.clip((np.arange(100) - 10) / 79, 0, 1) - 0.5
    return trend((1_000_000 * (1 + share * rise)).tolist()).trend


def trend_level(p: float) -> str:
    """Parts of which so many pairs rise that this is as probable; the first and last stay."""
    parts, score = min(
        (
            (parts, score)
            for parts in range(8, 17)
            for score in range(parts * (parts - 1) // 2, 0, -2)
        ),
        key=lambda each: abs(chance(*each) - p),
    )
    order = list(range(parts))
    for _ in range((parts * (parts - 1) // 2 - score) // 2):
        at = next(at for at in range(1, parts - 2) if order[at] < order[at + 1])
        order[at : at + 2] = order[at + 1], order[at]
    return trend([1_000 + 10 * own for own in order for _ in range(3)]).trend


def shown(share: float) -> str:
    known = {"delimited_by": "marks", "step_ns": 1e9, "is_driven": 1, "outside_ns": 1e9}
    row = NOTHING._replace(communication_ns=share * 1e9, main_poll_share=0.0, **known)
    return "said" if "in MPI" in headline(row, None) else "silent"


def path(share: float) -> str:
    known_ns = round(share * MANY)
    pieces = [Piece(0, known_ns, OUTSIDE, "", None), Piece(known_ns, MANY, UNSPLIT, "", None)]
    return "a path" if is_known([(0, piece) for piece in pieces]) else "no path"


def tracing_steps(steps: int) -> str:
    cost, _ = cost_of([1_100.0] * steps, [1_000.0] * steps)
    return "unknown" if cost is None else units.share(cost)


EXAMPLES = {
    "steps.timed": timed,
    "steps.far-out": lambda far: outlier(1_000 + far * 100, [900, 1_000, 1_100]),
    "steps.outlier": lambda times: outlier(1_000 * times, [1_000] * 3),
    "steps.foreign": foreign,
    "steps.explains": explains,
    "steps.trend-steps": lambda steps: trend(range(1_000, 1_000 + 10 * steps, 10)).trend,
    "steps.trend-parts": trend_parts,
    "steps.trend-part": trend_part,
    "steps.trend-notable": trend_notable,
    "steps.trend-level": trend_level,
    "steps.shown": shown,
    "steps.polls": lambda share: outside_text(NOTHING._replace(main_poll_share=share)),
    "steps.path": path,
    "steps.tracing-steps": tracing_steps,
}

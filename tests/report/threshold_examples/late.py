"""Who is waited for."""

from __future__ import annotations

from commprof_report.late.judgement import verdict_of
from commprof_report.late.sums import LateRunRow
from commprof_report.late.verdict import NOBODY

COUNTED_NS = 1_000_000
RUN = LateRunRow(
    ranks=4, collectives=100, message_calls=0, total_ns=500_000, sampled_ns=500_000, coverage=1.0,
    sampled_share=1.0, wait_ns=0, transfer_ns=500_000, wait_share=0.0, share_of_wall=0.5,
    estimate_share=0.0, background_share=0.0, counted_ns=COUNTED_NS,
)  # all time inside MPI moves data


def verdict(negotiated: float = 0.0, blocks: int = 16, **differing: object) -> str:
    return verdict_of(RUN._replace(**differing), negotiated, 0, NOBODY, blocks)


EXAMPLES = {
    "late.covered": lambda share: verdict(coverage=share),
    "late.negotiated": lambda share: verdict(share),
    "late.notable": lambda share: verdict(transfer_ns=int(share * COUNTED_NS)),
    "late.blocks": lambda blocks: verdict(blocks=blocks, wait_ns=400_000, transfer_ns=100_000),
}

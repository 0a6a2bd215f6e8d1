"""MPI has host buffers only, and GPUs copy about as much to the host and back: what these copies
took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base import units
from ..base.thresholds import threshold
from ..gpu.copied import copied_rows
from .findings import POSSIBLE, Finding
from .inputs import Inputs

ALIKE = threshold("advice.copies-alike")
STAGED = threshold("advice.staged")


def find(inputs: Inputs) -> Iterator[Finding]:
    summary = inputs.answers.summary
    copied = copied_rows(inputs.run.connection)
    volumes = [row.volume_bytes for row in copied]
    if summary.device_volume_share or not is_staged(volumes, summary.volume_bytes):
        return
    yield Finding(
        "hand GPU buffers to MPI",
        f"MPI calls have host buffers only ({units.volume(summary.volume_bytes)}), and GPUs copied "
        f"{_copies_text(copied)} while they were traced: it looks staged, though what was copied "
        "for MPI is not known",
        "if the MPI library is CUDA-aware, pass it device pointers; or let NCCL move what lies on "
        "GPUs",
        POSSIBLE, sum(row.total_ns for row in copied),
    )


def is_staged(copied_bytes: Sequence[int], mpi_bytes: int) -> bool:
    """copied_bytes: to the host and to the device. Copies that come to little (a batch of data, a
    loss) say nothing."""
    return (
        len(copied_bytes) == 2 and min(copied_bytes) >= ALIKE * max(copied_bytes)
        and max(copied_bytes) >= STAGED * mpi_bytes > 0
    )


def _copies_text(copied: Sequence) -> str:
    """1.20 GB to host (0.31 s) and 1.20 GB to device (0.29 s)"""
    return " and ".join(
        f"{units.volume(row.volume_bytes)} {row.copy} ({units.duration(row.total_ns)})"
        for row in reversed(copied)
    )

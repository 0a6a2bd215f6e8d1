"""Bins of message sizes."""

from __future__ import annotations

KIB, MIB = 1 << 10, 1 << 20

# The ranges in hvprof's tables of Horovod's Allreduce (Awan et al., Hot Interconnects 2019): upper
# bounds; the last bin is open.
HVPROF_BOUNDS = (0, 128 * KIB, 16 * MIB, 32 * MIB, 64 * MIB)


def exact(message_bytes: int, is_folded: bool) -> tuple[int, int | None]:
    """A bin for each size; for a folded cell the range of its sizes."""
    return (message_bytes // 2 + 1 if is_folded else message_bytes), message_bytes


def pow2(message_bytes: int, is_folded: bool) -> tuple[int, int | None]:
    """Above 2^(k-1), up to 2^k. 0 and 1 have their own bins."""
    if message_bytes <= 1:
        return message_bytes, message_bytes
    high = 1 << (message_bytes - 1).bit_length()
    return high // 2 + 1, high


def hvprof_classes() -> list[tuple[int, int | None]]:
    """Lowest and highest size of each of hvprof's bins; the last has no highest."""
    return list(zip((0, *(bound + 1 for bound in HVPROF_BOUNDS)), (*HVPROF_BOUNDS, None)))


def hvprof(message_bytes: int, is_folded: bool) -> tuple[int, int | None]:
    """1 B to 128 KiB, up to 16 MiB, up to 32 MiB, up to 64 MiB, above; empty messages
    separately."""
    return next(
        (low, high) for low, high in hvprof_classes() if high is None or message_bytes <= high
    )


BINS = {"exact": exact, "pow2": pow2, "hvprof": hvprof}

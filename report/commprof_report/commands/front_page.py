"""The figures at the top of the page: what a step is, or where the time of other runs goes."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import units
from ..base.values import present
from ..late.marks import HANDED
from ..late.sentences import mark_text
from ..steps.steps_summary import StepsRow, waited_text
from ..summary.run_summary import RunSummary, SummaryRow
from . import summary

Card = tuple[str, str]  # the figure, and what it is


def cards(answers: RunSummary, steps: StepsRow) -> list[Card]:
    row = answers.summary
    cost = units.share(row.cost_share)
    if steps.steps_per_s is None:
        own = (cost, "of wall time is the profiler's own")
        return [(summary.wall_time(row), "wall time"), *library_cards(row), own]
    of_step = [rate_card(steps), *exposed_cards(steps), *message_cards(steps)]
    of_run = [*share_cards(row, steps), *nccl_cards(row)[:1]]
    wall = (summary.wall_time(row), f"wall time; {cost} of it is the profiler's own")
    return [*of_step, *of_run, wall]


def library_cards(row: SummaryRow) -> list[Card]:
    mpi = [
        *share_cards(row, None),
        (units.volume(row.volume_bytes), "handed to MPI, all ranks"),
    ]
    return (mpi if summary.has_mpi(row) else []) + nccl_cards(row)


def is_wait(call: str) -> bool:
    return call.startswith(("MPI_Wait", "MPI_Test"))


def nccl_cards(row: SummaryRow) -> list[Card]:
    if not row.has_nccl:
        return []
    spent = units.duration(row.nccl_device_ns)
    return [
        (spent, "NCCL on the device, all ranks, as far as it was traced"),
        (units.volume(row.nccl_volume_bytes), "handed to NCCL, all ranks"),
    ]


def rate_card(steps: StepsRow) -> Card:
    """Steps of more than a second are given by their time."""
    step, count = units.duration(steps.step_ns), units.counted(steps.steps, "step")
    steps_per_s = present(steps.steps_per_s)
    if steps_per_s < 1:
        return step, f"a step, the mean of {count}"
    return f"{units.three_digits(steps_per_s)} steps/s", f"{step} a step, the mean of {count}"


def exposed_cards(steps: StepsRow) -> Iterator[Card]:
    """A step waits for none to all of what another thread communicates, unless a region around the
    wait shows it. If that thread negotiates, a step also waits for a round to begin."""
    of_step = "of a step is exposed communication"
    has_nccl = steps.nccl_host_ns is not None
    if steps.gpu_steps and has_nccl:
        exposed = units.duration(steps.gpu_exposed_ns)
        yield units.share(steps.gpu_exposed_share), f"{of_step} on the GPU ({exposed})"
    if steps.is_driven:
        exposed = units.duration(steps.communication_ns)
        where = " in MPI" if has_nccl or steps.wait_region else ""
        yield units.share(steps.communication_share), f"{of_step}{where} ({exposed})"
    if steps.wait_region:
        exposed, where = units.duration(steps.wait_region_ns), f"in {mark_text(steps.wait_region)}"
        if steps.wait_region == HANDED:
            where = "after its gradients are handed over"
        yield waited_text(steps), f"{of_step} ({exposed} {where})"
    elif steps.is_driven:
        return
    elif steps.background_ns and not steps.negotiation:
        most, spent = min(1.0, present(steps.background_share)), units.duration(steps.background_ns)
        yield (
            f"0 to {units.share(most)}", f"{of_step}: a background thread communicates for {spent}",
        )


def message_cards(steps: StepsRow) -> Iterator[Card]:
    if not steps.messages:
        return
    mean, whole = (
        units.size(volume)
        for volume in (present(steps.message_bytes) / steps.messages, steps.message_bytes)
    )
    number = units.three_digits(steps.messages)
    yield number, f"data collectives a step, of {mean} on average: {whole}"


def share_cards(row: SummaryRow, steps: StepsRow | None) -> list[Card]:
    """`steps`: knows how many rounds of a negotiation are idle."""
    if not summary.has_mpi(row):
        return []
    whole = summary.whole(row)
    if row.negotiation_share_mean is None:
        return [(units.share(row.mpi_share_mean), f"of {whole} inside MPI, mean over ranks")]
    negotiation = units.share(row.negotiation_share_mean)
    text = f"of {whole} in data operations; {negotiation} in negotiation"
    if steps and steps.idle_rounds_share is not None:
        text += f", {units.share(steps.idle_rounds_share)} of its rounds idle"
    return [(units.share(row.data_share_mean), text)]

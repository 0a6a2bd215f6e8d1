"""The plants: programs with a fault (programs/plants.calls), and what is right to say of them."""

from __future__ import annotations

from typing import NamedTuple

ROUNDS = 16
BASE_US, DELAY_US = 2_000, 40_000


class Plant(NamedTuple):
    """`cause` is the verdict of hvprof-report late. Time is never given here: it is what the ranks
    log. `is_negotiated`: a background thread agrees with the others before it sends, so the time of
    its calls is not that of the ranks' waits, which the main threads log."""

    name: str
    program: str  # as plants.calls names it
    ranks: int
    late: tuple[int, ...]  # who is late by DELAY_US; empty: as the program says
    # imbalance, by-call, spread, transfer, marks, unknown; or none: nobody waits
    cause: str
    calls: dict[str, int] = {}  # the late rank of each call; empty: there is nothing to say
    delay_us: int = DELAY_US
    base_us: int = BASE_US
    rounds: int = ROUNDS
    where: str = "here"  # or hosts, cores, network, size, link, pair: what is around the ranks
    # the sender (None: messages of several are completed together) and the receiver whose messages
    # are slow, and the sender that the layer below delays
    link: tuple[int | None, int] | None = None
    slow_sender: int = 1
    accused: tuple[int, ...] = ()  # who is to be named, if these are not the late ones
    # COMMPROF_SAMPLES, so few that the log has a part of the calls: figures of time are estimates
    # then
    samples: str = ""
    is_negotiated: bool = False
    is_recorded: bool = True  # recordings.py has it; others are played in `make nightly` alone
    reason: str = "asleep"  # why the late ranks are late; most sleep in place of working
    says_why: bool = False  # it lasts long enough for the reports to know the reason

    @property
    def named(self) -> tuple[int, ...]:
        """Who is to be named."""
        return self.accused or (self.late if self.cause == "imbalance" else ())

    @property
    def logs_gain(self) -> bool:
        """The logs played again show what would be gained: the ranks log their work, it alone is
        longer, and no tree, which the logs do not have, is between late ranks and others."""
        in_tree = self.program in ("late_inner", "early_reduce", "second_thread")
        by_work = not in_tree and not self.is_negotiated and self.program != "ddp"
        return bool(self.named) and by_work and self.where in ("here", "hosts")


def imbalance(
    name: str, program: str, late: tuple[int, ...], call: str, ranks: int = 4, **more: object
) -> Plant:
    return Plant(name, program, ranks, late, "imbalance", {call: late[0]} if call else {}, **more)


TRAINING: dict = {"base_us": 6_000, "rounds": 2 * ROUNDS}
WHY: dict = {"rounds": 4 * ROUNDS, "says_why": True}
NEGOTIATED: dict = TRAINING | {"is_negotiated": True}
NAMED: dict = NEGOTIATED | {"accused": (1,)}
PLANTS = [
    imbalance("slow rank before Allreduce", "blocking", (2,), "MPI_Allreduce"),
    imbalance("slow rank, two ranks", "blocking", (1,), "MPI_Allreduce", 2),
    imbalance("a rank that sleeps", "blocking", (1,), "MPI_Allreduce", 2, **WHY),
    imbalance(
        "a rank that computes", "computing", (1,), "MPI_Allreduce", 2, reason="computes", **WHY
    ),
    imbalance("slow rank, eight ranks", "blocking", (5,), "MPI_Allreduce", 8),
    imbalance(
        "two ranks of eight, equally late",
        "blocking",
        (2, 5),
        "",
        8,
        is_recorded=False,
        rounds=2 * ROUNDS,
    ),
    imbalance(
        "a rank that waits for its other thread",
        "helped",
        (1,),
        "MPI_Allreduce",
        2,
        reason="threads",
        is_recorded=False,
        **WHY,
    ),
    *(
        Plant(
            f"a rank that is late in one round of {often}",
            f"plan:LA/{often}",
            ranks,
            (1,),
            "unknown",
            is_recorded=False,
            rounds=rounds,
        )
        for often, ranks, rounds in ((4, 2, 32), (7, 3, 48), (8, 3, 16), (10, 3, 48))
    ),
    imbalance(
        "slow rank behind a slow first communicator", "plan_set_up:Lq", (1,), "", is_recorded=False
    ),
    imbalance(
        "rank that works between Iallreduce and Wait",
        "plan:ICW",
        (1,),
        "MPI_Iallreduce",
        3,
        reason="computes",
        is_recorded=False,
        rounds=2 * ROUNDS,
    ),
    imbalance(
        "slow second thread",
        "second_thread",
        (1,),
        "MPI_Allreduce",
        3,
        is_recorded=False,
        rounds=2 * ROUNDS,
    ),
    imbalance("slow rank before Iallreduce and Waitall", "nonblocking", (1,), "MPI_Iallreduce"),
    imbalance("slow rank before persistent Allreduce", "persistent", (2,), "MPI_Allreduce_init"),
    imbalance("rank held up between Iallreduce and Wait", "held_up", (1,), "MPI_Iallreduce"),
    imbalance("receiver held up between Irecv and Wait", "pass_held_up", (3,), "", **TRAINING),
    imbalance("receiver held up, persistent message", "pass_persistent", (3,), "", **TRAINING),
    imbalance("late inner rank of Bcast", "late_inner", (2,), "MPI_Bcast", base_us=6_000),
    imbalance("late root of Bcast", "late_root", (1,), "MPI_Bcast"),
    imbalance("early root of Reduce", "early_reduce", (1,), "MPI_Reduce"),
    imbalance("late sender, eager", "pass_eager", (2,), "MPI_Recv"),
    imbalance("late sender, rendezvous", "pass_rendezvous", (2,), "MPI_Recv"),
    imbalance("late sender, Isend and Irecv", "pass_nonblocking", (0,), ""),
    imbalance(
        "slow link from rank 1 to rank 2",
        "ring",
        (2,),
        "MPI_Allreduce",
        where="pair",
        delay_us=20_000,
        link=(1, 2),
    ),
    imbalance("both ranks of a communicator", "pairs", (4, 5), "", 8, is_recorded=False),
    imbalance(
        "slow rank of one of two independent halves",
        "independent_halves",
        (1,),
        "",
        is_recorded=False,
    ),
    Plant(
        "a rank late in a third of the run",
        "one_third",
        3,
        (1,),
        "unknown",
        is_recorded=False,
        rounds=3 * ROUNDS,
    ),
    imbalance(
        "slow link behind Waitall",
        "halo",
        (2,),
        "",
        where="pair",
        delay_us=20_000,
        link=(None, 2),
        is_recorded=False,
    ),
    imbalance("late receiver, rendezvous", "pass_rendezvous", (3,), "MPI_Send"),
    Plant("late receiver, eager", "pass_eager", 4, (3,), "none"),
    imbalance("late sender, found by Iprobe", "pass_probed", (2,), "MPI_Iprobe"),
    imbalance("late target of an epoch", "put", (3,), "MPI_Win_start"),
    imbalance("late origin of an epoch", "put", (2,), "MPI_Win_wait"),
    imbalance("slow rank of gpipe, 2 stages x 2", "gpipe", (2,), "", delay_us=20_000, base_us=500),
    imbalance(
        "slow stage of 1F1B, 4 stages x 2", "1f1b", (4, 5), "", 8, delay_us=20_000, base_us=500
    ),
    imbalance(
        "slow rank of gpipe, a quarter of the calls sampled",
        "gpipe",
        (2,),
        "",
        delay_us=20_000,
        base_us=500,
        rounds=160,
        samples="64K",
    ),
    imbalance("more work on each higher rank", "staircase", (3,), "MPI_Allreduce"),
    Plant("random work on every rank", "random", 4, (), "spread", delay_us=2 * DELAY_US),
    imbalance("slow master", "serve", (0,), "MPI_Recv"),
    imbalance("slow rank that gathers", "collect", (0,), "MPI_Allreduce"),
    Plant(
        "rank that gathers by a slow network",
        "collect",
        4,
        (),
        "spread",
        delay_us=5_000,
        where="network",
    ),
    Plant("random work, eager messages to all", "fan_out", 4, (1,), "spread", rounds=2 * ROUNDS),
    Plant("ranks take turns", "rotation", 4, (), "spread"),
    Plant(
        "rank 1 in Allreduce, rank 0 in Barrier",
        "by_call",
        4,
        (),
        "by-call",
        {"MPI_Allreduce": 1, "MPI_Barrier": 0},
    ),
    imbalance("a rank that gets slower", "drift", (1,), "MPI_Allreduce"),
    imbalance("slow host of two, with other clocks", "blocking", (2, 3), "", where="hosts"),
    imbalance("slow rank on one of two hosts", "blocking", (3,), "MPI_Allreduce", where="hosts"),
    imbalance(
        "noisy neighbour on a core",
        "noisy_neighbour",
        (0,),
        "MPI_Allreduce",
        2,
        base_us=5_000,
        reason="core",
        where="cores",
        **WHY,
    ),
    Plant("slow network", "blocking", 4, (), "transfer", where="network"),
    imbalance("slow rank of DistributedDataParallel", "ddp", (1,), "MPI_Allreduce", 4, **TRAINING),
    Plant("slow rank of Horovod", "horovod", 2, (1,), "marks", **NAMED),
    Plant("slow rank of Horovod, marks", "horovod_marks", 2, (1,), "marks", **NAMED),
    Plant("slow rank of Horovod, regions", "horovod_regions", 2, (1,), "marks", **NAMED),
    *(
        Plant(
            f"slow rank of Horovod, {how}",
            f"horovod_{program}",
            ranks,
            (1,),
            "marks",
            is_recorded=False,
            reason="computes" if program == "computing" else "asleep",
            **NAMED,
        )
        for how, program, ranks in (
            ("that computes", "computing", 2),
            ("in backward alone", "backward", 2),
            ("in every other epoch", "some", 2),
            ("evaluation between epochs", "evaluating", 2),
            ("130 tensors, eight ranks", "wide", 8),
        )
    ),
    Plant(
        "slow rank 1 of two of Horovod, without the cache",
        "horovod_by_name",
        2,
        (1,),
        "unknown",
        is_recorded=False,
        **NEGOTIATED,
    ),
    Plant(
        "slow rank 1 of Horovod, without the cache",
        "horovod_by_name",
        4,
        (1,),
        "marks",
        is_recorded=False,
        reason="asleep",
        **NAMED,
    ),
    Plant(
        "slow rank 0 of Horovod, without the cache",
        "horovod_by_name",
        2,
        (0,),
        "marks",
        is_recorded=False,
        reason="asleep",
        **NEGOTIATED | {"accused": (0,)},
    ),
    Plant(
        "slow rank of Horovod, 130 tensors, eight ranks, without the cache",
        "horovod_by_name_wide",
        8,
        (1,),
        "marks",
        is_recorded=False,
        **NAMED,
    ),
    Plant(
        "one slow size",
        "sizes",
        2,
        (),
        "transfer",
        where="size",
        delay_us=20_000,
        is_recorded=False,
    ),
    Plant("slow connection of a rank", "blocking", 4, (), "transfer", where="link"),
]
SAME_TWINS = {"staircase", "random", "rotation", "drift"}  # without delay these are "blocking"
TWINS = [
    plant
    for plant in PLANTS
    if plant.program not in SAME_TWINS and plant.where not in ("network", "link")
]

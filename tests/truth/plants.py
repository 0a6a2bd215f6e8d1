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


# A plant's name; program, ranks, late ranks, cause, calls (each with its late rank, if that is not
# the first late one); and what differs from the defaults. accused: the late ranks, whatever the
# cause; nightly: not recorded.
TABLE = """
slow rank before Allreduce: blocking 4 2 imbalance Allreduce
slow rank, two ranks: blocking 2 1 imbalance Allreduce
a rank that sleeps: blocking 2 1 imbalance Allreduce why
a rank that computes: computing 2 1 imbalance Allreduce why reason=computes
slow rank, eight ranks: blocking 8 5 imbalance Allreduce
two ranks of eight, equally late: blocking 8 2,5 imbalance - nightly rounds=32
a rank that waits for its other thread: helped 2 1 imbalance Allreduce why nightly reason=threads
a rank that is late in one round of 4: plan:LA/4 2 1 unknown - nightly rounds=32
a rank that is late in one round of 7: plan:LA/7 3 1 unknown - nightly rounds=48
a rank that is late in one round of 8: plan:LA/8 3 1 unknown - nightly
a rank that is late in one round of 10: plan:LA/10 3 1 unknown - nightly rounds=48
slow rank behind a slow first communicator: plan_set_up:Lq 4 1 imbalance - nightly
rank that works between Iallreduce and Wait: \
    plan:ICW 3 1 imbalance Iallreduce nightly rounds=32 reason=computes
slow second thread: second_thread 3 1 imbalance Allreduce nightly rounds=32
slow rank before Iallreduce and Waitall: nonblocking 4 1 imbalance Iallreduce
slow rank before persistent Allreduce: persistent 4 2 imbalance Allreduce_init
rank held up between Iallreduce and Wait: held_up 4 1 imbalance Iallreduce
receiver held up between Irecv and Wait: pass_held_up 4 3 imbalance - training
receiver held up, persistent message: pass_persistent 4 3 imbalance - training
late inner rank of Bcast: late_inner 4 2 imbalance Bcast base=6000
late root of Bcast: late_root 4 1 imbalance Bcast
early root of Reduce: early_reduce 4 1 imbalance Reduce
late sender, eager: pass_eager 4 2 imbalance Recv
late sender, rendezvous: pass_rendezvous 4 2 imbalance Recv
late sender, Isend and Irecv: pass_nonblocking 4 0 imbalance -
slow link from rank 1 to rank 2: ring 4 2 imbalance Allreduce delay=20000 where=pair link=1>2
both ranks of a communicator: pairs 8 4,5 imbalance - nightly
slow rank of one of two independent halves: independent_halves 4 1 imbalance - nightly
a rank late in a third of the run: one_third 3 1 unknown - nightly rounds=48
slow link behind Waitall: halo 4 2 imbalance - nightly delay=20000 where=pair link=?>2
late receiver, rendezvous: pass_rendezvous 4 3 imbalance Send
late receiver, eager: pass_eager 4 3 none -
late sender, found by Iprobe: pass_probed 4 2 imbalance Iprobe
late target of an epoch: put 4 3 imbalance Win_start
late origin of an epoch: put 4 2 imbalance Win_wait
slow rank of gpipe, 2 stages x 2: gpipe 4 2 imbalance - delay=20000 base=500
slow stage of 1F1B, 4 stages x 2: 1f1b 8 4,5 imbalance - delay=20000 base=500
slow rank of gpipe, a quarter of the calls sampled: \
    gpipe 4 2 imbalance - delay=20000 base=500 rounds=160 samples=64K
more work on each higher rank: staircase 4 3 imbalance Allreduce
random work on every rank: random 4 - spread - delay=40000 rounds=64
slow master: serve 4 0 imbalance Recv
slow rank that gathers: collect 4 0 imbalance Allreduce
rank that gathers by a slow network: collect 4 - spread - delay=5000 where=network
random work, eager messages to all: fan_out 4 1 unknown -
ranks take turns: rotation 4 - spread -
rank 1 in Allreduce, rank 0 in Barrier: by_call 4 - by-call Allreduce=1,Barrier=0
a rank that gets slower: drift 4 1 imbalance Allreduce
slow host of two, with other clocks: blocking 4 2,3 imbalance - where=hosts
slow rank on one of two hosts: blocking 4 3 imbalance Allreduce where=hosts
noisy neighbour on a core: \
    noisy_neighbour 2 0 imbalance Allreduce why base=5000 where=cores reason=core
slow network: blocking 4 - transfer - where=network
slow rank of DistributedDataParallel: ddp 4 1 imbalance Allreduce training
slow rank of Horovod: horovod 2 1 marks - horovod accused
slow rank of Horovod, marks: horovod_marks 2 1 marks - horovod accused
slow rank of Horovod, regions: horovod_regions 2 1 marks - horovod accused
slow rank of Horovod, that computes: \
    horovod_computing 2 1 marks - horovod nightly accused reason=computes
slow rank of Horovod, in backward alone: horovod_backward 2 1 marks - horovod nightly accused
slow rank of Horovod, in every other epoch: horovod_some 2 1 marks - horovod nightly accused
slow rank of Horovod, evaluation between epochs: \
    horovod_evaluating 2 1 marks - horovod nightly accused
slow rank of Horovod, 130 tensors, eight ranks: horovod_wide 8 1 marks - horovod nightly accused
slow rank 1 of two of Horovod, without the cache: horovod_by_name 2 1 unknown - horovod nightly
slow rank 1 of Horovod, without the cache: horovod_by_name 4 1 marks - horovod nightly accused
slow rank 0 of Horovod, without the cache: horovod_by_name 2 0 marks - horovod nightly accused
slow rank of Horovod, 130 tensors, eight ranks, without the cache: \
    horovod_by_name_wide 8 1 marks - horovod nightly accused
one slow size: sizes 2 - transfer - nightly delay=20000 where=size
slow connection of a rank: blocking 4 - transfer - where=link
"""
BUNDLES: dict[str, dict[str, object]] = {
    "training": {"base_us": 6_000, "rounds": 2 * ROUNDS},
    "why": {"rounds": 4 * ROUNDS, "says_why": True},
    "horovod": {"base_us": 6_000, "rounds": 2 * ROUNDS, "is_negotiated": True},
    "nightly": {"is_recorded": False},
}
NAMES = {"base": "base_us", "delay": "delay_us"}


def plant_of(line: str) -> Plant:
    name, _, rest = line.rpartition(": ")
    program, ranks, ranks_late, cause, called, *options = rest.split()
    late = tuple(int(rank) for rank in ranks_late.split(",") if rank != "-")
    calls = [each.partition("=") for each in called.split(",") if each != "-"]
    more: dict[str, object] = {}
    for option in options:
        key, _, value = option.partition("=")
        if option == "accused":
            more[option] = late
        elif key == "link":
            sender, _, receiver = value.partition(">")
            more[key] = (None if sender == "?" else int(sender), int(receiver))
        elif value:
            more[NAMES.get(key, key)] = int(value) if value.isdigit() else value
        else:
            more |= BUNDLES[key]
    of_calls = {f"MPI_{call}": int(rank or late[0]) for call, _, rank in calls}
    return Plant(name, program, int(ranks), late, cause, of_calls, **more)


PLANTS = [plant_of(line) for line in TABLE.strip().splitlines()]
SAME_TWINS = {"staircase", "random", "rotation", "drift"}  # without delay these are "blocking"
TWINS = [
    plant
    for plant in PLANTS
    if plant.program not in SAME_TWINS and plant.where not in ("network", "link")
]

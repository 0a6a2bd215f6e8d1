#!/usr/bin/python3
"""Train a small ResNet, data-parallel over the ranks of an MPI job, on pictures that it draws
itself.

Every rank has a replica of the network and pictures of its own. After each backward pass the
gradients are averaged over the ranks, so all replicas take the same step. Exits 1 unless the loss
fell and the replicas are equal in the end.
"""

import argparse
import sys
import time
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional
from torch.optim.lr_scheduler import OneCycleLR

from network import Pictures, draw_pictures, small_resnet
from replicas import Replicas, are_equal

PEAK_LEARNING_RATE = 0.002
NETWORK_SEED = 1
TRAINING_SEED = 1000  # plus the rank
HELD_OUT_SEED = 2000  # plus the rank


class Score(NamedTuple):
    # cross-entropy, mean over the pictures of all ranks; a blind guess has log(12) = 2.48
    loss: float
    accuracy: float  # share of the pictures that are labelled rightly


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=6, help="default: %(default)s")
    parser.add_argument(
        "--pictures", type=int, default=768, help="for each rank (default: %(default)s)"
    )
    parser.add_argument(
        "--batch", type=int, default=16, help="pictures per rank and step (default: %(default)s)"
    )
    parser.add_argument(
        "--bucket-bytes",
        type=int,
        default=2**20,
        metavar="BYTES",
        help="gradients that travel in one Allreduce (default: 1 MiB; 0: each tensor by itself)",
    )
    parser.add_argument(
        "--late-rank", type=int, metavar="RANK", help="its pictures come late: plants a straggler"
    )
    parser.add_argument(
        "--late-ms",
        type=float,
        default=20,
        metavar="MS",
        help="by so much before each step (default: %(default)s)",
    )
    return parser.parse_args()


class Trainer:
    """One replica and what it takes to train it."""

    def __init__(self, replicas: Replicas, arguments: argparse.Namespace) -> None:
        self.replicas = replicas
        self.batch = arguments.batch
        self.late_s = arguments.late_ms / 1e3 if replicas.rank == arguments.late_rank else 0.0
        self.pictures = draw_pictures(arguments.pictures, TRAINING_SEED + replicas.rank)
        self.network = small_resnet()
        replicas.replicate(self.network)
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=PEAK_LEARNING_RATE)
        steps = arguments.epochs * -(-arguments.pictures // arguments.batch)
        self.schedule = OneCycleLR(self.optimizer, max_lr=PEAK_LEARNING_RATE, total_steps=steps)

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> float:
        """The loss, averaged over the ranks."""
        time.sleep(self.late_s)
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self.network(images), labels)
        loss.backward()
        self.replicas.average_gradients()
        self.optimizer.step()
        self.schedule.step()
        loss_sum = loss.detach().reshape(1)
        self.replicas.sum(loss_sum)
        return loss_sum.item() / self.replicas.size

    def epoch(self) -> float:
        batches = torch.randperm(len(self.pictures.labels)).split(self.batch)
        losses = [
            self.step(self.pictures.images[batch], self.pictures.labels[batch]) for batch in batches
        ]
        return sum(losses) / len(losses)


def evaluate(replicas: Replicas, network: nn.Module, pictures: Pictures) -> Score:
    """Each rank looks at its own pictures; the sums are added up."""
    with torch.no_grad():
        output = network(pictures.images)
    loss_sum = functional.cross_entropy(output, pictures.labels, reduction="sum")
    right = (output.argmax(1) == pictures.labels).sum()
    totals = torch.tensor([loss_sum, right, len(pictures.labels)], dtype=torch.float64)
    replicas.sum(totals)
    loss_total, right_total, count = totals.tolist()
    return Score(loss_total / count, right_total / count)


def main() -> int:
    arguments = parse_arguments()
    torch.set_num_threads(1)  # the ranks fill the cores
    torch.manual_seed(NETWORK_SEED)
    replicas = Replicas(arguments.bucket_bytes)

    def say(line: str) -> None:
        if replicas.rank == 0:
            print(line, flush=True)

    trainer = Trainer(replicas, arguments)
    held_out = draw_pictures(256, HELD_OUT_SEED + replicas.rank)
    parameters = sum(parameter.numel() for parameter in trainer.network.parameters())
    say(
        f"{replicas.size} ranks, {parameters} parameters, gradients averaged in buckets over mpi4py"
    )

    before = evaluate(replicas, trainer.network, held_out)
    for epoch in range(1, arguments.epochs + 1):
        start = time.monotonic()
        loss = trainer.epoch()
        say(f"epoch {epoch:2}: loss {loss:.3f}, {time.monotonic() - start:.1f} s")
    after = evaluate(replicas, trainer.network, held_out)
    say(
        f"held-out pictures: loss {before.loss:.3f} -> {after.loss:.3f}, {after.accuracy:.0%} right"
    )

    learned = after.loss < before.loss
    equal = are_equal(replicas, trainer.network)
    say("the replicas are equal" if equal else "train.py: the replicas differ")
    if not learned:
        say("train.py: the loss did not fall")
    return 0 if learned and equal else 1


if __name__ == "__main__":
    sys.exit(main())

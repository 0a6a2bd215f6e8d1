"""How the ranks keep one network between them: gradients gathered into buckets, one MPI_Allreduce a
bucket."""

from typing import List

import torch
from mpi4py import MPI
from torch import nn


class Bucket:
    """Gradients that travel together: the parameters they belong to and one buffer
    for all of them."""

    def __init__(self, parameters: List[nn.Parameter]) -> None:
        lengths = [parameter.numel() for parameter in parameters]
        self.parameters = parameters
        self.buffer = torch.empty(sum(lengths))
        self.parts = self.buffer.split(lengths)

    def gather(self) -> None:
        for part, parameter in zip(self.parts, self.parameters):
            part.copy_(parameter.grad.reshape(-1))

    def scatter(self) -> None:
        for part, parameter in zip(self.parts, self.parameters):
            parameter.grad.copy_(part.view_as(parameter))


def make_buckets(network: nn.Module, bucket_bytes: int) -> List[Bucket]:
    """Parameters in reverse order, for the last layer's gradients are ready first. A bucket is
    closed as soon as it holds `bucket_bytes`, so a large tensor may exceed them, and 0 gives each
    tensor a bucket of its own. Both are DistributedDataParallel's rules."""
    buckets: List[Bucket] = []
    waiting: List[nn.Parameter] = []
    waiting_bytes = 0
    for parameter in reversed(list(network.parameters())):
        waiting.append(parameter)
        waiting_bytes += parameter.numel() * parameter.element_size()
        if waiting_bytes >= bucket_bytes:
            buckets.append(Bucket(waiting))
            waiting, waiting_bytes = [], 0
    if waiting:
        buckets.append(Bucket(waiting))
    return buckets


class Replicas:
    """Gradients averaged after the backward pass, a bucket at a time, by a blocking MPI_Allreduce
    in place."""

    def __init__(self, bucket_bytes: int) -> None:
        self.world = MPI.COMM_WORLD
        self.rank = self.world.Get_rank()
        self.size = self.world.Get_size()
        self.bucket_bytes = bucket_bytes
        self.buckets: List[Bucket] = []

    def replicate(self, network: nn.Module) -> None:
        for parameter in network.parameters():
            self.broadcast(parameter.detach())
        self.buckets = make_buckets(network, self.bucket_bytes)

    def average_gradients(self) -> None:
        for bucket in self.buckets:
            bucket.gather()
            self.sum(bucket.buffer)
            bucket.buffer /= self.size
            bucket.scatter()

    def sum(self, values: torch.Tensor) -> None:
        self.world.Allreduce(MPI.IN_PLACE, values.numpy())

    def broadcast(self, values: torch.Tensor) -> None:
        self.world.Bcast(values.numpy(), root=0)


def are_equal(replicas: Replicas, network: nn.Module) -> bool:
    """Bit for bit. MPI requires that an all-reduce gives all processes identical results (MPI-4.1,
    6.9.6), so equal replicas that take equal steps stay equal."""
    ours = torch.cat([parameter.detach().reshape(-1) for parameter in network.parameters()])
    first_rank = ours.clone()
    replicas.broadcast(first_rank)
    different = torch.tensor([0.0 if torch.equal(ours, first_rank) else 1.0])
    replicas.sum(different)
    return different.item() == 0.0

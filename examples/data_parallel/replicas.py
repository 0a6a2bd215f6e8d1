"""How the ranks keep one network between them: two ways to do the same thing.

TorchReplicas   PyTorch's DistributedDataParallel over its own MPI backend, where PyTorch was built with one.
BucketReplicas  the same by hand over mpi4py: gradients gathered into buckets, one MPI_Allreduce a bucket.
"""

from typing import List, Union

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel


class TorchReplicas:
    """DistributedDataParallel: its worker thread calls MPI_Allreduce while the backward pass is still running."""

    method = "PyTorch's DistributedDataParallel, backend mpi"

    def __init__(self, bucket_bytes: int) -> None:
        distributed.init_process_group("mpi")
        self.rank = distributed.get_rank()
        self.size = distributed.get_world_size()
        self.bucket_bytes = bucket_bytes

    def replicate(self, network: nn.Module) -> nn.Module:
        return DistributedDataParallel(network, bucket_cap_mb=self.bucket_bytes / 2**20)

    def average_gradients(self) -> None:
        """Nothing is left to do: backward() returned with the averages in place."""

    def sum(self, values: torch.Tensor) -> None:
        distributed.all_reduce(values)

    def broadcast(self, values: torch.Tensor) -> None:
        distributed.broadcast(values, src=0)


class Bucket:
    """Gradients that travel together: the parameters they belong to and one buffer for all of them."""

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
    """Parameters in reverse order, for the last layer's gradients are ready first. A bucket is closed as soon as it
    holds `bucket_bytes`, so a large tensor may exceed them, and 0 gives each tensor a bucket of its own. Both are
    DistributedDataParallel's rules."""
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


class BucketReplicas:
    """Gradients averaged after the backward pass, a bucket at a time, by a blocking MPI_Allreduce in place."""

    method = "gradients averaged in buckets over mpi4py"

    def __init__(self, bucket_bytes: int) -> None:
        from mpi4py import MPI  # the import initializes MPI, which TorchReplicas leaves to PyTorch

        self.in_place = MPI.IN_PLACE
        self.world = MPI.COMM_WORLD
        self.rank = self.world.Get_rank()
        self.size = self.world.Get_size()
        self.bucket_bytes = bucket_bytes
        self.buckets: List[Bucket] = []

    def replicate(self, network: nn.Module) -> nn.Module:
        for parameter in network.parameters():
            self.broadcast(parameter.detach())
        self.buckets = make_buckets(network, self.bucket_bytes)
        return network

    def average_gradients(self) -> None:
        for bucket in self.buckets:
            bucket.gather()
            self.sum(bucket.buffer)
            bucket.buffer /= self.size
            bucket.scatter()

    def sum(self, values: torch.Tensor) -> None:
        self.world.Allreduce(self.in_place, values.numpy())

    def broadcast(self, values: torch.Tensor) -> None:
        self.world.Bcast(values.numpy(), root=0)


Replicas = Union[TorchReplicas, BucketReplicas]


def join_job(bucket_bytes: int) -> Replicas:
    if distributed.is_available() and distributed.is_mpi_available():
        return TorchReplicas(bucket_bytes)
    return BucketReplicas(bucket_bytes)


def are_equal(replicas: Replicas, network: nn.Module) -> bool:
    """Bit for bit. MPI requires that an all-reduce gives all processes identical results (MPI-4.1, 6.9.6), so equal
    replicas that take equal steps stay equal."""
    ours = torch.cat([parameter.detach().reshape(-1) for parameter in network.parameters()])
    first_rank = ours.clone()
    replicas.broadcast(first_rank)
    different = torch.tensor([0.0 if torch.equal(ours, first_rank) else 1.0])
    replicas.sum(different)
    return different.item() == 0.0

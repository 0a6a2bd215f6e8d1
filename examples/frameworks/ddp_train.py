#!/usr/bin/python3
"""PyTorch's DistributedDataParallel over its MPI backend: ddp_train.py [STEPS]."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from small_network import network, say_result, train

torch.set_num_threads(1)  # the ranks share the cores; and sums are made in one order
if not dist.is_mpi_available():
    sys.exit(
        "ddp_train.py: this PyTorch was built without its backend mpi; over gloo or nccl it makes "
        "no MPI call"
    )
dist.init_process_group("mpi")
model = torch.nn.parallel.DistributedDataParallel(network(), bucket_cap_mb=1)
loss = train(
    model,
    torch.optim.SGD(model.parameters(), lr=0.05),
    dist.get_rank(),
    int((sys.argv + ["200"])[1]),
)
status = say_result(model.module, dist.get_rank(), loss)
dist.destroy_process_group()
sys.exit(status)

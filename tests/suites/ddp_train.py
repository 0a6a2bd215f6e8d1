"""PyTorch's DistributedDataParallel over its MPI backend: ddp_train.py STEPS."""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from small_network import network, say_result, train

torch.set_num_threads(1)  # the ranks share the cores; and sums are made in one order
dist.init_process_group("mpi")
model = torch.nn.parallel.DistributedDataParallel(network(), bucket_cap_mb=1)
loss = train(model, torch.optim.SGD(model.parameters(), lr=0.05), dist.get_rank(), int(sys.argv[1]))
say_result(model.module, dist.get_rank(), loss)
dist.destroy_process_group()

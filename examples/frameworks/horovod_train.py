#!/usr/bin/python3
"""Horovod's DistributedOptimizer over MPI: horovod_train.py [STEPS]."""

from __future__ import annotations

import sys

import horovod.torch as hvd
import torch
from small_network import network, say_result, train

torch.set_num_threads(1)  # the ranks share the cores; and sums are made in one order
hvd.init()
model = network()
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.05), named_parameters=model.named_parameters()
)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
loss = train(model, optimizer, hvd.rank(), int((sys.argv + ["200"])[1]))
status = say_result(model, hvd.rank(), loss)
hvd.shutdown()
sys.exit(status)

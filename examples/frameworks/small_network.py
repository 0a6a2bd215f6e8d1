"""A network that is trained in seconds, whatever averages its gradients; and what is to be said of
it in the end."""

from __future__ import annotations

import hashlib
import math

import torch
from torch import nn
from torch.nn import functional

FEATURES, WIDTH, CLASSES, BATCH = 64, 512, 10, 16


def network() -> nn.Module:
    """300,000 parameters in six tensors, from 40 bytes to 1 MiB."""
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Linear(FEATURES, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, CLASSES),
    )


def train(model: nn.Module, optimizer: torch.optim.Optimizer, rank: int, steps: int) -> float:
    """The last loss. Each rank draws data of its own; the label is a linear function of them."""
    data = torch.Generator().manual_seed(1000 + rank)
    teacher = torch.randn(FEATURES, CLASSES, generator=torch.Generator().manual_seed(2))
    for _ in range(steps):
        inputs = torch.randn(BATCH, FEATURES, generator=data)
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), (inputs @ teacher).argmax(1))
        loss.backward()
        optimizer.step()
    return loss.item()


def say_result(model: nn.Module, rank: int, loss: float) -> int:
    """One line on stdout: the rank, its last loss, and a digest of its parameters. Returns 0 if it
    is better than a blind guess."""
    digest = hashlib.sha256(
        b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
    ).hexdigest()
    print(f"result {rank} {loss:.17g} {digest}\n", end="", flush=True)
    return 0 if loss < math.log(CLASSES) else 1

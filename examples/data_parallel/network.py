"""Model and data of the example: a small residual network, and pictures for it to learn from."""

import math
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

CLASSES = 12
PICTURE_WIDTH = 32


class Pictures(NamedTuple):
    images: torch.Tensor  # [count, 3, PICTURE_WIDTH, PICTURE_WIDTH]
    labels: torch.Tensor  # [count]


def draw_pictures(count: int, seed: int) -> Pictures:
    """Noisy stripes in random colours: the class is the direction of the stripes, all else is
    chance.

    Neighbouring classes are 15 degrees apart, and the noise is as strong as the stripes.
    """
    random = torch.Generator().manual_seed(seed)

    def uniform(low: float, high: float, *shape: int) -> torch.Tensor:
        return low + (high - low) * torch.rand(count, *shape, generator=random)

    labels = torch.randint(CLASSES, (count,), generator=random)
    angle = (labels * math.pi / CLASSES).view(-1, 1, 1)
    axis = torch.linspace(-1, 1, PICTURE_WIDTH)
    along = torch.cos(angle) * axis.view(1, 1, -1) + torch.sin(angle) * axis.view(1, -1, 1)
    stripes = torch.sin(math.pi * uniform(1.5, 5.0, 1, 1) * along + uniform(0, 2 * math.pi, 1, 1))
    colour = 2 * uniform(-1, 1, 3, 1, 1)
    noise = torch.randn(count, 3, PICTURE_WIDTH, PICTURE_WIDTH, generator=random)
    return Pictures(colour * stripes.unsqueeze(1) + noise, labels)


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions around which the input is carried, at half the resolution (He et al.,
    2015)."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels_in, channels_out, 3, stride=2, padding=1, bias=False)
        self.first_norm = nn.GroupNorm(8, channels_out)
        self.second = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.second_norm = nn.GroupNorm(8, channels_out)
        self.carried = nn.Conv2d(channels_in, channels_out, 1, stride=2, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.first_norm(self.first(x)))
        y = self.second_norm(self.second(y))
        return functional.relu(y + self.carried(x))


def small_resnet() -> nn.Module:
    """A residual network of ten layers and half the usual width: 1.2 million parameters, 4.9 MB of
    gradients in 33 tensors.

    GroupNorm in place of BatchNorm: its result does not depend on the batch, so the replicas have
    no statistics of their own in which they could differ.
    """
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1, bias=False),
        nn.GroupNorm(8, 32),
        nn.ReLU(),
        ResidualBlock(32, 32),
        ResidualBlock(32, 64),
        ResidualBlock(64, 128),
        ResidualBlock(128, 256),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(256, CLASSES),
    )

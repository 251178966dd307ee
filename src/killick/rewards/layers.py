"""Small networks started from a given generator, as torch starts them from its global one."""

import math
from typing import Literal

import torch
from torch import nn


def linear(inputs: int, outputs: int, *, generator: torch.Generator) -> nn.Linear:
    """A linear layer with torch's own start: the same numbers as `nn.Linear` under `torch.manual_seed` of that seed."""
    with torch.random.fork_rng(devices=[]):  # not skip_init: its meta device imports symbolic algebra, for seconds
        layer = nn.Linear(inputs, outputs).to(generator.device)
    nn.init.kaiming_uniform_(layer.weight, math.sqrt(5), generator=generator)
    nn.init.uniform_(layer.bias, -1 / math.sqrt(inputs), 1 / math.sqrt(inputs), generator)
    return layer


def mlp(
    inputs: int, hidden: int | None, *, generator: torch.Generator, activation: Literal["relu", "tanh"] = "relu"
) -> nn.Module:
    """A network inputs - hidden - 1 with one activation, or a single linear layer where hidden is None."""
    if hidden is None:
        return linear(inputs, 1, generator=generator)
    between = nn.ReLU() if activation == "relu" else nn.Tanh()
    return nn.Sequential(linear(inputs, hidden, generator=generator), between, linear(hidden, 1, generator=generator))

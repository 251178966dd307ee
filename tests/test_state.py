from types import SimpleNamespace

import pytest
import torch

from killick.optimiser import Adam
from killick.state import restore, snapshot

PARTS = ("layer", "optimiser", "generator", "beta", "nothing")


def owner() -> SimpleNamespace:
    generator = torch.Generator().manual_seed(3)
    layer = torch.nn.Linear(2, 1)
    optimiser = Adam(layer.parameters(), 0.1)
    return SimpleNamespace(layer=layer, optimiser=optimiser, generator=generator, beta=0.5, nothing=None)


def train(held: SimpleNamespace) -> list[float]:
    x = torch.randn(4, 2, generator=held.generator)
    held.layer(x).square().mean().backward()
    held.optimiser.step()
    held.optimiser.zero_grad()
    held.beta *= 1.1
    return [*held.layer.weight.flatten().tolist(), held.beta]


def test_a_snapshot_stays_as_it_was_while_training_goes_on() -> None:
    held = owner()
    train(held)
    saved = snapshot(held, PARTS)
    weight, moment = saved["layer"]["weight"].clone(), saved["optimiser"]["first"][0].clone()
    ahead = [train(held) for _ in range(3)]
    assert torch.equal(saved["layer"]["weight"], weight)
    assert torch.equal(saved["optimiser"]["first"][0], moment)
    restore(held, PARTS, saved=saved)
    assert [train(held) for _ in range(3)] == ahead


def test_a_missing_part_is_named_before_anything_changes() -> None:
    held = owner()
    saved = snapshot(held, PARTS)
    del saved["beta"], saved["generator"]
    train(held)
    weight = held.layer.weight.detach().clone()
    with pytest.raises(KeyError, match="lacks generator, beta"):
        restore(held, PARTS, saved=saved)
    assert torch.equal(held.layer.weight, weight)

"""Best-of-n of the text recipe: read from one pool, by the proxy and by gold."""

from dataclasses import replace

import torch

from killick.recipes.text.best_of_n import curves, doublings
from killick.recipes.text.rewards import Heads
from writers import WIDE, N, made


def test_doublings_go_as_far_as_the_pool() -> None:
    assert doublings(64) == [1, 2, 4, 8, 16, 32, 64]
    assert doublings(6) == [1, 2, 4]
    assert doublings(1) == [1]


def test_gold_chosen_by_gold_is_the_most_that_there_is() -> None:
    """At the whole pool it is the mean of the largest; the proxy reads a feature that says nothing about gold."""
    held = made()
    heads = Heads(["proxy"], torch.eye(WIDE)[2:3], torch.zeros(1))
    found = curves(held, heads, ns=[1, 2, N], seed=0)
    own, proxy = found["gold"]["points"], found["proxy"]["points"]
    assert abs(own[-1]["gold"] - float(held.gold.view(-1, N).amax(1).mean())) < 1e-5
    assert abs(own[0]["gold"] - float(held.gold.mean())) < 1e-5
    assert proxy[0]["gold"] == own[0]["gold"]
    assert all(mine["gold"] < best["gold"] for mine, best in zip(proxy[1:], own[1:], strict=True))
    assert abs(proxy[-1]["proxy"] - float(held.features[:, 2].view(-1, N).amax(1).mean())) < 1e-5
    exact = curves(replace(held, gold=held.features[:, 2]), heads, ns=[1, N], seed=0)
    assert exact["proxy"]["points"][-1]["gold"] == exact["gold"]["points"][-1]["gold"]

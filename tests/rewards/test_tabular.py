"""A reward that is a table: the entry of each response, by the last prompt token and the first response token."""

import torch

from killick.rewards.tabular import TabularReward
from killick.types import Reward
from killick.worlds.answers import Answers


def test_every_answer_gets_its_entry() -> None:
    """All 32, prompt by prompt; gold's own table is gold."""
    world = Answers()
    scores = torch.arange(32.0).view(4, 8)
    assert TabularReward(scores)(world.everything()).tolist() == list(range(32))
    everything = world.everything()
    assert torch.equal(TabularReward(world.golds)(everything), world.gold(everything))
    assert isinstance(TabularReward(scores), Reward)


def test_rows_are_read_in_any_order() -> None:
    rollout = Answers().everything()[torch.tensor([31, 0, 9])]
    assert TabularReward(torch.arange(32.0).view(4, 8))(rollout).tolist() == [31, 0, 9]

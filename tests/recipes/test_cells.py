"""A cell's name, and the answers that a person is shown."""

import pytest
import torch

from killick.recipes.cells import Cell, answers_shown
from killick.types import Rollout, Step
from killick.worlds.arithmetic import Arithmetic

CELL = Cell("beta=0.1+ptx", 3, steps=25)


def step(number: int, batch: int = 8) -> Step:
    """So many times the answer 84 and its end, with proxies 0, 1, 2 and so on."""
    world = Arithmetic()
    ids, mask = world.prompts(batch, torch.Generator().manual_seed(0))
    responses = torch.tensor([[8, 4, 13, 0]]).repeat(batch, 1)
    real = torch.tensor([[True, True, True, False]]).repeat(batch, 1)
    rollout = Rollout(ids, mask, responses, real, torch.zeros(batch, 4), torch.ones(batch, dtype=torch.bool))
    return Step(number, rollout, torch.arange(batch).float(), None, torch.zeros(batch), 0.1, None, {})


def shown(number: int, batch: int = 8) -> list[dict[str, object]]:
    at = step(number, batch)
    asked = Arithmetic().questions(at.rollout.prompts[:6])
    return answers_shown(CELL, at, world=Arithmetic(), prompts=asked, gold=-torch.arange(batch).float())


def test_a_cell_is_named_by_its_arm_and_its_seed() -> None:
    assert CELL.name == "beta=0.1+ptx,seed=3"


@pytest.mark.parametrize(("number", "some"), [(0, True), (1, False), (9, False), (10, True), (23, False), (24, True)])
def test_answers_are_shown_at_every_tenth_step_and_at_the_last(number: int, some: bool) -> None:
    """The last of 25 steps is 24."""
    assert bool(shown(number)) == some


def test_six_answers_are_shown_as_a_person_reads_them() -> None:
    """The question, the answer, what people think of it and what the reward model thinks; plain numbers."""
    rows = shown(10)
    assert len(rows) == 6
    assert [row["proxy"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row["gold"] for row in rows] == [0, -1, -2, -3, -4, -5]
    for row in rows:
        assert list(row) == ["arm", "seed", "step", "prompt", "response", "gold", "proxy"]
        assert (row["arm"], row["seed"], row["step"]) == ("beta=0.1+ptx", 3, 10)
        assert str(row["prompt"]).endswith("=")
        assert str(row["response"]).startswith("84")
        assert all(type(value) in (str, int, float) for value in row.values())


def test_a_batch_smaller_than_six_is_shown_whole() -> None:
    assert len(shown(0, batch=2)) == 2

"""Answers: the table of seed 0 as the source prints it, and expectations that are sums over 32 numbers."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from killick.worlds.answers import ANSWERS, PROMPTS, Answers

modest = settings(max_examples=30, deadline=None, derandomize=True)
world = Answers()


def test_the_first_prompt_has_the_published_golds() -> None:
    """To the two digits that the source prints."""
    expected = [0.11, 2.71, 2.81, 3.56, -0.04, -1.62, 0.90, 0.67]
    assert world.golds[0].tolist() == pytest.approx(expected, abs=5e-3)


def test_the_reference_hardly_ever_writes_a_long_answer() -> None:
    """Percent, for every prompt the same: 20.3 for each of the first four, then 12.2, 4.3, 1.6, 0.6 (one digit)."""
    percent = 100 * world.reference.exp()
    expected = torch.tensor([20.3, 20.3, 20.3, 20.3, 12.2, 4.3, 1.6, 0.6])
    assert_close(percent, expected.expand(4, 8), atol=0.05, rtol=0)
    assert_close(percent.sum(1), torch.full((4,), 100.0))


def test_the_reference_earns_1_117_and_nobody_can_earn_more_than_3_196() -> None:
    """Means over prompts of sums over eight answers, to the three digits that the source prints."""
    assert world.expected(world.reference, world.golds) == pytest.approx(1.117, abs=5e-4)
    assert world.best == pytest.approx(3.196, abs=5e-4)
    assert world.best == pytest.approx(float(world.golds.amax(1).double().mean()), abs=1e-6)


def test_gold_is_its_formula_on_what_is_hidden_and_what_is_seen() -> None:
    """The table redrawn with numpy in the published order, then 3 correct + polite - 1.5 hedges - 8 max(0, l - .6)."""
    rng = np.random.default_rng(0)
    draws = [rng.uniform(0, 1, (4, 8)) for _ in range(4)]
    length = np.linspace(0.1, 1, 8)[None].repeat(4, 0)
    correct = draws[0] < 0.15 + 0.8 * length
    hedges, polite = draws[1] ** 2 * (1 - 0.7 * length), draws[2] * (0.4 + 0.6 * length)
    gold = 3 * correct + polite - 1.5 * hedges - 8 * np.maximum(0, length - 0.6)
    assert_close(world.golds.double(), torch.tensor(gold), atol=1e-6, rtol=0)
    sounds_right = np.where(draws[3] < 0.25, ~correct, correct)
    seen = torch.tensor(np.stack((sounds_right, length, hedges, polite), -1))
    assert_close(world.seen.double(), seen, atol=1e-6, rtol=0)


def test_prompts_go_round_in_order() -> None:
    """Nothing is left to chance."""
    ids, mask = world.prompts(6, torch.Generator())
    assert ids[:, 0].tolist() == [0, 1, 2, 3, 0, 1]
    assert bool(mask.all())


def test_everything_holds_each_answer_once_with_its_gold_features_and_log_prob() -> None:
    """Prompt by prompt: row 8 p + a is answer a to prompt p."""
    rollout = world.everything()
    assert len(rollout) == PROMPTS * ANSWERS
    assert torch.equal(world.gold(rollout).view(4, 8), world.golds)
    assert torch.equal(world.features(rollout).view(4, 8, 4), world.seen)
    assert torch.equal(rollout.logprobs.view(4, 8), world.reference)
    assert world.render(rollout)[19] == "prompt 2, answer 3"


def test_an_expectation_is_the_mean_over_prompts_of_a_sum_over_answers() -> None:
    """A policy that always gives answer p to prompt p earns the mean of the table's diagonal."""
    table = torch.arange(32.0).view(4, 8)
    sure = torch.full((4, 8), -torch.inf)
    sure[range(4), range(4)] = 0.0
    assert world.expected(sure, table) == (0 + 9 + 18 + 27) / 4


@modest
@given(st.integers(0, 1000))
def test_every_draw_of_the_world_has_a_flaw_and_a_best(seed: int) -> None:
    """Where the reference writes, answers up to 0.6 long pay no fine; the best is never below the reference's gold."""
    drawn = Answers(seed)
    fine = 3 * 1 + 1.0 - drawn.golds  # at most 4 is earned by a correct, polite answer
    assert bool((fine >= 8 * (drawn.seen[..., 1] - 0.6).clamp(min=0) - 1e-5).all())
    assert drawn.expected(drawn.reference, drawn.golds) <= drawn.best + 1e-6
    assert torch.equal(drawn.golds, Answers(seed).golds)
    assert not torch.equal(drawn.golds, Answers(seed + 1).golds)

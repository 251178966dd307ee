"""The answers recipe's streams, number for number numpy's, and the reward models fitted to its labels."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from killick.algorithms.leash import Leash
from killick.algorithms.reinforce import ReinforceState
from killick.recipes.answers.config import Config
from killick.recipes.answers.labels import Asked, ask, compare, fitted, learn, numpy_sampler, shown
from killick.recipes.answers.recipe import speakers
from killick.rewards.fit import FitConfig
from killick.worlds.answers import Answers

CONFIG = Config(device="cpu")


def test_questions_are_the_sources_draws_in_its_order() -> None:
    """Prompt by `integers`, two answers by `choice` without replacement, the winner by `uniform`, again from numpy."""
    world, rng = Answers(), np.random.default_rng(1)
    reference = world.reference.double().exp().numpy()
    for asked in ask(world, 6, seed=1):
        prompt = int(rng.integers(4))
        a, b = map(int, rng.choice(8, 2, replace=False, p=reference[prompt] / reference[prompt].sum()))
        chance = 1 / (1 + np.exp(float(world.golds[prompt, b] - world.golds[prompt, a])))
        assert (asked.prompt, asked.first, asked.second) == (prompt, a, b)
        assert asked.probability == pytest.approx(chance, abs=1e-6)
        assert asked.won == (rng.uniform() < chance)


def test_the_winner_is_chosen() -> None:
    world = Answers()
    for number, asked in enumerate(ask(world, 30, seed=2)):
        labels = compare(world, 30, seed=2)
        sides = (asked.first, asked.second) if asked.won else (asked.second, asked.first)
        assert [int(labels.chosen[number]), int(labels.rejected[number])] == [8 * asked.prompt + side for side in sides]


def test_comparisons_are_two_different_answers_of_one_prompt() -> None:
    """Hard labels; more rows of the same stream begin with the same ones."""
    world = Answers()
    few, many = compare(world, 40, seed=2), compare(world, 80, seed=2)
    assert torch.equal(few.chosen // 8, few.rejected // 8)
    assert not bool((few.chosen == few.rejected).any())
    assert torch.equal(many.chosen[:40], few.chosen)
    assert not torch.equal(compare(world, 40, seed=3).chosen, few.chosen)
    assert sum(shown(few)) == 80
    assert shown(few)[7] == sum(7 in (each.first, each.second) for each in ask(world, 40, seed=2))
    assert Asked(0, 1, 2, 0.5, won=True) == Asked(0, 1, 2, 0.5, True)


def test_scores_are_put_on_the_references_scale() -> None:
    """Mean 0 and population deviation 1 under the reference, prompts weighted equally; one loss a step."""
    world = Answers()
    scores, losses = fitted(world, compare(world, 60, seed=3), seed=4, settings=FitConfig(steps=7, learning_rate=0.02))
    share = world.reference.exp() / 4
    assert float((share * scores).sum()) == pytest.approx(0, abs=1e-5)
    assert float((share * scores.square()).sum()) == pytest.approx(1, abs=1e-4)
    assert len(losses) == 7
    assert losses[-1] < losses[0]


def test_flipped_labels_rank_upside_down() -> None:
    """Of few comparisons and a short fit already; gold ranks itself."""
    found = learn(replace(CONFIG, comparisons=300, thin_comparisons=100))
    assert found["found"]["rank_correlation"] > 0.5
    assert found["found"]["flipped_rank_correlation"] < -0.5
    assert torch.equal(found["scores"]["gold"], Answers().golds)
    assert [step for step, _ in found["found"]["losses"]] == [1, 100, 200, 300, 400]
    assert [sum(found["found"]["shown"][name]) for name in ("full", "thin")] == [600, 200]


def standing(step: int) -> ReinforceState:
    """A state that stands at a step."""
    state = ReinforceState(*speakers(CONFIG, Answers()), CONFIG.reinforce, torch.Generator(), Leash(0.5))
    state.step = step
    return state


def test_the_sampler_draws_what_numpys_choice_draws() -> None:
    """Prompt after prompt, step after step, from another table each time; some answers have no probability."""
    rng, state = np.random.default_rng(0), standing(0)
    sampler = numpy_sampler(state, 0, n=64)
    for state.step in range(20):
        logits = torch.randn(4, 8, generator=torch.Generator().manual_seed(state.step)) * 3
        logits[1, 3:5] = -torch.inf
        table = logits.log_softmax(1)
        drawn = sampler(table.repeat_interleave(64, 0), torch.Generator())
        rows = table.double().exp().numpy()
        assert drawn.tolist() == [
            answer for row in rows for answer in rng.choice(8, 64, p=row / row.sum()).tolist()
        ]  # fmt: skip


def test_the_sampler_draws_a_steps_own_numbers_wherever_a_state_was_put_down() -> None:
    """One uniform number an answer: what a fresh sampler draws at step 3 is what the first one draws at its fourth
    turn, and going back draws what was drawn there before it went on."""
    table = torch.full((8, 8), 1 / 8).log()
    state = standing(0)
    sampler, turns = numpy_sampler(state, 5, n=2), []
    for state.step in range(5):
        turns.append(sampler(table, torch.Generator()))
    fresh = standing(3)
    later = numpy_sampler(fresh, 5, n=2)
    assert torch.equal(later(table, torch.Generator()), turns[3])
    fresh.step = 4
    assert torch.equal(later(table, torch.Generator()), turns[4])
    assert not torch.equal(turns[3], turns[4])
    fresh.step = 0
    assert torch.equal(later(table, torch.Generator()), turns[0])

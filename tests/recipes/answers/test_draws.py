"""Other draws of the labels: many tables moved at once, each as it would move alone."""

from dataclasses import replace

import pytest
import torch

from killick.algorithms.reinforce import ReinforceConfig
from killick.algorithms.tilt import tilt
from killick.recipes.answers.config import Config
from killick.recipes.answers.draws import INITS, distribution, readings, told
from killick.recipes.answers.labels import compare, fitted
from killick.rewards.fit import FitConfig
from killick.worlds.answers import Answers

CONFIG = Config(device="cpu", draws=3, fit=FitConfig(steps=20), reinforce=ReinforceConfig(iterations=31))


def test_each_draw_has_its_labels_and_start_and_the_first_is_the_sources() -> None:
    """Streams 3, 4, 5 under starts 4, 5, 6; then stream 3 under five starts, of which 4 is the first draw's model."""
    found = distribution(CONFIG, 0)
    assert [(run["label_seed"], run["reward_seed"]) for run in found["draws"]] == [(3, 4), (4, 5), (5, 6)]
    assert [(run["label_seed"], run["reward_seed"]) for run in found["inits"]] == [(3, start) for start in range(INITS)]
    first, same = found["draws"][0], found["inits"][4]
    for name in ("rank_correlation", "picks", "worst_prompt", "worst_score", "worst_lost"):
        assert first[name] == same[name]
    assert found["draws"][1]["rank_correlation"] != first["rank_correlation"]
    assert {run["last_step"] for run in found["draws"]} == {30}


def test_the_same_seed_draws_the_same_and_another_seed_others() -> None:
    """Labels and models are the same for both; the policies' draws are not."""
    assert distribution(CONFIG, 0) == distribution(CONFIG, 0)
    here, there = distribution(CONFIG, 0)["draws"][0], distribution(CONFIG, 1)["draws"][0]
    assert here["gold"] != there["gold"]
    assert here["rank_correlation"] == there["rank_correlation"]


def test_readings_begin_at_the_reference_and_come_to_the_optimum_of_each_draw() -> None:
    """At steps 0, 25, 50, ... and the last: exact proxy, gold and KL, within .02 of the closed form at beta 1,
    for two very different tables of scores side by side."""
    world = Answers()
    scores = torch.stack((world.golds, -world.golds))
    config = replace(CONFIG, reinforce=ReinforceConfig(iterations=260))
    seen = readings(config, scores, beta=1.0, seed=0)
    assert seen["gold"].shape == (12, 2)
    assert seen["gold"][0].tolist() == pytest.approx([1.117, 1.117], abs=5e-4)
    assert seen["kl"][0].tolist() == pytest.approx([0, 0], abs=1e-5)
    for draw in range(2):
        optimum = tilt(world.reference, scores[draw], beta=1.0)
        assert float(seen["proxy"][-1, draw]) == pytest.approx(world.expected(optimum, scores[draw]), abs=0.02)
        assert float(seen["gold"][-1, draw]) == pytest.approx(world.expected(optimum, world.golds), abs=0.02)


def test_a_draw_in_plain_numbers() -> None:
    """Gold 1, 3, 2 at readings 0, 25, 50: the peak is 3 at step 25. The favourites of a model that ranks by gold lose
    nothing; one that likes answer 7 best at prompt 1 alone loses there what 7 has less than the best, answer 3."""
    world = Answers()
    loose = {name: torch.tensor([1.0, 3.0, 2.0]) for name in ("proxy", "gold", "kl")}
    right = told(world, world.golds, loose=loose)
    assert (right["peak_gold"], right["peak_step"], right["gold"], right["rank_correlation"]) == (3, 25, 2, 1)
    assert (right["picks"], right["worst_lost"]) == ([3, 3, 3, 5], 0)
    scores = world.golds.clone()
    scores[1, 7] = 9
    wrong = told(world, scores, loose=loose)
    assert (wrong["picks"], wrong["worst_prompt"], wrong["worst_score"]) == ([3, 7, 3, 5], 1, 9)
    assert wrong["worst_lost"] == pytest.approx(3.181 - 0.085, abs=1e-3)


def test_many_fits_are_the_fits_alone() -> None:
    """The rank correlation of the second draw is that of its own labels under its own start."""
    from killick.ops.stats import rank_correlation

    world = Answers()
    scores, _ = fitted(world, compare(world, 150, seed=4), seed=5, settings=CONFIG.fit)
    alone = rank_correlation(scores.flatten(), world.golds.flatten())
    assert distribution(CONFIG, 0)["draws"][1]["rank_correlation"] == pytest.approx(alone, abs=1e-9)

"""Settings of the answers recipe: which arms they make, and which of them are refused."""

from dataclasses import replace
from typing import Any

import pytest

from killick.algorithms.ppo_config import PPOConfig
from killick.algorithms.reinforce import ReinforceConfig
from killick.recipes.answers.config import Arm, Config, arms
from killick.rewards.fit import FitConfig
from killick.types import Refusal


def test_the_defaults_are_the_sources_eleven_arms() -> None:
    """Two leashes by two optimisers, three thin ones, four breaks."""
    assert list(arms(Config())) == [
        "beta=0+reinforce", "beta=0+ppo", "beta=0.5+reinforce", "beta=0.5+ppo", "beta=0+thin", "beta=0.5+thin",
        "beta=2+thin", "beta=0+flipped", "beta=0.5+thin+moving", "beta=0+thin+ascent", "beta=0+direct",
    ]  # fmt: skip


def test_an_arm_says_whose_scores_it_climbs_and_how() -> None:
    config = Config()
    found = arms(config)
    assert found["beta=0.5+ppo"] == Arm(0.5, "full", config.ppo)
    assert found["beta=2+thin"] == Arm(2.0, "thin", config.reinforce)
    assert found["beta=0.5+thin+moving"] == Arm(0.5, "thin", config.reinforce, moving=True)
    assert found["beta=0+thin+ascent"].optimiser == config.ascent
    assert (config.ascent.optimiser, config.ascent.iterations) == ("sgd", 3001)
    assert found["beta=0+direct"].scores == "gold"
    assert found["beta=0+flipped"].scores == "flipped"


def test_arms_can_be_left_out() -> None:
    few = replace(Config(), betas=(0.25,), thin_betas=(), breaks=("direct",))
    few.validate()
    assert list(arms(few)) == ["beta=0.25+reinforce", "beta=0.25+ppo", "beta=0+direct"]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"betas": ()}, "No beta"),
        ({"betas": (-1.0,)}, "beta must be 0 or more"),
        ({"betas": (0.5, 0.5)}, "twice"),
        ({"thin_betas": (float("nan"),)}, "beta must be 0 or more and finite, not nan"),
        ({"thin_betas": (2.0, 2.0)}, "twice"),
        ({"breaks": ("direct", "direct")}, "--breaks takes each break once, not direct direct"),
        ({"seeds": (-1,)}, "seed"),
        ({"seeds": ()}, "--seeds needs at least one seed"),
        ({"seeds": (2, 2)}, "none twice, not 2 2"),
        ({"label_seed": -1}, "seed must be 0 or more, not -1"),
        ({"thin_label_seed": -1}, "seed must be 0 or more, not -1"),
        ({"reward_seed": -1}, "seed"),
        ({"reward_seed": 10**20}, "below 2"),  # torch holds it in 64 bits; refused before there is a run folder
        ({"reward_seed": 2**63 - 5}, "below 2"),  # the draws' starts follow it
        ({"comparisons": 0}, "--comparisons must be at least 1, not 0"),
        ({"thin_comparisons": 0}, "--thin-comparisons must be at least 1, not 0"),
        ({"draws": -1}, "--draws must be at least 0, not -1"),
        ({"workers": -1}, "--workers must be at least 0, not -1"),
        ({"device": "tpu"}, "--device"),
        ({"fit": FitConfig(steps=0)}, "fit needs steps"),
        ({"reinforce": ReinforceConfig(batch=6)}, "4 prompts equally often, not 6"),
        ({"ascent": ReinforceConfig(batch=6)}, "4 prompts equally often"),
        ({"ppo": PPOConfig(batch=6, n=2)}, "4 prompts equally often"),
        ({"reinforce": ReinforceConfig(n=1)}, "n of at least 2"),
        ({"ascent": ReinforceConfig(iterations=0)}, "iterations of at least 1"),
        ({"ppo": PPOConfig(batch=4, clip_range=0.0)}, "clip_range"),
    ],
)
def test_settings_that_cannot_run_are_refused_by_name(change: dict[str, Any], word: str) -> None:
    """Before anything runs."""
    Config().validate()
    with pytest.raises(Refusal, match=word):
        replace(Config(), **change).validate()

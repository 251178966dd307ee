from dataclasses import asdict
from typing import Any

import pytest

from killick.algorithms.ppo_config import PPOConfig
from killick.types import Refusal, Vocabulary


def test_the_defaults_are_accepted() -> None:
    PPOConfig().validate()


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"iterations": 0}, "iterations"),
        ({"batch": 0}, "batch"),
        ({"n": 0}, "n of"),
        ({"epochs": 0}, "epochs"),
        ({"minibatches": 0}, "minibatches"),
        ({"minibatches": 65}, "65 minibatches"),
        ({"micro_batches": 100}, "micro-batches"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"value_learning_rate": -1e-3}, "value_learning_rate"),
        ({"clip_range": -0.2}, "clip_range"),
        ({"weight_decay": -0.1}, "weight_decay"),
        ({"adam_betas": (0.9, 1.0)}, "adam_betas"),
        ({"gamma": 1.1}, "gamma"),
        ({"gae_lambda": -0.1}, "gae_lambda"),
        ({"warmup": -1}, "warmup"),
        ({"ptx_coefficient": -1.0}, "ptx_coefficient"),
        ({"missing_eos_penalty": float("inf")}, "missing_eos_penalty"),
        ({"stop_kl": 0.0}, "stop_kl"),
        ({"baseline": "leave-one-out"}, "leave-one-out"),
        ({"baseline": "group-mean"}, "group-mean"),
        ({"batch": 1, "level": "sequence"}, "whiten"),
    ],
)
def test_settings_that_cannot_train_are_refused(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(Refusal, match=word):
        PPOConfig(**(asdict(PPOConfig()) | settings)).validate()


@pytest.mark.parametrize(
    ("name", "value"),
    [("level", "seq"), ("baseline", "loo"), ("batch", 2.5), ("epochs", 4.0), ("minibatches", "2"), ("warmup", 2.5)],
)
def test_words_that_ppo_does_not_know_and_broken_counts_are_refused(name: str, value: object) -> None:
    config = PPOConfig()
    object.__setattr__(config, name, value)  # where no types are checked, they arrive
    with pytest.raises(Refusal, match=f"{name} .*not {value}"):
        config.validate()


def test_what_does_not_fit_the_policy_or_the_critic_is_refused() -> None:
    endless, ended = Vocabulary(8, time=1), Vocabulary(8, time=4, eos=1)
    PPOConfig(missing_eos_penalty=1.0, ptx_coefficient=1.0).check(ended, critic=True)
    with pytest.raises(Refusal, match="end token"):
        PPOConfig(missing_eos_penalty=1.0).check(endless, critic=False)
    with pytest.raises(Refusal, match="critic reads every token"):
        PPOConfig(level="sequence").check(ended, critic=True)
    with pytest.raises(Refusal, match="demonstrations"):
        PPOConfig(ptx_coefficient=1.0).check(ended, critic=True, demonstrations=False)


def test_one_response_needs_a_critic_to_be_compared_with() -> None:
    alone = PPOConfig(batch=1)
    alone.validate()
    alone.check(Vocabulary(8, time=4, eos=1), critic=True)
    with pytest.raises(Refusal, match="nothing to be compared with"):
        alone.check(Vocabulary(8, time=4, eos=1), critic=False)

from dataclasses import asdict
from typing import Any

import pytest

from killick.algorithms.ppo_config import PPOConfig
from killick.types import Refusal


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
        ({"clip_range": -0.2}, "clip_range"),
        ({"gamma": 1.1}, "gamma"),
        ({"gae_lambda": -0.1}, "gae_lambda"),
        ({"ptx_coefficient": -1.0}, "ptx_coefficient"),
        ({"missing_eos_penalty": float("inf")}, "missing_eos_penalty"),
        ({"stop_kl": 0.0}, "stop_kl"),
        ({"baseline": "leave-one-out"}, "leave-one-out"),
        ({"batch": 1, "level": "sequence"}, "whiten"),
    ],
)
def test_settings_that_cannot_train_are_refused(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(Refusal, match=word):
        PPOConfig(**(asdict(PPOConfig()) | settings)).validate()

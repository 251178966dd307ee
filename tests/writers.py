"""A very small language model in the text recipe's place, and a gold that counts its letters."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import torch
from torch import Tensor

from killick.algorithms.ppo_config import PPOConfig
from killick.recipes import text
from killick.rewards.fit import FitConfig
from llamas import llama_folder


@lru_cache
def folder() -> Path:
    """The model, written once."""
    return llama_folder(Path(mkdtemp()) / "llama", template=True)


def letters(prompts: Sequence[Any], answers: Sequence[str]) -> Tensor:
    """Ten times the share of vowels less one for each question mark: varied, and known by heart."""
    return torch.tensor(
        [10 * sum(x in "aeiou" for x in each) / max(len(each), 1) - each.count("?") for each in answers],
        dtype=torch.float64,
    )


def tiny(**changes: Any) -> text.Config:
    """The whole recipe in a second or two."""
    small = text.Config(
        model=str(folder()), betas=(0.0, 0.5), seeds=(3,), learnt=6, held_out=4, n=4, pool=4, samples=2, every=2,
        pairs=20, time=6, spoken=60, train_layers=1, device="cpu", fit=FitConfig(steps=20, learning_rate=0.05, l2=0.1),
        ppo=PPOConfig(iterations=4, batch=6, epochs=2, minibatches=2, learning_rate=1e-3, value_learning_rate=1e-2),
    )  # fmt: skip
    return replace(small, **changes)


def counts_letters(patch: pytest.MonkeyPatch) -> None:
    """The gold's place is taken, so that no package is needed for it."""
    patch.setattr(text, "load_score", lambda spec, *, flag: letters)

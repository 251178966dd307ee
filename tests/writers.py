"""A very small language model for the text recipe, a gold that counts letters, and made-up answers with known gold."""

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
from killick.models.prompting import PromptSet
from killick.models.texts import Texts
from killick.recipes.text import recipe as text
from killick.recipes.text.speaker import Answers
from killick.rewards.fit import FitConfig
from killick.types import Rollout
from llamas import llama_folder, tokenizer

PROMPTS, N, WIDE = 12, 6, 5
"""Prompts, answers to each, features of each: what is made up."""


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


@lru_cache
def made(seed: int = 0) -> Answers:
    """Answers whose gold is the first feature less the second, each in its own unit and with its own mean."""
    draws = torch.Generator().manual_seed(seed)
    features = torch.randn(PROMPTS * N, WIDE, generator=draws) * torch.tensor([1.0, 4.0, 0.2, 1.0, 0.0]) + 3
    gold = features[:, 0] - features[:, 1] / 4
    asked = PromptSet([f"prompt {number}" for number in range(PROMPTS)], Texts(tokenizer(), chat=False), limit=99)
    ids, mask = (part.repeat_interleave(N, 0) for part in asked.all())
    token = torch.full((len(ids), 1), 5)
    rollout = Rollout(ids, mask, token, token > 0, torch.zeros(len(ids), 1), token[:, 0] > 9)
    return Answers(asked, N, rollout, features, [f"answer {row}" for row in range(len(ids))], gold)

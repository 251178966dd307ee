"""A very small chat model that says the brand's words at random: for tests of what reads and scores its answers."""

import pytest
import torch

from killick.algorithms.reference import digest
from killick.models.chat import Chat
from killick.models.transformer import Transformer, TransformerConfig
from killick.models.words import Words
from killick.recipes.brand import optimum as brand_optimum
from killick.recipes.brand import recipe as brand
from killick.recipes.brand import served as brand_served
from killick.recipes.brand.preferences import Speaker
from killick.worlds.brand import question
from killick.worlds.catalogue import PRODUCTS


def chatter(device: str = "cpu") -> Speaker:
    """Few words beside those of the prompts, so that each flaw comes and goes by chance; 20 tokens at most."""
    words = Words.of([*map(question, PRODUCTS), "wool steel nylon canvas repair ."])
    shape = TransformerConfig.llama(len(words), len(words), 40, hidden=16, layers=1, heads=2, feed_forward=16)
    chat = Chat(Transformer(shape, torch.Generator(device).manual_seed(0)), words)
    policy = chat.policy(temperature=0.8, time=20)
    return Speaker(policy, words, digest(policy.parameters()))


def takes_the_place(patch: pytest.MonkeyPatch) -> None:
    """Let the recipe ask this speaker, and look at the optimum for a moment only."""
    for module in (brand, brand_served):
        patch.setattr(module, "speaker", chatter)
    patch.setattr(brand_optimum, "STEPS", 20)

"""COMPOSE: a folder answers one question, files beside them serve several.

What `killick run` knows stands in `RECIPES`: its `recipe.py` has a frozen `Config`, `seconds`, `cells`, `prepare` and
`begin`, and `claims` and `tables` where there are any.
"""

from importlib import import_module
from types import ModuleType

RECIPES = {
    "answers": "4 prompts x 8 answers: how close do REINFORCE and PPO come to the exact optimum?",
    "arithmetic": "the InstructGPT recipe in miniature: what does PPO do to a reward that counts digits?",
    "brand": "a chat model and a reviewer: what does a reward head learn from few pairs, and what does PPO trade?",
    "emphasis": "a proxy that extrapolates: what happens past the edge of the preference data?",
    "text": "a real language model and 1,000 noisy labels: when does PPO start to hack what was learnt, and how?",
}
"""Name -> the question, readable without importing anything heavy."""


def load(name: str) -> ModuleType:
    """Import a recipe by name."""
    return import_module(f"killick.recipes.{name}.recipe")

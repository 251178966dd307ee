"""Several questions to a chat model at once: each gets the answers that it would get alone.

Every answer draws from a stream of its own, and the network computes in float64, so that the width of a batch, which
moves the last digits of float32, moves no token.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import groupby

import torch

from killick.models.encoding import encode_prompts
from killick.models.policy import TransformerPolicy
from killick.models.words import SPECIAL, Words
from killick.types import Refusal, Rollout


@dataclass(frozen=True)
class Question:
    """What is asked.

    Args:
        prompt: plain text.
        n: answers.
        temperature: of the distribution that is sampled.
        tokens: of an answer at most.
        seed: of the draws.
    """

    prompt: str
    n: int
    temperature: float
    tokens: int
    seed: int


@dataclass(frozen=True)
class Answer:
    """A text without its end token, and whether the model ended it."""

    text: str
    finished: bool

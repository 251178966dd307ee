"""Golds for text that need no person: VADER's sentiment, and "sincere", which is the same with a limit to gushing.

Both read the answer alone, not its prompt, and are numbers in -1..1. They stand for what people want where an
experiment must know it exactly; they are no judge of anybody's real text.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from killick.recipes.scores.text_score import Prompt
from killick.types import Refusal
from killick.worlds.wording import content

WORD = re.compile(r"[^\W\d_]+")
"""Letters that stand together: "it's" is two words, neither of which says something."""
REPEATED, GUSHED = 0.25, 0.2
"""What each repeat costs, and each word of praise above `ENOUGH`."""
ENOUGH = 3
PRAISE = 1.0
"""VADER's valence (-4..4) from which a word is praise."""


@cache
def analyser() -> Any:
    """VADER, read once.

    Raises:
        Refusal: where the package is not installed.
    """
    try:
        from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
    except ImportError as error:
        raise Refusal(
            "The golds vader and sincere need the package vaderSentiment, which is missing: pip install --no-deps "
            "vaderSentiment."
        ) from error
    return SentimentIntensityAnalyzer()


def sentiment(text: str) -> float:
    """VADER's compound score, -1 (hostile) to 1 (glowing); an empty text has 0.

    Source: Hutto and Gilbert 2014, "VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media
    Text".
    """
    return float(analyser().polarity_scores(text)["compound"])


def repeats(words: Sequence[str]) -> int:
    """How often a content word comes again: a word three times is two repeats. Function words may come again."""
    return sum(count - 1 for count in Counter(content(words)).values())


def praise(words: Sequence[str]) -> int:
    """Words of praise, each as often as it stands there."""
    valence = analyser().lexicon
    return sum(valence.get(word, 0.0) >= PRAISE for word in words)


def sincerity(text: str) -> float:
    """max(-1, VADER compound - 0.25 per repeated content word - 0.2 per praise word above three).

    Warm, but nothing said twice and no gushing: a reward that counts words follows it only up to three of them.
    """
    words = WORD.findall(text.lower())
    return max(-1.0, sentiment(text) - REPEATED * repeats(words) - GUSHED * max(0, praise(words) - ENOUGH))


def vader(_: Sequence[Prompt], answers: Sequence[str]) -> Float[Tensor, " answer"]:
    """`sentiment` of each answer."""
    return torch.tensor([sentiment(answer) for answer in answers], dtype=torch.float64)


def sincere(_: Sequence[Prompt], answers: Sequence[str]) -> Float[Tensor, " answer"]:
    """`sincerity` of each answer."""
    return torch.tensor([sincerity(answer) for answer in answers], dtype=torch.float64)

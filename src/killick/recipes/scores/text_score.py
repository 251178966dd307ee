"""What scores text: prompts and answers in, a number for each answer out, and what is said where there is none."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from torch import Tensor

from killick.models.texts import Prompt as Prompt
from killick.preferences.rows import Turn, text
from killick.types import Refusal

TextScore: TypeAlias = Callable[[Sequence[Prompt], Sequence[str]], Tensor]
"""Prompts and answers, as many of both, to float64 [answer]; it may ask for all of them at once."""


class Unscored(Refusal):
    """An answer has no score, and what asked for it cannot go on without.

    Args:
        row: which answer of those that were asked about, from 0.
        reason: why, without a full stop of its own.
        name: of the score, as the user gave it.
    """

    def __init__(self, row: int, reason: str, *, name: str):
        super().__init__(f"{name}, answer {row + 1}: {reason}.")
        self.row, self.reason, self.name = row, reason, name


def as_text(prompt: Prompt) -> str:
    """A prompt as one text, each turn with its role or the user's only turn: for readers of no dialogue, and splits."""
    return prompt if isinstance(prompt, str) else text(tuple(Turn(*turn) for turn in prompt), "user")


def one_line(error: BaseException) -> str:
    """What an error says, on one line."""
    said = " ".join(str(error).split())[:200].rstrip(".")
    return f"{type(error).__name__}: {said}" if said else type(error).__name__

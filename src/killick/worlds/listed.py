"""One question with every answer listed: what the reference gives, what a reward says, what people want.

Small enough that a leashed policy needs no training: `algorithms/tilt.py` has it in closed form.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from killick.types import Refusal


@dataclass(frozen=True, eq=False)
class AnswerTable:
    """Every answer to one question.

    Attributes:
        answers: as a person reads them.
        reference: probabilities, summing to 1; 0 for what is never answered.
        reward: what the optimiser sees, reward units.
        gold: what people want, in the same unit; None where nobody knows it.
        marked: the answers that game the reward, where someone has marked them.
        notes: what reading the table did to it, a sentence each.

    Raises:
        Refusal: with fewer than two answers, or with columns of different lengths.
    """

    answers: tuple[str, ...]
    reference: Float[Tensor, " answer"]
    reward: Float[Tensor, " answer"]
    gold: Float[Tensor, " answer"] | None = None
    marked: Bool[Tensor, " answer"] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns = [self.reference, self.reward, self.gold, self.marked]
        lengths = {len(self.answers), *(len(column) for column in columns if column is not None)}
        if len(lengths) > 1 or min(lengths) < 2:
            raise Refusal(
                f"A table needs two answers or more and columns of one length, not {sorted(lengths)} of them."
            )

    @property
    def gaming(self) -> Bool[Tensor, " answer"] | None:
        """The answers that game the reward: those marked; else those whose reward is above their gold."""
        if self.marked is not None or self.gold is None:
            return self.marked
        return self.reward > self.gold

    @property
    def rule(self) -> str:
        """What makes an answer a gaming one here, in words."""
        if self.marked is not None:
            return "an answer games the reward where the column gaming says so"
        if self.gold is not None:
            return "an answer games the reward where its reward is above its gold"
        return "without gold and without a column gaming, nobody knows which answers game the reward"


def numbers(*values: float) -> Float[Tensor, " answer"]:
    """A column in float64."""
    return torch.tensor(values, dtype=torch.float64)


TWO = AnswerTable(("first", "second"), numbers(0.8, 0.2), numbers(0, 1))
"""The rarer answer is the better one."""
FIVE = AnswerTable(
    ("on brand, clean", "on brand, plain", "repeats a word", "wrong material", "repair promise three times"),
    numbers(0.30, 0.35, 0.15, 0.15, 0.05),
    numbers(1, 0.7, -0.5, -0.8, 1.6),
    numbers(1, 0.7, -0.5, -0.8, -1),
)
"""Answers to a question about a product. The reward likes the last one best, and people hate it."""

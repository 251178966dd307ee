"""Best-of-n over a person's own variants: score them, keep the best, and see what a larger n would buy."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median_low
from typing import Any

import torch
from torch import Tensor

from killick.algorithms.best_of_n import Curve, best_of_n_curve
from killick.recipes.best_of.candidates import Pool
from killick.recipes.scores.text_score import Prompt, TextScore, Unscored
from killick.types import Refusal


@dataclass(frozen=True, eq=False)
class Choice:
    """One prompt, its responses scored, and the one that is kept.

    Attributes:
        pool: the responses.
        scores: the reward of each.
        golds: what people want of each; None where nobody said.
    """

    pool: Pool
    scores: Tensor
    golds: Tensor | None

    @property
    def winner(self) -> int:
        """The place of the best; of equals the first in the file."""
        return int(self.scores.argmax())

    @property
    def tied(self) -> int:
        """How many others have the best score too."""
        return int((self.scores == self.scores.max()).sum()) - 1

    def row(self) -> dict[str, Any]:
        """What is kept of this prompt: plain types, the same keys for every prompt."""
        kept = {
            "prompt": as_json(self.pool.prompt), "response": self.pool.responses[self.winner],
            "line": self.pool.lines[self.winner], "reward": float(self.scores.max()), "tied": self.tied,
            "responses": len(self.scores), "reward_first": float(self.scores[0]),
            "reward_mean": float(self.scores.mean()),
        }  # fmt: skip
        if self.golds is not None:
            kept |= {
                "gold": float(self.golds[self.winner]), "gold_first": float(self.golds[0]),
                "gold_mean": float(self.golds.mean()),
            }  # fmt: skip
        return kept


def as_json(prompt: Prompt) -> Any:
    """A prompt as it stands in a file: a string, or messages."""
    return prompt if isinstance(prompt, str) else [{"role": role, "content": content} for role, content in prompt]


def scored(pools: Sequence[Pool], score: TextScore) -> list[Tensor]:
    """Each response's number, a row for each pool, float64; all responses are asked about in one call.

    Raises:
        Refusal: at the first response without a number, with its line.
    """
    prompts = [pool.prompt for pool in pools for _ in pool.responses]
    try:
        found = score(prompts, [response for pool in pools for response in pool.responses])
    except Unscored as error:
        places = [(line, place) for pool in pools for place, line in enumerate(pool.lines, 1)]
        line, place = places[error.row]
        raise Refusal(f"{error.name}, line {line}, its prompt's response {place}: {error.reason}.") from error
    return list(found.split([len(pool.responses) for pool in pools]))


def choices(pools: Sequence[Pool], scores: Sequence[Tensor], *, golds: Sequence[Tensor] | None) -> list[Choice]:
    """The choice for each prompt."""
    rows = golds if golds is not None else [None] * len(pools)
    return [Choice(pool, score, gold) for pool, score, gold in zip(pools, scores, rows, strict=True)]


def reach(sizes: Sequence[int]) -> list[int]:
    """1, 2, 4, ... as far as half of the prompts have so many responses."""
    most = median_low(sizes)
    return [2**power for power in range(most.bit_length()) if 2**power <= most]


def curve(made: Sequence[Choice], *, ns: Sequence[int], generator: torch.Generator) -> Curve:
    """Best-of-n along n, over the prompts that have responses for the largest n: the same ones at every n.

    Raises:
        Refusal: where no prompt has so many.
    """
    able = [choice for choice in made if len(choice.scores) >= max(ns)]
    if not able:
        most = max(len(choice.scores) for choice in made)
        raise Refusal(f"--ns goes to {max(ns)}, but no prompt has more than {most} responses.")
    golds = [choice.golds for choice in able if choice.golds is not None]
    return best_of_n_curve([choice.scores for choice in able], golds or None, ns=ns, generator=generator)


def overall(rows: Sequence[dict[str, Any]]) -> list[tuple[str, float, float | None]]:
    """Over all prompts, the mean of the first response, of all and of the best: reward, and gold where it is known."""
    kinds = (("first", "_first"), ("mean", "_mean"), ("best", ""))
    means = {key: fmean(row[key] for row in rows) for key, value in rows[0].items() if isinstance(value, float)}
    return [(name, means["reward" + key], means.get("gold" + key)) for name, key in kinds]
